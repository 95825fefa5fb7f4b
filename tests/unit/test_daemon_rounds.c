/* The daemon's loop sleeps while it has no work: the test counts its calls of epoll_wait(2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "daemon_served.h"

#define TURNS_NS INT64_C(5000000)
#define ROUNDS   40

/* The daemon's rounds, in memory that it shares with the test. */
static struct rounds {
    _Atomic uint64_t slept, spun;
} * rounds;

int __real_epoll_wait(int epoll, struct epoll_event *events, int n, int timeout_ms);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int n, int timeout_ms);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int n, int timeout_ms)
{
    atomic_fetch_add(timeout_ms == 0 ? &rounds->spun : &rounds->slept, 1);
    return __real_epoll_wait(epoll, events, n, timeout_ms);
}

/* A round without sleep is correct if a deadline passed since the round began: it does the due work, and the
 * next round sleeps. */
static void assert_sleeps(struct place *p)
{
    p->split = true;
    p->idle_ns = INT64_C(3600000000000);
    start(p, INT64_C(3600000000000));
    while (atomic_load(&rounds->slept) + atomic_load(&rounds->spun) < ROUNDS)
        pause_ms(5);
    suspend(p);
    uint64_t slept = atomic_load(&rounds->slept), spun = atomic_load(&rounds->spun);
    assert_int_equal(kill(p->daemon, SIGCONT), 0);
    assert_stops(p);
    if (spun > slept)
        fail_msg("%llu rounds slept, %llu did not", (unsigned long long)slept, (unsigned long long)spun);
}

static void the_loop_sleeps_until_a_census(void **state)
{
    struct place *p = *state;
    p->census_ns = TURNS_NS;
    p->max_total_bytes = UINT64_C(1) << 30;
    assert_sleeps(p);
}

static void the_loop_sleeps_until_the_next_closed_upkeep(void **state)
{
    struct place *p = *state;
    p->closed_upkeep_ns = TURNS_NS;
    assert_sleeps(p);
}

static int set_up(void **state)
{
    rounds = mmap(NULL, sizeof *rounds, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return rounds == MAP_FAILED ? -1 : setup(state);
}

static int tear_down(void **state)
{
    return munmap(rounds, sizeof *rounds) == 0 ? teardown(state) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_loop_sleeps_until_a_census, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_loop_sleeps_until_the_next_closed_upkeep, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("rounds", tests, NULL, NULL);
}
