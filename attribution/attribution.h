/*
 * Gives what the device-wide counters saw to the launches that ran meanwhile (docs/architecture.md; the
 * method and its error analysis: docs/decisions). One object a GPU. Pure arithmetic on what it is given: no
 * clock, no I/O.
 *
 * In: launches of all processes on the GPU, in order of their start, and samples in order of their start,
 * both on one clock up to an offset that is fitted here. Out: per launch configuration (and graph node) and
 * per launch the achieved and elapsed occupancy, each with its source, standard error and variance inflation.
 *
 * Memory and time are bounded (constants.h); what does not fit is refused, and goes to the residual.
 * One thread.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample.h"
#include "support/error.h"

struct occ_attribution;

/* ---- in ---- */

/* What is known of a key before anything was measured. */
struct occ_attribution_key {
    uint64_t shape;                    /* any id that is the same for the same shape */
    uint64_t graph_node;               /* 0: not from a graph */
    double theoretical;                /* 0...1; NaN: unknown, bound is 1 */
    uint64_t grid_blocks, wave_blocks; /* of the model; 0: unknown */
    uint32_t warps_per_block;
};

struct occ_attribution_launch {
    struct occ_attribution_key key;
    int64_t start_ns, end_ns;
    uint64_t tag; /* the caller's, comes back with the launch's value */
};

/* ---- out ---- */

enum occ_attribution_source {
    OCC_ATTRIBUTION_NONE,      /* not measured */
    OCC_ATTRIBUTION_DIRECT,    /* read from samples that lie inside the launch */
    OCC_ATTRIBUTION_REGRESSED, /* least squares over many launches of the shape */
    OCC_ATTRIBUTION_GROUP,     /* mean of kernels that always run together and cannot be told apart */
};

/* A measured occupancy. NaN where it is not defined (achieved beside overlapping kernels). */
struct occ_measured {
    enum occ_attribution_source source;
    double achieved, achieved_se; /* warp-cycles / (active SM-cycles x max warps); its standard error */
    double elapsed, elapsed_se;   /* warp-cycles / (elapsed SM-cycles x max warps) */
    double variance_inflation;    /* of the regression; 1 for direct */
    double sm_active;             /* active / elapsed SM-cycles */
    double blocks;                /* resident blocks per active SM; NaN */
    double imbalance;             /* 1 - least / most active SM's cycles; NaN */
    double stall[5];              /* share of cycles, in the order of enum occ_counter; NaN */
    /* 0...1 of the peak, with standard errors: ISSUE of active cycles, others of elapsed ones; NaN, and
     * undefined where the source is NONE */
    double utilization[OCC_UTILIZATION_COUNT], utilization_se[OCC_UTILIZATION_COUNT];
    bool overlapped; /* ran beside other kernels for a good part of its time */
};

#define OCC_NOT_MEASURED                                                                                     \
    (struct occ_measured)                                                                                    \
    {                                                                                                        \
        .source = OCC_ATTRIBUTION_NONE, .achieved = NAN, .achieved_se = NAN, .elapsed = NAN,                 \
        .elapsed_se = NAN, .sm_active = NAN, .blocks = NAN, .imbalance = NAN                                 \
    }

/* A launch whose samples are joined. Without a value of its own it has its configuration's. */
struct occ_attribution_value {
    uint64_t tag, shape;
    int64_t start_ns, end_ns; /* the launch's own, as given */
    struct occ_measured measured;
};

/* A second (of the samples' clock, since the epoch) of which joined samples tell. */
struct occ_attribution_second {
    int64_t second;
    double unexplained; /* elapsed occupancy but for launches'; may be below 0 */
};

struct occ_attribution_stats {
    int64_t offset_ns; /* fitted: added to launch times to get sample times */
    double drift_ppm;
    double residual_ratio; /* of the last second: warp-cycles that no launch explains / all */
    uint64_t keys_refused, late_launches;
    uint64_t waiting; /* launches that have no value yet */
};

/* ---- functions ---- */

struct occ_attribution_options {
    uint32_t sm_count, max_warps_per_sm;
    /* advance() calls these, for seconds oldest first. */
    void (*add_value)(void *context, const struct occ_attribution_value *value);
    void (*add_second)(void *context, const struct occ_attribution_second *second);
    void *context;
};

int occ_attribution_new(const struct occ_attribution_options *options,
                        struct occ_attribution **ret_attribution, struct occ_error *err);
void occ_attribution_free(struct occ_attribution *attribution);

/* OCC_E_INVALID: it cannot be. OCC_E_FULL: there is no room for it. */
int occ_attribution_launch(struct occ_attribution *attribution, const struct occ_attribution_launch *launch,
                           struct occ_error *err);
/* The same; where it is only one counter that cannot be, what others counted is used all the same. */
int occ_attribution_sample(struct occ_attribution *attribution, const struct occ_sample *sample,
                           struct occ_error *err);
/* No launch that starts before this comes any more; samples up to here are joined, block by block, `final`:
 * to the last one, and every launch that waits is given its value. */
int occ_attribution_advance(struct occ_attribution *attribution, int64_t until_ns, bool final,
                            struct occ_error *err);

/* The samples that follow count otherwise (another source): what was learned of kernels is forgotten, values
 * that were said of them stay until there are new ones. */
void occ_attribution_restart(struct occ_attribution *attribution);

/* A sample as ratios: elapsed, sm_active, blocks and stall of *ret_measured, NaN where it did not count. */
void occ_attribution_read(const struct occ_attribution *attribution, const struct occ_sample *sample,
                          struct occ_measured *ret_measured);

void occ_attribution_get_stats(const struct occ_attribution *attribution,
                               struct occ_attribution_stats *ret_stats);
