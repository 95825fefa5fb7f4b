/* Attributes the counts of device-wide hardware counters to the launches that ran at the time
 * (docs/decisions/0016). One object for each GPU. Arithmetic only: no clock, no I/O. Memory and time are
 * bounded (constants.h). One thread.
 *
 * Input: launches of all processes on the GPU, and samples, each in order of their start. Launches and
 * samples have one clock up to an offset, which is estimated here. Output: the achieved and elapsed occupancy
 * of each launch and launch configuration, with source, standard error and variance
 * inflation. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

struct occ_attribution;

/* Units of the GPU that can limit a kernel, so that more warps do not help. */
enum occ_utilization {
    OCC_UTILIZATION_ISSUE,  /* cycles in which a scheduler issued an instruction */
    OCC_UTILIZATION_DRAM,   /* throughput of device memory */
    OCC_UTILIZATION_L2,     /* throughput of the L2 cache */
    OCC_UTILIZATION_L1,     /* throughput of the L1 caches and shared memory */
    OCC_UTILIZATION_TENSOR, /* cycles in which tensor cores were active */
    OCC_UTILIZATION_COUNT
};

/* The counted ratios: warps and active SMs relative to the GPU's maximum; blocks per SM; cycles in which
 * launching a warp stalled for a resource, relative to all cycles; enum occ_utilization relative to the
 * peak. */
enum occ_ratio {
    OCC_RATIO_WARPS,
    OCC_RATIO_ACTIVE,
    OCC_RATIO_BLOCKS,
    OCC_RATIO_STALLS, /* first of OCC_STALL_COUNT: registers, shared memory, blocks, warps, barriers */
    OCC_STALL_COUNT = 5,
    OCC_RATIO_UTILIZATION = OCC_RATIO_STALLS + OCC_STALL_COUNT,
    OCC_RATIO_COUNT = OCC_RATIO_UTILIZATION + OCC_UTILIZATION_COUNT
};

#define OCC_BLOCKS_MAX 64.0 /* per SM: more than any GPU has */

/* The interval is [start_ns, end_ns) on a clock whose offset to the launches' clock is unknown. */
struct occ_attribution_sample {
    int64_t start_ns, end_ns;
    float ratio[OCC_RATIO_COUNT]; /* NaN: not counted */
    float imbalance;              /* 1 - cycles of the least / of the most active SM; NaN: not counted */
    float launched;               /* number of launched blocks; NaN: not counted */
};

/* The model's values for a launch before any measurement; NaN or 0: unknown. */
struct occ_attribution_key {
    uint64_t shape;      /* an id of the launch configuration */
    uint64_t graph_node; /* nodes of one configuration may differ; 0: not from a graph */
    double bound;        /* maximum elapsed occupancy */
    double expected;     /* elapsed occupancy of a balanced grid */
    double active;       /* share of SMs that have blocks */
    double blocks;       /* resident blocks per SM */
    double grid;         /* number of blocks */
    bool is_memory;      /* fills or copies: no kernel, so they never share the value of a group */
};

struct occ_attribution_launch {
    struct occ_attribution_key key;
    int64_t start_ns, end_ns;
    uint64_t tag; /* chosen by the caller, returned with the launch's value */
};

enum occ_attribution_source {
    OCC_ATTRIBUTION_NONE,      /* not measured */
    OCC_ATTRIBUTION_DIRECT,    /* read from samples that lie inside the launch */
    OCC_ATTRIBUTION_REGRESSED, /* estimated by least squares over many launches of the configuration */
    /* mean of kernels that always run together, so that their values cannot be separated */
    OCC_ATTRIBUTION_GROUP,
};

/* A measured occupancy; NaN: not defined (such as achieved occupancy beside overlapping kernels). */
struct occ_measured {
    enum occ_attribution_source source;
    double achieved, achieved_se; /* warp-cycles / (active SM-cycles x max warps), and its standard error */
    double elapsed, elapsed_se;   /* warp-cycles / (elapsed SM-cycles x max warps), and its standard error */
    double variance_inflation;    /* of the least squares estimate; 1 if DIRECT */
    double sm_active;             /* active / elapsed SM-cycles */
    double blocks;                /* resident blocks per active SM; NaN: not measured */
    double imbalance;             /* 1 - cycles of the least / of the most active SM; NaN: not measured */
    double stall[OCC_STALL_COUNT];
    /* Relative to the peak: ISSUE over active cycles, the others over elapsed cycles. NaN: not measured.
     * Undefined if the source is NONE. */
    double utilization[OCC_UTILIZATION_COUNT], utilization_se[OCC_UTILIZATION_COUNT];
    bool overlapped; /* overlapped with other kernels for more than OVERLAPPED of its time */
    /* An estimate of the elapsed occupancy that is too uncertain for a value of its own, with its standard
     * error: evidence about the mean of the configuration. rough_se 0: there is none. */
    double rough, rough_se;
};

