/*
 * A table for people. On a screen of known width it fits: first the columns of the largest rank go
 * (CLI_SPARE), then CLI_CUTS columns are cut to no less than CLI_CUT_WIDTH characters, and where
 * that is still too wide to no less than CLI_LEAST_CUT_WIDTH, never without an ellipsis. Elsewhere every
 * column is as wide as its content. Below stands what marks and units mean.
 *
 * It is laid out in blocks of CLI_TABLE_BLOCK_ROWS rows, so that its memory is bounded. One thread.
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
