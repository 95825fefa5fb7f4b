/*
 * Computes the blocks of a launch per SM, and the shared-memory carve-out that the driver would configure.
 *
 * The limits come from the toolkit's cuda_occupancy.h, so that the simulation is independent of occtrace's
 * own model. The carve-out is our model of the driver: with a preference, the smallest step that is not below
 * it and holds a block; without one, the smallest step that holds as many blocks as the other limits allow,
 * or the largest; from 8.0 on one step more for some kernels, as observed with real drivers.
 */
#pragma once

#include "gpu.h"

struct sim_demand {
    uint32_t threads; /* per block */
    uint32_t registers;
    uint32_t static_smem_bytes, dynamic_smem_bytes;
    uint32_t barriers;
    uint32_t cluster_blocks;  /* 0 or 1: no clusters */
    int32_t carveout_percent; /* -1: no preference */
};

/* Resources that limit the blocks of an SM. X(NAME, word of the counters' names) */
#define SIM_LIMITS_OF_SM(X)                                                                                  \
    X(REGISTERS, "register")                                                                                 \
    X(SMEM, "shmem")                                                                                         \
    X(BLOCKS, "cta")                                                                                         \
    X(WARPS, "warp")                                                                                         \
    X(BARRIERS, "barrier")

enum sim_limit {
#define X(name, word) SIM_LIMIT_##name,
    SIM_LIMITS_OF_SM(X)
#undef X
        SIM_LIMITS
};

struct sim_residency {
    uint32_t blocks_per_sm;       /* 0: does not fit */
    enum sim_limit limit;         /* the first of several limits; SMEM only if it alone limits */
    uint32_t smem_config_bytes;   /* carve-out */
    uint32_t max_active_clusters; /* 0 without clusters */
};

/* Computes the residency; false: no block fits (*ret is all 0). Pure; any thread. */
bool sim_residency(const struct sim_gpu *gpu, const struct sim_demand *demand, struct sim_residency *ret);

/* Returns the maximum threads of a block with this number of registers per thread; a multiple of a warp. */
uint32_t sim_max_threads(const struct sim_gpu *gpu, uint32_t registers);
