/*
 * Random launches and devices for the model's properties; a program of tests has one sequence, started by
 * setting random_state.
 */
#pragma once

#include "occupancy/occupancy.h"

#include <string.h>

static uint64_t random_state;

/* xorshift64* */
static inline uint32_t below(uint32_t bound)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t)((random_state * 0x2545F4914F6CDD1Dull >> 32) * bound >> 32);
}

static inline uint32_t skewed(uint32_t bound)
{
    return below(below(bound) + 1);
}

static inline uint32_t clip(uint32_t value, uint32_t max)
{
    return value < max ? value : max;
}

static inline struct occ_launch random_launch(const struct occ_device *device)
{
    static const uint32_t cluster_sizes[] = {0, 1, 2, 4, 8, 16};
    uint32_t cluster = cluster_sizes[below(6)];
    if (cluster > device->max_cluster_size)
        cluster = 0;
    uint32_t scale = below(4) == 0 ? 65535 : 64;
    uint32_t max_registers = device->max_registers_per_thread;
    return (struct occ_launch){
        .grid = {(1 + skewed(scale)) * (cluster ? cluster : 1), 1 + skewed(scale), 1 + skewed(4)},
        .block = {1 + below(256), 1 + below(4), 1},
        .cluster = {cluster, 0, 0},
        .registers_per_thread = clip(1 + skewed(device->cc < 70 ? max_registers : 256), max_registers),
        .static_smem_bytes = below(2) ? skewed(16384) : 0,
        .dynamic_smem_bytes = below(2) ? skewed(device->smem_per_block_optin_bytes) : 0,
        .smem_config_bytes = below(2) ? below(device->smem_per_sm_bytes + 1000) : 0,
        .carveout_percent = (int32_t)below(102) - 1,
        .barriers = below(17),
        .max_active_clusters = below(2) ? below(200) : 0,
    };
}

/* A number of SMs; half of the large devices say how they are spread over GPCs, of at least 16 SMs each. */
static inline void random_sms(struct occ_device *device)
{
    static const uint32_t sm_counts[] = {1, 7, 20, 108, 132, 1000};
    device->sm_count = sm_counts[below(6)];
    memset(device->gpc_sms, 0, sizeof(device->gpc_sms));
    if (device->sm_count < 100 || below(2))
        return;
    uint32_t left = device->sm_count;
    size_t gpcs = 0;
    for (; left >= 32 && gpcs < OCC_MAX_GPCS - 1; gpcs++) {
        device->gpc_sms[gpcs] = 16 + below(left - 31 < 8 ? left - 31 : 8);
        left -= device->gpc_sms[gpcs];
    }
    device->gpc_sms[gpcs] = left;
}
