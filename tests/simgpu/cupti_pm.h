/*
 * PM sampling and the range profiler in the CUPTI double: what their files share.
 *
 *   cupti_samples.c  what the simulated device did (segments.h), summed up over intervals
 *   cupti_pm.c       sampling objects: one a device, its hardware buffer, decoding
 *   cupti_range.c    the range profiler: what each launch of a context was, in the same images
 *   cupti_host.c     metrics, configuration images, values of decoded samples
 *
 * Images (configurations, counter data) are ours: nothing but these files reads them.
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

/* X(NAME, metric). The reasons in the order of enum sim_limit, percent of the peak in that of enum sim_unit.
 * Sums over SMs (reasons: over TPCs, two SMs each) and the interval; percent are means. */
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

/* What one pass counts. Our rule, so that each set of the sampler is one pass and two together are two. */
#define SIM_PASS_METRICS 9

#define SIM_CONFIG_MAGIC UINT32_C(0x4347534f) /* "OSGC" */
#define SIM_IMAGE_MAGIC  UINT32_C(0x4447534f) /* "OSGD" */

/* A configuration image. */
struct sim_config {
    uint32_t magic, count;
    uint32_t metric[SIM_METRICS];
};

/* A counter data image begins with this; samples follow. */
struct sim_image {
    struct sim_config config; /* SIM_IMAGE_MAGIC; which metrics a sample has */
    uint32_t most, count;     /* samples */
    uint32_t sample_bytes;    /* 0: as many as the values of one need */
};

/* One of them: in the image only the first `count` values are there. */
struct sim_pm_sample {
    uint64_t start_ns, end_ns;
    double value[SIM_METRICS];
};

/* Checks a client's parameters: NULL and those of an older shape are refused. */
#define SIM_PARAMS_GOOD(params, type) ((params) && (params)->structSize >= type##_STRUCT_SIZE)

/* The availability image of PM sampling: a bit for each metric. */
#define SIM_AVAILABILITY_BYTES 64

/* ---- cupti_pm.c ---- */
/* What a call of the profilers returns before cuptiProfilerInitialize; SUCCESS: it was called. */
CUptiResult sim_profiler_initialized(void);

/* ---- cupti_host.c ---- */
/* `image` has SIM_AVAILABILITY_BYTES; the fault "unavailable" leaves metrics out. */
void sim_availability_write(uint8_t *image);
/* The metric of a name, SIM_METRICS: there is none. */
uint32_t sim_metric_find(const char *name);
/* A client's copy of a configuration: false when it is none. */
bool sim_config_read(const void *bytes, size_t size, uint32_t magic, struct sim_config *ret);
uint32_t sim_config_passes(const struct sim_config *config);
/* Adds metrics by name. false: a name that is none. */
bool sim_config_add(struct sim_config *config, const char *const *names, size_t count);
size_t sim_image_bytes(const struct sim_image *image, uint32_t samples);
/* The head of an image; false: it is none. */
bool sim_image_read(const void *bytes, size_t size, struct sim_image *ret);
bool sim_image_sample(const void *bytes, size_t size, size_t index, struct sim_pm_sample *ret);
/* `head` is the image's, with room for one more; both are updated. */
void sim_image_append(void *bytes, struct sim_image *head, const struct sim_pm_sample *sample);

/* ---- cupti_samples.c ---- */
struct sim_tail;
/* Follows what a device is said to execute. OCCSIM_COUNTERS is set. NULL: no memory. */
struct sim_tail *sim_tail_open(const struct sim_gpu *gpu, const uint8_t *uuid);
void sim_tail_close(struct sim_tail *tail);
/* Reads what came since. What starts before this call has been told when it returns (segments.h). */
void sim_tail_read(struct sim_tail *tail);
/* All metrics of [from_ns, to_ns), by enum sim_metric. Times never go back: what ended before is forgotten.
 */
void sim_tail_sum(struct sim_tail *tail, uint64_t from_ns, uint64_t to_ns, double ret[SIM_METRICS]);
