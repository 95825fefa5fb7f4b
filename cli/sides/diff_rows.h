/* Converts launch configurations of a history to rows of a comparison. Pure; any thread. */
#pragma once

#include "compare/compare.h"
#include "store/store.h"

/* Returns a row that refers to `row`, which must outlive it. */
struct diff_row diff_row_of(const struct occ_config_row *row);

/* Calls diff_collect() and diff_add_sums() for parts with rows from diff_row_of(). */
int diff_collect_rows(struct diff *diff, struct diff_part *parts, size_t n_parts,
                      const uint32_t runs[DIFF_SIDES], struct occ_error *err);

/* Returns the history's row of an item. */
static inline const struct occ_config_row *diff_config_row(const struct diff_item *item)
{
    return item->row->of;
}
