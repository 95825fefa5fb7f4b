/* A change of a launch in the terms of the kernel's owner; see analysis.h. Any thread. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analysis.h"
#include "cli/values.h"
#include "explain/verdict.h"
#include "support/text.h"

/* Kernels that run alone for a smaller part of their time already share the GPU with other kernels. */
#define ALONE_RATIO_MIN 0.1

static uint32_t threads_of(const struct occ_launch *l)
{
    return l->block[0] * l->block[1] * l->block[2];
}

/* Formats the changed launch in CUDA's terms: "<<<240, block>>>" (the same block), "<<<240, 128>>>". Only the
 * number of threads or blocks is given if the kernel must divide it among several dimensions. */
static const char *launch_text(const struct analysis *a, const struct occ_advice *c, char *text, size_t size)
{
    const uint32_t *grid = c->launch.grid, *block = a->launch->block, *now = a->launch->grid;
    bool is_block = threads_of(&c->launch) != threads_of(a->launch);
    bool is_flat_grid = now[1] == 1 && now[2] == 1, is_flat_block = block[1] == 1 && block[2] == 1;
    bool keeps_yz = grid[1] == now[1] && grid[2] == now[2];
    char threads[16] = "block", blocks[48];
    if (is_block)
        (void)snprintf(threads, sizeof threads, "%u", threads_of(&c->launch));
    if (is_flat_grid)
        (void)snprintf(blocks, sizeof blocks, "%u", grid[0]);
    else
        (void)snprintf(blocks, sizeof blocks, "dim3(%u, %u, %u)", grid[0], grid[1], grid[2]);
    if (is_block && !is_flat_block)
        (void)snprintf(text, size, "blocks of %u threads in the kernel's own shape (now %ux%ux%u)",
                       threads_of(&c->launch), block[0], block[1], block[2]);
    else if (!is_flat_grid && !keeps_yz)
        (void)snprintf(text, size, "%" PRIu64 " blocks in the grid's own shape (now %ux%ux%u)", c->needed,
                       now[0], now[1], now[2]);
    else
        (void)snprintf(text, size, "<<<%s, %s>>>", blocks, threads);
    return text;
}

/* Suggests other kernels beside a small grid, with the share of its time without them if that is known. */
static void add_beside(const struct analysis *a, char *knob, size_t size)
{
    static const char beside[] = "or other kernels beside it: streams, programmatic dependent launch";
    char percent[16];
    if (isnan(a->alone_ratio))
        occ_text_append(knob, size, "; ", "%s", beside);
    else if (a->alone_ratio < ALONE_RATIO_MIN)
        occ_text_append(knob, size, "; ", "other kernels already run beside it in %s of its time",
                        cli_percent_text(1 - a->alone_ratio, percent, sizeof percent));
    else
        occ_text_append(knob, size, "; ", "%s; it runs alone in %s of its time", beside,
                        cli_percent_text(a->alone_ratio, percent, sizeof percent));
}

static void describe_registers(const struct occ_advice *c, char *knob, size_t size)
{
    (void)snprintf(knob, size, "__launch_bounds__(%u, %u); for a whole file -maxrregcount=%" PRIu64,
                   threads_of(&c->launch), c->blocks_then, c->needed);
    if (c->kind == OCC_ADVICE_REGISTERS_SMEM)
        occ_text_append(knob, size, "; ",
                        "with fewer stages or smaller tiles: %" PRIu64 " bytes of shared memory",
                        c->also_needed);
}

/* The change in CUDA's terms. */
static void describe(const struct analysis *a, const struct occ_advice *c, char *knob, size_t size)
{
    const struct occ_device *device = a->device;
    char launch[96];
    (void)launch_text(a, c, launch, sizeof launch);
    switch (c->kind) {
    case OCC_ADVICE_REGISTERS:
    case OCC_ADVICE_REGISTERS_SMEM:
        describe_registers(c, knob, size);
        break;
    case OCC_ADVICE_FREE_REGISTERS:
        (void)snprintf(knob, size, "__launch_bounds__(%u, %u), or no bound: unrolling and reuse have room",
                       threads_of(&c->launch), c->blocks_then);
        break;
    case OCC_ADVICE_FREE_SMEM:
        (void)snprintf(knob, size, "larger tiles or more pipeline stages have room");
        break;
    case OCC_ADVICE_SMEM:
        (void)snprintf(knob, size, "fewer stages or smaller tiles: %" PRIu64 " bytes per block", c->needed);
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
    case OCC_ADVICE_BLOCK_SIZE:
        (void)snprintf(knob, size, "%s; cudaOccupancyMaxPotentialBlockSize() finds it at run time", launch);
        break;
    case OCC_ADVICE_FILL_WAVE:
    case OCC_ADVICE_FILL_SMS:
        (void)snprintf(knob, size, "smaller tiles, split-K or a larger batch: %s", launch);
        break;
    default:
        (void)snprintf(knob, size, "%s", launch);
        break;
    }
}

void analysis_knob(const struct analysis *a, enum occ_owner owner, const struct occ_advice *c, char *knob,
                   size_t size)
{
    if (owner == OCC_OWNER_USER || owner == OCC_OWNER_UNKNOWN)
        describe(a, c, knob, size);
    else
        (void)snprintf(knob, size, "%s", occ_change_text(occ_change_for(owner, c->kind)));
    if (c->kind == OCC_ADVICE_FILL_WAVE || c->kind == OCC_ADVICE_FILL_SMS)
        add_beside(a, knob, size);
}
