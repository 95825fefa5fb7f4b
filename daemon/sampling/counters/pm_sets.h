/* The counter sets of a chip as this GPU, driver and library count them: each is one pass, and lacks the
 * metrics that are not there. Threads: one for each struct. */
#pragma once

#include "pm_library.h"

#define OCC_PM_MISSING_MAX   (OCC_SETS_MAX * OCC_SET_METRICS_MAX)
#define OCC_PM_MISSING_BYTES 192

struct occ_pm_sets {
    uint32_t n; /* set 0 is sampled most of the time */
    struct occ_counter_set set[OCC_SETS_MAX];
    struct occ_cupti_host host[OCC_SETS_MAX];
    uint32_t n_missing;
    const char *missing[OCC_PM_MISSING_MAX]; /* metrics that are left out */
};

/* `sets` is zeroed; it stays where it is, since CUPTI keeps pointers into it. `availability` may be none. */
enum occ_source_state occ_pm_sets_configure(struct occ_pm_sets *sets, const struct occ_pm_library *library,
                                            const char *chip, const struct occ_cupti_image *availability,
                                            struct occ_error *err);
/* The first of the metrics that are left out, and how many more; "": none is. */
void occ_pm_sets_write_missing(const struct occ_pm_sets *sets, char text[OCC_PM_MISSING_BYTES]);
/* One that is zeroed or half made is fine. */
void occ_pm_sets_free(struct occ_pm_sets *sets);
