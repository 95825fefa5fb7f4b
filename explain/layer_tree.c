/* See layer_tree.h. */
#include "layer_tree.h"

#include <math.h>
#include <string.h>

#include "support/array.h"

static bool add_node(struct occ_layer_tree *tree, uint32_t parent, const char *name, size_t bytes)
{
    if (!occ_grow((void **)&tree->nodes, &tree->allocated, tree->n, OCC_NO_NODE, sizeof *tree->nodes))
        return false;
    tree->nodes[tree->n++] =
        (struct occ_layer_node){.parent = parent, .name = name, .name_bytes = (uint32_t)bytes};
    return true;
}

bool occ_layer_tree_init(struct occ_layer_tree *tree)
{
    *tree = (struct occ_layer_tree){0};
    return add_node(tree, OCC_NO_NODE, "", 0);
}

void occ_layer_tree_free(struct occ_layer_tree *tree)
{
    free(tree->nodes);
    occ_map_free(&tree->index);
}

/* Hashes parent and name by FNV-1a (64 bits). Nodes with equal hashes get consecutive keys in the index. */
static uint64_t hash_of(uint32_t parent, const char *name, size_t bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ parent;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return hash * UINT64_C(0x9e3779b97f4a7c15) + parent;
}

uint32_t occ_layer_tree_child(struct occ_layer_tree *tree, uint32_t parent, const char *name, size_t bytes)
{
    for (uint64_t key = hash_of(parent, name, bytes);; key++) {
        uint32_t at = occ_map_get(&tree->index, key);
        if (at == OCC_MAP_NONE) {
            bool is_added = add_node(tree, parent, name, bytes) &&
                            occ_map_put(&tree->index, key, tree->n - 1) != OCC_MAP_NONE;
            return is_added ? tree->n - 1 : OCC_NO_NODE;
        }
        const struct occ_layer_node *node = &tree->nodes[at];
        if (node->parent == parent && node->name_bytes == bytes && memcmp(node->name, name, bytes) == 0)
            return at;
    }
}

static double positive(double value)
{
    return isfinite(value) && value > 0 ? value : 0;
}

void occ_layer_tree_add(struct occ_layer_tree *tree, uint32_t at, const struct occ_range_totals *totals)
{
    struct occ_layer_node *node = &tree->nodes[at];
    double time_s = positive(totals->time_s), used = positive(totals->used);
    bool is_known = isfinite(totals->used);
    double loss_s = is_known ? time_s * (1 - (used < 1 ? used : 1)) : 0;
    node->own_launches += totals->launches;
    node->own_time_s += time_s;
    node->own_known_s += is_known ? time_s : 0;
    node->own_used_s += is_known ? time_s * used : 0;
    if (totals->kernel && loss_s > node->own_worst_loss_s) {
        node->own_worst_loss_s = loss_s;
        node->own_worst_kernel = totals->kernel;
        node->own_worst_kernel_id = totals->kernel_id;
    }
}

static void add_to(struct occ_layer_node *parent, const struct occ_layer_node *node)
{
    parent->launches += node->launches;
    parent->time_s += node->time_s;
    parent->known_s += node->known_s;
    parent->used_s += node->used_s;
    if (node->worst_loss_s > parent->worst_loss_s) {
        parent->worst_loss_s = node->worst_loss_s;
        parent->worst_kernel = node->worst_kernel;
        parent->worst_kernel_id = node->worst_kernel_id;
    }
}

void occ_layer_tree_sum(struct occ_layer_tree *tree)
{
    for (uint32_t i = tree->n; i-- > 0;) {
        struct occ_layer_node *node = &tree->nodes[i];
        node->launches += node->own_launches;
        node->time_s += node->own_time_s;
        node->known_s += node->own_known_s;
        node->used_s += node->own_used_s;
        if (node->own_worst_loss_s > node->worst_loss_s) {
            node->worst_loss_s = node->own_worst_loss_s;
            node->worst_kernel = node->own_worst_kernel;
            node->worst_kernel_id = node->own_worst_kernel_id;
        }
        if (node->parent != OCC_NO_NODE)
            add_to(&tree->nodes[node->parent], node);
    }
}
