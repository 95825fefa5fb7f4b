/*
 * The measured waterfall: the causes of lost occupancy from 100 % down to the elapsed occupancy that hardware
 * counters measured. The static parts are the model's (occupancy.h); below the expected occupancy, counters
 * tell idle SMs, missing blocks and warps that ended before their block.
 *
 * From the model: X_e = expected_elapsed, W = maximum warps per SM, w = warps per block. Measured: E =
 * elapsed, A = achieved, a = active SM-cycles / SM-cycles, R = active blocks per active SM, q = active cycles
 * of the least / of the most active SM. By definition E = A * a, so that two of the three give the third.
 * Levels, and the parts between them:
 *
 *   1
 *   |  resources, SMALL_GRID, TAIL: the model's parts; the last two include SMs that the model leaves idle
 *   +- X_e, a range; the measured a * R * w / W decides on a point, without R the measured E: the nearest one
 *   |  IDLE = X_e * (1 - a / a_e): SMs that were idle although the model expects blocks on them; a_e: its
 * activity
 *   +- X_e * a / a_e, but between the levels above and below: more activity with fewer blocks is no gain
 *   |  IMBALANCE_ACROSS_BLOCKS: fewer blocks on active SMs than expected
 *   +- a * R * w / W
 *   |  IMBALANCE_WITHIN_BLOCK = a * (R * w / W - A): warps that ended before their block
 *   +- a * A
 *   |  UNEXPLAINED = a * A - E: disagreement of the measured values
 *   +- E
 *
 * TAIL and SMALL_GRID are smaller by the difference of that point and the low end. A last wave shows in the
 * elapsed time only: a dispatcher may spread its blocks over all SMs or pack them on a few, which changes
 * achieved, and activity, but not their product (decision 0024).
 *
 * q tells the cause of IDLE. SMs that are as even as the model expects them are idle while blocks start:
 * BLOCK_START replaces IDLE. Uneven SMs have blocks of unequal duration: UNEQUAL_BLOCKS replaces IDLE and
 * ACROSS_BLOCKS, which then are two sides of one loss. Without q, or between the two bounds, the loss keeps
 * no cause's name.
 *
 * Without R there is one NOT_SPLIT between X_e * a / a_e and a * A: starting blocks, draining SMs, or
 * imbalance. Without A and a (only E was measured) UNEXPLAINED = X_e - E. Without E there is nothing below
 * X_e.
 *
 * With A alone the waterfall is over active cycles: its parts SMALL_GRID and TAIL end at expected_achieved,
 * and NOT_SPLIT is the rest down to A. So many reports of Nsight Compute, which lack elapsed cycles.
 *
 * Parts are differences of levels: they add up by construction. A part is negative where a measured level is
 * above the one before it (an inexact value, or more than the high end of the model): a gain over the model.
 *
 * Pure like the model: no I/O, no allocation, any thread.
 */
#pragma once

#include "advice.h"
#include "bound.h"
#include "occupancy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Causes that only counters show, after the static ones. X(NAME, id, text, text of a negative part) */
#define OCC_MEASURED_CAUSES(X)                                                                               \
    X(IDLE, "idle", "idle SMs: start, drain or imbalance (not split)",                                       \
      "gain over the model: more SMs active")                                                                \
    X(IMBALANCE_ACROSS_BLOCKS, "imbalance_across_blocks",                                                    \
      "fewer blocks: start, drain or imbalance (not split)", "gain over the model: more blocks active")      \
    X(BLOCK_START, "block_start", "starting and ending blocks (SMs evenly idle)",                            \
      "gain over the model: more blocks active")                                                             \
    X(UNEQUAL_BLOCKS, "unequal_blocks", "blocks of unequal duration (SMs unevenly idle)",                    \
      "gain over the model: more blocks active")                                                             \
    X(IMBALANCE_WITHIN_BLOCK, "imbalance_within_block", "imbalance within a block",                          \
      "gain over the model: more warps than the blocks have")                                                \
    X(NOT_SPLIT, "start_drain_or_imbalance", "block start, drain or imbalance (not split)",                  \
      "gain over the model: more warps active")                                                              \
    X(UNEXPLAINED, "unexplained", "not explained", "gain over the model, not explained")

/* A part of the waterfall: below OCC_CAUSE_COUNT it is an enum occ_cause. */
#define OCC_PART_ENUMERATOR(name, id, text, gain) OCC_PART_##name,
enum occ_part {
    OCC_PART_BEFORE = OCC_CAUSE_COUNT - 1,
    OCC_MEASURED_CAUSES(OCC_PART_ENUMERATOR) OCC_PART_COUNT
};

/* Sources of a value. X(NAME, id, text) */
#define OCC_VALUE_SOURCES(X)                                                                                 \
    X(MODEL, "model", "the model")                                                                           \
    X(DIRECT, "direct", "samples inside the launches")                                                       \
    X(REGRESSED, "regression", "least squares over many launches")                                           \
    X(GROUPED, "group", "mean of kernels that cannot be separated")                                          \
    X(EXACT, "exact", "launches run one at a time (--exact)")                                                \
    X(NCU, "ncu", "Nsight Compute, which runs each kernel alone and replays it")                             \
    X(WITHHELD, "withheld", "withheld: see the reason")

