/*
 * What hardware counters said of launches, added up by minute, run and shape. The daemon adds to it as values are
 * settled; `show` and `top` read means. A sum without time says nothing: not measured is NULL, never 0.
 *
 * Every value is kept as (sum of value x duration, sum of the durations for which it was defined), so that sums of
 * sums are the time-weighted mean again. A standard error's mean is an upper bound of the mean's standard error:
 * launches that share a regression share its error.
 */
#ifndef OCC_STORE_MEASURED_H
#define OCC_STORE_MEASURED_H

#include <stdint.h>

#include "support/error.h"

struct occ_store;

/* X(name): ratios 0...1 but for variance_inflation (>= 1) and resident_blocks (blocks per active SM). stall_*: share of
 * cycles in which the launch of warps waited for that resource, as the hardware counted it (non-exclusive). */
#define OCC_MEASURED_VALUES(X)                                                                               \
    X(achieved)                                                                                              \
    X(achieved_error)                                                                                        \
    X(elapsed)                                                                                               \
    X(elapsed_error)                                                                                         \
    X(variance_inflation)                                                                                    \
    X(sm_active)                                                                                             \
    X(resident_blocks)                                                                                       \
    X(imbalance)                                                                                             \
    X(stall_registers)                                                                                       \
    X(stall_shared_memory)                                                                                   \
    X(stall_blocks)                                                                                          \
    X(stall_warps)                                                                                           \
    X(stall_barriers)

/* X(name, text): where launches have their values from. */
#define OCC_MEASURED_SOURCES(X)                                                                              \
    X(direct, "samples inside the launch")                                                                   \
    X(regressed, "least squares over many launches of the shape")                                            \
    X(grouped, "mean of kernels that cannot be told apart")                                                  \
    X(exact, "the launch by itself, while kernels ran one after the other (--exact)")

enum occ_measured_value {
#define X(name) OCC_MEASURED_##name,
    OCC_MEASURED_VALUES(X)
#undef X
        OCC_MEASURED_VALUE_COUNT
};

struct occ_measured_sums {
    double sum[OCC_MEASURED_VALUE_COUNT]; /* value x nanoseconds */
    double ns[OCC_MEASURED_VALUE_COUNT];
#define X(name, text) uint64_t name; /* launches */
    OCC_MEASURED_SOURCES(X)
#undef X
    uint64_t overlapped; /* of them, those that ran beside other kernels */
};

/* The mean, NaN where nothing was measured. */
double occ_measured_mean(const struct occ_measured_sums *sums, enum occ_measured_value value);

static inline uint64_t occ_measured_launches(const struct occ_measured_sums *sums)
{
    uint64_t launches = 0;
#define X(name, text) launches += sums->name;
    OCC_MEASURED_SOURCES(X)
#undef X
    return launches;
}

/* Adds to what the history has; waits in memory for the next commit. OCC_E_FULL: too much waits, commit first. */
int occ_store_add_measured(struct occ_store *store, int64_t minute, int64_t run, uint32_t shape,
                           const struct occ_measured_sums *sums, struct occ_error *err);

#endif
