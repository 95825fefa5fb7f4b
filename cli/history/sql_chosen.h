/* The kernels and ranges that a filter chooses, as conditions on the table `launch`. One thread. */
#pragma once

#include "store/store.h"

#define SQL_CHOSEN_KERNEL "is_chosen_kernel(kernel_id)"
#define SQL_CHOSEN_RANGE  "is_chosen_range(run_id, range_id)"

bool sql_chooses_kernels(const struct occ_filter *filter);
/* Makes the functions of the conditions, for statements that are prepared until the next call. OCC_E_USAGE:
 * see occ_store_choose_kernels(). */
int sql_add_chosen(struct occ_store *store, const struct occ_filter *filter, struct occ_error *err);
