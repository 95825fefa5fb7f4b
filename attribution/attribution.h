/* Attributes what device-wide counters counted to the launches that ran meanwhile (docs/decisions/0016). One
 * object a GPU. Arithmetic only: no clock, no I/O. Memory and time are bounded (constants.h). One thread.
 * In: launches of all processes on the GPU and samples, each in order of their start, on one clock up to an
 * offset that is fitted here. Out: per launch and launch configuration (and graph node) the achieved and
 * elapsed occupancy, each with its source, standard error and variance inflation. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

struct occ_attribution;

/* What may keep more warps from helping. */
enum occ_utilization {
    OCC_UTILIZATION_ISSUE,  /* cycles in which a scheduler issued an instruction */
    OCC_UTILIZATION_DRAM,   /* throughput of device memory */
    OCC_UTILIZATION_L2,     /* the same of the L2 cache */
    OCC_UTILIZATION_L1,     /* the same of L1 caches and shared memory */
    OCC_UTILIZATION_TENSOR, /* cycles in which tensor cores were active */
    OCC_UTILIZATION_COUNT
};

/* What is counted, as ratios: warps and active SMs of what the GPU has, blocks per SM, launches of warps that
 * stalled for a resource of all cycles, enum occ_utilization of the peak. */
enum occ_ratio {
    OCC_RATIO_WARPS,
    OCC_RATIO_ACTIVE,
    OCC_RATIO_BLOCKS,
    OCC_RATIO_STALLS, /* registers, shared memory, blocks, warps, barriers */
    OCC_STALL_COUNT = 5,
    OCC_RATIO_UTILIZATION = OCC_RATIO_STALLS + OCC_STALL_COUNT,
    OCC_RATIO_COUNT = OCC_RATIO_UTILIZATION + OCC_UTILIZATION_COUNT
};

#define OCC_BLOCKS_MAX 64.0 /* per SM: more than any GPU has */

/* [start_ns, end_ns) of a clock whose offset to the launches' is not known. */
struct occ_attribution_sample {
    int64_t start_ns, end_ns;
    float ratio[OCC_RATIO_COUNT]; /* NaN: not counted */
    float imbalance;              /* 1 - least / most active SM's cycles; NaN */
    float launched;               /* blocks that were launched; NaN */
};

/* What is known of a launch before it is measured; NaN or 0: unknown. */
struct occ_attribution_key {
    uint64_t shape;      /* any id that is the same for the same shape */
    uint64_t graph_node; /* 0: not from a graph */
    double bound;        /* of elapsed occupancy */
    double expected;     /* elapsed occupancy of a balanced grid */
    double active;       /* SMs that have blocks, of all */
    double blocks;       /* resident per SM */
    double grid;         /* blocks of a launch */
};

struct occ_attribution_launch {
    struct occ_attribution_key key;
    int64_t start_ns, end_ns;
    uint64_t tag; /* the caller's, comes back with the launch's value */
};

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
    double stall[OCC_STALL_COUNT];
    /* of the peak; ISSUE: of active cycles, others of elapsed ones; NaN; undefined if the source is NONE */
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

/* What advance() calls, for seconds oldest first. */
struct occ_attribution_options {
    void (*add_value)(void *context, const struct occ_attribution_value *value);
    void (*add_second)(void *context, const struct occ_attribution_second *second);
    void *context;
};

/* NULL: no memory. */
struct occ_attribution *occ_attribution_new(const struct occ_attribution_options *options);
void occ_attribution_free(struct occ_attribution *attribution);

/* False: it cannot be (no time, a sample back in time, longer than a minute, a day), or there is no room. */
bool occ_attribution_launch(struct occ_attribution *attribution, const struct occ_attribution_launch *launch);
bool occ_attribution_sample(struct occ_attribution *attribution, const struct occ_attribution_sample *sample);
/* No launch that starts before this comes any more: samples up to here are joined, block by block, and
 * launches that ended before reported, `final`: all of them. Late ones without a value of their own are
 * counted only. */
void occ_attribution_advance(struct occ_attribution *attribution, int64_t until_ns, bool final);

void occ_attribution_get_stats(const struct occ_attribution *attribution,
                               struct occ_attribution_stats *ret_stats);
