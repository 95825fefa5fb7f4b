/* The counter sets of a chip as this GPU, driver and library support them: each fits one pass and leaves out
 * unavailable metrics. Threads: one per struct. */
#pragma once

#include "pm_library.h"

#define OCC_PM_MISSING_MAX   (OCC_SETS_MAX * OCC_SET_METRICS_MAX)
#define OCC_PM_MISSING_BYTES 192

struct occ_pm_sets {
    uint32_t n; /* set 0 is sampled most of the time */
    struct occ_counter_set set[OCC_SETS_MAX];
    struct occ_cupti_host host[OCC_SETS_MAX];
    uint32_t n_missing;
    const char *missing[OCC_PM_MISSING_MAX]; /* metrics left out */
};

/* `sets` must be zeroed and must not move: CUPTI keeps pointers into it. `availability` may be empty. */
enum occ_source_state occ_pm_sets_configure(struct occ_pm_sets *sets, const struct occ_pm_library *library,
                                            const char *chip, const struct occ_cupti_image *availability,
                                            struct occ_error *err);
/* Writes the first metric left out and the number of further ones; "": none. */
void occ_pm_sets_write_missing(const struct occ_pm_sets *sets, char text[OCC_PM_MISSING_BYTES]);
/* A zeroed or partly configured struct is allowed. */
void occ_pm_sets_free(struct occ_pm_sets *sets);
