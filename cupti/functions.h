/*
 * All functions of libcupti that the project calls, in groups that are bound together: X(slot, symbol,
 * parameters). Each returns a CUptiResult. A group is a struct of function pointers in this order;
 * occ_library_bind() fills it from names in the same order. Each table of names is defined in the file that
 * binds the group, so that a library contains only the names that it uses.
 */
#pragma once

#include "activity_abi.h"
#include "profiler_abi.h"

#define OCC_CUPTI_SLOT(slot, symbol, parameters) uint32_t(*slot) parameters;
#define OCC_CUPTI_NAME(slot, symbol, parameters) symbol,

/* Activity records (the guest). Older libraries may lack get_dropped and the functions after it. */
#define OCC_CUPTI_ACTIVITY(X)                                                                                \
    X(register_callbacks, "cuptiActivityRegisterCallbacks",                                                  \
      (occ_cupti_buffer_requested * requested, occ_cupti_buffer_completed * completed))                      \
    X(enable, "cuptiActivityEnable", (uint32_t kind))                                                        \
    X(disable, "cuptiActivityDisable", (uint32_t kind))                                                      \
    X(flush_all, "cuptiActivityFlushAll", (uint32_t flags))                                                  \
    X(get_next_record, "cuptiActivityGetNextRecord", (uint8_t * buffer, size_t valid_bytes, void **record))  \
    X(get_dropped, "cuptiActivityGetNumDroppedRecords", (void *context, uint32_t stream, size_t *dropped))   \
    X(set_attribute, "cuptiActivitySetAttribute", (uint32_t attribute, size_t * bytes, void *value))         \
    X(get_attribute, "cuptiActivityGetAttribute", (uint32_t attribute, size_t * bytes, void *value))

/* External correlation numbers on a thread's launches (--nvtx); the last function exists since 12.5. */
#define OCC_CUPTI_EXTERNAL(X)                                                                                \
    X(push, "cuptiActivityPushExternalCorrelationId", (uint32_t kind, uint64_t id))                          \
    X(pop, "cuptiActivityPopExternalCorrelationId", (uint32_t kind, uint64_t * last_id))                     \
    X(enable_driver_api, "cuptiActivityEnableDriverApi", (uint32_t call, uint8_t on))

/* Configuration and evaluation of counters (host.h). */
#define OCC_CUPTI_HOST(X)                                                                                    \
    X(initialize, "cuptiProfilerInitialize", (struct occ_params_none *))                                     \
    X(chip_name, "cuptiDeviceGetChipName", (struct occ_params_chip_name *))                                  \
    X(begin, "cuptiProfilerHostInitialize", (struct occ_params_host *))                                      \
    X(end, "cuptiProfilerHostDeinitialize", (struct occ_params_object *))                                    \
    X(add_metrics, "cuptiProfilerHostConfigAddMetrics", (struct occ_params_metrics *))                       \
    X(config_size, "cuptiProfilerHostGetConfigImageSize", (struct occ_params_config *))                      \
    X(config, "cuptiProfilerHostGetConfigImage", (struct occ_params_config *))                               \
    X(passes, "cuptiProfilerHostGetNumOfPasses", (struct occ_params_passes *))                               \
    X(evaluate, "cuptiProfilerHostEvaluateToGpuValues", (struct occ_params_evaluate *))

/* Callbacks and the range profiler (injector/exact/). */
#define OCC_CUPTI_RANGE(X)                                                                                   \
    X(subscribe, "cuptiSubscribe", (void **subscriber, occ_callback *callback, void *user_data))             \
    X(unsubscribe, "cuptiUnsubscribe", (void *subscriber))                                                   \
    X(enable_callback, "cuptiEnableCallback",                                                                \
      (uint32_t enable, void *subscriber, uint32_t domain, uint32_t id))                                     \
    X(device_id, "cuptiGetDeviceId", (void *context, uint32_t *ret_device))                                  \
    X(availability, "cuptiProfilerGetCounterAvailability", (struct occ_params_availability *))               \
    X(enable, "cuptiRangeProfilerEnable", (struct occ_params_enable *))                                      \
    X(disable, "cuptiRangeProfilerDisable", (struct occ_params_object *))                                    \
    X(data_size, "cuptiRangeProfilerGetCounterDataSize", (struct occ_params_range_data_size *))              \
    X(data, "cuptiRangeProfilerCounterDataImageInitialize", (struct occ_params_data *))                      \
    X(set_config, "cuptiRangeProfilerSetConfig", (struct occ_params_range_config *))                         \
    X(start, "cuptiRangeProfilerStart", (struct occ_params_object *))                                        \
    X(stop, "cuptiRangeProfilerStop", (struct occ_params_range_stop *))                                      \
    X(decode, "cuptiRangeProfilerDecodeData", (struct occ_params_range_decode *))                            \
    X(info, "cuptiRangeProfilerGetCounterDataInfo", (struct occ_params_range_info *))

/* PM sampling (daemon/sampling/counters/). */
#define OCC_CUPTI_PM(X)                                                                                      \
    X(supported, "cuptiProfilerDeviceSupported", (struct occ_params_supported *))                            \
    X(availability, "cuptiPmSamplingGetCounterAvailability", (struct occ_params_availability *))             \
    X(enable, "cuptiPmSamplingEnable", (struct occ_params_enable *))                                         \
    X(disable, "cuptiPmSamplingDisable", (struct occ_params_object *))                                       \
    X(set_config, "cuptiPmSamplingSetConfig", (struct occ_params_pm_config *))                               \
    X(start, "cuptiPmSamplingStart", (struct occ_params_object *))                                           \
    X(stop, "cuptiPmSamplingStop", (struct occ_params_object *))                                             \
    X(decode, "cuptiPmSamplingDecodeData", (struct occ_params_pm_decode *))                                  \
    X(data_size, "cuptiPmSamplingGetCounterDataSize", (struct occ_params_pm_data_size *))                    \
    X(data, "cuptiPmSamplingCounterDataImageInitialize", (struct occ_params_data *))                         \
    X(info, "cuptiPmSamplingGetCounterDataInfo", (struct occ_params_pm_info *))                              \
    X(sample, "cuptiPmSamplingCounterDataGetSampleInfo", (struct occ_params_pm_sample *))

struct occ_cupti_activity {
    OCC_CUPTI_ACTIVITY(OCC_CUPTI_SLOT)
};
struct occ_cupti_external {
    OCC_CUPTI_EXTERNAL(OCC_CUPTI_SLOT)
};
struct occ_cupti_host_calls {
    OCC_CUPTI_HOST(OCC_CUPTI_SLOT)
};
struct occ_cupti_range {
    OCC_CUPTI_RANGE(OCC_CUPTI_SLOT)
};
struct occ_cupti_pm {
    OCC_CUPTI_PM(OCC_CUPTI_SLOT)
};
