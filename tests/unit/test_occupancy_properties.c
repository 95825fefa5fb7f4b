/*
 * Checks properties of every launch, with random launches on every device of the table: ranges, sums,
 * monotony and the invariants of waves. Seeded: the same launches on every run.
 */
#include "test_occupancy_launches.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define LAUNCHES_PER_DEVICE 20000
#define EPSILON             1e-9

typedef void (*check_fn)(const struct occ_device *device, const struct occ_launch *launch,
                         const struct occ_result *result);

/* Runs `check` on random launches that are possible, on every device of the table. */
static void for_many(check_fn check)
{
    struct occ_device device;
    uint64_t checked = 0;
    random_state = 0x0cc70ace;
    for (size_t i = 0; occ_device_at(i, &device) == OCC_OK; i++) {
        for (int n = 0; n < LAUNCHES_PER_DEVICE; n++) {
            random_sms(&device);
            struct occ_launch launch = random_launch(&device);
            struct occ_result result;
            if (occ_analyse(&device, &launch, &result) != OCC_OK)
                continue;
            check(&device, &launch, &result);
            checked++;
        }
    }
    assert_true(checked > 5 * LAUNCHES_PER_DEVICE);
}

static void assert_ratio(double value)
{
    assert_true(value >= 0 && value <= 1 + EPSILON);
}

static void check_ratios(const struct occ_device *device, const struct occ_launch *launch,
                         const struct occ_result *result)
{
    (void)launch;
    assert_true(result->theoretical > 0);
    assert_ratio(result->theoretical);
    assert_ratio(result->expected_achieved_low);
    assert_ratio(result->expected_elapsed_low);
    assert_true(result->expected_elapsed_low <= result->expected_achieved_low + EPSILON);
    assert_ratio(result->expected_achieved_high);
    assert_ratio(result->expected_elapsed_high);
    assert_true(result->expected_achieved_low <= result->expected_achieved_high + EPSILON);
    assert_true(result->expected_elapsed_low <= result->expected_elapsed_high + EPSILON);
    assert_true(result->expected_elapsed_high <= result->expected_achieved_high + EPSILON);
    assert_true(result->expected_achieved_high <= result->theoretical + EPSILON);
    uint64_t sms = result->wave_blocks < device->sm_count ? result->wave_blocks : device->sm_count;
    bool is_uneven = result->grid_blocks > sms && result->grid_blocks % sms != 0;
    if (result->partial_blocks == 0 || (result->full_waves == 0 && !is_uneven))
        assert_true(result->expected_achieved_low == result->expected_achieved_high &&
                    result->expected_elapsed_low == result->expected_elapsed_high);
}

static void check_waterfall(const struct occ_device *device, const struct occ_launch *launch,
                            const struct occ_result *result)
{
    (void)device;
    (void)launch;
    double sum = result->expected_elapsed_low;
    for (int i = 0; i < OCC_CAUSE_COUNT; i++) {
        assert_ratio(result->cause[i]);
        if (i != OCC_CAUSE_PARTIAL_WARP)
            sum += result->cause[i];
    }
    assert_true(fabs(sum - 1) < EPSILON);
    double spread = result->expected_elapsed_high - result->expected_elapsed_low;
    assert_true(spread <= result->cause[OCC_CAUSE_TAIL] + result->cause[OCC_CAUSE_SMALL_GRID] + EPSILON);
    assert_true(result->cause[OCC_CAUSE_SMALL_GRID] == 0 || result->cause[OCC_CAUSE_TAIL] == 0);
}

/* Shared memory ties and is not named: the driver chose a carve-out that another would not make matter. */
static void check_following_smem(const struct occ_device *device, const struct occ_result *result)
{
    assert_true(result->smem_config_from_driver);
    assert_true(result->smem_config_bytes < device->smem_per_sm_bytes);
    assert_int_equal(result->blocks_per_sm_largest_carveout, result->blocks_per_sm);
    assert_true(device->smem_per_sm_bytes / result->smem_per_block_bytes > result->blocks_per_sm);
    assert_true(result->cause[OCC_CAUSE_SMEM] < 1e-12);
}

static void check_limits(const struct occ_device *device, const struct occ_launch *launch,
                         const struct occ_result *result)
{
    (void)launch;
    assert_int_not_equal(result->limiters, 0);
    for (uint32_t i = 0; i < OCC_LIMIT_COUNT; i++) {
        assert_true(result->limit[i] >= result->blocks_per_sm);
        bool ties = result->limit[i] == result->blocks_per_sm, named = result->limiters >> i & 1;
        if (i == OCC_LIMIT_SMEM && ties && !named)
            check_following_smem(device, result);
        else
            assert_int_equal(named, ties);
    }
    assert_true(result->warps_per_sm == result->blocks_per_sm * result->warps_per_block);
    assert_true(result->warps_per_sm <= result->max_warps_per_sm);
    assert_true(result->blocks_per_sm_largest_carveout >= result->blocks_per_sm);
    assert_true(result->smem_per_block_bytes * result->blocks_per_sm <= result->smem_config_bytes);
    assert_true(result->smem_config_bytes <= device->smem_per_sm_bytes);
    assert_true(result->registers_per_block * result->blocks_per_sm <= device->registers_per_sm);
}

