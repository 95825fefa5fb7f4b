/* daemon/collect/collector.c on rings of this process and a store in memory: exactly once, faults, ends. The
 * test sets the time, so nothing here waits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/collector.h"
#include "daemon_fake_store.h"
#include "ring_samples.h"
#include "store/gaps.h"
#include "support/clock.h"
#include "support/log.h"
#include "support/text.h"

#define SECOND INT64_C(1000000000)

static const struct occ_peer self = {.pid = 4242, .uid = 1000};

struct bench {
    struct occ_store *store;
    struct occ_collector *collector;
    int64_t now_ns;
    int gone; /* number of calls of the hook, and the last owner */
    void *gone_owner;
    size_t appended; /* launches that the hook received */
    size_t fills, copies;
    int committing;
    size_t holes; /* of the program, at the last call of the hook */
    int leveled;
};

static void on_gone(void *owner, void *context)
{
    struct bench *b = context;
    b->gone++;
    b->gone_owner = owner;
}

static struct occ_collector_options options_of(struct bench *b)
{
    return (struct occ_collector_options){
        .commit_interval_ns = SECOND,
        .memory_bytes = 32u << 20,
        .max_producers = 4,
        .max_ring_bytes = 41u << 20,
        .orphan_grace_ns = 10 * SECOND,
        .gone = on_gone,
        .context = b,
    };
}

static void start_collector(struct bench *b)
{
    struct occ_collector_options options = options_of(b);
    assert_int_equal(occ_collector_new(b->store, &options, &b->collector, NULL), 0);
}

static int setup(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    b->store = fake_store_new();
    b->now_ns = 1000 * SECOND;
    start_collector(b);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    occ_collector_free(b->collector);
    fake_store_free(b->store);
    free(b);
    return 0;
}

static void make_ring(struct occ_ring_producer *ring, uint32_t slots)
{
    assert_int_equal(occ_ring_create(ring, slots, 64u << 10), 0);
}

static int offer_as(struct bench *b, const struct occ_ring_producer *ring, const struct occ_peer *peer,
                    void *owner, struct occ_producer **ret)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_offer offer = {.fd = dup(ring->fd), .peer = *peer, .owner = owner};
    memcpy(offer.uuid, ring->header->uuid, sizeof offer.uuid);
    return occ_collector_offer(b->collector, &offer, b->now_ns, ret, &err);
}

static struct occ_producer *offer(struct bench *b, const struct occ_ring_producer *ring)
{
    struct occ_producer *p = NULL;
    assert_int_equal(offer_as(b, ring, &self, b, &p), 0);
    return p;
}

static void push(struct occ_ring_producer *ring, uint64_t n)
{
    struct occ_ring_launch l = sample_launch(n);
    assert_true(occ_ring_push(ring, &l));
}

static void poll_after(struct bench *b, int64_t ns)
{
    b->now_ns += ns;
    occ_collector_poll(b->collector, b->now_ns);
}

/* Checks that each launch 0...n-1 is there once, with all its fields. */
static void assert_exactly(const struct occ_store *store, uint64_t n)
{
    uint8_t *seen = calloc(n + 1, 1);
    assert_int_equal(store->committed.n_rows, n);
    for (size_t i = 0; i < n; i++) {
        const struct occ_store_launch *l = &store->rows[i].launch;
        struct occ_ring_launch expected = sample_launch(l->correlation);
        assert_true(l->correlation < n && !seen[l->correlation]);
        seen[l->correlation] = 1;
        assert_true((uint64_t)l->start_ns == expected.start_ns && l->duration_ns == expected.duration_ns);
        assert_true(l->graph_node == expected.graph_node && l->stream == expected.stream);
    }
    free(seen);
}

static void launches_reach_the_store(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 1024);
    assert_true(log_samples(&ring));
    offer(b, &ring);
    for (uint64_t i = 0; i < 512; i++)
        push(&ring, i ^ 31); /* the store orders them */
    poll_after(b, SECOND);
    assert_exactly(b->store, 512);
    assert_int_equal(b->store->rows[0].launch.config, 1);
    occ_ring_destroy(&ring);
}

static void slots_come_back_only_after_the_commit(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 1024);
    assert_true(log_samples(&ring));
    offer(b, &ring);
    poll_after(b, SECOND); /* commits the run's row; the next regular one is a second away */
    for (uint64_t i = 0; i < 100; i++)
        push(&ring, i);
    poll_after(b, SECOND / 10);
    assert_int_equal(ring.header->tail, 0);
    assert_int_equal(b->store->committed.n_rows, 0);
    poll_after(b, SECOND);
    assert_int_equal(ring.header->tail, 100);
    assert_exactly(b->store, 100);
    occ_ring_destroy(&ring);
}

static void a_ring_that_is_half_full_is_committed_early(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 1024);
    assert_true(log_samples(&ring));
    offer(b, &ring);
    poll_after(b, SECOND);
    for (uint64_t i = 0; i < 600; i++)
        push(&ring, i);
    poll_after(b, SECOND / 100);
    assert_int_equal(ring.header->tail, 600);
    assert_exactly(b->store, 600);
    occ_ring_destroy(&ring);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Pushes launches in bounded disorder, as many as fit. */
static uint64_t push_some(struct occ_ring_producer *ring, uint64_t from, uint64_t most, uint64_t end)
{
    for (uint64_t i = 0; i < most && from < end; i++, from++) {
        struct occ_ring_launch l = sample_launch(from ^ 7);
        if (!occ_ring_push(ring, &l))
            break;
    }
    return from;
}

static void a_crash_at_any_moment_loses_and_repeats_nothing(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    const uint64_t total = 20000;
    uint32_t seed = 1;
    int crashes = 0;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    offer(b, &ring);
    for (uint64_t pushed = 0; pushed < total;) {
        pushed = push_some(&ring, pushed, next_random(&seed) % 300, total);
        poll_after(b, next_random(&seed) % SECOND);
        if (next_random(&seed) % 4 == 0) {
            occ_collector_free(b->collector);
            fake_store_crash(b->store);
            start_collector(b);
            offer(b, &ring);
            crashes++;
        }
    }
    assert_true(crashes > 5);
    assert_int_equal(occ_collector_commit(b->collector, b->now_ns, NULL), 0);
    poll_after(b, SECOND);
    poll_after(b, SECOND);
    assert_exactly(b->store, total);
    occ_ring_destroy(&ring);
}

/* Logs a device with known limits, unlike log_samples(). */
static void log_measurable(struct occ_ring_producer *ring)
{
    struct occ_record_device d = {.record.type = OCC_RECORD_DEVICE,
                                  .cc_major = 9,
                                  .sm_count = 132,
                                  .warp_size = 32,
                                  .max_threads_per_sm = 2048};
    memcpy(d.name, "a device", 9);
    assert_true(occ_ring_log(ring, &d.record, sizeof d, NULL, 0));
    assert_true(log_kernel(ring, 0, "_Z4axpyPf") && log_config(ring, 0));
}

static double mean_of(const struct occ_measured_sums *sums, enum occ_measured_value value)
{
    return sums->sum[value] / sums->ns[value];
}

static void push_measured(struct occ_ring_producer *ring, struct occ_record_measured m)
{
    assert_true(occ_ring_log(ring, &m.record, sizeof m, NULL, 0));
}

/* Values come with the commit that makes their launches durable; a daemon that reads the log again does not
 * count them again. */
static void exact_values_count_once(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    const struct occ_measured_sums *sums = &b->store->committed.measured;
    uint32_t seed = 7;
    make_ring(&ring, 512);
    log_measurable(&ring);
    offer(b, &ring);
    for (uint64_t pushed = 0; pushed < 400;) {
        push_some(&ring, pushed, 10, 400);
        pushed += 10;
        push_measured(&ring, sample_measured(pushed, 10));
        poll_after(b, next_random(&seed) % SECOND);
        assert_true(sums->exact <= b->store->committed.n_rows);
        if (next_random(&seed) % 4 == 0) {
            occ_collector_free(b->collector);
            fake_store_crash(b->store);
            start_collector(b);
            offer(b, &ring);
        }
    }
    poll_after(b, SECOND);
    poll_after(b, SECOND);
    assert_exactly(b->store, 400);
    assert_int_equal(sums->exact, 400);
    assert_true(fabs(mean_of(sums, OCC_MEASURED_achieved) - 0.5) < 1e-12);
    assert_true(fabs(mean_of(sums, OCC_MEASURED_elapsed) - 0.25) < 1e-12);
    assert_true(fabs(mean_of(sums, OCC_MEASURED_sm_active) - 0.5) < 1e-12);
    assert_true(fabs(mean_of(sums, OCC_MEASURED_resident_blocks) - 8) < 1e-12);
    occ_ring_destroy(&ring);
}

