/*
 * The program's end. Our handler of atexit(3), and the library's destructor should that be lost, ask the
 * helper for its last round and wait a bounded time: CUPTI may hang or be torn down already. No
 * cuptiFinalize, no unloading, no join.
 */
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "guest.h"
#include "guest_log.h"
#include "wake.h"

#define DEADLINE_NS UINT64_C(200000000)

static void wait_for_helper(struct occ_guest *g)
{
    uint64_t deadline_ns = occ_clock_ns(CLOCK_MONOTONIC) + DEADLINE_NS;
    uint64_t now_ns;
    while (atomic_load_explicit(&g->finished, memory_order_acquire) == 0 &&
           (now_ns = occ_clock_ns(CLOCK_MONOTONIC)) < deadline_ns)
        occ_wake_wait(&g->finished, 0, deadline_ns - now_ns);
    if (atomic_load_explicit(&g->finished, memory_order_acquire) == 0)
        occ_guest_log("CUPTI did not return its records in time");
}

void occ_guest_finish(void)
{
    struct occ_guest *g = occ_guest();
    int running = OCC_GUEST_RUNNING, quiet = OCC_GUEST_QUIET;
    if (g->pid != getpid())
        return;
    if (atomic_compare_exchange_strong(&g->state, &running, OCC_GUEST_CLOSED)) {
        atomic_store_explicit(&g->closing, 1, memory_order_release);
        occ_wake(&g->wake);
        wait_for_helper(g);
    } else if (atomic_compare_exchange_strong(&g->state, &quiet, OCC_GUEST_CLOSED)) {
        occ_guest_close_ring(g);
    }
}

__attribute__((destructor)) static void on_unload(void)
{
    occ_guest_finish();
}

void occ_exit_prepare(void)
{
    static bool prepared;
    if (!prepared)
        prepared = atexit(occ_guest_finish) == 0;
}
