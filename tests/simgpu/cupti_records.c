/*
 * Activity records with the layouts of the toolkit's headers and the lengths of the simulated version.
 *
 * Records have only ever grown at the end, so that an older version's record is a prefix of the newest one
 * (cupti_activity.h and cupti_activity_deprecated.h have the lengths below and their CUDA versions).
 * Records of versions newer than these headers are unknown: here they have a tail of made-up length,
 * full of 0xA5, to catch a client that reads beyond the known members. Pure; any thread.
 */
#include "cupti_double.h"

#include <cupti_activity_deprecated.h>
#include <string.h>

#define UNKNOWN_TAIL_BYTES 8
#define UNKNOWN_TAIL_BYTE  0xA5

struct length {
    CUpti_ActivityKind kind;
    uint32_t since; /* cuptiGetVersion */
    size_t bytes;
};

/* Sorted by kind, oldest first. */
static const struct length lengths[] = {
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 10, sizeof(CUpti_ActivityKernel4)},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 13, sizeof(CUpti_ActivityKernel5)},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 15, sizeof(CUpti_ActivityKernel6)},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 17, sizeof(CUpti_ActivityKernel7)},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 18, sizeof(CUpti_ActivityKernel8)},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 19, sizeof(CUpti_ActivityKernel9)},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 130000, sizeof(CUpti_ActivityKernel10)},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 130100, sizeof(CUpti_ActivityKernel10) + UNKNOWN_TAIL_BYTES},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 130200, sizeof(CUpti_ActivityKernel10) + 2 * UNKNOWN_TAIL_BYTES},
    {CUPTI_ACTIVITY_KIND_MEMCPY, 17, sizeof(CUpti_ActivityMemcpy5)},
    {CUPTI_ACTIVITY_KIND_MEMCPY, 26, sizeof(CUpti_ActivityMemcpy6)},
    {CUPTI_ACTIVITY_KIND_MEMSET, 17, sizeof(CUpti_ActivityMemset4)},
    {CUPTI_ACTIVITY_KIND_DRIVER, 10, sizeof(CUpti_ActivityAPI)},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 10, sizeof(CUpti_ActivityExternalCorrelation)},
    {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 17, sizeof(CUpti_ActivityGraphTrace)},
    {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 26, sizeof(CUpti_ActivityGraphTrace2)},
};

size_t sim_record_bytes(CUpti_ActivityKind kind, uint32_t version)
{
    size_t bytes = 0;
    if (kind == CUPTI_ACTIVITY_KIND_KERNEL)
        kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        if (lengths[i].kind == kind && lengths[i].since <= version)
            bytes = lengths[i].bytes;
    }
    return bytes;
}

