/*
 * Writes rows as a table: text, laid out for the screen (table_text.h), or JSON or CSV (csv.h), written row
 * by row, so that a million rows need no memory. CSV has a heading line; lines end with LF.
 *
 * If the selection has a gatherer, rows go to the gatherer and nothing is written (gather.h).
 *
 * A table belongs to one thread. Write errors stay in the stream.
 */
#pragma once

#include <stdio.h>

#include "stream.h"
#include "values.h"

struct cli_table;

/* `name`: the JSON array's key. `selection` and the columns must outlive the table. */
int cli_table_new(FILE *out, const char *name, const struct cli_selection *selection,
                  struct cli_table **ret_table, struct occ_error *err);
int cli_table_add(struct cli_table *table, const void *row, struct occ_error *err);
/* Ends the output. Without rows it is an empty array (JSON), a heading line (CSV) or nothing (text). */
int cli_table_finish(struct cli_table *table, struct occ_error *err);
/* Frees *table, which may be NULL; prints nothing. */
void cli_table_freep(struct cli_table **table);

/* Prints a whole table to cli_out(), from an array of `n` rows of `row_bytes` bytes each. */
int cli_table_print(const char *name, const struct cli_selection *selection, const void *rows, size_t n,
                    size_t row_bytes, struct occ_error *err);
