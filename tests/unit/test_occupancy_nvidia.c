/* See test_occupancy_nvidia.h. */
#include "test_occupancy_nvidia.h"

#include <cuda_occupancy.h>

static uint32_t blocks_or_none(int limit)
{
    return limit == INT_MAX ? UINT32_MAX : (uint32_t)limit;
}

static struct cudaOccDeviceProp properties_of(const struct nvidia_device *device)
{
    return (struct cudaOccDeviceProp){
        .computeMajor = (int)(device->cc / 10),
        .computeMinor = (int)(device->cc % 10),
        .maxThreadsPerBlock = (int)device->threads_per_block,
        .maxThreadsPerMultiprocessor = (int)device->threads_per_sm,
        .regsPerBlock = (int)device->registers_per_block,
        .regsPerMultiprocessor = (int)device->registers_per_sm,
        .warpSize = (int)device->warp_size,
        .sharedMemPerBlock = device->smem_per_block_bytes,
        .sharedMemPerMultiprocessor = device->smem_per_sm_bytes,
        .numSms = (int)device->sm_count,
        .sharedMemPerBlockOptin = device->smem_per_block_optin_bytes,
        .reservedSharedMemPerBlock = device->smem_reserved_bytes,
    };
}

static struct cudaOccFuncAttributes attributes_of(const struct nvidia_launch *launch)
{
    return (struct cudaOccFuncAttributes){
        .maxThreadsPerBlock = INT_MAX,
        .numRegs = (int)launch->registers,
        .sharedSizeBytes = launch->static_smem_bytes,
        .partitionedGCConfig = PARTITIONED_GC_OFF,
        .shmemLimitConfig = launch->optin ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT,
        .maxDynamicSharedSizeBytes =
            launch->max_dynamic_known ? launch->max_dynamic_bytes : launch->dynamic_smem_bytes,
        .numBlockBarriers = (int)launch->barriers,
    };
}

bool nvidia_occupancy(const struct nvidia_device *device, const struct nvidia_launch *launch,
                      struct nvidia_result *result)
{
    struct cudaOccDeviceProp properties = properties_of(device);
    struct cudaOccFuncAttributes attributes = attributes_of(launch);
    struct cudaOccDeviceState state = {(cudaOccCacheConfig)launch->cache_preference,
                                       launch->carveout_percent};
    struct cudaOccResult made = {0};
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&made, &properties, &attributes, &state, (int)launch->threads,
                                                launch->dynamic_smem_bytes) != CUDA_OCC_SUCCESS)
        return false;
    *result = (struct nvidia_result){
        .blocks = (uint32_t)made.activeBlocksPerMultiprocessor,
        .by_warps = blocks_or_none(made.blockLimitWarps),
        .by_registers = blocks_or_none(made.blockLimitRegs),
        .by_smem = blocks_or_none(made.blockLimitSharedMem),
        .by_blocks = blocks_or_none(made.blockLimitBlocks),
        .by_barriers = blocks_or_none(made.blockLimitBarriers),
        .warps_limit = made.limitingFactors & OCC_LIMIT_WARPS,
        .registers_limit = made.limitingFactors & OCC_LIMIT_REGISTERS,
        .smem_limits = made.limitingFactors & OCC_LIMIT_SHARED_MEMORY,
        .blocks_limit = made.limitingFactors & OCC_LIMIT_BLOCKS,
        .barriers_limit = made.limitingFactors & OCC_LIMIT_BARRIERS,
        .registers_per_block = (uint32_t)made.allocatedRegistersPerBlock,
        .smem_per_block_bytes = (uint32_t)made.allocatedSharedMemPerBlock,
    };
    return true;
}

uint32_t nvidia_best_block(const struct nvidia_device *device, const struct nvidia_launch *launch)
{
    struct cudaOccDeviceProp properties = properties_of(device);
    struct cudaOccFuncAttributes attributes = attributes_of(launch);
    struct cudaOccDeviceState state = {CACHE_PREFER_NONE, launch->carveout_percent};
    int grid = 0, block = 0;
    if (cudaOccMaxPotentialOccupancyBlockSize(&grid, &block, &properties, &attributes, &state, NULL,
                                              launch->dynamic_smem_bytes) != CUDA_OCC_SUCCESS)
        return 0;
    return (uint32_t)block;
}

uint32_t nvidia_carveout(const struct nvidia_device *device, const struct nvidia_launch *launch)
{
    struct cudaOccDeviceProp properties = properties_of(device);
    struct cudaOccDeviceState state = {(cudaOccCacheConfig)launch->cache_preference,
                                       launch->carveout_percent};
    size_t bytes = 0;
    if (cudaOccSMemPerMultiprocessor(&bytes, &properties, &state) != CUDA_OCC_SUCCESS)
        return 0;
    return (uint32_t)bytes;
}