/* The program's ring goes to a daemon with another history. */
static struct occ_store *move(struct bench *b, const struct occ_ring_producer *ring, struct occ_store *to)
{
    struct occ_store *from = b->store;
    occ_collector_free(b->collector);
    b->store = to;
    start_collector(b);
    offer(b, ring);
    return from;
}

static void push_exact(struct occ_ring_producer *ring, uint64_t from, uint64_t n)
{
    for (uint64_t i = from; i < from + n; i++)
        push(ring, i);
    push_measured(ring, sample_measured(from + n, n));
}

static void count(struct occ_ring_producer *ring, uint64_t losses, uint64_t costs)
{
    ring->header->lost[OCC_LOSS_RING_FULL] = losses;
    ring->header->cost[OCC_COST_HELPER_CPU_NS] = costs;
}

static void assert_totals(const struct bench *b, uint64_t launches, const char *losses, const char *costs)
{
    assert_int_equal(b->store->committed.n_rows, launches);
    assert_int_equal(b->store->committed.measured.exact, launches);
    assert_string_equal(b->store->committed.runs[0].losses, losses);
    assert_string_equal(b->store->committed.runs[0].costs, costs);
}

/* Each daemon counts launches, exact values, losses and costs of its own time alone, and says since when. */
static void two_histories_share_a_run(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    char period[256];
    make_ring(&ring, 512);
    ring.header->start_ns = SAMPLE_EPOCH_NS - 5;
    log_measurable(&ring);
    offer(b, &ring);
    push_exact(&ring, 0, 10);
    count(&ring, 200, 50);
    poll_after(b, 20 * SECOND);
    assert_totals(b, 10, "ring_full 200 ", "helper_cpu_ns 50 ");
    assert_string_equal(b->store->committed.runs[0].periods, "");

    push_exact(&ring, 10, 5);
    count(&ring, 210, 70);
    struct occ_store *first = move(b, &ring, fake_store_new());
    poll_after(b, 20 * SECOND);
    assert_totals(b, 5, "", "");
    (void)snprintf(period, sizeof period, "nothing %lld-%lld " OCC_STORE_ELSEWHERE ";",
                   (long long)b->store->committed.runs[0].row.start_ns,
                   (long long)sample_launch(10).start_ns);
    assert_string_equal(b->store->committed.runs[0].periods, period);
    push_exact(&ring, 15, 1);
    count(&ring, 217, 95);
    poll_after(b, 20 * SECOND);
    assert_totals(b, 6, "ring_full 7 ", "helper_cpu_ns 25 ");
    struct occ_store *same = move(b, &ring, b->store); /* a restart */
    assert_ptr_equal(same, b->store);
    push_exact(&ring, 16, 1);
    count(&ring, 218, 96);
    poll_after(b, 20 * SECOND);
    assert_totals(b, 7, "ring_full 8 ", "helper_cpu_ns 26 ");
    assert_string_equal(b->store->committed.runs[0].periods, period);

    push_exact(&ring, 17, 3); /* back to the first history */
    struct occ_store *second = move(b, &ring, first);
    count(&ring, 221, 97);
    poll_after(b, 20 * SECOND);
    assert_totals(b, 13, "ring_full 203 ", "helper_cpu_ns 51 ");
    assert_non_null(strstr(b->store->committed.runs[0].periods, OCC_STORE_ELSEWHERE));
    fake_store_free(second);
    occ_ring_destroy(&ring);
}

/* Values of launches that are durable already are lost neither by a daemon's end nor while no daemon runs. */
static void exact_values_that_come_late_count_once(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    const struct occ_measured_sums *sums = &b->store->committed.measured;
    make_ring(&ring, 512);
    log_measurable(&ring);
    offer(b, &ring);
    for (uint64_t i = 0; i < 10; i++)
        push(&ring, i);
    poll_after(b, 2 * SECOND);
    assert_exactly(b->store, 10);
    push_measured(&ring, sample_measured(10, 4));
    poll_after(b, SECOND / 10); /* read, not committed */
    assert_int_equal(sums->exact, 0);
    for (int restarts = 0; restarts < 3; restarts++) {
        occ_collector_free(b->collector);
        fake_store_crash(b->store);
        if (restarts == 0)
            push_measured(&ring, sample_measured(10, 6));
        start_collector(b);
        offer(b, &ring);
        poll_after(b, 2 * SECOND);
        assert_int_equal(sums->exact, 10);
    }
    occ_ring_destroy(&ring);
}

/* Values that arrive before their launches wait for these launches. */
static void exact_values_wait_for_their_launches(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    assert_int_equal(occ_ring_create(&ring, 512, 800u << 10), 0);
    log_measurable(&ring);
    offer(b, &ring);
    push(&ring, 0);
    poll_after(b, 2 * SECOND);
    push(&ring, 1);
    for (int i = 0; i < 5000; i++) /* more records than one poll takes: the launches follow later */
        push_measured(&ring, sample_measured(i < 2 ? 1 : 2, 1));
    poll_after(b, 2 * SECOND);
    assert_int_equal(b->store->committed.n_rows, 1);
    assert_int_equal(b->store->committed.measured.exact, 2);
    poll_after(b, 2 * SECOND);
    assert_int_equal(b->store->committed.n_rows, 2);
    assert_int_equal(b->store->committed.measured.exact, 5000);
    occ_ring_destroy(&ring);
}

/* Many polls with few records each reach the limit, too; only the program with the many records exceeds it.
 */
static void tables_have_a_limit(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring, other;
    struct occ_collector_stats stats;
    assert_int_equal(occ_ring_create(&ring, 512, 40u << 20), 0);
    make_ring(&other, 512);
    log_measurable(&ring);
    log_measurable(&other);
    push(&ring, 0);
    push(&other, 0);
    offer(b, &other);
    offer(b, &ring);
    poll_after(b, 2 * SECOND);
    push(&ring, 1);
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 4000; i++)
            push_measured(&ring, sample_measured(2, 1));
        push_measured(&other, sample_measured(1, 1));
        poll_after(b, SECOND / 1000); /* the next commit is far away */
    }
    poll_after(b, 2 * SECOND);
    occ_collector_get_stats(b->collector, &stats);
    assert_int_equal(stats.quarantined, 1);
    assert_non_null(
        strstr(b->store->committed.runs[0].reason, "too many kernels, launch configurations and measured"));
    assert_string_equal(b->store->committed.runs[1].reason, "");
    occ_ring_destroy(&ring);
    occ_ring_destroy(&other);
}

/* A value above the GPU's warps is rejected, and so is every value of a GPU with unknown limits. */
static void exact_values_beyond_the_gpu_are_not_taken(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring, unknown;
    struct occ_record_measured m = sample_measured(1, 1);
    make_ring(&ring, 512);
    make_ring(&unknown, 512);
    log_measurable(&ring);
    assert_true(log_samples(&unknown));
    push(&ring, 0);
    push(&unknown, 0);
    push_measured(&unknown, m);
    m.warps_active_ns = 68 * m.ns;
    push_measured(&ring, m);
    offer(b, &ring);
    offer(b, &unknown);
    poll_after(b, 2 * SECOND);
    assert_int_equal(b->store->committed.n_rows, 2);
    assert_int_equal(b->store->committed.measured.exact, 0);
    m.warps_active_ns = 66 * m.ns; /* slightly above the limit counts as 1 */
    push_measured(&ring, m);
    push(&ring, 1);
    poll_after(b, 2 * SECOND);
    assert_true(mean_of(&b->store->committed.measured, OCC_MEASURED_achieved) == 1);
    occ_ring_destroy(&ring);
    occ_ring_destroy(&unknown);
}

