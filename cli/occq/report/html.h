/* HTML with texts that are never markup. One thread; write errors stay in the stream. */
#pragma once

#include <stdio.h>

#include "cli/values.h"

/* As text, for contents and quoted attributes: what is invisible becomes '?', as on a terminal. NULL: "-". */
void html_text(FILE *out, const char *text);

/* `markup` with the texts (const char *, at least one) in place of its '@'s. */
#define html_put(out, markup, ...) html_put_texts(out, markup, (const char *const[]){__VA_ARGS__})
void html_put_texts(FILE *out, const char *markup, const char *const *texts);

/* A table's columns by name, as after -o; the names are the caller's, and exist. */
void html_choose(const struct cli_column *table, const char *names, struct cli_selection *ret_selection);

/* A table that scrolls where the page is narrow. */
void html_table_begin(FILE *out, const char *id, const char *caption, const struct cli_selection *columns);
void html_table_end(FILE *out);
/* Cells. `link`: where the cell of column "kernel" leads; NULL: nowhere. */
void html_cells(FILE *out, const struct cli_selection *columns, const void *row, const char *link);
/* Rows of cells without links. */
void html_rows(FILE *out, const struct cli_selection *columns, const void *rows, size_t n, size_t row_bytes);
