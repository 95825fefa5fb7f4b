/*
 * Advice and curves: worked examples, and properties of all advice on random launches: a launch that follows
 * the advice reaches the predicted values; a threshold is the last value that does; no helpful advice is
 * missing.
 */
#include "occupancy/advice.h"
#include "occupancy/sweep.h"
#include "test_occupancy_launches.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define KIB                 1024u
#define LAUNCHES_PER_DEVICE 1500

#define assert_close(value, expected) assert_true(fabs((value) - (expected)) < 1e-9)

static struct occ_device device_named(const char *name)
{
    struct occ_device device;
    assert_int_equal(occ_device_from_name(name, &device), OCC_OK);
    return device;
}

static struct occ_launch launch_of(uint32_t blocks, uint32_t threads, uint32_t registers, uint32_t smem)
{
    return (struct occ_launch){
        .grid = {blocks, 1, 1},
        .block = {threads, 1, 1},
        .registers_per_thread = registers,
        .dynamic_smem_bytes = smem,
        .carveout_percent = -1,
    };
}

/* The advice of one kind. */
struct found {
    struct occ_advice items[OCC_ADVICE_MAX];
    size_t count;
};

static struct found advice_on(const struct occ_device *device, const struct occ_launch *launch,
                              enum occ_advice_kind kind)
{
    struct occ_advice all[OCC_ADVICE_MAX];
    struct occ_result result;
    struct found found = {.count = 0};
    assert_int_equal(occ_analyse(device, launch, &result), OCC_OK);
    size_t count = occ_advise(device, launch, &result, all, OCC_ADVICE_MAX);
    assert_true(count <= OCC_ADVICE_MAX);
    for (size_t i = 0; i < count; i++)
        if (all[i].kind == kind)
            found.items[found.count++] = all[i];
    return found;
}

static struct found advice_on_gpu(const char *gpu, const struct occ_launch *launch, enum occ_advice_kind kind)
{
    struct occ_device device = device_named(gpu);
    return advice_on(&device, launch, kind);
}

/* ---- examples ---- */

static void registers_of_the_next_block(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(320, 128, 71, 512);
    struct found found = advice_on_gpu("t4", &launch, OCC_ADVICE_REGISTERS);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.items[0].now, 71);
    assert_int_equal(found.items[0].needed, 64);
    assert_int_equal(found.items[0].blocks_now, 7);
    assert_int_equal(found.items[0].blocks_then, 8);
    assert_close(found.items[0].theoretical_now, 0.875);
    assert_close(found.items[0].theoretical_then, 1);
    assert_int_equal(found.items[0].cost_amount, 7 * 4);
    assert_int_equal(found.items[0].launch.registers_per_thread, 64);
}

static void registers_of_the_next_block_and_of_half_of_them(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(1080, 128, 133, 0); /* 3 of 16 blocks */
    struct found found = advice_on_gpu("a100", &launch, OCC_ADVICE_REGISTERS);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.items[0].needed, 128);
    assert_int_equal(found.items[0].blocks_then, 4);
    assert_int_equal(found.items[1].needed, 72); /* 64 and less are below half */
    assert_int_equal(found.items[1].blocks_then, 7);

    launch = launch_of(1080, 256, 128, 0); /* 2 of 8 blocks: 80 and 64 registers give 3 and 4 */
    found = advice_on_gpu("a100", &launch, OCC_ADVICE_REGISTERS);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.items[0].needed, 80);
    assert_int_equal(found.items[1].needed, 64);
    assert_int_equal(found.items[1].blocks_then, 4);

    launch = launch_of(1080, 256, 32, 0); /* full */
    assert_int_equal(advice_on_gpu("a100", &launch, OCC_ADVICE_REGISTERS).count, 0);
}