static void a_full_disk_stops_reading_and_nothing_is_lost(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    struct occ_collector_stats stats;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    offer(b, &ring);
    poll_after(b, SECOND);
    for (uint64_t i = 0; i < 100; i++)
        push(&ring, i);
    b->store->fail_commit = OCC_E_FULL;
    for (int i = 0; i < 20; i++)
        poll_after(b, SECOND);
    occ_collector_get_stats(b->collector, &stats);
    assert_true(stats.stalled);
    assert_int_equal(ring.header->tail, 0);
    for (uint64_t i = 100; i < 512; i++)
        push(&ring, i);
    struct occ_ring_launch l = sample_launch(512);
    assert_false(occ_ring_push(&ring, &l)); /* the producer counts the loss */
    poll_after(b, SECOND / 10);
    poll_after(b, SECOND);
    assert_int_equal(b->store->now.n_rows, 100); /* memory stays the same during the fault */
    b->store->fail_commit = 0;
    poll_after(b, SECOND);
    poll_after(b, SECOND);
    occ_collector_get_stats(b->collector, &stats);
    assert_false(stats.stalled);
    assert_int_equal(ring.header->tail, 512);
    assert_exactly(b->store, 512);
    assert_string_equal(b->store->committed.runs[0].losses, "ring_full 1 ");
    occ_ring_destroy(&ring);
}

static void what_the_log_says_waits_for_the_store(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    offer(b, &ring);
    push(&ring, 0);
    b->store->fail_put = OCC_E_BUSY;
    poll_after(b, SECOND); /* fails at the device */
    b->store->fail_put = 0;
    poll_after(b, SECOND);
    poll_after(b, SECOND);
    assert_exactly(b->store, 1);
    assert_true(b->store->n_devices == 1 && b->store->n_kernels == 1 && b->store->n_shapes == 1);
    assert_string_equal(b->store->committed.runs[0].exe, "/bin/app");
    occ_ring_destroy(&ring);
}

/* The record has left the log, so the run's row is the only copy of its content. */
static void a_row_that_the_store_did_not_take_is_put_again(void **state)
{
    static const char text[] = "exe\0/bin/second";
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    offer(b, &ring);
    poll_after(b, SECOND);
    assert_string_equal(b->store->committed.runs[0].exe, "/bin/app");
    assert_true(log_process(&ring, 1, text, sizeof text));
    b->store->fail_put = OCC_E_BUSY;
    poll_after(b, SECOND);
    b->store->fail_put = 0;
    poll_after(b, SECOND);
    poll_after(b, SECOND);
    assert_string_equal(b->store->committed.runs[0].exe, "/bin/second");
    occ_ring_destroy(&ring);
}

static void faults_anywhere_in_the_store_are_tried_again(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    uint32_t seed = 7;
    int *faults[] = {&b->store->fail_append, &b->store->fail_commit, &b->store->fail_put,
                     &b->store->fail_end};
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    struct occ_producer *p = offer(b, &ring);
    uint64_t pushed = 0;
    for (int i = 0; i < 300; i++) {
        int *fault = faults[next_random(&seed) % 4];
        *fault = next_random(&seed) % 3 == 0 ? OCC_E_BUSY : 0;
        pushed = push_some(&ring, pushed, 50, 4000);
        poll_after(b, SECOND / 3);
    }
    for (size_t i = 0; i < 4; i++)
        *faults[i] = 0;
    b->store->fail_end = OCC_E_BUSY;
    occ_collector_died(b->collector, p);
    poll_after(b, 2 * SECOND);
    assert_false(b->store->committed.runs[0].ended);
    b->store->fail_end = 0;
    poll_after(b, 2 * SECOND);
    poll_after(b, 2 * SECOND);
    assert_true(b->store->committed.runs[0].ended);
    assert_int_equal(b->gone, 1);
    assert_exactly(b->store, pushed);
    occ_ring_destroy(&ring);
}

static void a_broken_ring_keeps_what_was_sound(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    struct occ_producer *p;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    offer(b, &ring);
    for (uint64_t i = 0; i < 60; i++)
        push(&ring, i);
    ring.slots[50].check ^= 1;
    poll_after(b, SECOND);
    poll_after(b, SECOND);
    assert_exactly(b->store, 50);
    assert_true(b->store->committed.runs[0].ended);
    assert_non_null(strstr(b->store->committed.runs[0].reason, "ring is broken"));
    assert_int_equal(b->gone, 1);
    assert_ptr_equal(b->gone_owner, b);
    assert_int_equal(offer_as(b, &ring, &self, b, &p), OCC_E_DENIED);
    struct occ_collector_stats stats;
    occ_collector_get_stats(b->collector, &stats);
    assert_int_equal(stats.quarantined, 1);
    assert_int_equal(stats.producers, 0);
    occ_ring_destroy(&ring);
}

/* The program has died, so no later poll finds more. Records of a newer version are skipped in portions; the
 * launches after the one without a configuration are neither read nor counted. */
static void a_configuration_that_never_comes_keeps_no_dead_program(void **state)
{
    for (int newer_records = 0; newer_records <= 6000; newer_records += 6000) {
        struct bench *b = *state;
        struct occ_ring_producer ring;
        struct occ_log_record newer = {.type = 200};
        size_t run = b->store->committed.n_runs;
        uint64_t before = b->store->committed.n_rows;
        make_ring(&ring, 512);
        assert_true(log_samples(&ring));
        for (int i = 0; i < newer_records; i++)
            assert_true(occ_ring_log(&ring, &newer, sizeof newer, NULL, 0));
        struct occ_producer *p = offer(b, &ring);
        for (uint64_t i = 0; i < 6; i++) {
            struct occ_ring_launch l = sample_launch(i);
            l.config = i == 4;
            assert_true(occ_ring_push(&ring, &l));
        }
        occ_collector_died(b->collector, p);
        for (int polls = 0; polls < 10; polls++)
            poll_after(b, SECOND);
        assert_int_equal(b->store->committed.n_rows, before + 4);
        assert_true(b->store->committed.runs[run].ended);
        assert_string_equal(b->store->committed.runs[run].reason, OCC_STORE_CUT
                            "; recording stopped, the program's ring is broken: launch: unknown config");
        occ_ring_destroy(&ring);
    }
}

static void one_broken_ring_does_not_touch_another(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer good, bad;
    struct occ_producer *p;
    make_ring(&good, 512);
    make_ring(&bad, 512);
    assert_true(log_samples(&good) && log_samples(&bad));
    offer(b, &good);
    struct occ_peer other = {.pid = 4243, .uid = 1000};
    assert_int_equal(offer_as(b, &bad, &other, NULL, &p), 0);
    bad.header->log_head = 64u << 20; /* beyond the log */
    for (uint64_t i = 0; i < 100; i++)
        push(&good, i);
    poll_after(b, SECOND);
    assert_exactly(b->store, 100);
    occ_ring_destroy(&good);
    occ_ring_destroy(&bad);
}

/* The ring's reader rejects times that the history cannot store: such a time would stop recording for all
 * programs. */
static void times_at_the_end_of_time_stop_nobody(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer good, bad;
    struct occ_producer *p;
    struct occ_ring_launch last = sample_launch(0);
    struct occ_collector_stats stats;
    make_ring(&good, 512);
    make_ring(&bad, 512);
    assert_true(log_samples(&good) && log_samples(&bad));
    offer(b, &good);
    struct occ_peer other = {.pid = 4243, .uid = 1000};
    assert_int_equal(offer_as(b, &bad, &other, NULL, &p), 0);
    last.start_ns = INT64_MAX;
    last.duration_ns = 0;
    assert_true(occ_ring_push(&bad, &last));
    for (uint64_t i = 0; i < 100; i++)
        push(&good, i);
    poll_after(b, SECOND);
    poll_after(b, SECOND);
    assert_exactly(b->store, 100);
    occ_collector_get_stats(b->collector, &stats);
    assert_false(stats.stalled);
    assert_int_equal(stats.quarantined, 1);
    occ_ring_destroy(&good);
    occ_ring_destroy(&bad);
}

static void another_user_cannot_take_over_a_run(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    struct occ_producer *p;
    const struct occ_peer other = {.pid = 4243, .uid = 1001};
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    offer(b, &ring);
    poll_after(b, SECOND);
    occ_collector_free(b->collector); /* another daemon */
    start_collector(b);
    assert_int_equal(offer_as(b, &ring, &other, NULL, &p), OCC_E_DENIED);
    assert_int_equal(offer_as(b, &ring, &self, NULL, &p), 0);
    occ_ring_destroy(&ring);
}

