/*
 * NVIDIA's calculator behind our types. It lives in a file of its own because cuda_occupancy.h and
 * occupancy.h both say OCC_LIMIT_*.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct nvidia_device {
    uint32_t cc;
    uint32_t sm_count;
    uint32_t warp_size;
    uint32_t threads_per_block;
    uint32_t threads_per_sm;
    uint32_t registers_per_block;
    uint32_t registers_per_sm;
    uint32_t smem_per_block_bytes;
    uint32_t smem_per_block_optin_bytes;
    uint32_t smem_per_sm_bytes;
    uint32_t smem_reserved_bytes;
};

struct nvidia_launch {
    uint32_t threads;
    uint32_t registers;
    uint32_t static_smem_bytes;
    uint32_t dynamic_smem_bytes;
    uint32_t barriers;
    int carveout_percent;
    bool optin;
    bool max_dynamic_known; /* false: as much as the launch needs */
    uint32_t max_dynamic_bytes;
    int cache_preference; /* 0 none, 1 shared memory, 2 L1, 3 equal: before 7.0 only */
};

/* Limits in blocks per SM; UINT32_MAX: does not limit. */
struct nvidia_result {
    uint32_t blocks;
    uint32_t by_warps;
    uint32_t by_registers;
    uint32_t by_smem;
    uint32_t by_blocks;
    uint32_t by_barriers;
    bool warps_limit;
    bool registers_limit;
    bool smem_limits;
    bool blocks_limit;
    bool barriers_limit;
    uint32_t registers_per_block;
    uint32_t smem_per_block_bytes;
};

/* False: cuda_occupancy.h refuses the input. */
bool nvidia_occupancy(const struct nvidia_device *device, const struct nvidia_launch *launch,
                      struct nvidia_result *result);

/* Block size that cudaOccMaxPotentialOccupancyBlockSize() recommends; 0: it refuses. */
uint32_t nvidia_best_block(const struct nvidia_device *device, const struct nvidia_launch *launch);

/* Shared memory that an SM has for the launch's carve-out or cache preference; 0: refused. */
uint32_t nvidia_carveout(const struct nvidia_device *device, const struct nvidia_launch *launch);
