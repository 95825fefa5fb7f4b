/* Other tools that use a GPU's PM counters, which only one client can have. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Users whose tools count, beside root and the daemon's own: those of programs that report to it. A name
 * alone is no reason: anybody may call a process "ncu". */
#define OCC_PROFILER_USERS_MAX 64
struct occ_profiler_users {
    size_t n;
    uint32_t uids[OCC_PROFILER_USERS_MAX];
};

/*
 * Which tool on this machine uses them now, as text for people; NULL: none, as far as `proc` ("/proc") shows.
 *
 * Nsight Compute and Nsight Systems do while they run. DCGM's host engine runs all the time; it uses them
 * once it has loaded its profiling module, which happens when somebody first asks for a profiling field
 * (DCGM's documentation, "Modularity"), and only before Hopper (compute capability 9), where it reads NVML's
 * GPM instead. Only root can see whether another user's host engine has the module; otherwise, and where it
 * holds the counters already, a source is simply busy. `users` NULL: everybody's tools count.
 */
const char *occ_competing_profiler(const char *proc, uint32_t cc_major,
                                   const struct occ_profiler_users *users);
