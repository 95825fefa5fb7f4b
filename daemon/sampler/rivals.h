/* Other tools that want a GPU's counters for themselves. Any thread. */
#ifndef OCC_SAMPLER_RIVALS_H
#define OCC_SAMPLER_RIVALS_H

#include <stdbool.h>

/* True while Nsight Compute or Nsight Systems runs on this machine (as far as /proc shows it). DCGM is not looked for:
 * it runs all the time, and where it holds the counters a source is simply busy. */
bool occ_rivals_are_here(void);

#endif
