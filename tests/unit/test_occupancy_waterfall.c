/*
 * The measured waterfall: worked examples, and that its parts add up for any launch and any subset of
 * measured values. Seeded: the same numbers on every run.
 */
#include "test_occupancy_launches.h"

#include "occupancy/waterfall.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define EPSILON 1e-9

static void assert_near(double value, double expected)
{
    assert_true(fabs(value - expected) < EPSILON);
}

static const struct occ_measurement nothing = {
    .source = OCC_FROM_DIRECT,
    .achieved = NAN,
    .achieved_error = NAN,
    .elapsed = NAN,
    .elapsed_error = NAN,
    .variance_inflation = NAN,
    .sm_active = NAN,
    .resident_blocks = NAN,
    .imbalance = NAN,
    .stall = {NAN, NAN, NAN, NAN, NAN, NAN},
};

/* 100 SMs, 2 blocks of 8 warps per SM of 64: theoretical 25 %; 250 blocks: one full wave and a quarter. */
static struct occ_result example(void)
{
    const struct occ_device wanted = {.cc = 80, .sm_count = 100};
    struct occ_device device = wanted;
    const struct occ_launch launch = {
        .grid = {250, 1, 1}, .block = {256, 1, 1}, .registers_per_thread = 128, .carveout_percent = -1};
    struct occ_result result;
    assert_int_equal(occ_device_complete(&device), OCC_OK);
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_OK);
    assert_int_equal(result.blocks_per_sm, 2);
    assert_near(result.expected_elapsed_low, 250.0 * 8 / (2 * 100 * 64));
    assert_near(result.expected_achieved_low, 250.0 * 8 / (64 * (100 + 50)));
    return result;
}

static double sum_of(const struct occ_waterfall *w)
{
    double sum = w->used;
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        sum += isnan(w->part[i]) ? 0 : w->part[i];
    return sum;
}

static void without_counters_it_is_the_model(void **state)
{
    (void)state;
    struct occ_result result = example();
    struct occ_measurement measured = nothing;
    struct occ_waterfall w, unmeasured;
    occ_explain(&result, NULL, &w);
    assert_true(w.used == result.expected_elapsed_low);
    assert_int_equal(w.source, OCC_FROM_MODEL);
    for (unsigned i = 0; i < OCC_CAUSE_COUNT; i++)
        assert_true(i == OCC_CAUSE_PARTIAL_WARP ? isnan(w.part[i]) : w.part[i] == result.cause[i]);
    for (unsigned i = OCC_CAUSE_COUNT; i < OCC_PART_COUNT; i++)
        assert_true(isnan(w.part[i]));
    occ_explain(&result, &measured, &unmeasured);
    assert_memory_equal(&w.used, &unmeasured.used, sizeof w.used);
    assert_true(isnan(unmeasured.part[OCC_PART_UNEXPLAINED]));
    measured.elapsed = 0.1;
    measured.source = OCC_FROM_MODEL; /* values without a launch that has them */
    occ_explain(&result, &measured, &unmeasured);
    assert_true(unmeasured.used == result.expected_elapsed_low);
}

/* expected: SMs active 75 % of the time, with 250 / 150 blocks of 8 warps. */
static void all_measured(void **state)
{
    (void)state;
    struct occ_result result = example();
    struct occ_measurement m = nothing;
    struct occ_waterfall w;
    m.elapsed = 0.09;
    m.elapsed_error = 0.01;
    m.achieved = 0.15;
    m.sm_active = 0.6;
    m.resident_blocks = 1.5;
    m.source = OCC_FROM_REGRESSED;
    occ_explain(&result, &m, &w);
    assert_int_equal(w.source, OCC_FROM_REGRESSED);
    assert_near(w.used, 0.09);
    assert_near(w.error, 0.0196);
    /* a last wave on 25 SMs, two blocks on each, has SMs active for 0.625 of the time */
    double low = result.expected_elapsed_low;
    assert_near(w.part[OCC_PART_IDLE], low * (1 - 0.6 / 0.625));
    assert_near(w.part[OCC_PART_IMBALANCE_ACROSS_BLOCKS], low * 0.6 / 0.625 - 0.6 * 1.5 * 8 / 64);
    assert_near(w.part[OCC_PART_IMBALANCE_WITHIN_BLOCK], 0.6 * (1.5 * 8 / 64 - 0.15));
    assert_near(w.part[OCC_PART_UNEXPLAINED], 0);
    assert_true(isnan(w.part[OCC_PART_NOT_SPLIT]));
    assert_near(sum_of(&w), 1);
}

