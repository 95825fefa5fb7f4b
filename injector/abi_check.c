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
