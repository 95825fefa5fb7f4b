/*
 * The host side of PM sampling and of the range profiler: metrics, configuration images and their passes,
 * values of decoded samples. See cupti_pm.h. State is only in the client's objects; any thread, one at a time
 * per object.
 */
#include "cupti_pm.h"

#include "env.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct CUpti_Profiler_Host_Object {
    struct sim_config config;
    uint64_t available; /* metrics: bit n is metric n */
};

static_assert(SIM_METRICS <= 64, "a bit for each metric");

static const char *const names[] = {
#define X(name, metric) metric,
    SIM_METRICS_OF_CHIP(X)
#undef X
};

/* ---- configurations ---- */

uint32_t sim_metric_find(const char *name)
{
    uint32_t i = 0;
    while (i < SIM_METRICS && (!name || strcmp(names[i], name) != 0))
        i++;
    return i + 1 == (uint64_t)sim_fault(SIM_FAULT_LACKS) ? SIM_METRICS : i;
}

static uint32_t find_in(const struct sim_config *config, uint32_t metric)
{
    uint32_t i = 0;
    while (i < config->count && config->metric[i] != metric)
        i++;
    return i;
}

bool sim_config_add(struct sim_config *config, const char *const *added, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t metric = sim_metric_find(added[i]);
        if (metric == SIM_METRICS)
            return false;
        if (find_in(config, metric) == config->count)
            config->metric[config->count++] = metric;
    }
    return true;
}

bool sim_config_read(const void *bytes, size_t size, uint32_t magic, struct sim_config *ret)
{
    if (!bytes || size < sizeof *ret)
        return false;
    memcpy(ret, bytes, sizeof *ret);
    bool good = ret->magic == magic && ret->count <= SIM_METRICS;
    for (uint32_t i = 0; good && i < ret->count; i++)
        good = ret->metric[i] < SIM_METRICS;
    return good;
}

uint32_t sim_config_passes(const struct sim_config *config)
{
    uint32_t told = (uint32_t)sim_fault(SIM_FAULT_PASSES);
    return told ? told : (config->count + SIM_PASS_METRICS - 1) / SIM_PASS_METRICS;
}

/* ---- counter data ---- */

static size_t value_bytes(const struct sim_config *config)
{
    return offsetof(struct sim_pm_sample, value) + config->count * sizeof(double);
}

size_t sim_image_bytes(const struct sim_image *image, uint32_t samples)
{
    size_t bytes = image->sample_bytes ? image->sample_bytes : value_bytes(&image->config);
    return sizeof(struct sim_image) + samples * bytes;
}

bool sim_image_read(const void *bytes, size_t size, struct sim_image *ret)
{
    if (!sim_config_read(bytes, size, SIM_IMAGE_MAGIC, &ret->config) || size < sizeof *ret)
        return false;
    memcpy(ret, bytes, sizeof *ret);
    return ret->count <= ret->most &&
           (!ret->sample_bytes || ret->sample_bytes >= sizeof(struct sim_pm_sample)) &&
           sim_image_bytes(ret, ret->most) <= size;
}

bool sim_image_sample(const void *bytes, size_t size, size_t index, struct sim_pm_sample *ret)
{
    struct sim_image head;
    if (!sim_image_read(bytes, size, &head) || index >= head.count)
        return false;
    memcpy(ret, (const uint8_t *)bytes + sim_image_bytes(&head, (uint32_t)index), value_bytes(&head.config));
    return true;
}

void sim_image_append(void *bytes, struct sim_image *head, const struct sim_pm_sample *sample)
{
    struct sim_pm_sample stored = {.start_ns = sample->start_ns, .end_ns = sample->end_ns};
    for (uint32_t i = 0; i < head->config.count; i++)
        stored.value[i] = sample->value[head->config.metric[i]];
    memcpy((uint8_t *)bytes + sim_image_bytes(head, head->count), &stored, value_bytes(&head->config));
    head->count++;
    memcpy(bytes, head, sizeof *head);
}

/* ---- availability ---- */

static const char availability_magic[8] = "availab";

void sim_availability_write(uint8_t *image)
{
    uint64_t available = ~sim_fault(SIM_FAULT_UNAVAILABLE);
    memset(image, 0, SIM_AVAILABILITY_BYTES);
    memcpy(image, availability_magic, sizeof availability_magic);
    memcpy(image + sizeof availability_magic, &available, sizeof available);
}

