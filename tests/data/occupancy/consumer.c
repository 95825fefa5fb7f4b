/*
 * A program of somebody else that uses the installed model: only its headers, its library and the C library.
 * Also compiled as C++.
 */
#include <occtrace/advice.h>
#include <occtrace/occupancy.h>
#include <occtrace/sweep.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    struct occ_device device;
    struct occ_launch launch;
    struct occ_result result;
    struct occ_advice advice[OCC_ADVICE_MAX];
    struct occ_range range;
    struct occ_point points[32];
    char limiters[64];

    if (occ_device_from_name("t4", &device) != OCC_OK)
        return 1;
    memset(&launch, 0, sizeof launch);
    launch.grid[0] = 250;
    launch.block[0] = 128;
    launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
    launch.registers_per_thread = 71;
    launch.static_smem_bytes = 512;
    launch.carveout_percent = -1;
    if (occ_analyse(&device, &launch, &result) != OCC_OK)
        return 1;
    size_t items = occ_advise(&device, &launch, &result, advice, OCC_ADVICE_MAX);
    if (!occ_sweep_range(&device, OCC_AXIS_BLOCK_SIZE, &range))
        return 1;
    size_t count = occ_sweep(&device, &launch, OCC_AXIS_BLOCK_SIZE, &range, points, 32);
    printf("%u blocks, %.4f, %s, first advice %s %u, %u points\n", result.blocks_per_sm, result.theoretical,
           occ_limiters_text(result.limiters, limiters, sizeof limiters),
           items > 0 ? occ_advice_word(advice[0].kind) : "none", items > 0 ? (unsigned)advice[0].needed : 0,
           (unsigned)count);
    return 0;
}
