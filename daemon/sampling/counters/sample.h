/*
 * One sample of a GPU's hardware counters, as a source delivers it.
 *
 * Shapes and units: a sample covers [start_ns, end_ns) of CLOCK_REALTIME as converted by the source (the
 * offset to the kernels' timestamps is unknown). Counters are sums over all SMs and the interval; a counter
 * that is not in the sample's counter set is NaN, never 0.
 */
#pragma once

#include <stdint.h>

#include "attribution/attribution.h"

/* Sums over SMs and interval unless the comment states otherwise. */
enum occ_counter {
    OCC_COUNTER_WARPS,           /* warp-cycles: resident warps summed over cycles */
    OCC_COUNTER_BLOCKS,          /* block-cycles: resident blocks summed over cycles */
    OCC_COUNTER_ACTIVE,          /* SM-cycles with at least one resident warp */
    OCC_COUNTER_ACTIVE_MIN,      /* ACTIVE of the least active SM */
    OCC_COUNTER_ACTIVE_MAX,      /* ACTIVE of the most active SM */
    OCC_COUNTER_ELAPSED,         /* duration of the interval in cycles of one SM */
    OCC_COUNTER_LAUNCHED,        /* number of blocks launched */
    OCC_COUNTER_STALL_REGISTERS, /* cycles in which the launch of warps waited for registers */
    OCC_COUNTER_STALL_SMEM,      /* ... for shared memory */
    OCC_COUNTER_STALL_BLOCKS,    /* ... for a block slot */
    OCC_COUNTER_STALL_WARPS,     /* ... for warp slots */
    OCC_COUNTER_STALL_BARRIERS,  /* ... for barriers */
    OCC_COUNTER_UTILIZATION,     /* enum occ_utilization: mean over all units, % of the peak */
    OCC_COUNTER_COUNT = OCC_COUNTER_UTILIZATION + OCC_UTILIZATION_COUNT
};

struct occ_sample {
    int64_t start_ns, end_ns;
    double value[OCC_COUNTER_COUNT]; /* NaN: not in this counter set */
};