/* Another process may have the ring's descriptor, and a pid does not identify a user. */
static void a_ring_stays_with_its_process_and_user(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    const struct occ_peer others[] = {{.pid = self.pid, .uid = self.uid + 1},
                                      {.pid = self.pid + 1, .uid = self.uid},
                                      {.pid = self.pid, .uid = 0}};
    struct occ_producer *p = NULL, *again = NULL;
    int owners[2];
    make_ring(&ring, 1024);
    assert_int_equal(offer_as(b, &ring, &self, &owners[0], &p), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(offer_as(b, &ring, &others[i], &owners[1], &again), OCC_E_DENIED);
        assert_ptr_equal(p->owner, &owners[0]);
        assert_int_equal(p->peer.uid, self.uid);
        assert_int_equal(b->gone, 0);
    }
    assert_int_equal(offer_as(b, &ring, &self, &owners[1], &again), 0);
    assert_ptr_equal(again, p);
    occ_ring_destroy(&ring);
}

static void a_dead_program_is_drained_and_its_run_ends(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    struct occ_producer *p = offer(b, &ring);
    poll_after(b, SECOND);
    for (uint64_t i = 0; i < 200; i++)
        push(&ring, i);
    occ_ring_heartbeat(&ring, SAMPLE_EPOCH_NS + 5);
    ring.header->start_ns = 1;
    occ_ring_destroy(&ring); /* the collector's mapping keeps the ring */
    occ_collector_died(b->collector, p);
    poll_after(b, 2 * SECOND);
    poll_after(b, 2 * SECOND);
    assert_exactly(b->store, 200);
    const struct fake_run *run = &b->store->committed.runs[0];
    assert_true(run->ended);
    assert_true(run->row.end_ns >= run->row.start_ns);
    assert_int_equal(b->gone, 1);
    assert_true(occ_collector_wait_ns(b->collector, 0) < 0);
}

/* The last launches of a dead program wait for the store, and its run ends after them. */
static void a_run_ends_after_its_launches(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 1024);
    assert_true(log_samples(&ring));
    struct occ_producer *p = offer(b, &ring);
    for (uint64_t i = 0; i < 100; i++)
        push(&ring, i);
    occ_collector_died(b->collector, p);
    b->store->fail_append = OCC_E_FULL;
    for (int i = 0; i < 3; i++) {
        poll_after(b, SECOND);
        assert_false(b->store->now.runs[0].ended);
    }
    b->store->fail_append = 0;
    for (int i = 0; i < 2; i++)
        poll_after(b, SECOND);
    assert_exactly(b->store, 100);
    assert_true(b->store->committed.runs[0].ended);
    occ_ring_destroy(&ring);
}

/* A failing store is tried once per commit interval instead of with every poll. */
static void a_failing_store_has_time_to_recover(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    struct occ_collector_stats stats;
    make_ring(&ring, 1024);
    assert_true(log_samples(&ring));
    offer(b, &ring);
    poll_after(b, SECOND);
    b->store->fail_commit = OCC_E_BUSY;
    push(&ring, 0);
    for (int i = 0; i < 300; i++)
        poll_after(b, SECOND / 100);
    occ_collector_get_stats(b->collector, &stats);
    assert_in_range(stats.failures, 2, 4);
    occ_ring_destroy(&ring);
}

/* A poll is too short for all launches of a dead program, so its run continues until they are read. */
static void a_run_goes_on_until_all_is_read(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    struct occ_collector_options options = options_of(b);
    options.round_ns = 20000;
    occ_collector_configure(b->collector, &options);
    make_ring(&ring, 16384);
    assert_true(log_samples(&ring));
    struct occ_producer *p = offer(b, &ring);
    for (uint64_t i = 0; i < 16000; i++)
        push(&ring, i);
    occ_collector_died(b->collector, p);
    while (b->store->now.n_runs == 0 || !b->store->now.runs[0].ended)
        poll_after(b, SECOND);
    poll_after(b, SECOND);
    assert_exactly(b->store, 16000);
    occ_ring_destroy(&ring);
}

static void a_closed_ring_ends_at_its_own_word(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    offer(b, &ring);
    push(&ring, 0);
    uint64_t end = (uint64_t)occ_now_ns();
    struct occ_record_closed closed = {.record.type = OCC_RECORD_CLOSED, .time_ns = end, .launches = 1};
    assert_true(occ_ring_log(&ring, &closed.record, sizeof closed, NULL, 0));
    occ_ring_close(&ring);
    poll_after(b, SECOND);
    assert_exactly(b->store, 1);
    assert_true(b->store->committed.runs[0].ended);
    assert_true((uint64_t)b->store->committed.runs[0].row.end_ns == end);
    occ_ring_destroy(&ring);
}

static void moments_of_the_future_are_not_believed(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    struct occ_producer *p = offer(b, &ring);
    occ_ring_heartbeat(&ring, UINT64_MAX);
    occ_collector_died(b->collector, p);
    poll_after(b, SECOND);
    assert_true(b->store->committed.runs[0].ended);
    assert_true(b->store->committed.runs[0].row.end_ns <= occ_now_ns());
    occ_ring_destroy(&ring);
}

static void an_orphan_is_read_while_its_heart_beats(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    struct occ_producer *p = offer(b, &ring);
    poll_after(b, SECOND);
    occ_collector_orphaned(b->collector, p, b->now_ns);
    for (uint64_t i = 0; i < 30; i++) {
        push(&ring, i);
        occ_ring_heartbeat(&ring, SAMPLE_EPOCH_NS + i);
        poll_after(b, 2 * SECOND);
    }
    assert_exactly(b->store, 30);
    assert_false(b->store->committed.runs[0].ended);
    for (int i = 0; i < 4; i++)
        poll_after(b, 3 * SECOND);
    assert_true(b->store->committed.runs[0].ended);
    assert_int_equal(b->gone, 1); /* otherwise its owner would name a freed producer */
    assert_ptr_equal(b->gone_owner, b);
    occ_ring_destroy(&ring);
}

/* The thread that writes the ring is not the heartbeat's thread: one may hang while the other continues. */
static void an_orphan_that_launches_lives(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    struct occ_producer *p = offer(b, &ring);
    poll_after(b, SECOND);
    occ_collector_orphaned(b->collector, p, b->now_ns);
    for (uint64_t i = 0; i < 30; i++) {
        push(&ring, i);
        poll_after(b, 2 * SECOND);
    }
    assert_false(b->store->committed.runs[0].ended);
    poll_after(b, 9 * SECOND);
    assert_false(b->store->committed.runs[0].ended);
    poll_after(b, 2 * SECOND);
    poll_after(b, SECOND);
    assert_exactly(b->store, 30);
    assert_true(b->store->committed.runs[0].ended);
    occ_ring_destroy(&ring);
}

static void an_orphan_that_connects_again_changes_its_owner(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    struct occ_producer *again = NULL;
    int second;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    struct occ_producer *p = offer(b, &ring);
    occ_collector_orphaned(b->collector, p, b->now_ns);
    assert_int_equal(b->gone, 0);
    assert_int_equal(offer_as(b, &ring, &self, &second, &again), 0);
    assert_ptr_equal(again, p);
    assert_int_equal(b->gone, 1);
    assert_ptr_equal(b->gone_owner, b);
    occ_collector_died(b->collector, p);
    poll_after(b, SECOND);
    assert_int_equal(b->gone, 2);
    assert_ptr_equal(b->gone_owner, &second);
    occ_ring_destroy(&ring);
}

static void a_program_that_execs_ends_its_old_run(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer old, fresh;
    make_ring(&old, 512);
    make_ring(&fresh, 512);
    assert_true(log_samples(&old) && log_samples(&fresh));
    struct occ_producer *p = offer(b, &old);
    push(&old, 0);
    occ_collector_orphaned(b->collector, p, b->now_ns);
    offer(b, &fresh);
    poll_after(b, SECOND);
    assert_exactly(b->store, 1);
    assert_int_equal(b->store->committed.n_runs, 2);
    size_t old_run = memcmp(b->store->committed.runs[0].row.uuid, old.header->uuid, 16) == 0 ? 0 : 1;
    assert_true(b->store->committed.runs[old_run].ended);
    assert_false(b->store->committed.runs[1 - old_run].ended);
    occ_ring_destroy(&old);
    occ_ring_destroy(&fresh);
}

