/*
 * The model's worked examples (numbers from published articles and documentation on the subject), its
 * statuses, tables and words. Expected values are written out by hand.
 */
#include "occupancy/occupancy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define GRID_X_MAX 2147483647u
#define KIB        1024u
#define BIT(limit) (1u << OCC_LIMIT_##limit)

#define assert_close(value, expected) assert_true(fabs((value) - (expected)) < 1e-9)

static struct occ_device device_of(uint32_t cc, uint32_t sm_count)
{
    struct occ_device device;
    assert_int_equal(occ_device_from_cc(cc, &device), OCC_OK);
    assert_int_equal(device.sm_count, 0);
    device.sm_count = sm_count;
    return device;
}

static struct occ_device device_named(const char *name)
{
    const struct occ_gpu *gpu = occ_gpu_find(name);
    assert_true(gpu != NULL);
    return device_of(gpu->cc, gpu->sm_count);
}

static struct occ_launch launch_of(uint32_t threads, uint32_t registers, uint32_t smem)
{
    return (struct occ_launch){
        .grid = {1, 1, 1},
        .block = {threads, 1, 1},
        .registers_per_thread = registers,
        .static_smem_bytes = smem,
        .carveout_percent = -1,
    };
}

static struct occ_result analysed(const struct occ_device *device, const struct occ_launch *launch)
{
    struct occ_result result;
    assert_int_equal(occ_analyse(device, launch, &result), OCC_OK);
    return result;
}

static struct occ_result simple(const char *gpu, uint32_t threads, uint32_t registers, uint32_t smem)
{
    struct occ_device device = device_named(gpu);
    struct occ_launch launch = launch_of(threads, registers, smem);
    return analysed(&device, &launch);
}

static double sum_of_causes(const struct occ_result *result)
{
    double sum = 0;
    for (int i = 0; i < OCC_CAUSE_COUNT; i++)
        sum += i == OCC_CAUSE_PARTIAL_WARP ? 0 : result->cause[i];
    return sum;
}

/* ---- allocation and limits ---- */

static void registers_are_rounded_for_a_warp(void **state)
{
    (void)state;
    struct occ_result result = simple("v100", 256, 47, 0);
    assert_int_equal(result.registers_per_warp, 1536);
    assert_int_equal(result.registers_per_block, 8 * 1536);
    assert_int_equal(result.warps_per_sm, 40);
    assert_int_equal(result.limiters, BIT(REGISTERS));

    result = simple("v100", 128, 133, 0);
    assert_int_equal(result.registers_per_warp, 4352);
    assert_int_equal(result.warps_per_sm, 12);
}

/* 96 x 32 = 3072 registers a warp: each of four files of 16384 holds 5 warps: 20, not 65536 / 3072 = 21. */
static void register_files_hold_whole_warps(void **state)
{
    (void)state;
    struct occ_result result = simple("v100", 32, 96, 0);
    assert_int_equal(result.registers_per_warp, 3072);
    assert_int_equal(result.limit[OCC_LIMIT_REGISTERS], 20);
    assert_int_equal(result.blocks_per_sm, 20);
    assert_int_equal(result.limiters, BIT(REGISTERS));
}

static void shared_memory_is_rounded_for_a_block(void **state)
{
    (void)state;
    struct occ_result result = simple("t4", 32, 16, 1000);
    assert_int_equal(result.smem_per_block_bytes, 1024);
    assert_int_equal(result.limit[OCC_LIMIT_SMEM], 64);

    result = simple("a100", 32, 16, 1000); /* 1 KB more for the system, units of 128 */
    assert_int_equal(result.smem_per_block_bytes, 2048);
    assert_int_equal(result.limit[OCC_LIMIT_SMEM], 82);

    result = simple("v100", 32, 16, 0);
    assert_int_equal(result.smem_per_block_bytes, 0);
    assert_int_equal(result.limit[OCC_LIMIT_SMEM], OCC_NO_LIMIT);
}

static void t4_with_71_registers(void **state)
{
    (void)state;
    struct occ_device device = device_named("t4");
    struct occ_launch launch = launch_of(128, 71, 512);
    launch.smem_config_bytes = 32 * KIB;
    struct occ_result result = analysed(&device, &launch);
    assert_int_equal(result.limit[OCC_LIMIT_WARPS], 8);
    assert_int_equal(result.limit[OCC_LIMIT_REGISTERS], 7);
    assert_int_equal(result.limit[OCC_LIMIT_SMEM], 64);
    assert_int_equal(result.blocks_per_sm, 7);
    assert_int_equal(result.warps_per_sm, 28);
    assert_close(result.theoretical, 0.875);
    assert_int_equal(result.limiters, BIT(REGISTERS));
    assert_true(result.smem_config_from_driver);
    assert_close(result.cause[OCC_CAUSE_REGISTERS], 0.125);
}

static void gtx1080_with_39_registers(void **state)
{
    (void)state;
    assert_close(simple("gtx1080", 1024, 39, 0).theoretical, 0.50);
    assert_close(simple("gtx1080", 512, 39, 0).theoretical, 0.75);
    assert_close(simple("gtx1080", 768, 39, 0).theoretical, 0.75);
}

static void fermi_holds_eight_blocks(void **state)
{
    (void)state;
    struct occ_result result = simple("gtx550ti", 96, 16, 0);
    assert_int_equal(result.blocks_per_sm, 8);
    assert_int_equal(result.warps_per_sm, 24);
    assert_int_equal(result.max_warps_per_sm, 48);
    assert_close(result.theoretical, 0.5);
    assert_close(result.cause[OCC_CAUSE_BLOCKS], 0.5);
    assert_close(simple("gtx550ti", 192, 16, 0).theoretical, 1.0);
    assert_true(simple("gtx550ti", 160, 16, 0).theoretical < 1.0);
    assert_int_equal(simple("gtx580", 256, 32, 0).warps_per_sm, 32);
}

static void smallest_block_size_for_full_occupancy(void **state)
{
    (void)state;
    const char *const with_64[] = {"v100", "a100", "gtx1080ti"};
    for (int i = 0; i < 3; i++) {
        assert_close(simple(with_64[i], 64, 16, 0).theoretical, 1.0);
        assert_close(simple(with_64[i], 32, 16, 0).theoretical, 0.5);
    }
    assert_close(simple("rtx3090", 96, 16, 0).theoretical, 1.0);
    assert_true(simple("rtx3090", 64, 16, 0).theoretical < 1.0);
}