static void shared_memory_of_the_next_block(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(1080, 256, 32, 24 * KIB); /* 25 KB with the reserve: 6 of 8 blocks */
    launch.static_smem_bytes = KIB;
    launch.dynamic_smem_bytes -= KIB;
    struct found found = advice_on_gpu("a100", &launch, OCC_ADVICE_SMEM);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.items[0].blocks_now, 6);
    assert_int_equal(found.items[0].blocks_then, 7);
    assert_int_equal(found.items[0].now, 24 * KIB);
    assert_int_equal(found.items[0].needed, 22912); /* 164 KB / 7 down to 128 bytes, less 1 KB */
    assert_int_equal(found.items[0].launch.static_smem_bytes, KIB);
    assert_int_equal(found.items[1].needed, 164 * KIB / 8 - KIB);
    assert_close(found.items[1].theoretical_then, 1);
}

/* 5 blocks of 48 registers (6144 a warp of 256 threads) and of 32 KB in 164: neither alone gives a sixth. */
static void registers_and_shared_memory_that_tie(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(1080, 256, 48, 31 * KIB);
    struct occ_device device = device_named("a100");
    assert_int_equal(advice_on(&device, &launch, OCC_ADVICE_REGISTERS).count, 0);
    assert_int_equal(advice_on(&device, &launch, OCC_ADVICE_SMEM).count, 0);
    struct found found = advice_on(&device, &launch, OCC_ADVICE_REGISTERS_SMEM);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.items[0].blocks_now, 5);
    assert_int_equal(found.items[0].blocks_then, 6);
    assert_int_equal(found.items[0].now, 48);
    assert_int_equal(found.items[0].needed, 40);
    assert_int_equal(found.items[0].also_now, 31 * KIB);
    assert_int_equal(found.items[0].also_needed, 164 * KIB / 6 / 128 * 128 - KIB);
    assert_int_equal(found.items[0].launch.registers_per_thread, 40);
    assert_int_equal(found.items[0].launch.dynamic_smem_bytes, found.items[0].also_needed);
    assert_int_equal(found.items[1].needed, 32);
    assert_int_equal(found.items[1].also_needed, 164 * KIB / 8 - KIB);
    assert_int_equal(found.items[1].blocks_then, 8);
}

/* The launch prefers a carve-out of 0 %: less shared memory could shrink the carve-out and gain nothing. The
 * threshold therefore applies to the present carve-out. */
static void shared_memory_under_the_present_carveout(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(1080, 256, 32, 60 * KIB);
    launch.carveout_percent = 0;
    struct found found = advice_on_gpu("a100", &launch, OCC_ADVICE_SMEM);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.items[0].needed, 31 * KIB); /* two blocks in 64 KB */
    assert_int_equal(found.items[0].blocks_then, 2);
    assert_int_equal(found.items[0].launch.smem_config_bytes, 64 * KIB);
}

static void carveout_that_gives_more(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(1080, 256, 32, 15 * KIB);
    launch.smem_config_bytes = 32 * KIB; /* 2 blocks of 16 KB; 4 in 64, 8 in 132 */
    struct found found = advice_on_gpu("a100", &launch, OCC_ADVICE_CARVEOUT);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.items[0].now, 32 * KIB);
    assert_int_equal(found.items[0].needed, 64 * KIB);
    assert_int_equal(found.items[0].blocks_then, 4);
    assert_int_equal(found.items[1].needed, 132 * KIB);
    assert_int_equal(found.items[1].blocks_then, 8);
    assert_int_equal(found.items[1].cost_amount, 100 * KIB);
    assert_int_equal(found.items[1].launch.carveout_percent, 80);

    launch = launch_of(1080, 256, 32, 8 * KIB); /* cache preference instead of percent */
    launch.smem_config_bytes = 16 * KIB;
    found = advice_on_gpu("k40", &launch, OCC_ADVICE_CARVEOUT);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.items[0].needed, 32 * KIB);
    assert_int_equal(found.items[1].needed, 48 * KIB);
    assert_int_equal(found.items[1].launch.smem_config_bytes, 48 * KIB);
}

