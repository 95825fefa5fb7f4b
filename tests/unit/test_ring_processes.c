/* ring/: two processes and two threads at once; a producer that is killed in the middle of a record. */
#include "ring_samples.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <cmocka.h>

#define SLOTS    1024u
#define LAUNCHES UINT64_C(200000)

/* Pushes every sample; waits (as no real producer does) when the ring is full, so that none is lost. */
static void produce_all(struct occ_ring_producer *p)
{
    for (uint64_t n = 0; n < LAUNCHES; n++) {
        struct occ_ring_launch launch = sample_launch(n);
        while (!occ_ring_push(p, &launch))
            sched_yield();
    }
    occ_ring_close(p);
}

/* Reads until the ring is closed and empty; the number of launches, each checked, or -1. */
static int64_t consume_all(struct occ_ring_consumer *c)
{
    struct occ_ring_launch launches[100];
    uint64_t next = 0;
    for (;;) {
        bool closed = occ_ring_is_closed(c); /* before the read: a ring closed now gets no more launches */
        size_t n = 0;
        if (drain_log(c) < 0 || occ_ring_read(c, launches, 100, &n) == OCC_RING_BROKEN)
            return -1;
        for (size_t i = 0; i < n; i++)
            if (!is_sample_launch(&launches[i], next + i))
                return -1;
        next += n;
        occ_ring_release(c, next);
        if (n == 0 && closed)
            return (int64_t)next;
        if (n == 0)
            sched_yield();
    }
}

static void test_two_processes(void **state)
{
    (void)state;
    struct occ_ring_producer p;
    assert_int_equal(occ_ring_create(&p, SLOTS, 4096), 0);
    assert_true(log_samples(&p));
    struct occ_ring_consumer *c = NULL;
    assert_int_equal(attach_to(&p, 0, &c), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        produce_all(&p);
        _exit(0);
    }
    assert_int_equal(consume_all(c), LAUNCHES);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    occ_ring_detach(c);
    occ_ring_destroy(&p);
}

static void *producer_thread(void *arg)
{
    produce_all(arg);
    return NULL;
}

static void test_two_threads(void **state)
{
    (void)state;
    struct occ_ring_producer p;
    assert_int_equal(occ_ring_create(&p, SLOTS, 4096), 0);
    assert_true(log_samples(&p));
    struct occ_ring_consumer *c = NULL;
    assert_int_equal(attach_to(&p, 0, &c), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, producer_thread, &p), 0);
    assert_int_equal(consume_all(c), LAUNCHES);
    pthread_join(thread, NULL);
    occ_ring_detach(c);
    occ_ring_destroy(&p);
}

/* The child fills a slot and part of a record but dies before it publishes either. */
static void die_while_filling(struct occ_ring_producer *p)
{
    for (uint64_t n = 0; n < 10; n++) {
        struct occ_ring_launch launch = sample_launch(n);
        occ_ring_push(p, &launch);
    }
    memset(&p->slots[p->head & p->mask], 0xee, 23);
    memset(p->log + p->log_head, 0xee, 100);
    raise(SIGKILL);
}

static void test_producer_killed_between_fill_and_publish(void **state)
{
    (void)state;
    struct occ_ring_producer p;
    assert_int_equal(occ_ring_create(&p, SLOTS, 4096), 0);
    assert_true(log_samples(&p));
    struct occ_ring_consumer *c = NULL;
    assert_int_equal(attach_to(&p, 0, &c), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        die_while_filling(&p);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    struct occ_ring_launch launches[20];
    size_t n;
    assert_int_equal(drain_log(c), 4);
    assert_int_equal(occ_ring_read(c, launches, 20, &n), OCC_RING_OK);
    assert_int_equal(n, 10);
    for (uint64_t i = 0; i < n; i++)
        assert_true(is_sample_launch(&launches[i], i));
    assert_int_equal(occ_ring_read(c, launches, 20, &n), OCC_RING_EMPTY);
    assert_false(occ_ring_is_closed(c));
    assert_null(occ_ring_broken_reason(c));
    occ_ring_detach(c);
    occ_ring_destroy(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_processes),
        cmocka_unit_test(test_two_threads),
        cmocka_unit_test(test_producer_killed_between_fill_and_publish),
    };
    return cmocka_run_group_tests_name("ring_processes", tests, NULL, NULL);
}