static void co_limiters_are_all_named(void **state)
{
    (void)state;
    char text[64];
    struct occ_result result = simple("a100", 256, 32, 0);
    assert_int_equal(result.limiters, BIT(WARPS) | BIT(REGISTERS));
    assert_string_equal(occ_limiters_text(result.limiters, text, sizeof(text)), "warps+registers");

    result = simple("a100", 64, 32, 0);
    assert_string_equal(occ_limiters_text(result.limiters, text, sizeof(text)), "warps+registers+blocks");
}

static void blocks_are_whole_warps_in_all_dimensions(void **state)
{
    (void)state;
    struct occ_device device = device_named("a100");
    struct occ_launch launch = launch_of(1, 16, 0);
    launch.block[0] = 5;
    launch.block[1] = 5;
    launch.block[2] = 4;
    struct occ_result result = analysed(&device, &launch);
    assert_int_equal(result.warps_per_block, 4);
    assert_int_equal(result.limit[OCC_LIMIT_WARPS], 16);
    assert_close(result.theoretical, 1.0);
    assert_close(result.cause[OCC_CAUSE_PARTIAL_WARP], 28.0 / 128);
}

static void barriers_limit_from_hopper_on(void **state)
{
    (void)state;
    struct occ_device device = device_named("h100");
    struct occ_launch launch = launch_of(64, 16, 0);
    launch.barriers = 16;
    struct occ_result result = analysed(&device, &launch);
    assert_int_equal(result.limit[OCC_LIMIT_BARRIERS], 4);
    assert_int_equal(result.limiters, BIT(BARRIERS));
    assert_close(result.theoretical, 4 * 2 / 64.0);
    assert_close(result.cause[OCC_CAUSE_BARRIERS], 1 - 4 * 2 / 64.0);

    device = device_named("a100");
    assert_int_equal(analysed(&device, &launch).limit[OCC_LIMIT_BARRIERS], OCC_NO_LIMIT);
}

static void carveouts_of_the_driver_and_of_the_launch(void **state)
{
    (void)state;
    struct occ_device device = device_named("t4");
    struct occ_launch launch = launch_of(128, 16, 8 * KIB);
    struct occ_result result = analysed(&device, &launch);
    assert_int_equal(result.smem_config_bytes, 64 * KIB);
    assert_int_equal(result.blocks_per_sm, 8);

    launch.smem_config_bytes = 32 * KIB;
    result = analysed(&device, &launch);
    assert_int_equal(result.blocks_per_sm, 4);
    assert_int_equal(result.blocks_per_sm_largest_carveout, 8);
    assert_int_equal(result.limiters, BIT(SMEM));
    assert_close(result.cause[OCC_CAUSE_CARVEOUT], 0.5);
    assert_close(result.cause[OCC_CAUSE_SMEM], 0.0);

    launch.smem_config_bytes = 0;
    launch.carveout_percent = 50;
    result = analysed(&device, &launch);
    assert_int_equal(result.smem_config_bytes, 32 * KIB);
    assert_false(result.smem_config_from_driver);

    launch.static_smem_bytes = 40 * KIB; /* a preference that holds no block gives way */
    assert_int_equal(analysed(&device, &launch).smem_config_bytes, 64 * KIB);
}

static void carveout_is_only_what_the_largest_gives_back(void **state)
{
    (void)state;
    struct occ_device device = device_named("t4");
    struct occ_launch launch =
        launch_of(128, 16, 12 * KIB); /* 2 blocks of 12 KB in 32, 5 in 64, 8 by warps */
    launch.smem_config_bytes = 32 * KIB;
    struct occ_result result = analysed(&device, &launch);
    assert_int_equal(result.blocks_per_sm, 2);
    assert_int_equal(result.blocks_per_sm_largest_carveout, 5);
    assert_close(result.cause[OCC_CAUSE_CARVEOUT], 3 / 8.0);
    assert_close(result.cause[OCC_CAUSE_SMEM], 3 / 8.0);
}

/* The driver gives blocks of the reserve alone the smallest carve-out that holds as many as the SM can track.
 */
static void carveout_that_follows_the_others_is_no_limiter(void **state)
{
    (void)state;
    struct occ_device device = device_named("a100");
    struct occ_launch launch = launch_of(32, 16, 0);
    launch.smem_config_bytes = 32 * KIB;
    struct occ_result result = analysed(&device, &launch);
    assert_int_equal(result.limit[OCC_LIMIT_SMEM], 32);
    assert_int_equal(result.limiters, BIT(BLOCKS));
    assert_close(result.cause[OCC_CAUSE_BLOCKS], 0.5);
    assert_close(result.cause[OCC_CAUSE_SMEM], 0.0);

    launch.smem_config_bytes =
        0; /* a tie under the largest carve-out is one: 8 blocks of 20.5 KB, and by warps */
    launch.block[0] = 256;
    launch.static_smem_bytes = 19 * KIB + 512;
    result = analysed(&device, &launch);
    assert_int_equal(result.limiters, BIT(WARPS) | BIT(SMEM));
    launch.smem_config_bytes = 164 * KIB;
    assert_int_equal(analysed(&device, &launch).limiters, BIT(WARPS) | BIT(SMEM));

    launch.static_smem_bytes = 7 * KIB; /* alone it does limit */
    launch.smem_config_bytes = 32 * KIB;
    assert_int_equal(analysed(&device, &launch).limiters, BIT(SMEM));
}

static void steps_of_the_carveout(void **state)
{
    (void)state;
    struct occ_device t4 = device_named("t4");
    struct occ_device h100 = device_named("h100");
    struct occ_device p100 = device_named("p100");
    assert_int_equal(occ_carveout_at_least(&t4, 0), 32 * KIB);
    assert_int_equal(occ_carveout_at_least(&h100, 0), 0);
    assert_int_equal(occ_carveout_at_least(&h100, 1), 8 * KIB);
    assert_int_equal(occ_carveout_at_least(&h100, 132 * KIB + 1), 164 * KIB);
    assert_int_equal(occ_carveout_at_least(&h100, 228 * KIB), 228 * KIB);
    assert_int_equal(occ_carveout_at_least(&h100, 228 * KIB + 1), OCC_NO_LIMIT);
    assert_int_equal(occ_carveout_at_least(&p100, 1), 64 * KIB);
}

