/*
 * Allocation of a block and the number of blocks per SM under each resource. Integer arithmetic only.
 *
 * The rules of NVIDIA's occupancy calculator (cuda_occupancy.h; test_occupancy_oracle compares the two):
 *   warps      floor(warps of an SM / warps of a block)
 *   registers  a warp gets registers_per_thread x 32 rounded up to register_unit. Each register file (sub-
 *              partition) holds whole warps: floor(floor(registers per file / registers per warp) x files /
 *              warps of a block). At launch the hardware compares registers per warp x warps rounded up to
 *              warp_unit with the registers per block
 *   shared     static + dynamic + the system's reserve, rounded up to smem_unit_bytes, of the carve-out; one
 *              too small for a block is raised to the smallest that holds it
 *   blocks     a constant of the SM
 *   barriers   floor(barriers of an SM / barriers of a block)
 *   cluster    see occupancy.h
 *
 * Threads: any.
 */
#include "model.h"

#define GRID_X_MAX_BEFORE_30     65535u
#define GRID_YZ_MAX              65535u
#define BLOCK_XY_MAX             1024u
#define BLOCK_Z_MAX              64u
#define FIRST_CC_WITH_WIDE_GRIDS 30u

/* All SMs are in a GPC, and the list ends with its first 0. */
static bool gpcs_possible(const struct occ_device *device)
{
    uint64_t sms = 0;
    bool ended = false;
    for (int i = 0; i < OCC_MAX_GPCS; i++) {
        if (ended && device->gpc_sms[i] > 0)
            return false;
        ended = device->gpc_sms[i] == 0;
        sms += device->gpc_sms[i];
    }
    return sms == device->sm_count;
}

static bool device_possible(const struct occ_device *device)
{
    bool possible = device->sm_count >= 1 && device->sm_count <= OCC_MAX_SM_COUNT;
#define CHECK(field, min, max)                                                                               \
    possible = possible && device->field - (uint32_t)(min) <= (uint32_t)(max) - (uint32_t)(min);
    OCC_DEVICE_FIELDS(CHECK)
    return possible && (device->gpc_sms[0] == 0 || gpcs_possible(device));
}

/* 1 <= value <= max; 0 wraps around. */
static bool within(uint32_t value, uint32_t max)
{
    return value - 1 < max;
}

static bool grid_valid(const struct occ_device *device, const uint32_t grid[3])
{
    uint32_t x_max = device->cc < FIRST_CC_WITH_WIDE_GRIDS ? GRID_X_MAX_BEFORE_30 : OCC_MAX_GRID_X;
    return within(grid[0], x_max) && within(grid[1], GRID_YZ_MAX) && within(grid[2], GRID_YZ_MAX);
}

static bool block_valid(const struct occ_device *device, const uint32_t block[3])
{
    return within(block[0], BLOCK_XY_MAX) && within(block[1], BLOCK_XY_MAX) &&
           within(block[2], BLOCK_Z_MAX) && block[0] * block[1] * block[2] <= device->max_threads_per_block;
}

static bool cluster_valid(const struct occ_device *device, const struct occ_launch *launch)
{
    for (int axis = 0; axis < 3; axis++) {
        uint32_t blocks = launch->cluster[axis];
        if (blocks > device->max_cluster_size || (blocks > 1 && launch->grid[axis] % blocks != 0))
            return false;
    }
    return occ_cluster_size(launch) <= device->max_cluster_size;
}

enum occ_status occ_model_check(const struct occ_device *device, const struct occ_launch *launch)
{
    if (!device_possible(device))
        return OCC_BAD_DEVICE;
    if (!grid_valid(device, launch->grid))
        return OCC_BAD_GRID;
    if (!block_valid(device, launch->block))
        return OCC_BAD_BLOCK;
    if (!within(launch->registers_per_thread, device->max_registers_per_thread))
        return OCC_BAD_REGISTERS;
    if (!cluster_valid(device, launch))
        return OCC_BAD_CLUSTER;
    if (launch->barriers > OCC_MAX_BARRIERS)
        return OCC_BAD_BARRIERS;
    if (launch->smem_config_bytes == 0 && (launch->carveout_percent < -1 || launch->carveout_percent > 100))
        return OCC_BAD_CARVEOUT;
    return OCC_OK;
}

static enum occ_status allocate_registers(const struct occ_device *device, const struct occ_launch *launch,
                                          struct occ_result *result)
{
    uint32_t per_warp = occ_round_up(launch->registers_per_thread * device->warp_size, device->register_unit);
    uint32_t checked_warps = occ_round_up(result->warps_per_block, device->warp_unit);
    if (per_warp * checked_warps > device->registers_per_block)
        return OCC_BAD_REGISTERS;
    result->registers_per_warp = per_warp;
    result->registers_per_block = per_warp * result->warps_per_block;
    return OCC_OK;
}

