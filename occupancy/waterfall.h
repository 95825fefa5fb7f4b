/*
 * The measured waterfall: where the lost occupancy of launches went, from 100 % down to the elapsed occupancy that
 * hardware counters saw. The static parts are the model's (occupancy.h); below what the model expects, counters say how
 * much is due to SMs without work, to blocks that were not there, and to warps that had left their blocks.
 *
 * Of the model: X_e = expected_elapsed, X_a = expected_achieved, W = most warps of an SM, w = warps per block. Measured:
 * E = elapsed, A = achieved, a = active SM-cycles / SM-cycles, R = resident blocks per active SM. By definition E = A * a,
 * so that two of the three give the third where that was not measured. Levels, and the part between each and the next:
 *
 *   1
 *   |  resources, SMALL_GRID, TAIL: the model's parts; the SMs that the model expects to be idle are in the last two
 *   +- X_e
 *   |  IDLE = X_e - a * X_a: SMs that were idle though the model expects them to hold blocks
 *   +- a * X_a
 *   |  BETWEEN = a * (X_a * W / w - R) * w / W: while SMs were active, blocks fewer than the model expects (blocks that
 *   |  take unequal time, or come too slowly)
 *   +- a * R * w / W
 *   |  WITHIN = a * (R * w / W - A): warps that ended before their block did
 *   +- a * A
 *   |  UNEXPLAINED = a * A - E: what the values do not agree about
 *   +- E
 *
 * Without R there is IMBALANCE = a * (X_a - A) instead of BETWEEN and WITHIN. Without A and a (only E was measured)
 * UNEXPLAINED = X_e - E. Without E there is nothing below X_e.
 *
 * Parts are differences of levels: they always add up, and may be negative where more was measured than the level above
 * allows (the model is pessimistic, or the value is not exact). Such a part keeps its sign.
 *
 * Pure like the model: no I/O, no allocation, any thread.
 */
#ifndef OCC_OCCUPANCY_WATERFALL_H
#define OCC_OCCUPANCY_WATERFALL_H

#include "advice.h"
#include "occupancy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Causes that only counters tell, after the static ones. X(NAME, word, text, text of a negative part, what may help or
 * ADVICE_COUNT) */
#define OCC_MEASURED_CAUSES(X)                                                                               \
    X(IDLE, "idle", "idle SMs beside those that the model expects", "above the model: more SMs active",      \
      ADVICE_COUNT)                                                                                          \
    X(BETWEEN, "between", "imbalance between blocks", "above the model: more blocks resident",               \
      ADVICE_GRID_STRIDE)                                                                                    \
    X(WITHIN, "within", "imbalance within blocks", "above the model: more warps than the blocks have",       \
      ADVICE_BLOCK_SIZE)                                                                                     \
    X(IMBALANCE, "imbalance", "imbalance (not split)", "above the model: more warps resident", ADVICE_COUNT) \
    X(UNEXPLAINED, "unexplained", "not explained", "above the model, not explained", ADVICE_COUNT)

/* A part of the waterfall: below OCC_CAUSE_COUNT it is an enum occ_cause. */
enum occ_part {
    OCC_PART_BEFORE = OCC_CAUSE_COUNT - 1,
#define X(name, word, text, above, advice) OCC_PART_##name,
    OCC_MEASURED_CAUSES(X)
#undef X
        OCC_PART_COUNT
};

/* Where a value comes from. X(NAME, word, text) */
#define OCC_VALUE_SOURCES(X)                                                                                 \
    X(MODEL, "model", "the model")                                                                           \
    X(DIRECT, "direct", "samples inside the launches")                                                       \
    X(REGRESSED, "regressed", "least squares over many launches")                                            \
    X(GROUPED, "group", "mean of kernels that cannot be told apart")                                         \
    X(EXACT, "exact", "each launch by itself, one after the other")

enum occ_value_source {
#define X(name, word, text) OCC_FROM_##name,
    OCC_VALUE_SOURCES(X)
#undef X
        OCC_FROM_COUNT
};

/* Means over launches; NaN (or what cannot be: negative, a ratio above 2): not measured. */
struct occ_measurement {
    enum occ_value_source source;                            /* of most launches; MODEL: none was measured */
    double achieved, achieved_error, elapsed, elapsed_error; /* ratios; errors are standard errors */
    double variance_inflation;                               /* >= 1; 1: told apart from all others */
    double sm_active;                                        /* active SM-cycles / SM-cycles */
    double resident_blocks;                                  /* per active SM */
    double imbalance;                                        /* 1 - least / most active SM's active cycles */
    /* share of cycles in which the launch of warps waited for a resource; CLUSTER: always NaN. They overlap. */
    double stall[OCC_LIMIT_COUNT];
};

/* 95 % of a normal distribution are within so many standard errors. */
#define OCC_ERRORS_OF_95_PERCENT 1.96

struct occ_waterfall {
    /* 1 = used + sum of the parts that are not NaN, within 1e-9. NaN: not known. PARTIAL_WARP is not part of it and
     * always NaN. */
    double part[OCC_PART_COUNT];
    double used;                  /* elapsed; not measured: expected_elapsed */
    double error;                 /* of it, 95 %; NaN: not known. A smaller measured part says nothing. */
    enum occ_value_source source; /* of `used` and of the parts from OCC_PART_IDLE on */
};

/* Leads 100 % down to what was measured, or expected. `measurement` may be NULL. */
void occ_explain(const struct occ_result *result, const struct occ_measurement *measurement,
                 struct occ_waterfall *ret_waterfall);

/* What the launch of warps waited for most, if it waited for more than OCC_STALL_LEAST of the cycles; OCC_LIMIT_COUNT:
 * for nothing, or that was not measured. */
#define OCC_STALL_LEAST 0.01
enum occ_limit occ_most_stalled(const struct occ_measurement *measurement);

/* Words. Never NULL. */
const char *occ_part_word(unsigned part);
const char *occ_part_text(unsigned part, double ratio);
const char *occ_value_source_word(enum occ_value_source source);
const char *occ_value_source_text(enum occ_value_source source);

/* The kind of advice that is about a part; OCC_ADVICE_COUNT: none is. */
enum occ_advice_kind occ_part_advice(unsigned part);

#ifdef __cplusplus
}
#endif

#endif
