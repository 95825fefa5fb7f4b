/* See pm_cupti.h. */
#include "pm_cupti.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *symbol;
    size_t slot;
} functions[] = {
#define X(slot, symbol) {#symbol, offsetof(struct occ_pm_cupti, slot)},
    OCC_PM_FUNCTIONS(X)
#undef X
};

static void *open_library(const char *path)
{
    static const char *const candidates[] = {"libcupti.so.13", "libcupti.so.12",
                                             "/usr/local/cuda/lib64/libcupti.so.13",
                                             "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
                                             "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12"};
    const char *given = path ? path : secure_getenv("OCCTRACE_CUPTI");
    if (given && given[0])
        return dlopen(given, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void *library = NULL;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates && !library; i++)
        library = dlopen(candidates[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return library;
}

enum occ_source_state occ_pm_bind(const char *path, struct occ_pm_cupti *cupti, struct occ_error *err)
{
    void *library = open_library(path);
    if (!library) {
        (void)occ_fail(err, OCC_E_NOT_FOUND, "no libcupti: %s", dlerror());
        return OCC_SOURCE_NO_LIBRARY;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(library, functions[i].symbol);
        if (!address) {
            (void)occ_fail(err, OCC_E_VERSION, "libcupti lacks %s", functions[i].symbol);
            return OCC_SOURCE_NOT_SUPPORTED;
        }
        memcpy((char *)cupti + functions[i].slot, &address, sizeof address);
    }
    return OCC_SOURCE_OK;
}

enum occ_source_state occ_pm_fail(const struct occ_pm_cupti *cupti, CUptiResult result, const char *what,
                                  struct occ_error *err)
{
    static const struct {
        CUptiResult result;
        enum occ_source_state state;
    } states[] = {
        {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, OCC_SOURCE_NO_PERMISSION},
        {CUPTI_ERROR_HARDWARE_BUSY, OCC_SOURCE_BUSY},
        {CUPTI_ERROR_INVALID_OPERATION, OCC_SOURCE_BUSY}, /* of Enable: it is enabled already */
        {CUPTI_ERROR_NOT_SUPPORTED, OCC_SOURCE_NOT_SUPPORTED},
        {CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, OCC_SOURCE_NOT_SUPPORTED},
        {CUPTI_ERROR_NOT_INITIALIZED, OCC_SOURCE_NO_DRIVER},
        {CUPTI_ERROR_INVALID_DEVICE, OCC_SOURCE_LOST},
    };
    const char *text = NULL;
    if (cupti->result_string(result, &text) != CUPTI_SUCCESS || !text)
        text = "unknown error";
    (void)occ_fail(err, OCC_E_IO, "%s: %s (%d)", what, text, (int)result);
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (states[i].result == result)
            return states[i].state;
    /* without privileges the library often knows no better than "unknown" */
    return result == CUPTI_ERROR_UNKNOWN && geteuid() != 0 ? OCC_SOURCE_NO_PERMISSION : OCC_SOURCE_FAILED;
}

/* ---- configuration images ---- */

static CUptiResult make_image(const struct occ_pm_cupti *cupti, struct occ_pm_config *config)
{
    CUpti_Profiler_Host_GetConfigImageSize_Params size = {
        .structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE, .pHostObject = config->host};
    CUptiResult result = cupti->image_size(&size);
    if (result != CUPTI_SUCCESS)
        return result;
    config->image_bytes = size.configImageSize;
    config->image = malloc(config->image_bytes);
    if (!config->image)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    CUpti_Profiler_Host_GetConfigImage_Params image = {
        .structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE,
        .pHostObject = config->host,
        .configImageSize = config->image_bytes,
        .pConfigImage = config->image};
    return cupti->image(&image);
}

static CUptiResult begin_host(const struct occ_pm_cupti *cupti, const char *chip, const uint8_t *availability,
                              struct occ_pm_config *config)
{
    const char *names[OCC_SET_METRICS_MOST];
    memcpy(names, config->set->metric, sizeof names);
    CUpti_Profiler_Host_Initialize_Params begin = {.structSize =
                                                       CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE,
                                                   .profilerType = CUPTI_PROFILER_TYPE_PM_SAMPLING,
                                                   .pChipName = chip,
                                                   .pCounterAvailabilityImage = availability};
    CUptiResult result = cupti->host_initialize(&begin);
    if (result != CUPTI_SUCCESS)
        return result;
    config->host = begin.pHostObject;
    CUpti_Profiler_Host_ConfigAddMetrics_Params metrics = {
        .structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE,
        .pHostObject = config->host,
        .ppMetricNames = names,
        .numMetrics = config->set->n};
    return cupti->add_metrics(&metrics);
}

enum occ_source_state occ_pm_config_make(const struct occ_pm_cupti *cupti, const char *chip,
                                         const uint8_t *availability, const struct occ_counter_set *set,
                                         struct occ_pm_config *config, struct occ_error *err)
{
    CUpti_Profiler_Host_GetNumOfPasses_Params passes = {
        .structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE};
    *config = (struct occ_pm_config){.set = set};
    CUptiResult result = begin_host(cupti, chip, availability, config);
    if (result == CUPTI_SUCCESS)
        result = make_image(cupti, config);
    if (result == CUPTI_SUCCESS) {
        passes.configImageSize = config->image_bytes;
        passes.pConfigImage = config->image;
        result = cupti->passes(&passes);
    }
    enum occ_source_state state = OCC_SOURCE_OK;
    if (result != CUPTI_SUCCESS) {
        state = occ_pm_fail(cupti, result, "counters of this chip", err);
    } else if (passes.numOfPasses != 1) {
        (void)occ_fail(err, OCC_E_INVALID, "the counters need %zu passes on %s", passes.numOfPasses, chip);
        state = OCC_SOURCE_NOT_SUPPORTED;
    }
    if (state != OCC_SOURCE_OK)
        occ_pm_config_free(cupti, config);
    return state;
}

void occ_pm_config_free(const struct occ_pm_cupti *cupti, struct occ_pm_config *config)
{
    if (config->host) {
        CUpti_Profiler_Host_Deinitialize_Params end = {
            .structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE, .pHostObject = config->host};
        (void)cupti->host_deinitialize(&end);
    }
    free(config->image);
    *config = (struct occ_pm_config){0};
}
