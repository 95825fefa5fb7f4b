/*
 * Totals of launches, the input of explain/: from a history or a warehouse. Times are in seconds, shares and
 * occupancies are ratios, NaN means unknown. Texts belong to the caller and outlive the answers.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names/owners.h"
#include "occupancy/advice.h"
#include "occupancy/waterfall.h"

/* The use of one GPU by one run. */
struct occ_gpu_totals {
    int64_t gpu, run, job; /* numbers that group rows; 0: none */
    double window_s;      /* recorded time: from the first start to the last end, without gaps in recording */
    double unrecorded_s;  /* gaps in recording, which are not a part of window_s */
    double busy_s;        /* time in which at least one kernel ran */
    double launch_wait_s; /* idle time in which the GPU waited for a launch (store/gaps.h) */
    double copies_s;      /* time in which copies ran and no kernel; NaN: copies are not recorded */
    /* time in which communication ran and no other kernel; NaN: unknown, then the busy time is divided in
     * proportion to the sums of durations */
    double communication_s;
    /* durations of launches other than communication that belong to no kernel of the list, in the scale of
     * the kernels' times: kernels that run into a period */
    double unlisted_s;
};

/* A predicted saving: part of a time that a change saves. NaN: unknown. */
struct occ_saving {
    double median, low, high; /* low, high: an interval of 80 % if `cases` > 0, else bounds of the model */
    uint32_t cases;           /* measured changes behind the prediction; 0: bounds of the model */
};

/* The predicted time of a launch after a change, divided by the time before (occupancy/predict.h). NaN: no
 * prediction. */
struct occ_forecast {
    double ratio, low, high; /* median, ends of the interval of 80 %; NaN ends: an empty launch's time */
    uint32_t faster, slower; /* numbers of published cases */
    bool is_promised;        /* false: the sign of the effect is not known */
    bool is_unlikely;        /* the SM has enough warps already: unlikely to help */
};

/* A change that the model knows for a launch configuration. */
struct occ_candidate {
    enum occ_advice_kind kind;
    uint64_t now, needed;     /* see struct occ_advice */
    struct occ_saving saving; /* part of the time of this launch configuration */
    struct occ_forecast forecast;
};

/* A kernel in one launch configuration in one row of the GPUs. */
struct occ_kernel_totals {
    size_t gpu; /* index of its struct occ_gpu_totals */
    int64_t kernel, config;
    const struct occ_kernel_owner *owner; /* NULL: unknown */
    uint64_t launches;
    double time_s; /* sum of durations, which overlap on several streams */
    /* The waterfall of occupancy/waterfall.h: 1 = used + sum of the parts that are not NaN. NaN: the model
     * does not know the launch. */
    double used;
    double part[OCC_PART_COUNT];
    double measured_ratio; /* part of the time with measured values */
    double waves;          /* blocks / blocks of a full wave; NaN: unknown */
    double grid_per_sm;    /* blocks of the grid / SMs; 0: unknown */
    uint32_t by_design;    /* enum occ_by_design bits */
    bool simulated;
    bool is_throughput_bound;               /* counters show that more warps would not help */
    const struct occ_candidate *candidates; /* changes of this launch configuration */
    size_t n_candidates;
    double rest_ratio; /* part of time_s in other launch configurations, whose savings are not known */
};

struct occ_totals {
    const struct occ_gpu_totals *gpus;
    size_t n_gpus;
    const struct occ_kernel_totals *kernels;
    size_t n_kernels;
};

/* Returns `value` if it is finite and positive, else 0. */
static inline double occ_positive(double value)
{
    return isfinite(value) && value > 0 ? value : 0;
}

/* Returns the smaller value; `max` if `value` is NaN. */
static inline double occ_at_most(double value, double max)
{
    return value < max ? value : max;
}

static inline bool occ_is_communication(const struct occ_kernel_totals *kernel)
{
    return kernel->owner && kernel->owner->owner == OCC_OWNER_COMMUNICATION;
}
