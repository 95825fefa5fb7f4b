/* Small tables in a page of text, their cells formatted. One thread (stdio). */
#ifndef OCC_CLI_PAGE_H
#define OCC_CLI_PAGE_H

#include <libsmartcols.h>
#include <stdbool.h>
#include <stddef.h>

#include "support/error.h"

#define CLI_PAGE_RIGHT  SCOLS_FL_RIGHT
#define CLI_PAGE_HIDDEN SCOLS_FL_HIDDEN

/* What goes wrong between begin and end is kept and said at the end. */
struct cli_page {
    struct libscols_table *table;
    bool failed;
};

void cli_page_begin(struct cli_page *page, const char *const *headings, const int *flags, size_t n);
/* NULL: it failed, which the others take. */
struct libscols_line *cli_page_line(struct cli_page *page);
void cli_page_cell(struct cli_page *page, struct libscols_line *line, size_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Prints it to stdout. */
int cli_page_end(struct cli_page *page, struct occ_error *err);

#define CLI_BAR_BYTES 41
/* A bar of "#" for a ratio, 40 for 1 and more; none for NaN and what is not above 0. */
const char *cli_bar(double ratio, char buffer[CLI_BAR_BYTES]);

#endif
