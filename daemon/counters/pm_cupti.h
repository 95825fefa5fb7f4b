/*
 * CUPTI's PM sampling and host functions, bound at run time, and configuration images made with them. The build needs
 * NVIDIA's headers; without them pm.c says so at run time. One thread a GPU; binding happens once per object.
 */
#ifndef OCC_SAMPLER_PM_CUPTI_H
#define OCC_SAMPLER_PM_CUPTI_H

#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include "counter_sets.h"

/* X(slot, symbol) */
#define OCC_PM_FUNCTIONS(X)                                                                                  \
    X(result_string, cuptiGetResultString)                                                                   \
    X(profiler_initialize, cuptiProfilerInitialize)                                                          \
    X(chip_name, cuptiDeviceGetChipName)                                                                     \
    X(availability, cuptiPmSamplingGetCounterAvailability)                                                   \
    X(host_initialize, cuptiProfilerHostInitialize)                                                          \
    X(host_deinitialize, cuptiProfilerHostDeinitialize)                                                      \
    X(add_metrics, cuptiProfilerHostConfigAddMetrics)                                                        \
    X(image_size, cuptiProfilerHostGetConfigImageSize)                                                       \
    X(image, cuptiProfilerHostGetConfigImage)                                                                \
    X(passes, cuptiProfilerHostGetNumOfPasses)                                                               \
    X(evaluate, cuptiProfilerHostEvaluateToGpuValues)                                                        \
    X(enable, cuptiPmSamplingEnable)                                                                         \
    X(disable, cuptiPmSamplingDisable)                                                                       \
    X(set_config, cuptiPmSamplingSetConfig)                                                                  \
    X(start, cuptiPmSamplingStart)                                                                           \
    X(stop, cuptiPmSamplingStop)                                                                             \
    X(decode, cuptiPmSamplingDecodeData)                                                                     \
    X(data_size, cuptiPmSamplingGetCounterDataSize)                                                          \
    X(data_initialize, cuptiPmSamplingCounterDataImageInitialize)                                            \
    X(data_info, cuptiPmSamplingGetCounterDataInfo)                                                          \
    X(sample_info, cuptiPmSamplingCounterDataGetSampleInfo)

struct occ_pm_cupti {
#define X(slot, symbol) __typeof__(&symbol) slot;
    OCC_PM_FUNCTIONS(X)
#undef X
};

/* `path` NULL: OCCTRACE_CUPTI, the loader's path, the toolkit's. The library stays open. */
enum occ_source_state occ_pm_bind(const char *path, struct occ_pm_cupti *cupti, struct occ_error *err);

/* What a result means; `what` is what was tried. */
enum occ_source_state occ_pm_fail(const struct occ_pm_cupti *cupti, CUptiResult result, const char *what,
                                  struct occ_error *err);

/* One set, ready for a chip. */
struct occ_pm_config {
    const struct occ_counter_set *set;
    CUpti_Profiler_Host_Object *host;
    uint8_t *image;
    size_t image_bytes;
};

/* `availability` NULL: everything that the chip has. A set of more than one pass is refused: NOT_SUPPORTED. */
enum occ_source_state occ_pm_config_make(const struct occ_pm_cupti *cupti, const char *chip,
                                         const uint8_t *availability, const struct occ_counter_set *set,
                                         struct occ_pm_config *config, struct occ_error *err);
void occ_pm_config_free(const struct occ_pm_cupti *cupti, struct occ_pm_config *config);

#endif