static void barriers_of_the_next_block(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(1320, 64, 16, 0);
    launch.barriers = 16; /* 4 of 32 blocks */
    struct found found = advice_on_gpu("h100", &launch, OCC_ADVICE_BARRIERS);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.items[0].needed, 12);
    assert_int_equal(found.items[0].blocks_then, 5);
    assert_int_equal(found.items[1].needed, 2);
    assert_int_equal(found.items[1].blocks_then, 32);
}

static void cluster_that_leaves_fewer_sms_idle(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(1584, 384, 80, 200 * KIB);
    launch.cluster[0] = 16; /* 8 clusters on 132 SMs: 13 waves instead of 12 */
    struct found found = advice_on_gpu("h100", &launch, OCC_ADVICE_CLUSTER);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.items[0].now, 16);
    assert_int_equal(found.items[0].needed, 4); /* 8 do not fit better */
    assert_int_equal(found.items[0].cost_amount, 12);

    launch.max_active_clusters = 8; /* the driver's answer for size 16, unknown for 4 */
    assert_int_equal(advice_on_gpu("h100", &launch, OCC_ADVICE_CLUSTER).count, 0);
}

static void block_sizes_that_reach_the_best(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(100, 96, 16, 0); /* 24 of 48 warps: "at least 192 threads" */
    struct found found = advice_on_gpu("gtx550ti", &launch, OCC_ADVICE_BLOCK_SIZE);
    const uint32_t sizes[] = {192, 256, 384, 512, 768};
    assert_int_equal(found.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(found.items[i].needed, sizes[i]);
        assert_close(found.items[i].theoretical_then, 1);
    }
    assert_int_equal(found.items[0].launch.grid[0], 50);
    assert_int_equal(found.items[0].cost_amount, 0);
    assert_int_equal(found.items[1].launch.grid[0], 38); /* 9600 threads */
    assert_int_equal(found.items[1].cost_amount, 38 * 256 - 9600);
}

static void grids_that_end_on_a_full_wave(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(250, 128, 64, 0);
    struct found found = advice_on_gpu("t4", &launch, OCC_ADVICE_FILL_WAVE);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.items[0].needed, 320);
    assert_int_equal(found.items[0].cost_amount, 70);
    assert_close(found.items[0].elapsed_high_now, 0.78125);
    assert_close(found.items[0].elapsed_low_then, 1);
    found = advice_on_gpu("t4", &launch, OCC_ADVICE_EVEN_GRID);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.items[0].needed, 280); /* 7 blocks on each of 40 SMs */
    assert_close(found.items[0].elapsed_low_then, 0.875);
    launch = launch_of(290, 128, 64, 0); /* the next multiple is the wave */
    assert_int_equal(advice_on_gpu("t4", &launch, OCC_ADVICE_EVEN_GRID).count, 0);
    launch = launch_of(240, 128, 64, 0);
    assert_int_equal(advice_on_gpu("t4", &launch, OCC_ADVICE_EVEN_GRID).count, 0);

    launch = launch_of(330, 128, 64, 0);
    found = advice_on_gpu("t4", &launch, OCC_ADVICE_GRID_DOWN);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.items[0].needed, 320);
    found = advice_on_gpu("t4", &launch, OCC_ADVICE_GRID_UP);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.items[0].needed, 640);
    assert_int_equal(found.items[0].launch.grid[0], 640);
    assert_close(found.items[0].elapsed_low_then, 1);
}

static void grids_keep_their_shape_if_they_can(void **state)
{
    (void)state;
    struct occ_launch launch = launch_of(165, 128, 64, 0);
    launch.grid[1] = 2;
    struct found found = advice_on_gpu("t4", &launch, OCC_ADVICE_GRID_UP);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.items[0].needed, 640);
    assert_int_equal(found.items[0].launch.grid[0], 320);
    assert_int_equal(found.items[0].launch.grid[1], 2);

    launch.grid[0] = 110;
    launch.grid[1] = 3; /* 640 is no multiple of 3 */
    found = advice_on_gpu("t4", &launch, OCC_ADVICE_GRID_UP);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.items[0].launch.grid[0], 640);
    assert_int_equal(found.items[0].launch.grid[1], 1);
}

