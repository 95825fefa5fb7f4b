/* Launch configurations of a history as a comparison takes them. Pure; any thread. */
#pragma once

#include "compare/compare.h"
#include "store/store.h"

/* Refers to `row`. */
struct diff_row diff_row_of(const struct occ_config_row *row);

/* diff_collect() and diff_add_sums() of parts whose rows diff_row_of() made. */
int diff_collect_rows(struct diff *diff, struct diff_part *parts, size_t n_parts,
                      const uint32_t runs[DIFF_SIDES], struct occ_error *err);

/* The history's row behind an item. */
static inline const struct occ_config_row *diff_config_row(const struct diff_item *item)
{
    return item->row->of;
}
