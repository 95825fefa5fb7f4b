/* What the attribution says of samples and seconds of a GPU, whatever ran there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "attribution/attribution.h"

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
    struct occ_attribution *a = NULL;
    const struct occ_attribution_options options = {
        .sm_count = SMS, .max_warps_per_sm = WARPS, .add_second = add_second};
    assert_int_equal(occ_attribution_new(&options, &a, NULL), 0);
    return a;
}

static void a_sample_is_read_as_ratios(void **state)
{
    (void)state;
    struct occ_attribution *a = new_attribution();
    struct occ_sample s = sample_at(BEGIN, 0.375, 0.5);
    struct occ_measured m;
    occ_attribution_read(a, &s, &m);
    assert_true(fabs(m.elapsed - 0.375) < 1e-12);
    assert_true(fabs(m.sm_active - 0.5) < 1e-12);
    assert_true(fabs(m.blocks - 3) < 1e-12);
    assert_true(isnan(m.stall[0]));
    assert_true(fabs(m.stall[3] - 0.25) < 1e-12);
    s = sample_at(BEGIN, 0, 0); /* idle: there are no active SMs to have blocks */
    occ_attribution_read(a, &s, &m);
    assert_true(m.elapsed == 0 && isnan(m.blocks));
    occ_attribution_free(a);
}

/* Nothing that was traced runs: all is unexplained. */
static void what_no_launch_explains_is_said_by_second(void **state)
{
    (void)state;
    struct occ_attribution *a = new_attribution();
    for (int i = 0; i < 3500; i++) {
        struct occ_sample s = sample_at(BEGIN + i * MS, i < 1000 ? 0.25 : i < 2000 ? 0.5 : 0, 1);
        assert_int_equal(occ_attribution_sample(a, &s, NULL), 0);
    }
    assert_int_equal(occ_attribution_advance(a, BEGIN + 10 * SECOND, true, NULL), 0);
    assert_int_equal(n_seconds, 3); /* the last one is not over */
    assert_int_equal(seconds[0].second, BEGIN / SECOND);
    assert_true(fabs(seconds[0].unexplained - 0.25) < 1e-9);
    assert_int_equal(seconds[1].second, BEGIN / SECOND + 1);
    assert_true(fabs(seconds[1].unexplained - 0.5) < 1e-9);
    assert_true(seconds[2].unexplained == 0);
    assert_int_equal(occ_attribution_advance(a, BEGIN + 10 * SECOND, true, NULL), 0);
    assert_int_equal(n_seconds, 3);
    occ_attribution_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_is_read_as_ratios),
        cmocka_unit_test(what_no_launch_explains_is_said_by_second),
    };
    return cmocka_run_group_tests_name("sampler seconds", tests, NULL, NULL);
}
