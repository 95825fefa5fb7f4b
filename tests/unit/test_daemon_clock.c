/*
 * The machine's clocks around a collector with the service's limits: the wall clock is set, and the machine
 * sleeps, during which CLOCK_REALTIME and CLOCK_BOOTTIME continue and CLOCK_MONOTONIC stands still. No launch
 * is dropped for its time, and a run reports uncertain times only if they are uncertain. The test sets all
 * clocks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/collect/collector.h"
#include "daemon_fake_store.h"
#include "ring_samples.h"

#define SECOND INT64_C(1000000000)
#define HOUR   (3600 * SECOND)
#define DAY    (24 * HOUR)
#define EPOCH  (INT64_C(1700000000) * SECOND)
#define BOOT   (5000 * SECOND)
#define SKEW   (60 * SECOND) /* like the service */
#define EACH   20            /* launches per half */

static struct {
    int64_t wall_ns, boot_ns, monotonic_ns;
} clocks;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    int64_t ns = clock == CLOCK_REALTIME   ? clocks.wall_ns
                 : clock == CLOCK_BOOTTIME ? clocks.boot_ns
                                           : clocks.monotonic_ns;
    *ret = (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
    return 0;
}

static void pass(int64_t ns)
{
    clocks.wall_ns += ns;
    clocks.boot_ns += ns;
    clocks.monotonic_ns += ns;
}

struct bench {
    struct occ_store *store;
    struct occ_collector *collector;
    struct occ_ring_producer ring;
};

static int setup(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    const struct occ_collector_options options = {.commit_interval_ns = SECOND,
                                                  .memory_bytes = 32u << 20,
                                                  .max_producers = 4,
                                                  .max_ring_bytes = 41u << 20,
                                                  .skew_ns = SKEW};
    clocks.wall_ns = EPOCH;
    clocks.boot_ns = BOOT;
    clocks.monotonic_ns = BOOT;
    b->store = fake_store_new();
    *state = b;
    return occ_collector_new(b->store, &options, &b->collector, NULL);
}

static int teardown(void **state)
{
    struct bench *b = *state;
    occ_collector_free(b->collector);
    occ_ring_destroy(&b->ring);
    fake_store_free(b->store);
    free(b);
    return 0;
}

static void poll(struct bench *b)
{
    pass(2 * SECOND);
    occ_collector_poll(b->collector, clocks.monotonic_ns);
}

/* Offers a program that has started one second ago. */
static void offer(struct bench *b)
{
    struct occ_record_state said = {.record.type = OCC_RECORD_STATE, .level = OCC_LEVEL_TRACE};
    const struct occ_identity identity = {.start_boot_ns = clocks.boot_ns - SECOND};
    assert_int_equal(occ_ring_create(&b->ring, 256, 64u << 10), 0);
    assert_true(log_samples(&b->ring));
    assert_true(occ_ring_log(&b->ring, &said.record, sizeof said, NULL, 0));
    struct occ_offer offer = {
        .fd = dup(b->ring.fd), .peer = {.pid = 4242, .uid = 1000}, .identity = &identity};
    struct occ_producer *producer = NULL;
    memcpy(offer.uuid, b->ring.header->uuid, sizeof offer.uuid);
    assert_int_equal(occ_collector_offer(b->collector, &offer, clocks.monotonic_ns, &producer, NULL), 0);
}

static void launch(struct bench *b, int64_t start_ns, int64_t duration_ns)
{
    struct occ_ring_launch l = sample_launch(b->ring.head);
    l.start_ns = (uint64_t)start_ns;
    l.duration_ns = (uint64_t)duration_ns;
    assert_true(occ_ring_push(&b->ring, &l));
}

static void launch_now(struct bench *b)
{
    for (int i = 0; i < EACH; i++) {
        launch(b, clocks.wall_ns, 1000);
        pass(SECOND / 100);
    }
}

static const struct fake_run *run_of(const struct bench *b)
{
    return &b->store->committed.runs[0];
}

static void assert_all_kept(const struct bench *b)
{
    assert_int_equal(b->store->committed.n_rows, b->ring.head);
    assert_null(strstr(run_of(b)->losses, "bad_times"));
}

/* Sets the clock by a step between two polls, and later sets it right. */
static void a_clock_that_is_set_drops_nothing(void **state)
{
    struct bench *b = *state;
    static const struct {
        int64_t step_ns;
        const char *said;
    } steps[] = {{-120 * SECOND, " 120 s"}, {-HOUR, " 3600 s"}, {DAY, " 86400 s"}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (i > 0) {
            (void)teardown(state);
            assert_int_equal(setup(state), 0);
            b = *state;
        }
        offer(b);
        launch_now(b);
        poll(b);
        assert_string_equal(run_of(b)->reason, "");
        launch_now(b); /* read after the step */
        clocks.wall_ns += steps[i].step_ns;
        launch_now(b);
        poll(b);
        assert_all_kept(b);
        assert_int_equal(strncmp(run_of(b)->reason, "clock set: ", strlen("clock set: ")), 0);
        assert_non_null(strstr(run_of(b)->reason, steps[i].said));
        clocks.wall_ns -= steps[i].step_ns;
        launch_now(b);
        poll(b);
        assert_all_kept(b);
        assert_non_null(strstr(run_of(b)->reason, steps[i].said));
    }
}

/* The machine sleeps for a day, in the middle of a launch and before the earlier launches have been read. */
static void a_suspended_machine_is_no_clock_that_was_set(void **state)
{
    struct bench *b = *state;
    offer(b);
    launch_now(b);
    poll(b);
    launch_now(b);
    int64_t began_ns = clocks.wall_ns;
    clocks.wall_ns += DAY;
    clocks.boot_ns += DAY;
    launch(b, began_ns, clocks.wall_ns - began_ns);
    launch_now(b);
    poll(b);
    assert_all_kept(b);
    assert_string_equal(run_of(b)->reason, "");
}

/* Times that no setting of the clock explains are dropped and counted: a day ahead, or before the program. */
static void impossible_times_are_counted(void **state)
{
    struct bench *b = *state;
    offer(b);
    launch_now(b);
    launch(b, clocks.wall_ns + DAY, 1000);
    launch(b, EPOCH - DAY, 1000);
    poll(b);
    assert_int_equal(b->store->committed.n_rows, EACH);
    assert_non_null(strstr(run_of(b)->losses, "bad_times 2 "));
}

/* The daemon adds its count to a program's count at the maximum: the sum stays at the maximum and does not
 * wrap. */
static void a_hostile_count_does_not_wrap(void **state)
{
    struct bench *b = *state;
    char most[64];
    offer(b);
    b->ring.header->lost[OCC_LOSS_BAD_TIMES] = UINT64_MAX;
    launch(b, clocks.wall_ns + DAY, 1000);
    launch(b, EPOCH - DAY, 1000);
    poll(b);
    (void)snprintf(most, sizeof most, "bad_times %llu ", (unsigned long long)INT64_MAX / OCC_LOSS_COUNT);
    assert_string_equal(run_of(b)->losses, most);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_clock_that_is_set_drops_nothing),
        T(a_suspended_machine_is_no_clock_that_was_set),
        T(impossible_times_are_counted),
        T(a_hostile_count_does_not_wrap),
    };
    return cmocka_run_group_tests_name("clocks", tests, NULL, NULL);
}
