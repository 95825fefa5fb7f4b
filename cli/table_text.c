/* Prints tables for people with libsmartcols; see table_text.h. One thread. */
#include "table_text.h"

#include <errno.h>
#include <libsmartcols.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"
#include "marks.h"
#include "screen.h"
#include "support/arena.h"
#include "support/cleanup.h"
#include "support/text.h"
#include "usage.h"

struct cli_text_table {
    FILE *out;
    const struct cli_selection *selection;
    struct libscols_table *block;
    size_t rows;                    /* rows in the block */
    struct occ_arena briefs;        /* of the block's cells, as their user data */
    size_t cut_width;               /* width to which columns may be shortened */
    size_t widths[CLI_MAX_COLUMNS]; /* widths of the block's texts and headings, in columns */
    bool hidden[CLI_MAX_COLUMNS];
    bool filled[CLI_MAX_COLUMNS],
        varies[CLI_MAX_COLUMNS];     /* a row has a value; a row's value differs from the first row's */
    char letters[CLI_LETTERS_BYTES]; /* marks in any row */
};

static const char *heading(const struct cli_column *column, char *buffer, size_t size)
{
    size_t i = 0;
    for (; column->name[i] && i + 1 < size; i++) {
        char c = column->name[i];
        bool lower_case = c >= 'a' && c <= 'z' && !(column->flags & CLI_VERBATIM);
        buffer[i] = lower_case ? (char)(c - 'a' + 'A') : c;
    }
    buffer[i] = '\0';
    return buffer;
}

static int add_column(struct cli_text_table *table, size_t i)
{
    const struct cli_column *column = table->selection->columns[i];
    char text[64];
    struct libscols_column *made = scols_table_new_column(table->block, heading(column, text, sizeof text), 0,
                                                          column->flags & CLI_LEFT ? 0 : SCOLS_FL_RIGHT);
    if (made && cli_screen_has_colour())
        (void)scols_cell_set_color(scols_column_get_header(made), "bold");
    table->widths[i] = cli_text_width(text);
    return made ? 0 : -1;
}

int cli_text_table_new(FILE *out, const struct cli_selection *selection, struct cli_text_table **ret_table,
                       struct occ_error *err)
{
    _cleanup_(cli_text_table_freep) struct cli_text_table *table = calloc(1, sizeof *table);
    int status = table && (table->block = scols_new_table()) ? 0 : -1;
    for (size_t i = 0; i < selection->n && status == 0; i++) {
        table->out = out;
        table->selection = selection;
        status = add_column(table, i);
    }
    if (status != 0)
        return occ_no_memory(err);
    (void)scols_table_set_termforce(table->block, SCOLS_TERMFORCE_NEVER); /* this file fits the table */
    (void)scols_table_enable_colors(table->block, cli_screen_has_colour());
    /* texts are sanitised here; libsmartcols' own encoding would change a text with a backslash before "x" */
    (void)scols_table_enable_noencoding(table->block, 1);
    *ret_table = occ_take(table);
    return 0;
}

void cli_text_table_freep(struct cli_text_table **table)
{
    if (*table) {
        scols_unref_table((*table)->block);
        occ_arena_free((*table)->briefs.blocks);
    }
    free(*table);
    *table = NULL;
}

/* ---- rows ---- */

/* Copies a string in full, since kernel names may be longer than any fixed buffer. */
static char *text_of(const struct cli_value *value, enum cli_unit unit)
{
    char number[64];
    return value->type == CLI_STRING ? cli_screen_text(value->string)
                                     : strdup(cli_value_text(value, unit, number, sizeof number));
}

static void remember_marks(struct cli_text_table *table, const char *letters)
{
    for (; *letters; letters++)
        if (cli_mark_help(*letters) && !strchr(table->letters, *letters))
            (void)strncat(table->letters, letters, 1);
}

/* The colour of a ratio that is large where a small value is better; NULL: no colour. */
static const char *colour_of(const struct cli_column *column, const struct cli_value *value)
{
    bool is_hot = column->flags & CLI_HEAT && value->type == CLI_REAL;
    return is_hot && value->real >= 0.2 ? "red" : is_hot && value->real >= 0.05 ? "yellow" : NULL;
}

/* True if the text differs from the text in the block's first row. */
static bool differs(const struct cli_text_table *table, size_t i, const char *text)
{
    struct libscols_line *first = table->rows ? scols_table_get_line(table->block, 0) : NULL;
    const char *there =
        first ? scols_line_get_column_data(first, scols_table_get_column(table->block, i)) : NULL;
    return there && strcmp(there, text) != 0;
}

/* True if the value lets a column with CLI_RARE be shown. */
static bool is_worth_showing(const struct cli_column *column, const struct cli_value *value)
{
    bool is_zero = (value->type == CLI_INTEGER && value->integer == 0) ||
                   (value->type == CLI_UNSIGNED && value->number == 0);
    return value->type != CLI_NONE && !(column->flags & CLI_NONZERO && is_zero);
}