static void check_waves(const struct occ_device *device, const struct occ_launch *launch,
                        const struct occ_result *result)
{
    assert_true(result->grid_blocks == (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2]);
    assert_true(result->full_waves * result->wave_blocks + result->partial_blocks == result->grid_blocks);
    assert_true(result->partial_blocks < result->wave_blocks);
    assert_true(result->wave_blocks <= (uint64_t)device->sm_count * result->blocks_per_sm);
    assert_true(floor(result->waves) == (double)result->full_waves);
    assert_true(result->waves > 0);
    if (launch->cluster[0] > 1)
        assert_true(result->wave_blocks % launch->cluster[0] == 0);
    else
        assert_true(result->wave_blocks == (uint64_t)device->sm_count * result->blocks_per_sm);
}

/* More of a resource never gives more blocks, and never makes an impossible launch possible. */
static void assert_not_more(const struct occ_device *device, const struct occ_launch *more,
                            const struct occ_result *than)
{
    struct occ_result result;
    if (occ_analyse(device, more, &result) != OCC_OK)
        return;
    assert_true(result.blocks_per_sm <= than->blocks_per_sm);
}

static void check_monotony(const struct occ_device *device, const struct occ_launch *launch,
                           const struct occ_result *result)
{
    struct occ_launch more = *launch;
    more.registers_per_thread += 1 + below(8);
    assert_not_more(device, &more, result);

    more = *launch;
    more.block[0] += 1 + below(64);
    assert_not_more(device, &more, result);

    more = *launch;
    more.barriers += more.barriers > 0;
    assert_not_more(device, &more, result);

    /* A chosen carve-out may grow with the block, so shared memory is compared under the largest. */
    struct occ_launch plain = *launch;
    struct occ_result under_largest;
    plain.smem_config_bytes = device->smem_per_sm_bytes;
    assert_int_equal(occ_analyse(device, &plain, &under_largest), OCC_OK);
    more = plain;
    more.dynamic_smem_bytes += 1 + below(2048);
    assert_not_more(device, &more, &under_largest);
}

/* A larger carve-out never gives fewer blocks; the largest gives the blocks that the result predicts. */
static void check_carveouts(const struct occ_device *device, const struct occ_launch *launch,
                            const struct occ_result *result)
{
    struct occ_launch largest = *launch;
    struct occ_result under_largest;
    largest.smem_config_bytes = device->smem_per_sm_bytes;
    assert_int_equal(occ_analyse(device, &largest, &under_largest), OCC_OK);
    assert_true(under_largest.blocks_per_sm >= result->blocks_per_sm);
    assert_true(under_largest.cause[OCC_CAUSE_CARVEOUT] == 0);
    if (launch->cluster[0] <= 1 || launch->max_active_clusters == 0)
        assert_int_equal(under_largest.blocks_per_sm, result->blocks_per_sm_largest_carveout);
    if (launch->cluster[0] <= 1) {
        assert_int_equal(under_largest.blocks_per_sm, result->blocks_per_sm_largest_carveout);
        double gain = under_largest.theoretical - result->theoretical;
        assert_true(fabs(result->cause[OCC_CAUSE_CARVEOUT] - gain) < EPSILON);
    }
}

static void ratios_are_ordered(void **state)
{
    (void)state;
    for_many(check_ratios);
}

static void waterfall_adds_up(void **state)
{
    (void)state;
    for_many(check_waterfall);
}

static void limits_hold(void **state)
{
    (void)state;
    for_many(check_limits);
}

static void waves_add_up(void **state)
{
    (void)state;
    for_many(check_waves);
}

static void more_resources_never_give_more_blocks(void **state)
{
    (void)state;
    for_many(check_monotony);
}

static void carveout_gives_back_what_it_says(void **state)
{
    (void)state;
    for_many(check_carveouts);
}

/* Whatever bytes arrive as device and launch, the model answers and stays in range (sanitizers watch). */
static void any_bytes_are_answered(void **state)
{
    (void)state;
    random_state = 0xdecade;
    for (int n = 0; n < 200000; n++) {
        struct occ_device device;
        occ_device_at(below(27), &device);
        device.sm_count = below(1u << 17);
        uint32_t *fields = (uint32_t *)&device;
        fields[below(sizeof(device) / sizeof(uint32_t))] = below(UINT32_MAX) >> below(32);
        struct occ_launch launch = random_launch(&device);
        uint32_t *words = (uint32_t *)&launch;
        words[below(offsetof(struct occ_launch, smem_optin_known) / sizeof(uint32_t))] =
            below(UINT32_MAX) >> below(32);
        struct occ_result result;
        if (occ_analyse(&device, &launch, &result) == OCC_OK) {
            check_ratios(&device, &launch, &result);
            check_waterfall(&device, &launch, &result);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratios_are_ordered),
        cmocka_unit_test(waterfall_adds_up),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(waves_add_up),
        cmocka_unit_test(more_resources_never_give_more_blocks),
        cmocka_unit_test(carveout_gives_back_what_it_says),
        cmocka_unit_test(any_bytes_are_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