static void full_occupancy_needs_no_advice(void **state)
{
    (void)state;
    struct occ_device device = device_named("a100");
    struct occ_launch launch = launch_of(108 * 8, 256, 32, 0);
    struct occ_result result;
    struct occ_advice advice;
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_OK);
    assert_close(result.expected_elapsed_low, 1);
    assert_int_equal(occ_advise(&device, &launch, &result, &advice, 1), 0);
}

/* A stored result may be of a launch that there is not. */
static void a_launch_of_nothing_has_no_advice(void **state)
{
    (void)state;
    struct occ_device device = device_named("a100");
    struct occ_launch launch = launch_of(1080, 256, 48, 0), nothing = {0};
    struct occ_result result;
    struct occ_advice advice;
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_OK);
    assert_true(occ_advise(&device, &launch, &result, &advice, 1) > 0);
    assert_int_equal(occ_advise(&device, &nothing, &result, &advice, 1), 0);
}

static void grid_stride_sizes(void **state)
{
    (void)state;
    assert_int_equal(occ_grid_stride_blocks(1u << 30, 256, 80, 2048, 32), 80 * 8 * 32);
    assert_int_equal(occ_grid_stride_blocks(10000, 256, 80, 2048, 32), 40);
    assert_int_equal(occ_grid_stride_blocks(10001, 1024, 40, 1024, 32), 10);
    assert_int_equal(occ_grid_stride_blocks(1000000, 1024, 40, 1024, 1), 40);
    assert_int_equal(occ_grid_stride_blocks(1u << 30, 96, 82, 1536, 32), 82 * 16 * 32);
    assert_int_equal(occ_grid_stride_blocks(0, 256, 80, 2048, 32), 1);
    assert_int_equal(occ_grid_stride_blocks(100, 0, 80, 2048, 32), 1);
    assert_int_equal(occ_grid_stride_blocks(100, 32, 80, 2048, 0), 1);
    assert_true(occ_grid_stride_blocks(UINT64_MAX, 1, UINT32_MAX, UINT32_MAX, UINT32_MAX) == UINT64_MAX);
}

/* ---- properties ---- */

static bool same_result(const struct occ_advice *item, const struct occ_result *then)
{
    return item->blocks_then == then->blocks_per_sm && item->theoretical_then == then->theoretical &&
           item->elapsed_low_then == then->expected_elapsed_low &&
           item->elapsed_high_then == then->expected_elapsed_high;
}

static void check_block_size(const struct occ_device *device, const struct occ_launch *launch,
                             const struct occ_advice *item)
{
    uint64_t before = (uint64_t)launch->grid[0] * occ_sweep_present(launch, OCC_AXIS_BLOCK_SIZE);
    uint64_t after = item->launch.grid[0] * item->needed;
    assert_int_equal(item->needed % device->warp_size, 0);
    assert_int_equal(device->max_threads_per_sm % item->needed, 0);
    assert_true(item->needed * device->max_blocks_per_sm >= device->max_threads_per_sm);
    assert_true(after >= before);
    assert_true(item->cost_amount == (after - before) * launch->grid[1] * launch->grid[2]);
}

static uint32_t blocks_of(const struct occ_device *device, const struct occ_launch *launch)
{
    struct occ_result result;
    return occ_analyse(device, launch, &result) == OCC_OK ? result.blocks_per_sm : 0;
}

