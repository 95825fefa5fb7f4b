/* The three renderers of a table; see table.h. One thread. */
#include "table.h"

#include <libsmartcols.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "json.h"
#include "support/cleanup.h"
#include "support/text.h"

/* So much of a column that may be cut should stay before others are left out. */
enum { CUT_WIDTH = 24 };

struct cli_table {
    FILE *out;
    const struct cli_selection *selection;
    struct libscols_table *block; /* text */
    size_t block_rows;
    size_t widths[CLI_MAX_COLUMNS]; /* of the block's texts, in characters */
    struct cli_json json;
};

bool cli_colour_wanted(FILE *out)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(fileno(out)) && !(no_colour && no_colour[0]) && terminal && strcmp(terminal, "dumb") != 0;
}

void cli_csv_field(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        (void)fputs(text, out);
        return;
    }
    (void)fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            (void)fputc('"', out);
        (void)fputc(*text, out);
    }
    (void)fputc('"', out);
}

/* ---- text ---- */

static int scols_flags(const struct cli_column *column)
{
    return (column->flags & CLI_LEFT ? 0 : SCOLS_FL_RIGHT) | (column->flags & CLI_CUTS ? SCOLS_FL_TRUNC : 0);
}

static int add_heading(struct libscols_table *block, const struct cli_column *column, bool colour)
{
    char heading[64];
    size_t i = 0;
    for (; column->name[i] && i + 1 < sizeof heading; i++) {
        char c = column->name[i];
        bool lower_case = c >= 'a' && c <= 'z' && !(column->flags & CLI_VERBATIM);
        heading[i] = lower_case ? (char)(c - 'a' + 'A') : c;
    }
    heading[i] = '\0';
    struct libscols_column *made = scols_table_new_column(block, heading, 0, scols_flags(column));
    if (made && colour)
        (void)scols_cell_set_color(scols_column_get_header(made), "bold");
    return made ? 0 : -1;
}

static int text_begin(struct cli_table *table, struct occ_error *err)
{
    bool colour = cli_colour_wanted(table->out);
    table->block = scols_new_table();
    if (!table->block)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    (void)scols_table_enable_colors(table->block, colour);
    for (size_t i = 0; i < table->selection->n; i++)
        if (add_heading(table->block, table->selection->columns[i], colour) != 0)
            return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    return 0;
}

/* Characters of a sanitised text: all bytes but UTF-8's continuations. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* 0: not a terminal, or an unknown width. */
static size_t terminal_width(FILE *out)
{
    struct winsize size;
    return isatty(fileno(out)) && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Leaves out spare columns, the last first, until a line fits. */
static void narrow(struct cli_table *table)
{
    const struct cli_selection *selection = table->selection;
    size_t limit = terminal_width(table->out), total = 0;
    if (limit == 0 || !selection->is_default)
        return;
    for (size_t i = 0; i < selection->n; i++) {
        size_t heading = strlen(selection->columns[i]->name);
        if (selection->columns[i]->flags & CLI_CUTS && table->widths[i] > CUT_WIDTH)
            table->widths[i] = CUT_WIDTH;
        table->widths[i] = 1 + (table->widths[i] > heading ? table->widths[i] : heading);
        total += table->widths[i];
    }
    for (size_t i = selection->n; i-- > 0 && total > limit + 1;) {
        if (!(selection->columns[i]->flags & CLI_SPARE))
            continue;
        total -= table->widths[i];
        struct libscols_column *column = scols_table_get_column(table->block, i);
        (void)scols_column_set_flags(column, scols_column_get_flags(column) | SCOLS_FL_HIDDEN);
    }
}

/* Lines without the blanks that pad their last column. */
static void put_trimmed(FILE *out, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n"), n = length;
        while (n > 0 && text[n - 1] == ' ')
            n--;
        (void)fprintf(out, "%.*s\n", (int)n, text);
        text += length + (text[length] == '\n');
    }
}

static int text_flush(struct cli_table *table, struct occ_error *err)
{
    _cleanup_(occ_freep) char *text = NULL;
    if (table->block_rows == 0)
        return 0;
    table->block_rows = 0;
    narrow(table);
    memset(table->widths, 0, sizeof table->widths);
    int status = scols_print_table_to_string(table->block, &text);
    scols_table_remove_lines(table->block);
    if (status != 0 || !text)
        return occ_fail(err, OCC_E_NO_MEMORY, "cannot lay out a table");
    put_trimmed(table->out, text);
    return 0;
}

/* Strings may be longer than any buffer of ours (kernel names): they are copied whole. */
static char *text_of(const struct cli_value *value, enum cli_unit unit)
{
    char number[64];
    if (value->type != CLI_STRING)
        return strdup(cli_value_text(value, unit, number, sizeof number));
    char *text = strdup(value->string);
    if (text)
        occ_text_sanitise(text);
    return text;
}

