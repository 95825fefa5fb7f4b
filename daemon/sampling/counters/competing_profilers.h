/* Other tools that use a GPU's PM counters, which serve only one client at a time. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The tools of these users are respected, besides root's and those of the daemon's own user: the users of
 * programs that report to the daemon. A process name alone is not enough: any user may name a process "ncu".
 */
struct occ_profiler_users {
    uint32_t *uids;
    size_t n, allocated;
};

/*
 * Returns a bit for each tool in the table of competing_profilers.c that uses the counters now, according to
 * the directory `proc` ("/proc"). One pass over all processes.
 *
 * Nsight Compute and Nsight Systems use the counters while they run. DCGM's host engine runs all the time; it
 * uses them once it has loaded its profiling module, at the first request for a profiling field (DCGM's
 * documentation, "Modularity"), and only before Hopper (compute capability 9), where it reads NVML's GPM
 * instead. Only root can see whether another user's host engine has the module; otherwise, and if the engine
 * holds the counters already, a source reports "busy". Skips tools that do not use GPUs of compute capability
 * `cc_major` or newer. `users` NULL: respects the tools of all users.
 */
uint32_t occ_competing_profilers(const char *proc, uint32_t cc_major, const struct occ_profiler_users *users);

/* Text for people about the first of these tools that uses the counters of such a GPU; NULL: none. */
const char *occ_competing_profiler_text(uint32_t profilers, uint32_t cc_major);
