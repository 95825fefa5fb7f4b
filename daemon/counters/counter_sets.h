/*
 * Which hardware counters are sampled on which chip: sets that fit into one pass of PM sampling, so that nothing is ever
 * replayed. Sources: the metrics and passes that CUPTI's host library gives for each chip (a test asks it again). Pure.
 */
#ifndef OCC_SAMPLER_COUNTER_SETS_H
#define OCC_SAMPLER_COUNTER_SETS_H

#include <stdbool.h>
#include <stdint.h>

#include "source.h"

#define OCC_SET_METRICS_MOST 12

struct occ_counter_set {
    uint32_t n;
    const char *metric[OCC_SET_METRICS_MOST];       /* CUPTI's names */
    enum occ_counter counter[OCC_SET_METRICS_MOST]; /* where each goes */
};

#define OCC_SETS_MOST 2

struct occ_chip_sets {
    const char *prefix; /* of chip names: "GH", "GB"; "" fits any */
    uint32_t n;         /* sets[0] is sampled most of the time */
    const struct occ_counter_set *sets[OCC_SETS_MOST];
    bool system_clock_only; /* intervals are counted in system clocks: no fixed time trigger */
    bool keep_oldest;       /* the hardware buffer cannot overwrite its oldest records */
};

/* Never NULL: chips that the table does not know get the smallest set, which all have. */
const struct occ_chip_sets *occ_chip_sets_find(const char *chip);

#endif
