/* The sampler on a fake machine with stores in memory: when the counters are read, and which history gets
 * which results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include <stdlib.h>
#include <string.h>

#include "daemon/sampling/sampler_state.h"
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
#define DEVICE 3 /* id of GPUs in the launches of both histories */
#define RUN    7

/* A history in the daemon, and a program that writes to it. */
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

/* Adds a program that uses this GPU. */
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
        occ_collector_poll(h->collector, fake.monotonic_ns + (i + 1) * FAKE_SECOND);
    occ_ring_destroy(&h->ring);
    h->has_program = false;
}

/* Runs a round of all threads and of the daemon's loop. */
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

/* Runs launches of this history's program on the GPU; each second feeds the launches of the previous second.
 */
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

/* Feeds one launch of each of `n` configurations, in order. */
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

/* A program has more launch configurations than recent_models has room for, and launches each in turn. */
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

/* A table of models is reused when both tables are full: no configuration of its old content remains. */
static void a_forgotten_configuration_is_no_other(void **state)
{
    enum { ROOM = 1 << 16 }; /* of each table */
    (void)state;
    occ_sampler_wake(sampler);
    feed_configs(FIRST, 1, 2 * ROOM + 1);
    assert_int_equal(histories[0].store->models, 2 * ROOM + 1);
    feed_configs(FIRST, 1, 1); /* its old place now has the last configuration */
    assert_int_equal(histories[0].store->models, 2 * ROOM + 2);
    assert_int_equal(sampler->recent_models.keys[1].shape,
                     occ_gpu_results_config(sampler->histories[0]->tag, 1));
}

/* The file of a history was replaced: launches that wait in a worker have ids of the old file. */
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
    assert_in_range(histories[0].store->n_measured, 0, 1); /* launches of 201 */
    assert_int_equal(histories[0].store->n_values, 0);
    assert_true(histories[0].store->n_samples > 0); /* still the first history, which gets all samples */
    feed_configs(FIRST, 200, 1);
    assert_int_equal(histories[0].store->models,
                     models + 2); /* the new file's 200 is another configuration */
}

/* Bounds and expected values of grids that fill a half wave, one wave, and one and a half. */
static void the_attribution_gets_the_model(void **state)
{
    static const struct occ_attribution_key expected[] = {
        {.bound = 0.5, .expected = 0.5, .active = 1, .blocks = 1, .grid = 100},
        {.bound = 1, .expected = 1, .active = 2, .blocks = 2, .grid = 200},
        {.bound = 1, .expected = 0.75, .active = 3, .blocks = 1.5, .grid = 300}};
    (void)state;
    occ_sampler_wake(sampler);
    for (uint32_t i = 0; i < 3; i++) {
        feed_configs(FIRST, 100 + 100 * i, 1);
        const struct occ_attribution_key *key = &sampler->recent_models.keys[i];
        assert_true(key->bound == expected[i].bound && key->expected == expected[i].expected);
        assert_true(key->active == expected[i].active && key->blocks == expected[i].blocks);
        assert_true(key->grid == expected[i].grid && key->graph_node == 0);
    }
}

/* ---- results of several histories ---- */

/* The first history gets the samples of all GPUs. Another history gets its own launches' values, and samples
 * while its programs have the GPU alone. */
static void results_go_to_the_history_of_the_launches(void **state)
{
    const struct occ_store *first = histories[0].store, *second = histories[1].store;
    (void)state;
    start_program(SECOND, 0);
    run_launches(SECOND, 0, 3);
    run_for(10 * FAKE_SECOND, true);
    assert_true(occ_sampler_has_results(sampler, FIRST) && occ_sampler_has_results(sampler, SECOND));
    store_all();
    assert_false(occ_sampler_has_results(sampler, FIRST) || occ_sampler_has_results(sampler, SECOND));
    assert_true(second->n_values > 100 && second->n_measured > 0);
    assert_int_equal(second->measured_run, RUN);
    assert_int_equal(second->measured_config, 200);
    assert_int_equal(second->values_device, DEVICE);
    assert_int_equal(second->samples_device, DEVICE);
    assert_int_equal(second->seconds_device, DEVICE);
    assert_true(second->n_samples > 5000 && second->n_seconds > 5);
    assert_int_equal(first->n_values + first->n_measured, 0);
    assert_true(first->n_samples > 5000);
    assert_int_equal(first->n_devices, 1); /* added by the sampler */
    assert_memory_equal(first->devices[0].uuid, fake.gpus[0].uuid, 16);
    assert_int_equal(first->devices[0].limits.cc, 90);
    assert_int_equal(first->devices[0].limits.max_threads_per_sm, 2048);
    assert_int_equal(first->samples_device, 1);
}