static uint32_t low32(uint64_t bytes)
{
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

static void fill_kernel(CUpti_ActivityKernel10 *r, const struct sim_activity *a)
{
    const struct sim_kernel_activity *k = &a->kernel;
    r->cacheConfig.config.requested = k->cache_config & 15;
    r->cacheConfig.config.executed = k->cache_config & 15;
    r->registersPerThread = (uint16_t)k->registers;
    r->start = a->start_ns;
    r->end = r->completed = a->end_ns;
    r->deviceId = a->device;
    r->contextId = a->context;
    r->streamId = a->stream;
    r->gridX = (int32_t)k->grid[0];
    r->gridY = (int32_t)k->grid[1];
    r->gridZ = (int32_t)k->grid[2];
    r->blockX = (int32_t)k->block[0];
    r->blockY = (int32_t)k->block[1];
    r->blockZ = (int32_t)k->block[2];
    r->staticSharedMemory = (int32_t)k->static_smem_bytes;
    r->dynamicSharedMemory = (int32_t)k->dynamic_smem_bytes;
    r->localMemoryPerThread = k->local_bytes;
    r->localMemoryTotal = low32(k->local_total_bytes);
    r->localMemoryTotal_v2 = k->local_total_bytes;
    r->correlationId = a->correlation;
    r->gridId = (int64_t)k->grid_id;
    r->name = k->name;
    r->launchType = k->cooperative ? CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE
                                   : CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR;
    r->isSharedMemoryCarveoutRequested = k->carveout_percent >= 0;
    r->sharedMemoryCarveoutRequested = k->carveout_percent >= 0 ? (uint8_t)k->carveout_percent : 0;
    r->sharedMemoryExecuted = k->smem_config_bytes;
    r->graphNodeId = a->graph_node;
    r->shmemLimitConfig = k->smem_optin ? CUPTI_FUNC_SHMEM_LIMIT_OPTIN : CUPTI_FUNC_SHMEM_LIMIT_DEFAULT;
    r->graphId = a->graph;
    r->channelID = a->stream;
    r->channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
    r->clusterX = k->cluster[0];
    r->clusterY = k->cluster[1];
    r->clusterZ = k->cluster[2];
    r->clusterSchedulingPolicy = k->cluster_policy;
    r->maxPotentialClusterSize = k->max_cluster_blocks;
    r->maxActiveClusters = k->max_active_clusters;
}

static uint8_t memory_kind(CUmemorytype type)
{
    return type == CU_MEMORYTYPE_HOST ? CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE
                                      : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
}

static uint8_t copy_kind(const struct sim_copy_activity *copy)
{
    if (copy->from == CU_MEMORYTYPE_HOST)
        return copy->to == CU_MEMORYTYPE_HOST ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOH
                                              : CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    return copy->to == CU_MEMORYTYPE_HOST ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH : CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
}

static void fill_copy(CUpti_ActivityMemcpy6 *r, const struct sim_activity *a)
{
    r->copyKind = copy_kind(&a->copy);
    r->srcKind = memory_kind(a->copy.from);
    r->dstKind = memory_kind(a->copy.to);
    r->flags = a->copy.asynchronous ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
    r->bytes = a->copy.bytes;
    r->start = a->start_ns;
    r->end = a->end_ns;
    r->deviceId = a->device;
    r->contextId = a->context;
    r->streamId = a->stream;
    r->correlationId = a->correlation;
    r->graphNodeId = a->graph_node;
    r->graphId = a->graph;
    r->channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
    r->copyCount = 1;
}

static void fill_set(CUpti_ActivityMemset4 *r, const struct sim_activity *a)
{
    r->value = a->set.value;
    r->bytes = a->set.bytes;
    r->start = a->start_ns;
    r->end = a->end_ns;
    r->deviceId = a->device;
    r->contextId = a->context;
    r->streamId = a->stream;
    r->correlationId = a->correlation;
    r->flags = a->set.asynchronous ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
    r->memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    r->graphNodeId = a->graph_node;
    r->graphId = a->graph;
    r->channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
}

static void fill_graph(CUpti_ActivityGraphTrace2 *r, const struct sim_activity *a)
{
    r->correlationId = a->correlation;
    r->start = a->start_ns;
    r->end = a->end_ns;
    r->deviceId = r->endDeviceId = a->device;
    r->graphId = a->graph;
    r->contextId = r->endContextId = a->context;
    r->streamId = a->stream;
}

union record {
    CUpti_ActivityKind kind;
    CUpti_ActivityKernel10 kernel;
    CUpti_ActivityMemcpy6 copy;
    CUpti_ActivityMemset4 set;
    CUpti_ActivityGraphTrace2 graph;
    uint8_t bytes[SIM_RECORD_MAX_BYTES];
};

size_t sim_record_write(const struct sim_activity *activity, CUpti_ActivityKind kind, uint32_t version,
                        uint8_t *to)
{
    union record record;
    memset(&record, 0, sizeof record);
    memset(record.bytes + sizeof record.kernel, UNKNOWN_TAIL_BYTE, sizeof record - sizeof record.kernel);
    switch (activity->kind) {
    case SIM_ACTIVITY_KERNEL:
        fill_kernel(&record.kernel, activity);
        break;
    case SIM_ACTIVITY_MEMCPY:
        fill_copy(&record.copy, activity);
        break;
    case SIM_ACTIVITY_MEMSET:
        fill_set(&record.set, activity);
        break;
    case SIM_ACTIVITY_GRAPH:
        fill_graph(&record.graph, activity);
        break;
    }
    record.kind = kind;
    size_t bytes = sim_record_bytes(kind, version);
    memcpy(to, record.bytes, bytes);
    return bytes;
}

/* Returns the offset of start; 0: a record without times. */
static size_t start_offset(const uint8_t *record)
{
    CUpti_ActivityKind kind;
    memcpy(&kind, record, sizeof kind);
    switch ((int)kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return offsetof(CUpti_ActivityMemcpy6, start);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return offsetof(CUpti_ActivityMemset4, start);
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return offsetof(CUpti_ActivityAPI, start);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return 0;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        return offsetof(CUpti_ActivityGraphTrace2, start);
    default:
        return offsetof(CUpti_ActivityKernel10, start);
    }
}

/* `end` follows `start` in every kind with times. */
void sim_record_set_times(uint8_t *record, uint64_t start_ns, uint64_t end_ns)
{
    uint64_t times[2] = {start_ns, end_ns};
    size_t at = start_offset(record);
    if (at)
        memcpy(record + at, times, sizeof times);
}

void sim_record_times(const uint8_t *record, uint64_t *ret_start_ns, uint64_t *ret_end_ns)
{
    uint64_t times[2] = {0, 0};
    size_t at = start_offset(record);
    if (at)
        memcpy(times, record + at, sizeof times);
    *ret_start_ns = times[0];
    *ret_end_ns = times[1];
}
