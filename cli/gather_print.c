/* Prints the merged table of several histories, with shares and sums; see gather.h. One thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gather_state.h"
#include "json.h"
#include "screen.h"
#include "table.h"
#include "support/cleanup.h"

/* ---- shares ---- */

static void set_part(struct cli_gather *g, size_t part, const struct cli_column *column)
{
    double running = 0;
    for (size_t i = 0; i < g->n; i++) {
        double whole = gather_whole(g, g->rows[i], part);
        running += isnan(whole) ? 0 : whole;
        double shown = g->merge.parts[part].runs ? running : whole, total = g->totals[part];
        g->rows[i]->values[column->index] = cli_real(isfinite(total) ? shown / total : (double)NAN);
    }
}

static void set_parts(struct cli_gather *g)
{
    for (size_t part = 0; part < gather_count_parts(&g->merge); part++)
        for (size_t i = 1; i < g->shown.n; i++)
            if (strcmp(g->columns[i].key, g->merge.parts[part].key) == 0)
                set_part(g, part, &g->columns[i]);
}

/* ---- sums ---- */

/* Adds two values. A sum beyond a double's range stays infinite until finish(): cli_real() would turn it into
 * no value, and the sum would restart at the next row. */
static struct cli_value add(const struct cli_value *a, const struct cli_value *b)
{
    struct cli_value sum = *a;
    if (a->type == CLI_NONE)
        return *b;
    if (b->type == CLI_NONE)
        return *a;
    if (a->type == CLI_INTEGER && b->type == CLI_INTEGER &&
        !__builtin_add_overflow(a->integer, b->integer, &sum.integer))
        return sum;
    if (a->type == CLI_UNSIGNED && b->type == CLI_UNSIGNED &&
        !__builtin_add_overflow(a->number, b->number, &sum.number))
        return sum;
    return (struct cli_value){.type = CLI_REAL, .real = gather_real(a) + gather_real(b)};
}

static void finish(struct cli_value *sum)
{
    if (sum->type == CLI_REAL)
        *sum = cli_real(sum->real);
}

/* Returns the group of a row: the text in column sum_by; "": all rows belong to one group. */
static const char *kind_of(const struct cli_gather *g, const struct cli_gathered *row)
{
    const struct cli_value *value = &row->values[g->n_values - 1];
    return g->merge.sum_by && value->type == CLI_STRING ? value->string : "";
}

/* Returns the sum of the group's rows, in the form of a row; NULL: no memory. */
static struct cli_gathered *sum_of(const struct cli_gather *g, const char *kind)
{
    struct cli_gathered *sum = calloc(1, sizeof *sum + g->n_values * sizeof *sum->values);
    for (size_t i = 0; sum && i < g->n; i++)
        for (size_t k = 1; k < g->shown.n && strcmp(kind_of(g, g->rows[i]), kind) == 0; k++) {
            struct cli_value *value = &sum->values[g->columns[k].index];
            if (g->columns[k].flags & CLI_ADDS)
                *value = add(value, &g->rows[i]->values[g->columns[k].index]);
            else if (g->merge.sum_by && strcmp(g->columns[k].key, g->merge.sum_by) == 0)
                *value = cli_string(kind);
        }
    for (size_t k = 0; sum && k < g->n_values; k++)
        finish(&sum->values[k]);
    if (sum)
        sum->owner = "sum";
    return sum;
}

/* True if row i is the first row of its group. */
static bool begins_kind(const struct cli_gather *g, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(kind_of(g, g->rows[k]), kind_of(g, g->rows[i])) == 0)
            return false;
    return true;
}

struct sum_visitor {
    int (*sum)(void *context, const struct cli_gathered *sum, struct occ_error *err);
    void *context;
};

static int visit_sums(const struct cli_gather *g, const struct sum_visitor *visitor, struct occ_error *err)
{
    bool adds = false;
    int status = 0;
    for (size_t i = 1; i < g->shown.n; i++)
        adds |= (g->columns[i].flags & CLI_ADDS) != 0;
    for (size_t i = 0; i < g->n && adds && status == 0; i++) {
        if (!begins_kind(g, i))
            continue;
        _cleanup_(occ_freep) struct cli_gathered *sum = sum_of(g, kind_of(g, g->rows[i]));
        status = sum ? visitor->sum(visitor->context, sum, err) : occ_no_memory(err);
    }
    return status;
}

/* ---- output ---- */

static int add_sum(void *table, const struct cli_gathered *sum, struct occ_error *err)
{
    return cli_table_add(table, sum, err);
}

static int print_table(struct cli_gather *g, FILE *out, struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    int status = cli_table_new(out, g->name, &g->shown, &table, err);
    for (size_t i = 0; i < g->n && status == 0; i++)
        status = cli_table_add(table, g->rows[i], err);
    if (status == 0 && g->shown.format == CLI_FORMAT_TEXT)
        status = visit_sums(g, &(struct sum_visitor){add_sum, table}, err);
    return status == 0 ? cli_table_finish(table, err) : status;
}

struct json_sums {
    const struct cli_gather *gather;
    struct occ_json json;
    const char *key; /* NULL: inside an array */
};

static int put_sum(void *context, const struct cli_gathered *sum, struct occ_error *err)
{
    struct json_sums *sums = context;
    const struct cli_gather *g = sums->gather;
    (void)err;
    occ_json_object(&sums->json, sums->key, true);
    for (size_t i = 1; i < g->shown.n; i++) {
        const struct cli_column *c = &g->columns[i];
        if (c->flags & CLI_ADDS || (g->merge.sum_by && strcmp(c->key, g->merge.sum_by) == 0))
            cli_json_value(&sums->json, c->key, sum->values[c->index]);
    }
    occ_json_close(&sums->json);
    return 0;
}

static int print_json(struct cli_gather *g, FILE *out, struct occ_error *err)
{
    struct json_sums sums = {.gather = g, .key = g->merge.sum_by ? NULL : "total"};
    cli_json_begin(&sums.json, out);
    occ_json_array(&sums.json, g->name, false);
    for (size_t i = 0; i < g->n; i++) {
        occ_json_object(&sums.json, NULL, true);
        for (size_t k = 0; k < g->shown.n; k++)
            cli_json_value(&sums.json, g->columns[k].key, g->columns[k].get(&g->columns[k], g->rows[i]));
        occ_json_close(&sums.json);
    }
    occ_json_close(&sums.json);
    if (g->merge.sum_by)
        occ_json_array(&sums.json, "totals", false);
    int status = visit_sums(g, &(struct sum_visitor){put_sum, &sums}, err);
    if (g->merge.sum_by)
        occ_json_close(&sums.json);
    cli_json_end(&sums.json);
    return status;
}

bool cli_gather_cut_text(const struct cli_gather *gather, char *buffer, size_t size)
{
    char of[32] = "";
    if (!gather->has_more) /* otherwise the number is unknown */
        (void)snprintf(of, sizeof of, " of %zu", gather->added);
    (void)snprintf(buffer, size, "the first %zu%s rows of all owners; -n shows more", gather->n, of);
    return gather->has_more || gather->n < gather->added;
}

int cli_gather_print(struct cli_gather *gather, FILE *out, struct occ_error *err)
{
    if (!gather->name)
        return 0;
    gather_sort(gather, (size_t)gather->merge.number);
    set_parts(gather);
    int status = gather->shown.format == CLI_FORMAT_JSON ? print_json(gather, out, err)
                                                         : print_table(gather, out, err);
    if (status == 0 && gather->lines)
        cli_print("%s", gather->lines);
    return status;
}
