/*
 * occ_analyse(): limits.c (allocation, blocks per SM), then waves and causes.
 *
 * Waves: the occupancy of a grid of equal blocks under a perfect scheduler. occupancy.h has the formulas;
 * with clusters a wave is the blocks of all active clusters, and SMs on which no cluster fits count as
 * elapsed, not as active. Blocks are 64-bit (a grid has up to 2^63).
 *
 * Causes: the static part of the waterfall, from 1 down to expected_elapsed_low. Each part is the difference
 * of two levels, computed from whole warps or blocks, so that parts are never negative and add up.
 *
 *   1
 *   |  REGISTERS, SMEM, BARRIERS, BLOCKS, BLOCK_SIZE: the limiting resources, in equal shares where they tie.
 *   |  WARPS is BLOCK_SIZE: only whole blocks fit, and no other resource limits earlier.
 *   |  Where a larger carve-out would help, the limiters under the largest.
 *   +- active warps under the largest carve-out
 *   |  CARVEOUT: shared memory alone limits, under a carve-out smaller than the largest
 *   +- active warps under the carve-out in use
 *   |  CLUSTER: fewer blocks than these fit, because clusters stay whole
 *   +- a full wave
 *   |  SMALL_GRID (the grid is less than one wave, or does not divide over the SMs) or TAIL (at least one
 * full |  wave, the last one is partial)
 *   +- expected_elapsed_low
 *
 * Threads: any.
 */
#include "model.h"

#include <math.h>

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return b < a ? b : a;
}

/* Occupancies if the partial last wave takes `time` times as long as a full one. */
static void expect(const struct occ_device *device, const struct occ_result *result, double time,
                   double *ret_achieved, double *ret_elapsed)
{
    double sms = device->sm_count, full_waves = (double)result->full_waves;
    double last_wave = result->partial_blocks > 0 ? time : 0; /* its length */
    double active = full_waves * (double)min_u64(result->wave_blocks, device->sm_count) +
                    last_wave * (double)min_u64(result->partial_blocks, device->sm_count);
    double blocks = full_waves * (double)result->wave_blocks + last_wave * (double)result->partial_blocks;
    double share = blocks * result->warps_per_block / result->max_warps_per_sm;
    *ret_achieved = share / active;
    *ret_elapsed = share / ((full_waves + last_wave) * sms);
}

/* An only wave that does not divide over the SMs: `more` SMs hold one block more than the others. If a
 * block's time is proportional to the blocks on its SM, the others are done earlier: the mean number of
 * blocks is higher over active SM cycles, and lower over elapsed cycles. */
static void expect_uneven(const struct occ_device *device, struct occ_result *result)
{
    uint64_t sms = min_u64(result->wave_blocks, device->sm_count);
    uint64_t each = result->grid_blocks / sms, more = result->grid_blocks % sms;
    if (result->full_waves > 0 || each == 0 || more == 0)
        return;
    double low = (double)each, high = low + 1, fuller = (double)more, others = (double)(sms - more);
    double block_share = (double)result->warps_per_block / result->max_warps_per_sm;
    double block_time = fuller * high * high + others * low * low;
    result->expected_achieved_high = block_share * block_time / (fuller * high + others * low);
    result->expected_elapsed_low = block_share * block_time / (device->sm_count * high);
}

static void waves(const struct occ_device *device, const struct occ_launch *launch, struct occ_result *result)
{
    uint64_t grid = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    uint64_t wave = result->wave_blocks;
    uint64_t full_waves = grid / wave;
    uint64_t partial = grid - full_waves * wave;
    result->grid_blocks = grid;
    result->waves = (double)grid / (double)wave;
    result->full_waves = full_waves;
    result->partial_blocks = partial;
    expect(device, result, 1, &result->expected_achieved_low, &result->expected_elapsed_low);
    double per_sm = (double)wave / (double)min_u64(wave, device->sm_count);
    double partial_per_sm = partial ? (double)partial / (double)min_u64(partial, device->sm_count) : 0;
    expect(device, result, full_waves > 0 ? partial_per_sm / per_sm : 1, &result->expected_achieved_high,
           &result->expected_elapsed_high);
    expect_uneven(device, result);
}

static const enum occ_cause cause_of_limit[OCC_LIMIT_COUNT] = {
    [OCC_LIMIT_WARPS] = OCC_CAUSE_BLOCK_SIZE,  [OCC_LIMIT_REGISTERS] = OCC_CAUSE_REGISTERS,
    [OCC_LIMIT_SMEM] = OCC_CAUSE_SMEM,         [OCC_LIMIT_BLOCKS] = OCC_CAUSE_BLOCKS,
    [OCC_LIMIT_BARRIERS] = OCC_CAUSE_BARRIERS, [OCC_LIMIT_CLUSTER] = OCC_CAUSE_CLUSTER,
};