/* Each of two equal GPUs has its own energy, in each history that has used the GPU; an unused GPU has none in
 * a history. Without programs nothing is read. */
static void gpus_have_their_energy(void **state)
{
    const struct occ_store *first = histories[0].store, *second = histories[1].store;
    struct occ_gpu_status status;
    (void)state;
    fake.watts[0] = 300;
    fake.watts[1] = 700;
    start_program(FIRST, 0);
    start_program(SECOND, 1);
    run_launches(SECOND, 1, 3);
    run_for(6 * FAKE_SECOND, true);
    store_all();
    assert_in_range(second->energy_ns[DEVICE], 8 * FAKE_SECOND, 10 * FAKE_SECOND);
    assert_in_range(second->energy_mj[DEVICE] * 1000 / (second->energy_ns[DEVICE] / FAKE_MS), 699000, 701000);
    assert_int_equal(first->energy_mj[DEVICE] + second->energy_mj[1] + second->energy_mj[2], 0);
    run_launches(FIRST, 0, 3);
    store_all();
    assert_in_range(first->energy_mj[DEVICE] * 1000 / (first->energy_ns[DEVICE] / FAKE_MS), 299000, 301000);
    assert_true(occ_sampler_find_status(sampler, fake.gpus[1].uuid, &status));
    assert_in_range((int64_t)status.energy_j, 700 * 8, 700 * 13);
    run_for(12 * FAKE_SECOND, false);
    unsigned reads = fake.energy_reads;
    run_for(60 * FAKE_SECOND, false);
    assert_int_equal(fake.energy_reads, reads);
    assert_in_range(reads, 30, 60); /* about once a second and GPU */
}

static void a_gpu_without_a_counter_of_energy_has_none(void **state)
{
    struct occ_gpu_status status;
    (void)state;
    fake.watts[0] = 300;
    start_program(SECOND, 1);
    run_launches(SECOND, 1, 3);
    run_for(6 * FAKE_SECOND, true);
    store_all();
    assert_int_equal(histories[1].store->energy_ns[DEVICE], 0);
    assert_true(occ_sampler_find_status(sampler, fake.gpus[1].uuid, &status));
    assert_true(isnan(status.energy_j));
}

/* Samples show the activity of other users. If programs of several histories use a GPU, only the first
 * history gets its samples, also shortly after, when samples may still be of that time. */
static void samples_of_a_shared_gpu_are_the_first_historys(void **state)
{
    const struct occ_store *first = histories[0].store, *second = histories[1].store;
    (void)state;
    start_program(FIRST, 0);
    start_program(SECOND, 0);
    run_launches(SECOND, 0, 3);
    run_for(6 * FAKE_SECOND, true);
    store_all();
    assert_true(first->n_samples > 5000);
    assert_true(second->n_values > 100 && second->n_seconds > 0);
    assert_int_equal(second->n_samples, 0);
    end_program(FIRST);
    run_launches(SECOND, 0, 1);
    store_all();
    assert_int_equal(second->n_samples, 0);
    run_launches(SECOND, 0, 4);
    store_all();
    assert_in_range(second->n_samples, 1000, 5000);
}

/* A program of the first history has the GPU alone: the second history gets no results. */
static void a_history_without_programs_gets_nothing(void **state)
{
    const struct occ_store *second = histories[1].store;
    (void)state;
    start_program(FIRST, 0);
    start_program(SECOND, 1);
    feed_configs(SECOND, 1, 1); /* but it has used the GPU before */
    run_launches(FIRST, 0, 3);
    run_for(10 * FAKE_SECOND, true);
    store_all();
    assert_true(histories[0].store->n_values > 100);
    assert_int_equal(second->n_samples, 0);
    assert_int_equal(second->n_values, 0);
}

static void a_removed_history_gets_nothing(void **state)
{
    (void)state;
    start_program(SECOND, 0);
    run_launches(SECOND, 0, 2);
    occ_sampler_remove_history(sampler, SECOND);
    occ_sampler_remove_history(sampler, 99);
    feed_between(SECOND, 0, fake.now_ns - FAKE_SECOND, fake.now_ns);
    run_for(10 * FAKE_SECOND, true);
    assert_int_equal(occ_sampler_store(sampler, SECOND, NULL), 0);
    assert_int_equal(histories[1].store->n_measured, 0);
    assert_false(occ_sampler_has_results(sampler, SECOND));
    assert_true(occ_sampler_has_results(sampler, FIRST));
}

