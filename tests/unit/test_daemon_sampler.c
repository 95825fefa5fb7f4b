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
#include "ring_samples.h"
#include "support/log.h"

#define ROUND_NS  (50 * FAKE_MS)
#define LAUNCH_NS (10 * FAKE_MS)
#define PERIOD_NS (20 * FAKE_MS)
#define HISTORIES 2

#define FIRST  10 /* number of the first history */
#define SECOND 11
#define DEVICE 3 /* of GPUs in both, as launches name them */
#define RUN    7

/* A history in the daemon, and a program whose launches go there. */
struct history {
    struct occ_store *store;
    struct occ_collector *collector;
    struct occ_ring_producer ring;
    bool has_program;
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
            occ_sampler_add_history(sampler, FIRST + i, histories[i].store, histories[i].collector, NULL), 0);
}

static int setup(void **state)
{
    const struct occ_collector_options options = {
        .commit_interval_ns = FAKE_SECOND, .max_producers = 4, .max_ring_bytes = 1 << 20};
    (void)state;
    fake_machine_reset();
    fake.occupancy = periodic_launches;
    memset(histories, 0, sizeof histories);
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
        if (histories[i].has_program)
            occ_ring_destroy(&histories[i].ring);
        occ_collector_free(histories[i].collector);
        fake_store_free(histories[i].store);
    }
    fake_machine_remove();
    return 0;
}

/* A program comes that uses this GPU. */
static void start_program(uint32_t history, unsigned gpu)
{
    struct history *h = &histories[history - FIRST];
    struct occ_record_device device = {.record.type = OCC_RECORD_DEVICE, .cc_major = 9, .sm_count = 100};
    static const char session[] = "session\0x";
    struct occ_producer *producer = NULL;
    memcpy(device.uuid, fake.gpus[gpu].uuid, sizeof device.uuid);
    memcpy(device.name, "a device", 9);
    assert_int_equal(occ_ring_create(&h->ring, 256, 64u << 10), 0);
    assert_true(log_process(&h->ring, 1, session, sizeof session) &&
                occ_ring_log(&h->ring, &device.record, sizeof device, NULL, 0));
    struct occ_offer offer = {.fd = dup(h->ring.fd), .peer = {.pid = 42, .uid = 1000}};
    memcpy(offer.uuid, h->ring.header->uuid, sizeof offer.uuid);
    assert_int_equal(occ_collector_offer(h->collector, &offer, fake.monotonic_ns, &producer, NULL), 0);
    occ_collector_poll(h->collector, fake.monotonic_ns);
    h->has_program = true;
    occ_sampler_wake(sampler);
}

static void end_program(uint32_t history)
{
    struct history *h = &histories[history - FIRST];
    occ_ring_close(&h->ring);
    for (int i = 0; i < 2; i++)
        occ_collector_poll(h->collector, fake.monotonic_ns += FAKE_SECOND);
    occ_ring_destroy(&h->ring);
    h->has_program = false;
}

/* A round of all threads, and of the daemon's loop. */
static void step(bool has_programs)
{
    fake_machine_advance(ROUND_NS);
    for (size_t i = 0; i < sampler->n_gpus; i++)
        (void)occ_gpu_worker_step(sampler->gpus[i].worker);
    occ_sampler_poll(sampler, has_programs);
}

static void run_for(int64_t ns, bool has_programs)
{
    for (int64_t until_ns = fake.monotonic_ns + ns; fake.monotonic_ns < until_ns;)
        step(has_programs);
}

static void feed_between(uint32_t history, unsigned gpu, int64_t from_ns, int64_t to_ns)
{
    for (int64_t at_ns = (from_ns + PERIOD_NS - 1) / PERIOD_NS * PERIOD_NS; at_ns < to_ns;
         at_ns += PERIOD_NS) {
        const struct occ_store_launch row = {.start_ns = at_ns, .duration_ns = LAUNCH_NS, .config = 200};
        const struct occ_sampler_launches launches = {.history = history,
                                                      .uuid = fake.gpus[gpu].uuid,
                                                      .device = DEVICE,
                                                      .run = RUN,
                                                      .rows = &row,
                                                      .n = 1};
        occ_sampler_feed(sampler, &launches);
    }
}

/* Launches of this history's program on the GPU; each second those of the second before are fed. */
static void run_launches(uint32_t history, unsigned gpu, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        int64_t from_ns = fake.now_ns;
        run_for(FAKE_SECOND, true);
        feed_between(history, gpu, from_ns, fake.now_ns - LAUNCH_NS);
    }
}

static void store_all(void)
{
    for (uint32_t i = 0; i < HISTORIES; i++)
        assert_int_equal(occ_sampler_store(sampler, FIRST + i, NULL), 0);
}

/* Launches of these configurations, one after the other. */
static void feed_configs(uint32_t history, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct occ_store_launch row = {
            .start_ns = fake.now_ns - FAKE_SECOND + i, .duration_ns = 1, .config = first + i};
        const struct occ_sampler_launches launches = {.history = history,
                                                      .uuid = fake.gpus[0].uuid,
                                                      .device = DEVICE,
                                                      .run = RUN,
                                                      .rows = &row,
                                                      .n = 1};
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
        feed_configs(FIRST, 1, N);
        occ_gpu_worker_step(sampler->gpus[0].worker); /* empties the inbox */
    }
    assert_in_range(histories[0].store->models, N, N + 2 * N / 10);
    feed_configs(SECOND, 1, 1); /* the same number in another history */
    assert_int_equal(histories[1].store->models, 1);
}

/* The file of a history was replaced: ids of launches that wait in a worker are those of the old file. */
static void a_replaced_history_gets_no_values_of_the_old_file(void **state)
{
    (void)state;
    start_program(FIRST, 0);
    start_program(SECOND, 1);
    run_launches(FIRST, 0, 2);
    uint64_t models = histories[0].store->models;
    occ_sampler_restart_history(sampler, FIRST);
    feed_configs(FIRST, 201, 1);
    run_for(20 * FAKE_SECOND, false);
    store_all();
    assert_in_range(histories[0].store->n_measured, 0, 1); /* of 201 */
    assert_int_equal(histories[0].store->n_values, 0);
    assert_true(histories[0].store->n_samples > 0); /* it is still the first one, which gets all samples */
    feed_configs(FIRST, 200, 1);
    assert_int_equal(histories[0].store->models,
                     models + 2); /* the new file's 200 is another configuration */
}

int main(void)
{
    occ_log_set_level(OCC_LOG_ERROR);
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(models_in_use_are_hardly_asked_again),
        T(a_replaced_history_gets_no_values_of_the_old_file),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
