/* Hardware counters by chip, in sets that fit one pass of PM sampling, so that no kernel is replayed. Source:
 * the metrics and passes that CUPTI's host library reports for each chip (tests/unit/test_sampler_sets.c
 * compares them). Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "source.h"

#define OCC_SET_METRICS_MAX 12

struct occ_counter_set {
    uint32_t n;
    const char *metric[OCC_SET_METRICS_MAX];       /* CUPTI's names */
    enum occ_counter counter[OCC_SET_METRICS_MAX]; /* member of struct occ_sample for each metric */
};

#define OCC_SETS_MAX 3

struct occ_chip_sets {
    const char *prefix; /* prefix of chip names: "GH", "GB"; "" matches any */
    uint32_t n;         /* sets[0] is sampled most of the time, the others in turn; see pm_sets.h */
    const struct occ_counter_set *sets[OCC_SETS_MAX];
    bool system_clock_only; /* no trigger by time: the interval is counted in system clocks */
    bool keep_oldest;       /* the hardware buffer cannot overwrite its oldest records */
};

/* Never NULL: an unknown chip gets the smallest set, which all chips support. */
const struct occ_chip_sets *occ_chip_sets_find(const char *chip);
