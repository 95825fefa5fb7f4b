/*
 * What a launch does on a GPU, block by block: blocks of unequal length are put on SMs as places become free,
 * those that share an SM with few others may run faster, warps of a block end before it does. The result is
 * the launch's occupancy over its time. Knows nothing of how occupancy is estimated. Pure; one thread.
 */
#pragma once

#include <stdint.h>

#define PHYSICS_BINS 32

/* What a kernel is like. */
struct physics_kernel {
    uint32_t sms, warps_per_sm; /* of the GPU */
    uint32_t grid_blocks, warps_per_block, blocks_per_sm;
    double block_spread; /* of blocks' lengths: sigma of their logarithms */
    double early;        /* warps end early: by up to this part of their block's length */
    double contention;   /* a block alone on its SM takes (1 / blocks_per_sm)^contention of the time */
    double ramp;         /* part of a block's length until all places have their first block */
};

/* Integrals over u = time in the launch / its duration, up to the end of each bin; as parts of what the GPU
 * has. until[PHYSICS_BINS] is the mean. */
struct physics_profile {
    double warps[PHYSICS_BINS + 1], active[PHYSICS_BINS + 1];
    double active_min, active_max;    /* of the SMs, each a part of the launch's duration */
    double started[PHYSICS_BINS + 1]; /* part of the blocks that have started */
};

#define PHYSICS_UNITS 5 /* schedulers, device memory, L2, L1, tensor cores: as enum occ_utilization */

/* How instructions of a kernel keep the units busy: integrals as those of a profile, of what the GPU can do.
 */
struct physics_busy {
    double until[PHYSICS_UNITS][PHYSICS_BINS + 1];
};

/* Of a kernel with the profile, its warps at `level`. */
void physics_make_busy(const struct physics_kernel *kernel, const struct physics_profile *profile,
                       double level, uint64_t *random, struct physics_busy *ret_busy);

void physics_make_profile(const struct physics_kernel *kernel, uint64_t *random,
                          struct physics_profile *ret_profile);
/* The integral up to u; `until`: warps or active of a profile. */
double physics_until(const double *until, double u);
