/*
 * The time of a changed launch, predicted: a median ratio of after to before, and the interval that held 80 %
 * of published changes. docs/internals/advice.md explains the model on one page.
 *
 *   log(after / before) = sum over the terms of exponent x change
 *
 * Every term compares two states of the launch that the occupancy model knows. Exponents, the interval and
 * the number of published cases behind each of them are in predict_table.c. A prediction is about changes
 * that keep the work; it knows neither the code nor the data, and a measurement replaces it.
 *
 * Pure like the model: no allocation, no I/O, any thread.
 */
#pragma once

#include "occupancy.h"
#include "owner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The hardware that holds a kernel up. Warps beyond the present ones do not hide the latency of a
 * compute-bound kernel: published changes were a coin flip. */
enum occ_work_bound {
    OCC_WORK_UNKNOWN,
    OCC_WORK_LATENCY,
    OCC_WORK_MEMORY,
    OCC_WORK_COMPUTE,
    OCC_WORK_BOUNDS
};

/* X(NAME, id, text) */
#define OCC_TERMS(X)                                                                                         \
    /* log of the share of SMs with a block */                                                               \
    X(SMS, "busy_sms", "SMs with work")                                                                      \
    /* log of resident warps per busy SM, up to occ_prediction_table.warps_enough */                         \
    X(WARPS, "warps", "warps per SM")                                                                        \
    /* log of the share of lanes with a thread */                                                            \
    X(LANES, "lanes", "lanes with a thread")                                                                 \
    /* 1: more bytes spill; -1: fewer */                                                                     \
    X(SPILL, "spills", "spilled registers")                                                                  \
    /* log of whole waves per wave of work, above one wave; 0 if the grid keeps its blocks */                \
    X(TAIL, "tail", "whole waves")                                                                           \
    /* 1: an SM comes to hold at most OCC_CROWDED_BLOCKS large blocks with shared memory; -1: no longer */   \
    X(CROWDED, "crowded", "few large blocks with shared memory")                                             \
    /* halvings below OCC_SMALL_BLOCK threads, where warps or blocks per SM limit and blocks fill a wave */  \
    X(SMALL_BLOCK, "small_block", "small blocks")                                                            \
    /* no other term: the model sees no effect */                                                            \
    X(NONE, "none", "other changes")

#define OCC_TERM_ENUMERATOR(name, id, text) OCC_TERM_##name,
enum occ_term { OCC_TERMS(OCC_TERM_ENUMERATOR) OCC_TERM_COUNT };

#define OCC_CROWDED_BLOCKS  2
#define OCC_CROWDED_THREADS 256
#define OCC_SMALL_BLOCK     128.0

struct occ_term_row {
    double exponent;
    uint32_t cases, faster, slower; /* published changes; faster: time ratio below 0.98, slower: above 1.02 */
};

struct occ_prediction_table {
    struct occ_term_row term[OCC_TERM_COUNT];
    double warps_enough; /* per SM */
    /* The 80 % interval in log units of the width 1 + sum of |terms| + work_width x |log of threads after /
     * threads before|. */
    double low, high;
    double work_width;
};

/* The calibrated table. */
extern const struct occ_prediction_table occ_published_cases;

/* One state of a launch, as far as predictions depend on it. */
struct occ_side {
    double busy_sms; /* 0 ... 1 of the SMs; 1 where the grid is not known */
    double warps;    /* per busy SM */
    double lanes;    /* share of the lanes of a warp that have a thread, 0 ... 1 */
    double waves;    /* 0: not known */
    double blocks;   /* number of blocks of the grid; 0: not known */
    double threads;  /* number of threads of the grid; 0: not known */
    double block_threads;
    uint32_t blocks_per_sm; /* 0: not known */
    uint32_t smem_bytes;    /* static and dynamic, per block */
    bool is_free;           /* warps or blocks per SM are among the limiters */
    int64_t spill_bytes;    /* per thread; -1: not known */
};

struct occ_prediction {
    double ratio, low, high; /* time after / before: median, ends of the 80 % interval; NaN ends: none */
    enum occ_term term;      /* the term with the largest part in the direction of the prediction */
    double part[OCC_TERM_COUNT];
    bool is_promised; /* users may be shown the gain */
    struct occ_term_row published;
};

/* Maximum time ratio of a promised gain: among the published changes, less than 2 % is no change. */
#define OCC_PROMISED_RATIO 0.98

struct occ_launch_change {
    const struct occ_launch *before, *after;
    const struct occ_result *result;   /* the result of occ_analyse() for `before` */
    int64_t spill_before, spill_after; /* bytes per thread; -1: not known */
    enum occ_work_bound bound;
    enum occ_owner owner;
    bool has_grid; /* false: grids are not known, their terms are 0 */
};

/* False: the launch after is impossible. */
bool occ_predict(const struct occ_device *device, const struct occ_launch_change *change,
                 struct occ_prediction *ret_prediction);

/* The steps of occ_predict(), for other tables. `result` is occ_analyse()'s of the launch. */
struct occ_side occ_side_of(const struct occ_device *device, const struct occ_launch *launch,
                            const struct occ_result *result, bool has_grid);
struct occ_prediction occ_predict_sides(const struct occ_prediction_table *table,
                                        const struct occ_side *before, const struct occ_side *after,
                                        enum occ_work_bound bound, enum occ_owner owner);

/* The width of the interval, in units of low and high. */
double occ_prediction_width(const struct occ_prediction_table *table, const struct occ_prediction *prediction,
                            const struct occ_side *before, const struct occ_side *after);

const char *occ_term_word(enum occ_term term);
const char *occ_term_text(enum occ_term term);

#ifdef __cplusplus
}
#endif