/* Checks that one more unit of the reduced resource loses the gained block again. */
static void check_threshold(const struct occ_device *device, const struct occ_advice *item)
{
    struct occ_launch more = item->launch;
    switch (item->kind) {
    case OCC_ADVICE_REGISTERS:
        more.registers_per_thread++;
        break;
    case OCC_ADVICE_SMEM:
        more.static_smem_bytes++;
        break;
    case OCC_ADVICE_BARRIERS:
        more.barriers++;
        break;
    case OCC_ADVICE_REGISTERS_SMEM:
        more.static_smem_bytes++;
        assert_true(blocks_of(device, &more) < item->blocks_then);
        more = item->launch;
        more.registers_per_thread++;
        break;
    default:
        return;
    }
    assert_true(item->blocks_then > item->blocks_now);
    assert_true(item->needed < item->now);
    assert_true(blocks_of(device, &more) < item->blocks_then);
}

static void check_grid(const struct occ_advice *item, const struct occ_result *now,
                       const struct occ_result *then)
{
    assert_true(then->grid_blocks == item->needed);
    assert_true(item->now == now->grid_blocks);
    if (item->kind == OCC_ADVICE_GRID_STRIDE)
        return;
    if (item->kind == OCC_ADVICE_EVEN_GRID)
        assert_true(occ_uneven_grid(now) > 0 && occ_uneven_grid(then) <= 0);
    else
        assert_int_equal(then->partial_blocks, 0);
    assert_true(item->cost_amount < now->wave_blocks);
    assert_true(item->elapsed_low_then >= item->elapsed_low_now);
    assert_true(item->elapsed_high_then >= item->elapsed_high_now - 1e-12);
}

static void check_item(const struct occ_device *device, const struct occ_launch *launch,
                       const struct occ_result *now, const struct occ_advice *item)
{
    struct occ_result then;
    assert_int_equal(occ_analyse(device, &item->launch, &then), OCC_OK);
    assert_true(same_result(item, &then));
    assert_int_equal(item->blocks_now, now->blocks_per_sm);
    assert_true(item->theoretical_now == now->theoretical);
    assert_true(item->elapsed_low_now == now->expected_elapsed_low &&
                item->elapsed_high_now == now->expected_elapsed_high);
    assert_true(item->theoretical_then - item->theoretical_now >= OCC_ADVICE_MIN_GAIN ||
                item->elapsed_low_then - item->elapsed_low_now >= OCC_ADVICE_MIN_GAIN);
    check_threshold(device, item);
    if (item->kind == OCC_ADVICE_BLOCK_SIZE)
        check_block_size(device, launch, item);
    if (item->kind >= OCC_ADVICE_FILL_WAVE)
        check_grid(item, now, &then);
    if (item->kind == OCC_ADVICE_CARVEOUT)
        assert_int_equal(then.smem_config_bytes, item->needed);
}

static const struct occ_advice *first_of(const struct occ_advice *advice, size_t count,
                                         enum occ_advice_kind kind)
{
    for (size_t i = 0; i < count; i++)
        if (advice[i].kind == kind)
            return &advice[i];
    return NULL;
}

/* Every number of registers is tried: advice is there exactly if one helps, and it is the largest. */
static void check_registers_are_not_missed(const struct occ_device *device, const struct occ_launch *launch,
                                           const struct occ_result *now, const struct occ_advice *first)
{
    struct occ_launch fewer = *launch;
    while (--fewer.registers_per_thread > 0 && blocks_of(device, &fewer) <= now->blocks_per_sm)
        continue;
    if (fewer.registers_per_thread == 0)
        assert_null(first);
    else
        assert_true(first && first->needed == fewer.registers_per_thread);
}

/* Checks that advice to reduce registers and shared memory exists exactly if both limit the blocks and the
 * minimum of both gives more blocks. */
static void check_ties_are_not_missed(const struct occ_device *device, const struct occ_launch *launch,
                                      const struct occ_result *now, const struct occ_advice *first)
{
    const uint32_t both = 1u << OCC_LIMIT_REGISTERS | 1u << OCC_LIMIT_SMEM;
    struct occ_launch least = *launch;
    least.registers_per_thread = 1;
    least.static_smem_bytes = least.dynamic_smem_bytes = 0;
    least.smem_config_bytes = now->smem_config_bytes;
    bool ties = (now->limiters & both) == both;
    assert_true((first != NULL) == (ties && blocks_of(device, &least) > now->blocks_per_sm));
}

