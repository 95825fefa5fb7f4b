/* Collects and sorts the rows of several histories; see gather.h. One thread. */
#include "gather.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gather_state.h"
#include "screen.h"
#include "support/array.h"
#include "support/cleanup.h"
#include "support/text.h"

enum { KEPT_MORE = 1024 }; /* rows beyond the number before surplus rows are dropped */

int cli_gather_new(const struct cli_merge *merge, struct cli_gather **ret_gather, struct occ_error *err)
{
    struct cli_gather *gather = calloc(1, sizeof *gather);
    if (!gather)
        return occ_no_memory(err);
    gather->merge = *merge;
    *ret_gather = gather;
    return 0;
}

void cli_gather_freep(struct cli_gather **gather)
{
    struct cli_gather *g = *gather;
    for (size_t i = 0; g && i < g->n; i++)
        free(g->rows[i]);
    if (g) {
        free((void *)g->rows);
        free(g->lines);
    }
    free(g);
    *gather = NULL;
}

void cli_gather_of(struct cli_gather *gather, const char *owner)
{
    gather->owner = owner;
    gather->owner_index++;
    gather->row_index = 0;
}

/* Returns the keys of hidden columns: the bases of shares, then the column that groups sum rows. */
static const char *hidden_key(const struct cli_merge *merge, size_t i)
{
    return i < CLI_PARTS_MAX ? i < gather_count_parts(merge) ? merge->parts[i].of : NULL : merge->sum_by;
}

bool cli_gather_reads(const struct cli_gather *gather, const char *key)
{
    for (size_t i = 0; gather && i < 2; i++)
        if (gather->merge.keys[i] && strcmp(gather->merge.keys[i], key) == 0)
            return true;
    for (size_t i = 0; gather && i < CLI_GATHER_HIDDEN; i++)
        if (hidden_key(&gather->merge, i) && strcmp(hidden_key(&gather->merge, i), key) == 0)
            return true;
    return false;
}

/* ---- columns ---- */

static struct cli_value get_owner(const struct cli_column *column, const void *row)
{
    const struct cli_gathered *gathered = row;
    (void)column;
    return cli_string(gathered->owner);
}

static struct cli_value get_value(const struct cli_column *column, const void *row)
{
    const struct cli_gathered *gathered = row;
    return gathered->values[column->index];
}

static struct cli_value get_brief(const struct cli_column *column, const void *row)
{
    (void)column;
    return ((const struct cli_gathered *)row)->brief;
}

static const struct cli_column *find_brief(const struct cli_selection *from)
{
    for (size_t i = 0; i < from->n; i++)
        if (from->columns[i]->brief)
            return from->columns[i];
    return NULL;
}

static const struct cli_column owner_column = {.name = "owner",
                                               .key = "owner",
                                               .flags = CLI_LEFT | CLI_CUTS,
                                               .help = "owner of the history that has the row",
                                               .get = get_owner};

static void copy_columns(struct cli_gather *g, const struct cli_selection *from)
{
    g->columns[0] = owner_column;
    g->shown.format = from->format;
    g->shown.columns[0] = &g->columns[0];
    for (size_t i = 0; i < from->n; i++) {
        g->columns[i + 1] = *from->columns[i];
        g->columns[i + 1].get = get_value;
        g->columns[i + 1].brief = from->columns[i] == find_brief(from) ? get_brief : NULL;
        g->columns[i + 1].index = i;
        g->shown.columns[i + 1] = &g->columns[i + 1];
        g->shown.asked[i + 1] = from->asked[i];
    }
    g->shown.n = from->n + 1;
    g->n_values = from->n + CLI_GATHER_HIDDEN;
}

static const struct cli_column *find(const struct cli_column *table, const char *key)
{
    for (; key && table && table->name; table++)
        if (strcmp(table->key, key) == 0)
            return table;
    return NULL;
}

/* True if the answer has the same columns as the first answer. */
static bool is_alike(const struct cli_gather *g, const struct cli_selection *from)
{
    bool alike = from->n + 1 == g->shown.n;
    for (size_t i = 0; alike && i < from->n; i++)
        alike = strcmp(from->columns[i]->key, g->columns[i + 1].key) == 0;
    return alike;
}

int cli_gather_begin(struct cli_gather *gather, const char *name, const struct cli_selection *selection,
                     struct occ_error *err)
{
    if (selection->n >= CLI_MAX_COLUMNS)
        return occ_fail(err, OCC_E_INVALID, "too many columns");
    if (!gather->name)
        copy_columns(gather, selection);
    else if (!is_alike(gather, selection))
        return occ_fail(err, OCC_E_INVALID, "the history's columns are not those of the others");
    gather->name = name;
    gather->from = selection;
    gather->brief = find_brief(selection);
    for (size_t i = 0; i < 2; i++)
        gather->keys[i] = find(selection->table, gather->merge.keys[i]);
    for (size_t i = 0; i < CLI_GATHER_HIDDEN; i++)
        gather->hidden[i] = find(selection->table, hidden_key(&gather->merge, i));
    return 0;
}

/* ---- rows ---- */

/* Compares keys: -1, 0, 1. Integers are compared as integers, since times in nanoseconds have more digits
 * than a double. */
