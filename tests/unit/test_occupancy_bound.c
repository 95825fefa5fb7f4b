/* Verdicts on whether more warps would help: thresholds, errors that count against each verdict, missing
 * values. */
#include "occupancy/bound.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct occ_hw_utilization nothing = {
    .ratio = {NAN, NAN, NAN, NAN, NAN, NAN, NAN}, .issue_error = NAN, .throughput_error = NAN};
static const struct occ_result waves = {.full_waves = 3}, less_than_one = {.full_waves = 0};

/* Returns the utilization with the units that we count: `unit` at `ratio`, the others at `others`. */
static struct occ_hw_utilization ours(enum occ_hw_unit unit, double ratio, double others)
{
    struct occ_hw_utilization u = {.ratio = {others, others, others, others, others, NAN, NAN}};
    u.ratio[unit] = ratio;
    return u;
}

static struct occ_hw_utilization of_ncu(double compute, double memory)
{
    struct occ_hw_utilization u = nothing;
    u.ratio[OCC_HW_COMPUTE] = compute;
    u.ratio[OCC_HW_MEMORY] = memory;
    return u;
}

static void any_unit_decides(void **state)
{
    (void)state;
    for (int i = OCC_HW_ISSUE; i <= OCC_HW_TENSOR; i++) {
        enum occ_hw_unit unit = (enum occ_hw_unit)i;
        struct occ_hw_utilization u = ours(unit, 0.59, 0.1);
        assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_LATENCY);
        assert_int_equal(occ_busiest_unit(&u), unit);
        u = ours(unit, 0.6, 0.1);
        assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_BETWEEN);
        u = ours(unit, 0.79, 0.1);
        assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_BETWEEN);
        u = ours(unit, 0.8, 0.1);
        assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_THROUGHPUT);
    }
    for (int i = 0; i < 2; i++) {
        struct occ_hw_utilization u = i ? of_ncu(0.1, 0.59) : of_ncu(0.59, 0.1);
        assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_LATENCY);
        u = i ? of_ncu(0.1, 0.8) : of_ncu(0.8, 0.1);
        assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_THROUGHPUT);
    }
}

/* A value within 1.96 standard errors of its threshold gets neither verdict. The issue rate has its
 * own error. */
static void errors_count_against_the_verdict(void **state)
{
    (void)state;
    struct occ_hw_utilization u = ours(OCC_HW_DRAM, 0.83, 0.1);
    u.throughput_error = 0.015;
    assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_THROUGHPUT);
    u.throughput_error = 0.016;
    assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_BETWEEN);
    u = ours(OCC_HW_DRAM, 0.57, 0.1);
    u.throughput_error = 0.015;
    assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_LATENCY);
    u.throughput_error = 0.016;
    assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_BETWEEN);
    u = ours(OCC_HW_ISSUE, 0.57, 0.1);
    u.throughput_error = 0.016;
    assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_LATENCY);
    u.issue_error = 0.016;
    assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_BETWEEN);
    /* a less busy unit that is less certain */
    u = ours(OCC_HW_DRAM, 0.56, 0.1);
    u.ratio[OCC_HW_ISSUE] = 0.55;
    u.issue_error = 0.03;
    assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_BETWEEN);
}

static void less_than_a_wave_is_too_little_work(void **state)
{
    (void)state;
    struct occ_hw_utilization u = ours(OCC_HW_DRAM, 0.2, 0.1);
    assert_int_equal(occ_bound_of(&u, &less_than_one), OCC_BOUND_TOO_LITTLE_WORK);
    assert_int_equal(occ_bound_of(&nothing, &less_than_one), OCC_BOUND_TOO_LITTLE_WORK);
    assert_int_equal(occ_bound_of(&u, NULL), OCC_BOUND_LATENCY); /* the grid is not known */
    u = ours(OCC_HW_DRAM, 0.9, 0.1);
    assert_int_equal(occ_bound_of(&u, &less_than_one), OCC_BOUND_THROUGHPUT);
}

static void what_was_not_counted_may_be_the_busiest(void **state)
{
    (void)state;
    assert_int_equal(occ_bound_of(&nothing, &waves), OCC_BOUND_NOT_MEASURED);
    assert_int_equal(occ_busiest_unit(&nothing), OCC_HW_COUNT);
    for (int i = OCC_HW_ISSUE; i <= OCC_HW_TENSOR; i++) {
        struct occ_hw_utilization u = ours((enum occ_hw_unit)i, NAN, 0.3);
        assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_NOT_MEASURED);
        u = ours((enum occ_hw_unit)i, -1, 0.3);
        assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_NOT_MEASURED);
        u = ours((enum occ_hw_unit)i, NAN, 0.9);
        assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_THROUGHPUT);
    }
    struct occ_hw_utilization u = of_ncu(0.3, NAN);
    assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_NOT_MEASURED);
    u = of_ncu(NAN, 0.85);
    assert_int_equal(occ_bound_of(&u, &waves), OCC_BOUND_THROUGHPUT);
}

static void words(void **state)
{
    (void)state;
    assert_string_equal(occ_bound_word(OCC_BOUND_LATENCY), "latency");
    assert_string_equal(occ_bound_word(OCC_BOUND_COUNT), "unknown");
    assert_string_equal(occ_hw_unit_word(OCC_HW_MEMORY), "memory_throughput");
    assert_non_null(strstr(occ_bound_text(OCC_BOUND_THROUGHPUT), "more warps would not help"));
    assert_string_equal(occ_hw_unit_text(OCC_HW_L1), "L1 and shared memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_unit_decides),
        cmocka_unit_test(errors_count_against_the_verdict),
        cmocka_unit_test(less_than_a_wave_is_too_little_work),
        cmocka_unit_test(what_was_not_counted_may_be_the_busiest),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