/* Reports of Nsight Compute without elapsed cycles: the waterfall ends at the measured value, over active
 * cycles. convert_kernel on a T4 (40 SMs): 4.28 waves of 4 blocks per SM reached 53 %. */
static void achieved_alone_is_over_active_cycles(void **state)
{
    (void)state;
    const struct occ_launch launch = {
        .grid = {685, 1, 1}, .block = {256, 1, 1}, .registers_per_thread = 32, .carveout_percent = -1};
    struct occ_device device = {.cc = 75, .sm_count = 40};
    struct occ_result result;
    struct occ_measurement m = nothing;
    struct occ_waterfall w;
    assert_int_equal(occ_device_complete(&device), OCC_OK);
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_OK);
    m.source = OCC_FROM_NCU;
    m.achieved = 0.53;
    m.achieved_error = 0.01;
    occ_explain(&result, &m, &w);
    assert_int_equal(w.source, OCC_FROM_NCU);
    assert_true(w.is_of_active_cycles);
    assert_near(w.used, 0.53);
    assert_near(w.error, 0.0196);
    assert_near(w.expected, result.expected_achieved_low);
    assert_near(w.part[OCC_CAUSE_TAIL], result.theoretical - result.expected_achieved_low);
    assert_near(w.part[OCC_PART_NOT_SPLIT], result.expected_achieved_low - 0.53);
    assert_true(isnan(w.part[OCC_PART_IDLE]) && isnan(w.part[OCC_PART_UNEXPLAINED]));
    assert_near(sum_of(&w), 1);
    m.achieved = result.expected_achieved_high + 0.01;
    occ_explain(&result, &m, &w);
    assert_near(w.part[OCC_PART_NOT_SPLIT], -0.01);
    assert_near(sum_of(&w), 1);
    m.elapsed = 0.4;
    occ_explain(&result, &m, &w);
    assert_false(w.is_of_active_cycles);
}

/* A rest that no counter measured has no cause's name. */
static void the_rest_names_no_single_cause(void **state)
{
    (void)state;
    assert_string_equal(occ_part_word(OCC_PART_NOT_SPLIT), "start_drain_or_imbalance");
    assert_string_equal(occ_part_text(OCC_PART_NOT_SPLIT, 0.1),
                        "block start, drain or imbalance (not split)");
}

static void two_of_three_give_the_third(void **state)
{
    (void)state;
    struct occ_result result = example();
    struct occ_measurement m = nothing;
    struct occ_waterfall w;
    m.elapsed = 0.09;
    m.achieved = 0.15;
    occ_explain(&result, &m, &w);
    double low = result.expected_elapsed_low;
    assert_near(w.part[OCC_PART_IDLE], low * (1 - 0.6 / 0.625));
    assert_near(w.part[OCC_PART_NOT_SPLIT], low * 0.6 / 0.625 - 0.09);
    assert_true(isnan(w.part[OCC_PART_IMBALANCE_ACROSS_BLOCKS]) &&
                isnan(w.part[OCC_PART_IMBALANCE_WITHIN_BLOCK]));
    assert_true(isnan(w.error));
    m.achieved = NAN;
    m.sm_active = 0.6;
    occ_explain(&result, &m, &w);
    assert_near(w.part[OCC_PART_NOT_SPLIT], low * 0.6 / 0.625 - 0.09);
}

/* A device's mean says how much, not why. */
static void elapsed_alone_is_not_explained(void **state)
{
    (void)state;
    struct occ_result result = example();
    struct occ_measurement m = nothing;
    struct occ_waterfall w;
    m.elapsed = 0.09;
    m.resident_blocks = 1.5; /* averaged over an unknown number of SMs */
    occ_explain(&result, &m, &w);
    for (unsigned i = OCC_PART_IDLE; i < OCC_PART_UNEXPLAINED; i++)
        assert_true(isnan(w.part[i]));
    assert_near(w.part[OCC_PART_UNEXPLAINED], result.expected_elapsed_low - 0.09);
}

