/* Clocks in nanoseconds. vDSO or one system call; any thread, also inside callbacks. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t occ_clock_ns(clockid_t clock)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
