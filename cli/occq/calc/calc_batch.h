/*
 * `occq calc --batch`: CSV in, CSV out, row by row, in bounded memory.
 *
 * In: a heading line, then a row per line. Fields are separated by commas; one that begins with a quote ends
 * with the next quote that is not doubled. A line ends at a line feed (a carriage return before it is
 * ignored), also inside quotes: no field that is read holds one, and so a quote that is never closed spoils
 * its own row only. Empty lines are ignored. Unknown columns are copied; a name near a known one is refused.
 *
 * Out: the fields as they came, then the columns of RESULTS in calc_batch.c. A row that cannot be computed
 * has the reason in the last column, nothing in the other results, and a line in `talk` that names its
 * number.
 *
 * One thread.
 */
#ifndef OCC_CALC_CALC_BATCH_H
#define OCC_CALC_CALC_BATCH_H

#include <stdint.h>
#include <stdio.h>

#include "support/error.h"

#define CALC_BATCH_LINE_BYTES (1U << 20) /* longest line, with its line feed */
#define CALC_BATCH_COLUMNS    64         /* of the input */

struct calc_batch_totals {
    uint64_t rows, bad_rows;
};

/* Write errors stay in `out`. OCC_E_INVALID: the heading, or a line over the limit; OCC_E_IO: cannot read.
 * Rows before the error are written. */
int calc_batch(FILE *in, FILE *out, FILE *talk, struct calc_batch_totals *ret_totals, struct occ_error *err);

#endif