static void above_the_model_keeps_its_sign(void **state)
{
    (void)state;
    struct occ_result result = example();
    struct occ_measurement m = nothing;
    struct occ_waterfall w;
    m.elapsed = result.expected_elapsed_high + 0.02;
    occ_explain(&result, &m, &w);
    assert_near(w.part[OCC_PART_UNEXPLAINED], -0.02);
    assert_near(w.part[OCC_CAUSE_TAIL],
                result.cause[OCC_CAUSE_TAIL] - (result.expected_elapsed_high - result.expected_elapsed_low));
    assert_near(sum_of(&w), 1);
    assert_string_equal(occ_part_text(OCC_PART_UNEXPLAINED, -0.02), "gain over the model, not explained");
    assert_string_equal(occ_part_text(OCC_PART_UNEXPLAINED, 0.02), "not explained");
}

/* 50 blocks on 50 SMs of the last wave take half as long as two per SM, or as long. */
static void counters_decide_within_the_range(void **state)
{
    (void)state;
    struct occ_result result = example();
    double low = result.expected_elapsed_low, high = result.expected_elapsed_high;
    struct occ_measurement m = nothing;
    struct occ_waterfall w;
    assert_near(high, (200 + 50 / 2.0) * 8 / (64 * 100 * 1.5));
    occ_explain(&result, NULL, &w);
    assert_near(w.tail_spread, high - low);
    m.elapsed = low + 0.25 * (high - low);
    occ_explain(&result, &m, &w);
    assert_near(w.tail_spread, 0);
    assert_near(w.part[OCC_CAUSE_TAIL], result.cause[OCC_CAUSE_TAIL] - 0.25 * (high - low));
    assert_near(w.part[OCC_PART_UNEXPLAINED], 0);
    /* three quarters along, and an eighth of the blocks' warps ended before them */
    double achieved_low = result.expected_achieved_low, achieved_high = result.expected_achieved_high;
    double of_blocks = achieved_low + 0.75 * (achieved_high - achieved_low);
    double active = low / achieved_low + 0.75 * (high / achieved_high - low / achieved_low);
    m.resident_blocks = of_blocks * 64 / 8;
    m.achieved = of_blocks * 7 / 8;
    m.sm_active = active;
    m.elapsed = m.achieved * m.sm_active;
    occ_explain(&result, &m, &w);
    assert_near(w.part[OCC_CAUSE_TAIL], result.cause[OCC_CAUSE_TAIL] - (active * of_blocks - low));
    assert_near(w.part[OCC_PART_IDLE], 0);
    assert_near(w.part[OCC_PART_IMBALANCE_ACROSS_BLOCKS], 0);
    assert_near(w.part[OCC_PART_IMBALANCE_WITHIN_BLOCK], active * of_blocks / 8);
    assert_near(sum_of(&w), 1);
}

/* Wherever the last wave's blocks are, it shows in the elapsed time: a dispatcher that packs them on 25 SMs
 * gives active SMs more blocks, and makes fewer SMs active. */
static void packed_tails_are_tails(void **state)
{
    (void)state;
    struct occ_result result = example();
    double elapsed = result.expected_elapsed_low; /* the last wave is as long as the full one */
    for (int sms = 25; sms <= 50; sms++) {
        struct occ_measurement m = nothing;
        struct occ_waterfall w;
        m.sm_active = (1 + sms / 100.0) / 2;
        m.achieved = elapsed / m.sm_active;
        m.elapsed = elapsed;
        m.resident_blocks = m.achieved * 64 / 8;
        occ_explain(&result, &m, &w);
        assert_near(w.part[OCC_CAUSE_TAIL], result.cause[OCC_CAUSE_TAIL]);
        for (unsigned i = OCC_CAUSE_COUNT; i < OCC_PART_COUNT; i++)
            assert_true(isnan(w.part[i]) || fabs(w.part[i]) < EPSILON);
    }
}

