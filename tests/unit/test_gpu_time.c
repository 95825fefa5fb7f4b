/*
 * The change of the GPU time for the same work (compare/gpu_time.h): worlds with known waits and noise.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/attribution_random.h"
#include "compare/gpu_time.h"

#define FLOOR 0.05
enum { KERNELS = 4, STEPS_MAX = 200, WORLDS = 300 };

/* A side: one run of steps of four kernels. */
struct world {
    uint32_t steps, first; /* first: number of kernels that the first step lacks */
    double wait;           /* after each kernel, in durations */
    double pause_ns;       /* once, in the middle */
    double noise;          /* standard deviation of the logarithms of durations and waits */
};

struct outcome {
    struct diff_gpu_time_verdict v;
    double work;
};

static uint64_t duration_of(uint32_t kernel)
{
    return 10000 * (1 + (uint64_t)kernel);
}

static size_t add_parts(const struct world *world, uint32_t side, struct diff_row *rows,
                        struct diff_part *parts, size_t n)
{
    static const char *const names[KERNELS] = {"a", "b", "c", "d"};
    for (uint32_t k = 0; k < KERNELS; k++) {
        uint64_t launches = world->steps - (k < world->first);
        rows[k] = (struct diff_row){.id = k,
                                    .mangled = names[k],
                                    .demangled = names[k],
                                    .launches = launches,
                                    .total_ns = launches * duration_of(k)};
        parts[n++] = (struct diff_part){.row = &rows[k], .side = side};
    }
    return n;
}

/* Returns the side's GPU time. */
static double add_launches(struct diff *diff, const struct diff_part *parts, struct diff_uses *uses,
                           const struct world *world, uint32_t side, uint64_t *random)
{
    double all = 0;
    uint64_t seen[KERNELS] = {0};
    for (uint32_t step = 0; step < world->steps; step++)
        for (uint32_t k = step == 0 ? world->first : 0; k < KERNELS; k++) {
            uint32_t pair = diff->items[parts[side * KERNELS + k].item].pair;
            double ns = (double)duration_of(k) * random_lognormal(random, world->noise);
            double gpu_ns =
                ns + (double)duration_of(k) * world->wait * random_lognormal(random, world->noise);
            gpu_ns += step == world->steps / 2 && k == 0 ? world->pause_ns : 0;
            diff_add_launch(diff, side, pair, seen[k]++, (uint64_t)ns);
            diff_uses_add(uses, side, diff_uses_next(uses, side), pair, gpu_ns);
            all += gpu_ns;
        }
    return all;
}

static struct outcome compare(const struct world *a, const struct world *b, uint64_t seed)
{
    struct diff diff = {0};
    struct diff_row rows[DIFF_SIDES][KERNELS];
    struct diff_part parts[DIFF_SIDES * KERNELS];
    struct diff_uses uses;
    struct diff_portions portions;
    const struct world *const worlds[] = {a, b};
    double ns[DIFF_SIDES];
    size_t n = 0;
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        n = add_parts(worlds[side], side, rows[side], parts, n);
    assert_int_equal(diff_collect(&diff, parts, n, (const uint32_t[]){1, 1}, NULL), 0);
    for (size_t i = 0; i < n; i++)
        diff_add_sums(
            &diff, &parts[i],
            &(struct diff_sums){.launches = parts[i].row->launches, .total_ns = parts[i].row->total_ns});
    assert_int_equal(diff_match(&diff, DIFF_CONFIG, NULL), 0);
    assert_int_equal(diff_sample(&diff, NULL), 0);
    assert_int_equal(diff_uses_init(&uses, &diff, NULL), 0);
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        ns[side] = add_launches(&diff, parts, &uses, worlds[side], side, &seed);
    assert_int_equal(diff_conclude(&diff, NULL), 0);
    struct outcome o;
    assert_int_equal(diff_find_gpu_work(&diff, &o.work, NULL), 0);
    assert_int_equal(diff_uses_portions(&uses, o.work, &portions, NULL), 0);
    const struct diff_gpu_change change =
        diff_gpu_time_change(&diff, ns[DIFF_B] / ns[DIFF_A] / o.work, &portions);
    o.v = diff_judge_gpu_time(&change, FLOOR);
    diff_uses_free(&uses);
    diff_free(&diff);
    return o;
}

static const struct world base = {.steps = 100, .wait = 0.2, .noise = 0.1};

