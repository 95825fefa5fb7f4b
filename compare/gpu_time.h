/*
 * The change of the GPU time for the same work: of the time of the GPUs with their idle time, so that a run
 * whose kernels wait longer is slower although each kernel is the same.
 *
 * The change is the logarithm of the ratio of the sides' GPU times less that of their work (work.h). Its
 * error comes from portions of each side: runs, if both sides have DIFF_RUNS_MIN; else DIFF_SLICES slices of
 * consecutive launches, of DIFF_BLOCK_LAUNCHES or more each. A portion has GPU time, and work that is
 * expected to take it. The spread is that of time / work, weighted with the work, and wider if neighbouring
 * slices correlate. The error is at least the change that a single portion makes, so that one long pause
 * decides nothing.
 *
 * The GPU time of a launch is the time from its start to the next start on the same GPU. The work of a slice
 * is the sum of the mean GPU times of launches like its own in all other slices of both sides, so that slices
 * with other parts of a step do not spread, and a pause does not explain itself.
 *
 * The error of the work is that of work.h, and of slices also the difference between the work and the ratio
 * of the GPU times that the numbers of launches give: the ends of two recordings may be in different parts of
 * a step.
 *
 * Pure apart from malloc; any thread.
 */
#pragma once

#include "compare.h"

struct diff_portion {
    double time, work; /* work in any unit, the same for all portions of a side */
};
/* Sets *ret_work to the work of B / A's for the GPU time; NaN: not known. The votes are launch configurations
 * over all ranges, since a range that one side lacks makes no other work; else diff_work_of(). After
 * diff_conclude(). */
int diff_find_gpu_work(const struct diff *diff, double *ret_work, struct occ_error *err);

/* The portions of both sides. */
struct diff_portions {
    struct diff_portion list[DIFF_SIDES][DIFF_RUNS_MAX];
    uint32_t n[DIFF_SIDES];
    double work_error; /* of slices: logarithm of (GPU time by numbers of launches, B / A) / work */
};

/* GPU times of the launches of both sides. */
struct diff_uses {
    const struct diff *diff;
    double *ns[DIFF_SIDES]; /* [pair * DIFF_SLICES + i], of the launches of a pair in slice i */
    uint64_t seen[DIFF_SIDES];
};
/* After diff_sample(). Free with diff_uses_free(), also after a failure. */
int diff_uses_init(struct diff_uses *uses, const struct diff *diff, struct occ_error *err);
void diff_uses_free(const struct diff_uses *uses);
/* Returns the slice of the side's next launch, in the order of diff_add_launch(). */
uint32_t diff_uses_next(struct diff_uses *uses, uint32_t side);
/* Adds the GPU time of a launch. */
void diff_uses_add(struct diff_uses *uses, uint32_t side, uint32_t slice, uint32_t pair, double ns);
/* Makes portions of slices, after all launches of both sides are in the uses. `work`: of
 * diff_find_gpu_work(). */
int diff_uses_portions(const struct diff_uses *uses, double work, struct diff_portions *ret_portions,
                       struct occ_error *err);

/* A change of the GPU time: logarithm of the ratio. Degrees of freedom 0: the error is not known. */
struct diff_gpu_change {
    double change, error, df;
};
/* Returns the change from `ratio`: GPU time for the same work, B / A; NaN: not known. After diff_conclude().
 */
struct diff_gpu_change diff_gpu_time_change(const struct diff *diff, double ratio,
                                            const struct diff_portions *portions);

/* The verdict, as on the total of the kernels (levels.h): worse and better are beyond the floor with a chance
 * of at most 1 %; same, if the interval lies within it. */
struct diff_gpu_time_verdict {
    enum diff_verdict verdict;
    struct diff_ratio ratio; /* low, high and p are NaN without an error */
};
struct diff_gpu_time_verdict diff_judge_gpu_time(const struct diff_gpu_change *change, double floor);
