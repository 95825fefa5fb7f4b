/* SQL conditions on the table `launch` for the kernels and ranges that a filter chooses. One thread. */
#pragma once

#include "store/store.h"

#define SQL_CHOSEN_KERNEL "is_chosen_kernel(kernel_id)"
#define SQL_CHOSEN_RANGE  "is_chosen_range(run_id, range_id)"

bool sql_chooses_kernels(const struct occ_filter *filter);
/* Adds the functions of the conditions. Statements prepared before the next call can use them. OCC_E_USAGE:
 * see occ_store_choose_kernels(). */
int sql_add_chosen(struct occ_store *store, const struct occ_filter *filter, struct occ_error *err);
