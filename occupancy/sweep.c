/* Changing one parameter of a launch, and curves over it. Threads: any. */
#include "model.h"

/* Larger steps where an impossible device would give more points than a curve can show. */
static uint32_t limited_step(const struct occ_range *range)
{
    return range->step * ((range->last - range->first) / range->step / OCC_SWEEP_MAX_STEPS + 1);
}

bool occ_sweep_range(const struct occ_device *device, enum occ_axis axis, struct occ_range *range)
{
    uint32_t barriers = device->max_barriers_per_sm == OCC_NO_LIMIT ? 1 : OCC_MAX_BARRIERS;
    const struct occ_range ranges[OCC_AXIS_COUNT] = {
        [OCC_AXIS_BLOCK_SIZE] = {device->warp_size, device->max_threads_per_block, device->warp_size},
        [OCC_AXIS_REGISTERS] = {1, device->max_registers_per_thread, 1},
        [OCC_AXIS_SMEM] = {0, device->smem_per_block_optin_bytes, device->smem_unit_bytes},
        [OCC_AXIS_BARRIERS] = {1, barriers, 1},
        [OCC_AXIS_CLUSTER] = {1, device->max_cluster_size, 1},
    };
    if ((unsigned)axis >= OCC_AXIS_COUNT || ranges[axis].step == 0 || ranges[axis].last == 0 ||
        ranges[axis].last < ranges[axis].first)
        return false;
    *range = ranges[axis];
    range->step = limited_step(range);
    return true;
}

uint32_t occ_sweep_present(const struct occ_launch *launch, enum occ_axis axis)
{
    switch (axis) {
    case OCC_AXIS_BLOCK_SIZE:
        return occ_model_threads(launch);
    case OCC_AXIS_REGISTERS:
        return launch->registers_per_thread;
    case OCC_AXIS_SMEM:
        return launch->static_smem_bytes + launch->dynamic_smem_bytes;
    case OCC_AXIS_BARRIERS:
        return launch->barriers;
    case OCC_AXIS_CLUSTER:
        return occ_cluster_size(launch);
    case OCC_AXIS_COUNT:
        break;
    }
    return 0;
}

uint64_t occ_model_threads_along_x(const struct occ_launch *launch)
{
    return (uint64_t)launch->grid[0] * launch->block[0] * launch->block[1] * launch->block[2];
}

static bool set_block(struct occ_launch *launch, uint32_t threads)
{
    if (threads == 0)
        return false;
    uint64_t cluster = launch->cluster[0] ? launch->cluster[0] : 1;
    uint64_t blocks = (occ_model_threads_along_x(launch) + threads - 1) / threads;
    blocks = (blocks + cluster - 1) / cluster * cluster;
    if (blocks > OCC_MAX_GRID_X)
        return false;
    launch->grid[0] = (uint32_t)blocks;
    launch->block[0] = threads;
    launch->block[1] = launch->block[2] = 1;
    return true;
}

static void set_smem(struct occ_launch *launch, uint32_t bytes)
{
    uint32_t fixed = occ_min_u32(launch->static_smem_bytes, bytes);
    launch->static_smem_bytes = fixed;
    launch->dynamic_smem_bytes = bytes - fixed;
    launch->smem_optin_known = false;
    launch->max_dynamic_smem_known = false;
}

static bool set_cluster(struct occ_launch *launch, uint32_t blocks)
{
    if (blocks == occ_cluster_size(launch))
        return true;
    if (blocks == 0)
        return false;
    uint64_t x = ((uint64_t)launch->grid[0] + blocks - 1) / blocks * blocks;
    if (x > OCC_MAX_GRID_X)
        return false;
    launch->grid[0] = (uint32_t)x;
    launch->cluster[0] = blocks;
    launch->cluster[1] = launch->cluster[2] = 1;
    launch->max_active_clusters = 0;
    return true;
}

bool occ_model_set(struct occ_launch *launch, enum occ_axis axis, uint32_t value)
{
    switch (axis) {
    case OCC_AXIS_BLOCK_SIZE:
        return set_block(launch, value);
    case OCC_AXIS_REGISTERS:
        launch->registers_per_thread = value;
        return true;
    case OCC_AXIS_SMEM:
        set_smem(launch, value);
        return true;
    case OCC_AXIS_BARRIERS:
        launch->barriers = value;
        return true;
    case OCC_AXIS_CLUSTER:
        return set_cluster(launch, value);
    case OCC_AXIS_COUNT:
        break;
    }
    return false;
}

static const enum occ_status status_of_axis[OCC_AXIS_COUNT] = {
    [OCC_AXIS_BLOCK_SIZE] = OCC_BAD_BLOCK, [OCC_AXIS_REGISTERS] = OCC_BAD_REGISTERS,
    [OCC_AXIS_SMEM] = OCC_BAD_SMEM,        [OCC_AXIS_BARRIERS] = OCC_BAD_BARRIERS,
    [OCC_AXIS_CLUSTER] = OCC_BAD_CLUSTER,
};

static struct occ_point point_at(const struct occ_device *device, const struct occ_launch *launch,
                                 enum occ_axis axis, uint32_t value)
{
    struct occ_launch varied = *launch;
    struct occ_result result = {0};
    struct occ_point point = {.value = value, .status = status_of_axis[axis]};
    if (occ_model_set(&varied, axis, value))
        point.status = occ_analyse(device, &varied, &result);
    if (point.status != OCC_OK)
        return point;
    double warps = (double)result.wave_blocks * result.warps_per_block;
    point.blocks_per_sm = result.blocks_per_sm;
    point.warps_per_sm = result.warps_per_sm;
    point.limiters = result.limiters;
    point.theoretical = result.theoretical;
    point.full_wave = warps / ((double)device->sm_count * result.max_warps_per_sm);
    return point;
}

size_t occ_sweep(const struct occ_device *device, const struct occ_launch *launch, enum occ_axis axis,
                 const struct occ_range *range, struct occ_point *points, size_t max)
{
    if ((unsigned)axis >= OCC_AXIS_COUNT || range->step == 0 || range->first > range->last)
        return 0;
    size_t count = (size_t)((range->last - range->first) / range->step) + 1;
    for (size_t i = 0; i < count && i < max; i++)
        points[i] = point_at(device, launch, axis, range->first + (uint32_t)i * range->step);
    return count;
}
