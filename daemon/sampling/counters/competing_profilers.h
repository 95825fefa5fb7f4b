/* Other tools that use a GPU's PM counters, which only one client can have. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Users whose tools count beside those of root and of the daemon's own user: the users of programs that
 * report to the daemon. A name alone is no reason: any user may call a process "ncu". */
struct occ_profiler_users {
    uint32_t *uids;
    size_t n, allocated;
};

/*
 * A bit for each tool in the table of competing_profilers.c that uses the counters now, by the directory
 * `proc` ("/proc"). One pass over all processes.
 *
 * Nsight Compute and Nsight Systems do while they run. DCGM's host engine runs all the time; it uses them
 * once it has loaded its profiling module, which happens at the first request for a profiling field (DCGM's
 * documentation, "Modularity"), and only before Hopper (compute capability 9), where it reads NVML's GPM
 * instead. Only root can see whether another user's host engine has the module; otherwise, and where it
 * holds the counters already, a source is simply busy. Skips tools that leave GPUs of compute capability
 * `cc_major` and newer alone. `users` NULL: the tools of all users count.
 */
uint32_t occ_competing_profilers(const char *proc, uint32_t cc_major, const struct occ_profiler_users *users);

/* The first of these tools that uses the counters of such a GPU, as text for people; NULL: none does. */
const char *occ_competing_profiler_text(uint32_t profilers, uint32_t cc_major);
