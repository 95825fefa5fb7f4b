/*
 * Compares cupti/'s declarations of CUPTI's binary interface with NVIDIA's headers, if the toolkit is
 * installed. All checks are static assertions; the built program does nothing.
 */
#include "cupti/activity_abi.h"
#include "cupti/profiler_abi.h"
#include "injector/exact/driver_calls.h"

#include <cupti.h>
#include <cupti_activity_deprecated.h>

#define SAME(ours, theirs) static_assert((long long)(ours) == (long long)(theirs), #ours " is not " #theirs)

SAME(OCC_CUPTI_SUCCESS, CUPTI_SUCCESS);
SAME(OCC_CUPTI_ERROR_INVALID_DEVICE, CUPTI_ERROR_INVALID_DEVICE);
SAME(OCC_CUPTI_ERROR_INVALID_OPERATION, CUPTI_ERROR_INVALID_OPERATION);
SAME(OCC_CUPTI_ERROR_OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY);
SAME(OCC_CUPTI_ERROR_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(OCC_CUPTI_ERROR_NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE);
SAME(OCC_CUPTI_ERROR_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
SAME(OCC_CUPTI_ERROR_HARDWARE_BUSY, CUPTI_ERROR_HARDWARE_BUSY);
SAME(OCC_CUPTI_ERROR_VIRTUALIZED_DEVICE, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED);
SAME(OCC_CUPTI_ERROR_VIRTUALIZED_DEVICE_PRIVILEGES, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
SAME(OCC_CUPTI_ERROR_CONFIDENTIAL_COMPUTING, CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED);
SAME(OCC_CUPTI_ERROR_CRYPTO_MINING_DEVICE, CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED);
SAME(OCC_CUPTI_ERROR_MIG_DEVICE, CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED);
SAME(OCC_CUPTI_ERROR_WSL_DEVICE, CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED);
SAME(OCC_CUPTI_ERROR_NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED);
SAME(OCC_CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME(OCC_CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED);
SAME(OCC_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(OCC_CUPTI_ERROR_UNKNOWN, CUPTI_ERROR_UNKNOWN);
SAME(OCC_CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(OCC_CUPTI_KIND_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME(OCC_CUPTI_KIND_EXTERNAL, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
SAME(OCC_CUPTI_EXTERNAL_KIND, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2);
SAME(sizeof(struct occ_cupti_external_record), sizeof(CUpti_ActivityExternalCorrelation));
SAME(offsetof(struct occ_cupti_external_record, external_kind),
     offsetof(CUpti_ActivityExternalCorrelation, externalKind));
SAME(offsetof(struct occ_cupti_external_record, external_id),
     offsetof(CUpti_ActivityExternalCorrelation, externalId));
SAME(offsetof(struct occ_cupti_external_record, correlation),
     offsetof(CUpti_ActivityExternalCorrelation, correlationId));
#define MEMORY(ours, theirs)                                                                                 \
    SAME(offsetof(struct occ_cupti_memory_record, ours), offsetof(CUpti_ActivityMemcpy5, theirs));           \
    SAME(offsetof(struct occ_cupti_memory_record, ours), offsetof(CUpti_ActivityMemset4, theirs))
MEMORY(kind, kind);
MEMORY(bytes, bytes);
MEMORY(start_ns, start);
MEMORY(end_ns, end);
MEMORY(device, deviceId);
MEMORY(context, contextId);
MEMORY(stream, streamId);
MEMORY(correlation, correlationId);
MEMORY(channel_type, channelType);
SAME(OCC_CUPTI_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(OCC_CUPTI_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(OCC_CUPTI_CHANNEL_COMPUTE, CUPTI_CHANNEL_TYPE_COMPUTE);
#define CALL(name, number) SAME(number, CUPTI_DRIVER_TRACE_CBID_##name);
OCC_CUPTI_LAUNCH_CALLS(CALL)
SAME(OCC_CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_POOL_LIMIT, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
SAME(OCC_CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
SAME(OCC_CUPTI_ATTRIBUTE_PER_THREAD_BUFFER, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
SAME(OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_PRE_ALLOCATE, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE);

/* ---- kernel records ---- */

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
#endif

#define FIELD(ours, theirs)                                                                                  \
    SAME(offsetof(struct occ_cupti_kernel, ours), offsetof(kernel_record, theirs));                          \
    SAME(sizeof(((struct occ_cupti_kernel *)0)->ours), sizeof(((kernel_record *)0)->theirs))
#define THREE(ours, theirs)                                                                                  \
    SAME(offsetof(struct occ_cupti_kernel, ours), offsetof(kernel_record, theirs##X));                       \
    SAME(offsetof(struct occ_cupti_kernel, ours) + 4, offsetof(kernel_record, theirs##Y));                   \
    SAME(offsetof(struct occ_cupti_kernel, ours) + 8, offsetof(kernel_record, theirs##Z))

FIELD(kind, kind);
FIELD(cache_config, cacheConfig);
FIELD(registers_per_thread, registersPerThread);
FIELD(start_ns, start);
FIELD(end_ns, end);
FIELD(device, deviceId);
FIELD(context, contextId);
FIELD(stream, streamId);
THREE(grid, grid);
THREE(block, block);
FIELD(static_smem_bytes, staticSharedMemory);
FIELD(dynamic_smem_bytes, dynamicSharedMemory);
FIELD(local_bytes_per_thread, localMemoryPerThread);
FIELD(correlation, correlationId);
FIELD(name, name);
FIELD(launch_type, launchType);
FIELD(carveout_is_requested, isSharedMemoryCarveoutRequested);
FIELD(carveout_percent, sharedMemoryCarveoutRequested);
FIELD(smem_executed_bytes, sharedMemoryExecuted);
FIELD(graph_node, graphNodeId);
FIELD(smem_limit_config, shmemLimitConfig);
THREE(cluster, cluster);
FIELD(max_cluster_size, maxPotentialClusterSize);
FIELD(max_active_clusters, maxActiveClusters);
SAME(CUPTI_FUNC_SHMEM_LIMIT_OPTIN, 1);
#if CUPTI_API_VERSION >= 130000
FIELD(device_launched, isDeviceLaunched);
SAME(OCC_CUPTI_KERNEL_BYTES_13, sizeof(kernel_record));
#else
SAME(OCC_CUPTI_KERNEL_BYTES_12, sizeof(kernel_record));
#endif

/* cupti/functions.h passes these as integers and pointers. */
static_assert(sizeof(CUptiResult) == sizeof(uint32_t) && sizeof(CUpti_ActivityKind) == sizeof(uint32_t) &&
                  sizeof(CUpti_ActivityAttribute) == sizeof(uint32_t) && sizeof(CUcontext) == sizeof(void *),
              "enumerations and handles have the sizes that cupti/functions.h passes");

/* ---- callbacks, profiler host, range profiler, PM sampling: from 13.0 on only ---- */

#if CUPTI_API_VERSION >= 130000
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

SAME(OCC_CALLBACK_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
SAME(OCC_CALLBACK_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
SAME(OCC_CALLBACK_ENTER, CUPTI_API_ENTER);
SAME(OCC_CALLBACK_EXIT, CUPTI_API_EXIT);
SAME(OCC_RESOURCE_CONTEXT_DESTROY_STARTING, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
SAME(OCC_PROFILER_TYPE_RANGE, CUPTI_PROFILER_TYPE_RANGE_PROFILER);
SAME(OCC_PROFILER_TYPE_PM_SAMPLING, CUPTI_PROFILER_TYPE_PM_SAMPLING);
SAME(OCC_PROFILER_AUTO_RANGE, CUPTI_AutoRange);
SAME(OCC_PROFILER_KERNEL_REPLAY, CUPTI_KernelReplay);
SAME(OCC_PM_TRIGGER_SYSTEM_CLOCK, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL);
SAME(OCC_PM_TRIGGER_TIME, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);
SAME(OCC_PM_KEEP_OLDEST, CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST);
SAME(OCC_PM_KEEP_LATEST, CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST);
SAME(OCC_PM_STOP_IMAGE_FULL, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL);
#define X(name, number, what) SAME(number, CUPTI_DRIVER_TRACE_CBID_##name);
OCC_DRIVER_CALLS(X)
#undef X

#define AT(ours, our_field, theirs, their_field)                                                             \
    SAME(offsetof(struct ours, our_field), offsetof(theirs, their_field));                                   \
    SAME(sizeof(((struct ours *)0)->our_field), sizeof(((theirs *)0)->their_field))

/* The stream is the first parameter of the calls that begin or end a capture or destroy a stream. */
#define OCC_STREAM_LAUNCH(name)
#define OCC_STREAM_GRAPH(name)
#define OCC_STREAM_STRAY(name)
#define OCC_STREAM_BEGIN(name) SAME(offsetof(name##_params, hStream), 0);
#define OCC_STREAM_END         OCC_STREAM_BEGIN
#define OCC_STREAM_DESTROY     OCC_STREAM_BEGIN
#define X(name, number, what)  OCC_STREAM_##what(name)
OCC_DRIVER_CALLS(X)
#undef X
SAME(sizeof(CUstream), sizeof(uintptr_t));

AT(occ_callback_data, function_parameters, CUpti_CallbackData, functionParams);
AT(occ_callback_data, function_result, CUpti_CallbackData, functionReturnValue);
AT(occ_callback_data, site, CUpti_CallbackData, callbackSite);
AT(occ_callback_data, context, CUpti_CallbackData, context);
AT(occ_callback_data, context_id, CUpti_CallbackData, contextUid);
AT(occ_callback_data, correlation, CUpti_CallbackData, correlationId);
AT(occ_callback_resource, context, CUpti_ResourceData, context);

/* Checks the size of our struct against NVIDIA's parameter struct, as NVIDIA computes it; AT checks the
 * fields. */
#define PARAMS(bytes, theirs) SAME(bytes, theirs##_STRUCT_SIZE)

#define T CUpti_Profiler_Initialize_Params
PARAMS(sizeof(struct occ_params_none), CUpti_Profiler_Initialize_Params);
AT(occ_params_none, reserved, T, pPriv);
#undef T
#define T CUpti_Device_GetChipName_Params
PARAMS(sizeof(struct occ_params_chip_name), CUpti_Device_GetChipName_Params);
AT(occ_params_chip_name, device, T, deviceIndex);
AT(occ_params_chip_name, name, T, pChipName);
#undef T
#define T CUpti_Profiler_DeviceSupported_Params
PARAMS(OCC_SUPPORTED_SIZE, CUpti_Profiler_DeviceSupported_Params);
AT(occ_params_supported, device, T, cuDevice);
AT(occ_params_supported, supported, T, isSupported);
AT(occ_params_supported, architecture, T, architecture);
AT(occ_params_supported, sli, T, sli);
AT(occ_params_supported, vgpu, T, vGpu);
AT(occ_params_supported, confidential_computing, T, confidentialCompute);
AT(occ_params_supported, crypto_mining, T, cmp);
AT(occ_params_supported, wsl, T, wsl);
AT(occ_params_supported, api, T, api);
SAME(OCC_PROFILER_API_PM_SAMPLING, CUPTI_PROFILER_PM_SAMPLING);
SAME(OCC_PROFILER_UNSUPPORTED, CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED);
SAME(OCC_PROFILER_DISABLED, CUPTI_PROFILER_CONFIGURATION_DISABLED);
#undef T
#define T CUpti_Profiler_GetCounterAvailability_Params
PARAMS(sizeof(struct occ_params_availability), CUpti_Profiler_GetCounterAvailability_Params);
AT(occ_params_availability, subject, T, ctx);
AT(occ_params_availability, image.size, T, counterAvailabilityImageSize);
AT(occ_params_availability, image.bytes, T, pCounterAvailabilityImage);
#undef T
#define T CUpti_PmSampling_GetCounterAvailability_Params
PARAMS(sizeof(struct occ_params_availability), CUpti_PmSampling_GetCounterAvailability_Params);
AT(occ_params_availability, subject, T, deviceIndex);
AT(occ_params_availability, image.size, T, counterAvailabilityImageSize);
AT(occ_params_availability, image.bytes, T, pCounterAvailabilityImage);
#undef T
#define T CUpti_Profiler_Host_Initialize_Params
PARAMS(sizeof(struct occ_params_host), CUpti_Profiler_Host_Initialize_Params);
AT(occ_params_host, type, T, profilerType);
AT(occ_params_host, chip, T, pChipName);
AT(occ_params_host, availability, T, pCounterAvailabilityImage);
AT(occ_params_host, object, T, pHostObject);
#undef T
PARAMS(sizeof(struct occ_params_object), CUpti_Profiler_Host_Deinitialize_Params);
AT(occ_params_object, object, CUpti_Profiler_Host_Deinitialize_Params, pHostObject);
#define T CUpti_Profiler_Host_ConfigAddMetrics_Params
PARAMS(sizeof(struct occ_params_metrics), CUpti_Profiler_Host_ConfigAddMetrics_Params);
AT(occ_params_metrics, object, T, pHostObject);
AT(occ_params_metrics, metrics.names, T, ppMetricNames);
AT(occ_params_metrics, metrics.count, T, numMetrics);
#undef T
#define T CUpti_Profiler_Host_GetConfigImageSize_Params
PARAMS(OCC_CONFIG_SIZE_SIZE, CUpti_Profiler_Host_GetConfigImageSize_Params);
AT(occ_params_config, object, T, pHostObject);
AT(occ_params_config, config.size, T, configImageSize);
#undef T
#define T CUpti_Profiler_Host_GetConfigImage_Params
PARAMS(sizeof(struct occ_params_config), CUpti_Profiler_Host_GetConfigImage_Params);
AT(occ_params_config, object, T, pHostObject);
AT(occ_params_config, config.size, T, configImageSize);
AT(occ_params_config, config.bytes, T, pConfigImage);
#undef T
#define T CUpti_Profiler_Host_GetNumOfPasses_Params
PARAMS(sizeof(struct occ_params_passes), CUpti_Profiler_Host_GetNumOfPasses_Params);
AT(occ_params_passes, config.size, T, configImageSize);
AT(occ_params_passes, config.bytes, T, pConfigImage);
AT(occ_params_passes, passes, T, numOfPasses);
#undef T
#define T CUpti_Profiler_Host_EvaluateToGpuValues_Params
PARAMS(sizeof(struct occ_params_evaluate), CUpti_Profiler_Host_EvaluateToGpuValues_Params);
AT(occ_params_evaluate, object, T, pHostObject);
AT(occ_params_evaluate, data, T, pCounterDataImage);
AT(occ_params_evaluate, data_size, T, counterDataImageSize);
AT(occ_params_evaluate, range, T, rangeIndex);
AT(occ_params_evaluate, metrics.names, T, ppMetricNames);
AT(occ_params_evaluate, metrics.count, T, numMetrics);
AT(occ_params_evaluate, values, T, pMetricValues);
#undef T

/* Range profiler. */
PARAMS(sizeof(struct occ_params_enable), CUpti_RangeProfiler_Enable_Params);
AT(occ_params_enable, subject, CUpti_RangeProfiler_Enable_Params, ctx);
AT(occ_params_enable, object, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);
PARAMS(sizeof(struct occ_params_object), CUpti_RangeProfiler_Start_Params);
AT(occ_params_object, object, CUpti_RangeProfiler_Start_Params, pRangeProfilerObject);
PARAMS(sizeof(struct occ_params_object), CUpti_RangeProfiler_Disable_Params);
AT(occ_params_object, object, CUpti_RangeProfiler_Disable_Params, pRangeProfilerObject);
#define T CUpti_RangeProfiler_GetCounterDataSize_Params
PARAMS(sizeof(struct occ_params_range_data_size), CUpti_RangeProfiler_GetCounterDataSize_Params);
AT(occ_params_range_data_size, object, T, pRangeProfilerObject);
AT(occ_params_range_data_size, metrics.names, T, pMetricNames);
AT(occ_params_range_data_size, metrics.count, T, numMetrics);
AT(occ_params_range_data_size, max_ranges, T, maxNumOfRanges);
AT(occ_params_range_data_size, max_nodes, T, maxNumRangeTreeNodes);
AT(occ_params_range_data_size, data_size, T, counterDataSize);
#undef T
#define T CUpti_RangeProfiler_CounterDataImage_Initialize_Params
PARAMS(sizeof(struct occ_params_data), CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
AT(occ_params_data, object, T, pRangeProfilerObject);
AT(occ_params_data, data.size, T, counterDataSize);
AT(occ_params_data, data.bytes, T, pCounterData);
#undef T
#define T CUpti_RangeProfiler_SetConfig_Params
PARAMS(OCC_RANGE_CONFIG_SIZE, CUpti_RangeProfiler_SetConfig_Params);
AT(occ_params_range_config, object, T, pRangeProfilerObject);
AT(occ_params_range_config, config.size, T, configSize);
AT(occ_params_range_config, config.bytes, T, pConfig);
AT(occ_params_range_config, data.size, T, counterDataImageSize);
AT(occ_params_range_config, data.bytes, T, pCounterDataImage);
AT(occ_params_range_config, range, T, range);
AT(occ_params_range_config, replay, T, replayMode);
AT(occ_params_range_config, max_ranges, T, maxRangesPerPass);
AT(occ_params_range_config, nesting_levels, T, numNestingLevels);
AT(occ_params_range_config, min_nesting_level, T, minNestingLevel);
AT(occ_params_range_config, pass, T, passIndex);
AT(occ_params_range_config, target_nesting_level, T, targetNestingLevel);
#undef T
#define T CUpti_RangeProfiler_Stop_Params
PARAMS(OCC_RANGE_STOP_SIZE, CUpti_RangeProfiler_Stop_Params);
AT(occ_params_range_stop, object, T, pRangeProfilerObject);
AT(occ_params_range_stop, pass, T, passIndex);
AT(occ_params_range_stop, is_complete, T, isAllPassSubmitted);
#undef T
#define T CUpti_RangeProfiler_DecodeData_Params
PARAMS(sizeof(struct occ_params_range_decode), CUpti_RangeProfiler_DecodeData_Params);
AT(occ_params_range_decode, object, T, pRangeProfilerObject);
AT(occ_params_range_decode, dropped, T, numOfRangeDropped);
#undef T
#define T CUpti_RangeProfiler_GetCounterDataInfo_Params
PARAMS(sizeof(struct occ_params_range_info), CUpti_RangeProfiler_GetCounterDataInfo_Params);
AT(occ_params_range_info, data, T, pCounterDataImage);
AT(occ_params_range_info, data_size, T, counterDataImageSize);
AT(occ_params_range_info, ranges, T, numTotalRanges);
#undef T

/* PM sampling. */
PARAMS(sizeof(struct occ_params_enable), CUpti_PmSampling_Enable_Params);
AT(occ_params_enable, subject, CUpti_PmSampling_Enable_Params, deviceIndex);
AT(occ_params_enable, object, CUpti_PmSampling_Enable_Params, pPmSamplingObject);
PARAMS(sizeof(struct occ_params_object), CUpti_PmSampling_Disable_Params);
AT(occ_params_object, object, CUpti_PmSampling_Disable_Params, pPmSamplingObject);
PARAMS(sizeof(struct occ_params_object), CUpti_PmSampling_Start_Params);
AT(occ_params_object, object, CUpti_PmSampling_Start_Params, pPmSamplingObject);
PARAMS(sizeof(struct occ_params_object), CUpti_PmSampling_Stop_Params);
AT(occ_params_object, object, CUpti_PmSampling_Stop_Params, pPmSamplingObject);
#define T CUpti_PmSampling_SetConfig_Params
PARAMS(sizeof(struct occ_params_pm_config), CUpti_PmSampling_SetConfig_Params);
AT(occ_params_pm_config, object, T, pPmSamplingObject);
AT(occ_params_pm_config, config.size, T, configSize);
AT(occ_params_pm_config, config.bytes, T, pConfig);
AT(occ_params_pm_config, buffer_bytes, T, hardwareBufferSize);
AT(occ_params_pm_config, interval, T, samplingInterval);
AT(occ_params_pm_config, trigger, T, triggerMode);
AT(occ_params_pm_config, append_mode, T, hwBufferAppendMode);
#undef T
#define T CUpti_PmSampling_GetCounterDataSize_Params
PARAMS(sizeof(struct occ_params_pm_data_size), CUpti_PmSampling_GetCounterDataSize_Params);
AT(occ_params_pm_data_size, object, T, pPmSamplingObject);
AT(occ_params_pm_data_size, metrics.names, T, pMetricNames);
AT(occ_params_pm_data_size, metrics.count, T, numMetrics);
AT(occ_params_pm_data_size, max_samples, T, maxSamples);
AT(occ_params_pm_data_size, data_size, T, counterDataSize);
#undef T
#define T CUpti_PmSampling_CounterDataImage_Initialize_Params
PARAMS(sizeof(struct occ_params_data), CUpti_PmSampling_CounterDataImage_Initialize_Params);
AT(occ_params_data, object, T, pPmSamplingObject);
AT(occ_params_data, data.size, T, counterDataSize);
AT(occ_params_data, data.bytes, T, pCounterData);
#undef T
#define T CUpti_PmSampling_DecodeData_Params
PARAMS(OCC_PM_DECODE_SIZE, CUpti_PmSampling_DecodeData_Params);
AT(occ_params_pm_decode, object, T, pPmSamplingObject);
AT(occ_params_pm_decode, data, T, pCounterDataImage);
AT(occ_params_pm_decode, data_size, T, counterDataImageSize);
AT(occ_params_pm_decode, stop_reason, T, decodeStopReason);
AT(occ_params_pm_decode, overflow, T, overflow);
#undef T
#define T CUpti_PmSampling_GetCounterDataInfo_Params
PARAMS(sizeof(struct occ_params_pm_info), CUpti_PmSampling_GetCounterDataInfo_Params);
AT(occ_params_pm_info, data, T, pCounterDataImage);
AT(occ_params_pm_info, data_size, T, counterDataImageSize);
AT(occ_params_pm_info, completed, T, numCompletedSamples);
#undef T
#define T CUpti_PmSampling_CounterData_GetSampleInfo_Params
PARAMS(sizeof(struct occ_params_pm_sample), CUpti_PmSampling_CounterData_GetSampleInfo_Params);
AT(occ_params_pm_sample, object, T, pPmSamplingObject);
AT(occ_params_pm_sample, data, T, pCounterDataImage);
AT(occ_params_pm_sample, data_size, T, counterDataImageSize);
AT(occ_params_pm_sample, index, T, sampleIndex);
AT(occ_params_pm_sample, start_ns, T, startTimestamp);
AT(occ_params_pm_sample, end_ns, T, endTimestamp);
#endif

int main(void)
{
    return 0;
}