/* A commit must not wait for measured values: values without room in the store are counted. */
static void a_full_store_is_no_failure(void **state)
{
    struct occ_gpu_status status;
    (void)state;
    start_program(FIRST, 0);
    run_launches(FIRST, 0, 2);
    histories[0].store->fail_samples = OCC_E_FULL;
    assert_int_equal(occ_sampler_store(sampler, FIRST, NULL), 0);
    assert_true(occ_sampler_find_status(sampler, fake.gpus[0].uuid, &status));
    assert_true(status.dropped >= 1000);
    run_launches(FIRST, 0, 1);
    histories[0].store->fail_samples = OCC_E_IO;
    assert_int_equal(occ_sampler_store(sampler, FIRST, NULL), OCC_E_IO);
}

/* ---- when counters are read ---- */

static enum occ_source_state state_of(unsigned gpu)
{
    struct occ_gpu_status status;
    assert_true(occ_sampler_find_status(sampler, fake.gpus[gpu].uuid, &status));
    return status.state;
}

/* A program has come, but has not named its GPU yet. */
static void counters_are_read_from_the_first_program_on(void **state)
{
    (void)state;
    occ_sampler_discover(sampler);
    run_for(FAKE_SECOND, false);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].begins, 0);
    assert_true(occ_sampler_is_busy(sampler) == false);
    occ_sampler_wake(sampler);
    step(false);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].begins, 2);
    assert_true(occ_sampler_is_busy(sampler));
    run_for(9 * FAKE_SECOND, false);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].closes, 0);
    run_for(FAKE_SECOND, false);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].closes, 2);
    assert_int_equal(state_of(0), OCC_SOURCE_IDLE);
    assert_int_equal(fake.searches, 1);
    run_for(10 * FAKE_SECOND, false);
    assert_false(occ_sampler_is_busy(sampler));
}

/* The record of a kernel that runs for minutes comes when the kernel ends. */
static void an_active_gpu_stays_wanted_while_programs_report(void **state)
{
    (void)state;
    start_program(FIRST, 0);
    run_launches(FIRST, 0, 1);
    run_for(60 * FAKE_SECOND, true);
    assert_int_equal(state_of(0), OCC_SOURCE_OK);
    assert_int_equal(state_of(1), OCC_SOURCE_IDLE); /* as active, but unused by programs */
    store_all();
    assert_int_equal(histories[1].store->n_devices, 0); /* a history without this GPU */
    fake.occupancy = NULL;
    run_for(9 * FAKE_SECOND, true);
    assert_int_equal(state_of(0), OCC_SOURCE_OK);
    run_for(11 * FAKE_SECOND, true);
    assert_int_equal(state_of(0), OCC_SOURCE_IDLE);
    fake.occupancy = periodic_launches;
    run_launches(FIRST, 0, 1);
    run_for(21 * FAKE_SECOND, false);
    assert_int_equal(state_of(0), OCC_SOURCE_IDLE); /* no program reports any more */
}

static void a_pause_gives_the_counters_back(void **state)
{
    (void)state;
    occ_sampler_wake(sampler);
    step(true);
    assert_int_equal(occ_sampler_paused_ns(sampler), 0);
    occ_sampler_pause(sampler, 3 * FAKE_SECOND);
    assert_int_equal(occ_sampler_paused_ns(sampler), 3 * FAKE_SECOND);
    step(true);
    assert_int_equal(state_of(0), OCC_SOURCE_PAUSED);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].closes, 2);
    occ_sampler_wake(sampler); /* a new program does not end the pause */
    run_for(2 * FAKE_SECOND, true);
    assert_int_equal(state_of(1), OCC_SOURCE_PAUSED);
    run_for(FAKE_SECOND, true);
    assert_int_equal(state_of(0), OCC_SOURCE_OK);
    occ_sampler_pause(sampler, 3600 * FAKE_SECOND);
    step(true);
    assert_int_equal(state_of(0), OCC_SOURCE_PAUSED);
    occ_sampler_pause(sampler, 0);
    step(true);
    assert_int_equal(occ_sampler_paused_ns(sampler), 0);
    assert_int_equal(state_of(0), OCC_SOURCE_OK);
}

