/* The sampler on a fake machine with stores in memory: when the counters are read, and which history gets
 * which results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "daemon/sampler_state.h"
#include "daemon_fake_machine.h"
#include "daemon_fake_store.h"
#include "support/log.h"

#define ROUND_NS  (50 * FAKE_MS)
#define LAUNCH_NS (10 * FAKE_MS)
#define PERIOD_NS (20 * FAKE_MS)
#define HISTORIES 2

/* A history in the daemon, and its device for each GPU. */
struct history {
    struct occ_store *store;
    struct occ_collector *collector;
};

static struct occ_sampler *sampler;
static struct history histories[HISTORIES];

static double periodic_launches(int64_t time_ns)
{
    return time_ns % PERIOD_NS < LAUNCH_NS ? 0.5 : 0;
}

static void make_sampler(enum occ_sampler_mode mode)
{
    const struct occ_sampler_options options = {
        .mode = mode, .interval_ns = FAKE_MS, .machine = &fake.machine};
    assert_int_equal(occ_sampler_new(&options, &sampler, NULL), 0);
    for (uint32_t i = 0; i < HISTORIES; i++)
        assert_int_equal(
            occ_sampler_add_history(sampler, 10 + i, histories[i].store, histories[i].collector, NULL), 0);
}

static int setup(void **state)
{
    const struct occ_collector_options options = {
        .commit_interval_ns = FAKE_SECOND, .max_producers = 4, .max_ring_bytes = 1 << 20};
    (void)state;
    fake_machine_reset();
    fake.occupancy = periodic_launches;
    for (uint32_t i = 0; i < HISTORIES; i++) {
        histories[i].store = fake_store_new();
        assert_int_equal(occ_collector_new(histories[i].store, &options, &histories[i].collector, NULL), 0);
    }
    make_sampler(OCC_SAMPLER_AUTO);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    occ_sampler_free(sampler);
    for (uint32_t i = 0; i < HISTORIES; i++) {
        occ_collector_free(histories[i].collector);
        fake_store_free(histories[i].store);
    }
    fake_machine_remove();
    return 0;
}

/* Launches of these configurations, one after the other. */
static void feed_configs(uint32_t history, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct occ_store_launch row = {
            .start_ns = fake.now_ns - FAKE_SECOND + i, .duration_ns = 1, .config = first + i};
        const struct occ_sampler_launches launches = {
            .history = history, .uuid = fake.gpus[0].uuid, .device = 3, .run = 1, .rows = &row, .n = 1};
        occ_sampler_feed(sampler, &launches);
    }
}

/* A program with more launch configurations than recent_models has room for, each launched in turn. */
static void models_in_use_are_hardly_asked_again(void **state)
{
    enum { N = 70000 };
    (void)state;
    occ_sampler_wake(sampler);
    for (int again = 0; again < 3; again++) {
        feed_configs(10, 1, N);
        occ_gpu_worker_step(sampler->gpus[0].worker); /* empties the inbox */
    }
    assert_in_range(histories[0].store->models, N, N + 2 * N / 10);
    feed_configs(11, 1, 1); /* the same number in another history */
    assert_int_equal(histories[1].store->models, 1);
}

int main(void)
{
    occ_log_set_level(OCC_LOG_ERROR);
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(models_in_use_are_hardly_asked_again),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
