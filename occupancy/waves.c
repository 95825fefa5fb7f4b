/*
 * Waves: the occupancy of a grid of blocks of equal duration under a perfect scheduler. occupancy.h has the
 * formulas; with clusters a wave is the blocks of all active clusters, and SMs on which no cluster fits count
 * as elapsed, not as active. Blocks are 64-bit (a grid has up to 2^63). Threads: any.
 */
#include "model.h"

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return b < a ? b : a;
}

void occ_model_waves(const struct occ_device *device, const struct occ_launch *launch,
                     struct occ_result *result)
{
    uint64_t grid = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    uint64_t wave = result->wave_blocks;
    uint64_t full_waves = grid / wave;
    uint64_t partial = grid - full_waves * wave;
    uint64_t begun_waves = full_waves + (partial > 0);
    uint64_t active_sms = full_waves * min_u64(wave, device->sm_count) + min_u64(partial, device->sm_count);
    double warps = (double)grid * result->warps_per_block;

    result->grid_blocks = grid;
    result->waves = (double)grid / (double)wave;
    result->full_waves = full_waves;
    result->partial_blocks = partial;
    result->expected_achieved = warps / ((double)active_sms * result->max_warps_per_sm);
    result->expected_elapsed =
        warps / ((double)begun_waves * device->sm_count * (double)result->max_warps_per_sm);
}