static void every_step_of_the_carveout(void **state)
{
    (void)state;
    static const struct {
        const char *gpu;
        size_t count;
        uint32_t kib[OCC_MAX_CARVEOUTS];
    } known[] = {
        {"gtx580", 2, {16, 48}},
        {"k40", 3, {16, 32, 48}},
        {"k80", 3, {80, 96, 112}},
        {"gtx980", 1, {96}},
        {"v100", 6, {0, 8, 16, 32, 64, 96}},
        {"t4", 2, {32, 64}},
        {"a100", 8, {0, 8, 16, 32, 64, 100, 132, 164}},
        {"rtx3090", 6, {0, 8, 16, 32, 64, 100}},
        {"h100", 10, {0, 8, 16, 32, 64, 100, 132, 164, 196, 228}},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct occ_device device = device_named(known[i].gpu);
        uint32_t steps[OCC_MAX_CARVEOUTS];
        assert_int_equal(occ_carveout_steps(&device, steps, OCC_MAX_CARVEOUTS), known[i].count);
        for (size_t step = 0; step < known[i].count; step++)
            assert_int_equal(steps[step], known[i].kib[step] * KIB);
    }
    uint32_t two[2] = {1, 1};
    struct occ_device odd = device_named("h100"); /* one that reports less than its family */
    odd.smem_per_sm_bytes = 99 * KIB;
    assert_int_equal(occ_carveout_steps(&odd, two, 1), 6);
    assert_int_equal(two[0], 0);
    assert_int_equal(two[1], 1);
}

/* ---- the kernel's maximum of dynamic shared memory ---- */

static void maximum_of_dynamic_shared_memory(void **state)
{
    (void)state;
    struct occ_device device = device_named("a100");
    struct occ_launch launch = launch_of(256, 32, 8 * KIB);
    struct occ_result result;
    launch.dynamic_smem_bytes = 64 * KIB; /* nothing known: opted in */
    assert_int_equal(analysed(&device, &launch).blocks_per_sm, 2);

    launch.max_dynamic_smem_known = true;
    launch.max_dynamic_smem_bytes = 64 * KIB;
    assert_int_equal(analysed(&device, &launch).blocks_per_sm, 2);
    launch.max_dynamic_smem_bytes = 64 * KIB - 1;
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_BAD_SMEM);
    launch.max_dynamic_smem_bytes = UINT32_MAX;
    assert_int_equal(analysed(&device, &launch).blocks_per_sm, 2);

    launch.max_dynamic_smem_bytes = 64 * KIB; /* a kernel that is known not to have opted in has not */
    launch.smem_optin_known = true;
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_BAD_SMEM);

    launch = launch_of(256, 32, 48 * KIB); /* static alone is within the default, with or without */
    launch.max_dynamic_smem_known = true;
    assert_int_equal(analysed(&device, &launch).blocks_per_sm, 3);
    launch.static_smem_bytes++;
    assert_int_equal(occ_analyse(&device, &launch, &result),
                     OCC_OK); /* with the reserve it is over: opted in */
    launch = launch_of(256, 32, 0);
    launch.max_dynamic_smem_known = true;
    launch.dynamic_smem_bytes = 1;
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_BAD_SMEM);
}

/* ---- waves and causes ---- */

static void t4_with_250_blocks(void **state)
{
    (void)state;
    struct occ_device device = device_named("t4");
    struct occ_launch launch = launch_of(128, 64, 0);
    launch.grid[0] = 250;
    struct occ_result result = analysed(&device, &launch);
    assert_int_equal(result.blocks_per_sm, 8);
    assert_int_equal(result.wave_blocks, 320);
    assert_close(result.waves, 0.78125);
    assert_int_equal(result.full_waves, 0);
    assert_int_equal(result.partial_blocks, 250);
    assert_close(result.expected_elapsed_high, 0.78125);
    assert_close(result.expected_achieved_low, 0.78125); /* every SM has a block */
    /* 10 SMs hold 7 blocks, 30 hold 6 */
    assert_close(result.expected_elapsed_low, 4 / 32.0 * (10 * 49 + 30 * 36) / (40 * 7));
    assert_close(result.expected_achieved_high, 4 / 32.0 * (10 * 49 + 30 * 36) / 250);
    assert_close(result.cause[OCC_CAUSE_SMALL_GRID], 1 - result.expected_elapsed_low);
    assert_close(occ_uneven_grid(&result), 0.78125 - result.expected_elapsed_low);
}

static void fifteen_sms_with_four_blocks(void **state)
{
    (void)state;
    struct occ_device device = device_of(35, 15);
    struct occ_launch launch = launch_of(512, 32, 0);
    launch.grid[0] = 45;
    struct occ_result result = analysed(&device, &launch);
    assert_int_equal(result.wave_blocks, 60);
    assert_close(result.waves, 0.75);
    assert_close(result.expected_elapsed_low, 0.75);
    assert_close(occ_uneven_grid(&result), 0);
}

static void last_wave_of_one_block(void **state)
{
    (void)state;
    struct occ_device device = device_named("a100");
    struct occ_launch launch = launch_of(256, 32, 0);
    launch.grid[0] = 108 * 8 + 1;
    struct occ_result result = analysed(&device, &launch);
    assert_int_equal(result.full_waves, 1);
    assert_int_equal(result.partial_blocks, 1);
    assert_close(result.expected_elapsed_low, 865.0 / 864 / 2);
    assert_close(result.expected_achieved_low, 865.0 * 8 / (64.0 * 109));
    assert_close(result.cause[OCC_CAUSE_TAIL], 1 - 865.0 / 864 / 2);
    assert_close(result.cause[OCC_CAUSE_SMALL_GRID], 0);
    /* one block on an SM that holds eight: the last wave takes an eighth of the first */
    assert_close(result.expected_achieved_high, (864 + 1 / 8.0) * 8 / (64.0 * (108 + 1 / 8.0)));
    assert_close(result.expected_elapsed_high, (864 + 1 / 8.0) * 8 / (64.0 * 108 * (1 + 1 / 8.0)));
}

/* Launches of docs/decisions/0024; the ends are computed by hand. */
static void a_partial_last_wave_makes_a_range(void **state)
{
    (void)state;
    static const struct {
        const char *gpu;
        uint32_t blocks, threads, registers;
        double low, high; /* expected_achieved, percent */
    } seen[] = {
        {"h100pcie", 1024, 256, 32, 56.6, 90.4},
        {"a100", 317, 1024, 32, 75.8, 84.1},
    };
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        struct occ_device device = device_named(seen[i].gpu);
        struct occ_launch launch = launch_of(seen[i].threads, seen[i].registers, 0);
        launch.grid[0] = seen[i].blocks;
        struct occ_result result = analysed(&device, &launch);
        assert_true(fabs(result.expected_achieved_low * 100 - seen[i].low) < 0.06);
        assert_true(fabs(result.expected_achieved_high * 100 - seen[i].high) < 0.06);
    }
}