static int compare_keys(const struct cli_value *a, const struct cli_value *b)
{
    double x = gather_real(a), y = gather_real(b);
    if (isnan(x) || isnan(y))
        return 0;
    if (a->type == CLI_INTEGER && b->type == CLI_INTEGER)
        return (a->integer > b->integer) - (a->integer < b->integer);
    return (x > y) - (x < y);
}

static int compare(const void *left, const void *right, void *gather)
{
    const struct cli_gather *g = gather;
    const struct cli_gathered *a = *(struct cli_gathered *const *)left,
                              *b = *(struct cli_gathered *const *)right;
    bool a_last = isnan(gather_real(&a->key)), b_last = isnan(gather_real(&b->key));
    int order = compare_keys(&a->key, &b->key);
    int owners = (a->owner_index > b->owner_index) - (a->owner_index < b->owner_index);
    int rows = (a->row_index > b->row_index) - (a->row_index < b->row_index);
    if (!g->merge.keys[0])
        return rows != 0 ? rows : owners;
    if (a_last != b_last)
        return a_last - b_last;
    if (order != 0)
        return g->merge.ascending ? order : -order;
    return owners != 0 ? owners : rows;
}

void gather_sort(struct cli_gather *g, size_t most)
{
    if (g->n > 1)
        qsort_r((void *)g->rows, g->n, sizeof *g->rows, compare, g);
    while (most > 0 && g->n > most)
        free(g->rows[--g->n]);
}

static struct cli_value value_of(const struct cli_column *column, const void *row)
{
    return column ? column->get(column, row) : cli_string(NULL);
}

static struct cli_value brief_of(const struct cli_gather *g, const void *row)
{
    return g->brief ? g->brief->brief(g->brief, row) : cli_string(NULL);
}

/* Copies the text of `value` to *text and advances *text. If memory was exhausted when the length was
 * measured, the text has no room now and is omitted. */
static void copy_text(struct cli_value *value, char **text, const char *end)
{
    if (value->type != CLI_STRING)
        return;
    size_t size = strlen(value->string) + 1;
    if (size > (size_t)(end - *text)) {
        *value = cli_string(NULL);
        return;
    }
    value->string = memcpy(*text, value->string, size);
    *text += size;
}

/* Copies a row. A getter's text is valid until the getter's next text, so each value is read
 * twice: for its length, and for its copy. */
static struct cli_gathered *copy_row(const struct cli_gather *g, const void *row)
{
    const struct cli_selection *from = g->from;
    size_t bytes = sizeof(struct cli_gathered) + g->n_values * sizeof(struct cli_value);
    size_t at = bytes;
    const struct cli_value brief = brief_of(g, row);
    bytes += brief.type == CLI_STRING ? strlen(brief.string) + 1 : 0;
    for (size_t i = 0; i < g->n_values; i++) {
        const struct cli_column *column = i < from->n ? from->columns[i] : g->hidden[i - from->n];
        struct cli_value value = value_of(column, row);
        bytes += value.type == CLI_STRING ? strlen(value.string) + 1 : 0;
    }
    struct cli_gathered *made = malloc(bytes);
    char *text = made ? (char *)made + at : NULL;
    const char *end = made ? (char *)made + bytes : NULL;
    for (size_t i = 0; made && i < g->n_values; i++) {
        const struct cli_column *column = i < from->n ? from->columns[i] : g->hidden[i - from->n];
        made->values[i] = value_of(column, row);
        copy_text(&made->values[i], &text, end);
    }
    if (made) {
        made->brief = brief_of(g, row);
        copy_text(&made->brief, &text, end);
    }
    return made;
}

int cli_gather_add(struct cli_gather *gather, const void *row, struct occ_error *err)
{
    size_t most = (size_t)gather->merge.number;
    if (!occ_grow((void **)&gather->rows, &gather->allocated, gather->n, SIZE_MAX / sizeof *gather->rows,
                  sizeof *gather->rows))
        return occ_no_memory(err);
    struct cli_gathered *made = copy_row(gather, row);
    if (!made)
        return occ_no_memory(err);
    made->owner = gather->owner;
    made->owner_index = gather->owner_index;
    made->row_index = gather->row_index++;
    made->key = value_of(gather->keys[0], row);
    if (made->key.type == CLI_NONE)
        made->key = value_of(gather->keys[1], row);
    for (size_t i = 0; i < gather_count_parts(&gather->merge); i++)
        gather->totals[i] += isnan(gather_whole(gather, made, i)) ? 0 : gather_whole(gather, made, i);
    gather->rows[gather->n++] = made;
    gather->added++;
    if (most > 0 && gather->n >= 2 * most + KEPT_MORE)
        gather_sort(gather, most);
    return 0;
}

void cli_gather_more(struct cli_gather *gather)
{
    gather->has_more = true;
}

void cli_gather_line(struct cli_gather *gather, const char *line)
{
    char *lines = NULL;
    _cleanup_(occ_freep) char *owner = cli_screen_text(gather->owner), *text = cli_screen_text(line);
    if (!owner || !text ||
        occ_format_text(&lines, NULL, "%s%s: %s\n", gather->lines ? gather->lines : "", owner, text) != 0) {
        cli_screen_lose_text();
        return;
    }
    free(gather->lines);
    gather->lines = lines;
}
