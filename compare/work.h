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

/* A part of a step at an end of a run has some of the step's kernels only, so that numbers of launches do not
 * tell the work exactly. The error of a kernel's number is the deviation of the voting pairs from their
 * common ratio, weighted with time: the root of the mean square of logarithms. Deviations beyond
 * DIFF_WORK_DEVIATION_MAX do not count: a kernel that B calls half as often is no end of a run. */
#define DIFF_WORK_DEVIATION_MAX 0.2

/* A ratio of numbers of launches, B / A, of launches with this time on both sides. */
struct diff_vote {
    double ratio, ns;
};
/* Returns the ratio on which n votes agree; NaN: not known. Sorts the votes. `all_ns`: time of both sides.
 * *ret_error: the error of a kernel's number, 0 without a ratio. */
double diff_common_ratio(struct diff_vote *votes, size_t n, double all_ns, double *ret_error);

/* Sets diff->work and diff->work_error, after the sums of the pairs. */
int diff_find_work(struct diff *diff, struct occ_error *err);

/* Returns the work of B / A's: diff->work; if that is not known, and both sides have as many launches in a
 * run (to DIFF_WORK_TOLERANCE, the ends included), the ratio of their runs. NaN: not known. */
double diff_work_of(const struct diff *diff);

/* Returns true if the pair's change depends on its numbers of launches: a launch of A does other work than
 * one of B, or other kernels replaced its kernels. After pair->work_factor is set. */
bool diff_depends_on_launches(const struct diff_pair *pair);

/* Returns the standard error of the logarithm of the factor of pairs that are counted, with `launches` on the
 * sides together. Beside diff->work_error, each end of a run may have one more launch, or one less, of the
 * pairs and of the kernels that tell the work: DIFF_COUNT_ERROR launches of a side. */
#define DIFF_COUNT_ERROR 0.6
double diff_work_error(const struct diff *diff, const double launches[DIFF_SIDES]);

/* Returns the factor from the ratio of the time of a launch to the ratio of the time for the same work: 1 for
 * pairs with launches that do the same work on both sides. NaN: not known. */
double diff_work_factor(const struct diff *diff, const struct diff_pair *pair);
