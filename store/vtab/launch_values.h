/*
 * What was measured of the launches of a chunk: the launch's own value where it was read directly, else its shape's mean
 * of that run and minute, as occ_measured_means() has it. For the virtual table `launch`, which says which chunk; read
 * from the history when first asked for, and only for that chunk. A history from before there were counters has none. Threads: the connection's.
 * Compiled twice, as launch_table.h says.
 */
#ifndef OCC_STORE_LAUNCH_VALUES_H
#define OCC_STORE_LAUNCH_VALUES_H

#include "store/codec/chunk_codec.h"

#ifdef OCC_SQLITE_EXTENSION
#include <sqlite3ext.h>
#else
#include <sqlite3.h>
#endif

#define OCC_LAUNCH_VALUES_NEED (OCC_CHUNK_START | OCC_CHUNK_CORRELATION | OCC_CHUNK_SHAPE)

/* So many launches of one start and device are told apart; what lies beyond them in a damaged file has no value of its own
 * (a GPU runs some hundred kernels at a time, and a search that ends is worth more than all of the damage). */
#define OCC_LAUNCHES_AT_ONCE 1024u

/* source: "direct", the launch's own; "exact" and "regressed", its shape's mean, from ranges of single kernels and from
 * samples; "group": its shape has launches that cannot be told apart from others', and no mean; NULL: none. */
struct occ_launch_measured {
    double achieved, achieved_error, elapsed, elapsed_error; /* NaN: not measured, or not defined */
    const char *source;
};

struct occ_launch_values;

/* NULL: no memory. */
struct occ_launch_values *occ_launch_values_new(sqlite3 *db);
void occ_launch_values_free(struct occ_launch_values *values);

/* Another chunk. */
void occ_launch_values_enter(struct occ_launch_values *values, int64_t run, int64_t device);

/* Of a row of that chunk; `view` has the columns OCC_LAUNCH_VALUES_NEED. SQLite code; *ret_text says what is wrong. */
int occ_launch_values_get(struct occ_launch_values *values, const struct occ_chunk_view *view, uint32_t row,
                          struct occ_launch_measured *ret_measured, const char **ret_text);

#endif
