/* Warps that hide latency: documented examples, counters, and values that are missing or impossible. */
#include "occupancy/latency.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct occ_device device_of(uint32_t cc)
{
    struct occ_device device;
    assert_int_equal(occ_device_from_cc(cc, &device), OCC_OK);
    return device;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

/* NVIDIA's guides: 16 warps per SM hide arithmetic on Volta and Turing, 4 with four independent
 * instructions each. */
static void the_guides_examples(void **state)
{
    (void)state;
    const uint32_t four_cycles[] = {70, 72, 75};
    for (size_t i = 0; i < 3; i++) {
        struct occ_device device = device_of(four_cycles[i]);
        struct occ_latency alone = occ_latency_of(&device, 8, NAN, NULL);
        assert_int_equal(alone.source, OCC_LATENCY_ASSUMED);
        assert_true(is_near(alone.cycles, 4) && is_near(alone.needed_warps, 16) &&
                    is_near(alone.resident_warps, 8) && is_near(alone.independent, 2));
        assert_true(isnan(alone.needed_error) && !occ_latency_is_hidden(&alone));
        struct occ_latency four = occ_latency_of(&device, 4, 4, NULL);
        assert_true(is_near(four.needed_warps, 4) && is_near(four.independent, 4));
        assert_true(occ_latency_is_hidden(&four));
    }
    struct occ_device device = device_of(61);
    assert_true(is_near(occ_latency_of(&device, 8, 1, NULL).needed_warps, 24));
    device = device_of(60); /* two schedulers */
    assert_true(is_near(occ_latency_of(&device, 8, 1, NULL).needed_warps, 12));
}

static void more_warps_than_needed(void **state)
{
    (void)state;
    struct occ_device device = device_of(75);
    struct occ_latency latency = occ_latency_of(&device, 32, 1, NULL);
    assert_true(occ_latency_is_hidden(&latency) && is_near(latency.independent, 1));
}

static void an_undocumented_latency_is_unknown(void **state)
{
    (void)state;
    const uint32_t undocumented[] = {20, 35, 52, 80, 86, 90, 100, 121, 0, 999};
    for (size_t i = 0; i < sizeof undocumented / sizeof *undocumented; i++)
        assert_true(isnan(occ_arithmetic_latency(undocumented[i])));
    struct occ_device device = device_of(90);
    struct occ_latency latency = occ_latency_of(&device, 8, 2, NULL);
    assert_int_equal(latency.source, OCC_LATENCY_UNKNOWN);
    assert_true(isnan(latency.cycles) && isnan(latency.resident_warps) && isnan(latency.needed_warps) &&
                isnan(latency.needed_error) && isnan(latency.independent));
    assert_false(occ_latency_is_hidden(&latency));
    device = device_of(75);
    assert_int_equal(occ_latency_of(&device, NAN, 1, NULL).source, OCC_LATENCY_UNKNOWN);
    assert_int_equal(occ_latency_of(&device, 0, 1, NULL).source, OCC_LATENCY_UNKNOWN);
}

static struct occ_measurement counted(double achieved, double issued)
{
    struct occ_measurement m = {.achieved = achieved, .achieved_error = NAN};
    m.utilization.ratio[OCC_HW_ISSUE] = issued;
    m.utilization.issue_error = NAN;
    return m;
}

/* 16 of 64 warps per SM, four for each scheduler, that issues in every fourth cycle: a warp issues in every
 * 16th cycle, and four times the warps, or the independent instructions, would fill all cycles. */
static void counters_give_the_latency(void **state)
{
    (void)state;
    struct occ_device device = device_of(90);
    struct occ_measurement m = counted(0.25, 0.25);
    struct occ_latency latency = occ_latency_of(&device, 32, 2, &m);
    assert_int_equal(latency.source, OCC_LATENCY_MEASURED);
    assert_true(is_near(latency.cycles, 16) && is_near(latency.resident_warps, 16) &&
                is_near(latency.needed_warps, 64) && is_near(latency.independent, 4));
    assert_true(isnan(latency.needed_error)); /* ncu gives no errors */
    m.achieved_error = 0.03 * m.achieved;
    m.utilization.issue_error = 0.04 * 0.25;
    assert_true(is_near(occ_latency_of(&device, 32, 2, &m).needed_error, 0.05 * 64));
    m = counted(0.25, 1.01); /* noise of two passes */
    latency = occ_latency_of(&device, 32, 1, &m);
    assert_true(is_near(latency.independent, 1) && occ_latency_is_hidden(&latency));
}

static void values_that_were_not_counted(void **state)
{
    (void)state;
    static const double bad[] = {NAN, -0.1, 0, 2.1, INFINITY};
    struct occ_device turing = device_of(75), hopper = device_of(90);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int side = 0; side < 2; side++) {
            struct occ_measurement m = counted(side ? bad[i] : 0.5, side ? 0.5 : bad[i]);
            assert_int_equal(occ_latency_of(&turing, 8, 1, &m).source, OCC_LATENCY_ASSUMED);
            assert_int_equal(occ_latency_of(&hopper, 8, 1, &m).source, OCC_LATENCY_UNKNOWN);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_guides_examples),
        cmocka_unit_test(more_warps_than_needed),
        cmocka_unit_test(an_undocumented_latency_is_unknown),
        cmocka_unit_test(counters_give_the_latency),
        cmocka_unit_test(values_that_were_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
