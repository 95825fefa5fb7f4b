/* Other tools that want a GPU's PM counters for themselves: only one client can have them. Any thread. */
#ifndef OCC_SAMPLER_RIVALS_H
#define OCC_SAMPLER_RIVALS_H

#include <stdint.h>

/*
 * Who wants them on this machine just now, for people; NULL: nobody, as far as `proc` ("/proc") shows it.
 *
 * Nsight Compute and Nsight Systems do while they run. DCGM's host engine runs all the time: it does once it
 * has loaded its profiling module, which it does when somebody first asks for a profiling field (DCGM's
 * documentation, "Modularity"), and only before Hopper (compute capability 9), where it reads NVML's GPM
 * instead. Whether another user's host engine has the module only root can see; without that, and where it
 * already holds the counters, a source is simply busy.
 */
const char *occ_rival(const char *proc, uint32_t cc_major);

#endif