/* Clusters: a wave may leave SMs empty, so blocks are spread over the others. */
static void a_range_where_the_grid_does_not_divide(void **state)
{
    (void)state;
    static const struct {
        uint32_t blocks, threads, sms;
        double achieved_low, achieved_high, elapsed_low, elapsed_high;
    } cases[] = {{9, 1024, 8, 0.5625, 0.6111, 0.34375, 0.5625},   {12, 1024, 8, 0.75, 0.8333, 0.625, 0.75},
                 {44, 1024, 32, 0.6875, 0.7727, 0.53125, 0.6875}, {20, 256, 8, 0.3125, 0.325, 0.2708, 0.3125},
                 {17, 1024, 32, 0.5, 0.5, 0.265625, 0.265625},    {16, 1024, 8, 1, 1, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct occ_device device = device_of(70, cases[i].sms);
        struct occ_launch launch = launch_of(cases[i].threads, 32, 0);
        launch.grid[0] = cases[i].blocks;
        struct occ_result result = analysed(&device, &launch);
        assert_true(fabs(result.expected_achieved_low - cases[i].achieved_low) < 1e-4);
        assert_true(fabs(result.expected_achieved_high - cases[i].achieved_high) < 1e-4);
        assert_true(fabs(result.expected_elapsed_low - cases[i].elapsed_low) < 1e-4);
        assert_true(fabs(result.expected_elapsed_high - cases[i].elapsed_high) < 1e-4);
    }
    /* ReferenceGemm of cutlass on an A100: 5 or 6 blocks per SM; the least active SM is active for 0.830 of
     * the time of the most active one */
    struct occ_device a100 = device_named("a100");
    struct occ_launch gemm = launch_of(256, 32, 0);
    gemm.grid[0] = 576;
    struct occ_result result = analysed(&a100, &gemm);
    double active = result.expected_elapsed_low / result.expected_achieved_high;
    assert_true(fabs(active - (36 + 72 * 5 / 6.0) / 108) < 1e-9);
    /* a MIG slice has its own SMs: 6 of 14 hold two blocks */
    struct occ_device slice = device_named("a100-1g.5gb");
    struct occ_launch small = launch_of(256, 32, 0);
    small.grid[0] = 20;
    result = analysed(&slice, &small);
    assert_int_equal(slice.sm_count, 14);
    assert_close(result.expected_elapsed_low, 8 / 64.0 * (6 * 4 + 8) / (14 * 2));
    /* 3 clusters of 4 blocks on 8 SMs: 12 blocks are a wave, and a grid of 8 blocks uses all 8 SMs */
    struct occ_device h100 = device_of(90, 8);
    struct occ_launch clusters = launch_of(1024, 32, 0);
    clusters.cluster[0] = 4;
    clusters.max_active_clusters = 3;
    clusters.grid[0] = 8;
    result = analysed(&h100, &clusters);
    assert_int_equal(result.wave_blocks, 12);
    assert_close(occ_uneven_grid(&result), 0);
    clusters.max_active_clusters = 1; /* a wave on 4 of 8 SMs */
    clusters.grid[0] = 4;
    result = analysed(&h100, &clusters);
    assert_close(occ_uneven_grid(&result), 0);
    assert_close(result.expected_elapsed_low, 0.25);
}

static void starting_blocks_costs_time(void **state)
{
    (void)state;
    struct occ_device device = device_named("a100");
    struct occ_launch launch = launch_of(256, 32, 0);
    launch.grid[0] = 108 * 8 * 10;
    struct occ_result result = analysed(&device, &launch);
    assert_close(occ_block_start_loss(&result, 200e3), OCC_BLOCK_START_NS / 20e3);
    assert_true(isnan(occ_block_start_loss(&result, 10 * OCC_BLOCK_START_MIN_WAVE_NS - 1)));
    assert_true(isnan(occ_block_start_loss(&result, NAN)) && isnan(occ_block_start_loss(&result, 0)));
    assert_true(isnan(occ_block_start_loss(&result, -1)) && isnan(occ_block_start_loss(&result, INFINITY)));
    launch.grid[0]++; /* a partial wave is a wave */
    result = analysed(&device, &launch);
    assert_close(occ_block_start_loss(&result, 220e3), OCC_BLOCK_START_NS / 20e3);
}

static void no_range_without_a_tail(void **state)
{
    (void)state;
    struct occ_device device = device_named("a100");
    static const uint32_t grids[] = {1, 54, 107, 108, 432, 864, 1728};
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        struct occ_launch launch = launch_of(256, 32, 0);
        launch.grid[0] = grids[i];
        struct occ_result result = analysed(&device, &launch);
        assert_true(result.expected_achieved_high == result.expected_achieved_low);
        assert_true(result.expected_elapsed_high == result.expected_elapsed_low);
    }
    /* one block per SM: its time cannot depend on others */
    struct occ_launch alone = launch_of(1024, 64, 0);
    alone.grid[0] = 150;
    struct occ_result result = analysed(&device, &alone);
    assert_int_equal(result.blocks_per_sm, 1);
    assert_true(result.expected_elapsed_high == result.expected_elapsed_low);
}

static void idle_sms_are_elapsed_and_not_active(void **state)
{
    (void)state;
    struct occ_device device = device_named("a100");
    struct occ_launch launch = launch_of(1024, 32, 0);
    launch.grid[0] = 54;
    struct occ_result result = analysed(&device, &launch);
    assert_close(result.theoretical, 1.0);
    assert_close(result.expected_achieved_low, 0.5);
    assert_close(result.expected_elapsed_low, 0.25);
}

static void tied_limits_share_the_loss(void **state)
{
    (void)state;
    struct occ_result result = simple("gtx1080", 768, 39, 0);
    assert_int_equal(result.limiters, BIT(WARPS) | BIT(REGISTERS));
    assert_close(result.cause[OCC_CAUSE_REGISTERS], 0.125);
    assert_close(result.cause[OCC_CAUSE_BLOCK_SIZE], 0.125);
    assert_close(sum_of_causes(&result) + result.expected_elapsed_low, 1.0);
}

static void block_size_that_does_not_divide(void **state)
{
    (void)state;
    struct occ_result result = simple("rtx3090", 1024, 16, 0);
    assert_int_equal(result.limiters, BIT(WARPS));
    assert_close(result.cause[OCC_CAUSE_BLOCK_SIZE], 1 / 3.0);
}

static void largest_grid_does_not_overflow(void **state)
{
    (void)state;
    struct occ_device device = device_named("h200");
    struct occ_launch launch = launch_of(1024, 32, 0);
    launch.grid[0] = GRID_X_MAX;
    launch.grid[1] = launch.grid[2] = 65535;
    struct occ_result result = analysed(&device, &launch);
    assert_true(result.grid_blocks == 9223090559730712575ull);
    assert_int_equal(result.wave_blocks, 264);
    assert_true(result.full_waves == result.grid_blocks / 264);
    assert_true(result.full_waves * 264 + result.partial_blocks == result.grid_blocks);
    assert_close(result.expected_elapsed_low, 1.0);
    assert_close(result.expected_achieved_low, 1.0);
}