/* Returns the result of 150 blocks on 100 SMs: two blocks fit on an SM, so 50 SMs hold two. */
static struct occ_result uneven(void)
{
    struct occ_device device = {.cc = 80, .sm_count = 100};
    const struct occ_launch launch = {
        .grid = {150, 1, 1}, .block = {256, 1, 1}, .registers_per_thread = 128, .carveout_percent = -1};
    struct occ_result result;
    assert_int_equal(occ_device_complete(&device), OCC_OK);
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_OK);
    assert_near(result.expected_elapsed_high, 1.5 / 8);
    assert_near(result.expected_elapsed_low, 1.25 / 8); /* the others take half of the time */
    return result;
}

static void an_uneven_grid_is_a_part_of_too_few_blocks(void **state)
{
    (void)state;
    struct occ_result result = uneven();
    struct occ_measurement m = nothing;
    struct occ_waterfall w;
    occ_explain(&result, NULL, &w);
    assert_near(w.small_grid_spread, 0.25 / 8);
    assert_near(w.tail_spread, 0);
    assert_near(w.uneven_grid, 0.25 / 8);
    m.sm_active = 0.75;
    m.elapsed = 1.25 / 8;
    m.resident_blocks = 1.25 / 0.75;
    m.achieved = m.elapsed / m.sm_active;
    m.imbalance = 0.5;
    occ_explain(&result, &m, &w);
    assert_near(w.small_grid_spread, 0);
    assert_near(w.uneven_grid, 0.25 / 8);
    assert_near(w.part[OCC_CAUSE_SMALL_GRID], result.cause[OCC_CAUSE_SMALL_GRID]);
    for (unsigned i = OCC_CAUSE_COUNT; i < OCC_PART_COUNT; i++)
        assert_true(isnan(w.part[i]) || fabs(w.part[i]) < EPSILON);
    /* half of the way */
    m.sm_active = 0.875;
    m.elapsed = 1.375 / 8;
    m.resident_blocks = 1.375 / 0.875;
    m.achieved = m.elapsed / m.sm_active;
    m.imbalance = 0.25;
    occ_explain(&result, &m, &w);
    assert_near(w.uneven_grid, 0.125 / 8);
    assert_near(sum_of(&w), 1);
    /* all SMs end together: the grid is not the cause */
    m.sm_active = 0.9;
    m.achieved = m.elapsed / m.sm_active;
    m.resident_blocks = m.achieved * 8;
    m.imbalance = 0.02;
    occ_explain(&result, &m, &w);
    assert_true(w.uneven_grid < 0.02 / 8);
    assert_true(w.part[OCC_PART_BLOCK_START] > 0.1 / 8);
    assert_near(sum_of(&w), 1);
}

/* The imbalance of the SMs decides the cause of a loss by fewer resident blocks in full waves. */
static void the_sms_tell_the_cause(void **state)
{
    (void)state;
    static const struct {
        double imbalance;
        unsigned part;
    } cases[] = {{0.04, OCC_PART_BLOCK_START},
                 {0.15, OCC_PART_BLOCK_START},
                 {0.25, OCC_PART_IDLE},
                 {0.34, OCC_PART_UNEQUAL_BLOCKS},
                 {0.90, OCC_PART_UNEQUAL_BLOCKS},
                 {NAN, OCC_PART_IDLE},
                 {-1, OCC_PART_IDLE},
                 {1.5, OCC_PART_IDLE}};
    struct occ_device device = {.cc = 80, .sm_count = 100};
    const struct occ_launch launch = {
        .grid = {800, 1, 1}, .block = {256, 1, 1}, .registers_per_thread = 128, .carveout_percent = -1};
    struct occ_result result;
    assert_int_equal(occ_device_complete(&device), OCC_OK);
    assert_int_equal(occ_analyse(&device, &launch, &result), OCC_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct occ_measurement m = nothing;
        struct occ_waterfall w;
        m.sm_active = 0.9;
        m.resident_blocks = 1.8;
        m.achieved = 0.2;
        m.elapsed = 0.18;
        m.imbalance = cases[i].imbalance;
        occ_explain(&result, &m, &w);
        bool is_both = cases[i].part == OCC_PART_UNEQUAL_BLOCKS;
        assert_near(w.part[cases[i].part], is_both ? 0.25 - 0.9 * 1.8 / 8 : 0.025);
        assert_true(isnan(w.part[OCC_PART_IMBALANCE_ACROSS_BLOCKS]) == is_both);
        assert_near(w.part[OCC_PART_IMBALANCE_WITHIN_BLOCK], 0.9 * 1.8 / 8 - 0.18);
        assert_near(sum_of(&w), 1);
        m.resident_blocks = NAN; /* the idle SMs alone */
        occ_explain(&result, &m, &w);
        assert_near(w.part[cases[i].part], 0.025);
        assert_near(w.part[OCC_PART_NOT_SPLIT], 0.9 * 0.25 - 0.18);
        assert_near(sum_of(&w), 1);
    }
}