static void check_carveouts_are_not_missed(const struct occ_result *now, const struct occ_launch *launch,
                                           const struct occ_advice *first)
{
    bool helps = now->blocks_per_sm_largest_carveout > now->blocks_per_sm;
    if (launch->max_active_clusters == 0)
        assert_true((first != NULL) == helps);
}

static void check_partial_waves_are_not_missed(const struct occ_device *device, const struct occ_result *now,
                                               const struct occ_advice *advice, size_t count)
{
    double full =
        (double)now->wave_blocks * now->warps_per_block / ((double)device->sm_count * now->max_warps_per_sm);
    if (full - now->expected_elapsed_low < OCC_ADVICE_MIN_GAIN * 1.000001)
        return;
    if (device->cc < 30 && now->grid_blocks > 65535) /* a row of blocks was short there */
        return;
    if (now->full_waves == 0)
        assert_non_null(first_of(advice, count, OCC_ADVICE_FILL_WAVE));
    else
        assert_non_null(first_of(advice, count, OCC_ADVICE_GRID_DOWN));
}

static uint64_t seen[OCC_ADVICE_COUNT];

static void check_all(const struct occ_device *device, const struct occ_launch *launch,
                      const struct occ_result *now)
{
    struct occ_advice advice[OCC_ADVICE_MAX];
    size_t count = occ_advise(device, launch, now, advice, OCC_ADVICE_MAX);
    assert_true(count <= OCC_ADVICE_MAX);
    assert_true(occ_advise(device, launch, now, NULL, 0) == count);
    for (size_t i = 0; i < count; i++) {
        check_item(device, launch, now, &advice[i]);
        assert_true(i == 0 || advice[i].kind >= advice[i - 1].kind);
        seen[advice[i].kind]++;
    }
    check_registers_are_not_missed(device, launch, now, first_of(advice, count, OCC_ADVICE_REGISTERS));
    check_ties_are_not_missed(device, launch, now, first_of(advice, count, OCC_ADVICE_REGISTERS_SMEM));
    check_carveouts_are_not_missed(now, launch, first_of(advice, count, OCC_ADVICE_CARVEOUT));
    check_partial_waves_are_not_missed(device, now, advice, count);
}

static void advice_taken_gives_what_it_says(void **state)
{
    (void)state;
    struct occ_device device;
    random_state = 0xadb1ce;
    for (size_t i = 0; occ_device_at(i, &device) == OCC_OK; i++) {
        for (int n = 0; n < LAUNCHES_PER_DEVICE; n++) {
            random_sms(&device);
            struct occ_launch launch = random_launch(&device);
            struct occ_result result;
            if (occ_analyse(&device, &launch, &result) == OCC_OK)
                check_all(&device, &launch, &result);
        }
    }
    for (int kind = 0; kind < OCC_ADVICE_OF_OCCUPANCY; kind++)
        assert_true(seen[kind] > 0);
}

/* ---- curves ---- */

