/* A sample of hardware counters as the ratios that attribution takes. Pure. */
#pragma once

#include <stdbool.h>

#include "sample.h"

struct occ_ratio_scale {
    uint32_t sm_count, max_warps_per_sm;
    double cycles_per_ns; /* of the last sample that counted cycles, for those that did not; 0: none yet */
};

/* False: a counter cannot be. Its ratio is NaN, as are those of what was not counted; if the sample's cycles
 * cannot be, or nothing is known of them, all are. */
bool occ_ratios_read(struct occ_ratio_scale *scale, const struct occ_sample *sample,
                     struct occ_attribution_sample *ret);
