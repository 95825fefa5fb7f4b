/* The kernels of a pair as a text that is equal for equal sets of kernels. Pure apart from malloc; any
 * thread. */
#pragma once

#include "compare.h"

/* of[side][pair]: the kernels' names in the driver, sorted, with a line end between two; NULL: no kernel on
 * this side. One kernel's name is the row's. */
struct diff_kernel_sets {
    const char **of[DIFF_SIDES];
    char *texts; /* of sets with several kernels */
};

/* Makes the sets of all pairs, after diff_sample(). The caller frees them also after an error. */
int diff_kernel_sets_make(const struct diff *diff, struct diff_kernel_sets *ret_sets, struct occ_error *err);
void diff_kernel_sets_free(struct diff_kernel_sets *sets);
