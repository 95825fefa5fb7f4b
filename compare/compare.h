/*
 * Comparison of two sides, each a set of launches: corresponding kernels, changes, and the certainty of each
 * change. Steps:
 *
 *   diff_collect()   launch configurations of each side, from any run and device; diff_add_sums() follows for
 *                    each
 *   diff_match()     pairs of both sides, level by level; before DIFF_PLACE the caller reports the pairs that
 *                    stand around launches in their order (diff_add_neighbours())
 *   diff_sample()    replicates: runs, or blocks of consecutive launches (diff_add_launch())
 *   diff_conclude()  ratios; diff_verdict_of() and diff_sum_up() read the result
 *
 * Single launches are never replicates: one launch configuration serves several layers in a fixed order.
 * Nothing here reads a history or knows its rows. Texts belong to the rows. One thread.
 */
#pragma once

#include <stdint.h>

#include "statistics.h"
#include "support/error.h"

enum { DIFF_A, DIFF_B, DIFF_SIDES };
#define DIFF_NO_PAIR UINT32_MAX
enum {
    DIFF_RUNS_MAX = 100, /* maximum number of runs of a side */
    DIFF_PARTS_MAX = 24, /* maximum number of parts of lost occupancy */
    DIFF_LAUNCH_NUMBERS = 17
};

/* How the kernels of a pair were matched, in this order. X(NAME, word, text) */
#define DIFF_LEVELS(X)                                                                                       \
    X(RANGE, "range", "same name, launch configuration and range")                                           \
    X(CONFIG, "config", "same name and launch configuration")                                                \
    X(WORK, "work", "same name and number of threads")                                                       \
    X(NAME, "name", "same name")                                                                             \
    X(SIMILAR, "similar", "same name but for hashes, counters and ABI tags")                                 \
    X(FAMILY, "family", "same name but for tile sizes and integer template arguments")                       \
    X(PLACE, "place", "another name with the same neighbours in the order of launches")                      \
    X(ONE_SIDE, "none", "on one side only")
#define DIFF_LEVEL_ENUMERATOR(name, word, text) DIFF_##name,
enum diff_level { DIFF_LEVELS(DIFF_LEVEL_ENUMERATOR) DIFF_LEVEL_COUNT };

/* Occupancies, their errors, and the measured part of the time; each is weighted with duration. */
#define DIFF_VALUES(X)                                                                                       \
    X(theoretical)                                                                                           \
    X(expected_elapsed_low)                                                                                  \
    X(expected_elapsed_high) X(achieved) X(achieved_error) X(elapsed) X(elapsed_error) X(measured_ratio)
#define DIFF_VALUE_ENUMERATOR(name) DIFF_VALUE_##name,
enum diff_value { DIFF_VALUES(DIFF_VALUE_ENUMERATOR) DIFF_VALUE_COUNT };

struct diff_sums {
    uint64_t launches, total_ns;
    double warp_ns;                                     /* time x SMs x maximum warps per SM */
    double sum[DIFF_VALUE_COUNT], ns[DIFF_VALUE_COUNT]; /* value x time; time with a known value */
    double part_ns[DIFF_PARTS_MAX];                     /* measured parts of lost occupancy x time */
    double expected_part_ns[DIFF_PARTS_MAX];            /* the model's parts x time, for all launches */
};
double diff_mean(const struct diff_sums *sums, enum diff_value value); /* NaN: not known */

/* A launch configuration, described for the comparison. */
struct diff_row {
    const void *of;                      /* the caller's row */
    int64_t id;                          /* identifies the configuration among the kernel's on its side */
    const char *mangled, *demangled;     /* the kernel's names */
    const char *family;                  /* the kernel's family; NULL: not known */
    int64_t launch[DIFF_LAUNCH_NUMBERS]; /* every parameter of a launch */
    double threads;                      /* number of threads of a launch */
    uint64_t launches, total_ns;
};