static int text_add(struct cli_table *table, const void *row, struct occ_error *err)
{
    struct libscols_line *line = scols_table_new_line(table->block, NULL);
    for (size_t i = 0; line && i < table->selection->n; i++) {
        const struct cli_column *column = table->selection->columns[i];
        struct cli_value value = column->get(column, row);
        char *text = text_of(&value, column->unit);
        size_t width = text ? width_of(text) : 0;
        if (width > table->widths[i])
            table->widths[i] = width;
        if (!text || scols_line_refer_data(line, i, text) != 0) {
            free(text);
            line = NULL;
        }
    }
    if (!line)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    return ++table->block_rows == CLI_TABLE_BLOCK_ROWS ? text_flush(table, err) : 0;
}

/* ---- JSON ---- */

static void json_add(struct cli_table *table, const void *row)
{
    cli_json_object(&table->json, NULL, true);
    for (size_t i = 0; i < table->selection->n; i++) {
        const struct cli_column *column = table->selection->columns[i];
        cli_json_value(&table->json, column->key, column->get(column, row));
    }
    cli_json_close(&table->json);
}

/* ---- CSV ---- */

static void csv_begin(struct cli_table *table)
{
    for (size_t i = 0; i < table->selection->n; i++) {
        (void)fputs(i ? "," : "", table->out);
        cli_csv_field(table->out, table->selection->columns[i]->key);
    }
    (void)fputc('\n', table->out);
}

/* Line ends may stand in a field; other control characters would reach the terminal of who looks at the file.
 */
static int csv_string(FILE *out, const char *string, struct occ_error *err)
{
    _cleanup_(occ_freep) char *clean = strdup(string);
    if (!clean)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    occ_text_sanitise(clean);
    for (size_t i = 0; string[i]; i++)
        if (string[i] == '\n' || string[i] == '\t' || string[i] == '\r')
            clean[i] = string[i];
    cli_csv_field(out, clean);
    return 0;
}

static int csv_add(struct cli_table *table, const void *row, struct occ_error *err)
{
    char digits[64];
    int status = 0;
    for (size_t i = 0; i < table->selection->n && status == 0; i++) {
        const struct cli_column *column = table->selection->columns[i];
        struct cli_value value = column->get(column, row);
        (void)fputs(i ? "," : "", table->out);
        if (value.type == CLI_STRING)
            status = csv_string(table->out, value.string, err);
        else
            (void)fputs(cli_value_raw(&value, digits, sizeof digits), table->out);
    }
    (void)fputc('\n', table->out);
    return status;
}

/* ---- all ---- */

int cli_table_new(FILE *out, const char *name, const struct cli_selection *selection,
                  struct cli_table **ret_table, struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = calloc(1, sizeof *table);
    if (!table)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    table->out = out;
    table->selection = selection;
    if (selection->format == CLI_FORMAT_TEXT && text_begin(table, err) != 0)
        return OCC_E_NO_MEMORY;
    if (selection->format == CLI_FORMAT_JSON) {
        cli_json_begin(&table->json, out);
        cli_json_array(&table->json, name, false);
    }
    if (selection->format == CLI_FORMAT_CSV)
        csv_begin(table);
    *ret_table = occ_take(table);
    return 0;
}

int cli_table_add(struct cli_table *table, const void *row, struct occ_error *err)
{
    switch (table->selection->format) {
    case CLI_FORMAT_TEXT:
        return text_add(table, row, err);
    case CLI_FORMAT_CSV:
        return csv_add(table, row, err);
    case CLI_FORMAT_JSON:
        break;
    }
    json_add(table, row);
    return 0;
}

int cli_table_finish(struct cli_table *table, struct occ_error *err)
{
    if (table->selection->format == CLI_FORMAT_TEXT)
        return text_flush(table, err);
    if (table->selection->format == CLI_FORMAT_JSON) {
        cli_json_close(&table->json);
        cli_json_end(&table->json);
    }
    return 0;
}

int cli_table_print(const char *name, const struct cli_selection *selection, const void *rows, size_t n,
                    size_t row_bytes, struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    int status = cli_table_new(stdout, name, selection, &table, err);
    for (size_t i = 0; i < n && status == 0; i++)
        status = cli_table_add(table, (const char *)rows + i * row_bytes, err);
    return status == 0 ? cli_table_finish(table, err) : status;
}

void cli_table_freep(struct cli_table **table)
{
    if (*table)
        scols_unref_table((*table)->block);
    free(*table);
}
