/* The answer of `top`: totals of launches, by kernel or by another unit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter.h"
#include "occupancy/waterfall.h"
#include "support/error.h"

struct occ_store;

/* A kernel and the GPU on which it ran. Two GPUs of one model are two devices. `device` below 0 is a model: a
 * warehouse adds up the devices of a model. */
struct occ_row_kernel {
    int64_t id, device;
    const char *short_name, *demangled, *mangled, *device_name;
    const char *words; /* names/kernel_names.h; NULL: none, or not asked. Queries leave it NULL */
    bool simulated;
    /* only for `top`: the model has no limits of its own for the GPU and uses estimated limits */
    bool estimated;
    const char *range; /* only by layer: the path of the range; NULL: unknown */
    bool is_backward;  /* only by layer: launched by autograd for the operator of that range */
};

/* The launch configuration of a kernel with the largest total duration. */
struct occ_dominant_config {
    uint64_t total_ns; /* of its launches in the row */
    int64_t id, kernel;
    double waves;
    uint64_t full_waves, partial_blocks;
    uint64_t grid_blocks, wave_blocks; /* 0: not analysed; likewise blocks_per_sm */
    uint32_t blocks_per_sm, sm_count;
    uint32_t registers_per_thread, block_threads;
    uint32_t by_design, limiters; /* enum occ_by_design bits, bits of enum occ_limit */
};

/* A line of `top`: a kernel's launches, in all configurations, on one device. Means are weighted by duration;
 * NaN: unknown for all configurations. */
struct occ_top_row {
    struct occ_row_kernel kernel;
    struct occ_dominant_config dominant;
    uint32_t configs;
    uint64_t launches;
    uint64_t total_ns, min_ns, max_ns;
    uint64_t p50_ns, p95_ns; /* only by time, from the histogram: at most 12.5 % off; otherwise 0 */
    double theoretical;      /* theoretical and expected values cover the analysed configurations */
    double expected_achieved_low, expected_achieved_high, expected_elapsed_low, expected_elapsed_high;
    /* over configurations with a value; errors are standard errors and cover all launches */
    double achieved, achieved_error, elapsed, elapsed_error;
    double measured_ratio; /* measured share of total_ns */
    /* duration * SMs * max_warps_per_sm * (1 - elapsed), in seconds. elapsed: the measured value for measured
     * launches, the low end of the expected range for others */
    double waste_warp_seconds;
    /* The waterfall (occupancy/waterfall.h) over the analysed configurations: `used` (elapsed: measured, or
     * else the low end of the expected range) and the parts sum to 1, without PARTIAL_WARP, the share of
     * nonexistent threads in resident warps. */
    double used;
    double analysed_ratio; /* part of total_ns in analysed configurations */
    double part[OCC_PART_COUNT];
    /* TAIL and SMALL_GRID may be smaller by this amount, for launches without a measured value */
    double tail_spread, small_grid_spread;
    const char *main_cause; /* label of the largest part; NULL: none */
    double main_cause_ratio;
};

/* Units of a row of `top`: a kernel on a device, a stream of a device, all launches of a run, of the runs of
 * a rank ... By cause: the configurations with that main cause. By layer: a kernel in a range and phase.
 * X(NAME, label) */
#define OCC_TOP_BY(X)                                                                                        \
    X(KERNEL, "kernel")                                                                                      \
    X(CONFIG, "config")                                                                                      \
    X(CAUSE, "cause")                                                                                        \
    X(GPU, "gpu")                                                                                            \
    X(RANGE, "range")                                                                                        \
    X(LAYER, "layer")                                                                                        \
    X(STREAM, "stream")                                                                                      \
    X(RUN, "run")                                                                                            \
    X(RANK, "rank")                                                                                          \
    X(USER, "user")                                                                                          \
    X(LABEL, "label") X(JOB, "job") X(ACCOUNT, "account") X(PARTITION, "partition") X(NODE, "node")
/* Units of time: all launches that start in the unit. X(NAME, label) */
#define OCC_TOP_BY_TIME(X) X(MINUTE, "minute") X(HOUR, "hour") X(DAY, "day")
enum occ_top_by {
#define X(name, label) OCC_TOP_BY_##name,
    OCC_TOP_BY(X) OCC_TOP_BY_TIME(X)
#undef X
};

struct occ_top {
    struct occ_top_row *rows; /* unordered */
    size_t n;
    size_t n_kernels; /* kernels with launches that match the filter */
    void *memory;     /* owner of the strings */
};
/* If a row is not a kernel, kernel.short_name is the row's name (NULL: unknown), and kernel.id is the number
 * of the configuration, device or run. By time, kernel.id is the number of the unit since 1970, and `kernel`
 * has no texts. kernel.device is 0 unless a row belongs to one device: by kernel, configuration, stream or
 * GPU. */
int occ_store_top(struct occ_store *store, const struct occ_filter *filter, enum occ_top_by by,
                  struct occ_top *ret_top, struct occ_error *err);
/* Several answers from one pass over the launches, in one snapshot: by `n` (at most 4) of kernel,
 * configuration, cause and GPU. The answers are zeroed first; the caller frees all of them, also after a
 * failure. */
int occ_store_tops(struct occ_store *store, const struct occ_filter *filter, const enum occ_top_by *by,
                   size_t n, struct occ_top *ret_tops, struct occ_error *err);
void occ_top_free(struct occ_top *top);
