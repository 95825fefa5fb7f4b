/* The nodes of graphs. Programs capture graphs again and again, so nodes without launches are forgotten. See
 * state.h. */
#include "state.h"

/* Frees the nodes that no row has any more. */
static void free_unused(struct occ_attribution *a)
{
    a->nodes.freed_ns = a->joined_ns;
    a->nodes.next_free = a->nodes.n_shared = 0;
    occ_map_clear(&a->nodes.index);
    for (size_t i = 0; i < a->n_regressors; i++)
        a->regressors[i].n_nodes = 0;
    for (uint32_t i = 0; i < a->nodes.n; i++) {
        struct occ_node *node = &a->nodes.at[i];
        if (node->regressor == OCC_NONE)
            continue;
        struct occ_regressor *r = &a->regressors[node->regressor];
        bool is_used = node->last_ns >= a->joined_ns - 2 * WINDOW_NS;
        if (!is_used || occ_map_put(&a->nodes.index, node->id, i) != i) {
            node->regressor = OCC_NONE;
            continue;
        }
        r->last_node = i;
        r->n_nodes++;
        a->nodes.n_shared += r->n_nodes == 2 ? 2 : r->n_nodes > 2;
    }
}

/* The index of a free node; OCC_NONE: there is none. */
static uint32_t find_free(struct occ_attribution *a)
{
    if (a->nodes.n < OCC_NODES_MAX)
        return occ_grow((void **)&a->nodes.at, &a->nodes.allocated, a->nodes.n, OCC_NODES_MAX,
                        sizeof *a->nodes.at)
                   ? (uint32_t)a->nodes.n++
                   : OCC_NONE;
    if (a->nodes.next_free >= a->nodes.n && a->joined_ns >= a->nodes.freed_ns + WINDOW_NS)
        free_unused(a);
    while (a->nodes.next_free < a->nodes.n && a->nodes.at[a->nodes.next_free].regressor != OCC_NONE)
        a->nodes.next_free++;
    return a->nodes.next_free < a->nodes.n ? (uint32_t)a->nodes.next_free : OCC_NONE;
}

uint32_t occ_nodes_find(struct occ_attribution *a, const struct occ_attribution_key *key, uint32_t regressor)
{
    struct occ_regressor *r = &a->regressors[regressor];
    uint64_t id = key->shape * UINT64_C(0x9e3779b97f4a7c15) ^ key->graph_node * UINT64_C(0xc2b2ae3d27d4eb4f);
    uint32_t at = occ_map_get(&a->nodes.index, id);
    /* programs choose the ids of nodes, so two nodes can collide */
    bool is_known = at != OCC_MAP_NONE;
    if (is_known && a->nodes.at[at].regressor == regressor)
        return at;
    at = is_known ? OCC_NONE : find_free(a);
    if (at == OCC_NONE)
        return r->n_nodes > 0 ? r->last_node : OCC_NONE;
    a->nodes.at[at] = (struct occ_node){.id = id, .regressor = regressor, .column = OCC_NONE};
    if (occ_map_put(&a->nodes.index, id, at) == OCC_MAP_NONE) {
        a->nodes.at[at].regressor = OCC_NONE;
        return OCC_NONE;
    }
    r->n_nodes++;
    a->nodes.n_shared += r->n_nodes == 2 ? 2 : r->n_nodes > 2;
    return r->last_node = at;
}
