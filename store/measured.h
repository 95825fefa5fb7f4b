/*
 * Measured values of launches, from hardware counters: sums by minute, run and launch configuration. The
 * daemon adds values once they are final; `show` and `top` read means. A sum without time has no mean: not
 * measured is NULL, never 0.
 *
 * Every value is kept as (sum of value x duration, sum of the durations for which the value was defined), so
 * that sums of sums give the time-weighted mean again. A mean of standard errors is an upper bound of the
 * mean's standard error: launches that share a regression share its error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "occupancy/waterfall.h"
#include "support/error.h"

struct occ_store;

/* X(name): ratios 0...1, except variance_inflation (>= 1) and resident_blocks (blocks per active SM).
 * stall_*: share of cycles in which block launch was stalled for that resource, as the hardware counts it
 * (non-exclusive). issue_active is relative to active cycles, the throughputs and tensor_active to elapsed
 * cycles, as in occupancy/bound.h; throughput_error: the largest error of a throughput. group_*: means over
 * kernels whose launches cannot be distinguished; all other values belong to launches with values of their
 * own. */
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

/* X(name, text): the source of the values. */
#define OCC_MEASURED_SOURCES(X)                                                                              \
    X(direct, "samples inside the launch")                                                                   \
    X(regression, "least squares over many launches of the configuration")                                   \
    X(grouped, "mean of kernels that cannot be told apart")                                                  \
    X(exact, "the launch by itself, while kernels ran one after the other (--exact)")                        \
    X(ncu, "by Nsight Compute: the kernel ran alone and was replayed")

#define OCC_MEASURED_ENUMERATOR(name) OCC_MEASURED_##name,
enum occ_measured_value { OCC_MEASURED_VALUES(OCC_MEASURED_ENUMERATOR) OCC_MEASURED_VALUE_COUNT };

/* X(name): sums that show if the launches with a value differ from each other, and from the other launches.
 * elapsed_square_sum: square of the mean elapsed occupancy of a block (one call of occ_store_add_measured())
 * x its time, over the time of `elapsed`. rest_*: over the launches of the configuration that have no value,
 * but a rough one (attribution.h), or ran in seconds whose total is known. rest_shift_sum: (rough value -
 * mean of the values), or (counted occupancy of all launches without either in that second - the occupancy
 * predicted from the stored means of their configurations), x time; rest_error_sum: the standard error of
 * that difference x time; rest_ns: their time. */
#define OCC_MEASURED_EVIDENCE(X)                                                                             \
    X(elapsed_square_sum)                                                                                    \
    X(rest_shift_sum)                                                                                        \
    X(rest_error_sum)                                                                                        \
    X(rest_ns)

struct occ_measured_sums {
    double sum[OCC_MEASURED_VALUE_COUNT]; /* sum of value x nanoseconds */
    double ns[OCC_MEASURED_VALUE_COUNT];
#define X(name, text) uint64_t name; /* number of launches */
    OCC_MEASURED_SOURCES(X)
#undef X
    uint64_t overlapped; /* launches that overlapped with other kernels */
    /* evidence about launches without a value: */
#define X(name) double name;
    OCC_MEASURED_EVIDENCE(X)
#undef X
};

/* The mean; NaN: not measured, or outside a counter's range. */
double occ_measured_mean(const struct occ_measured_sums *sums, enum occ_measured_value value);

/* Limits for using a mean over a part of the launches as the mean of all launches (docs/decisions/0016,
 * "Coverage"). MINORITY: share of the time up to which launches without a value cannot change the mean
 * noticeably. ALIKE: ratio of mean durations above which the launches ran under different conditions.
 * UNRESOLVED_SPREAD: standard deviation, relative to the value, of the occupancy of launches without a value;
 * same figure as in attribution/constants.h. CONTRADICTION: minimum difference between a known total and the
 * stored means that is not noise of the counter, if it also exceeds 1.96 of its standard errors. */
#define OCC_MEASURED_MINORITY          0.1
#define OCC_MEASURED_ALIKE             1.2
#define OCC_MEASURED_UNRESOLVED_SPREAD 0.13
#define OCC_MEASURED_CONTRADICTION     0.02

/* The share (0...1) of the time of all launches, `total_ns`, with an elapsed occupancy of the launch's own;
 * if no launch has an elapsed occupancy (reports without elapsed cycles), with an achieved occupancy. Sums
 * cover whole minutes: if they cover more time than `total_ns`, the share refers to the covered time. 0: no
 * launch has a value. */
double occ_measured_ratio(const struct occ_measured_sums *sums, double total_ns);

/* By how much launches without a value may differ from the others, relative to the mean: UNRESOLVED_SPREAD,
 * or the difference that the evidence shows, if it is larger. */
double occ_measured_rest_spread(const struct occ_measured_sums *sums);

