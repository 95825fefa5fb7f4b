/* When a series changed: E-divisive statistics (Matteson and James 2014) in windows find candidates,
 * Student's test on logarithms decides, as Hunter and its successor Otava do. No random numbers. Pure but for
 * malloc; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "support/error.h"

enum {
    DIFF_CHANGE_WINDOW = 50, /* points */
    DIFF_CHANGE_SEGMENT = 3, /* minimum points between two changes, so that one spike is no change */
    DIFF_DRIFT_POINTS = 16,
};
/* Maximum p value of a change. A candidate is the best of fifty points, so 40 000 points of noise alone give
 * less than one change. */
#define DIFF_CHANGE_P 1e-6

struct diff_change {
    size_t at;            /* index of the first point after the change */
    double before, after; /* geometric means of the points up to the next changes, 50 at most */
    double p;             /* NaN for a possible change */
    bool possible;        /* the newest points differ, but are too few for a test */
    bool is_drift; /* not a step but a slope: `at` is its first point, before and after are the line's ends */
};

/* Changes by `min_change` (0.05: 5 %) and more, in the order of time, of values that are positive (others are
 * left out). The newest points are a possible change where they leave the points before by `min_change` and
 * by four standard deviations. *ret_changes is to be freed. */
int diff_find_changes(const double *values, size_t n, double min_change, struct diff_change **ret_changes,
                      size_t *ret_n, struct occ_error *err);

/* True if the values rise or fall by `min_change` or more from the first to the last: by the least-squares
 * line of their logarithms, at DIFF_CHANGE_P, with DIFF_DRIFT_POINTS at least, and without a step of half the
 * drift. A correlation of neighbours beside the line widens its error. False also without memory. */
bool diff_find_drift(const double *values, size_t n, double min_change, struct diff_change *ret_drift);
