/*
 * Common declarations of PM sampling and the range profiler in the CUPTI double.
 *
 *   cupti_samples.c  the simulated device's activity (segments.h), summed over intervals
 *   cupti_pm.c       sampling objects: one per device, with a hardware buffer; decoding
 *   cupti_range.c    the range profiler: counters of each launch of a context, in the same images
 *   cupti_host.c     metrics, configuration images, values of decoded samples
 *
 * The format of images (configurations, counter data) is private to these files.
 */
#pragma once

#include "cupti_double.h"

#include "gpu.h"

#pragma GCC visibility push(default)
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#pragma GCC visibility pop

#define SIM_REASON(word) "tpc__warp_launch_cycles_stalled_shader_cs_reason_" word "_allocation.sum"

#define SIM_PERCENT(counter) counter ".avg.pct_of_peak_sustained_elapsed"

/* X(NAME, metric). The reasons in the order of enum sim_limit, percent of the peak in the order of enum
 * sim_unit. Sums over SMs (reasons: over TPCs, two SMs each) and the interval; percent are means. */
#define SIM_METRICS_OF_CHIP(X)                                                                               \
    X(BLOCKS, "sm__ctas_active.sum")                                                                         \
    X(WARPS, "sm__warps_active.sum")                                                                         \
    X(WARPS_OF_TPC, "tpc__warps_active_shader_cs_realtime.sum")                                              \
    X(ACTIVE, "sm__cycles_active.sum")                                                                       \
    X(ACTIVE_MIN, "sm__cycles_active.min")                                                                   \
    X(ACTIVE_MAX, "sm__cycles_active.max")                                                                   \
    X(ELAPSED, "sm__cycles_elapsed.max")                                                                     \
    X(STALL_REGISTERS, SIM_REASON("register"))                                                               \
    X(STALL_SMEM, SIM_REASON("shmem"))                                                                       \
    X(STALL_BLOCKS, SIM_REASON("cta"))                                                                       \
    X(STALL_WARPS, SIM_REASON("warp"))                                                                       \
    X(STALL_BARRIERS, SIM_REASON("barrier"))                                                                 \
    X(ISSUE, SIM_PERCENT("smsp__issue_active"))                                                              \
    X(DRAM, SIM_PERCENT("dram__throughput"))                                                                 \
    X(L2, SIM_PERCENT("lts__t_sectors"))                                                                     \
    X(L1, SIM_PERCENT("l1tex__data_pipe_lsu_wavefronts"))                                                    \
    X(TENSOR, SIM_PERCENT("sm__pipe_tensor_cycles_active"))                                                  \
    X(DRAMC, SIM_PERCENT("dramc__throughput"))                                                               \
    X(LAUNCHED, "sm__ctas_launched.sum")                                                                     \
    X(LAUNCHED_OF_GR, "gr__ctas_launched.sum")                                                               \
    X(DURATION, "gpu__time_duration.sum")

enum sim_metric {
#define X(name, metric) SIM_METRIC_##name,
    SIM_METRICS_OF_CHIP(X)
#undef X
        SIM_METRICS
};

/* Maximum metrics of one pass: chosen so that each set of the sampler needs one pass and two sets need two.
 */
#define SIM_PASS_METRICS 9

#define SIM_CONFIG_MAGIC UINT32_C(0x4347534f) /* "OSGC" */
#define SIM_IMAGE_MAGIC  UINT32_C(0x4447534f) /* "OSGD" */

/* A configuration image. */
struct sim_config {
    uint32_t magic, count;
    uint32_t metric[SIM_METRICS];
};

/* The head of a counter data image; samples follow. */
struct sim_image {
    struct sim_config config; /* SIM_IMAGE_MAGIC; the metrics of a sample */
    uint32_t most, count;     /* samples */
    uint32_t sample_bytes;    /* 0: the size of a sample's values */
};

/* A sample; the image stores only the first `count` values. */
struct sim_pm_sample {
    uint64_t start_ns, end_ns;
    double value[SIM_METRICS];
};

/* Checks a client's parameters: false for NULL and for an older, shorter structure. */
#define SIM_PARAMS_GOOD(params, type) ((params) && (params)->structSize >= type##_STRUCT_SIZE)

/* The availability image of PM sampling: a bit for each metric. */
#define SIM_AVAILABILITY_BYTES 64

/* ---- cupti_pm.c ---- */
/* Returns SUCCESS after cuptiProfilerInitialize, else the error of the profilers' calls. */
CUptiResult sim_profiler_initialized(void);

/* ---- cupti_host.c ---- */
/* `image` has SIM_AVAILABILITY_BYTES; the fault "unavailable" leaves metrics out. */
void sim_availability_write(uint8_t *image);
/* Returns the metric with this name; SIM_METRICS: unknown. */
uint32_t sim_metric_find(const char *name);
/* Copies a client's configuration; false: not a configuration. */
bool sim_config_read(const void *bytes, size_t size, uint32_t magic, struct sim_config *ret);
uint32_t sim_config_passes(const struct sim_config *config);
/* Adds metrics by name; false: an unknown name. */
bool sim_config_add(struct sim_config *config, const char *const *names, size_t count);
size_t sim_image_bytes(const struct sim_image *image, uint32_t samples);
/* Reads the head of an image; false: not an image. */
bool sim_image_read(const void *bytes, size_t size, struct sim_image *ret);
bool sim_image_sample(const void *bytes, size_t size, size_t index, struct sim_pm_sample *ret);
/* Appends a sample. `head` is the image's, with room for one more; both are updated. */
void sim_image_append(void *bytes, struct sim_image *head, const struct sim_pm_sample *sample);

/* ---- cupti_samples.c ---- */
struct sim_tail;
/* Follows the reported work of a device; OCCSIM_COUNTERS is set. Returns NULL without memory. */
struct sim_tail *sim_tail_open(const struct sim_gpu *gpu, const uint8_t *uuid);
void sim_tail_close(struct sim_tail *tail);
/* Reads new segments. All work that starts before this call has been reported when it returns (segments.h).
 */
void sim_tail_read(struct sim_tail *tail);
/* Sums all metrics over [from_ns, to_ns), by enum sim_metric. Times never go back: earlier segments are
 * dropped. */
void sim_tail_sum(struct sim_tail *tail, uint64_t from_ns, uint64_t to_ns, double ret[SIM_METRICS]);