static void longer_waits_are_worse(void **state)
{
    struct world waits = base;
    (void)state;
    waits.wait = 0.5;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct outcome o = compare(&base, &waits, seed);
        assert_int_equal(o.v.verdict, DIFF_WORSE);
        assert_true(fabs(o.v.ratio.ratio - 1.5 / 1.2) < 0.03);
        assert_true(o.v.ratio.low < 1.5 / 1.2 * 1.02 && o.v.ratio.high > 1.5 / 1.2 * 0.98);
        assert_int_equal(compare(&waits, &base, seed).v.verdict, DIFF_BETTER);
        assert_int_equal(compare(&base, &base, seed).v.verdict, DIFF_SAME);
    }
}

static void a_pause_decides_nothing(void **state)
{
    struct world stops = base;
    (void)state;
    for (double pause_ns = 1e6; pause_ns < 1e12; pause_ns *= 3) {
        stops.pause_ns = pause_ns;
        struct outcome o = compare(&base, &stops, (uint64_t)pause_ns);
        assert_true(o.v.verdict == DIFF_UNDECIDED || (pause_ns < 2e6 && o.v.verdict == DIFF_SAME));
        assert_int_equal(compare(&stops, &base, (uint64_t)pause_ns).v.verdict, o.v.verdict);
    }
}

static void more_steps_are_more_work(void **state)
{
    struct world more = base;
    (void)state;
    more.steps = 160;
    struct outcome o = compare(&base, &more, 1);
    assert_true(fabs(o.work - 1.6) < 1e-9);
    assert_int_equal(o.v.verdict, DIFF_SAME);
}

static void ends_within_a_step_are_an_error(void **state)
{
    struct world few = {.steps = 50, .wait = 0.2, .noise = 0.001}, cut = few;
    (void)state;
    cut.first = 3;
    struct outcome whole = compare(&few, &few, 1), other = compare(&few, &cut, 1);
    assert_true(fabs(other.work - 1) < 1e-9);
    assert_true(whole.v.ratio.high - whole.v.ratio.low < 0.03); /* of the number of launches */
    assert_true(other.v.ratio.high - other.v.ratio.low > 0.04); /* 1.2 % of the work */
}

static void few_launches_decide_nothing(void **state)
{
    struct world few = {.steps = 24, .wait = 0.2, .noise = 0.01}, waits = few;
    (void)state;
    waits.wait = 5;
    struct outcome o = compare(&few, &waits, 1); /* 96 launches a side */
    assert_int_equal(o.v.verdict, DIFF_UNDECIDED);
    assert_true(o.v.ratio.ratio > 2 && isnan(o.v.ratio.low) && isnan(o.v.ratio.p));
}

static void equal_sides_alarm_rarely(void **state)
{
    struct world noisy = base;
    unsigned alarms = 0;
    (void)state;
    noisy.noise = 1;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        enum diff_verdict verdict = compare(&noisy, &noisy, seed).v.verdict;
        alarms += verdict == DIFF_WORSE || verdict == DIFF_BETTER ? 1 : 0;
    }
    assert_true(alarms <= WORLDS / 100);
}

/* An unknown ratio, and sides without slices. */
static void the_unknown_is_undecided(void **state)
{
    const struct diff diff = {.by_runs = true, .launches = {10, 10}};
    static const struct diff_portions none;
    (void)state;
    struct diff_gpu_change change = diff_gpu_time_change(&diff, NAN, &none);
    assert_true(isnan(change.change));
    assert_int_equal(diff_judge_gpu_time(&change, FLOOR).verdict, DIFF_UNDECIDED);
    change = diff_gpu_time_change(&diff, 2, &none);
    assert_int_equal(diff_judge_gpu_time(&change, FLOOR).verdict, DIFF_UNDECIDED);
}

static void runs_decide(void **state)
{
    const struct diff diff = {.by_runs = true, .launches = {300, 300}};
    struct diff_portions p = {
        .list = {{{100, 100}, {101, 100}, {99, 100}}, {{200, 100}, {202, 100}, {198, 100}}}, .n = {3, 3}};
    (void)state;
    struct diff_gpu_change change = diff_gpu_time_change(&diff, 2, &p);
    assert_int_equal(diff_judge_gpu_time(&change, FLOOR).verdict, DIFF_WORSE);
    p.list[DIFF_B][0].time = 100;
    p.list[DIFF_B][1].time = 400; /* runs of other lengths */
    p.list[DIFF_B][2].time = 100;
    change = diff_gpu_time_change(&diff, 2, &p);
    assert_int_equal(diff_judge_gpu_time(&change, FLOOR).verdict, DIFF_UNDECIDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longer_waits_are_worse),      cmocka_unit_test(a_pause_decides_nothing),
        cmocka_unit_test(more_steps_are_more_work),    cmocka_unit_test(ends_within_a_step_are_an_error),
        cmocka_unit_test(few_launches_decide_nothing), cmocka_unit_test(equal_sides_alarm_rarely),
        cmocka_unit_test(the_unknown_is_undecided),    cmocka_unit_test(runs_decide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