static const char *reason_of(unsigned gpu)
{
    static struct occ_gpu_status status;
    assert_false(occ_sampler_find_status(sampler, fake.gpus[gpu].uuid, &status));
    assert_string_equal(status.source, "none");
    assert_int_not_equal(status.state, OCC_SOURCE_OK);
    return status.reason;
}

/* A driver may be loaded later: the daemon searches again when a program comes, at most every 30 s. */
static void gpus_are_looked_for_again(void **state)
{
    struct occ_gpu_status all[4];
    (void)state;
    assert_string_equal(reason_of(0), "no program has come yet");
    fake.n_gpus = 0;
    occ_sampler_wake(sampler);
    assert_string_equal(reason_of(0), "the daemon does not see this GPU");
    fake_machine_advance(30 * FAKE_SECOND);
    occ_sampler_wake(sampler);
    assert_int_equal(fake.searches, 1);
    fake_machine_advance(1);
    fake.n_gpus = 1;
    occ_sampler_wake(sampler);
    assert_int_equal(fake.searches, 2);
    assert_int_equal(occ_sampler_get_status(sampler, all, 4), 1);
    assert_memory_equal(all[0].uuid, fake.gpus[0].uuid, 16);
    assert_string_equal(reason_of(1), "the daemon does not see this GPU");
    fake_machine_advance(3600 * FAKE_SECOND);
    occ_sampler_wake(sampler);
    assert_int_equal(fake.searches, 2);
}

static void counters_can_be_switched_off(void **state)
{
    (void)state;
    occ_sampler_free(sampler);
    make_sampler(OCC_SAMPLER_NONE);
    occ_sampler_discover(sampler);
    occ_sampler_wake(sampler);
    occ_sampler_await(sampler, INT64_MAX / 2);
    feed_between(FIRST, 0, fake.now_ns - FAKE_SECOND, fake.now_ns);
    assert_int_equal(fake.searches, 0);
    assert_string_equal(reason_of(0), "hardware counters are switched off");
    assert_false(occ_sampler_is_busy(sampler));
}

static void a_driver_that_does_not_start_has_a_reason(void **state)
{
    (void)state;
    fake.gpu_state = OCC_SOURCE_NO_DRIVER;
    fake.n_gpus = 0;
    occ_sampler_wake(sampler);
    assert_string_equal(reason_of(0), occ_source_state_text(OCC_SOURCE_NO_DRIVER));
}

/* A launch with a run number beyond 32 bits counts as dropped: the attribution's tags have no room for it. */
static void runs_beyond_a_tag_are_counted(void **state)
{
    struct occ_gpu_status status;
    const struct occ_store_launch row = {
        .start_ns = fake.now_ns - FAKE_SECOND, .duration_ns = 1, .config = 1};
    struct occ_sampler_launches launches = {.history = FIRST,
                                            .uuid = fake.gpus[0].uuid,
                                            .device = DEVICE,
                                            .run = UINT32_MAX,
                                            .rows = &row,
                                            .n = 1};
    (void)state;
    occ_sampler_wake(sampler);
    occ_sampler_feed(sampler, &launches);
    launches.run++;
    occ_sampler_feed(sampler, &launches);
    assert_true(occ_sampler_find_status(sampler, fake.gpus[0].uuid, &status));
    assert_int_equal(status.dropped, 1);
    assert_int_equal(status.launches, 1);
}

static double quick_launches(int64_t time_ns)
{
    return time_ns % (PERIOD_NS / 2) < LAUNCH_NS / 2 ? 0.5 : 0;
}

/* Feeds more rows than go to the worker at once, all with their own times and correlation ids. */
static void launches_of_many_rows_keep_their_times(void **state)
{
    enum { N = 300 };
    static struct occ_store_launch rows[N];
    const struct occ_store *first = histories[0].store;
    (void)state;
    fake.occupancy = quick_launches;
    start_program(FIRST, 0);
    run_for(3 * FAKE_SECOND + FAKE_SECOND / 2, true);
    int64_t from_ns = (fake.now_ns - 3 * FAKE_SECOND - FAKE_SECOND / 4) / PERIOD_NS * PERIOD_NS;
    for (uint32_t i = 0; i < N; i++)
        rows[i] = (struct occ_store_launch){.start_ns = from_ns + i * PERIOD_NS / 2,
                                            .duration_ns = LAUNCH_NS / 2,
                                            .config = 200,
                                            .correlation = i};
    occ_sampler_feed(
        sampler,
        &(struct occ_sampler_launches){
            .history = FIRST, .uuid = fake.gpus[0].uuid, .device = DEVICE, .run = RUN, .rows = rows, .n = N});
    run_for(10 * FAKE_SECOND, true);
    store_all();
    assert_int_equal(first->n_values, N);
    assert_int_equal(first->last_value.start_ns, from_ns + first->last_value.correlation * PERIOD_NS / 2);
    assert_true(first->last_value.correlation > N - 10);
    assert_int_equal(first->last_value.config, 200);
    assert_in_range(first->last_value.elapsed * 100, 45, 55);
}