#define OCC_NOT_MEASURED                                                                                     \
    (struct occ_measured)                                                                                    \
    {                                                                                                        \
        .source = OCC_ATTRIBUTION_NONE, .achieved = NAN, .achieved_se = NAN, .elapsed = NAN,                 \
        .elapsed_se = NAN, .sm_active = NAN, .blocks = NAN, .imbalance = NAN                                 \
    }

/* A launch whose samples are joined. If `measured` has no value, the value of the launch's configuration
 * applies. */
struct occ_attribution_value {
    uint64_t tag, shape;
    int64_t start_ns, end_ns; /* as passed to occ_attribution_launch() */
    struct occ_measured measured;
};

/* The joined samples of one second, by the samples' clock, since the epoch. */
struct occ_attribution_second {
    int64_t second;
    double unexplained; /* elapsed occupancy that no launch explains; may be negative */
};

struct occ_attribution_stats {
    int64_t offset_ns; /* fitted: added to launch times to get sample times */
    double drift_ppm;
    double residual_ratio; /* warp-cycles without a launch / all warp-cycles, in the last second */
    uint64_t keys_refused, late_launches;
    uint64_t waiting; /* launches without a value */
};

/* Assumptions that no counter tests: X(name, usual value, text). Other work: untraced work on the GPU. */
#define OCC_ATTRIBUTION_ASSUMPTIONS(X)                                                                       \
    X(spread_max, 0.18, "relative spread of a configuration's launches; more is other work")                 \
    X(above, 3.0, "standard errors; also ratio of other work to its visible part, ...")                      \
    X(above_counted, 0.9, "... if blocks are counted, which would show other work")                          \
    X(blocks_last, 10.0, "duration of other work's blocks / duration of launches")                           \
    X(untraced_sd, 0.4, "relative standard deviation of the occupancy counted while idle")

struct occ_attribution_assumptions {
#define X(name, usual, text) double name; /* maximum, unless the text names a standard deviation */
    OCC_ATTRIBUTION_ASSUMPTIONS(X)
#undef X
};

extern const struct occ_attribution_assumptions occ_attribution_usual;

/* Reads "NAME=VALUE,NAME=VALUE,...": above 0, at most 1000. false: the text is not valid, nothing changes. */
bool occ_attribution_assume(struct occ_attribution_assumptions *assumptions, const char *text);
/* Writes the form that occ_attribution_assume() reads. */
#define OCC_ASSUMPTIONS_BYTES 256
void occ_attribution_print_assumptions(const struct occ_attribution_assumptions *assumptions,
                                       char text[OCC_ASSUMPTIONS_BYTES]);

struct occ_solution;

/* Called by occ_attribution_advance(), the oldest second first. */
struct occ_attribution_options {
    void (*add_value)(void *context, const struct occ_attribution_value *value);
    void (*add_second)(void *context, const struct occ_attribution_second *second);
    /* NULL, or called with each solution for warps, before its values are taken (state.h): for tests */
    void (*inspect)(void *context, const struct occ_attribution *attribution,
                    const struct occ_solution *solution);
    void *context;
    const struct occ_attribution_assumptions *assumptions; /* copied; NULL: the usual values */
};

/* NULL: no memory. */
struct occ_attribution *occ_attribution_new(const struct occ_attribution_options *options);
void occ_attribution_free(struct occ_attribution *attribution);

/* False: the launch or sample is refused, because its time is impossible (no duration, a sample before the
 * last one, a sample longer than a minute, a launch longer than a day) or because there is no room. */
bool occ_attribution_launch(struct occ_attribution *attribution, const struct occ_attribution_launch *launch);
bool occ_attribution_sample(struct occ_attribution *attribution, const struct occ_attribution_sample *sample);
/* All launches that start before `until_ns` have arrived: joins the samples up to there, block by block, and
 * reports the launches that ended; with `final` all launches. A late launch without a value of its own is
 * only counted. */
void occ_attribution_advance(struct occ_attribution *attribution, int64_t until_ns, bool final);

void occ_attribution_get_stats(const struct occ_attribution *attribution,
                               struct occ_attribution_stats *ret_stats);