/* Fewer blocks than SMs: the least active SM has none, which tells nothing. */
static void empty_sms_tell_no_cause(void **state)
{
    (void)state;
    struct occ_device device = {.cc = 80, .sm_count = 100};
    struct occ_launch launch = {
        .grid = {1, 1, 1}, .block = {256, 1, 1}, .registers_per_thread = 128, .carveout_percent = -1};
    assert_int_equal(occ_device_complete(&device), OCC_OK);
    for (launch.grid[0] = 1; launch.grid[0] < 100; launch.grid[0] += 49) {
        struct occ_result result;
        struct occ_waterfall w;
        struct occ_measurement m = nothing;
        assert_int_equal(occ_analyse(&device, &launch, &result), OCC_OK);
        m.sm_active = launch.grid[0] / 200.0;
        m.resident_blocks = 1;
        m.achieved = 0.1;
        m.elapsed = m.sm_active * m.achieved;
        m.imbalance = 1;
        occ_explain(&result, &m, &w);
        assert_near(w.part[OCC_PART_IDLE], result.expected_elapsed_low / 2);
        assert_true(isnan(w.part[OCC_PART_BLOCK_START]) && isnan(w.part[OCC_PART_UNEQUAL_BLOCKS]));
        assert_near(sum_of(&w), 1);
    }
}

/* Counters of different passes may contradict each other; impossible values are not used. */
static void impossible_counters_are_not_used(void **state)
{
    (void)state;
    struct occ_result result = example();
    struct occ_measurement m = nothing;
    struct occ_waterfall w;
    m.elapsed = 0.09;
    m.sm_active = 0; /* no active SM beside occupancy */
    occ_explain(&result, &m, &w);
    assert_true(isnan(w.part[OCC_PART_IDLE]));
    assert_near(w.part[OCC_PART_UNEXPLAINED], result.expected_elapsed_low - 0.09);
    m.sm_active = 1.3; /* all of the time */
    m.achieved = 0.09;
    occ_explain(&result, &m, &w);
    assert_near(w.part[OCC_PART_IDLE], 0);
    assert_near(w.part[OCC_PART_NOT_SPLIT], result.expected_elapsed_low - 0.09);
    m.sm_active = 0.6;
    m.achieved = 0.15;
    m.resident_blocks = 0.5; /* 4 warps, where 9.6 were counted */
    occ_explain(&result, &m, &w);
    assert_true(isnan(w.part[OCC_PART_IMBALANCE_WITHIN_BLOCK]));
    assert_true(w.part[OCC_PART_NOT_SPLIT] > 0);
    assert_near(sum_of(&w), 1);
}

static double maybe(double value)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, -1, 1e300, -1e-300, 0};
    uint32_t kind = below(10);
    return kind < 4 ? odd[below(7)] : kind == 4 ? NAN : value;
}

static double ratio(void)
{
    return below(1000001) / 1e6;
}

