/* The steps of occ_analyse(), in their order, and changes of a launch. Internal to the model: each step reads
 * the results of the earlier ones; on any other status than OCC_OK the result is discarded. */
#pragma once

#include "advice.h"
#include "sweep.h"

/* The fields of struct occ_device that the table fills, with bounds far above any GPU: limits come from other
 * processes and files, and the bounds keep every product of the model below 2^32 (blocks, warps, registers,
 * bytes) or 2^64 (blocks of a grid). X(field, min, max) */
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
#define OCC_MAX_GRID_X   2147483647u /* from 3.0 on */
#define OCC_MAX_BARRIERS 16u         /* of a block */

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

/* Blocks per cluster; 1 without clusters. The launch has passed occ_model_check(). */
static inline uint32_t occ_cluster_size(const struct occ_launch *launch)
{
    uint32_t blocks = 1;
    for (int axis = 0; axis < 3; axis++)
        blocks *= launch->cluster[axis] ? launch->cluster[axis] : 1;
    return blocks;
}

/* True if a launch can request a carve-out by percentage (7.0 and later). */
bool occ_carveout_by_percent(const struct occ_device *device);

/* Device possible, dimensions in range, block and cluster allowed. */
enum occ_status occ_model_check(const struct occ_device *device, const struct occ_launch *launch);

/* Warps, registers and shared memory of a block, within the maxima of a block. */
enum occ_status occ_model_allocate(const struct occ_device *device, const struct occ_launch *launch,
                                   struct occ_result *result);

/* Blocks per SM under each resource, the limiters, active warps, and the blocks of a full wave. */
enum occ_status occ_model_limit(const struct occ_device *device, const struct occ_launch *launch,
                                struct occ_result *result);

/* Blocks per SM under all limits but the cluster's. */
uint32_t occ_model_resource_blocks(const uint32_t limit[OCC_LIMIT_COUNT]);
/* The same under the largest carve-out, and the limits there. */
uint32_t occ_model_largest_carveout(const struct occ_device *device, const struct occ_result *result,
                                    uint32_t ret_limit[OCC_LIMIT_COUNT]);

/* Threads of a block. The launch has passed occ_model_check(). */
static inline uint32_t occ_model_threads(const struct occ_launch *launch)
{
    return launch->block[0] * launch->block[1] * launch->block[2];
}

/* Threads of a row of blocks along x. */
uint64_t occ_model_threads_along_x(const struct occ_launch *launch);

/* Sets one parameter, and the parameters that change with it (listed in sweep.h). False: impossible, nothing
 * changed. */
bool occ_model_set(struct occ_launch *launch, enum occ_axis axis, uint32_t value);

/* ---- the parts of occ_advise(): each changes one parameter of the launch and offers the change; the model
 * decides whether it gains ---- */

struct adviser {
    const struct occ_device *device;
    const struct occ_launch *launch;
    const struct occ_result *result; /* result of the unchanged launch */
    struct occ_advice *list;
    size_t max;
    size_t count;
};

/* Adds a change with the results before it, which are the adviser's, and after it; beyond `max` it only
 * counts. */
void occ_adviser_add(struct adviser *a, const struct occ_advice *change, const struct occ_result *then);
/* Adds a change to the list if the model finds a gain. `change` has kind, launch, values and cost; the
 * results before and after are filled in. */
bool occ_adviser_offer(struct adviser *a, const struct occ_advice *change);
/* The same for a change of one parameter from `now` to `needed`. */
bool occ_adviser_change(struct adviser *a, enum occ_advice_kind kind, uint64_t now, uint64_t needed,
                        uint64_t cost_amount, const struct occ_launch *launch);

/* Registers, shared memory, carve-out, barriers: advice_resources.c. */
void occ_advise_resources(struct adviser *a);