/* A launch configuration in a run (the index of the run in its side), or its launches in a range. */
struct diff_part {
    const struct diff_row *row;
    const char *range; /* path of the range; NULL: not known */
    const char *layer; /* layer of the range; NULL: not known */
    uint32_t range_id; /* only the caller uses it */
    const void *where; /* the range, for the caller; NULL: not known */
    uint32_t side, run;
    uint32_t item; /* set by diff_collect() */
};

/* A launch configuration of a kernel on a side, or its launches in a range. */
struct diff_item {
    const struct diff_row *row; /* a row of the configuration */
    const char *range, *layer;  /* NULL: not known */
    const void *where;          /* as in one of its parts */
    uint32_t side, pair;
    /* the pairs before and after most of its launches, by the majority vote of Boyer and Moore */
    uint32_t before, after;
    uint64_t votes, voters;
    struct diff_sums sums;
};

/* Metrics of verdicts. Time and waste are per launch; per unit of work where launches of the sides do
 * different work (work.h). `achieved` depends on neither, and less is worse. X(NAME, word) */
#define DIFF_METRICS(X)                    X(TIME, "time") X(WASTE, "waste") X(ACHIEVED, "achieved")
#define DIFF_METRIC_ENUMERATOR(name, word) DIFF_METRIC_##name,
enum diff_metric { DIFF_METRICS(DIFF_METRIC_ENUMERATOR) DIFF_METRIC_COUNT };

struct diff_pair {
    enum diff_level level;
    uint32_t n[DIFF_SIDES];                        /* items */
    uint32_t kernels[DIFF_SIDES];                  /* number of different kernels */
    uint32_t configs[DIFF_SIDES];                  /* number of different launch configurations */
    const struct diff_item *main_item[DIFF_SIDES]; /* the item with the most time; NULL: there is none */
    const struct diff_item *last_item[DIFF_SIDES]; /* the last item in the order of diff->items */
    struct diff_sums sums[DIFF_SIDES];
    double work_factor; /* ratio of the time for the same work / ratio of a launch; NaN: not known (work.h) */
    double run_spread;  /* relative standard deviation of A's runs; NaN: fewer than 5 runs */
    struct diff_ratio ratio[DIFF_METRIC_COUNT];
    double q[DIFF_METRIC_COUNT]; /* false discovery rate */
};

struct diff_replicate {
    double launches, ns;
};

/* The launches of a pair in one slice. All launches of a side, in their order, make DIFF_SLICES slices of
 * equal numbers of launches. */
struct diff_slice {
    double launches, log_ns; /* sum of the logarithms of durations */
    double ns;               /* sum of durations */
};

struct diff {
    struct diff_part *parts;
    struct diff_item *items;
    struct diff_pair *pairs;
    size_t n_parts;
    uint32_t n_items, n_pairs;
    uint32_t runs[DIFF_SIDES], replicates[DIFF_SIDES]; /* replicates: maximum of a pair */
    bool by_runs;
    bool by_minutes; /* runs are blocks of one run's minutes, the newest first; set before diff_sample() */
    struct diff_replicate *replicate[DIFF_SIDES]; /* [pair * replicates + i]; no launches: does not exist */
    struct diff_slice *slice[DIFF_SIDES]; /* [pair * DIFF_SLICES + i]; NULL: replicates are runs or minutes */
    uint64_t total_ns[DIFF_SIDES], launches[DIFF_SIDES];
    uint64_t unit_ns[DIFF_SIDES]; /* largest unit of all sums of durations: that of a recording's clock */
    double work;                  /* work of B / work of A, by numbers of launches; NaN: not known (work.h) */
    double work_error;           /* error of the logarithm of a kernel's number of launches for it (work.h) */
    uint64_t sliced[DIFF_SIDES]; /* launches that diff_add_launch() has put into slices */
};
void diff_free(struct diff *diff);

/* `parts` are the caller's; `runs`: their number on each side. */
int diff_collect(struct diff *diff, struct diff_part *parts, size_t n_parts, const uint32_t runs[DIFF_SIDES],
                 struct occ_error *err);
/* Adds the sums of a collected part: once for each part, before diff_sample(). */
void diff_add_sums(struct diff *diff, const struct diff_part *part, const struct diff_sums *sums);

