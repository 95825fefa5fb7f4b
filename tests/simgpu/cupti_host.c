/*
 * The host half of the CUPTI double's profiler: chips, metrics, configuration images, values. Knows few metrics, which are one
 * pass unless OCCSIM_FAULT says otherwise. Threads: any, each object one at a time.
 */
#include "cupti_double.h"

#include "env.h"

#pragma GCC visibility push(default)
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#pragma GCC visibility pop

#include <stdlib.h>
#include <string.h>

#define CONFIG_MAGIC UINT64_C(0x6769666e6f636d69)

/* X(CUPTI's name, value from `c`) */
#define METRICS(X)                                                                                           \
    X("sm__warps_active.sum", c->warps_ns)                                                                   \
    X("sm__cycles_active.sum", c->sms_ns)                                                                    \
    X("sm__cycles_elapsed.max", c->ns)                                                                       \
    X("sm__ctas_active.sum", c->blocks_ns)

struct CUpti_Profiler_Host_Object {
    uint32_t metrics; /* a bit for each row */
};

struct config_image {
    uint64_t magic;
    uint64_t metrics;
};

static const char *const metric_names[] = {
#define X(name, value) name,
    METRICS(X)
#undef X
};

#define METRIC_COUNT (sizeof metric_names / sizeof *metric_names)

static size_t find_metric(const char *name)
{
    size_t i = 0;
    while (i < METRIC_COUNT && strcmp(metric_names[i], name) != 0)
        i++;
    return i;
}

static double value_of(size_t metric, const struct sim_counts *c)
{
    const double values[] = {
#define X(name, value) value,
        METRICS(X)
#undef X
    };
    return values[metric];
}

static CUptiResult invalid(void)
{
    return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
}

CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *p)
{
    return p && p->structSize == CUpti_Profiler_Initialize_Params_STRUCT_SIZE ? CUPTI_SUCCESS : invalid();
}

CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *p)
{
    if (!p || !sim_cupti_driver())
        return invalid();
    p->pChipName = sim_cupti_driver()->chip((uint32_t)p->deviceIndex);
    return p->pChipName ? CUPTI_SUCCESS : sim_cupti_result(CUPTI_ERROR_INVALID_DEVICE);
}

CUptiResult cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params *p)
{
    static const uint8_t image[8] = "availab";
    if (!p)
        return invalid();
    if (p->pCounterAvailabilityImage && p->counterAvailabilityImageSize < sizeof image)
        return invalid();
    if (p->pCounterAvailabilityImage)
        memcpy(p->pCounterAvailabilityImage, image, sizeof image);
    p->counterAvailabilityImageSize = sizeof image;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params *p)
{
    if (!p || !p->pChipName || p->profilerType != CUPTI_PROFILER_TYPE_RANGE_PROFILER)
        return invalid();
    p->pHostObject = calloc(1, sizeof *p->pHostObject);
    return p->pHostObject ? CUPTI_SUCCESS : sim_cupti_result(CUPTI_ERROR_OUT_OF_MEMORY);
}

CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params *p)
{
    if (!p || !p->pHostObject)
        return invalid();
    free(p->pHostObject);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params *p)
{
    if (!p || !p->pHostObject || !p->ppMetricNames)
        return invalid();
    for (size_t i = 0; i < p->numMetrics; i++) {
        size_t metric = find_metric(p->ppMetricNames[i]);
        if (metric == METRIC_COUNT)
            return sim_cupti_result(CUPTI_ERROR_INVALID_METRIC_NAME);
        p->pHostObject->metrics |= 1u << metric;
    }
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params *p)
{
    if (!p || !p->pHostObject)
        return invalid();
    p->configImageSize = sizeof(struct config_image);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params *p)
{
    if (!p || !p->pHostObject || !p->pConfigImage || p->configImageSize < sizeof(struct config_image))
        return invalid();
    const struct config_image image = {CONFIG_MAGIC, p->pHostObject->metrics};
    memcpy(p->pConfigImage, &image, sizeof image);
    return CUPTI_SUCCESS;
}

size_t sim_host_config_passes(const uint8_t *bytes, size_t size)
{
    struct config_image image = {0};
    if (bytes && size >= sizeof image)
        memcpy(&image, bytes, sizeof image);
    if (image.magic != CONFIG_MAGIC || !image.metrics)
        return 0;
    return sim_fault(SIM_FAULT_PASSES) ? (size_t)sim_fault(SIM_FAULT_PASSES) : 1;
}

CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params *p)
{
    if (!p)
        return invalid();
    p->numOfPasses = sim_host_config_passes(p->pConfigImage, p->configImageSize);
    return p->numOfPasses ? CUPTI_SUCCESS : invalid();
}

CUptiResult cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params *p)
{
    if (!p || !p->pHostObject || !p->pMetricValues || !p->ppMetricNames)
        return invalid();
    const struct sim_counts *counts =
        sim_range_counts(p->pCounterDataImage, p->counterDataImageSize, p->rangeIndex);
    if (!counts)
        return invalid();
    for (size_t i = 0; i < p->numMetrics; i++) {
        size_t metric = find_metric(p->ppMetricNames[i]);
        if (metric == METRIC_COUNT || !(p->pHostObject->metrics >> metric & 1))
            return sim_cupti_result(CUPTI_ERROR_INVALID_METRIC_NAME);
        p->pMetricValues[i] = value_of(metric, counts);
    }
    return CUPTI_SUCCESS;
}
