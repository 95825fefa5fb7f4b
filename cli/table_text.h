/*
 * A table for people. It fits on a screen of known width: columns of the largest rank are hidden first
 * (CLI_SPARE), then CLI_CUTS columns are shortened to no less than CLI_CUT_WIDTH characters, and if the table
 * is still too wide, to no less than CLI_LEAST_CUT_WIDTH; a cell with a brief text shows that instead, and
 * shortened texts have an ellipsis. Without a screen
 * width every column is as wide as its content. A legend below explains marks and units.
 *
 * The table is laid out in blocks of CLI_TABLE_BLOCK_ROWS rows, which bounds its memory. One thread.
 */
#pragma once

#include <stdio.h>

#include "values.h"

#define CLI_TABLE_BLOCK_ROWS 10000
#define CLI_CUT_WIDTH        24
#define CLI_LEAST_CUT_WIDTH  8

struct cli_text_table;

/* `selection` and its columns must outlive the table. */
int cli_text_table_new(FILE *out, const struct cli_selection *selection, struct cli_text_table **ret_table,
                       struct occ_error *err);
int cli_text_table_add(struct cli_text_table *table, const void *row, struct occ_error *err);
int cli_text_table_finish(struct cli_text_table *table, struct occ_error *err);
void cli_text_table_freep(struct cli_text_table **table);