/* ---- clusters ---- */

static struct occ_launch cluster_launch(uint32_t blocks, uint32_t cluster)
{
    struct occ_launch launch = launch_of(384, 80, 200 * KIB);
    launch.grid[0] = blocks;
    launch.cluster[0] = cluster;
    return launch;
}

static void clusters_stay_whole(void **state)
{
    (void)state;
    struct occ_device device = device_named("h100");
    struct occ_launch launch = cluster_launch(1600, 16);
    struct occ_result result = analysed(&device, &launch);
    assert_int_equal(result.wave_blocks, 128); /* 132 SMs hold 8 clusters of 16 */
    assert_int_equal(result.limit[OCC_LIMIT_CLUSTER], OCC_NO_LIMIT);
    assert_close(result.cause[OCC_CAUSE_CLUSTER], 4 * 12 / (132 * 64.0));
    assert_true(result.by_design & OCC_BY_DESIGN_CLUSTER);
    assert_close(sum_of_causes(&result) + result.expected_elapsed_low, 1.0);
}

static void driver_knows_how_many_clusters_are_active(void **state)
{
    (void)state;
    struct occ_device device = device_named("h100");
    struct occ_launch launch = cluster_launch(1600, 16);
    launch.max_active_clusters = 5;
    struct occ_result result = analysed(&device, &launch);
    assert_int_equal(result.wave_blocks, 80);
    assert_int_equal(result.limit[OCC_LIMIT_CLUSTER], 1);
    assert_int_equal(result.limiters, BIT(SMEM) | BIT(CLUSTER));
    assert_int_equal(result.full_waves, 20);
    assert_close(result.expected_elapsed_low, 80 * 12 / (132 * 64.0));
    assert_close(result.expected_achieved_low, 12 / 64.0);
    assert_close(result.cause[OCC_CAUSE_SMEM], 1 - 12 / 64.0);
    assert_close(result.cause[OCC_CAUSE_CLUSTER], 52 * 12 / (132 * 64.0));

    launch.static_smem_bytes = 0; /* nothing else limits to one block now */
    launch.block[0] = 64;
    result = analysed(&device, &launch);
    assert_int_equal(result.limiters, BIT(CLUSTER));
    assert_int_equal(result.blocks_per_sm, 1);
}

static void driver_cannot_say_more_than_fits(void **state)
{
    (void)state;
    struct occ_device device = device_named("h100");
    struct occ_launch launch = cluster_launch(64, 2);
    launch.max_active_clusters = UINT32_MAX;
    struct occ_result result = analysed(&device, &launch);
    assert_int_equal(result.wave_blocks, 132);
    assert_int_equal(result.limit[OCC_LIMIT_CLUSTER], OCC_NO_LIMIT);
}

static void impossible_clusters(void **state)
{
    (void)state;
    struct occ_result result;
    struct occ_device h100 = device_named("h100");
    struct occ_device a100 = device_named("a100");
    struct occ_device slice = device_of(90, 8);
    struct occ_launch launch = cluster_launch(32, 16);
    assert_int_equal(occ_analyse(&slice, &launch, &result), OCC_BAD_CLUSTER); /* 8 SMs, one block each */
    launch.cluster[0] = 3;
    assert_int_equal(occ_analyse(&h100, &launch, &result), OCC_BAD_CLUSTER); /* does not divide 32 */
    launch.cluster[0] = 32;
    assert_int_equal(occ_analyse(&h100, &launch, &result), OCC_BAD_CLUSTER);
    launch.cluster[0] = launch.cluster[1] = launch.cluster[2] = UINT32_MAX;
    assert_int_equal(occ_analyse(&h100, &launch, &result), OCC_BAD_CLUSTER);
    launch = launch_of(256, 32, 0);
    launch.grid[0] = 4;
    launch.cluster[0] = 2;
    assert_int_equal(occ_analyse(&a100, &launch, &result), OCC_BAD_CLUSTER);
    launch.cluster[0] = launch.cluster[1] = 1;
    assert_int_equal(occ_analyse(&a100, &launch, &result), OCC_OK);
    assert_false(result.by_design & OCC_BY_DESIGN_CLUSTER);
}

/* 132 SMs in GPCs of 16 and 18: a cluster of 16 fits once in each, one of 12 leaves more behind. */
static void clusters_stay_in_their_gpc(void **state)
{
    (void)state;
    struct occ_device device = device_named("h100");
    const uint32_t gpcs[] = {16, 16, 16, 16, 16, 16, 18, 18};
    struct occ_launch launch = cluster_launch(2400, 12);
    assert_int_equal(analysed(&device, &launch).wave_blocks, 132);
    memcpy(device.gpc_sms, gpcs, sizeof(gpcs));
    struct occ_result result = analysed(&device, &launch);
    assert_int_equal(result.wave_blocks, 8 * 12);
    assert_int_equal(result.blocks_per_sm, 1);
    assert_int_equal(result.limiters, BIT(SMEM) | BIT(CLUSTER));
    assert_close(result.cause[OCC_CAUSE_CLUSTER], 36 * 12 / (132 * 64.0));
    assert_close(sum_of_causes(&result) + result.expected_elapsed_low, 1.0);

    launch.cluster[0] = 16;
    assert_int_equal(analysed(&device, &launch).wave_blocks, 8 * 16);
    launch.max_active_clusters = 7; /* the driver knows better */
    assert_int_equal(analysed(&device, &launch).wave_blocks, 7 * 16);

    launch = cluster_launch(2400, 12);
    launch.static_smem_bytes = 100 * KIB; /* two blocks per SM: 2 x 16 / 12 = 2 or 3 clusters a GPC */
    result = analysed(&device, &launch);
    assert_int_equal(result.wave_blocks, (6 * 2 + 2 * 3) * 12);
    assert_int_equal(result.blocks_per_sm, 2);

    struct occ_launch plain = launch_of(256, 32, 0); /* nothing to do with blocks that are alone */
    assert_int_equal(analysed(&device, &plain).wave_blocks, 132 * 8);
}

static void impossible_gpcs(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(256, 32, 0);
    struct occ_result result;
    const uint32_t wrong[][4] = {{132, 1}, {66, 65}, {66, 0, 66}, {UINT32_MAX, 133}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct occ_device device = device_named("h100");
        memcpy(device.gpc_sms, wrong[i], sizeof(wrong[i]));
        assert_int_equal(occ_analyse(&device, &launch, &result), OCC_BAD_DEVICE);
    }
    struct occ_device device = device_named("h100");
    device.gpc_sms[0] = device.gpc_sms[1] = 66;
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_OK);
}

