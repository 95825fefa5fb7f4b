/*
 * Cells of CSV: RFC 4180, with quotes doubled inside quotes. NULL is an empty field, an empty text is "" in
 * quotes.
 *
 * Spreadsheets run a cell that begins with =, +, -, @, a tabulator or a line end. An apostrophe is written
 * before such a text, unless the text is a number, and also before a text with apostrophes in front of such a
 * character. A reader that removes one apostrophe restores the text.
 *
 * No state, no allocation; write errors stay in the stream.
 */
#pragma once

#include <stdio.h>

#include "values.h"

/* Line ends and tabulators are written unchanged; other bytes that occ_text_sanitise() replaces become
 * '?'. */
void cli_csv_text(FILE *out, const char *text);
void cli_csv_value(FILE *out, const struct cli_value *value);

/* True if an apostrophe must be written before the `n` bytes. */
bool cli_csv_is_formula(const char *text, size_t n);
