/* See show.h. Pure. */
#include "show.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define ROUNDING 0.0051 /* half a percent, plus a float's error */

double reported_expected(const struct occ_config_row *row)
{
    if (!row->analysed)
        return NAN;
    return row->result.full_waves == 0 ? row->result.expected_elapsed_high : row->result.theoretical;
}

static uint64_t threads_of(const struct occ_config_row *row)
{
    const uint32_t *block = row->launch.block;
    return (uint64_t)block[0] * block[1] * block[2];
}

static bool needs_optin(const struct occ_config_row *row)
{
    return (uint64_t)row->launch.static_smem_bytes + row->launch.dynamic_smem_bytes >
           row->limits.smem_per_block_bytes;
}

/* Computes Kineto's formula with our number of blocks per SM. */
static double their_estimate(const struct occ_config_row *row)
{
    double blocks = (double)row->result.grid_blocks / row->limits.sm_count;
    double max_blocks = row->result.blocks_per_sm;
    return fmin(blocks, max_blocks) * (double)threads_of(row) / row->limits.max_threads_per_sm;
}

const char *reported_difference(const struct occ_config_row *row)
{
    double expected = reported_expected(row), reported = row->reported.mean;
    if (fabs(reported - expected) <= ROUNDING)
        return "";
    if (!row->analysed)
        return "the model refuses this configuration";
    if (reported < ROUNDING && needs_optin(row))
        return "a kernel with more than 48 KiB of shared memory is counted as one that cannot run";
    if (!(fabs(reported - their_estimate(row)) <= ROUNDING))
        return "the reported value is not what the recording's own formula gives";
    return threads_of(row) % row->limits.warp_size != 0
               ? "threads are counted, where the hardware holds whole warps"
               : "the blocks are spread evenly over the SMs, where some hold one more than others";
}
