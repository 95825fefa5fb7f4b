/* Ranges of the launches of a side, for its comparison. One thread. */
#pragma once

#include "store/store.h"
#include "support/arena.h"

struct side_range {
    uint32_t id;       /* id in its run; 0: the launches without a known range */
    const char *path;  /* path with phase; NULL for id 0 */
    const char *layer; /* see side_layer(); NULL for id 0 */
    const char *names; /* path without phase; NULL for id 0 */
    bool is_backward;  /* the range's phase is "backward" */
};

/* Splits the rows of a run by range. Each added row has the launches of one range; the original rows keep the
 * remaining launches. `filter`: the run and the period. *ret_ranges: an item for each row, to be freed, also
 * after a failure. Paths belong to `texts`. */
int side_split_by_range(struct occ_store *store, const struct occ_filter *filter,
                        struct occ_config_rows *rows, struct occ_arena *texts, struct side_range **ret_ranges,
                        struct occ_error *err);
