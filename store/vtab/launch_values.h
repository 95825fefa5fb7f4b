/*
 * Measured values of the launches of a chunk: the launch's own value where it was measured directly, else the
 * mean of its configuration, run and minute, as occ_measured_means() has it. For the virtual table `launch`;
 * read from the history when first asked for, and only for that chunk. Threads: the connection's. Compiled
 * twice: see vtab.h.
 */
#pragma once

#include "launch_scan.h"

#define OCC_LAUNCH_VALUES_NEED (OCC_COLUMN_BIT(config) | OCC_COLUMN_BITS(start_ns, correlation))

/* At most this many launches share a start time (a GPU runs some hundred kernels at a time); bounds the
 * search in a damaged file. */
#define OCC_LAUNCHES_AT_ONCE 1024u

/* source: "direct", the launch's own; "ncu", the same from a report of Nsight Compute; "exact" and
 * "regression", its configuration's mean, from ranges of single kernels and from samples; "group": the
 * configuration has launches that cannot be told apart from others', and no mean; "withheld": the mean does
 * not stand for all launches of the minute; NULL: none. */
struct occ_launch_measured {
    double achieved, achieved_error, elapsed, elapsed_error; /* NaN: not measured, or not defined */
    double measured_ratio; /* of the time of the launches that the value is of: a launch's own has 1 */
    const char *source;
};

void occ_launch_values_free(struct occ_launch_values *values);
/* The values are of another chunk from now on. */
void occ_launch_values_reset(struct occ_launch_values *values);

/* Of a row of a chunk, which has the columns OCC_LAUNCH_VALUES_NEED decoded. SQLite code; an error's message
 * is the table's. */
int occ_launch_values_get(struct occ_launch_scan *scan, struct occ_launch_chunk *chunk, uint32_t row,
                          struct occ_launch_measured *ret_measured);