/* ---- by-design marks ---- */

static uint32_t marks_of(uint32_t blocks, uint32_t threads, uint32_t smem)
{
    struct occ_device device = device_named("a100");
    struct occ_launch launch = launch_of(threads, 32, smem);
    launch.grid[0] = blocks;
    return analysed(&device, &launch).by_design;
}

static void marks_of_low_by_design(void **state)
{
    (void)state;
    assert_int_equal(marks_of(108, 256, 0), OCC_BY_DESIGN_PERSISTENT);
    assert_int_equal(marks_of(108 * 8, 256, 0), OCC_BY_DESIGN_PERSISTENT);
    assert_int_equal(marks_of(108 * 9, 256, 0), 0); /* more than one wave */
    assert_int_equal(marks_of(107, 256, 0), 0);
    assert_int_equal(marks_of(200, 256, 0), 0);
    assert_int_equal(marks_of(1000, 256, 100 * KIB), OCC_BY_DESIGN_ONE_BLOCK_SMEM);
    assert_int_equal(marks_of(1000, 256, 80 * KIB), 0); /* two blocks */
    assert_int_equal(marks_of(108, 256, 100 * KIB), OCC_BY_DESIGN_PERSISTENT | OCC_BY_DESIGN_ONE_BLOCK_SMEM);

    struct occ_device device = device_named("a100");
    struct occ_launch launch = launch_of(256, 32, 50 * KIB);
    launch.grid[0] = 1000;
    launch.smem_config_bytes = 64 * KIB; /* one block, because the driver chose so */
    struct occ_result result = analysed(&device, &launch);
    assert_int_equal(result.blocks_per_sm, 1);
    assert_int_equal(result.by_design, 0);
}

/* ---- bad input ---- */

static void refused(const char *gpu, const struct occ_launch *launch, enum occ_status expected)
{
    struct occ_device device = device_named(gpu);
    struct occ_result untouched;
    struct occ_result result;
    memset(&untouched, 0x5a, sizeof(untouched));
    memset(&result, 0x5a, sizeof(result));
    assert_int_equal(occ_analyse(&device, launch, &result), expected);
    assert_memory_equal(&result, &untouched, sizeof(result));
}

static void impossible_grids(void **state)
{
    (void)state;
    const uint32_t grids[][3] = {{0, 1, 1},     {1, 0, 1},     {1, 1, 0},
                                 {1, 65536, 1}, {1, 1, 65536}, {GRID_X_MAX + 1u, 1, 1}};
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++) {
        struct occ_launch launch = launch_of(256, 32, 0);
        memcpy(launch.grid, grids[i], sizeof(launch.grid));
        refused("t4", &launch, OCC_BAD_GRID);
    }
    struct occ_launch wide = launch_of(256, 32, 0);
    wide.grid[0] = 65536;
    refused("gtx580", &wide, OCC_BAD_GRID);
}

static void impossible_blocks(void **state)
{
    (void)state;
    const uint32_t blocks[][3] = {{0, 1, 1},    {1, 0, 1},  {1, 1, 0},   {1025, 1, 1},
                                  {1, 1025, 1}, {1, 1, 65}, {32, 33, 1}, {UINT32_MAX, UINT32_MAX, 1}};
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        struct occ_launch launch = launch_of(256, 32, 0);
        memcpy(launch.block, blocks[i], sizeof(launch.block));
        refused("t4", &launch, OCC_BAD_BLOCK);
    }
}

static void impossible_resources(void **state)
{
    (void)state;
    refused("t4", &(struct occ_launch){.grid = {1, 1, 1}, .block = {32, 1, 1}}, OCC_BAD_REGISTERS);
    struct occ_launch launch =
        launch_of(256, 256, 0); /* the unit of allocation, not a number that compilers use */
    refused("t4", &launch, OCC_BAD_REGISTERS);
    launch = launch_of(1024, 65, 0); /* 72 x 1024 > 64 K */
    refused("t4", &launch, OCC_BAD_REGISTERS);
    launch = launch_of(800, 80, 0); /* 25 warps of 2560 fit, the hardware checks 28 */
    refused("t4", &launch, OCC_BAD_REGISTERS);
    launch = launch_of(704, 88, 0); /* 22 warps of 2816 fit, also in two files, but 24 do not in four */
    refused("p100", &launch, OCC_BAD_REGISTERS);
    launch = launch_of(32, 64, 0);
    refused("gtx680", &launch, OCC_BAD_REGISTERS);

    launch = launch_of(256, 32, 64 * KIB + 1);
    refused("t4", &launch, OCC_BAD_SMEM);
    launch = launch_of(256, 32, UINT32_MAX);
    launch.dynamic_smem_bytes = UINT32_MAX;
    refused("t4", &launch, OCC_BAD_SMEM);
    launch = launch_of(256, 32, 48 * KIB);
    launch.dynamic_smem_bytes = 1;
    launch.smem_optin_known = true;
    refused("a100", &launch, OCC_BAD_SMEM);

    launch = launch_of(256, 32, 0);
    launch.barriers = 17;
    refused("t4", &launch, OCC_BAD_BARRIERS);
    launch = launch_of(256, 32, 0);
    launch.carveout_percent = 101;
    refused("t4", &launch, OCC_BAD_CARVEOUT);
}

static void most_that_a_block_may_have(void **state)
{
    (void)state;
    assert_int_equal(simple("h100", 256, 32, 227 * KIB).blocks_per_sm, 1);
    assert_int_equal(simple("a100", 256, 32, 163 * KIB).blocks_per_sm, 1);
    assert_int_equal(simple("rtx3090", 256, 32, 99 * KIB).blocks_per_sm, 1);
    assert_int_equal(simple("t4", 256, 32, 64 * KIB).blocks_per_sm, 1);
    assert_int_equal(simple("gtx1080", 256, 32, 48 * KIB).blocks_per_sm, 2);
    assert_int_equal(simple("t4", 1024, 64, 0).blocks_per_sm, 1);

    struct occ_launch launch = launch_of(256, 32, 99 * KIB + 1);
    refused("rtx3090", &launch, OCC_BAD_SMEM);
}

static void impossible_devices(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(256, 32, 0);
    struct occ_result result;
    struct occ_device device = device_named("t4");
    device.sm_count = 0;
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_BAD_DEVICE);
    device = device_named("t4");
    device.warp_size = 0;
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_BAD_DEVICE);
    device = device_named("t4");
    device.registers_per_sm = UINT32_MAX;
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_BAD_DEVICE);
    device = (struct occ_device){.cc = 75};
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_BAD_DEVICE);
}