static void curves_are_the_model(void **state)
{
    (void)state;
    struct occ_device device = device_named("t4");
    struct occ_launch launch = launch_of(320, 128, 71, 512);
    struct occ_range range;
    struct occ_point points[1024];
    assert_true(occ_sweep_range(&device, OCC_AXIS_REGISTERS, &range));
    assert_int_equal(occ_sweep(&device, &launch, OCC_AXIS_REGISTERS, &range, points, 1024), 255);
    assert_int_equal(points[63].value, 64);
    assert_close(points[63].theoretical, 1);
    assert_close(points[70].theoretical, 0.875);
    for (size_t i = 1; i < 255; i++)
        assert_true(points[i].theoretical <= points[i - 1].theoretical);

    assert_true(occ_sweep_range(&device, OCC_AXIS_BLOCK_SIZE, &range));
    assert_int_equal(occ_sweep(&device, &launch, OCC_AXIS_BLOCK_SIZE, &range, points, 1024), 32);
    assert_close(points[3].theoretical, 0.875); /* 128 threads */
    assert_int_equal(points[31].status, OCC_BAD_REGISTERS);
    assert_close(points[31].theoretical, 0);

    assert_true(occ_sweep_range(&device, OCC_AXIS_SMEM, &range));
    assert_int_equal(occ_sweep(&device, &launch, OCC_AXIS_SMEM, &range, points, 1024), 257);
    assert_int_equal(points[256].value, 64 * KIB);
    assert_int_equal(points[256].blocks_per_sm, 1);

    assert_true(occ_sweep_range(&device, OCC_AXIS_BARRIERS, &range));
    assert_int_equal(occ_sweep(&device, &launch, OCC_AXIS_BARRIERS, &range, points, 1024), 1);
    assert_true(occ_sweep_range(&device, OCC_AXIS_CLUSTER, &range));
    assert_int_equal(occ_sweep(&device, &launch, OCC_AXIS_CLUSTER, &range, points, 1024), 1);
    assert_false(occ_sweep_range(&device, OCC_AXIS_COUNT, &range));
}

/* A damaged history can have any limits: a curve stays small. */
static void curves_of_impossible_devices(void **state)
{
    (void)state;
    struct occ_device device = device_named("t4");
    struct occ_range range;
    device.max_threads_per_block = device.max_registers_per_thread = device.max_cluster_size = 1u << 31;
    device.smem_per_block_optin_bytes = UINT32_MAX;
    device.smem_unit_bytes = 1;
    for (int axis = 0; axis < OCC_AXIS_COUNT; axis++)
        if (occ_sweep_range(&device, (enum occ_axis)axis, &range))
            assert_in_range((range.last - range.first) / range.step, 0, OCC_SWEEP_MAX_STEPS);
    device.warp_size = 4000;
    device.max_threads_per_block = 1024;
    assert_false(occ_sweep_range(&device, OCC_AXIS_BLOCK_SIZE, &range));
}

static void curve_of_cluster_sizes(void **state)
{
    (void)state;
    struct occ_device device = device_named("h100");
    struct occ_launch launch = launch_of(1601, 384, 80, 200 * KIB);
    struct occ_range range;
    struct occ_point points[16];
    assert_true(occ_sweep_range(&device, OCC_AXIS_CLUSTER, &range));
    assert_int_equal(occ_sweep(&device, &launch, OCC_AXIS_CLUSTER, &range, points, 16), 16);
    assert_close(points[0].full_wave, points[0].theoretical);
    assert_close(points[3].full_wave, 12 / 64.0);                /* 33 clusters of 4 */
    assert_close(points[15].full_wave, 128 * 12 / (132 * 64.0)); /* 8 of 16 */
    assert_close(points[15].theoretical, 12 / 64.0);

    launch.grid[0] = 1600;
    launch.cluster[0] = 16;
    launch.max_active_clusters = 5; /* of 16; nothing is known about others */
    assert_int_equal(occ_sweep(&device, &launch, OCC_AXIS_CLUSTER, &range, points, 16), 16);
    assert_close(points[3].full_wave, 12 / 64.0);
    assert_close(points[15].full_wave, 80 * 12 / (132 * 64.0));
}

