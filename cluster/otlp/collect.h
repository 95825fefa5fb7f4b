/*
 * Reads the changed minutes of a history into the node's sums. The history is only read. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stacks.h"
#include "sums.h"

struct sqlite3_stmt;

struct occ_collect {
    struct occ_sums *sums;
    struct occ_sums_counters *counters;
    struct occ_stacks *stacks; /* NULL: no profiles */
    int64_t now_s;         /* minutes that ended less than OCC_CHANGES_WAIT_S before wait; 0: none waits */
    int64_t rows_left;     /* rows that the pass may still read; the rest comes with the next pass */
    int64_t launches_left; /* launches that the pass may still read for layers; other layers are unknown */
};

/* Counts the changed minutes of the history at `path`. *ret_is_whole: all were counted. OCC_E_CORRUPT: the
 * history cannot be read (`err` has the reason), and no part of the history was counted; any other failure is
 * of the sums. */
int occ_collect_history(struct occ_collect *collect, const char *path, bool *ret_is_whole,
                        struct occ_error *err);

/* Copies column `i` of a row, a text of a traced program, as a name: printable, and cut to the length of a
 * name. Returns `name`. */
const char *occ_collect_name(struct sqlite3_stmt *row, int i, char name[OCC_SUMS_TEXT_BYTES]);
