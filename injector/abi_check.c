/*
 * Compiled only where the toolkit's headers are: our picture of CUPTI's interface (cupti_abi.h) against
 * NVIDIA's. Holds nothing but assertions.
 */
#include "cupti_abi.h"

#include <cupti.h>

#define SAME(ours, theirs) static_assert((long long)(ours) == (long long)(theirs), #ours " is not " #theirs)

SAME(OCC_CUPTI_SUCCESS, CUPTI_SUCCESS);
SAME(OCC_CUPTI_ERROR_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(OCC_CUPTI_ERROR_NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE);
SAME(OCC_CUPTI_ERROR_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
SAME(OCC_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(OCC_CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(OCC_CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_POOL_LIMIT, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
SAME(OCC_CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
SAME(OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_PRE_ALLOCATE, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE);

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
FIELD(smem_config, sharedMemoryConfig);
FIELD(registers_per_thread, registersPerThread);
FIELD(start_ns, start);
FIELD(end_ns, end);
FIELD(completed_ns, completed);
FIELD(device, deviceId);
FIELD(context, contextId);
FIELD(stream, streamId);
THREE(grid, grid);
THREE(block, block);
FIELD(static_smem_bytes, staticSharedMemory);
FIELD(dynamic_smem_bytes, dynamicSharedMemory);
FIELD(local_bytes_per_thread, localMemoryPerThread);
FIELD(local_bytes_total, localMemoryTotal);
FIELD(correlation, correlationId);
FIELD(grid_id, gridId);
FIELD(name, name);
FIELD(queued_ns, queued);
FIELD(submitted_ns, submitted);
FIELD(launch_type, launchType);
FIELD(carveout_is_requested, isSharedMemoryCarveoutRequested);
FIELD(carveout_percent, sharedMemoryCarveoutRequested);
FIELD(smem_executed_bytes, sharedMemoryExecuted);
FIELD(graph_node, graphNodeId);
FIELD(smem_limit_config, shmemLimitConfig);
FIELD(graph, graphId);
FIELD(access_policy_window, pAccessPolicyWindow);
FIELD(channel, channelID);
FIELD(channel_type, channelType);
THREE(cluster, cluster);
FIELD(cluster_scheduling_policy, clusterSchedulingPolicy);
FIELD(local_bytes_total_v2, localMemoryTotal_v2);
FIELD(max_cluster_size, maxPotentialClusterSize);
FIELD(max_active_clusters, maxActiveClusters);
SAME(CUPTI_FUNC_SHMEM_LIMIT_OPTIN, 1);
#if CUPTI_API_VERSION >= 130000
FIELD(device_launched, isDeviceLaunched);
SAME(OCC_CUPTI_KERNEL_BYTES_13, sizeof(kernel_record));
#else
SAME(OCC_CUPTI_KERNEL_BYTES_12, sizeof(kernel_record));
#endif

/* The functions are called through our own types; these compile only if CUPTI's are the same but for names. */
static_assert(sizeof(CUptiResult) == sizeof(uint32_t) && sizeof(CUpti_ActivityKind) == sizeof(uint32_t) &&
                  sizeof(CUpti_ActivityAttribute) == sizeof(uint32_t) && sizeof(CUcontext) == sizeof(void *),
              "enumerations and handles have the sizes that cupti_table.def passes");

/* ---- what --exact uses, from 13.0 on only ---- */

#if CUPTI_API_VERSION >= 130000
#include "profiler_abi.h"
#include "profiler_calls.h"

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
SAME(OCC_PROFILER_AUTO_RANGE, CUPTI_AutoRange);
SAME(OCC_PROFILER_KERNEL_REPLAY, CUPTI_KernelReplay);
#define X(name, number, what) SAME(number, CUPTI_DRIVER_TRACE_CBID_##name);
OCC_PROFILER_CALLS(X)
#undef X

#define AT(ours, our_field, theirs, their_field)                                                             \
    SAME(offsetof(struct ours, our_field), offsetof(theirs, their_field));                                   \
    SAME(sizeof(((struct ours *)0)->our_field), sizeof(((theirs *)0)->their_field))

AT(occ_callback_data, site, CUpti_CallbackData, callbackSite);
AT(occ_callback_data, context, CUpti_CallbackData, context);
AT(occ_callback_data, context_id, CUpti_CallbackData, contextUid);
AT(occ_callback_data, correlation, CUpti_CallbackData, correlationId);
AT(occ_callback_resource, context, CUpti_ResourceData, context);
AT(occ_params_none, reserved, CUpti_Profiler_Initialize_Params, pPriv);
AT(occ_params_chip_name, device, CUpti_Device_GetChipName_Params, deviceIndex);
AT(occ_params_chip_name, name, CUpti_Device_GetChipName_Params, pChipName);
AT(occ_params_availability, context, CUpti_Profiler_GetCounterAvailability_Params, ctx);
AT(occ_params_availability, image_bytes, CUpti_Profiler_GetCounterAvailability_Params,
   counterAvailabilityImageSize);
AT(occ_params_availability, image, CUpti_Profiler_GetCounterAvailability_Params, pCounterAvailabilityImage);
AT(occ_params_host, type, CUpti_Profiler_Host_Initialize_Params, profilerType);
AT(occ_params_host, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
AT(occ_params_host, availability, CUpti_Profiler_Host_Initialize_Params, pCounterAvailabilityImage);
AT(occ_params_host, host, CUpti_Profiler_Host_Initialize_Params, pHostObject);
AT(occ_params_host_end, host, CUpti_Profiler_Host_Deinitialize_Params, pHostObject);
AT(occ_params_metrics, host, CUpti_Profiler_Host_ConfigAddMetrics_Params, pHostObject);
AT(occ_params_metrics, names, CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames);
AT(occ_params_metrics, count, CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics);
AT(occ_params_config_bytes, config_bytes, CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize);
AT(occ_params_config, config_bytes, CUpti_Profiler_Host_GetConfigImage_Params, configImageSize);
AT(occ_params_config, config, CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage);
AT(occ_params_passes, config_bytes, CUpti_Profiler_Host_GetNumOfPasses_Params, configImageSize);
AT(occ_params_passes, config, CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage);
AT(occ_params_passes, passes, CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses);
AT(occ_params_evaluate, host, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pHostObject);
AT(occ_params_evaluate, image, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pCounterDataImage);
AT(occ_params_evaluate, image_bytes, CUpti_Profiler_Host_EvaluateToGpuValues_Params, counterDataImageSize);
AT(occ_params_evaluate, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
AT(occ_params_evaluate, names, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
AT(occ_params_evaluate, count, CUpti_Profiler_Host_EvaluateToGpuValues_Params, numMetrics);
AT(occ_params_evaluate, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues);
AT(occ_params_enable, context, CUpti_RangeProfiler_Enable_Params, ctx);
AT(occ_params_enable, profiler, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);
AT(occ_params_profiler, profiler, CUpti_RangeProfiler_Start_Params, pRangeProfilerObject);
AT(occ_params_profiler, profiler, CUpti_RangeProfiler_Disable_Params, pRangeProfilerObject);
AT(occ_params_image_bytes, profiler, CUpti_RangeProfiler_GetCounterDataSize_Params, pRangeProfilerObject);
AT(occ_params_image_bytes, names, CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames);
AT(occ_params_image_bytes, count, CUpti_RangeProfiler_GetCounterDataSize_Params, numMetrics);
AT(occ_params_image_bytes, most_ranges, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumOfRanges);
AT(occ_params_image_bytes, most_nodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes);
AT(occ_params_image_bytes, image_bytes, CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize);
AT(occ_params_image, image_bytes, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, counterDataSize);
AT(occ_params_image, image, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData);
AT(occ_params_set_config, profiler, CUpti_RangeProfiler_SetConfig_Params, pRangeProfilerObject);
AT(occ_params_set_config, config_bytes, CUpti_RangeProfiler_SetConfig_Params, configSize);
AT(occ_params_set_config, config, CUpti_RangeProfiler_SetConfig_Params, pConfig);
AT(occ_params_set_config, image_bytes, CUpti_RangeProfiler_SetConfig_Params, counterDataImageSize);
AT(occ_params_set_config, image, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
AT(occ_params_set_config, range, CUpti_RangeProfiler_SetConfig_Params, range);
AT(occ_params_set_config, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode);
AT(occ_params_set_config, most_ranges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
AT(occ_params_set_config, nesting_levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels);
AT(occ_params_set_config, least_nesting_level, CUpti_RangeProfiler_SetConfig_Params, minNestingLevel);
AT(occ_params_set_config, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
AT(occ_params_set_config, target_nesting_level, CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel);
AT(occ_params_stop, profiler, CUpti_RangeProfiler_Stop_Params, pRangeProfilerObject);
AT(occ_params_stop, pass, CUpti_RangeProfiler_Stop_Params, passIndex);
AT(occ_params_stop, is_complete, CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted);
AT(occ_params_decode, profiler, CUpti_RangeProfiler_DecodeData_Params, pRangeProfilerObject);
AT(occ_params_decode, dropped, CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped);
AT(occ_params_ranges, image, CUpti_RangeProfiler_GetCounterDataInfo_Params, pCounterDataImage);
AT(occ_params_ranges, image_bytes, CUpti_RangeProfiler_GetCounterDataInfo_Params, counterDataImageSize);
AT(occ_params_ranges, ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params, numTotalRanges);
#endif