/* A device that reports less for an SM than for a block: no block fits, and that is said. */
static void sm_smaller_than_a_block(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(1024, 32, 40 * KIB);
    struct occ_result result;
    struct occ_device device = device_named("t4");
    device.max_threads_per_sm = 512;
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_BAD_BLOCK);
    device = device_named("t4");
    device.registers_per_sm = 16384;
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_BAD_REGISTERS);
    device = device_named("t4");
    device.smem_per_sm_bytes = 32 * KIB;
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_BAD_SMEM);
    device = device_named("h100");
    device.max_barriers_per_sm = 2;
    launch.barriers = 4;
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_BAD_BARRIERS);
}

/* ---- tables ---- */

static void table_is_ascending_and_whole(void **state)
{
    (void)state;
    struct occ_device device;
    uint32_t last_cc = 0;
    size_t rows = 0;
    for (; occ_device_at(rows, &device) == OCC_OK; rows++) {
        struct occ_device found;
        assert_true(device.cc > last_cc);
        last_cc = device.cc;
        assert_int_equal(occ_device_from_cc(device.cc, &found), OCC_OK);
        assert_memory_equal(&device, &found, sizeof(found));
        device.sm_count = 1;
        struct occ_launch launch = launch_of(32, 16, 0);
        analysed(&device, &launch);
    }
    assert_int_equal(rows, 27);
    assert_int_equal(last_cc, 121);
    assert_int_equal(occ_device_from_cc(0, &device), OCC_BAD_DEVICE);
    assert_int_equal(occ_device_from_cc(40, &device), OCC_BAD_DEVICE);
    assert_int_equal(occ_device_from_cc(130, &device), OCC_BAD_DEVICE);
}

static void what_a_device_reports_stays(void **state)
{
    (void)state;
    struct occ_device device = {.cc = 90, .sm_count = 16, .smem_per_sm_bytes = 200 * KIB};
    assert_int_equal(occ_device_complete(&device), OCC_OK);
    assert_int_equal(device.sm_count, 16);
    assert_int_equal(device.smem_per_sm_bytes, 200 * KIB);
    assert_int_equal(device.max_threads_per_sm, 2048);
    assert_int_equal(device.smem_reserved_per_block_bytes, 1024);
    assert_int_equal(occ_carveout_at_least(&device, 197 * KIB), 200 * KIB);
}

static void unknown_capabilities_take_the_nearest(void **state)
{
    (void)state;
    struct occ_device device = {.cc = 109, .sm_count = 1}; /* same major version: 10.3 */
    assert_int_equal(occ_device_complete(&device), OCC_OK);
    assert_int_equal(device.cc, 109);
    assert_int_equal(occ_device_rules_of(109), 103);
    assert_int_equal(occ_device_rules_of(140), 121);
    assert_int_equal(occ_device_rules_of(90), 90);
    assert_int_equal(occ_device_rules_of(41), 0);
    assert_int_equal(device.max_threads_per_sm, 2048);
    device = (struct occ_device){.cc = 140, .sm_count = 1}; /* newer than all: 12.1 */
    assert_int_equal(occ_device_complete(&device), OCC_OK);
    assert_int_equal(device.max_threads_per_sm, 1536);
    assert_int_equal(occ_carveout_at_least(&device, 40 * KIB), 64 * KIB);
    device = (struct occ_device){.cc = 13};
    assert_int_equal(occ_device_complete(&device), OCC_BAD_DEVICE);
    device = (struct occ_device){.cc = 41}; /* never existed */
    assert_int_equal(occ_device_complete(&device), OCC_BAD_DEVICE);
}

static uint32_t cores_per_sm(uint32_t cc)
{
    static const struct {
        uint32_t cc, cores; /* up to this capability */
    } rows[] = {{20, 32}, {21, 48}, {37, 192}, {53, 128}, {60, 64}, {62, 128}, {80, 64}, {UINT32_MAX, 128}};
    size_t i = 0;
    while (cc > rows[i].cc)
        i++;
    return rows[i].cores;
}

/* A second list, transcribed separately, knows the same GPUs. */
static void gpus_are_those_of_the_second_list(void **state)
{
    (void)state;
    char line[256], name[32];
    uint32_t cc, sms, cores;
    size_t listed = 0, known = 0;
    FILE *file = fopen(OCC_TEST_DATA "/gpus.txt", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        assert_int_equal(sscanf(line, "%31[^,], %u, %u, %u  # %*[^\n]", name, &cc, &sms, &cores), 4);
        const struct occ_gpu *gpu = occ_gpu_find(name);
        if (!gpu || gpu->cc != cc || gpu->sm_count != sms)
            fail_msg("%s: %u, %u SMs instead of %u, %u SMs", name, gpu ? gpu->cc : 0, gpu ? gpu->sm_count : 0,
                     cc, sms);
        assert_int_equal(cores, gpu->slice_of ? 0 : sms * cores_per_sm(cc));
        listed++;
    }
    (void)fclose(file);
    while (occ_gpu_at(known))
        known++;
    assert_int_equal(listed, known);
}

static void gpus_by_name(void **state)
{
    (void)state;
    assert_int_equal(occ_gpu_find("t4")->sm_count, 40);
    assert_int_equal(occ_gpu_find("a100")->sm_count, 108);
    assert_int_equal(occ_gpu_find("h200")->sm_count, 132);
    assert_int_equal(occ_gpu_find("rtx5090")->cc, 120);
    assert_null(occ_gpu_find("T4"));
    assert_null(occ_gpu_find(""));
    assert_null(occ_gpu_find(NULL));
    size_t count = 0;
    for (const struct occ_gpu *gpu; (gpu = occ_gpu_at(count)) != NULL; count++) {
        struct occ_device device;
        assert_true(occ_gpu_find(gpu->name) == gpu); /* no name twice */
        assert_int_equal(occ_device_from_cc(gpu->cc, &device), OCC_OK);
        assert_int_not_equal(gpu->sm_count, 0);
    }
    assert_true(count > 40);
}

