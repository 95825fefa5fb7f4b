/*
 * The program's end. The guest's handler of atexit(3), or the library's destructor if the handler is lost,
 * asks the helper for its last round and waits a bounded time: CUPTI may hang. No cuptiFinalize, no
 * unloading, no join. The rest of that time is for a running daemon, until it owns the ring: it must identify
 * the program, which is possible only while the process exists.
 *
 * Handlers run in the reverse order of their registration. libcupti registers its own when it is loaded and
 * when it first sees a context; the guest's is registered after each of these, so that the last round does
 * not meet a libcupti that is torn down. Threads that call exit(3) at the same time run the handlers in
 * parallel, each the next one: the guest registers a handler for each thread, and all wait for the last
 * round.
 */
#include <stdlib.h>
#include <unistd.h>

#include "ask.h"
#include "clock.h"
#include "guest.h"
#include "guest_log.h"
#include "wake.h"

/* Time limit while the helper makes progress; and number of looks without progress, which means that CUPTI
 * hangs. The latter is no time: on a full machine the helper and this thread both wait for a processor. */
#define LIMIT_NS       UINT64_C(2000000000)
#define PATIENCE_LOOKS 25
#define LOOK_NS        UINT64_C(20000000)
/* Handlers left while one registers itself again. */
#define SPARE_HANDLERS 3

/* Grows while the helper works: its steps, and its CPU time within a step. */
static uint64_t progress_of(struct occ_guest *g)
{
    int clock = atomic_load_explicit(&g->helper_clock, memory_order_relaxed);
    return atomic_load_explicit(&g->drain.steps, memory_order_relaxed) + (clock ? occ_clock_ns(clock) : 0);
}

uint64_t occ_exit_limit_ns(struct occ_guest *g)
{
    uint64_t none = 0, limit_ns = occ_clock_ns(CLOCK_MONOTONIC) + LIMIT_NS;
    return atomic_compare_exchange_strong(&g->leave_ns, &none, limit_ns) ? limit_ns : none;
}

static void wait_for_helper(struct occ_guest *g)
{
    uint64_t limit_ns = occ_exit_limit_ns(g), progress = progress_of(g);
    int still = 0; /* looks in a row */
    while (atomic_load_explicit(&g->finished, memory_order_acquire) == 0 && still < PATIENCE_LOOKS &&
           occ_clock_ns(CLOCK_MONOTONIC) < limit_ns) {
        /* the whole time, also with a signal each millisecond */
        (void)occ_wake_await(&g->finished, occ_clock_ns(CLOCK_MONOTONIC) + LOOK_NS);
        uint64_t seen = progress;
        progress = progress_of(g);
        still = progress == seen ? still + 1 : 0;
    }
    if (atomic_load_explicit(&g->finished, memory_order_acquire) == 0 &&
        !atomic_exchange_explicit(&g->drain.is_stopped, true, memory_order_acq_rel)) {
        /* CUPTI may be torn down from now on. The ring stays open, which tells the daemon that an unknown
         * number of records is missing. */
        occ_guest_log("CUPTI did not return its records in time");
    }
}

/* The helper offers the ring; it has no other work left that could hang. */
static void wait_for_daemon(struct occ_guest *g)
{
    (void)occ_wake_await(&g->settled, occ_exit_limit_ns(g));
}

static bool is_in_last_round(struct occ_guest *g)
{
    return atomic_load_explicit(&g->closing, memory_order_acquire) != 0 &&
           atomic_load_explicit(&g->settled, memory_order_acquire) == 0 && !occ_drain_is_stopped(&g->drain) &&
           occ_clock_ns(CLOCK_MONOTONIC) < occ_exit_limit_ns(g);
}

/* Waits a bounded time for the helper's last round and for a daemon. Later calls return at once. */
static void finish(void)
{
    struct occ_guest *g = occ_guest();
    int quiet = OCC_GUEST_QUIET;
    if (g->pid != getpid())
        return;
    if (g->asks)
        occ_ask_finish(g, occ_exit_limit_ns(g));
    if (atomic_load(&g->state) == OCC_GUEST_RUNNING) {
        if (g->tracing.nvtx)
            g->tracing.nvtx->attach(NULL);
        atomic_store_explicit(&g->closing, 1, memory_order_release);
        atomic_store(&g->state, OCC_GUEST_CLOSED);
        occ_wake(&g->wake);
    } else if (atomic_compare_exchange_strong(&g->state, &quiet, OCC_GUEST_CLOSED)) {
        occ_guest_close_ring(g);
        (void)occ_link_finish(&g->link, &g->ring, &g->memfd, occ_exit_limit_ns(g));
    }
    if (is_in_last_round(g))
        wait_for_helper(g);
    if (is_in_last_round(g))
        wait_for_daemon(g);
}

__attribute__((destructor)) static void on_unload(void)
{
    finish();
}

static void on_exit_called(void)
{
    struct occ_guest *g = occ_guest();
    if (g->pid == getpid() && (atomic_load(&g->state) == OCC_GUEST_RUNNING || is_in_last_round(g)))
        (void)atexit(on_exit_called);
    finish();
}

void occ_exit_prepare(void)
{
    for (int i = 0; i <= SPARE_HANDLERS; i++)
        (void)atexit(on_exit_called);
}
