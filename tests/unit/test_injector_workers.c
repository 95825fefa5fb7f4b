/*
 * injector/workers: CUPTI's threads and the program's are told apart by their signal mask, whatever begins
 * while the guest starts CUPTI.
 */
#include "injector/workers.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- threads ---- */

struct thread {
    pthread_t id;
    pthread_barrier_t has_begun, may_end;
    const sigset_t *mask; /* NULL: the inherited one */
    pid_t tid;
    bool has_mask;
};

static void *run(void *context)
{
    struct thread *t = context;
    if (t->mask)
        (void)pthread_sigmask(SIG_SETMASK, t->mask, NULL);
    t->tid = (pid_t)syscall(SYS_gettid);
    t->has_mask = occ_workers_has_mask();
    (void)pthread_barrier_wait(&t->has_begun);
    (void)pthread_barrier_wait(&t->may_end);
    return NULL;
}

static void create(struct thread *t)
{
    assert_int_equal(pthread_barrier_init(&t->has_begun, NULL, 2), 0);
    assert_int_equal(pthread_barrier_init(&t->may_end, NULL, 2), 0);
    assert_int_equal(pthread_create(&t->id, NULL, run, t), 0);
}

static void begin(struct thread *t)
{
    create(t);
    (void)pthread_barrier_wait(&t->has_begun);
}

static void end(struct thread *t)
{
    (void)pthread_barrier_wait(&t->may_end);
    (void)pthread_join(t->id, NULL);
}

/* ---- the caller's mask ---- */

static sigset_t before;

static int set_up(void **state)
{
    (void)state;
    return pthread_sigmask(SIG_SETMASK, NULL, &before);
}

static int tear_down(void **state)
{
    (void)state;
    (void)signal(SIGSTKFLT, SIG_DFL);
    return pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Takes the mask as the guest does. */
static sigset_t take_mask(void)
{
    sigset_t mask = occ_workers_mask(&before);
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return mask;
}

static void a_worker_is_the_thread_that_inherits_the_mask(void **state)
{
    (void)state;
    sigset_t all;
    struct occ_workers workers;
    (void)sigfillset(&all);
    struct thread cuptis = {.mask = NULL}, blocks_all = {.mask = &all}, blocks_none = {.mask = &before};
    (void)take_mask();
    occ_workers_begin();
    begin(&cuptis);
    begin(&blocks_all);
    begin(&blocks_none);
    occ_workers_end(&workers);
    assert_int_equal(workers.n, 1);
    assert_int_equal(workers.threads[0], cuptis.tid);
    assert_true(cuptis.has_mask);
    assert_false(blocks_all.has_mask);
    assert_false(blocks_none.has_mask);
    assert_int_equal(occ_workers_alive(&workers, 0), 1);
    end(&cuptis);
    end(&blocks_all);
    end(&blocks_none);
}

/* A thread that was there before is nobody's of CUPTI. */
static void an_older_thread_is_no_worker(void **state)
{
    (void)state;
    struct occ_workers workers;
    struct thread older = {.mask = NULL};
    (void)take_mask();
    begin(&older);
    occ_workers_begin();
    occ_workers_end(&workers);
    assert_int_equal(workers.n, 0);
    end(&older);
}

/* A thread created just before the look may not have begun to run: CUPTI's is kept, the program's is not. */
static void a_thread_just_created_is_looked_at_again(void **state)
{
    (void)state;
    sigset_t all;
    (void)sigfillset(&all);
    for (int i = 0; i < 200; i++) {
        struct occ_workers workers;
        struct thread cuptis = {.mask = NULL}, theirs = {.mask = &all};
        (void)take_mask();
        occ_workers_begin();
        create(&cuptis);
        (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
        create(&theirs);
        (void)take_mask();
        occ_workers_end(&workers);
        assert_true(workers.n == 1 || workers.unborn != 0);
        (void)pthread_barrier_wait(&cuptis.has_begun);
        (void)pthread_barrier_wait(&theirs.has_begun);
        (void)occ_workers_settle(&workers);
        assert_int_equal(workers.n, 1);
        assert_int_equal(workers.threads[0], cuptis.tid);
        assert_false(occ_workers_settle(&workers));
        end(&cuptis);
        end(&theirs);
    }
}

static void a_signal_that_the_program_uses_is_no_mark(void **state)
{
    (void)state;
    sigset_t mask = occ_workers_mask(&before);
    assert_int_equal(sigismember(&mask, SIGSTKFLT), 0);
    (void)signal(SIGSTKFLT, SIG_IGN);
    mask = occ_workers_mask(&before);
    assert_int_equal(sigismember(&mask, SIGSTKFLT), 1);
    assert_int_equal(sigismember(&mask, SIGRTMAX), 0);
    (void)signal(SIGSTKFLT, SIG_DFL);
    sigset_t blocked = before;
    (void)sigaddset(&blocked, SIGSTKFLT);
    mask = occ_workers_mask(&blocked);
    assert_int_equal(sigismember(&mask, SIGSTKFLT), 1);
}

/* The program blocks all signals, to wait for them: no thread can be told from its own. */
static void without_a_free_signal_nobody_is_recognised(void **state)
{
    (void)state;
    sigset_t all, mask;
    struct occ_workers workers;
    struct thread inherits = {.mask = NULL};
    (void)sigfillset(&all);
    mask = occ_workers_mask(&all);
    for (int signal = 1; signal <= SIGRTMAX; signal++)
        assert_int_equal(sigismember(&mask, signal), sigismember(&all, signal));
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    occ_workers_begin();
    begin(&inherits);
    occ_workers_end(&workers);
    assert_int_equal(workers.n, 0);
    assert_false(inherits.has_mask);
    end(&inherits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_worker_is_the_thread_that_inherits_the_mask, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_older_thread_is_no_worker, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_thread_just_created_is_looked_at_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_signal_that_the_program_uses_is_no_mark, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_free_signal_nobody_is_recognised, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
