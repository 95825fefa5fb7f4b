/*
 * Puts launches of one run and device in order by start, within bounds. CUPTI gives no order inside or between
 * its buffers; chunks of ordered launches pack better and are found faster.
 *
 * Rows wait in a window. When it holds `rows` or more, those that are older than the newest start by more than
 * `window_ns` leave, and never fewer than the older half. A commit empties it (see collector.h for why), so order
 * is exact within a commit and nearly so across commits; the store takes any order.
 *
 * Memory: rows x 48 bytes x at most 2, from the first row on until occ_reorder_release(). One thread.
 */
#ifndef OCC_DAEMON_REORDER_H
#define OCC_DAEMON_REORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"
#include "support/error.h"

struct occ_reorder {
    struct occ_store_launch *rows;
    size_t n, allocated;
    int64_t newest_ns; /* largest start that waits; meaningless while n is 0 */
    bool sorted;       /* rows[0...n) are in order */
};

struct occ_reorder_limits {
    int64_t window_ns;
    size_t rows;
};

/* Takes rows that leave the window, in order. Fails: they stay and are offered again. */
typedef int occ_reorder_sink(void *context, const struct occ_store_launch *rows, size_t n,
                             struct occ_error *err);

/* Room for `n` more rows, to be filled and then said with occ_reorder_added(). NULL: out of memory. */
struct occ_store_launch *occ_reorder_reserve(struct occ_reorder *reorder, size_t n);
void occ_reorder_added(struct occ_reorder *reorder, size_t n);

/* Lets go what the limits say; `limits` NULL: everything. */
int occ_reorder_emit(struct occ_reorder *reorder, const struct occ_reorder_limits *limits,
                     occ_reorder_sink *sink, void *context, struct occ_error *err);

/* Gives the memory back. Rows that wait are forgotten. A zeroed struct is an empty window. */
void occ_reorder_release(struct occ_reorder *reorder);

/* Orders rows by start, stable. `scratch` holds n rows. In this header for tests and the benchmark. */
void occ_reorder_sort(struct occ_store_launch *rows, struct occ_store_launch *scratch, size_t n);

#endif
