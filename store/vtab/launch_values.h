/*
 * Measured values of the launches of a chunk: the launch's own value if measured directly, otherwise the mean
 * of its configuration, run and minute, computed by occ_measured_means(). For the virtual table `launch`;
 * read from the history when first requested, and only for that chunk. Threads: the connection's. Compiled
 * twice: see vtab.h.
 */
#pragma once

#include "launch_scan.h"

#define OCC_LAUNCH_VALUES_NEED (OCC_COLUMN_BIT(config) | OCC_COLUMN_BITS(start_ns, correlation))

/* Maximum number of launches with the same start time (a GPU runs a few hundred kernels at a time); bounds
 * the search in a damaged file. */
#define OCC_LAUNCHES_AT_ONCE 1024u

/* source: "direct": the launch's own value; "ncu": the same from a report of Nsight Compute; "exact" and
 * "regression": its configuration's mean, from ranges of single kernels and from samples; "group": launches
 * of the configuration cannot be distinguished from others, so there is no mean; "withheld": the mean does
 * not stand for all launches of the minute; NULL: no value. */
struct occ_launch_measured {
    double achieved, achieved_error, elapsed, elapsed_error; /* NaN: not measured, or not defined */
    double measured_ratio; /* share of the launches' time that the value covers; 1 for a launch's own value */
    const char *source;
};

void occ_launch_values_free(struct occ_launch_values *values);
/* Call before reading the values of another chunk. */
void occ_launch_values_reset(struct occ_launch_values *values);

/* The values of a row of a chunk with the columns OCC_LAUNCH_VALUES_NEED decoded. SQLite code; the table has
 * an error's message. */
int occ_launch_values_get(struct occ_launch_scan *scan, struct occ_launch_chunk *chunk, uint32_t row,
                          struct occ_launch_measured *ret_measured);
