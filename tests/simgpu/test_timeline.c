/*
 * Tests the block scheduler: closed form for equal blocks, order, overlap, and its invariant under random
 * load.
 */
#include "timeline.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

static struct sim_placement place(struct sim_timeline *t, uint64_t ready, uint64_t blocks, uint64_t wave,
                                  uint64_t ns)
{
    struct sim_work work = {.ready_ns = ready, .blocks = blocks, .wave_blocks = wave, .block_ns = ns};
    struct sim_placement placed;
    assert_true(sim_timeline_place(t, 0, &work, &placed));
    return placed;
}

static int set_up(void **state)
{
    *state = sim_timeline_new();
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    sim_timeline_free(*state);
    return 0;
}

static void test_waves(void **state)
{
    static const struct {
        uint64_t blocks, waves;
    } expected[] = {{1, 1}, {99, 1}, {100, 1}, {101, 2}, {200, 2}, {201, 3}, {1000000000000, 10000000000}};
    uint64_t ready = 1000;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct sim_placement p = place(*state, ready, expected[i].blocks, 100, 7);
        assert_int_equal(p.start_ns, ready);
        assert_int_equal(p.end_ns - p.start_ns, expected[i].waves * 7);
        ready = p.end_ns;
    }
}

static void test_the_tail_leaves_room(void **state)
{
    struct sim_placement a = place(*state, 0, 150, 100, 1000); /* second wave is half full */
    assert_int_equal(a.end_ns, 2000);
    assert_true(sim_timeline_share(*state, 500) == 1);
    assert_true(sim_timeline_share(*state, 1500) == 0.5);
    struct sim_placement b = place(*state, 0, 50, 100, 1000); /* another stream: fits beside the tail */
    assert_int_equal(b.start_ns, 1000);
    assert_int_equal(b.end_ns, 2000);
    struct sim_placement c = place(*state, 0, 1, 100, 1000); /* now it is full */
    assert_int_equal(c.start_ns, 2000);
}

static void test_small_ones_run_side_by_side(void **state)
{
    for (int i = 0; i < 10; i++)
        assert_int_equal(place(*state, 5, 10, 100, 1000).start_ns, 5);
    assert_int_equal(place(*state, 5, 10, 100, 1000).start_ns, 1005);
}

static void test_a_gap_before_what_is_planned(void **state)
{
    place(*state, 10000, 100, 100, 1000);
    struct sim_placement short_one = place(*state, 0, 500, 100, 1000);
    assert_int_equal(short_one.start_ns, 0);
    assert_int_equal(short_one.end_ns, 5000);
    struct sim_placement long_one = place(*state, 5000, 1000, 100, 1000); /* 5 waves before, 5 after */
    assert_int_equal(long_one.start_ns, 5000);
    assert_int_equal(long_one.end_ns, 16000);
}

static void test_unequal_blocks(void **state)
{
    struct sim_work work = {
        .blocks = 1000, .wave_blocks = 100, .block_ns = 10000, .imbalance = 0.5, .seed = 3};
    struct sim_placement p, again;
    assert_true(sim_timeline_place(*state, 0, &work, &p));
    double ideal = p.block_ns_total / 100;
    assert_true(p.block_ns_total > 1000 * 9000. && p.block_ns_total < 1000 * 11000.);
    assert_true((double)(p.end_ns - p.start_ns) >= ideal);
    assert_true((double)(p.end_ns - p.start_ns) <= ideal + 15000 + 10); /* at most one block more */
    struct sim_timeline *other = sim_timeline_new();
    assert_true(sim_timeline_place(other, 0, &work, &again));
    assert_memory_equal(&p, &again, sizeof p);
    sim_timeline_free(other);
}

/* For random launches, the device's load never exceeds the whole, and no launch starts before it is ready. */
static void test_never_above_the_whole(void **state)
{
    struct sim_timeline *t = *state;
    uint64_t now = 0, starts[2000];
    srand(12345);
    for (size_t i = 0; i < 2000; i++) {
        uint64_t wave = (uint64_t)(rand() % 2000 + 1), ready = now + (uint64_t)(rand() % 5000);
        struct sim_work work = {.ready_ns = ready,
                                .blocks = (uint64_t)(rand() % 6000 + 1),
                                .wave_blocks = wave,
                                .block_ns = (uint64_t)(rand() % 900 + 10)};
        struct sim_placement p;
        assert_true(sim_timeline_place(t, now, &work, &p));
        assert_true(p.start_ns >= ready);
        assert_true(p.end_ns - p.start_ns >= (work.blocks + wave - 1) / wave * work.block_ns);
        starts[i] = p.start_ns;
        if (i % 4 == 0)
            now += (uint64_t)(rand() % 3000);
        for (size_t k = i > 20 ? i - 20 : 0; k <= i; k++)
            assert_true(starts[k] < now || sim_timeline_share(t, starts[k]) <= 1 + 1e-9);
    }
}

static double block_time(const struct sim_timeline *t, uint64_t *ret_first_ns, uint64_t *ret_last_ns)
{
    size_t n = 0;
    double sum = 0;
    const struct sim_stretch *s = sim_timeline_stretches(t, &n);
    *ret_first_ns = *ret_last_ns = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(s[i].start_ns < s[i].end_ns && (!i || s[i].start_ns >= s[i - 1].end_ns));
        sum += s[i].blocks * (double)(s[i].end_ns - s[i].start_ns);
        *ret_last_ns = s[i].end_ns;
        if (s[i].blocks > 0 && !*ret_first_ns)
            *ret_first_ns = s[i].start_ns;
    }
    return sum;
}

