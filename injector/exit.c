/*
 * The program's end. Our handler of atexit(3), and the library's destructor should that be lost, ask the
 * helper for its last round and wait a bounded time: CUPTI may hang. No cuptiFinalize, no unloading, no join.
 * The rest of that time is for a daemon that lives: until it owns the ring, since it must see who the program
 * is, which ends with the program.
 *
 * Handlers run in the reverse order of their registration, and libcupti registers its own when it is loaded
 * and when it first sees a context. Ours is registered after each of these: the last round must not meet a
 * libcupti that is torn down. Threads that call exit(3) at the same time run the handlers side by side, each
 * the next one: there is one of ours for each of them, which waits for the last round, too.
 */
#include <stdlib.h>
#include <unistd.h>

#include "ask.h"
#include "clock.h"
#include "guest.h"
#include "guest_log.h"
#include "wake.h"

/* While the helper moves; and without a sign of it, which is a CUPTI that hangs. The latter counts in looks,
 * not in time: on a full machine a helper that is nicer than others waits for a processor, and so does this
 * thread.
 */
#define LIMIT_NS       UINT64_C(2000000000)
#define PATIENCE_LOOKS 25
#define LOOK_NS        UINT64_C(20000000)
/* Handlers of ours that are left while one registers itself anew. */
#define SPARE_HANDLERS 3

/* Grows while the helper does something: its steps, and its CPU time within one. */
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
        occ_wake_wait(&g->finished, 0, LOOK_NS);
        uint64_t seen = progress;
        progress = progress_of(g);
        still = progress == seen ? still + 1 : 0;
    }
    if (atomic_load_explicit(&g->finished, memory_order_acquire) == 0 &&
        !atomic_exchange_explicit(&g->drain.is_stopped, true, memory_order_acq_rel)) {
        /* From now on CUPTI may be torn down. The ring stays open, which shows the daemon that records are
         * missing, not how many. */
        occ_guest_log("CUPTI did not return its records in time");
    }
}

/* The helper offers the ring; it has no other work that could hang. */
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

/* Waits for the helper's last round and for a daemon, a bounded time. Later calls do nothing. */
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