static void parts_always_add_up(void **state)
{
    (void)state;
    struct occ_device device;
    unsigned measured = 0, split = 0, named = 0;
    random_state = 0x7a7e;
    for (size_t i = 0; occ_device_at(i, &device) == OCC_OK; i++)
        for (int n = 0; n < 10000; n++) {
            struct occ_result result;
            struct occ_waterfall w;
            random_sms(&device);
            struct occ_launch launch = random_launch(&device);
            if (occ_analyse(&device, &launch, &result) != OCC_OK)
                continue;
            const struct occ_measurement m = {.source = (enum occ_value_source)below(OCC_FROM_COUNT),
                                              .elapsed = maybe(ratio()),
                                              .elapsed_error = maybe(ratio()),
                                              .achieved = maybe(ratio()),
                                              .sm_active = maybe(ratio()),
                                              .resident_blocks = maybe(ratio() * 32),
                                              .imbalance = maybe(ratio())};
            occ_explain(&result, &m, &w);
            assert_true(fabs(sum_of(&w) - 1) < EPSILON);
            assert_true(w.part[OCC_CAUSE_SMALL_GRID] >= -EPSILON && w.uneven_grid >= -EPSILON &&
                        w.uneven_grid <= w.part[OCC_CAUSE_SMALL_GRID] + EPSILON);
            assert_true(w.part[OCC_CAUSE_TAIL] >= -EPSILON &&
                        w.part[OCC_CAUSE_TAIL] <= result.cause[OCC_CAUSE_TAIL] + EPSILON);
            bool is_measured = w.source != OCC_FROM_MODEL;
            assert_true(w.used == (!is_measured            ? result.expected_elapsed_low
                                   : w.is_of_active_cycles ? m.achieved
                                                           : m.elapsed));
            assert_true(isnan(w.part[OCC_PART_UNEXPLAINED]) == (!is_measured || w.is_of_active_cycles));
            assert_true(isnan(w.part[OCC_PART_IMBALANCE_WITHIN_BLOCK]) || isnan(w.part[OCC_PART_NOT_SPLIT]));
            assert_false(!isnan(w.part[OCC_PART_IDLE]) &&
                         (!isnan(w.part[OCC_PART_BLOCK_START]) || !isnan(w.part[OCC_PART_UNEQUAL_BLOCKS])));
            measured += is_measured;
            split += isnan(w.part[OCC_PART_IMBALANCE_WITHIN_BLOCK]) ? 0 : 1;
            named += isnan(w.part[OCC_PART_BLOCK_START]) ? 0 : 1;
        }
    assert_true(measured > 1000 && split > 100 && named > 100);
}

static void the_longest_wait_is_named(void **state)
{
    (void)state;
    struct occ_measurement m = nothing;
    assert_int_equal(occ_most_stalled(&m), OCC_LIMIT_COUNT);
    m.stall[OCC_LIMIT_REGISTERS] = 0.009;
    assert_int_equal(occ_most_stalled(&m), OCC_LIMIT_COUNT);
    m.stall[OCC_LIMIT_SMEM] = 0.3;
    m.stall[OCC_LIMIT_WARPS] = 0.2;
    assert_int_equal(occ_most_stalled(&m), OCC_LIMIT_SMEM);
}

static void every_part_has_a_word(void **state)
{
    (void)state;
    for (unsigned i = 0; i < OCC_PART_COUNT; i++) {
        assert_string_not_equal(occ_part_word(i), "unknown");
        assert_true(occ_part_text(i, 1)[0] != '\0' && occ_part_text(i, -1)[0] != '\0');
        assert_true(occ_part_advice(i) <= OCC_ADVICE_COUNT);
    }
    assert_string_equal(occ_part_word(OCC_PART_COUNT), "unknown");
    assert_string_equal(occ_part_word(OCC_CAUSE_TAIL), "tail");
    assert_string_equal(occ_part_word(OCC_PART_IMBALANCE_ACROSS_BLOCKS), "imbalance_across_blocks");
    assert_string_equal(occ_value_source_word(OCC_FROM_GROUPED), "group");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_counters_it_is_the_model),
        cmocka_unit_test(all_measured),
        cmocka_unit_test(two_of_three_give_the_third),
        cmocka_unit_test(elapsed_alone_is_not_explained),
        cmocka_unit_test(achieved_alone_is_over_active_cycles),
        cmocka_unit_test(the_rest_names_no_single_cause),
        cmocka_unit_test(above_the_model_keeps_its_sign),
        cmocka_unit_test(counters_decide_within_the_range),
        cmocka_unit_test(packed_tails_are_tails),
        cmocka_unit_test(an_uneven_grid_is_a_part_of_too_few_blocks),
        cmocka_unit_test(the_sms_tell_the_cause),
        cmocka_unit_test(empty_sms_tell_no_cause),
        cmocka_unit_test(impossible_counters_are_not_used),
        cmocka_unit_test(parts_always_add_up),
        cmocka_unit_test(the_longest_wait_is_named),
        cmocka_unit_test(every_part_has_a_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
