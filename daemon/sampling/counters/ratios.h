/* A sample of hardware counters as the ratios that attribution takes. Pure. */
#pragma once

#include <stdbool.h>

#include "sample.h"

struct occ_ratio_scale {
    uint32_t sm_count, max_warps_per_sm;
    double cycles_per_ns; /* of the last sample with a cycle counter, for samples without one; 0: unknown */
};

/* false: a counter is out of range. Its ratio and the ratios of uncounted ones are NaN; all ratios are NaN if
 * the sample's cycles are out of range or unknown. */
bool occ_ratios_read(struct occ_ratio_scale *scale, const struct occ_sample *sample,
                     struct occ_attribution_sample *ret);
