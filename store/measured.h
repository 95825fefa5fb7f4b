/*
 * What hardware counters measured of launches: sums by minute, run and launch configuration. The daemon adds
 * to them as values are settled; `show` and `top` read means. A sum without time has no mean: not measured is
 * NULL, never 0.
 *
 * Every value is kept as (sum of value x duration, sum of the durations for which it was defined), so that
 * sums of sums are the time-weighted mean again. A mean of standard errors is an upper bound of the mean's
 * standard error: launches that share a regression share its error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "occupancy/waterfall.h"
#include "support/error.h"

struct occ_store;

/* X(name): ratios 0...1, but variance_inflation (>= 1) and resident_blocks (blocks per active SM). stall_*:
 * share of cycles in which block launch was stalled for that resource, as the hardware counts it
 * (non-exclusive). issue_active of active cycles, the throughputs and tensor_active of elapsed ones, as in
 * occupancy/bound.h; throughput_error: the largest of theirs. group_*: means over kernels whose launches
 * cannot be told apart; all others are of launches with values of their own. */
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
    X(stall_barriers)                                                                                        \
    X(group_achieved)                                                                                        \
    X(group_elapsed)                                                                                         \
    X(group_elapsed_error)                                                                                   \
    X(issue_active)                                                                                          \
    X(issue_active_error)                                                                                    \
    X(dram_throughput)                                                                                       \
    X(l2_throughput)                                                                                         \
    X(l1_throughput)                                                                                         \
    X(tensor_active)                                                                                         \
    X(throughput_error)

/* X(name, text): the source of launches' values. */
#define OCC_MEASURED_SOURCES(X)                                                                              \
    X(direct, "samples inside the launch")                                                                   \
    X(regression, "least squares over many launches of the configuration")                                   \
    X(grouped, "mean of kernels that cannot be told apart")                                                  \
    X(exact, "the launch by itself, while kernels ran one after the other (--exact)")                        \
    X(ncu, "by Nsight Compute: the kernel ran alone and was replayed")

#define OCC_MEASURED_ENUMERATOR(name) OCC_MEASURED_##name,
enum occ_measured_value { OCC_MEASURED_VALUES(OCC_MEASURED_ENUMERATOR) OCC_MEASURED_VALUE_COUNT };

/* X(name): sums that show whether the launches with a value differ from each other, and from the rest.
 * elapsed_square_sum: square of the mean elapsed occupancy of a block (one call of occ_store_add_measured())
 * x its time, over the time of `elapsed`. rest_*: over the launches of the configuration that have no value
 * and ran in seconds whose total is known; rest_shift_sum: counted occupancy of all launches without a value
 * in that second - the occupancy that the stored means of their configurations predict, x time;
 * rest_error_sum: the standard error of that difference x time; rest_ns: their time. */
#define OCC_MEASURED_EVIDENCE(X)                                                                             \
    X(elapsed_square_sum)                                                                                    \
    X(rest_shift_sum)                                                                                        \
    X(rest_error_sum)                                                                                        \
    X(rest_ns)

struct occ_measured_sums {
    double sum[OCC_MEASURED_VALUE_COUNT]; /* value x nanoseconds */
    double ns[OCC_MEASURED_VALUE_COUNT];
#define X(name, text) uint64_t name; /* launches */
    OCC_MEASURED_SOURCES(X)
#undef X
    uint64_t overlapped; /* of them, those that ran beside other kernels */
    /* Evidence on launches without a value: */
#define X(name) double name;
    OCC_MEASURED_EVIDENCE(X)
#undef X
};

/* The mean; NaN: nothing was measured, or the mean is outside of what a counter can report. */
double occ_measured_mean(const struct occ_measured_sums *sums, enum occ_measured_value value);

/* Bounds of what a mean over a part of the launches says about all of them (docs/decisions/0016, "Coverage").
 * MINORITY: up to this part of the time launches without a value cannot change the mean noticeably. ALIKE:
 * mean durations that differ by more are of launches under different conditions. UNTOLD: standard deviation,
 * relative to the value, by which the occupancy of launches without a value may differ; the same figure as in
 * attribution/constants.h. CONTRADICTION: difference of a known total from stored means that is no noise of
 * the counter. */
#define OCC_MEASURED_MINORITY      0.1
#define OCC_MEASURED_ALIKE         1.2
#define OCC_MEASURED_UNTOLD        0.13
#define OCC_MEASURED_CONTRADICTION 0.02

/* The part (0...1) of the time of all launches, `total_ns`, whose launches have an elapsed occupancy of their
 * own; where no launch has one (reports without elapsed cycles), an achieved occupancy. Sums
 * are of whole minutes: where they are of more time than `total_ns`, the part is of that time. 0: no launch
 * has one. */
double occ_measured_ratio(const struct occ_measured_sums *sums, double total_ns);