/* Shares `part` between the resources whose limit is `blocks`. */
static void share(double part, const uint32_t limit[OCC_LIMIT_COUNT], uint32_t blocks,
                  struct occ_result *result)
{
    int sharers = 0;
    for (int i = 0; i < OCC_LIMIT_CLUSTER; i++)
        sharers += limit[i] == blocks;
    for (int i = 0; i < OCC_LIMIT_CLUSTER; i++)
        if (limit[i] == blocks)
            result->cause[cause_of_limit[i]] += part / sharers;
}

static void resource_causes(const struct occ_device *device, struct occ_result *result,
                            uint32_t resource_blocks)
{
    double max_warps = result->max_warps_per_sm;
    uint32_t limit[OCC_LIMIT_COUNT];
    uint32_t best = occ_model_largest_carveout(device, result, limit);
    uint32_t missing_warps = result->max_warps_per_sm - best * result->warps_per_block;
    share(missing_warps / max_warps, limit, best, result);
    result->cause[OCC_CAUSE_CARVEOUT] = (best - resource_blocks) * result->warps_per_block / max_warps;
}

static void wave_causes(const struct occ_device *device, struct occ_result *result, uint32_t resource_blocks)
{
    double block_share = result->warps_per_block / ((double)device->sm_count * result->max_warps_per_sm);
    uint64_t capacity = (uint64_t)device->sm_count * resource_blocks;
    result->cause[OCC_CAUSE_CLUSTER] = (double)(capacity - result->wave_blocks) * block_share;
    if (result->partial_blocks == 0)
        return;
    enum occ_cause cause = result->full_waves == 0 ? OCC_CAUSE_SMALL_GRID : OCC_CAUSE_TAIL;
    double begun_waves = (double)(result->full_waves + 1);
    double empty_blocks = (double)(result->wave_blocks - result->partial_blocks);
    result->cause[cause] = empty_blocks * block_share / begun_waves + occ_uneven_grid(result);
}

static uint32_t by_design_marks(const struct occ_device *device, const struct occ_launch *launch,
                                const struct occ_result *result)
{
    uint32_t marks = 0;
    if (result->grid_blocks <= result->wave_blocks && result->grid_blocks % device->sm_count == 0)
        marks |= OCC_BY_DESIGN_PERSISTENT;
    if (result->blocks_per_sm == 1 && (result->limiters & 1u << OCC_LIMIT_SMEM) &&
        result->smem_per_block_bytes > device->smem_per_sm_bytes / 2)
        marks |= OCC_BY_DESIGN_ONE_BLOCK_SMEM;
    if (occ_cluster_size(launch) > 1)
        marks |= OCC_BY_DESIGN_CLUSTER;
    return marks;
}

static void causes(const struct occ_device *device, const struct occ_launch *launch,
                   struct occ_result *result)
{
    uint32_t resource_blocks = occ_model_resource_blocks(result->limit);
    resource_causes(device, result, resource_blocks);
    wave_causes(device, result, resource_blocks);
    uint32_t slots = result->warps_per_block * device->warp_size;
    uint32_t threads = occ_model_threads(launch);
    result->cause[OCC_CAUSE_PARTIAL_WARP] = (double)(slots - threads) / slots;
    result->by_design = by_design_marks(device, launch, result);
}

double occ_uneven_grid(const struct occ_result *result)
{
    return result->full_waves == 0 ? result->expected_elapsed_high - result->expected_elapsed_low : 0;
}

double occ_block_start_loss(const struct occ_result *result, double duration_ns)
{
    double begun_waves = (double)(result->full_waves + (result->partial_blocks > 0));
    double wave_ns = duration_ns / begun_waves;
    return wave_ns >= OCC_BLOCK_START_MIN_WAVE_NS && wave_ns < HUGE_VAL ? OCC_BLOCK_START_NS / wave_ns
                                                                        : (double)NAN;
}

enum occ_status occ_analyse(const struct occ_device *device, const struct occ_launch *launch,
                            struct occ_result *result)
{
    struct occ_result made = {0};
    enum occ_status status = occ_model_check(device, launch);
    if (status == OCC_OK)
        status = occ_model_allocate(device, launch, &made);
    if (status == OCC_OK)
        status = occ_model_limit(device, launch, &made);
    if (status != OCC_OK)
        return status;
    waves(device, launch, &made);
    causes(device, launch, &made);
    *result = made;
    return OCC_OK;
}
