/*
 * `occq calc --batch`: CSV in, CSV out, row by row, in bounded memory.
 *
 * In: a heading line, then a row a line. Fields are divided by commas; one that begins with a quote ends with the
 * next quote that is not doubled. A line ends at a line feed (a carriage return before it does not count), also in
 * quotes: no field of ours holds one, and so a quote that is never closed spoils its own row only. Empty lines are
 * passed over. Columns that this does not know are passed on; a name near a known one is refused.
 *
 * Out: the fields as they came, then the results of columns in calc_batch.c. A row that cannot be computed has its
 * reason in the last column, nothing in the other results, and its line's number goes to `talk`.
 *
 * One thread.
 */
#ifndef OCC_CLI_CALC_BATCH_H
#define OCC_CLI_CALC_BATCH_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "support/error.h"

#define CALC_BATCH_LINE_BYTES (1U << 20) /* longest line */
#define CALC_BATCH_COLUMNS    64         /* most columns of the input */

/* As read(2): up to `size` bytes, 0 at the end, -1 with errno. */
typedef ssize_t calc_batch_reader(void *from, char *room, size_t size);

struct calc_batch_totals {
    uint64_t rows, bad_rows;
};

/* Write errors stay in `out`. OCC_E_INVALID: the heading, or a line over the limit; OCC_E_IO: cannot read. What was
 * computed before is written. */
int calc_batch(calc_batch_reader *reader, void *from, FILE *out, FILE *talk,
               struct calc_batch_totals *ret_totals, struct occ_error *err);

#endif