static void the_same_ring_again_goes_on(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring, copy;
    struct occ_producer *again = NULL;
    int second;
    make_ring(&ring, 512);
    make_ring(&copy, 512);
    assert_true(log_samples(&ring));
    struct occ_producer *p = offer(b, &ring);
    push(&ring, 0);
    poll_after(b, SECOND);
    assert_int_equal(offer_as(b, &ring, &self, &second, &again), 0);
    assert_ptr_equal(again, p);
    assert_ptr_equal(b->gone_owner, b); /* the old connection */
    push(&ring, 1);
    poll_after(b, SECOND);
    assert_exactly(b->store, 2);
    /* another process, and another memfd under the same uuid */
    struct occ_peer other = {.pid = 9999, .uid = 1000};
    assert_int_equal(offer_as(b, &ring, &other, NULL, &again), OCC_E_DENIED);
    memcpy(copy.header->uuid, ring.header->uuid, 16);
    assert_int_equal(offer_as(b, &copy, &self, NULL, &again), OCC_E_DENIED);
    occ_ring_destroy(&ring);
    occ_ring_destroy(&copy);
}

/* Each cause has a maximum, so that the history's sum over all causes cannot overflow. */
static void losses_can_be_added_up(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 256);
    assert_true(log_samples(&ring));
    for (int cause = 0; cause < OCC_LOSS_COUNT; cause++)
        ring.header->lost[cause] = cause % 2 ? UINT64_MAX : INT64_MAX;
    offer(b, &ring);
    poll_after(b, 2 * SECOND);
    int causes = 0;
    for (const char *at = b->store->committed.runs[0].losses; (at = strchr(at, ' ')) && at[1]; at++)
        if (strtoull(at, NULL, 10) > 0) {
            assert_true(strtoull(at, NULL, 10) <= INT64_MAX / OCC_LOSS_COUNT);
            causes++;
        }
    assert_int_equal(causes, OCC_LOSS_COUNT);
    occ_ring_destroy(&ring);
}

static void limits_hold(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer rings[5], large;
    struct occ_producer *p = NULL;
    for (int i = 0; i < 5; i++) {
        struct occ_peer peer = {.pid = 100 + i, .uid = 1000};
        make_ring(&rings[i], 256);
        assert_int_equal(offer_as(b, &rings[i], &peer, NULL, &p), i < 4 ? 0 : OCC_E_FULL);
    }
    for (int i = 0; i < 5; i++)
        occ_ring_destroy(&rings[i]);
    occ_collector_free(b->collector);
    start_collector(b);
    assert_int_equal(occ_ring_create(&large, 1u << 21, 4096), 0);
    assert_int_equal(offer_as(b, &large, &self, NULL, &p), OCC_E_INVALID);
    occ_ring_destroy(&large);
}

static void what_is_no_ring_is_refused(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    struct occ_producer *p = NULL;
    struct occ_offer offer = {.peer = self, .uuid = {1}};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    offer.fd = ends[0];
    assert_int_equal(occ_collector_offer(b->collector, &offer, 0, &p, NULL), OCC_E_INVALID);
    (void)close(ends[1]);
    make_ring(&ring, 256);
    offer.fd = dup(ring.fd);
    assert_int_equal(occ_collector_offer(b->collector, &offer, 0, &p, NULL),
                     OCC_E_INVALID); /* another uuid than the ring's */
    occ_ring_destroy(&ring);
}

static void what_a_program_says_of_itself(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    static const char text[] = "exe\0/bin/\033[31mapp\0session\0"
                               "00112233445566778899AABBCCDDEEFF\0hostname\0node7\0future key\0x";
    make_ring(&ring, 512);
    assert_true(log_process(&ring, 4, text, sizeof text));
    struct occ_record_device device = {.record.type = OCC_RECORD_DEVICE, .cc_major = 8, .cc_minor = 0};
    memcpy(device.name, "A100 (simulated)", 17);
    assert_true(occ_ring_log(&ring, &device.record, sizeof device, NULL, 0));
    struct occ_record_state said = {.record.type = OCC_RECORD_STATE,
                                    .level = OCC_LEVEL_TRACE,
                                    .cupti_version = 28,
                                    .reason = "no counters"};
    assert_true(occ_ring_log(&ring, &said.record, sizeof said, NULL, 0));
    occ_ring_set_cost(&ring, OCC_COST_HELPER_CPU_NS, 12345);
    occ_ring_count_loss(&ring, OCC_LOSS_BAD_TIMES, 3);
    struct occ_producer *p = offer(b, &ring);
    poll_after(b, SECOND);
    const struct fake_run *run = &b->store->committed.runs[0];
    assert_string_equal(run->exe, "/bin/?[31mapp");
    assert_string_equal(run->session, "00112233445566778899aabbccddeeff");
    assert_string_equal(run->hostname, "node7");
    assert_string_equal(run->level, "trace");
    assert_string_equal(run->reason, "no counters");
    assert_true(run->row.simulated && b->store->devices[0].simulated);
    assert_true(run->row.pid == self.pid && run->row.uid == self.uid);
    assert_int_equal(b->store->devices[0].limits.cc, 80);
    assert_string_equal(run->losses, "bad_times 3 ");
    assert_string_equal(run->costs, "helper_cpu_ns 12345 ");
    assert_true(occ_collector_is_settled(b->collector, run->session));
    occ_collector_died(b->collector, p);
    assert_false(occ_collector_is_settled(b->collector, run->session));
    assert_true(occ_collector_is_settled(b->collector, "ffffffffffffffffffffffffffffffff"));
    poll_after(b, 2 * SECOND);
    assert_true(occ_collector_is_settled(b->collector, run->session));
    occ_ring_destroy(&ring);
}

/* A launch has the range of its configuration. */
static void launches_have_their_ranges(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 1024);
    assert_true(log_process(&ring, 1, "exe\0/bin/app", 13) && log_device(&ring, 0) &&
                log_kernel(&ring, 0, "_Z4axpyPf") && log_range(&ring, 0, "step #/la\nyer"));
    struct occ_record_config without = sample_config(0), with = sample_config(1);
    with.range = 1;
    assert_true(occ_ring_log(&ring, &without.record, sizeof without, NULL, 0) &&
                occ_ring_log(&ring, &with.record, sizeof with, NULL, 0));
    for (uint64_t n = 0; n < 6; n++) {
        struct occ_ring_launch l = sample_launch(n);
        l.config = n % 2;
        assert_true(occ_ring_push(&ring, &l));
    }
    (void)offer(b, &ring);
    poll_after(b, SECOND);
    poll_after(b, SECOND);
    assert_int_equal(b->store->committed.n_rows, 6);
    assert_string_equal(b->store->ranges[0], "step #/la?yer");
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(b->store->rows[i].launch.range, b->store->rows[i].launch.correlation % 2);
    occ_ring_destroy(&ring);
}

static void log_state(struct occ_ring_producer *ring, uint16_t flags, enum occ_level level, uint64_t time_ns,
                      const char *reason)
{
    struct occ_record_state said = {
        .record = {.type = OCC_RECORD_STATE, .flags = flags}, .level = level, .time_ns = time_ns};
    (void)snprintf(said.reason, sizeof said.reason, "%s", reason);
    assert_true(occ_ring_log(ring, &said.record, sizeof said, NULL, 0));
}

static void push_state(struct occ_ring_producer *ring, enum occ_level level, uint64_t time_ns,
                       const char *reason)
{
    log_state(ring, 0, level, time_ns, reason);
}

static void push_unmeasured(struct occ_ring_producer *ring, uint64_t time_ns, const char *reason)
{
    log_state(ring, OCC_STATE_UNMEASURED, OCC_LEVEL_TRACE, time_ns, reason);
}

