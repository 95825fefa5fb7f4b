/* See wake.h. */
#include "wake.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

void occ_wake(_Atomic uint32_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_release);
    (void)syscall(SYS_futex, counter, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void occ_wake_wait(_Atomic uint32_t *counter, uint32_t seen, uint64_t timeout_ns)
{
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                               .tv_nsec = (long)(timeout_ns % 1000000000u)};
    (void)syscall(SYS_futex, counter, FUTEX_WAIT_PRIVATE, seen, &timeout, NULL, 0);
}

bool occ_wake_await(_Atomic uint32_t *counter, uint64_t limit_ns)
{
    uint64_t now_ns;
    while (atomic_load(counter) == 0 && (now_ns = occ_clock_ns(CLOCK_MONOTONIC)) < limit_ns)
        occ_wake_wait(counter, 0, limit_ns - now_ns);
    return atomic_load(counter) != 0;
}