/* Pairs items that have no pair yet, by one level. */
int diff_match(struct diff *diff, enum diff_level level, struct occ_error *err);
/* True if both sides have items without a pair. */
bool diff_has_rest(const struct diff *diff);
/* Counts a launch of an item without a pair: the launches before and after it belong to these two pairs. */
void diff_add_neighbours(struct diff_item *item, uint32_t before, uint32_t after);

/* Gives each item that is left a pair without the other side, adds up the pairs, and makes their replicates:
 * runs if each side has DIFF_RUNS_MIN; otherwise up to DIFF_BLOCKS blocks of consecutive launches or minutes,
 * with at least DIFF_BLOCK_LAUNCHES launches each. The first block does not count (warm-up); fewer than
 * DIFF_BLOCKS_MIN further blocks on a side are no evidence. */
enum { DIFF_RUNS_MIN = 3, DIFF_BLOCKS = 20, DIFF_BLOCK_LAUNCHES = 5, DIFF_BLOCKS_MIN = 8, DIFF_SLICES = 20 };
enum { DIFF_BLOCKED_LAUNCHES_MIN = DIFF_BLOCK_LAUNCHES * (DIFF_BLOCKS_MIN + 1) };
int diff_sample(struct diff *diff, struct occ_error *err);
/* Adds the next launch of a side; `i`: number of earlier launches of its pair on this side. */
void diff_add_launch(struct diff *diff, uint32_t side, uint32_t pair, uint64_t i, uint64_t duration_ns);

/* Ratios of all pairs, and their false discovery rates over the pairs of both sides. */
int diff_conclude(struct diff *diff, struct occ_error *err);

/* `floor`: a change up to this ratio counts as the same; at least 3 times the spread of the baseline's runs
 * if known. Worse and better need `min_share` of A's or B's time. */
enum diff_verdict diff_verdict_of(const struct diff *diff, const struct diff_pair *pair,
                                  enum diff_metric metric, double floor, double min_share);

/* The larger of the pair's shares of A's and of B's time. */
double diff_share(const struct diff *diff, const struct diff_pair *pair);
/* Warp-seconds, with the occupancy over elapsed cycles: measured if it is on both sides, else the low end of
 * the expected one. NaN: not known. */
double diff_waste(const struct diff_pair *pair, uint32_t side);
/* The part of the waterfall, of the same source as the occupancy in diff_waste(). NaN: not known. */
double diff_part(const struct diff_pair *pair, uint32_t side, unsigned part);

/*
 * Components of the change of a total. The time of a pair is count x duration: (nB - nA)(tA + tB)/2 comes
 * from more launches, (nA + nB)/2 (tB - tA) from slower launches. The mean occupancy is the sum of w o, w the
 * share of time: (wB - wA)(oA + oB)/2 comes from another mix of kernels, (wA + wB)/2 (oB - oA) from the
 * kernels. If only one side has an occupancy, the other side takes the same value.
 */
struct diff_summary {
    double time_ns[DIFF_SIDES], time_launches, time_duration, time_new, time_gone; /* ns */
    double elapsed[DIFF_SIDES], elapsed_mix, elapsed_kernels;
    double waste[DIFF_SIDES];      /* warp-seconds */
    uint32_t per_runs[DIFF_SIDES]; /* times, waste and work are sums of a side divided by this */
    uint32_t verdicts[DIFF_VERDICT_COUNT];
    double work, per_work; /* work of B / of A; time for the same work, B / A - 1; NaN: not known */
    uint32_t only_measured[DIFF_SIDES]; /* pairs that are measured on this side and not on the other */
};
void diff_sum_up(const struct diff *diff, double floor, double min_share, struct diff_summary *ret_summary);
/* The same per run of each side, if their numbers of runs differ: sums of two runs and of one do not compare.
 * Blocks of minutes are no runs. */
void diff_sum_up_runs(const struct diff *diff, double floor, double min_share,
                      struct diff_summary *ret_summary);
/* The runs by which sums of a side are divided: 1 if both sides have as many. */
uint32_t diff_per_runs(const struct diff *diff, uint32_t side);