static void assert_stretch(const struct sim_timeline *t, size_t at, uint64_t start_ns, uint64_t end_ns,
                           unsigned blocks, bool waiting)
{
    size_t n = 0;
    const struct sim_stretch *s = sim_timeline_stretches(t, &n);
    assert_true(at < n);
    assert_int_equal(s[at].start_ns, start_ns);
    assert_int_equal(s[at].end_ns, end_ns);
    assert_true(s[at].blocks == blocks);
    assert_int_equal(s[at].waiting, waiting);
}

/* Stretches are waves, of which the last one does not wait; time without room comes first. */
static void test_what_a_launch_holds(void **state)
{
    size_t n;
    place(*state, 1000, 350, 100, 1000);
    assert_stretch(*state, 0, 1000, 4000, 100, true);
    assert_stretch(*state, 1, 4000, 5000, 50, false);
    sim_timeline_stretches(*state, &n);
    assert_int_equal(n, 2);
    place(*state, 2000, 120, 100, 1000);
    assert_stretch(*state, 0, 2000, 4000, 0, true);
    assert_stretch(*state, 1, 4000, 5000, 50, true);
    assert_stretch(*state, 2, 5000, 6000, 70, false);
    place(*state, 7000, 100, 100, 1000);
    assert_stretch(*state, 0, 7000, 8000, 100, false);
}

static void test_unequal_blocks_end_one_by_one(void **state)
{
    struct sim_work work = {
        .ready_ns = 5, .blocks = 1000, .wave_blocks = 100, .block_ns = 10000, .imbalance = 0.5, .seed = 3};
    struct sim_placement p;
    size_t n;
    assert_true(sim_timeline_place(*state, 0, &work, &p));
    const struct sim_stretch *s = sim_timeline_stretches(*state, &n);
    assert_true(n > 10 && s[0].waiting && s[0].blocks > 99 && s[0].blocks < 101);
    for (size_t i = 1; i < n; i++)
        assert_true(!s[i].waiting && s[i].blocks <= s[i - 1].blocks && s[i].start_ns == s[i - 1].end_ns);
    assert_true(s[n - 1].blocks < 20);
}

/* The first wave starts over the ramp, the last one ends over it, and all blocks last as long as without a
 * ramp. */
static void test_a_ramp_rises_and_falls(void **state)
{
    struct sim_work work = {
        .ready_ns = 5, .blocks = 300, .wave_blocks = 100, .block_ns = 10000, .ramp_ns = 4000};
    struct sim_placement p;
    size_t n, top = 0;
    uint64_t first, last;
    assert_true(sim_timeline_place(*state, 0, &work, &p));
    assert_in_range(p.end_ns - p.start_ns, 33900, 34000);
    assert_true(fabs(p.block_ns_total - 300 * 10000.) < 1e-6);
    assert_true(fabs(block_time(*state, &first, &last) - p.block_ns_total) < 1);
    const struct sim_stretch *s = sim_timeline_stretches(*state, &n);
    while (top + 1 < n && s[top + 1].blocks > s[top].blocks + 1e-6)
        top++;
    assert_int_equal(top, 8);
    assert_true(fabs(s[top].blocks - 100) < 1 && s[top].waiting && s[0].waiting && s[0].blocks < 10);
    assert_in_range(s[top].start_ns - p.start_ns, 3900, 4100);
    for (size_t i = top + 1; i < n; i++)
        assert_true(s[i].blocks < s[i - 1].blocks + 1e-6 && !s[i].waiting);
    assert_true(s[n - 1].blocks < 10);
    assert_in_range(s[top + 1].start_ns - p.start_ns, 23900, 24100); /* start of the last block */
}

/* For random launches, the stretches sum to all of the blocks' time, within the device's capacity. */
static void test_stretches_are_all_of_it(void **state)
{
    struct sim_timeline *t = *state;
    uint64_t now = 1, first, last;
    srand(54321);
    for (size_t i = 0; i < 2000; i++) {
        struct sim_work work = {.ready_ns = now + (uint64_t)(rand() % 5000),
                                .blocks = (uint64_t)(rand() % 6000 + 1),
                                .wave_blocks = (uint64_t)(rand() % 2000 + 1),
                                .block_ns = (uint64_t)(rand() % 900 + 10),
                                .imbalance = i % 3 ? 0 : 0.3,
                                .ramp_ns = i % 5 ? 0 : (uint64_t)(rand() % 2000),
                                .seed = i};
        struct sim_placement p;
        size_t n;
        assert_true(sim_timeline_place(t, now, &work, &p));
        double got = block_time(t, &first, &last);
        assert_true(got >= p.block_ns_total * (1 - 1e-9) && got <= p.block_ns_total * (1 + 1e-9));
        assert_int_equal(first, p.start_ns);
        assert_int_equal(last, p.end_ns);
        const struct sim_stretch *s = sim_timeline_stretches(t, &n);
        for (size_t k = 0; k < n && work.imbalance <= 0 && !work.ramp_ns; k++)
            assert_true(s[k].blocks <= (double)work.wave_blocks);
        now += i % 4 ? 0 : (uint64_t)(rand() % 3000);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_waves),
        TEST(test_the_tail_leaves_room),
        TEST(test_small_ones_run_side_by_side),
        TEST(test_a_gap_before_what_is_planned),
        TEST(test_unequal_blocks),
        TEST(test_never_above_the_whole),
        TEST(test_what_a_launch_holds),
        TEST(test_unequal_blocks_end_one_by_one),
        TEST(test_a_ramp_rises_and_falls),
        TEST(test_stretches_are_all_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
