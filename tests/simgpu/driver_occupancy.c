/*
 * The driver's own occupancy questions, answered from residency.c. Threads: any.
 */
#include "driver.h"

static CUresult blocks_of(CUfunction handle, int block_size, size_t dynamic_smem, uint32_t cluster_blocks,
                          struct sim_residency *ret)
{
    struct sim_context *context;
    struct sim_function *function;
    CUresult result = sim_current(&context);
    if (!result)
        result = sim_function_of(handle, &function);
    if (result)
        return result;
    if (block_size <= 0 || dynamic_smem > UINT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_launch launch = {.function = function,
                                .block = {(uint32_t)block_size, 1, 1},
                                .dynamic_smem_bytes = (uint32_t)dynamic_smem,
                                .carveout_percent = -1};
    struct sim_demand demand;
    sim_demand_of(&launch, context, &demand);
    demand.cluster_blocks = cluster_blocks;
    bool bounded = function->kernel->max_threads && (uint32_t)block_size > function->kernel->max_threads;
    if (bounded || dynamic_smem > function->max_dynamic_smem_bytes ||
        !sim_residency(context->device->gpu, &demand, ret))
        *ret = (struct sim_residency){0};
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize)
{
    struct sim_residency residency;
    CUresult result = blocks_of(func, blockSize, dynamicSMemSize, 0, &residency);
    if (!result && numBlocks)
        *numBlocks = (int)residency.blocks_per_sm;
    return result || numBlocks ? result : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize,
                                                              size_t dynamicSMemSize, unsigned int flags)
{
    (void)flags;
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, func, blockSize, dynamicSMemSize);
}

/* Finds the block size with the most resident threads; the largest one if several are equal. */
CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit)
{
    struct sim_context *context;
    int most = 0, best = 0, best_blocks = 0;
    CUresult result = sim_current(&context);
    if (!result)
        result = cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, func);
    if (result)
        return result;
    if (!minGridSize || !blockSize)
        return CUDA_ERROR_INVALID_VALUE;
    if (blockSizeLimit > 0 && blockSizeLimit < most)
        most = blockSizeLimit;
    for (int size = most; size > 0; size = (size - 1) / 32 * 32) {
        struct sim_residency residency;
        size_t smem = blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(size) : dynamicSMemSize;
        result = blocks_of(func, size, smem, 0, &residency);
        if (result)
            return result;
        if ((int)residency.blocks_per_sm * size > best_blocks * best) {
            best = size;
            best_blocks = (int)residency.blocks_per_sm;
        }
    }
    *blockSize = best;
    *minGridSize =
        best_blocks * (int)sim_gpu_limit(context->device->gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit,
                                                   unsigned int flags)
{
    (void)flags;
    return cuOccupancyMaxPotentialBlockSize(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
                                            dynamicSMemSize, blockSizeLimit);
}

/* Finds the largest dynamic shared memory with which `numBlocks` blocks still fit, by bisection. */
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func, int numBlocks,
                                                 int blockSize)
{
    struct sim_function *function;
    struct sim_residency residency;
    CUresult result = sim_function_of(func, &function);
    if (result || !dynamicSmemSize || numBlocks <= 0)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    size_t low = 0, high = function->max_dynamic_smem_bytes;
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        result = blocks_of(func, blockSize, middle, 0, &residency);
        if (result)
            return result;
        if ((int)residency.blocks_per_sm >= numBlocks)
            low = middle;
        else
            high = middle - 1;
    }
    *dynamicSmemSize = low;
    return CUDA_SUCCESS;
}

static uint32_t cluster_of(const struct sim_launch *shape, const struct sim_function *function)
{
    const uint32_t *cluster = shape->cluster[0] ? shape->cluster : function->cluster;
    if (!cluster[0])
        cluster = function->kernel->cluster;
    return cluster[0] * cluster[1] * cluster[2];
}

CUresult cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
    struct sim_function *function;
    struct sim_residency residency;
    CUresult result = sim_function_of(func, &function);
    if (result || !numClusters || !config)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    struct sim_launch shape = {0};
    sim_launch_attributes(config, &shape);
    uint32_t blocks = cluster_of(&shape, function);
    int threads = (int)(config->blockDimX * config->blockDimY * config->blockDimZ);
    if (blocks < 1)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    result = blocks_of(func, threads, config->sharedMemBytes, blocks, &residency);
    if (!result)
        *numClusters = (int)residency.max_active_clusters;
    return result;
}

CUresult cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
    struct sim_context *context;
    struct sim_function *function;
    CUresult result = sim_current(&context);
    if (!result)
        result = sim_function_of(func, &function);
    if (result || !clusterSize || !config)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    if (!sim_gpu_limit(context->device->gpu, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    *clusterSize = function->non_portable_cluster ? 16 : 8;
    return CUDA_SUCCESS;
}
