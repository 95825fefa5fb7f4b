/* The system's clocks in nanoseconds. Any thread. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t occ_clock_of(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* CLOCK_REALTIME: since 1970. */
static inline int64_t occ_now_ns(void)
{
    return occ_clock_of(CLOCK_REALTIME);
}

/* CLOCK_BOOTTIME: since the machine started, suspended time included; never set. */
static inline int64_t occ_boot_ns(void)
{
    return occ_clock_of(CLOCK_BOOTTIME);
}

/* CLOCK_THREAD_CPUTIME_ID: processor time of the calling thread. */
static inline int64_t occ_thread_cpu_ns(void)
{
    return occ_clock_of(CLOCK_THREAD_CPUTIME_ID);
}

/* CLOCK_MONOTONIC: from an unspecified origin, never set back. */
static inline int64_t occ_monotonic_ns(void)
{
    return occ_clock_of(CLOCK_MONOTONIC);
}
