/*
 * How many times the work of A did B? A faster program makes more steps in the same time, and sides may have
 * different numbers of runs. A unit of work is known by its launches: kernels with the same launch
 * configuration on both sides agree on one ratio of their numbers of launches.
 *
 * Pure apart from malloc; any thread.
 */
#pragma once

#include "compare.h"

/* The ratio is known if DIFF_WORK_PAIRS_MIN pairs of equal configurations have DIFF_WORK_SHARE_MIN of the
 * time of both sides, and DIFF_WORK_AGREE_MIN of that time agrees to DIFF_WORK_TOLERANCE. Chosen, not
 * measured. */
enum { DIFF_WORK_PAIRS_MIN = 3 };
#define DIFF_WORK_SHARE_MIN 0.1
#define DIFF_WORK_AGREE_MIN 0.8
#define DIFF_WORK_TOLERANCE 0.02

/* Sets diff->work, after the sums of the pairs. */
int diff_find_work(struct diff *diff, struct occ_error *err);

/* Returns the factor from the ratio of the time of a launch to the ratio of the time for the same work: 1 for
 * pairs with launches that do the same work on both sides. NaN: not known. */
double diff_work_factor(const struct diff *diff, const struct diff_pair *pair);
