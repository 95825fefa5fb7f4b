/* See reported_occupancy.h. Pure. */
#include "reported_occupancy.h"

#include <math.h>
#include <stdio.h>

#define ROUNDING 0.0051 /* half a percent, and what a float loses */

double cli_claim_ours(const struct occ_shape_row *row)
{
    if (!row->analysed)
        return NAN;
    return row->result.full_waves == 0 ? row->result.expected_elapsed : row->result.theoretical;
}

static uint64_t threads_of(const struct occ_shape_row *row)
{
    const uint32_t *block = row->launch.block;
    return (uint64_t)block[0] * block[1] * block[2];
}

static bool needs_optin(const struct occ_shape_row *row)
{
    return (uint64_t)row->launch.static_smem_bytes + row->launch.dynamic_smem_bytes >
           row->limits.smem_per_block_bytes;
}

/* The source's own way to its number, with our blocks per SM. */
static double their_estimate(const struct occ_shape_row *row)
{
    double blocks = (double)row->result.grid_blocks / row->limits.sm_count;
    double most = row->result.blocks_per_sm;
    return fmin(blocks, most) * (double)threads_of(row) / row->limits.max_threads_per_sm;
}

const char *cli_claim_reason(const struct occ_shape_row *row, char *buffer, size_t size)
{
    double ours = cli_claim_ours(row), claimed = row->claim.mean;
    const char *text = "not explained";
    if (fabs(claimed - ours) <= ROUNDING)
        text = "";
    else if (!row->analysed)
        text = "the model refuses this configuration";
    else if (claimed < ROUNDING && needs_optin(row))
        text = "counts a kernel with more than 48 KiB of shared memory as one that cannot run";
    else if (fabs(claimed - their_estimate(row)) <= ROUNDING)
        text = threads_of(row) % row->limits.warp_size != 0
                   ? "counts threads, where the hardware holds whole warps"
                   : "spreads the blocks over the SMs as a fraction, where some hold one more than others";
    (void)snprintf(buffer, size, "%s", text);
    return buffer;
}
