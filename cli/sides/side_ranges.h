/* Where in their program the launches of a side were made, for its comparison. One thread. */
#pragma once

#include "store/store.h"
#include "support/arena.h"

struct side_range {
    uint32_t id;      /* in its run; 0: none, or not known any more */
    const char *path; /* with its phase; NULL for id 0 */
};

/* Splits the rows of a run by range: rows that follow the first ones have the launches of one range, the
 * first ones what is left. `filter`: its run and time. *ret_ranges: of each row, to be freed; NULL: the run
 * has no ranges. Paths belong to `texts`. */
int side_split_by_range(struct occ_store *store, const struct occ_filter *filter,
                        struct occ_config_rows *rows, struct occ_arena *texts, struct side_range **ret_ranges,
                        struct occ_error *err);