static void levels_after_the_first_are_periods(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    push_state(&ring, OCC_LEVEL_TRACE, 1000, "");
    push_state(&ring, OCC_LEVEL_NOTHING, 2000, "paused\033");
    struct occ_producer *p = offer(b, &ring);
    poll_after(b, SECOND);
    const struct fake_run *run = &b->store->committed.runs[0];
    assert_string_equal(run->level, "trace"); /* the level with launches */
    assert_string_equal(run->reason, "");     /* the reason belongs to the period */
    assert_string_equal(run->periods, "nothing 2000-0 paused?;");
    push_state(&ring, OCC_LEVEL_CONFIGS, 3000, "sampled");
    b->store->fail_put = OCC_E_IO; /* the record is read again */
    poll_after(b, SECOND);
    b->store->fail_put = 0;
    poll_after(b, SECOND);
    push_state(&ring, OCC_LEVEL_TRACE, 2500,
               ""); /* an earlier time ends the period at its begin: it is dropped */
    push_unmeasured(&ring, 5000, "not measured");
    push_state(&ring, OCC_LEVEL_TRACE, UINT64_MAX, "");
    poll_after(b, SECOND);
    assert_string_equal(run->level, "trace");
    assert_string_equal(run->reason, "");
    char expected[256];
    (void)snprintf(expected, sizeof expected, "%s",
                   "nothing 2000-0 paused?;nothing 2000-3000 paused?;configs 3000-0 sampled;dropped 3000;"
                   "trace 5000-0 not measured;trace 5000-");
    assert_memory_equal(run->periods, expected, strlen(expected));
    occ_collector_died(b->collector, p);
    poll_after(b, SECOND);
    occ_ring_destroy(&ring);
}

/* A run's number of periods is limited, so that they do not fill the history. */
static void periods_are_bounded(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    push_state(&ring, OCC_LEVEL_TRACE, 1000, "");
    for (uint64_t i = 1; i <= 150; i++)
        push_state(&ring, i % 2 ? OCC_LEVEL_NOTHING : OCC_LEVEL_CONFIGS, 1000 * i, "again");
    struct occ_producer *p = offer(b, &ring);
    while (p->run.period.n < 100)
        poll_after(b, SECOND);
    for (int i = 0; i < 100; i++)
        poll_after(b, SECOND);
    assert_int_equal(p->run.period.n, 100);
    assert_int_equal(p->run.period.from_ns, 100 * 1000); /* the last period never ends */
    assert_string_equal(p->run.period.reason, "too many periods to list all: again");
    assert_int_equal(p->run.holes.n, 100);
    occ_ring_destroy(&ring);
}

static void on_leveled(struct occ_producer *producer, void *context)
{
    struct bench *b = context;
    b->holes = producer->run.holes.n;
    b->leveled++;
}

static void assert_hole(const struct occ_producer *p, size_t at, int64_t low, int64_t high, uint64_t gap_ns)
{
    assert_true(at < p->run.holes.n);
    assert_int_equal(p->run.holes.list[at].time.low, low);
    assert_int_equal(p->run.holes.list[at].time.high, high);
    assert_int_equal(p->run.holes.list[at].recorded_below_ns, gap_ns);
}

/* Periods in which launches are missing are holes; counters say nothing about launches. */
static void periods_without_launches_are_holes(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    struct occ_collector_options options = options_of(b);
    options.leveled = on_leveled;
    occ_collector_free(b->collector);
    assert_int_equal(occ_collector_new(b->store, &options, &b->collector, NULL), 0);
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    push_state(&ring, OCC_LEVEL_TRACE, 1000, "");
    struct occ_producer *p = offer(b, &ring);
    poll_after(b, SECOND);
    assert_int_equal(b->leveled, 0);
    push_state(&ring, OCC_LEVEL_NOTHING, 2000, "paused");
    poll_after(b, SECOND);
    assert_int_equal(b->leveled, 1);
    assert_int_equal(b->holes, 1);
    assert_hole(p, 0, 2000, INT64_MAX, 0);
    push_state(&ring, OCC_LEVEL_CONFIGS, 3000, "sampled");
    b->store->fail_put = OCC_E_IO; /* the record is read again */
    poll_after(b, SECOND);
    b->store->fail_put = 0;
    poll_after(b, SECOND);
    poll_after(b, SECOND);
    assert_int_equal(b->holes, 2);
    assert_hole(p, 0, 2000, 3000, 0);
    assert_hole(p, 1, 3000, INT64_MAX, OCC_GAP_SAMPLED_NS);
    push_state(&ring, OCC_LEVEL_TRACE, 2500, ""); /* an earlier time withdraws the period */
    push_unmeasured(&ring, 5000, "not measured");
    push_state(&ring, OCC_LEVEL_NOTHING, 0, "a time that is no time");
    push_state(&ring, OCC_LEVEL_NOTHING, UINT64_MAX, "");
    poll_after(b, SECOND);
    assert_int_equal(b->holes, 2);
    assert_hole(p, 0, 2000, 3000, 0);
    assert_true(p->run.holes.list[1].time.low > 5000 && p->run.holes.list[1].time.high == INT64_MAX);
    int before = b->leveled;
    poll_after(b, SECOND);
    assert_int_equal(b->leveled, before);
    occ_collector_restart(b->collector, b->now_ns);
    poll_after(b, SECOND);
    assert_true(b->leveled > before);
    assert_int_equal(b->holes, 2);
    assert_hole(p, 0, 2000, 3000, 0);
    occ_ring_destroy(&ring);
}

static void who_wants_no_counters_is_not_raised_by_them(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    push_state(&ring, OCC_LEVEL_TRACE, 1000, "");
    struct occ_producer *p = offer(b, &ring);
    poll_after(b, SECOND);
    occ_producer_set_counters(p, "full", "");
    poll_after(b, SECOND);
    assert_string_equal(b->store->now.runs[0].level, "full");
    push_unmeasured(&ring, 2000, "overhead");
    poll_after(b, SECOND);
    assert_string_equal(b->store->now.runs[0].level, "trace");
    assert_true(p->run.is_without_counters);
    push_state(&ring, OCC_LEVEL_TRACE, 3000, "");
    poll_after(b, SECOND);
    assert_string_equal(b->store->now.runs[0].level, "full");
    occ_ring_destroy(&ring);
}

/* A reason without the flag only explains: the counters' level counts, and no period begins. */
static void a_reason_takes_no_counters_away(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    push_state(&ring, OCC_LEVEL_TRACE, 1000, "no ranges");
    struct occ_producer *p = offer(b, &ring);
    poll_after(b, SECOND);
    assert_false(p->run.is_without_counters);
    occ_producer_set_counters(p, "full", "");
    poll_after(b, SECOND);
    assert_string_equal(b->store->now.runs[0].level, "full");
    assert_string_equal(b->store->now.runs[0].reason, "no ranges");
    push_state(&ring, OCC_LEVEL_TRACE, 2000, "another reason");
    poll_after(b, SECOND);
    assert_string_equal(b->store->now.runs[0].level, "full");
    assert_string_equal(b->store->now.runs[0].periods, "");
    occ_ring_destroy(&ring);
}

/* A run of --exact measures itself as long as it reports so; this is not a period with less recording. */
static void exact_values_that_fail_give_the_counters_back(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 512);
    assert_true(log_process(&ring, 1, "exact\0001", 8));
    push_unmeasured(&ring, 1000, "--exact: kernels run one after the other");
    struct occ_producer *p = offer(b, &ring);
    poll_after(b, SECOND);
    assert_true(p->run.is_without_counters && p->run.is_exact);
    push_unmeasured(&ring, 2000, "no exact values of all contexts");
    poll_after(b, SECOND);
    assert_string_equal(b->store->now.runs[0].periods, "");
    push_state(&ring, OCC_LEVEL_TRACE, 3000, "no exact values");
    poll_after(b, SECOND);
    assert_false(p->run.is_without_counters || p->run.is_exact);
    occ_producer_set_counters(p, "gpm", "");
    poll_after(b, SECOND);
    assert_string_equal(b->store->now.runs[0].level, "gpm");
    assert_string_equal(b->store->now.runs[0].periods, "");
    occ_ring_destroy(&ring);
}