/* A curve goes through the present point, whatever the launch. */
static void curves_go_through_the_present(void **state)
{
    (void)state;
    struct occ_device device;
    random_state = 0xc0ffee;
    for (size_t i = 0; occ_device_at(i, &device) == OCC_OK; i++) {
        for (int n = 0; n < 300; n++) {
            random_sms(&device);
            struct occ_launch launch = random_launch(&device);
            struct occ_result result;
            if (occ_analyse(&device, &launch, &result) != OCC_OK)
                continue;
            for (int axis = 0; axis < OCC_AXIS_COUNT; axis++) {
                uint32_t present = occ_sweep_present(&launch, (enum occ_axis)axis);
                struct occ_point point;
                assert_int_equal(occ_sweep(&device, &launch, (enum occ_axis)axis,
                                           &(struct occ_range){present, present, 1}, &point, 1),
                                 1);
                assert_int_equal(point.status, OCC_OK);
                assert_int_equal(point.blocks_per_sm, result.blocks_per_sm);
                assert_true(point.theoretical == result.theoretical);
                assert_true(point.full_wave <= point.theoretical + 1e-12);
            }
        }
    }
}

static void ranges_that_are_none(void **state)
{
    (void)state;
    struct occ_device device = device_named("t4");
    struct occ_launch launch = launch_of(1, 32, 16, 0);
    struct occ_point point = {.value = 7};
    assert_int_equal(occ_sweep(&device, &launch, OCC_AXIS_SMEM, &(struct occ_range){2, 1, 1}, &point, 1), 0);
    assert_int_equal(occ_sweep(&device, &launch, OCC_AXIS_SMEM, &(struct occ_range){0, 1, 0}, &point, 1), 0);
    assert_int_equal(occ_sweep(&device, &launch, OCC_AXIS_COUNT, &(struct occ_range){0, 1, 1}, &point, 1), 0);
    assert_int_equal(point.value, 7);
    for (int axis = 0; axis < OCC_AXIS_COUNT; axis++) {
        struct occ_range extremes = {0, UINT32_MAX, UINT32_MAX};
        struct occ_point points[2];
        assert_int_equal(occ_sweep(&device, &launch, (enum occ_axis)axis, &extremes, points, 2), 2);
        assert_int_not_equal(points[1].status, OCC_OK);
    }
}

static void words_for_advice(void **state)
{
    (void)state;
    assert_string_equal(occ_advice_word(OCC_ADVICE_SMEM), "shared_memory");
    assert_string_equal(occ_advice_text(OCC_ADVICE_GRID_UP), "a larger grid that ends on a full wave");
    assert_string_equal(occ_advice_cost(OCC_ADVICE_CARVEOUT), "fewer bytes of L1 cache per SM");
    assert_string_equal(occ_advice_word((enum occ_advice_kind)99), "unknown");
    assert_string_equal(occ_axis_word(OCC_AXIS_CLUSTER), "cluster");
    assert_string_equal(occ_axis_text(OCC_AXIS_COUNT), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers_of_the_next_block),
        cmocka_unit_test(registers_of_the_next_block_and_of_half_of_them),
        cmocka_unit_test(shared_memory_of_the_next_block),
        cmocka_unit_test(registers_and_shared_memory_that_tie),
        cmocka_unit_test(shared_memory_under_the_present_carveout),
        cmocka_unit_test(carveout_that_gives_more),
        cmocka_unit_test(barriers_of_the_next_block),
        cmocka_unit_test(cluster_that_leaves_fewer_sms_idle),
        cmocka_unit_test(block_sizes_that_reach_the_best),
        cmocka_unit_test(grids_that_end_on_a_full_wave),
        cmocka_unit_test(grids_keep_their_shape_if_they_can),
        cmocka_unit_test(full_occupancy_needs_no_advice),
        cmocka_unit_test(a_launch_of_nothing_has_no_advice),
        cmocka_unit_test(grid_stride_sizes),
        cmocka_unit_test(advice_taken_gives_what_it_says),
        cmocka_unit_test(curves_are_the_model),
        cmocka_unit_test(curves_of_impossible_devices),
        cmocka_unit_test(curve_of_cluster_sizes),
        cmocka_unit_test(curves_go_through_the_present),
        cmocka_unit_test(ranges_that_are_none),
        cmocka_unit_test(words_for_advice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
