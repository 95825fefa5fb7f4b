/* The worlds that attribution is judged by: their samples' counts must equal the sums over their launches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/attribution_world.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SEED 7

static const struct world_options plain = {.timeline = {.n_configs = 10,
                                                        .streams = 1,
                                                        .shortest_ns = 5e3,
                                                        .longest_ns = 5e6,
                                                        .gap_ns = 2000,
                                                        .duration_spread = 0.1,
                                                        .seconds = 1},
                                           .variation = {.spread = 0.1, .stragglers = 0.05},
                                           .sampling = {.interval_ns = 1e6}};

/* Sums of warp-time and active time over all samples and over all launches, as parts of the GPU's capacity,
 * in ns. */
struct totals {
    double sampled_warps, sampled_active, warps, active;
};

static struct totals total(const struct world_options *options)
{
    struct world *world = world_make(options, SEED);
    struct totals t = {0};
    assert_non_null(world);
    double sms = world->timeline.sms, warps = sms * world->timeline.warps_per_sm;
    for (size_t i = 0; i < world->n_samples; i++) {
        const struct occ_sample *s = &world->samples[i];
        double cycles_per_ns = s->value[OCC_COUNTER_ELAPSED] / (double)(s->end_ns - s->start_ns);
        t.sampled_warps += s->value[OCC_COUNTER_WARPS] / (warps * cycles_per_ns);
        t.sampled_active += s->value[OCC_COUNTER_ACTIVE] / (sms * cycles_per_ns);
    }
    for (size_t i = 0; i < world->n_launches; i++) {
        t.warps += world->launches[i].elapsed * world->launches[i].duration_ns;
        t.active += world->launches[i].active * world->launches[i].duration_ns;
    }
    world_free(world);
    return t;
}

static void assert_close(double a, double b, double part)
{
    if (!(fabs(a - b) <= part * b))
        fail_msg("%g instead of %g", a, b);
}

static void test_samples_count_what_launches_have(void **state)
{
    struct totals t = total(&plain);
    (void)state;
    assert_true(t.warps > 0.05e9);
    assert_close(t.sampled_warps, t.warps, 1e-5);
    assert_close(t.sampled_active, t.active, 1e-5);
}

static void test_a_burst_counts_the_same(void **state)
{
    struct world_options options = plain;
    (void)state;
    options.sampling.burst_at_s = 0.3;
    options.timeline.seconds = 3;
    struct totals t = total(&options);
    assert_close(t.sampled_warps, t.warps, 1e-4);
}

static void test_time_slices_count_the_same(void **state)
{
    struct world_options options = plain;
    (void)state;
    options.timeline.streams = 2;
    options.others.neighbour = WORLD_SLICES;
    struct totals t = total(&options);
    assert_close(t.sampled_warps, t.warps, 1e-5);
    assert_close(t.sampled_active, t.active, 1e-5);
}

static void test_launches_side_by_side_share_active_sms(void **state)
{
    struct world_options options = plain;
    (void)state;
    options.timeline.streams = 3;
    struct totals t = total(&options);
    assert_close(t.sampled_warps, t.warps, 1e-5);
    assert_true(t.sampled_active < 0.95 * t.active);
    assert_true(t.sampled_active <= 1e9);
}

static void test_background_comes_on_top(void **state)
{
    struct world_options options = plain;
    (void)state;
    options.others.constant = 0.1;
    struct totals t = total(&options);
    assert_close(t.sampled_warps - t.warps, 0.1e9, 0.01);
}

static struct physics_profile profile_of(uint32_t grid_blocks, double contention)
{
    const struct physics_kernel k = {.sms = 100,
                                     .warps_per_sm = 64,
                                     .grid_blocks = grid_blocks,
                                     .warps_per_block = 8,
                                     .blocks_per_sm = 4,
                                     .contention = contention};
    struct physics_profile profile;
    uint64_t random = SEED;
    physics_make_profile(&k, &random, &profile);
    return profile;
}

/* Equal blocks all start at once, so the expected values follow from the number of waves. */
static void test_waves(void **state)
{
    (void)state;
    struct physics_profile whole = profile_of(400, 0), half = profile_of(200, 0), one = profile_of(50, 0);
    assert_close(whole.warps[PHYSICS_BINS], 0.5, 1e-9);
    assert_close(whole.active[PHYSICS_BINS], 1, 1e-9);
    assert_close(half.warps[PHYSICS_BINS], 0.25, 1e-9);
    assert_close(half.active[PHYSICS_BINS], 1, 1e-9);
    assert_close(one.active[PHYSICS_BINS], 0.5, 1e-9);
    assert_true(one.active_min == 0 && one.active_max > 0.999999);
    struct physics_profile tail = profile_of(500, 0);
    assert_close(tail.warps[PHYSICS_BINS], (0.5 + 0.125) / 2, 1e-9);
    assert_close(physics_until(tail.warps, 0.5), 0.25, 1e-9);
    struct physics_profile fast_tail = profile_of(500, 1);
    assert_close(fast_tail.warps[PHYSICS_BINS], (0.5 + 0.125 / 4) / 1.25, 1e-9);
}

