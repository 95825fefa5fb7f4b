/* Attribution of samples and seconds of a GPU, independent of the programs that ran there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "attribution/attribution.h"
#include "daemon/sampling/counters/ratios.h"

#define SECOND INT64_C(1000000000)
#define MS     INT64_C(1000000)
#define BEGIN  (1700000000 * SECOND)
#define SMS    100
#define WARPS  64

/* A sample of 1 ms at 1 GHz. */
static struct occ_sample sample_at(int64_t start_ns, double elapsed, double active)
{
    struct occ_sample s = {.start_ns = start_ns, .end_ns = start_ns + MS};
    const double cycles = (double)MS;
    for (int i = 0; i < OCC_COUNTER_COUNT; i++)
        s.value[i] = NAN;
    s.value[OCC_COUNTER_ELAPSED] = cycles;
    s.value[OCC_COUNTER_WARPS] = elapsed * SMS * WARPS * cycles;
    s.value[OCC_COUNTER_ACTIVE] = active * SMS * cycles;
    s.value[OCC_COUNTER_BLOCKS] = 3 * active * SMS * cycles;
    s.value[OCC_COUNTER_STALL_WARPS] = 0.25 * SMS / 2 * cycles;
    return s;
}

static void assert_near(float got, double wanted)
{
    assert_true(fabs((double)got - wanted) < 1e-6);
}

static struct occ_attribution_second seconds[8];
static size_t n_seconds;

static void add_second(void *context, const struct occ_attribution_second *second)
{
    (void)context;
    assert_true(n_seconds < 8);
    seconds[n_seconds++] = *second;
}

static struct occ_attribution *new_attribution(void)
{
    const struct occ_attribution_options options = {.add_second = add_second};
    struct occ_attribution *a = occ_attribution_new(&options);
    assert_non_null(a);
    return a;
}

static void a_sample_is_read_as_ratios(void **state)
{
    (void)state;
    struct occ_ratio_scale scale = {.sm_count = SMS, .max_warps_per_sm = WARPS};
    struct occ_sample s = sample_at(BEGIN, 0.375, 0.5);
    struct occ_attribution_sample m;
    assert_true(occ_ratios_read(&scale, &s, &m));
    assert_near(m.ratio[OCC_RATIO_WARPS], 0.375);
    assert_near(m.ratio[OCC_RATIO_ACTIVE], 0.5);
    assert_near(m.ratio[OCC_RATIO_BLOCKS], 1.5);
    assert_true(isnan(m.ratio[OCC_RATIO_STALLS]) && isnan(m.ratio[OCC_RATIO_UTILIZATION]));
    assert_near(m.ratio[OCC_RATIO_STALLS + 3], 0.25);
    assert_true(m.start_ns == s.start_ns && m.end_ns == s.end_ns && isnan(m.imbalance));
    s.value[OCC_COUNTER_ELAPSED] = NAN; /* as many cycles a ns as before */
    assert_true(occ_ratios_read(&scale, &s, &m));
    assert_near(m.ratio[OCC_RATIO_WARPS], 0.375);
}

static void a_counter_that_cannot_be_is_left_out(void **state)
{
    (void)state;
    static const double impossible[] = {1.3 * SMS * WARPS * (double)MS, -1, INFINITY, 1e300};
    struct occ_ratio_scale scale = {.sm_count = SMS, .max_warps_per_sm = WARPS};
    struct occ_attribution_sample m;
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        struct occ_sample s = sample_at(BEGIN, 0.375, 0.5);
        s.value[OCC_COUNTER_WARPS] = impossible[i];
        assert_false(occ_ratios_read(&scale, &s, &m));
        assert_true(isnan(m.ratio[OCC_RATIO_WARPS]));
        assert_near(m.ratio[OCC_RATIO_ACTIVE], 0.5);
    }
}

static void blocks_are_counted(void **state)
{
    (void)state;
    static const double impossible[] = {-1, INFINITY, 1e300, NAN};
    struct occ_ratio_scale scale = {.sm_count = SMS, .max_warps_per_sm = WARPS};
    struct occ_sample s = sample_at(BEGIN, 0.375, 0.5);
    struct occ_attribution_sample m;
    s.value[OCC_COUNTER_LAUNCHED] = 1056;
    assert_true(occ_ratios_read(&scale, &s, &m));
    assert_near(m.launched, 1056);
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        s.value[OCC_COUNTER_LAUNCHED] = impossible[i];
        (void)occ_ratios_read(&scale, &s, &m);
        assert_true(isnan(m.launched));
    }
}

/* No ratio is used without a number of cycles. */
static void without_cycles_nothing_is_said(void **state)
{
    (void)state;
    static const double impossible[] = {0, -1, INFINITY, NAN};
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        struct occ_ratio_scale scale = {.sm_count = SMS, .max_warps_per_sm = WARPS};
        struct occ_sample s = sample_at(BEGIN, 0.375, 0.5);
        struct occ_attribution_sample m;
        s.value[OCC_COUNTER_ELAPSED] = impossible[i];
        assert_false(occ_ratios_read(&scale, &s, &m));
        for (int r = 0; r < OCC_RATIO_COUNT; r++)
            assert_true(isnan(m.ratio[r]));
        assert_true(scale.cycles_per_ns == 0);
    }
}

/* Nothing that was traced runs: all is unexplained. */
static void what_no_launch_explains_is_said_by_second(void **state)
{
    (void)state;
    struct occ_attribution *a = new_attribution();
    struct occ_ratio_scale scale = {.sm_count = SMS, .max_warps_per_sm = WARPS};
    for (int i = 0; i < 3500; i++) {
        struct occ_sample s = sample_at(BEGIN + i * MS, i < 1000 ? 0.25 : i < 2000 ? 0.5 : 0, 1);
        struct occ_attribution_sample ratios;
        assert_true(occ_ratios_read(&scale, &s, &ratios));
        assert_true(occ_attribution_sample(a, &ratios));
    }
    occ_attribution_advance(a, BEGIN + 10 * SECOND, true);
    assert_int_equal(n_seconds, 3); /* the last one is not over */
    assert_int_equal(seconds[0].second, BEGIN / SECOND);
    assert_true(fabs(seconds[0].unexplained - 0.25) < 1e-9);
    assert_int_equal(seconds[1].second, BEGIN / SECOND + 1);
    assert_true(fabs(seconds[1].unexplained - 0.5) < 1e-9);
    assert_true(seconds[2].unexplained == 0);
    occ_attribution_advance(a, BEGIN + 10 * SECOND, true);
    assert_int_equal(n_seconds, 3);
    occ_attribution_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_is_read_as_ratios),
        cmocka_unit_test(a_counter_that_cannot_be_is_left_out),
        cmocka_unit_test(blocks_are_counted),
        cmocka_unit_test(without_cycles_nothing_is_said),
        cmocka_unit_test(what_no_launch_explains_is_said_by_second),
    };
    return cmocka_run_group_tests_name("sampler seconds", tests, NULL, NULL);
}
