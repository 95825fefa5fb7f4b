/*
 * Simulates a launch on a GPU, block by block: blocks of unequal length start on SMs as slots become free,
 * blocks with few neighbours on their SM may run faster, warps of a block end before the block. The result is
 * the launch's occupancy over its time. Independent of the estimation of occupancy. Pure; one thread.
 */
#pragma once

#include <stdint.h>

#define PHYSICS_BINS 32

/* Properties of a kernel and its GPU. */
struct physics_kernel {
    uint32_t sms, warps_per_sm; /* of the GPU */
    uint32_t grid_blocks, warps_per_block, blocks_per_sm;
    double block_spread; /* sigma of the logarithm of block durations */
    double early;        /* warps end early, by at most this part of their block's duration */
    double contention;   /* a block alone on its SM takes (1 / blocks_per_sm)^contention of the time */
    double ramp;         /* time until all slots have their first block, as a part of a block's duration */
};

/* Integrals over u = time in the launch / its duration, up to the end of each bin, as parts of the GPU's
 * maximum. until[PHYSICS_BINS] is the mean. */
struct physics_profile {
    double warps[PHYSICS_BINS + 1], active[PHYSICS_BINS + 1];
    double active_min, active_max;    /* least and most active SM, as parts of the launch's duration */
    double started[PHYSICS_BINS + 1]; /* part of the blocks that have started */
};

#define PHYSICS_UNITS 5 /* schedulers, device memory, L2, L1, tensor cores; as enum occ_utilization */

/* Use of the units by a kernel's instructions: integrals like a profile's, as parts of the units' peak. */
struct physics_busy {
    double until[PHYSICS_UNITS][PHYSICS_BINS + 1];
};

/* Makes the use of the units for a kernel with this profile and `level` times its warps. */
void physics_make_busy(const struct physics_kernel *kernel, const struct physics_profile *profile,
                       double level, uint64_t *random, struct physics_busy *ret_busy);

void physics_make_profile(const struct physics_kernel *kernel, uint64_t *random,
                          struct physics_profile *ret_profile);
/* Returns the integral up to u; `until`: warps, active or started of a profile, or a unit of physics_busy. */
double physics_until(const double *until, double u);