#define OCC_FROM_ENUMERATOR(name, word, text) OCC_FROM_##name,
enum occ_value_source { OCC_VALUE_SOURCES(OCC_FROM_ENUMERATOR) OCC_FROM_COUNT };

/* Reasons why measured values are withheld. X(NAME, id, text) */
#define OCC_WITHHELD_REASONS(X)                                                                              \
    X(NOT, "", "")                                                                                           \
    X(GROUP, "group", "this kernel cannot be separated from others")                                         \
    X(DURATIONS, "durations_differ", "launches without a value of their own last longer or shorter")         \
    X(LAUNCHES, "launches_differ", "measured launches differ by more than their errors explain")             \
    X(TOTAL, "total_contradicts", "the known total of the GPU contradicts the measured launches")

#define OCC_WITHHELD_ENUMERATOR(name, word, text) OCC_WITHHELD_##name,
enum occ_withheld { OCC_WITHHELD_REASONS(OCC_WITHHELD_ENUMERATOR) OCC_WITHHELD_COUNT };

/* Means over launches; NaN (or an impossible value: negative, a ratio above 2): not measured. */
struct occ_measurement {
    enum occ_value_source source; /* source of most launches; MODEL: not measured */
    enum occ_withheld withheld;   /* the reason; NOT: the means are given */
    double measured_ratio;        /* part of the time of all launches that has a value, 0...1 */
    double achieved, achieved_error, elapsed, elapsed_error; /* ratios; errors are standard errors */
    double variance_inflation;                               /* >= 1; 1: independent of all others */
    double sm_active;                                        /* active SM-cycles / SM-cycles */
    double resident_blocks;                                  /* active blocks per active SM */
    double imbalance; /* 1 - active cycles of the least / of the most active SM */
    /* share of cycles in which launching warps stalled for a resource; they overlap; CLUSTER: always NaN */
    double stall[OCC_LIMIT_COUNT];
    struct occ_hw_utilization utilization;
};

/* Limits of least / most active SM, relative to the model's ratio. Of 18 simulated launches with a cost of
 * block starts, 15 are at 0.85 and more, and launches with unequal blocks at 0.10 to 0.66 (decision 0024). */
#define OCC_SMS_EVEN_MIN   0.85
#define OCC_SMS_UNEVEN_MAX 0.66

/* Half-width of the 95 % interval of a normal distribution, in standard errors. */
#define OCC_ERRORS_OF_95_PERCENT 1.96

struct occ_waterfall {
    /* 1 = used + sum of the parts that are not NaN, within 1e-9. NaN: unknown. PARTIAL_WARP is not a part and
     * always NaN. */
    double part[OCC_PART_COUNT];
    double used; /* elapsed; not measured: expected_elapsed_low; achieved if is_of_active_cycles */
    double
        expected; /* as `used`: the point of the model's range that counters decided on, else its low end */
    bool is_of_active_cycles; /* achieved alone was measured: all values are ratios of SM-active cycles */
    /* `used` may be larger by their sum, and TAIL or SMALL_GRID smaller: the model's range; 0: counters
     * decided. One of the two is 0 for a single launch. */
    double tail_spread, small_grid_spread;
    double
        /* part of SMALL_GRID: the grid does not divide over the SMs (at most, if a spread remains) */
        uneven_grid;
    double error; /* error of `used`, 95 %; NaN: unknown. Measured parts below it are not significant. */
    enum occ_value_source source; /* source of `used` and of the parts from OCC_PART_IDLE on */
};

/* `measurement` may be NULL. */
void occ_explain(const struct occ_result *result, const struct occ_measurement *measurement,
                 struct occ_waterfall *ret_waterfall);

/* The same for launches with a measured elapsed occupancy in a part of their time: the mean by time of the
 * measurement and of the expectation for the rest. `share`: that part, 0...1. */
void occ_explain_partly(const struct occ_result *result, const struct occ_measurement *measurement,
                        double share, struct occ_waterfall *ret_waterfall);

/* The largest of the first `n` parts or causes, PARTIAL_WARP excepted, which is not in the sum. `n`: all are
 * below the model's accuracy. */
unsigned occ_largest_part(const double part[], unsigned n);

/* The resource for which launching warps stalled most, if for more than OCC_STALL_MIN of the cycles;
 * OCC_LIMIT_COUNT: none, or not measured. */
#define OCC_STALL_MIN 0.01
enum occ_limit occ_most_stalled(const struct occ_measurement *measurement);

/* Identifiers and texts. Never NULL. A part with a negative ratio has a text of its own. */
const char *occ_part_word(unsigned part);
const char *occ_part_text(unsigned part, double ratio);
const char *occ_withheld_word(enum occ_withheld reason); /* NOT: "" */
const char *occ_withheld_text(enum occ_withheld reason);
const char *occ_value_source_word(enum occ_value_source source);
const char *occ_value_source_text(enum occ_value_source source);

/* The kind of advice about a part; OCC_ADVICE_COUNT: none. */
enum occ_advice_kind occ_part_advice(unsigned part);

#ifdef __cplusplus
}
#endif
