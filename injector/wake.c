/* See wake.h. */
#include "wake.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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
