/*
 * The change of a group of launch configurations: one ratio for all of them, with its interval.
 *
 * A cell is a launch configuration on both sides, in one range. Its change d is the mean logarithm of its
 * durations in B less the mean in A; its weight w is the time of the launches that both sides have.
 *
 * A pair of launches that do other work is a cell too, if the sides' ratio of the work is known (work.h): of
 * kernels with another name or number of threads, also several that one kernel replaced. Its d is the
 * logarithm of the ratio of the times for the same work. A launch of B counts as 1 / factor launches of
 * factor times its duration. Means of durations take the place of means of logarithms, since the launches of
 * different kernels are no values of one distribution.
 *
 * The change of a group is the mean of d, weighted with w. Launches of a run are not independent of each
 * other, so the error of the change is estimated twice, and the wider interval counts:
 *
 *   over replicates   from the group's values in runs, or in slices of a run: variation with time
 *   over cells        from the differences between d of its cells: variation between configurations
 *
 * The control of a group is the median change of the cells outside of the group. A change of the clock or of
 * the load is in both; the change to the control is without it. A median, since other groups may have changed
 * too.
 *
 * Pure; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "compare.h"

struct diff_cell {
    uint32_t pair;
    double change;              /* d */
    double weight;              /* w, ns */
    double centre;              /* mean of the two sides' mean logarithms of durations */
    double launch_ns;           /* typical duration: exp(centre) */
    double control_weight;      /* weight in a control: the smaller number of launches, at most
                                   DIFF_CONTROL_WEIGHT_MAX */
    bool is_of_work;            /* d is the change of the time for the same work */
    double mean_ns[DIFF_SIDES]; /* with is_of_work: mean duration of a launch */
    double factor;              /* with is_of_work: the pair's work_factor */
    bool depends_on_launches;   /* d depends on the pair's numbers of launches */
};
/* A control shows what changed everywhere, such as the clock: one configuration with many launches must not
 * decide it. */
#define DIFF_CONTROL_WEIGHT_MAX 10.0

/* The effective number of values of a usable estimate: three values of almost equal weight, such as three
 * steps of a training loop. */
#define DIFF_EFFECTIVE_MIN 2.9
/* The same of runs; diff_sample() requires DIFF_RUNS_MIN on each side. */
#define DIFF_RUNS_EFFECTIVE_MIN 2.0

/* Returns false if the pair is not pooled: it is on one side only, its launches may do other work and the
 * ratio of the work is not known, or a side has no replicates of it. */
bool diff_cell_of(const struct diff *diff, uint32_t pair, struct diff_cell *ret_cell);

/* A change with the error of each estimate. Degrees of freedom 0: no such estimate. */
enum { DIFF_OVER_REPLICATES, DIFF_OVER_CELLS, DIFF_ESTIMATES };
struct diff_change {
    double change; /* logarithm of the ratio */
    double error[DIFF_ESTIMATES], df[DIFF_ESTIMATES];
};
struct diff_weighted {
    double value, weight;
};

/* The weighted mean of values. */
struct diff_spread {
    double mean, variance, effective; /* variance: of the mean; effective: number of values */
};
struct diff_spread diff_spread_of(const struct diff_weighted *values, size_t n);
/* Sets the error of an estimate from the sides' spreads, with the degrees of freedom of Satterthwaite. */
void diff_set_error(struct diff_change *change, int estimate, struct diff_spread a, struct diff_spread b);

/* The pooled change of n > 0 cells. `scratch`: n items. */
struct diff_change diff_pool(const struct diff *diff, const struct diff_cell *const *cells, size_t n,
                             struct diff_weighted *scratch);

/* The weighted median of n changes, with its error from the median of the differences to it. The values are
 * overwritten. Returns false with fewer than DIFF_CONTROL_MIN effective values. */
#define DIFF_CONTROL_MIN 5.0
bool diff_control(struct diff_weighted *changes, size_t n, struct diff_change *ret_control);

/* The change of a group less the change of its control. */
struct diff_change diff_less_control(const struct diff_change *change, const struct diff_change *control);

/* The ratio with its 95 % interval; NaN: unknown. p: of the hypothesis that the change is at most `floor`. */
struct diff_ratio diff_change_ratio(const struct diff_change *change, double floor);