/* Keeps the text that replaces the cell's text if that would be cut. */
static int keep_brief(struct cli_text_table *table, struct libscols_line *line, size_t i, const void *row)
{
    const struct cli_column *column = table->selection->columns[i];
    struct cli_value value = column->brief && cli_screen_width() > 0 ? column->brief(column, row)
                                                                     : (struct cli_value){.type = CLI_NONE};
    if (value.type != CLI_STRING)
        return 0;
    _cleanup_(occ_freep) char *text = cli_screen_text(value.string);
    char *kept = text ? occ_arena_bytes(&table->briefs, strlen(text) + 1) : NULL;
    return kept ? scols_cell_set_userdata(scols_line_get_cell(line, i), strcpy(kept, text)) : -1;
}

static int add_cell(struct cli_text_table *table, struct libscols_line *line, size_t i, const void *row)
{
    const struct cli_column *column = table->selection->columns[i];
    struct cli_value value = column->get(column, row);
    bool no_mark = column->flags & CLI_MARKS && value.type == CLI_NONE;
    char *text = no_mark ? strdup("") : text_of(&value, column->unit);
    if (!text || scols_line_refer_data(line, i, text) != 0) {
        free(text);
        return -1;
    }
    if (keep_brief(table, line, i, row) != 0)
        return -1;
    size_t width = cli_text_width(text);
    table->widths[i] = width > table->widths[i] ? width : table->widths[i];
    table->filled[i] |= is_worth_showing(column, &value);
    table->varies[i] |= column->flags & CLI_VARIES && value.type != CLI_NONE && differs(table, i, text);
    if (column->flags & CLI_MARKS && value.type == CLI_STRING)
        remember_marks(table, text);
    if (cli_screen_has_colour() && colour_of(column, &value))
        (void)scols_cell_set_color(scols_line_get_cell(line, i), colour_of(column, &value));
    return 0;
}

/* ---- layout ---- */

/* Returns the minimum width of a column. */
static size_t least_width(const struct cli_text_table *table, size_t i)
{
    size_t width = table->widths[i];
    bool cuts = table->selection->columns[i]->flags & CLI_CUTS;
    return cuts && width > table->cut_width ? table->cut_width : width;
}

static size_t line_width(const struct cli_text_table *table)
{
    size_t total = 0;
    for (size_t i = 0; i < table->selection->n; i++)
        total += table->hidden[i] ? 0 : least_width(table, i) + 1;
    return total > 0 ? total - 1 : 0;
}

/* Returns the index of the shown column to hide first; selection->n: none may be hidden. */
static size_t least_important(const struct cli_text_table *table)
{
    const struct cli_selection *selection = table->selection;
    size_t found = selection->n;
    unsigned int rank = 0;
    for (size_t i = 0; i < selection->n; i++)
        if (!table->hidden[i] && !selection->asked[i] && CLI_RANK_OF(selection->columns[i]->flags) >= rank &&
            CLI_RANK_OF(selection->columns[i]->flags) > 0) {
            found = i;
            rank = CLI_RANK_OF(selection->columns[i]->flags);
        }
    return found;
}

static void hide_columns(struct cli_text_table *table, size_t limit)
{
    const struct cli_selection *selection = table->selection;
    for (size_t i = 0; i < selection->n; i++)
        table->hidden[i] =
            !selection->asked[i] && ((selection->columns[i]->flags & CLI_WIDE && limit == 0) ||
                                     (selection->columns[i]->flags & CLI_RARE && !table->filled[i]) ||
                                     (selection->columns[i]->flags & CLI_VARIES && !table->varies[i]));
    table->cut_width = CLI_CUT_WIDTH;
    for (size_t i = 0; limit > 0 && line_width(table) > limit && (i = least_important(table)) < selection->n;)
        table->hidden[i] = true;
    while (limit > 0 && line_width(table) > limit && table->cut_width > CLI_LEAST_CUT_WIDTH)
        table->cut_width--;
    for (size_t i = 0; i < selection->n; i++) {
        struct libscols_column *column = scols_table_get_column(table->block, i);
        int flags = scols_column_get_flags(column) & ~SCOLS_FL_HIDDEN;
        (void)scols_column_set_flags(column, flags | (table->hidden[i] ? SCOLS_FL_HIDDEN : 0));
    }
}

