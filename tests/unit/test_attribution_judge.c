/* The judge of attribution, with a fake attribution that returns the test's values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/attribution_judge.h"
#include "bench/heap_peak.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LAUNCHES 100
#define SAMPLES  10000
#define SECOND   INT64_C(1000000000)
#define TRUTH    0.5

/* Values of the launches, one per configuration. */
static const struct reported {
    enum occ_attribution_source source;
    double elapsed, se, achieved, achieved_se;
} * reports;

struct occ_attribution {
    struct occ_attribution_options options;
    int64_t sampled_ns, last_start_ns;
    struct occ_attribution_value values[LAUNCHES];
    size_t n;
};

static struct occ_attribution fake;
static size_t n_samples, n_launches, n_final;

struct occ_attribution *occ_attribution_new(const struct occ_attribution_options *options)
{
    fake = (struct occ_attribution){.options = *options};
    n_samples = n_launches = n_final = 0;
    return &fake;
}

void occ_attribution_free(struct occ_attribution *a)
{
    assert_ptr_equal(a, &fake);
}

bool occ_attribution_sample(struct occ_attribution *a, const struct occ_attribution_sample *sample)
{
    assert_true(sample->end_ns > a->sampled_ns);
    a->sampled_ns = sample->end_ns;
    n_samples++;
    return true;
}

bool occ_attribution_launch(struct occ_attribution *a, const struct occ_attribution_launch *launch)
{
    const struct reported *s = &reports[launch->key.shape - 1];
    assert_true(launch->start_ns >= a->last_start_ns || launch->end_ns - launch->start_ns > 3 * SECOND);
    assert_true(launch->end_ns <= a->sampled_ns); /* a launch is reported after its end */
    a->last_start_ns = launch->start_ns > a->last_start_ns ? launch->start_ns : a->last_start_ns;
    struct occ_attribution_value *v = &a->values[a->n++];
    *v = (struct occ_attribution_value){.tag = launch->tag,
                                        .start_ns = launch->start_ns,
                                        .end_ns = launch->end_ns,
                                        .measured = OCC_NOT_MEASURED};
    v->measured.source = s->source;
    v->measured.elapsed = s->elapsed;
    v->measured.elapsed_se = s->se;
    v->measured.achieved = s->achieved;
    v->measured.achieved_se = s->achieved_se;
    n_launches++;
    return true;
}

void occ_attribution_advance(struct occ_attribution *a, int64_t until_ns, bool final)
{
    n_final += final;
    bool is_end = n_samples == SAMPLES; /* after the last sample, the rest comes in larger steps */
    assert_true(final || is_end || until_ns <= a->sampled_ns - 3 * SECOND || a->sampled_ns == 0);
    for (size_t i = 0; i < a->n; i++)
        a->options.add_value(a->options.context, &a->values[i]);
    a->n = 0;
}

void heap_peak_reset(void)
{
}

void heap_peak_count(bool on)
{
    (void)on;
}

size_t heap_peak_bytes(void)
{
    return 4096;
}

/* ---- a world of 10 s with launches of 10 ms: configuration = number % n_configs ---- */

static struct physics_kernel kernels[8];
static struct world_launch launches[LAUNCHES];
static struct occ_sample samples[SAMPLES];

static struct world make_world(uint32_t n_configs)
{
    for (size_t i = 0; i < 8; i++)
        kernels[i] = (struct physics_kernel){
            .sms = 100, .warps_per_sm = 64, .grid_blocks = 100, .warps_per_block = 8, .blocks_per_sm = 8};
    for (size_t i = 0; i < SAMPLES; i++) {
        samples[i].start_ns = WORLD_EPOCH_NS + (int64_t)i * 1000000;
        samples[i].end_ns = samples[i].start_ns + 1000000;
    }
    for (size_t i = 0; i < LAUNCHES; i++)
        launches[i] = (struct world_launch){.config = (uint32_t)i % n_configs,
                                            .reported = true,
                                            .start_ns = WORLD_EPOCH_NS + (int64_t)i * SECOND / 11,
                                            .end_ns = WORLD_EPOCH_NS + (int64_t)i * SECOND / 11 + 10000000,
                                            .elapsed = TRUTH,
                                            .active = 0.8,
                                            .duration_ns = 1e7};
    return (struct world){
        .timeline = {.sms = 100, .warps_per_sm = 64, .configs = kernels, .n_configs = n_configs},
        .launches = launches,
        .n_launches = LAUNCHES,
        .samples = samples,
        .n_samples = SAMPLES};
}

static const struct judge_options whole = {.seconds = 10};

static struct judge_result judge(const struct reported *what, const struct world *world,
                                 const struct judge_options *options)
{
    struct judge_result result = {0};
    reports = what;
    judge_run(options, world, &result);
    return result;
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9))
        fail_msg("%g instead of %g", a, b);
}

static void test_all_is_handed_on_in_time(void **state)
{
    static const struct reported what[] = {{OCC_ATTRIBUTION_REGRESSED, TRUTH, 0.01, NAN, NAN}};
    struct world world = make_world(1);
    (void)state;
    launches[10].end_ns += 6 * SECOND;
    struct judge_result r = judge(what, &world, &whole);
    assert_int_equal(n_samples, SAMPLES);
    assert_int_equal(n_launches, LAUNCHES);
    assert_int_equal(n_final, 1);
    assert_int_equal(r.samples, SAMPLES);
    assert_int_equal(r.launches, LAUNCHES);
    assert_int_equal(r.heap_bytes, 4096);
    judge_free(&r);
}

