/* The thread that queries the driver, in a program that forks, has real-time scheduling, or unloads the
 * driver. Each case is a process of its own, with injector_fake_cuda.c as the driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injector/ask.h"
#include "injector/guest.h"

#define SKIPPED 77

static struct {
    void *library;
    _Atomic int *gate, *is_inside, *policy, *forks;
    int opener; /* write end; a byte opens the gate */
} driver;

static void check(bool good)
{
    if (!good)
        _exit(99);
}

static void load_driver(void)
{
    driver.library = dlopen(OCC_FAKE_CUDA, RTLD_NOW);
    check(driver.library);
    driver.gate = dlsym(driver.library, "fake_cuda_gate");
    driver.is_inside = dlsym(driver.library, "fake_cuda_is_inside");
    driver.policy = dlsym(driver.library, "fake_cuda_policy");
    driver.forks = dlsym(driver.library, "fake_cuda_forks");
    check(driver.gate && driver.is_inside && driver.policy && driver.forks);
}

static void close_gate(void)
{
    int ends[2];
    check(pipe2(ends, O_CLOEXEC) == 0);
    atomic_store(driver.gate, ends[0]);
    driver.opener = ends[1];
}

static void open_gate(void)
{
    check(write(driver.opener, "g", 1) == 1);
}

static void start_asking(void)
{
    struct occ_guest *g = occ_guest();
    g->pid = getpid();
    g->ring.fd = -1;
    g->memfd = OCC_FD_NONE;
    check(occ_ring_create(&g->ring, OCC_RING_MIN_SLOTS, 65536) == 0);
    g->memfd = occ_fd_adopt(g->ring.fd);
    g->ring.fd = g->memfd.fd;
    occ_fork_prepare();
    occ_ask_start(g, "refused");
}

static void await_inside(void)
{
    while (!atomic_load(driver.is_inside))
        (void)poll(NULL, 0, 1);
}

static void await_answer(void)
{
    while (atomic_load(&occ_guest()->state) == OCC_GUEST_ASKING ||
           atomic_load(&occ_guest()->state) == OCC_GUEST_STARTING)
        (void)poll(NULL, 0, 1);
}

/* Returns true if the driver is within a call when the process forks. */
static bool is_inside_in_child(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(atomic_load(driver.is_inside));
    check(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status) != 0;
}

/* The fork opens the gate in a handler that runs before the guest's: the last registered handler runs first.
 */
static int fork_waits_for_the_answer(void)
{
    load_driver();
    close_gate();
    start_asking();
    await_inside();
    check(pthread_atfork(open_gate, NULL, NULL) == 0);
    return is_inside_in_child();
}

/* A driver that never answers holds the first fork for a bounded time. */
static int fork_does_not_wait_for_ever(void)
{
    load_driver();
    close_gate();
    start_asking();
    await_inside();
    for (int i = 0; i < 50; i++)
        check(is_inside_in_child());
    return 0;
}

/* The driver forks within cuInit: a fork that waits for the querying thread would wait for itself. */
static int the_asking_thread_may_fork(void)
{
    load_driver();
    atomic_store(driver.forks, 1);
    start_asking();
    await_answer();
    return atomic_load(&occ_guest()->state) != OCC_GUEST_QUIET;
}

static int the_thread_leaves_real_time_scheduling(void)
{
    const struct sched_param first = {.sched_priority = 1};
    load_driver();
    if (sched_setscheduler(0, SCHED_RR, &first) != 0)
        return SKIPPED;
    start_asking();
    await_answer();
    return atomic_load(driver.policy) != SCHED_OTHER;
}

/* The program's dlclose() unloads the driver: the guest holds no reference. */
static int the_driver_is_not_held(void)
{
    load_driver();
    start_asking();
    await_answer();
    check(dlclose(driver.library) == 0);
    return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) != NULL;
}

/* A program ends in a bounded time although its driver never answers. */
static int exit_does_not_wait_for_ever(void)
{
    load_driver();
    close_gate();
    start_asking();
    await_inside();
    occ_ask_finish(occ_guest(), occ_exit_limit_ns(occ_guest()));
    return atomic_load(&occ_guest()->state) != OCC_GUEST_CLOSED;
}

static void run(int (*program)(void))
{
    int status = -1;
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(program());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

#define PROGRAMS(X)                                                                                          \
    X(fork_waits_for_the_answer)                                                                             \
    X(fork_does_not_wait_for_ever)                                                                           \
    X(the_asking_thread_may_fork)                                                                            \
    X(the_thread_leaves_real_time_scheduling)                                                                \
    X(the_driver_is_not_held)                                                                                \
    X(exit_does_not_wait_for_ever)

#define CASE(name)                                                                                           \
    static void test_##name(void **state)                                                                    \
    {                                                                                                        \
        (void)state;                                                                                         \
        run(name);                                                                                           \
    }
PROGRAMS(CASE)

int main(void)
{
#define ENTRY(name) cmocka_unit_test(test_##name),
    const struct CMUnitTest tests[] = {PROGRAMS(ENTRY)};
    return cmocka_run_group_tests_name("asking the driver", tests, NULL, NULL);
}
