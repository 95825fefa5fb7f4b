/* Names of ranges, and the tree of their paths: a node is a range within the ranges around it. The numbers of
 * names and nodes have maxima; all further ranges are the node OCC_OTHER_RANGES. Internal to import/. One
 * thread. */
#pragma once

#include "sink.h"
#include "support/arena.h"
#include "support/map.h"

#define OCC_RANGE_NAMES_MAX  (1u << 14)
#define OCC_RANGE_NODES_MAX  (1u << 16)
#define OCC_RANGE_NAME_BYTES 256u /* longer names are cut, with an ellipsis */
#define OCC_OTHER_RANGES     1u   /* node 0 means no range */

struct occ_range_names {
    uint64_t seed;               /* seed of the hashes */
    struct occ_map index, nodes; /* hash -> name; parent << 32 | name -> node */
    struct occ_arena arena;
    const char *texts[OCC_RANGE_NAMES_MAX];
    uint32_t n, n_nodes; /* n_nodes 0: only the first two nodes exist */
    struct {
        uint32_t parent, name;
    } node[OCC_RANGE_NODES_MAX];
};

void occ_range_names_free(struct occ_range_names *names);

/* The number of a range's name; OCC_RANGE_NAMES_MAX: too many names. */
int occ_range_names_find(struct occ_range_names *names, const struct occ_import_range *range,
                         uint16_t *ret_name, struct occ_error *err);
/* The node of a range inside the range of node `parent`. */
int occ_range_names_child(struct occ_range_names *names, uint32_t parent, uint16_t name, uint32_t *ret_node,
                          struct occ_error *err);
/* Names joined by '/'; a long path is an ellipsis and the innermost names. Returns a text in `path`, or a
 * constant. */
const char *occ_range_names_path(const struct occ_range_names *names, uint32_t node,
                                 char path[OCC_STORE_RANGE_BYTES + 1]);