static void test_intervals(void **state)
{
    static const struct reported what[] = {
        {OCC_ATTRIBUTION_REGRESSED, TRUTH + 0.0195, 0.01, NAN, NAN}, /* covered: within 1.96 */
        {OCC_ATTRIBUTION_REGRESSED, TRUTH - 0.0197, 0.01, NAN, NAN}, /* not covered */
        {OCC_ATTRIBUTION_REGRESSED, TRUTH + 0.0299, 0.01, NAN, NAN}, /* not covered, but within 3 */
        {OCC_ATTRIBUTION_REGRESSED, TRUTH - 0.0301, 0.01, NAN, NAN}, /* beyond 3 */
    };
    struct world world = make_world(4);
    (void)state;
    struct judge_result r = judge(what, &world, &whole);
    assert_int_equal(r.elapsed.n, 4);
    assert_int_equal(r.elapsed.covered, 1);
    assert_int_equal(r.elapsed.beyond, 1);
    assert_near(r.elapsed.covered_weight / r.elapsed.weight, 0.25);
    assert_near(r.elapsed.error / r.elapsed.weight, (0.0195 + 0.0197 + 0.0299 + 0.0301) / 4);
    assert_near(r.elapsed.worst, 0.0301);
    assert_int_equal(r.n_half_widths, 4);
    assert_near(r.half_widths[0], 0.0196);
    assert_near(r.own_ns, r.launch_ns);
    assert_int_equal(r.direct.n, 0);
    judge_free(&r);
}

static void test_what_is_withheld(void **state)
{
    static const struct reported what[] = {
        {OCC_ATTRIBUTION_REGRESSED, TRUTH, 0.0511, NAN, NAN}, /* half-width 10.02 points */
        {OCC_ATTRIBUTION_REGRESSED, TRUTH, 0.0509, NAN, NAN},
        {OCC_ATTRIBUTION_GROUP, TRUTH, 0.01, NAN, NAN},
        {OCC_ATTRIBUTION_NONE, NAN, NAN, NAN, NAN},
        {OCC_ATTRIBUTION_REGRESSED, TRUTH, NAN, NAN, NAN},
    };
    struct world world = make_world(5);
    (void)state;
    struct judge_result r = judge(what, &world, &whole);
    assert_int_equal(r.elapsed.n, 1);
    assert_near(r.own_ns / r.launch_ns, 0.2);
    assert_near(r.grouped_ns / r.launch_ns, 0.2);
    assert_near(r.wide_ns / r.launch_ns, 0.4);
    judge_free(&r);
}

static void test_direct_values_and_achieved(void **state)
{
    static const struct reported what[] = {
        {OCC_ATTRIBUTION_DIRECT, TRUTH + 0.05, 0.01, TRUTH / 0.8 + 0.01, 0.01},
        {OCC_ATTRIBUTION_DIRECT, TRUTH, 0.01, TRUTH / 0.8 + 0.04, 0.01},
        {OCC_ATTRIBUTION_DIRECT, TRUTH, 0.01, TRUTH / 0.8, 0.01}, /* beside others: achieved is not judged */
    };
    struct world world = make_world(3);
    (void)state;
    for (size_t i = 2; i < LAUNCHES; i += 3)
        launches[i].overlapped = true;
    struct judge_result r = judge(what, &world, &whole);
    assert_int_equal(r.direct.n, LAUNCHES);
    assert_int_equal(r.direct.covered, LAUNCHES - 34);
    assert_int_equal(r.achieved.n, 2);
    assert_int_equal(r.achieved.covered, 1);
    assert_int_equal(r.achieved.beyond, 1);
    judge_free(&r);
}

/* The truth is the time-weighted mean of all reported launches, from the first launch on. */
static void test_the_truth(void **state)
{
    static const struct reported what[] = {{OCC_ATTRIBUTION_REGRESSED, TRUTH, 0.01, NAN, NAN}};
    struct world world = make_world(1);
    (void)state;
    for (size_t i = 0; i < LAUNCHES; i++) {
        launches[i].elapsed = i < 60 ? 0.9 : i % 2 ? 0.1 : 0.4;
        launches[i].duration_ns = i % 2 ? 1e7 : 3e7;
        launches[i].reported = i != 70;
    }
    struct judge_result r = judge(what, &world, &whole);
    double ns = 30 * 1 + 30 * 3 + 20 * 1 + 19 * 3;
    double truth = (0.9 * (30 * 1 + 30 * 3) + 20 * 0.1 * 1 + 19 * 0.4 * 3) / ns;
    assert_int_equal(n_launches, LAUNCHES - 1);
    assert_near(r.elapsed.error / r.elapsed.weight, fabs(TRUTH - truth));
    judge_free(&r);
}

static void test_pool(void **state)
{
    static const struct reported what[] = {{OCC_ATTRIBUTION_REGRESSED, TRUTH, 0.01, NAN, NAN},
                                           {OCC_ATTRIBUTION_REGRESSED, TRUTH + 1, 0.01, NAN, NAN}};
    struct world world = make_world(2);
    (void)state;
    struct judge_result one = judge(what, &world, &whole), both = {0};
    judge_pool(&both, &one);
    judge_pool(&both, &one);
    assert_int_equal(both.elapsed.n, 4);
    assert_int_equal(both.elapsed.covered, 2);
    assert_int_equal(both.elapsed.beyond, 2);
    assert_int_equal(both.n_half_widths, 4);
    assert_int_equal(both.samples, 2 * SAMPLES);
    assert_near(both.launch_ns, 2 * one.launch_ns);
    judge_free(&one);
    judge_free(&both);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_handed_on_in_time),
        cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_what_is_withheld),
        cmocka_unit_test(test_direct_values_and_achieved),
        cmocka_unit_test(test_the_truth),
        cmocka_unit_test(test_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
