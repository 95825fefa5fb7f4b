/*
 * The steps of occ_analyse(), in the order in which they run. Internal to the model: each step reads what the
 * earlier ones wrote into the result, and on anything but OCC_OK the result is thrown away.
 */
#ifndef OCC_OCCUPANCY_MODEL_H
#define OCC_OCCUPANCY_MODEL_H

#include "occupancy.h"

/*
 * Every field of struct occ_device that the table fills, with the range in which a device is possible. The
 * bounds are far above any GPU; they exist because limits come from other processes and files, and they keep
 * every product of the model below 2^32 (blocks, warps, registers, bytes) or 2^64 (blocks of a grid).
 * X(field, smallest, largest)
 */
#define OCC_DEVICE_FIELDS(X)                                                                                 \
    X(warp_size, 32, 32)                                                                                     \
    X(max_threads_per_block, 1, 1u << 12)                                                                    \
    X(max_threads_per_sm, 32, 1u << 14)                                                                      \
    X(max_blocks_per_sm, 1, 1u << 10)                                                                        \
    X(registers_per_block, 1, 1u << 22)                                                                      \
    X(registers_per_sm, 1, 1u << 22)                                                                         \
    X(smem_per_block_bytes, 1, 1u << 26)                                                                     \
    X(smem_per_block_optin_bytes, 1, 1u << 26)                                                               \
    X(smem_per_sm_bytes, 1, 1u << 26)                                                                        \
    X(smem_reserved_per_block_bytes, 0, 1u << 20)                                                            \
    X(max_registers_per_thread, 1, 1u << 10)                                                                 \
    X(register_unit, 1, 1u << 12)                                                                            \
    X(warp_unit, 1, 1u << 4)                                                                                 \
    X(sub_partitions, 1, 1u << 4)                                                                            \
    X(smem_unit_bytes, 1, 1u << 16)                                                                          \
    X(max_barriers_per_sm, 1, OCC_NO_LIMIT)                                                                  \
    X(max_cluster_size, 1, 1u << 6)

#define OCC_MAX_SM_COUNT (1u << 16)

static inline uint32_t occ_min_u32(uint32_t a, uint32_t b)
{
    return b < a ? b : a;
}

static inline uint32_t occ_divide_up(uint32_t value, uint32_t divisor)
{
    return (value + divisor - 1) / divisor;
}

static inline uint32_t occ_round_up(uint32_t value, uint32_t unit)
{
    return occ_divide_up(value, unit) * unit;
}

/* Blocks of a cluster; 1 without clusters. The launch has passed occ_model_check(). */
static inline uint32_t occ_cluster_size(const struct occ_launch *launch)
{
    uint32_t blocks = 1;
    for (int axis = 0; axis < 3; axis++)
        blocks *= launch->cluster[axis] ? launch->cluster[axis] : 1;
    return blocks;
}

/* Whether a launch can ask for a carve-out by a percentage (7.0 and later). */
bool occ_carveout_by_percent(const struct occ_device *device);

/* Device possible, dimensions in range, block and cluster allowed. */
enum occ_status occ_model_check(const struct occ_device *device, const struct occ_launch *launch);

/* What one block takes: warps, registers, shared memory; and whether a block may take that much. */
enum occ_status occ_model_allocate(const struct occ_device *device, const struct occ_launch *launch,
                                   struct occ_result *result);

/* Blocks per SM under each resource, the limiters, resident warps, and the blocks of a full wave. */
enum occ_status occ_model_limit(const struct occ_device *device, const struct occ_launch *launch,
                                struct occ_result *result);

/* Fewest blocks per SM under every limit but the cluster's. */
uint32_t occ_model_resource_blocks(const uint32_t limit[OCC_LIMIT_COUNT]);

/* Waves and the expected occupancies. */
void occ_model_waves(const struct occ_device *device, const struct occ_launch *launch,
                     struct occ_result *result);

/* Gives the launch one-dimensional blocks of `threads` and the grid at least as many threads as it had, in whole
 * clusters. False: the grid would be too long; the launch is as it was. */
bool occ_model_set_block(struct occ_launch *launch, uint32_t threads);

/* The waterfall and the by-design marks. */
void occ_model_causes(const struct occ_device *device, const struct occ_launch *launch,
                      struct occ_result *result);

#endif
