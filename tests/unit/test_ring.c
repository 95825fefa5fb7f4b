/* ring/ between an honest producer and an honest consumer: all records arrive; full ring, wrap-around, taking
 * up again. */
#include "ring_samples.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define SLOTS OCC_RING_MIN_SLOTS

struct fixture {
    struct occ_ring_producer producer;
    struct occ_ring_consumer *consumer;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (occ_ring_create(&f->producer, SLOTS, 65536) != 0 || !log_samples(&f->producer))
        return -1;
    return attach_to(&f->producer, 0, &f->consumer);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    occ_ring_detach(f->consumer);
    occ_ring_destroy(&f->producer);
    free(f);
    return 0;
}

static void push_samples(struct fixture *f, uint64_t from, uint64_t to)
{
    for (uint64_t n = from; n < to; n++) {
        struct occ_ring_launch launch = sample_launch(n);
        assert_true(occ_ring_push(&f->producer, &launch));
    }
}

/* Reads `count` launches that must be numbers `from` and on. */
static void read_samples(struct fixture *f, uint64_t from, size_t count)
{
    struct occ_ring_launch launches[SLOTS];
    size_t n = 0;
    assert_int_equal(occ_ring_read(f->consumer, launches, count, &n), OCC_RING_OK);
    assert_int_equal(n, count);
    for (size_t i = 0; i < n; i++)
        assert_true(is_sample_launch(&launches[i], from + i));
}

static void test_geometry_is_checked_by_create(void **state)
{
    (void)state;
    static const struct {
        uint32_t slots;
        uint64_t log_bytes;
    } bad[] = {{0, 4096},
               {OCC_RING_MIN_SLOTS / 2, 4096},
               {OCC_RING_MIN_SLOTS + 1, 4096},
               {OCC_RING_MAX_SLOTS * 2, 4096},
               {SLOTS, 0},
               {SLOTS, 4097},
               {SLOTS, OCC_RING_MAX_LOG_BYTES + 4096}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct occ_ring_producer p;
        assert_int_equal(occ_ring_create(&p, bad[i].slots, bad[i].log_bytes), -EINVAL);
        assert_int_equal(p.fd, -1);
        occ_ring_destroy(&p);
    }
}