/* Reads an availability image; no image: all metrics of the chip. */
static bool read_availability(const uint8_t *image, uint64_t *ret_available)
{
    *ret_available = UINT64_MAX;
    if (!image)
        return true;
    if (memcmp(image, availability_magic, sizeof availability_magic) != 0)
        return false;
    memcpy(ret_available, image + sizeof availability_magic, sizeof *ret_available);
    return true;
}

/* ---- public ---- */

CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params *pParams)
{
    sim_cupti_enter(__func__);
    if (!SIM_PARAMS_GOOD(pParams, CUpti_Profiler_Host_Initialize_Params) || !pParams->pChipName ||
        (pParams->profilerType != CUPTI_PROFILER_TYPE_PM_SAMPLING &&
         pParams->profilerType != CUPTI_PROFILER_TYPE_RANGE_PROFILER))
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    uint64_t available;
    if (!read_availability(pParams->pCounterAvailabilityImage, &available))
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    CUpti_Profiler_Host_Object *host = calloc(1, sizeof *host);
    if (!host)
        return sim_cupti_result(CUPTI_ERROR_OUT_OF_MEMORY);
    host->config.magic = SIM_CONFIG_MAGIC;
    host->available = available;
    pParams->pHostObject = host;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params *pParams)
{
    sim_cupti_enter(__func__);
    if (!SIM_PARAMS_GOOD(pParams, CUpti_Profiler_Host_Deinitialize_Params) || !pParams->pHostObject)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    free(pParams->pHostObject);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params *pParams)
{
    sim_cupti_enter(__func__);
    if (!SIM_PARAMS_GOOD(pParams, CUpti_Profiler_Host_ConfigAddMetrics_Params) || !pParams->pHostObject ||
        !pParams->ppMetricNames)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    bool good = true;
    for (size_t i = 0; i < pParams->numMetrics && good; i++) {
        uint32_t metric = sim_metric_find(pParams->ppMetricNames[i]);
        good = metric < SIM_METRICS && pParams->pHostObject->available >> metric & 1;
    }
    good = good && sim_config_add(&pParams->pHostObject->config, pParams->ppMetricNames, pParams->numMetrics);
    return good ? CUPTI_SUCCESS : sim_cupti_result(CUPTI_ERROR_INVALID_METRIC_NAME);
}

CUptiResult cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params *pParams)
{
    sim_cupti_enter(__func__);
    if (!SIM_PARAMS_GOOD(pParams, CUpti_Profiler_Host_GetConfigImageSize_Params) || !pParams->pHostObject)
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    pParams->configImageSize = sizeof(struct sim_config);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params *pParams)
{
    sim_cupti_enter(__func__);
    if (!SIM_PARAMS_GOOD(pParams, CUpti_Profiler_Host_GetConfigImage_Params) || !pParams->pHostObject ||
        !pParams->pConfigImage || pParams->configImageSize < sizeof(struct sim_config))
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    memcpy(pParams->pConfigImage, &pParams->pHostObject->config, sizeof(struct sim_config));
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params *pParams)
{
    sim_cupti_enter(__func__);
    struct sim_config config;
    if (!SIM_PARAMS_GOOD(pParams, CUpti_Profiler_Host_GetNumOfPasses_Params) ||
        !sim_config_read(pParams->pConfigImage, pParams->configImageSize, SIM_CONFIG_MAGIC, &config))
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    pParams->numOfPasses = sim_config_passes(&config);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params *pParams)
{
    sim_cupti_enter(__func__);
    struct sim_image head;
    struct sim_pm_sample sample;
    if (!SIM_PARAMS_GOOD(pParams, CUpti_Profiler_Host_EvaluateToGpuValues_Params) || !pParams->pHostObject ||
        !pParams->ppMetricNames || !pParams->pMetricValues ||
        !sim_image_read(pParams->pCounterDataImage, pParams->counterDataImageSize, &head) ||
        !sim_image_sample(pParams->pCounterDataImage, pParams->counterDataImageSize, pParams->rangeIndex,
                          &sample))
        return sim_cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
    for (size_t i = 0; i < pParams->numMetrics; i++) {
        uint32_t at = find_in(&head.config, sim_metric_find(pParams->ppMetricNames[i]));
        if (at == head.config.count)
            return sim_cupti_result(CUPTI_ERROR_INVALID_METRIC_NAME);
        pParams->pMetricValues[i] = sample.value[at];
    }
    return CUPTI_SUCCESS;
}
