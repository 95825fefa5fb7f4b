/* See html.h. One thread. */
#include "html.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "support/cleanup.h"
#include "support/text.h"

/* Writes one character, escaped. Returns the number of bytes that it occupies in the text. */
static size_t put_character(FILE *out, const char *at)
{
    size_t n = occ_text_character(at);
    if (*at == '<')
        (void)fputs("&lt;", out);
    else if (*at == '>')
        (void)fputs("&gt;", out);
    else if (*at == '&')
        (void)fputs("&amp;", out);
    else if (*at == '"')
        (void)fputs("&quot;", out);
    else if (n == 0)
        (void)fputc('?', out);
    else
        (void)fwrite(at, 1, n, out);
    return n ? n : 1;
}

void html_text(FILE *out, const char *text)
{
    for (const char *at = text ? text : "-"; *at;)
        at += put_character(out, at);
}

void html_put_texts(FILE *out, const char *markup, const char *const *texts)
{
    for (; *markup; markup++)
        if (*markup == '@')
            html_text(out, *texts++);
        else
            (void)fputc(*markup, out);
}

void html_choose(const struct cli_column *table, const char *names, struct cli_selection *ret_selection)
{
    int status = cli_select_list(table, names, ret_selection, NULL);
    assert(status == 0);
    (void)status;
}

void html_table_begin(FILE *out, const char *id, const char *caption, const struct cli_selection *columns)
{
    html_put(out,
             "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Table: @\">\n<table "
             "id=\"@\"><caption>@</caption>\n<thead><tr>",
             caption, id, caption);
    for (size_t i = 0; i < columns->n; i++) {
        const struct cli_column *c = columns->columns[i];
        html_put(out, "<th scope=\"col\" data-key=\"@\" title=\"@\"", c->key, c->help);
        (void)fputs(c->flags & CLI_LEFT ? " class=\"l\">" : ">", out);
        html_text(out, c->name);
        (void)fputs("</th>", out);
    }
    (void)fputs("</tr></thead>\n<tbody>\n", out);
}

void html_table_end(FILE *out)
{
    (void)fputs("</tbody></table></div>\n", out);
}

void html_cells(FILE *out, const struct cli_selection *columns, const void *row, const char *link)
{
    for (size_t i = 0; i < columns->n; i++) {
        const struct cli_column *c = columns->columns[i];
        struct cli_value value = c->get(c, row);
        char number[64];
        const char *text =
            value.type == CLI_STRING ? value.string : cli_value_text(&value, c->unit, number, sizeof number);
        /* HTML needs no end tag of a cell, and a page has thousands of cells */
        (void)fputs(c->flags & CLI_LEFT ? "<td class=l>" : "<td>", out);
        if (link && strcmp(c->name, "kernel") == 0)
            html_put(out, "<a href=\"#@\"><bdi>@</bdi></a>", link, text);
        else if (c->flags & CLI_CUTS)
            html_put(out, "<bdi>@</bdi>", text);
        else
            html_text(out, text);
    }
}

void html_rows(FILE *out, const struct cli_selection *columns, const void *rows, size_t n, size_t row_bytes)
{
    for (size_t i = 0; i < n; i++) {
        (void)fputs("<tr>", out);
        html_cells(out, columns, (const char *)rows + i * row_bytes, NULL);
        (void)fputc('\n', out);
    }
}