/* The standard error of a mean with standard error `error` over the part `ratio` of the time, as a mean over
 * all launches: error + (1 - ratio) x UNTOLD x mean. Both are added, not their squares: the same drift
 * may cause both. An unknown error (NaN: Nsight Compute) counts as 0 where launches have no
 * value. The physical range (0 ... theoretical) never cuts the interval: 1.96 x UNTOLD < 1. */
double occ_measured_widened(double error, double mean, double ratio);

/* All means of launches with values of their own, and errors that cover all launches, whose time is
 * `total_ns`. The source is that of the majority, of a tie the less direct one. All means are NaN where they
 * are withheld; ret_measurement->withheld has the reason, ->measured_ratio the part that was measured.
 * Withheld where no launch has a value of its own (GROUP); where more than MINORITY of the measured time has
 * group values and durations differ by more than ALIKE (DURATIONS); where more than MINORITY of the time has
 * no value and the known total of these seconds contradicts the means (TOTAL), or blocks of launches differ
 * by more than their errors and UNTOLD explain (LAUNCHES). Achieved occupancy, active SMs and resident
 * blocks, which are not defined for overlapped launches, are NaN too where more than MINORITY of elapsed
 * occupancy's time lacks them: a waterfall must not mix means of different launches. */
void occ_measured_means(const struct occ_measured_sums *sums, double total_ns,
                        struct occ_measurement *ret_measurement);

/* Means of the launches with values of their own alone, never withheld, with their own errors; returns the
 * part of `total_ns` that has an elapsed occupancy. For occ_explain_partly(): sums over launches do not
 * depend on how launches are grouped (docs/decisions/0035). */
double occ_measured_own(const struct occ_measured_sums *sums, double total_ns,
                        struct occ_measurement *ret_measurement);

static inline uint64_t occ_measured_launches(const struct occ_measured_sums *sums)
{
    uint64_t launches = 0;
#define X(name, text) launches += sums->name;
    OCC_MEASURED_SOURCES(X)
#undef X
    return launches;
}

/* The values measured directly for one launch; NaN: not defined. Launches that share start, correlation id
 * and configuration (nodes of one graph) get their values in any order. */
struct occ_launch_value {
    int64_t start_ns; /* as it was appended */
    uint32_t correlation;
    uint32_t config;
    double achieved, achieved_error; /* to 0.00001; errors are rounded up, by at most 9.1 % */
    double elapsed, elapsed_error;
};

/* Values of single launches of a run on a device, in any order, also long after the launches. They wait in
 * memory for the next commit; all of them or, on an error, none. OCC_E_FULL: too many wait, commit first. */
int occ_store_add_launch_values(struct occ_store *store, int64_t run, int64_t device,
                                const struct occ_launch_value *values, size_t n, struct occ_error *err);

/* A device's counters over an interval; NaN where not counted. stall_*: as in OCC_MEASURED_VALUES. */
struct occ_device_sample {
    int64_t start_ns, end_ns; /* 0 < start <= end */
    double elapsed;           /* warp-cycles / (elapsed SM-cycles x max warps) */
    double sm_active;         /* active / elapsed SM-cycles */
    double resident_blocks;   /* per active SM */
    double stall_registers, stall_shared_memory, stall_blocks, stall_warps, stall_barriers;
};

/* Samples of a device, in any order. They wait in memory for the next commit, which also adds up the seconds
 * (a sample belongs to the second it starts in); all of them or, on an error, none. OCC_E_FULL: as above. */
int occ_store_add_samples(struct occ_store *store, int64_t device, const struct occ_device_sample *samples,
                          size_t n, struct occ_error *err);

/* The elapsed occupancy in a second (since the epoch) that no traced kernel explains; below 0 it is noise.
 * For a second that has samples; waits as they do. */
int occ_store_add_unexplained(struct occ_store *store, int64_t device, int64_t second, double ratio,
                              struct occ_error *err);

/* A value that Nsight Compute has of a launch of an imported report, by ncu's own metric name. */
struct occ_ncu_metric {
    int64_t run, config, hour; /* of the launch */
    uint32_t correlation;
    const char *name, *unit;
    double value;
};
/* Once for each name and launch. */
int occ_store_add_ncu_metric(struct occ_store *store, const struct occ_ncu_metric *metric,
                             struct occ_error *err);

/* What Nsight Compute has of a kernel's launches, by its metric names; of one imported report. */
struct occ_ncu_value {
    const struct occ_ncu_value *next; /* by name; NULL: none */
    const char *metric;
    double mean;
};
struct occ_ncu_values {
    int64_t run;
    uint64_t launches; /* of them, as many as have the value that most have; 0: no report has the kernel */
    const struct occ_ncu_value *first;
};

/* Adds to the sums of a minute and its hour; waits for the next commit. OCC_E_FULL: too many wait, commit
 * first. */
int occ_store_add_measured(struct occ_store *store, int64_t minute, int64_t run, uint32_t config,
                           const struct occ_measured_sums *sums, struct occ_error *err);