/* The standard error of a mean with standard error `error`, used as a mean over all launches. `rest`: the
 * share of the time without a value x rest_spread x mean. Two independent errors, so the root of the summed
 * squares; its upper bound max + CHORD x min is at most 8.3 % more, and SQL has no root. An unknown error
 * (NaN: Nsight Compute) counts as 0 if launches have no value. */
#define OCC_MEASURED_CHORD 0.4142 /* sqrt(2) - 1 */
/* Standard error of a mean over a minute / mean standard error of its launches, if most are from regression:
 * the estimates of different windows of ten seconds are partly independent. Calibrated with
 * bench_attribution. */
#define OCC_MEASURED_WINDOWS 0.8
double occ_measured_widened(double error, double rest);

/* All means of launches with values of their own, and errors that cover all launches, whose time is
 * `total_ns`. The source is the majority's; in a tie, the less direct source. If the means are withheld, all
 * are NaN, ret_measurement->withheld has the reason, and ->measured_ratio the measured share. Reasons: no
 * launch has a value of its own (GROUP); more than MINORITY of the measured time has group values and
 * durations differ by more than ALIKE (DURATIONS); more than MINORITY of the time has no value and the known
 * total of these seconds contradicts the means (TOTAL), or blocks of launches differ by more than their
 * errors and UNRESOLVED_SPREAD explain (LAUNCHES). Achieved occupancy, active SMs and resident blocks are
 * undefined for overlapped launches. They are NaN too if more than MINORITY of the time of elapsed occupancy
 * lacks them: a waterfall must not mix means of different launches. */
void occ_measured_means(const struct occ_measured_sums *sums, double total_ns,
                        struct occ_measurement *ret_measurement);

/* Means of only the launches with values of their own, never withheld, with their own errors. Returns the
 * share of `total_ns` that has an elapsed occupancy. For occ_explain_partly(): sums over launches do not
 * depend on the grouping of launches (docs/decisions/0035). */
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
    int64_t start_ns; /* start of the launch, as appended */
    uint32_t correlation;
    uint32_t config;
    double achieved, achieved_error; /* resolution 0.00001; errors are rounded up, by at most 9.1 % */
    double elapsed, elapsed_error;
};

/* Adds values of single launches of a run on a device, in any order, also long after the launches. They wait
 * in memory for the next commit. On an error no value is added. OCC_E_FULL: too many values wait, commit
 * first. */
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

/* Adds samples of a device, in any order. They wait in memory for the next commit, which also computes the
 * seconds (a sample belongs to the second of its start). On an error no sample is added. OCC_E_FULL: too many
 * wait. */
int occ_store_add_samples(struct occ_store *store, int64_t device, const struct occ_device_sample *samples,
                          size_t n, struct occ_error *err);

/* Adds the elapsed occupancy in a second (since the epoch) that no traced kernel explains; a negative value
 * is noise. Only for a second with samples; waits for the commit like samples. */
int occ_store_add_unexplained(struct occ_store *store, int64_t device, int64_t second, double ratio,
                              struct occ_error *err);

/* The energy of a device in a time that ends with a second. */
struct occ_device_energy {
    int64_t device, second; /* second: since the epoch */
    int64_t length_ns;      /* of the time, > 0 */
    int64_t mj;             /* millijoules, >= 0 */
};
/* Adds energy; also for a second without samples. Waits for the commit like samples. */
int occ_store_add_energy(struct occ_store *store, const struct occ_device_energy *energy,
                         struct occ_error *err);
/* Begins to read the stored energies of which a part may lie in [since_ns, until_ns), in order of seconds.
 * One reader at a time. */
void occ_store_begin_energies(struct occ_store *store, int64_t since_ns, int64_t until_ns);
/* Reads the next energy. Returns 1; 0: no energy is left, and the reading has ended; or an error. */
int occ_store_next_energy(struct occ_store *store, struct occ_device_energy *ret_energy,
                          struct occ_error *err);

/* A value that Nsight Compute reports for a launch of an imported report, by ncu's metric name. */
struct occ_ncu_metric {
    int64_t run, config, hour; /* hour of the launch */
    uint32_t correlation;
    const char *name, *unit;
    double value;
};
/* Call once for each name and launch. */
int occ_store_add_ncu_metric(struct occ_store *store, const struct occ_ncu_metric *metric,
                             struct occ_error *err);

/* A value that Nsight Compute reports for a kernel's launches, by its metric name; from one imported
 * report. */
struct occ_ncu_value {
    const struct occ_ncu_value *next; /* ordered by name; NULL: the last */
    const char *metric;
    double mean;
};
struct occ_ncu_values {
    int64_t run;
    uint64_t launches; /* launches with the most frequent value; 0: no report contains the kernel */
    const struct occ_ncu_value *first;
};

/* Adds to the sums of a minute and its hour; they wait for the next commit. OCC_E_FULL: too many wait, commit
 * first. */
int occ_store_add_measured(struct occ_store *store, int64_t minute, int64_t run, uint32_t config,
                           const struct occ_measured_sums *sums, struct occ_error *err);