/* True if the kernel has not opted in to more shared memory per block than the default. */
static bool default_smem_limit(const struct occ_device *device, const struct occ_launch *launch)
{
    if (launch->smem_optin_known && !launch->smem_optin)
        return true;
    if (!launch->max_dynamic_smem_known)
        return false;
    uint64_t largest_block = (uint64_t)launch->static_smem_bytes + launch->max_dynamic_smem_bytes +
                             device->smem_reserved_per_block_bytes;
    return largest_block <= device->smem_per_block_bytes;
}

static enum occ_status allocate_smem(const struct occ_device *device, const struct occ_launch *launch,
                                     struct occ_result *result)
{
    if (launch->max_dynamic_smem_known && launch->dynamic_smem_bytes > launch->max_dynamic_smem_bytes)
        return OCC_BAD_SMEM;
    uint32_t reserved = device->smem_reserved_per_block_bytes;
    bool default_limit = default_smem_limit(device, launch);
    uint32_t max =
        (default_limit ? device->smem_per_block_bytes : device->smem_per_block_optin_bytes) + reserved;
    uint64_t asked = (uint64_t)launch->static_smem_bytes + launch->dynamic_smem_bytes + reserved;
    if (asked > max || occ_round_up((uint32_t)asked, device->smem_unit_bytes) > max)
        return OCC_BAD_SMEM;
    result->smem_per_block_bytes = occ_round_up((uint32_t)asked, device->smem_unit_bytes);
    return OCC_OK;
}

enum occ_status occ_model_allocate(const struct occ_device *device, const struct occ_launch *launch,
                                   struct occ_result *result)
{
    result->warps_per_block = occ_divide_up(occ_model_threads(launch), device->warp_size);
    enum occ_status status = allocate_registers(device, launch, result);
    if (status != OCC_OK)
        return status;
    return allocate_smem(device, launch, result);
}

/* The driver's carve-out, or its choice for the preference; large enough for a block. */
static uint32_t chosen_carveout(const struct occ_device *device, const struct occ_launch *launch,
                                uint32_t block_bytes)
{
    uint32_t bytes = device->smem_per_sm_bytes;
    if (launch->smem_config_bytes > 0)
        bytes = occ_min_u32(launch->smem_config_bytes, bytes);
    else if (launch->carveout_percent >= 0)
        bytes = occ_carveout_at_least(device,
                                      (uint32_t)((uint64_t)bytes * (uint32_t)launch->carveout_percent / 100));
    return bytes >= block_bytes ? bytes : occ_carveout_at_least(device, block_bytes);
}

static uint32_t register_limit(const struct occ_device *device, const struct occ_result *result)
{
    uint32_t warps_per_file = device->registers_per_sm / device->sub_partitions / result->registers_per_warp;
    return warps_per_file * device->sub_partitions / result->warps_per_block;
}

static uint32_t barrier_limit(const struct occ_device *device, const struct occ_launch *launch)
{
    if (launch->barriers == 0 || device->max_barriers_per_sm == OCC_NO_LIMIT)
        return OCC_NO_LIMIT;
    return device->max_barriers_per_sm / launch->barriers;
}

static uint32_t smem_limit(uint32_t carveout, uint32_t block_bytes)
{
    return block_bytes > 0 ? carveout / block_bytes : OCC_NO_LIMIT;
}

uint32_t occ_model_resource_blocks(const uint32_t limit[OCC_LIMIT_COUNT])
{
    uint32_t blocks = OCC_NO_LIMIT;
    for (int i = 0; i < OCC_LIMIT_COUNT; i++)
        if (i != OCC_LIMIT_CLUSTER)
            blocks = occ_min_u32(blocks, limit[i]);
    return blocks;
}

/* The reason why no block fits, although the block is within the limits of a block: an SM may have fewer
 * resources. */
static enum occ_status nothing_fits(const struct occ_result *result)
{
    if (result->limit[OCC_LIMIT_WARPS] == 0)
        return OCC_BAD_BLOCK;
    if (result->limit[OCC_LIMIT_REGISTERS] == 0)
        return OCC_BAD_REGISTERS;
    if (result->limit[OCC_LIMIT_SMEM] == 0)
        return OCC_BAD_SMEM;
    return OCC_BAD_BARRIERS;
}

/* Maximum active clusters: the driver's number, or the whole clusters of each GPC. `fitting`: if all SMs were
 * one GPC. */
static uint32_t active_clusters(const struct occ_device *device, const struct occ_launch *launch,
                                uint32_t resource_blocks, uint32_t fitting)
{
    if (launch->max_active_clusters > 0 || device->gpc_sms[0] == 0)
        return launch->max_active_clusters > 0 ? occ_min_u32(launch->max_active_clusters, fitting) : fitting;
    uint32_t size = occ_cluster_size(launch);
    uint32_t clusters = 0;
    for (int i = 0; i < OCC_MAX_GPCS && device->gpc_sms[i] > 0; i++)
        clusters += device->gpc_sms[i] * resource_blocks / size;
    return clusters;
}

