/*
 * The simulation's clock. See clock.h. Lock-free; any thread.
 */
#include "clock.h"

#include "env.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#define SPIN_NS 60000 /* waits shorter than a sleep's minimum are spun */

static _Atomic uint64_t virtual_now = SIM_CLOCK_EPOCH_NS;

static uint64_t wall_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t sim_clock_now(void)
{
    return sim_env()->clock_mode == SIM_CLOCK_VIRTUAL ? atomic_load(&virtual_now) : wall_now();
}

void sim_clock_spend(uint64_t ns)
{
    if (sim_env()->clock_mode == SIM_CLOCK_VIRTUAL)
        atomic_fetch_add(&virtual_now, ns);
}

static void move_virtual(uint64_t ns)
{
    uint64_t now = atomic_load(&virtual_now);
    while (now < ns && !atomic_compare_exchange_weak(&virtual_now, &now, ns))
        ;
}

void sim_clock_wait_until(uint64_t ns)
{
    enum sim_clock_mode mode = sim_env()->clock_mode;
    if (mode == SIM_CLOCK_VIRTUAL)
        move_virtual(ns);
    if (mode != SIM_CLOCK_REAL)
        return;
    uint64_t now = wall_now();
    while (now < ns && ns - now > SPIN_NS) {
        struct timespec left = {.tv_sec = (time_t)((ns - now) / UINT64_C(1000000000)),
                                .tv_nsec = (long)((ns - now) % UINT64_C(1000000000))};
        nanosleep(&left, NULL);
        now = wall_now();
    }
    while (wall_now() < ns)
        ;
}