/* Makes a ring with samples of two devices, which alternate after three launches, and pushes `n` launches. */
static void make_two_devices(struct occ_ring_producer *ring, uint64_t n)
{
    make_ring(ring, 1024);
    assert_true(log_samples(ring) && log_device(ring, 1));
    struct occ_record_config config = sample_config(1);
    config.device = 1;
    config.context = 77;
    assert_true(occ_ring_log(ring, &config.record, sizeof config, NULL, 0));
    for (uint64_t i = 0; i < n; i++) {
        struct occ_ring_launch l = sample_launch(i);
        l.config = (i / 3) % 2;
        assert_true(occ_ring_push(ring, &l));
    }
}

static void assert_devices(const struct bench *b, size_t n)
{
    assert_exactly(b->store, n);
    for (size_t i = 0; i < n; i++) {
        const struct fake_row *row = &b->store->rows[i];
        uint32_t device = (row->launch.correlation / 3) % 2;
        assert_int_equal(row->device, device + 1);
        assert_int_equal(row->launch.config, device + 1);
        assert_int_equal(row->launch.context, device ? 77 : 0);
    }
}

static void each_device_has_its_launches(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_two_devices(&ring, 400);
    offer(b, &ring);
    poll_after(b, SECOND);
    assert_devices(b, 400);
    occ_ring_destroy(&ring);
}

/* The store accepts one device's launches and rejects the other's: the rejected launches wait, the accepted
 * ones are not repeated. */
static void a_batch_that_is_appended_in_part_goes_on(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_two_devices(&ring, 400);
    offer(b, &ring);
    b->store->fail_append = OCC_E_BUSY;
    b->store->fail_device = 2;
    for (int i = 0; i < 3; i++) {
        poll_after(b, 2 * SECOND);
        assert_int_equal(b->store->now.n_rows, 201);
        assert_int_equal(b->store->committed.n_rows, 0);
        assert_int_equal(ring.header->tail, 0);
    }
    b->store->fail_append = 0;
    poll_after(b, 2 * SECOND);
    assert_devices(b, 400);
    assert_int_equal(ring.header->tail, 400);
    occ_ring_destroy(&ring);
}

static void stop_takes_all_there_is(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 1024);
    assert_true(log_samples(&ring));
    offer(b, &ring);
    for (uint64_t i = 0; i < 700; i++)
        push(&ring, i);
    assert_int_equal(occ_collector_stop(b->collector, b->now_ns, NULL), 0);
    assert_exactly(b->store, 700);
    assert_true(b->store->committed.runs[0].ended);
    assert_int_equal(ring.header->tail, 700);
    occ_ring_destroy(&ring);
}

#define LONG_LOG 60000 /* launch configurations */

static const struct occ_ring_consumer *long_log; /* log of the program with the long log */
static unsigned others_before_its_end;           /* launches of others stored before the log's end */

static void note_order(struct occ_producer *producer, const struct occ_producer_device *device,
                       const struct occ_store_launch *rows, size_t n, void *context)
{
    (void)device;
    (void)rows;
    (void)context;
    if (producer->consumer != long_log && occ_ring_has_log(long_log))
        others_before_its_end += (unsigned)n;
}

static void make_long_log(struct occ_ring_producer *ring)
{
    assert_int_equal(occ_ring_create(ring, 256, 8u << 20), 0);
    assert_true(log_samples(ring));
    for (uint32_t i = 1; i < LONG_LOG; i++)
        assert_true(log_config(ring, i));
}

/* Stops a collector of two programs; the log of one takes many rounds. Returns true if all was read. */
static bool stop_beside_a_long_log(struct bench *b, int64_t stop_ns)
{
    struct occ_ring_producer ring, other;
    struct occ_collector_options options = options_of(b);
    options.appended = note_order;
    options.stop_ns = stop_ns;
    occ_collector_free(b->collector);
    assert_int_equal(occ_collector_new(b->store, &options, &b->collector, NULL), 0);
    make_ring(&other, 1024);
    assert_true(log_samples(&other));
    offer(b, &other);
    make_long_log(&ring);
    long_log = offer(b, &ring)->consumer; /* the newest program comes first */
    for (uint64_t i = 0; i < 10; i++)
        push(&other, i);
    others_before_its_end = 0;
    assert_int_equal(occ_collector_stop(b->collector, b->now_ns, NULL), 0);
    assert_int_equal(others_before_its_end, 10);
    assert_exactly(b->store, 10);
    assert_true(b->store->committed.runs[0].ended && b->store->committed.runs[1].ended);
    bool is_all = b->store->n_shapes >= LONG_LOG;
    occ_ring_destroy(&ring);
    occ_ring_destroy(&other);
    return is_all;
}

/* A stop reads every program first, and leaves the rest of a long log to the next daemon before the service
 * manager's patience ends. */
static void stop_reads_every_program_first(void **state)
{
    struct bench *b = *state;
    assert_true(stop_beside_a_long_log(b, 0));
    (void)teardown(state);
    (void)setup(state);
    b = *state;
    assert_false(stop_beside_a_long_log(b, 1));
}

static void more_records_than_one_poll_takes(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    assert_int_equal(occ_ring_create(&ring, 256, 800u << 10), 0);
    assert_true(log_samples(&ring));
    for (uint32_t i = 1; i < 6000; i++)
        assert_true(log_config(&ring, i));
    struct occ_producer *p = offer(b, &ring);
    struct occ_ring_launch l = sample_launch(0);
    l.config = 5999;
    assert_true(occ_ring_push(&ring, &l));
    occ_collector_died(b->collector, p);
    poll_after(b, SECOND);
    assert_int_equal(b->store->committed.n_rows, 0); /* its configuration is not read yet: no error */
    for (int i = 0; i < 3; i++)
        poll_after(b, SECOND);
    assert_exactly(b->store, 1);
    assert_true(b->store->committed.runs[0].ended);
    assert_string_equal(b->store->committed.runs[0].reason, "");
    occ_ring_destroy(&ring);
}

static void polls_follow_the_load(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    assert_true(occ_collector_wait_ns(b->collector, 0) < 0);
    make_ring(&ring, 1024);
    assert_true(log_samples(&ring));
    offer(b, &ring);
    for (int i = 0; i < 5; i++)
        poll_after(b, SECOND / 10);
    assert_int_equal(occ_collector_wait_ns(b->collector, 0), 250000000);
    b->store->fail_commit = OCC_E_BUSY; /* keeps the ring full */
    for (uint64_t i = 0; i < 1000; i++)
        push(&ring, i);
    for (int i = 0; i < 5; i++)
        poll_after(b, SECOND / 100);
    assert_int_equal(occ_collector_wait_ns(b->collector, 0), 10000000);
    occ_ring_destroy(&ring);
}

/* Simulates a clock that was an hour ahead when the program came. */
static void a_clock_that_is_set_is_a_reason_of_the_run(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 512);
    struct occ_record_state said = {.record.type = OCC_RECORD_STATE, .level = OCC_LEVEL_TRACE};
    assert_true(occ_ring_log(&ring, &said.record, sizeof said, NULL, 0));
    struct occ_producer *p = offer(b, &ring);
    p->clock.offset_ns += 3600 * SECOND;
    p->clock.max_offset_ns = p->clock.offset_ns;
    poll_after(b, SECOND);
    const struct fake_run *run = &b->store->committed.runs[0];
    assert_int_equal(strncmp(run->reason, "clock set: ", strlen("clock set: ")), 0);
    assert_non_null(strstr(run->reason, " 3600 s"));
}

static void on_appended(struct occ_producer *producer, const struct occ_producer_device *device,
                        const struct occ_store_launch *rows, size_t n, void *context)
{
    struct bench *b = context;
    (void)producer;
    (void)device;
    (void)rows;
    b->appended += n;
}

static void on_memory(struct occ_producer *producer, const struct occ_producer_device *device,
                      const struct occ_store_launch *rows, size_t n, void *context)
{
    struct bench *b = context;
    (void)producer;
    assert_int_equal(device->sm_count, 132);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(rows[i].start_ns, sample_launch(rows[i].correlation).start_ns);
        b->fills += rows[i].config == occ_producer_memory(OCC_KERNEL_FILL, 7);
        b->copies += rows[i].config == occ_producer_memory(OCC_KERNEL_COPY, 8);
    }
}

static int on_committing(void *context, struct occ_error *err)
{
    struct bench *b = context;
    (void)err;
    b->committing++;
    return 0;
}