static void slices_are_gpus(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t sms;
        const char *whole;
    } known[] = {
        {"a100-1g.5gb", 14, "a100"},  {"a100-3g.20gb", 42, "a100"},   {"a100-7g.40gb", 98, "a100"},
        {"h100-1g.10gb", 16, "h100"}, {"h100-3g.40gb", 60, "h100"},   {"h200-1g.35gb", 26, "h200"},
        {"h200-4g.71gb", 64, "h200"}, {"h200-7g.141gb", 132, "h200"}, {"b200-1g.23gb", 18, "b200"},
        {"b200-2g.45gb", 36, "b200"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct occ_device slice = device_named(known[i].name);
        const struct occ_gpu *gpu = occ_gpu_find(known[i].name);
        assert_int_equal(slice.sm_count, known[i].sms);
        assert_string_equal(gpu->slice_of, known[i].whole);
        assert_int_equal(gpu->cc, occ_gpu_find(known[i].whole)->cc);
    }
    for (size_t i = 0; occ_gpu_at(i); i++) {
        const struct occ_gpu *gpu = occ_gpu_at(i);
        if (!gpu->slice_of)
            continue;
        assert_true(gpu->sm_count <= occ_gpu_find(gpu->slice_of)->sm_count);
        assert_int_equal(strncmp(gpu->name, gpu->slice_of, strlen(gpu->slice_of)), 0);
    }
    assert_null(occ_gpu_find("a100")->slice_of);

    struct occ_launch launch = launch_of(256, 32, 0); /* the same grid on a slice: more waves */
    launch.grid[0] = 108 * 8;
    struct occ_device whole = device_named("a100");
    struct occ_device slice = device_named("a100-1g.5gb");
    assert_int_equal(analysed(&whole, &launch).full_waves, 1);
    assert_int_equal(analysed(&slice, &launch).full_waves, 7);
    assert_int_equal(analysed(&slice, &launch).wave_blocks, 112);
}

static void devices_by_name(void **state)
{
    (void)state;
    struct occ_device device;
    assert_int_equal(occ_device_from_name("rtx5090", &device), OCC_OK);
    assert_int_equal(device.cc, 120);
    assert_int_equal(device.sm_count, 170);
    assert_int_equal(occ_device_from_name("gtx550ti", &device), OCC_OK);
    assert_int_equal(device.cc, 21);
    assert_int_equal(device.sm_count, 4);
    assert_int_equal(occ_device_from_name("l40s", &device), OCC_OK);
    assert_int_equal(device.sm_count, 142);
    assert_int_equal(occ_device_from_name("b200", &device), OCC_OK);
    assert_int_equal(device.sm_count, 148);
    assert_int_equal(occ_device_from_name("b20", &device), OCC_BAD_DEVICE);
    assert_int_equal(occ_device_from_name(NULL, &device), OCC_BAD_DEVICE);
}

/* ---- words ---- */

static void words_for_everything(void **state)
{
    (void)state;
    assert_string_equal(occ_limit_word(OCC_LIMIT_SMEM), "shared_memory");
    assert_string_equal(occ_limit_text(OCC_LIMIT_SMEM), "shared memory");
    assert_string_equal(occ_limit_word((enum occ_limit)99), "unknown");
    assert_string_equal(occ_cause_word(OCC_CAUSE_TAIL), "tail");
    assert_string_equal(occ_cause_text(OCC_CAUSE_TAIL), "partial last wave");
    assert_string_equal(occ_cause_word((enum occ_cause) - 1), "unknown");
    assert_string_equal(occ_status_text(OCC_OK), "ok");
    assert_string_equal(occ_status_text((enum occ_status)99), "unknown");
    for (int status = 0; status <= OCC_BAD_CARVEOUT; status++)
        assert_string_not_equal(occ_status_text((enum occ_status)status), "unknown");
}

static void limiters_fit_their_buffer(void **state)
{
    (void)state;
    char text[64];
    char small[8];
    const uint32_t all = (1u << OCC_LIMIT_COUNT) - 1;
    assert_string_equal(occ_limiters_text(all, text, sizeof(text)),
                        "warps+registers+shared_memory+blocks+barriers+cluster");
    assert_string_equal(occ_limiters_text(0, text, sizeof(text)), "");
    assert_string_equal(occ_limiters_text(~0u, small, sizeof(small)), "warps+r");
    assert_string_equal(occ_limiters_text(all, small, 0), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers_are_rounded_for_a_warp),
        cmocka_unit_test(register_files_hold_whole_warps),
        cmocka_unit_test(shared_memory_is_rounded_for_a_block),
        cmocka_unit_test(t4_with_71_registers),
        cmocka_unit_test(gtx1080_with_39_registers),
        cmocka_unit_test(fermi_holds_eight_blocks),
        cmocka_unit_test(smallest_block_size_for_full_occupancy),
        cmocka_unit_test(co_limiters_are_all_named),
        cmocka_unit_test(blocks_are_whole_warps_in_all_dimensions),
        cmocka_unit_test(barriers_limit_from_hopper_on),
        cmocka_unit_test(carveouts_of_the_driver_and_of_the_launch),
        cmocka_unit_test(carveout_is_only_what_the_largest_gives_back),
        cmocka_unit_test(carveout_that_follows_the_others_is_no_limiter),
        cmocka_unit_test(steps_of_the_carveout),
        cmocka_unit_test(every_step_of_the_carveout),
        cmocka_unit_test(maximum_of_dynamic_shared_memory),
        cmocka_unit_test(t4_with_250_blocks),
        cmocka_unit_test(fifteen_sms_with_four_blocks),
        cmocka_unit_test(last_wave_of_one_block),
        cmocka_unit_test(a_partial_last_wave_makes_a_range),
        cmocka_unit_test(no_range_without_a_tail),
        cmocka_unit_test(a_range_where_the_grid_does_not_divide),
        cmocka_unit_test(starting_blocks_costs_time),
        cmocka_unit_test(idle_sms_are_elapsed_and_not_active),
        cmocka_unit_test(tied_limits_share_the_loss),
        cmocka_unit_test(block_size_that_does_not_divide),
        cmocka_unit_test(largest_grid_does_not_overflow),
        cmocka_unit_test(clusters_stay_whole),
        cmocka_unit_test(driver_knows_how_many_clusters_are_active),
        cmocka_unit_test(driver_cannot_say_more_than_fits),
        cmocka_unit_test(impossible_clusters),
        cmocka_unit_test(clusters_stay_in_their_gpc),
        cmocka_unit_test(impossible_gpcs),
        cmocka_unit_test(marks_of_low_by_design),
        cmocka_unit_test(impossible_grids),
        cmocka_unit_test(impossible_blocks),
        cmocka_unit_test(impossible_resources),
        cmocka_unit_test(most_that_a_block_may_have),
        cmocka_unit_test(impossible_devices),
        cmocka_unit_test(sm_smaller_than_a_block),
        cmocka_unit_test(table_is_ascending_and_whole),
        cmocka_unit_test(what_a_device_reports_stays),
        cmocka_unit_test(unknown_capabilities_take_the_nearest),
        cmocka_unit_test(gpus_by_name),
        cmocka_unit_test(gpus_are_those_of_the_second_list),
        cmocka_unit_test(slices_are_gpus),
        cmocka_unit_test(devices_by_name),
        cmocka_unit_test(words_for_everything),
        cmocka_unit_test(limiters_fit_their_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
