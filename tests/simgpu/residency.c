/*
 * Resident blocks. See residency.h. Pure; any thread.
 */
#include "residency.h"

#include <cuda.h>
#include <cuda_occupancy.h>
#include <limits.h>

#define LIMIT(gpu, name) sim_gpu_limit(gpu, CU_DEVICE_ATTRIBUTE_##name)

static struct cudaOccDeviceProp properties_of(const struct sim_gpu *gpu)
{
    return (struct cudaOccDeviceProp){
        .computeMajor = (int)LIMIT(gpu, COMPUTE_CAPABILITY_MAJOR),
        .computeMinor = (int)LIMIT(gpu, COMPUTE_CAPABILITY_MINOR),
        .maxThreadsPerBlock = (int)LIMIT(gpu, MAX_THREADS_PER_BLOCK),
        .maxThreadsPerMultiprocessor = (int)LIMIT(gpu, MAX_THREADS_PER_MULTIPROCESSOR),
        .regsPerBlock = (int)LIMIT(gpu, MAX_REGISTERS_PER_BLOCK),
        .regsPerMultiprocessor = (int)LIMIT(gpu, MAX_REGISTERS_PER_MULTIPROCESSOR),
        .warpSize = (int)LIMIT(gpu, WARP_SIZE),
        .sharedMemPerBlock = LIMIT(gpu, MAX_SHARED_MEMORY_PER_BLOCK),
        .sharedMemPerMultiprocessor = LIMIT(gpu, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        .numSms = (int)LIMIT(gpu, MULTIPROCESSOR_COUNT),
        .sharedMemPerBlockOptin = LIMIT(gpu, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        .reservedSharedMemPerBlock = LIMIT(gpu, RESERVED_SHARED_MEMORY_PER_BLOCK),
    };
}

static bool limits_of(const struct sim_gpu *gpu, const struct sim_demand *demand, cudaOccResult *ret)
{
    struct cudaOccDeviceProp properties = properties_of(gpu);
    struct cudaOccDeviceState state = {CACHE_PREFER_NONE, SHAREDMEM_CARVEOUT_MAX_SHARED};
    struct cudaOccFuncAttributes function = {
        .maxThreadsPerBlock = INT_MAX,
        .numRegs = (int)demand->registers,
        .sharedSizeBytes = demand->static_smem_bytes,
        .partitionedGCConfig = PARTITIONED_GC_OFF,
        .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
        .maxDynamicSharedSizeBytes = properties.sharedMemPerBlockOptin,
        .numBlockBarriers = demand->barriers ? (int)demand->barriers : 1,
    };
    return cudaOccMaxActiveBlocksPerMultiprocessor(ret, &properties, &function, &state, (int)demand->threads,
                                                   demand->dynamic_smem_bytes) == CUDA_OCC_SUCCESS;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Returns the smallest step that holds `bytes`, or `more` steps above it, at most the largest. */
static uint32_t carveout_step(const struct sim_gpu *gpu, uint64_t bytes, uint32_t more)
{
    uint32_t step = 0;
    for (size_t i = 0; gpu->carveout_kib[i]; i++) {
        step = gpu->carveout_kib[i] * 1024u;
        if (step >= bytes && more-- == 0)
            break;
    }
    return step;
}

/* True for a third of the kernels: the driver's choice of kernels with one more step is unknown
 * (docs/decisions/0005). */
static bool takes_a_step_more(const struct sim_gpu *gpu, const struct sim_demand *demand)
{
    return LIMIT(gpu, COMPUTE_CAPABILITY_MAJOR) >= 8 && (demand->threads / 32 + demand->registers) % 3 == 0;
}

static uint32_t choose_carveout(const struct sim_gpu *gpu, const struct sim_demand *demand, uint32_t blocks,
                                uint32_t block_bytes)
{
    uint64_t wanted = (uint64_t)blocks * block_bytes;
    if (demand->carveout_percent >= 0) {
        uint64_t most = LIMIT(gpu, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
        wanted = most * (uint64_t)demand->carveout_percent / 100;
        if (wanted < block_bytes)
            wanted = block_bytes;
    }
    return carveout_step(gpu, wanted, demand->carveout_percent < 0 && takes_a_step_more(gpu, demand));
}

/* Returns the maximum of active clusters. A cluster runs inside one GPC; its blocks may share SMs. */
static uint32_t active_clusters(const struct sim_gpu *gpu, uint32_t blocks_per_sm, uint32_t cluster_blocks)
{
    uint32_t clusters = 0;
    for (size_t i = 0; i < SIM_GPU_MAX_GPCS; i++)
        clusters += gpu->gpc_sms[i] * blocks_per_sm / cluster_blocks;
    return clusters;
}

/* Returns the limiting resource: shared memory only if it alone limits, as the carve-out follows the other
 * limits. */
static enum sim_limit limit_of(const cudaOccResult *limits, bool by_smem, uint32_t blocks)
{
    if (by_smem)
        return SIM_LIMIT_SMEM;
    const uint32_t most[SIM_LIMITS] = {[SIM_LIMIT_REGISTERS] = (uint32_t)limits->blockLimitRegs,
                                       [SIM_LIMIT_BLOCKS] = (uint32_t)limits->blockLimitBlocks,
                                       [SIM_LIMIT_WARPS] = (uint32_t)limits->blockLimitWarps,
                                       [SIM_LIMIT_BARRIERS] = (uint32_t)limits->blockLimitBarriers};
    int limit = 0;
    while (limit < SIM_LIMITS - 1 && most[limit] != blocks)
        limit++;
    return (enum sim_limit)limit;
}

bool sim_residency(const struct sim_gpu *gpu, const struct sim_demand *demand, struct sim_residency *ret)
{
    cudaOccResult limits;
    *ret = (struct sim_residency){0};
    if (!demand->threads || !limits_of(gpu, demand, &limits) || limits.activeBlocksPerMultiprocessor <= 0)
        return false;
    uint32_t others =
        smaller(smaller((uint32_t)limits.blockLimitRegs, (uint32_t)limits.blockLimitWarps),
                smaller((uint32_t)limits.blockLimitBlocks, (uint32_t)limits.blockLimitBarriers));
    uint32_t block_bytes = (uint32_t)limits.allocatedSharedMemPerBlock;
    ret->smem_config_bytes = choose_carveout(gpu, demand, others, block_bytes);
    uint32_t smem_blocks = block_bytes ? ret->smem_config_bytes / block_bytes : UINT32_MAX;
    ret->blocks_per_sm = smaller(others, smem_blocks);
    ret->limit = limit_of(&limits, smem_blocks < others, ret->blocks_per_sm);
    if (demand->cluster_blocks > 1)
        ret->max_active_clusters = active_clusters(gpu, ret->blocks_per_sm, demand->cluster_blocks);
    return ret->blocks_per_sm > 0;
}

uint32_t sim_max_threads(const struct sim_gpu *gpu, uint32_t registers)
{
    uint32_t warp = LIMIT(gpu, WARP_SIZE), threads = LIMIT(gpu, MAX_THREADS_PER_BLOCK);
    cudaOccResult limits;
    for (; threads > warp; threads -= warp) {
        struct sim_demand demand = {.threads = threads, .registers = registers};
        if (limits_of(gpu, &demand, &limits) && limits.blockLimitRegs > 0)
            break;
    }
    return threads;
}