/* A reload changes limits; the hooks belong to the daemon and stay. */
static void new_limits_keep_the_hooks(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    struct occ_collector_options options = options_of(b);
    options.appended = on_appended;
    options.leveled = on_leveled;
    options.committing = on_committing;
    occ_collector_free(b->collector);
    assert_int_equal(occ_collector_new(b->store, &options, &b->collector, NULL), 0);
    occ_collector_configure(b->collector, &(struct occ_collector_options){.commit_interval_ns = 5 * SECOND,
                                                                          .memory_bytes = 32u << 20,
                                                                          .max_producers = 1,
                                                                          .max_ring_bytes = 41u << 20});
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    push_state(&ring, OCC_LEVEL_TRACE, 1000, "");
    push_state(&ring, OCC_LEVEL_NOTHING, 2000, "paused");
    struct occ_producer *p = offer(b, &ring);
    push(&ring, 0);
    poll_after(b, SECOND);
    assert_int_equal(b->appended, 1);
    assert_int_equal(b->leveled, 1);
    assert_int_equal(b->committing, 1);
    push(&ring, 1);
    poll_after(b, 4 * SECOND);
    assert_int_equal(b->committing, 1); /* the new interval */
    occ_collector_died(b->collector, p);
    poll_after(b, SECOND);
    assert_int_equal(b->committing, 2);
    assert_int_equal(b->gone, 1);
    occ_ring_destroy(&ring);
}

/* Logs the kernels of memory operations: kernels and configurations 1 (fills) and 2 (copies). */
static void log_memory(struct occ_ring_producer *ring)
{
    static const uint32_t flags[] = {OCC_KERNEL_FILL, OCC_KERNEL_COPY};
    for (uint32_t i = 0; i < 2; i++) {
        struct occ_record_kernel kernel = {.record.type = OCC_RECORD_KERNEL,
                                           .id = i + 1,
                                           .name_bytes = 2,
                                           .name_hash = occ_fnv1a("m", 1),
                                           .flags = flags[i]};
        struct occ_record_config config = sample_config(i + 1);
        config.kernel = i + 1;
        config.grid[0] = 8 + i; /* size class 7 + i */
        assert_true(occ_ring_log(ring, &kernel.record, sizeof kernel, "m", 2));
        assert_true(occ_ring_log(ring, &config.record, sizeof config, NULL, 0));
    }
}

/* A program sends them only while counters measure its launches. */
static void memory_operations_are_asked_for_beside_counters(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    make_ring(&ring, 512);
    struct occ_producer *p = offer(b, &ring);
    occ_producer_want_memory(p, false);
    assert_false(occ_ring_wants_memory(&ring));
    occ_producer_set_counters(p, "full", "");
    occ_producer_want_memory(p, true);
    assert_true(occ_ring_wants_memory(&ring));
    occ_ring_reset_requests(&ring); /* the program has lost its connection, and comes back */
    occ_producer_want_memory(p, true);
    assert_true(occ_ring_wants_memory(&ring));
    occ_producer_want_memory(p, false); /* the counters are paused; the run keeps its level */
    assert_false(occ_ring_wants_memory(&ring));
    p->run.is_without_counters = true;
    occ_producer_want_memory(p, true);
    assert_false(occ_ring_wants_memory(&ring));
    occ_ring_destroy(&ring);
}

/* They are no launches of the history: no row, no kernel, no loss. */
static void memory_operations_are_not_stored(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    struct occ_collector_options options = options_of(b);
    options.appended = on_appended;
    options.memory = on_memory;
    occ_collector_free(b->collector);
    assert_int_equal(occ_collector_new(b->store, &options, &b->collector, NULL), 0);
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    log_memory(&ring);
    struct occ_producer *p = offer(b, &ring);
    for (uint64_t i = 0; i < 90; i++) {
        struct occ_ring_launch l = sample_launch(i < 30 ? i : i + 1000);
        l.config = i < 30 ? 0 : i % 3 == 0 ? 1 : 2;
        assert_true(occ_ring_push(&ring, &l));
    }
    poll_after(b, SECOND);
    assert_exactly(b->store, 30);
    assert_int_equal(b->appended, 30);
    assert_int_equal(b->fills, 20);
    assert_int_equal(b->copies, 40);
    assert_int_equal(b->store->n_shapes, 1);
    assert_int_equal(p->refused_config, 0);
    assert_int_equal(ring.header->tail, 90);
    occ_ring_destroy(&ring);
}

/* A store that fails after the operations were handed on does not get them again. */
static void memory_operations_come_once_beside_a_failing_store(void **state)
{
    struct bench *b = *state;
    struct occ_ring_producer ring;
    struct occ_collector_options options = options_of(b);
    options.memory = on_memory;
    occ_collector_free(b->collector);
    assert_int_equal(occ_collector_new(b->store, &options, &b->collector, NULL), 0);
    make_ring(&ring, 512);
    assert_true(log_samples(&ring));
    log_memory(&ring);
    offer(b, &ring);
    poll_after(b, SECOND);
    b->store->fail_append = OCC_E_BUSY;
    for (uint64_t i = 0; i < 40; i++) {
        struct occ_ring_launch l = sample_launch(i < 20 ? i : i + 1000);
        l.config = i < 20 ? 0 : 1;
        assert_true(occ_ring_push(&ring, &l));
    }
    for (int i = 0; i < 3; i++)
        poll_after(b, SECOND);
    b->store->fail_append = 0;
    for (int i = 0; i < 20; i++)
        poll_after(b, SECOND);
    assert_exactly(b->store, 20);
    assert_int_equal(b->fills, 20);
    occ_ring_destroy(&ring);
}

int main(void)
{
    occ_log_set_level(OCC_LOG_ERROR);
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(launches_reach_the_store),
        T(slots_come_back_only_after_the_commit),
        T(a_ring_that_is_half_full_is_committed_early),
        T(a_crash_at_any_moment_loses_and_repeats_nothing),
        T(launches_have_their_ranges),
        T(exact_values_count_once),
        T(two_histories_share_a_run),
        T(exact_values_that_come_late_count_once),
        T(exact_values_wait_for_their_launches),
        T(tables_have_a_limit),
        T(exact_values_beyond_the_gpu_are_not_taken),
        T(a_full_disk_stops_reading_and_nothing_is_lost),
        T(what_the_log_says_waits_for_the_store),
        T(a_row_that_the_store_did_not_take_is_put_again),
        T(faults_anywhere_in_the_store_are_tried_again),
        T(a_broken_ring_keeps_what_was_sound),
        T(a_configuration_that_never_comes_keeps_no_dead_program),
        T(one_broken_ring_does_not_touch_another),
        T(times_at_the_end_of_time_stop_nobody),
        T(another_user_cannot_take_over_a_run),
        T(a_ring_stays_with_its_process_and_user),
        T(a_dead_program_is_drained_and_its_run_ends),
        T(a_run_ends_after_its_launches),
        T(a_failing_store_has_time_to_recover),
        T(a_run_goes_on_until_all_is_read),
        T(a_closed_ring_ends_at_its_own_word),
        T(moments_of_the_future_are_not_believed),
        T(an_orphan_is_read_while_its_heart_beats),
        T(an_orphan_that_launches_lives),
        T(an_orphan_that_connects_again_changes_its_owner),
        T(a_program_that_execs_ends_its_old_run),
        T(the_same_ring_again_goes_on),
        T(losses_can_be_added_up),
        T(limits_hold),
        T(what_is_no_ring_is_refused),
        T(what_a_program_says_of_itself),
        T(levels_after_the_first_are_periods),
        T(periods_are_bounded),
        T(periods_without_launches_are_holes),
        T(who_wants_no_counters_is_not_raised_by_them),
        T(a_reason_takes_no_counters_away),
        T(exact_values_that_fail_give_the_counters_back),
        T(each_device_has_its_launches),
        T(a_batch_that_is_appended_in_part_goes_on),
        T(stop_takes_all_there_is),
        T(stop_reads_every_program_first),
        T(more_records_than_one_poll_takes),
        T(polls_follow_the_load),
        T(a_clock_that_is_set_is_a_reason_of_the_run),
        T(new_limits_keep_the_hooks),
        T(memory_operations_are_asked_for_beside_counters),
        T(memory_operations_are_not_stored),
        T(memory_operations_come_once_beside_a_failing_store),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
