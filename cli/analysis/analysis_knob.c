/* CUDA's terms for a change of a launch; see analysis.h. Any thread. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analysis.h"
#include "cli/values.h"

/* Kernels that run alone for a smaller part of their time already share the GPU with other kernels. */
#define ALONE_RATIO_MIN 0.1

static uint32_t threads_of(const struct occ_launch *l)
{
    return l->block[0] * l->block[1] * l->block[2];
}

/* Describes a larger grid, or other kernels beside a small grid. Measured gaps show the time without another
 * kernel. */
static void describe_fill(const struct analysis *a, const char *grid, char *knob, size_t size)
{
    char percent[16];
    if (isnan(a->alone_ratio))
        (void)snprintf(knob, size,
                       "<<<%s, block>>>; or other kernels beside it: streams, programmatic dependent launch",
                       grid);
    else if (a->alone_ratio < ALONE_RATIO_MIN)
        (void)snprintf(knob, size, "<<<%s, block>>>; other kernels already run beside it in %s of its time",
                       grid, cli_percent_text(1 - a->alone_ratio, percent, sizeof percent));
    else
        (void)snprintf(knob, size,
                       "<<<%s, block>>>; or other kernels beside it: streams, programmatic dependent launch; "
                       "it runs alone in %s of its time",
                       grid, cli_percent_text(a->alone_ratio, percent, sizeof percent));
}

void analysis_knob(const struct analysis *a, const struct occ_advice *c, char *knob, size_t size)
{
    const struct occ_device *device = a->device;
    char grid[48];
    (void)analysis_dimensions(c->launch.grid, grid, sizeof grid);
    switch (c->kind) {
    case OCC_ADVICE_REGISTERS:
    case OCC_ADVICE_REGISTERS_SMEM:
        (void)snprintf(knob, size, "__launch_bounds__(%u, %u); for a whole file -maxrregcount=%" PRIu64,
                       threads_of(&c->launch), c->blocks_then, c->needed);
        break;
    case OCC_ADVICE_FREE_REGISTERS:
        (void)snprintf(knob, size, "__launch_bounds__(%u, %u), or no bound: unrolling and reuse have room",
                       threads_of(&c->launch), c->blocks_then);
        break;
    case OCC_ADVICE_FREE_SMEM:
        (void)snprintf(knob, size, "larger tiles or more pipeline stages have room");
        break;
    case OCC_ADVICE_SMEM:
        (void)snprintf(knob, size,
                       c->launch.dynamic_smem_bytes ? "<<<grid, block, %u>>>" : "smaller __shared__ arrays",
                       c->launch.dynamic_smem_bytes);
        break;
    case OCC_ADVICE_CARVEOUT:
        (void)snprintf(knob, size,
                       "cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, %" PRIu64
                       ")",
                       (c->needed * 100 + device->smem_per_sm_bytes - 1) / device->smem_per_sm_bytes);
        break;
    case OCC_ADVICE_BARRIERS:
        (void)snprintf(knob, size, "fewer named barriers (bar.sync, cuda::barrier) in the kernel");
        break;
    case OCC_ADVICE_CLUSTER:
        (void)snprintf(knob, size, "__cluster_dims__ or cudaLaunchAttributeClusterDimension of %" PRIu64,
                       c->needed);
        break;
    case OCC_ADVICE_HALF_BLOCK:
    case OCC_ADVICE_LARGER_BLOCK:
    case OCC_ADVICE_WHOLE_WARPS:
        (void)snprintf(knob, size, "<<<%s, %" PRIu64 ">>>", grid, c->needed);
        break;
    case OCC_ADVICE_BLOCK_SIZE:
        (void)snprintf(knob, size,
                       "<<<%s, %" PRIu64 ">>>; cudaOccupancyMaxPotentialBlockSize() finds it at run time",
                       grid, c->needed);
        break;
    case OCC_ADVICE_FILL_WAVE:
    case OCC_ADVICE_FILL_SMS:
        describe_fill(a, grid, knob, size);
        break;
    default:
        (void)snprintf(knob, size, "<<<%s, block>>>", grid);
        break;
    }
}
