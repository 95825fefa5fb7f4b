/* See range_names.h. */
#include "range_names.h"

#include <string.h>
#include <xxhash.h>

void occ_range_names_free(struct occ_range_names *r)
{
    occ_map_free(&r->index);
    occ_map_free(&r->nodes);
    occ_arena_free(r->arena.blocks);
}

#define ELLIPSIS "\xe2\x80\xa6"
enum { ELLIPSIS_BYTES = sizeof ELLIPSIS - 1 };

/* Makes the name for paths; a cut name ends with an ellipsis, at a whole character. */
static size_t simplify(const struct occ_import_range *range, char name[OCC_RANGE_NAME_BYTES])
{
    size_t n = 0;
    for (size_t i = 0; i < range->name_bytes; i++) {
        char c = range->name[i];
        bool is_digit = !range->keeps_digits && c >= '0' && c <= '9';
        if (is_digit && n > 0 && name[n - 1] == '#')
            continue;
        if (n == OCC_RANGE_NAME_BYTES) {
            n -= ELLIPSIS_BYTES;
            while (n > 0 && (name[n] & 0xc0) == 0x80)
                n--;
            memcpy(name + n, ELLIPSIS, ELLIPSIS_BYTES);
            return n + ELLIPSIS_BYTES;
        }
        name[n++] = is_digit ? '#' : c != '\0' ? c : '?';
    }
    return n;
}

int occ_range_names_find(struct occ_range_names *r, const struct occ_import_range *range, uint16_t *ret_name,
                         struct occ_error *err)
{
    char name[OCC_RANGE_NAME_BYTES + 1];
    size_t n = simplify(range, name);
    uint64_t hash = XXH3_64bits_withSeed(name, n, r->seed);
    uint32_t at = occ_map_get(&r->index, hash);
    *ret_name = (uint16_t)(at == OCC_MAP_NONE ? r->n : at);
    if (at != OCC_MAP_NONE || r->n == OCC_RANGE_NAMES_MAX)
        return 0;
    name[n] = '\0';
    r->texts[r->n] = occ_arena_copy(&r->arena, name);
    if (r->arena.failed || occ_map_put(&r->index, hash, r->n) == OCC_MAP_NONE)
        return occ_no_memory(err);
    r->n++;
    return 0;
}

int occ_range_names_child(struct occ_range_names *r, uint32_t parent, uint16_t name, uint32_t *ret_node,
                          struct occ_error *err)
{
    uint64_t key = (uint64_t)parent << 32 | name;
    uint32_t at = occ_map_get(&r->nodes, key);
    r->n_nodes = r->n_nodes == 0 ? OCC_OTHER_RANGES + 1 : r->n_nodes;
    bool is_full =
        parent == OCC_OTHER_RANGES || name == OCC_RANGE_NAMES_MAX || r->n_nodes == OCC_RANGE_NODES_MAX;
    *ret_node = at != OCC_MAP_NONE ? at : is_full ? OCC_OTHER_RANGES : r->n_nodes;
    if (at != OCC_MAP_NONE || is_full)
        return 0;
    r->node[r->n_nodes].parent = parent;
    r->node[r->n_nodes].name = name;
    return occ_map_put(&r->nodes, key, r->n_nodes++) != OCC_MAP_NONE ? 0 : occ_no_memory(err);
}

const char *occ_range_names_path(const struct occ_range_names *r, uint32_t node,
                                 char path[OCC_STORE_RANGE_BYTES + 1])
{
    size_t at = OCC_STORE_RANGE_BYTES;
    path[at] = '\0';
    if (node == OCC_OTHER_RANGES)
        return "(other ranges)";
    for (; node != 0; node = r->node[node].parent) {
        const char *name = r->texts[r->node[node].name];
        size_t n = strlen(name), slash = at < OCC_STORE_RANGE_BYTES;
        if (n + slash + (r->node[node].parent ? sizeof ELLIPSIS : 0) > at) /* the innermost names are kept */
            return memcpy(path + at - sizeof ELLIPSIS, ELLIPSIS "/", sizeof ELLIPSIS);
        if (slash)
            path[--at] = '/';
        memcpy(path + (at -= n), name, n);
    }
    return path + at;
}