/* The limit by clusters, and the clusters of a wave, where the other limits allow `resource_blocks`. */
static uint32_t cluster_limit(const struct occ_device *device, const struct occ_launch *launch,
                              uint32_t resource_blocks, uint32_t *ret_clusters)
{
    uint32_t size = occ_cluster_size(launch);
    uint32_t fitting = device->sm_count * resource_blocks / size;
    uint32_t clusters = size > 1 ? active_clusters(device, launch, resource_blocks, fitting) : fitting;
    *ret_clusters = clusters;
    return clusters < fitting ? occ_divide_up(clusters * size, device->sm_count) : OCC_NO_LIMIT;
}

/* Sets the blocks of a full wave and the limit by clusters. False: not one cluster fits on the device. */
static bool limit_clusters(const struct occ_device *device, const struct occ_launch *launch,
                           uint32_t resource_blocks, struct occ_result *result)
{
    uint32_t clusters;
    result->limit[OCC_LIMIT_CLUSTER] = cluster_limit(device, launch, resource_blocks, &clusters);
    result->wave_blocks = (uint64_t)clusters * occ_cluster_size(launch);
    return clusters > 0;
}

uint32_t occ_model_largest_carveout(const struct occ_device *device, const struct occ_result *result,
                                    uint32_t ret_limit[OCC_LIMIT_COUNT])
{
    for (int i = 0; i < OCC_LIMIT_COUNT; i++)
        ret_limit[i] = result->limit[i];
    ret_limit[OCC_LIMIT_SMEM] = smem_limit(device->smem_per_sm_bytes, result->smem_per_block_bytes);
    return occ_model_resource_blocks(ret_limit);
}

/* The driver's number of active clusters holds only for the carve-out in use, so the limit by clusters
 * stays. */
static uint32_t blocks_with_largest_carveout(const struct occ_device *device, const struct occ_launch *launch,
                                             const struct occ_result *result)
{
    uint32_t limit[OCC_LIMIT_COUNT];
    uint32_t blocks = occ_model_largest_carveout(device, result, limit);
    uint32_t clusters;
    if (launch->max_active_clusters == 0)
        limit[OCC_LIMIT_CLUSTER] = cluster_limit(device, launch, blocks, &clusters);
    return occ_min_u32(blocks, limit[OCC_LIMIT_CLUSTER]);
}

/* True if shared memory ties with another resource at `blocks` only because the driver fitted the carve-out
 * to the other limits. Then shared memory does not limit: with higher other limits the driver would choose a
 * larger carve-out. */
static bool smem_follows(const struct occ_device *device, const struct occ_result *result, uint32_t blocks)
{
    bool others_tie = false;
    for (int i = 0; i < OCC_LIMIT_CLUSTER; i++)
        others_tie |= i != OCC_LIMIT_SMEM && result->limit[i] == blocks;
    return result->smem_config_from_driver && others_tie &&
           smem_limit(device->smem_per_sm_bytes, result->smem_per_block_bytes) > blocks;
}

static uint32_t limits_equal_to(const uint32_t limit[OCC_LIMIT_COUNT], uint32_t blocks)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < OCC_LIMIT_COUNT; i++)
        mask |= (uint32_t)(limit[i] == blocks) << i;
    return mask;
}

enum occ_status occ_model_limit(const struct occ_device *device, const struct occ_launch *launch,
                                struct occ_result *result)
{
    uint32_t block_bytes = result->smem_per_block_bytes;
    if (block_bytes > device->smem_per_sm_bytes)
        return OCC_BAD_SMEM;
    result->smem_config_bytes = chosen_carveout(device, launch, block_bytes);
    result->smem_config_from_driver =
        launch->smem_config_bytes > 0 && launch->smem_config_bytes == result->smem_config_bytes;
    result->max_warps_per_sm = device->max_threads_per_sm / device->warp_size;

    result->limit[OCC_LIMIT_WARPS] = result->max_warps_per_sm / result->warps_per_block;
    result->limit[OCC_LIMIT_REGISTERS] = register_limit(device, result);
    result->limit[OCC_LIMIT_SMEM] = smem_limit(result->smem_config_bytes, block_bytes);
    result->limit[OCC_LIMIT_BLOCKS] = device->max_blocks_per_sm;
    result->limit[OCC_LIMIT_BARRIERS] = barrier_limit(device, launch);
    uint32_t resource_blocks = occ_model_resource_blocks(result->limit);
    if (resource_blocks == 0)
        return nothing_fits(result);
    if (!limit_clusters(device, launch, resource_blocks, result))
        return OCC_BAD_CLUSTER;

    result->blocks_per_sm = occ_min_u32(resource_blocks, result->limit[OCC_LIMIT_CLUSTER]);
    result->limiters = limits_equal_to(result->limit, result->blocks_per_sm);
    if (smem_follows(device, result, result->blocks_per_sm))
        result->limiters &= ~(1u << OCC_LIMIT_SMEM);
    result->blocks_per_sm_largest_carveout = blocks_with_largest_carveout(device, launch, result);
    result->warps_per_sm = result->blocks_per_sm * result->warps_per_block;
    result->theoretical = (double)result->warps_per_sm / result->max_warps_per_sm;
    return OCC_OK;
}
