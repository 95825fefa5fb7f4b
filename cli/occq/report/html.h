/* HTML with texts that are never parsed as markup. One thread; write errors stay in the stream. */
#pragma once

#include <stdio.h>

#include "cli/values.h"

/* Writes text for contents and quoted attributes; invisible characters become '?', as on a terminal. NULL:
 * "-". */
void html_text(FILE *out, const char *text);

/* Writes `markup` with the texts (const char *, at least one) in place of its '@' characters. */
#define html_put(out, markup, ...) html_put_texts(out, markup, (const char *const[]){__VA_ARGS__})
void html_put_texts(FILE *out, const char *markup, const char *const *texts);

/* Chooses a table's columns by name, like -o. The caller guarantees that the names exist. */
void html_choose(const struct cli_column *table, const char *names, struct cli_selection *ret_selection);

/* Begins a table that scrolls on a narrow page. */
void html_table_begin(FILE *out, const char *id, const char *caption, const struct cli_selection *columns);
void html_table_end(FILE *out);
/* Writes the cells of a row. `link`: target of the cell in column "kernel"; NULL: no link. */
void html_cells(FILE *out, const struct cli_selection *columns, const void *row, const char *link);
/* Writes rows of cells without links. */
void html_rows(FILE *out, const struct cli_selection *columns, const void *rows, size_t n, size_t row_bytes);