static void test_memfd_is_sealed_and_closes_on_exec(void **state)
{
    struct fixture *f = *state;
    int seals = fcntl(f->producer.fd, F_GET_SEALS);
    assert_int_equal(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
                     F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    assert_true(fcntl(f->producer.fd, F_GETFD) & FD_CLOEXEC);
    assert_true(f->producer.fd > 2);
    assert_int_equal(ftruncate(f->producer.fd, 0), -1);
}

static void test_create_avoids_the_standard_descriptors(void **state)
{
    (void)state;
    int saved = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    struct occ_ring_producer p;
    int rc = occ_ring_create(&p, SLOTS, 4096);
    int fd = p.fd;
    int stdin_is_free = fcntl(STDIN_FILENO, F_GETFD) == -1;
    if (saved >= 0) {
        dup2(saved, STDIN_FILENO);
        close(saved);
    }
    assert_int_equal(rc, 0);
    assert_true(fd > 2);
    assert_true(stdin_is_free);
    occ_ring_destroy(&p);
}

static void test_records_come_in_order_and_once(void **state)
{
    struct fixture *f = *state;
    const struct occ_log_record *record;
    assert_int_equal(occ_ring_next_log_record(f->consumer, &record), OCC_RING_OK);
    assert_int_equal(record->type, OCC_RECORD_PROCESS);
    assert_string_equal((const char *)record + sizeof(struct occ_record_process), "exe");
    assert_int_equal(occ_ring_next_log_record(f->consumer, &record), OCC_RING_OK);
    assert_int_equal(record->type, OCC_RECORD_DEVICE);
    assert_int_equal(((const struct occ_record_device *)(const void *)record)->sm_count, 132);
    assert_int_equal(occ_ring_next_log_record(f->consumer, &record), OCC_RING_OK);
    assert_int_equal(record->type, OCC_RECORD_KERNEL);
    assert_string_equal((const char *)record + sizeof(struct occ_record_kernel), "_Z4axpyPf");
    assert_int_equal(occ_ring_next_log_record(f->consumer, &record), OCC_RING_OK);
    assert_int_equal(record->type, OCC_RECORD_CONFIG);
    assert_int_equal(occ_ring_next_log_record(f->consumer, &record), OCC_RING_EMPTY);
    assert_true(log_kernel(&f->producer, 1, "late"));
    assert_int_equal(occ_ring_next_log_record(f->consumer, &record), OCC_RING_OK);
    assert_int_equal(((const struct occ_record_kernel *)(const void *)record)->id, 1);
    assert_int_equal(occ_ring_next_log_record(f->consumer, &record), OCC_RING_EMPTY);
}

static void test_records_of_unknown_types_are_skipped(void **state)
{
    struct fixture *f = *state;
    struct {
        struct occ_log_record record;
        uint64_t body;
    } newer = {.record.type = 999, .body = 1};
    assert_true(occ_ring_log(&f->producer, &newer.record, sizeof newer, "what", 5));
    assert_true(log_kernel(&f->producer, 1, "after"));
    const struct occ_log_record *record = NULL;
    for (int i = 0; i < 5; i++)
        assert_int_equal(occ_ring_next_log_record(f->consumer, &record), OCC_RING_OK);
    assert_int_equal(record->type, OCC_RECORD_KERNEL);
    assert_string_equal((const char *)record + sizeof(struct occ_record_kernel), "after");
    assert_int_equal(occ_ring_next_log_record(f->consumer, &record), OCC_RING_EMPTY);
}

static void test_log_keeps_room_for_the_last_word(void **state)
{
    struct fixture *f = *state;
    uint32_t kernels = 1;
    while (log_kernel(&f->producer, kernels, "a kernel with a rather long name"))
        kernels++;
    struct occ_record_state last = {.record.type = OCC_RECORD_STATE, .level = OCC_LEVEL_TRACE};
    struct occ_record_closed closed = {.record.type = OCC_RECORD_CLOSED};
    uint64_t before = f->producer.log_head;
    assert_false(log_config(&f->producer, 1) && log_kernel(&f->producer, kernels, "x"));
    assert_true(f->producer.log_head - before <= sizeof(struct occ_record_config));
    assert_true(occ_ring_log(&f->producer, &last.record, sizeof last, NULL, 0));
    assert_true(occ_ring_log(&f->producer, &closed.record, sizeof closed, NULL, 0));
    assert_true(drain_log(f->consumer) >= (int)kernels + 5);
}

static void test_measured_values_leave_half_of_the_log(void **state)
{
    struct fixture *f = *state;
    struct occ_record_measured m = sample_measured(1, 1);
    uint64_t half = f->producer.log_bytes / 2;
    while (occ_ring_log(&f->producer, &m.record, sizeof m, NULL, 0))
        ;
    assert_true(f->producer.log_head <= half && f->producer.log_head > half - sizeof m);
    assert_true(log_kernel(&f->producer, 1, "another") && log_config(&f->producer, 1));
}

static void test_record_larger_than_the_limit_is_refused(void **state)
{
    struct fixture *f = *state;
    static char text[OCC_RECORD_MAX_BYTES];
    struct occ_record_process p = {.record.type = OCC_RECORD_PROCESS};
    uint64_t before = f->producer.log_head;
    assert_false(occ_ring_log(&f->producer, &p.record, sizeof p, text, sizeof text));
    assert_int_equal(f->producer.log_head, before);
}

static void test_launches_wrap_around(void **state)
{
    struct fixture *f = *state;
    drain_log(f->consumer);
    uint64_t n = 0;
    for (int round = 0; round < 50; round++) { /* 100 does not divide 256: every offset of the seam is met */
        push_samples(f, n, n + 100);
        read_samples(f, n, 100);
        n += 100;
        occ_ring_release(f->consumer, n);
    }
    assert_int_equal(occ_ring_position(f->consumer), n);
}

static void test_full_ring_drops_the_newest_and_counts(void **state)
{
    struct fixture *f = *state;
    drain_log(f->consumer);
    push_samples(f, 0, SLOTS);
    struct occ_ring_launch more = sample_launch(SLOTS);
    for (int i = 0; i < 5; i++)
        assert_false(occ_ring_push(&f->producer, &more));
    assert_int_equal(occ_ring_lost(f->consumer, OCC_LOSS_RING_FULL), 5);
    assert_int_equal(occ_ring_pending(f->consumer), SLOTS);
    assert_true(occ_ring_fill(f->consumer) == 1.0);

    read_samples(f, 0, SLOTS); /* read, but not released: still no room */
    assert_false(occ_ring_push(&f->producer, &more));
    assert_int_equal(occ_ring_pending(f->consumer), 0);
    occ_ring_release(f->consumer, 10);
    push_samples(f, SLOTS, SLOTS + 10);
    assert_false(occ_ring_push(&f->producer, &more));
    read_samples(f, SLOTS, 10);
    assert_int_equal(occ_ring_lost(f->consumer, OCC_LOSS_RING_FULL), 7);
}

static void test_release_is_clamped(void **state)
{
    struct fixture *f = *state;
    drain_log(f->consumer);
    push_samples(f, 0, 20);
    read_samples(f, 0, 10);
    occ_ring_release(f->consumer, 1000);
    assert_int_equal(atomic_load(&f->producer.header->tail), 10);
    occ_ring_release(f->consumer, 3);
    assert_int_equal(atomic_load(&f->producer.header->tail), 10);
}

static void test_taking_up_at_a_position(void **state)
{
    struct fixture *f = *state;
    drain_log(f->consumer);
    push_samples(f, 0, 200);
    read_samples(f, 0, 150);
    occ_ring_release(f->consumer, 100); /* the daemon dies before it releases all 120 committed */
    occ_ring_detach(f->consumer);
    f->consumer = NULL;
    push_samples(f, 200, 260);
    assert_int_equal(attach_to(&f->producer, 120, &f->consumer), 0);
    assert_int_equal(atomic_load(&f->producer.header->tail), 120);
    assert_int_equal(drain_log(f->consumer), 4); /* the whole log again */
    read_samples(f, 120, 140);
    size_t n = 1;
    struct occ_ring_launch one;
    assert_int_equal(occ_ring_read(f->consumer, &one, 1, &n), OCC_RING_EMPTY);
    assert_int_equal(n, 0);
}

static void test_taking_up_below_the_tail_continues_at_the_tail(void **state)
{
    struct fixture *f = *state;
    drain_log(f->consumer);
    push_samples(f, 0, 100);
    read_samples(f, 0, 100);
    occ_ring_release(f->consumer, 60);
    occ_ring_detach(f->consumer);
    assert_int_equal(attach_to(&f->producer, 0, &f->consumer), 0); /* a new database, without a position */
    assert_int_equal(occ_ring_position(f->consumer), 60);
    drain_log(f->consumer);
    read_samples(f, 60, 40);
}

static void test_taking_up_beyond_the_head_is_refused(void **state)
{
    struct fixture *f = *state;
    push_samples(f, 0, 10);
    struct occ_ring_consumer *none = NULL;
    assert_int_equal(attach_to(&f->producer, 11, &none), -EINVAL);
    assert_null(none);
}

static void test_reading_stops_before_a_config_that_was_not_handed_out(void **state)
{
    struct fixture *f = *state;
    drain_log(f->consumer);
    push_samples(f, 0, 3);
    assert_true(log_config(&f->producer, 1)); /* after the consumer drained the log */
    struct occ_ring_launch launch = sample_launch(3), launches[8];
    launch.config = 1;
    assert_true(occ_ring_push(&f->producer, &launch));
    read_samples(f, 0, 3);
    size_t n;
    assert_int_equal(occ_ring_read(f->consumer, launches, 8, &n), OCC_RING_EMPTY);
    assert_int_equal(drain_log(f->consumer), 1);
    assert_int_equal(occ_ring_read(f->consumer, launches, 8, &n), OCC_RING_OK);
    assert_int_equal(n, 1);
    assert_int_equal(launches[0].config, 1);
}

static void test_header_counters_and_closing(void **state)
{
    struct fixture *f = *state;
    occ_ring_count_loss(&f->producer, OCC_LOSS_BAD_TIMES, 3);
    occ_ring_count_loss(&f->producer, OCC_LOSS_BAD_TIMES, 4);
    occ_ring_set_cost(&f->producer, OCC_COST_INIT_NS, 55);
    occ_ring_heartbeat(&f->producer, 77);
    assert_int_equal(occ_ring_lost(f->consumer, OCC_LOSS_BAD_TIMES), 7);
    assert_int_equal(occ_ring_lost(f->consumer, OCC_LOSS_EXIT), 0);
    assert_int_equal(occ_ring_cost(f->consumer, OCC_COST_INIT_NS), 55);
    assert_int_equal(occ_ring_heartbeat_ns(f->consumer), 77);
    assert_int_equal(occ_ring_start_ns(f->consumer), f->producer.header->start_ns);
    assert_memory_equal(occ_ring_uuid(f->consumer), f->producer.header->uuid, 16);
    assert_false(occ_ring_is_closed(f->consumer));
    occ_ring_close(&f->producer);
    assert_true(occ_ring_is_closed(f->consumer));
    assert_null(occ_ring_broken_reason(f->consumer));
}

static void test_detach_and_destroy_accept_nothing(void **state)
{
    (void)state;
    struct occ_ring_producer zeroed = {0};
    occ_ring_detach(NULL);
    occ_ring_destroy(&zeroed);
    assert_int_equal(zeroed.fd, -1);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) != -1 || errno == EBADF);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_geometry_is_checked_by_create),
        TEST(test_memfd_is_sealed_and_closes_on_exec),
        cmocka_unit_test(test_create_avoids_the_standard_descriptors),
        TEST(test_records_come_in_order_and_once),
        TEST(test_records_of_unknown_types_are_skipped),
        TEST(test_log_keeps_room_for_the_last_word),
        TEST(test_measured_values_leave_half_of_the_log),
        TEST(test_record_larger_than_the_limit_is_refused),
        TEST(test_launches_wrap_around),
        TEST(test_full_ring_drops_the_newest_and_counts),
        TEST(test_release_is_clamped),
        TEST(test_taking_up_at_a_position),
        TEST(test_taking_up_below_the_tail_continues_at_the_tail),
        TEST(test_taking_up_beyond_the_head_is_refused),
        TEST(test_reading_stops_before_a_config_that_was_not_handed_out),
        TEST(test_header_counters_and_closing),
        cmocka_unit_test(test_detach_and_destroy_accept_nothing),
    };
    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