static void test_a_seed_makes_one_world(void **state)
{
    struct world_options options = plain;
    (void)state;
    options.sampling.noise = 0.01;
    struct world *a = world_make(&options, SEED), *b = world_make(&options, SEED),
                 *c = world_make(&options, SEED + 1);
    assert_int_equal(a->n_launches, b->n_launches);
    assert_int_equal(a->n_samples, b->n_samples);
    for (size_t i = 0; i < a->n_launches; i++)
        assert_true(a->launches[i].elapsed == b->launches[i].elapsed);
    for (size_t i = 0; i < a->n_samples; i++)
        assert_true(a->samples[i].value[OCC_COUNTER_WARPS] == b->samples[i].value[OCC_COUNTER_WARPS]);
    assert_int_not_equal(a->launches[0].end_ns, c->launches[0].end_ns);
    world_free(a);
    world_free(b);
    world_free(c);
}

static void test_launches_of_a_configuration_differ(void **state)
{
    (void)state;
    struct world *world = world_make(&plain, SEED);
    double sum = 0, squares = 0, n = 0;
    for (size_t i = 0; i < world->n_launches; i++)
        if (world->launches[i].config == 3) {
            sum += world->launches[i].elapsed;
            squares += world->launches[i].elapsed * world->launches[i].elapsed;
            n++;
        }
    assert_true(n > 20);
    assert_true(sqrt(squares / n - sum / n * (sum / n)) > 0.01 * sum / n);
    world_free(world);
}

/* Launches that last long have a lower occupancy than short ones. */
static void test_slow_launches_have_fewer_warps(void **state)
{
    struct world_options options = plain;
    double sum[2] = {0}, n[2] = {0}, mean[64] = {0}, launches[64] = {0};
    (void)state;
    options.timeline.longest_ns = 50e3;
    struct world *world = world_make(&options, SEED);
    for (size_t i = 0; i < world->n_launches; i++) {
        mean[world->launches[i].config] += world->launches[i].duration_ns;
        launches[world->launches[i].config]++;
    }
    for (size_t i = 0; i < world->n_launches; i++) {
        const struct world_launch *l = &world->launches[i];
        int slow = l->duration_ns > 1.2 * mean[l->config] / launches[l->config];
        sum[slow] += l->elapsed;
        n[slow]++;
    }
    assert_true(sum[1] / n[1] < 0.9 * sum[0] / n[0]);
    world_free(world);
}

/* Compares the mean occupancy after the change with the mean before it: doubled for some configurations,
 * equal for the others. */
static void test_a_change_doubles_a_third_of_the_configurations(void **state)
{
    struct world_options options = plain;
    double sum[2][64] = {{0}}, n[2][64] = {{0}};
    uint32_t doubled = 0, same = 0;
    (void)state;
    options.timeline.n_configs = 30;
    options.timeline.longest_ns = 1e6;
    options.variation = (struct world_variation){.change_s = 0.5};
    struct world *world = world_make(&options, SEED);
    for (size_t i = 0; i < world->n_launches; i++) {
        const struct world_launch *l = &world->launches[i];
        int after = l->start_ns - WORLD_EPOCH_NS > 500000000;
        sum[after][l->config] += l->elapsed;
        n[after][l->config]++;
    }
    for (uint32_t i = 0; i < 30; i++) {
        double ratio = (sum[1][i] / n[1][i]) / (sum[0][i] / n[0][i]);
        doubled += fabs(ratio - 2) < 0.2;
        same += fabs(ratio - 1) < 0.1;
    }
    assert_int_equal(doubled + same, 30);
    assert_in_range(doubled, 3, 20);
    world_free(world);
}

static void test_lost_records(void **state)
{
    struct world_options options = plain;
    (void)state;
    options.others.lost = 0.3;
    options.timeline.longest_ns = 50e3;
    struct world *world = world_make(&options, SEED);
    double reported = 0;
    for (size_t i = 0; i < world->n_launches; i++)
        reported += world->launches[i].reported;
    assert_true(world->n_launches > 10000);
    assert_true(fabs(reported / (double)world->n_launches - 0.7) < 0.05);
    world_free(world);
}

static void test_recordings(void **state)
{
    static const struct {
        const char *path;
        uint32_t configs, sms;
    } files[] = {{OCC_ATTRIBUTION_RECORDINGS "/a100.timeline", 539, 108},
                 {OCC_ATTRIBUTION_RECORDINGS "/v100.timeline", 193, 80},
                 {OCC_ATTRIBUTION_RECORDINGS "/alexnet.timeline", 33, 108}};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct world_options options = plain;
        options.timeline.recording = files[i].path;
        struct world *world = world_make(&options, SEED);
        assert_non_null(world);
        assert_int_equal(world->timeline.n_configs, files[i].configs);
        assert_int_equal(world->timeline.sms, files[i].sms);
        assert_true(world->n_launches > 1000);
        world_free(world);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_count_what_launches_have),
        cmocka_unit_test(test_a_burst_counts_the_same),
        cmocka_unit_test(test_time_slices_count_the_same),
        cmocka_unit_test(test_launches_side_by_side_share_active_sms),
        cmocka_unit_test(test_background_comes_on_top),
        cmocka_unit_test(test_waves),
        cmocka_unit_test(test_a_seed_makes_one_world),
        cmocka_unit_test(test_launches_of_a_configuration_differ),
        cmocka_unit_test(test_slow_launches_have_fewer_warps),
        cmocka_unit_test(test_a_change_doubles_a_third_of_the_configurations),
        cmocka_unit_test(test_lost_records),
        cmocka_unit_test(test_recordings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
