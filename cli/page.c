/* See page.h. One thread. */
#include "page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { CELL_BYTES = 160 };

void cli_page_begin(struct cli_page *page, const char *const *headings, const int *flags, size_t n)
{
    page->failed = false;
    page->table = scols_new_table();
    if (!page->table) {
        page->failed = true;
        return;
    }
    (void)scols_table_set_stream(page->table, stdout);
    for (size_t i = 0; i < n && !page->failed; i++)
        page->failed = !scols_table_new_column(page->table, headings[i], 0, flags[i]);
}

void cli_page_cell(struct cli_page *page, struct libscols_line *line, size_t column, const char *format, ...)
{
    char text[CELL_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!line || scols_line_set_data(line, column, text) != 0)
        page->failed = true;
}

struct libscols_line *cli_page_line(struct cli_page *page)
{
    return page->failed ? NULL : scols_table_new_line(page->table, NULL);
}

int cli_page_end(struct cli_page *page, struct occ_error *err)
{
    if (!page->failed)
        page->failed = scols_print_table(page->table) != 0;
    scols_unref_table(page->table);
    return page->failed ? occ_fail(err, OCC_E_NO_MEMORY, "cannot lay out a table") : 0;
}

const char *cli_bar(double ratio, char buffer[CLI_BAR_BYTES])
{
    double share = !(ratio > 0) ? 0 : ratio > 1 ? 1 : ratio;
    size_t n = (size_t)lround(share * (CLI_BAR_BYTES - 1));
    memset(buffer, '#', n);
    buffer[n] = '\0';
    return buffer;
}