/* Returns the occupancy of a timeline where a kernel with 0.5 alternates with a fill with 0.9. */
static double kernels_and_fills(int64_t time_ns)
{
    return time_ns % PERIOD_NS < LAUNCH_NS ? 0.5 : 0.9;
}

static void feed_fills(int64_t from_ns, int64_t to_ns)
{
    for (int64_t at_ns = from_ns / PERIOD_NS * PERIOD_NS + LAUNCH_NS; at_ns < to_ns; at_ns += PERIOD_NS) {
        const struct occ_store_launch row = {.start_ns = at_ns,
                                             .duration_ns = PERIOD_NS - LAUNCH_NS,
                                             .config = occ_producer_memory(OCC_KERNEL_FILL, 3)};
        occ_sampler_feed(sampler, &(struct occ_sampler_launches){.history = FIRST,
                                                                 .uuid = fake.gpus[0].uuid,
                                                                 .device = DEVICE,
                                                                 .run = RUN,
                                                                 .rows = &row,
                                                                 .n = 1,
                                                                 .are_memory = true});
    }
}

static void run_beside_fills(bool with_records)
{
    fake.occupancy = kernels_and_fills;
    start_program(FIRST, 0);
    for (int i = 0; i < 4; i++) {
        int64_t from_ns = fake.now_ns;
        run_for(FAKE_SECOND, true);
        feed_between(FIRST, 0, from_ns, fake.now_ns - LAUNCH_NS);
        if (with_records)
            feed_fills(from_ns, fake.now_ns);
    }
    run_for(10 * FAKE_SECOND, true);
    store_all();
}

/* A fill without a record counts as other work on the GPU. */
static void fills_without_records_withhold_values(void **state)
{
    (void)state;
    run_beside_fills(false);
    assert_int_equal(histories[0].store->n_values, 0);
}

static void fills_with_records_leave_the_kernels_their_values(void **state)
{
    const struct occ_store *first = histories[0].store;
    struct occ_gpu_status status;
    (void)state;
    run_beside_fills(true);
    assert_true(first->n_values > 150);
    assert_int_equal(first->last_value.config, 200);
    assert_in_range(first->last_value.elapsed * 1000, 495, 505);
    assert_int_equal(first->measured_config, 200); /* fills are not stored */
    assert_true(occ_sampler_find_status(sampler, fake.gpus[0].uuid, &status));
    assert_true(status.launches >= first->n_values && status.launches <= 4 * FAKE_SECOND / PERIOD_NS);
    assert_int_equal(status.dropped, 0);
}

int main(void)
{
    occ_log_set_level(OCC_LOG_ERROR);
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(models_in_use_are_hardly_asked_again),
        T(a_forgotten_configuration_is_no_other),
        T(the_attribution_gets_the_model),
        T(a_replaced_history_gets_no_values_of_the_old_file),
        T(results_go_to_the_history_of_the_launches),
        T(gpus_have_their_energy),
        T(a_gpu_without_a_counter_of_energy_has_none),
        T(samples_of_a_shared_gpu_are_the_first_historys),
        T(a_history_without_programs_gets_nothing),
        T(a_removed_history_gets_nothing),
        T(a_full_store_is_no_failure),
        T(counters_are_read_from_the_first_program_on),
        T(an_active_gpu_stays_wanted_while_programs_report),
        T(a_pause_gives_the_counters_back),
        T(gpus_are_looked_for_again),
        T(counters_can_be_switched_off),
        T(a_driver_that_does_not_start_has_a_reason),
        T(runs_beyond_a_tag_are_counted),
        T(launches_of_many_rows_keep_their_times),
        T(fills_without_records_withhold_values),
        T(fills_with_records_leave_the_kernels_their_values),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