static bool cut_column(struct cli_text_table *table, size_t i, size_t width)
{
    _cleanup_(occ_freep) char **texts = calloc(table->rows, sizeof *texts);
    bool done = texts != NULL;
    for (size_t k = 0; texts && k < table->rows; k++) {
        struct libscols_line *line = scols_table_get_line(table->block, k);
        const char *text = scols_line_get_column_data(line, scols_table_get_column(table->block, i));
        const char *brief = scols_cell_get_userdata(scols_line_get_cell(line, i));
        texts[k] = strdup(brief && cli_text_width(text) > width ? brief : text);
        done = done && texts[k];
    }
    done = done && cli_fit_texts(texts, table->rows, width, cli_screen_ellipsis());
    for (size_t k = 0; texts && k < table->rows; k++)
        if (!done || scols_line_refer_data(scols_table_get_line(table->block, k), i, texts[k]) != 0)
            free(texts[k]);
    return done;
}

/* Returns the width of the column's texts and heading, which words may have made narrower. */
static size_t widest(const struct cli_text_table *table, size_t i)
{
    struct libscols_column *column = scols_table_get_column(table->block, i);
    char text[64];
    size_t most = cli_text_width(heading(table->selection->columns[i], text, sizeof text));
    for (size_t k = 0; k < table->rows; k++) {
        const char *cell = scols_line_get_column_data(scols_table_get_line(table->block, k), column);
        size_t width = cell ? cli_text_width(cell) : 0;
        most = width > most ? width : most;
    }
    return most;
}

/* Fits the table to the screen: the remaining width goes to the leftmost shortened columns. */
static bool fit(struct cli_text_table *table)
{
    size_t limit = cli_screen_width();
    bool done = true;
    hide_columns(table, limit);
    size_t needed = line_width(table), room = limit > needed ? limit - needed : 0;
    for (size_t i = 0; limit > 0 && i < table->selection->n && done; i++) {
        size_t least = least_width(table, i), more = table->widths[i] - least;
        if (table->hidden[i] || more == 0)
            continue;
        more = more < room ? more : room;
        room -= more;
        if (least + more == table->widths[i])
            continue;
        done = cut_column(table, i, least + more);
        size_t width = widest(table, i);
        room += done && width < least + more ? least + more - width : 0;
    }
    return done;
}

/* Writes lines without the blanks that pad the last column. */
static void put_trimmed(FILE *out, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n"), n = length;
        while (n > 0 && text[n - 1] == ' ')
            n--;
        (void)fwrite(text, 1, n, out);
        (void)fputc('\n', out);
        text += length + (text[length] == '\n');
    }
}

static int flush(struct cli_text_table *table, struct occ_error *err)
{
    _cleanup_(occ_freep) char *text = NULL;
    char buffer[64];
    if (table->rows == 0)
        return 0;
    bool done = fit(table);
    locale_t user = uselocale(cli_text_locale()); /* in other locales libsmartcols prints "\\xe8" */
    errno = 0; /* libsmartcols leaves a cell empty without an error if memory for it is exhausted */
    done = done && scols_print_table_to_string(table->block, &text) == 0 && text && errno != ENOMEM;
    (void)uselocale(user);
    scols_table_remove_lines(table->block);
    occ_arena_free(table->briefs.blocks);
    table->briefs = (struct occ_arena){0};
    table->rows = 0;
    for (size_t i = 0; i < table->selection->n; i++)
        table->widths[i] = cli_text_width(heading(table->selection->columns[i], buffer, sizeof buffer));
    if (!done)
        return occ_fail(err, OCC_E_NO_MEMORY, "cannot lay out a table");
    put_trimmed(table->out, text);
    return 0;
}

int cli_text_table_add(struct cli_text_table *table, const void *row, struct occ_error *err)
{
    struct libscols_line *line = scols_table_new_line(table->block, NULL);
    int status = line ? 0 : -1;
    for (size_t i = 0; i < table->selection->n && status == 0; i++)
        status = add_cell(table, line, i, row);
    if (status != 0)
        return occ_no_memory(err);
    return ++table->rows == CLI_TABLE_BLOCK_ROWS ? flush(table, err) : 0;
}

/* ---- the legend ---- */

/* Prints a legend: "waste: warp-seconds; s: simulated device". */
static void put_legend(const struct cli_text_table *table)
{
    char text[512] = "", name[64];
    for (size_t i = 0; i < table->selection->n; i++) {
        if (!table->hidden[i] && table->selection->columns[i]->unit == CLI_AMOUNT)
            occ_text_append(text, sizeof text, "; ", "%s: warp-seconds",
                            heading(table->selection->columns[i], name, sizeof name));
        for (const char *letter = table->letters; table->selection->columns[i]->flags & CLI_MARKS && *letter;
             letter++)
            occ_text_append(text, sizeof text, "; ", "%c: %s", *letter, cli_mark_help(*letter));
    }
    if (text[0])
        (void)cli_print_wrapped(table->out, text, 0, 0);
}

int cli_text_table_finish(struct cli_text_table *table, struct occ_error *err)
{
    /* a block is empty only if the table is, or if its size is a multiple of the block's */
    bool has_rows = table->rows > 0;
    int status = flush(table, err);
    if (status == 0 && has_rows)
        put_legend(table);
    return status;
}
