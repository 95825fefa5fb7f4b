/* The three renderers of a table; see table.h. One thread. */
#include "table.h"

#include <stdlib.h>

#include "csv.h"
#include "gather.h"
#include "json.h"
#include "table_text.h"
#include "support/cleanup.h"

struct cli_table {
    FILE *out;
    const struct cli_selection *selection;
    struct cli_text_table *text;
    struct occ_json json;
};

/* ---- JSON ---- */

static void json_add(struct cli_table *table, const void *row)
{
    occ_json_object(&table->json, NULL, true);
    for (size_t i = 0; i < table->selection->n; i++) {
        const struct cli_column *column = table->selection->columns[i];
        cli_json_value(&table->json, column->key, column->get(column, row));
    }
    occ_json_close(&table->json);
}

/* ---- CSV ---- */

static void csv_begin(struct cli_table *table)
{
    for (size_t i = 0; i < table->selection->n; i++) {
        (void)fputs(i ? "," : "", table->out);
        cli_csv_text(table->out, table->selection->columns[i]->key);
    }
    (void)fputc('\n', table->out);
}

static void csv_add(struct cli_table *table, const void *row)
{
    for (size_t i = 0; i < table->selection->n; i++) {
        struct cli_value value = table->selection->columns[i]->get(table->selection->columns[i], row);
        (void)fputs(i ? "," : "", table->out);
        cli_csv_value(table->out, &value);
    }
    (void)fputc('\n', table->out);
}

/* ---- all formats ---- */

static int begin(struct cli_table *table, const char *name, struct occ_error *err)
{
    if (table->selection->gather)
        return cli_gather_begin(table->selection->gather, name, table->selection, err);
    switch (table->selection->format) {
    case CLI_FORMAT_TEXT:
        return cli_text_table_new(table->out, table->selection, &table->text, err);
    case CLI_FORMAT_CSV:
        csv_begin(table);
        return 0;
    case CLI_FORMAT_JSON:
        break;
    }
    cli_json_begin(&table->json, table->out);
    occ_json_array(&table->json, name, false);
    return 0;
}

int cli_table_new(FILE *out, const char *name, const struct cli_selection *selection,
                  struct cli_table **ret_table, struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = calloc(1, sizeof *table);
    if (!table)
        return occ_no_memory(err);
    table->out = out;
    table->selection = selection;
    int status = begin(table, name, err);
    if (status == 0)
        *ret_table = occ_take(table);
    return status;
}

int cli_table_add(struct cli_table *table, const void *row, struct occ_error *err)
{
    if (table->selection->gather)
        return cli_gather_add(table->selection->gather, row, err);
    switch (table->selection->format) {
    case CLI_FORMAT_TEXT:
        return cli_text_table_add(table->text, row, err);
    case CLI_FORMAT_CSV:
        csv_add(table, row);
        return 0;
    case CLI_FORMAT_JSON:
        break;
    }
    json_add(table, row);
    return 0;
}

int cli_table_finish(struct cli_table *table, struct occ_error *err)
{
    if (table->selection->gather)
        return 0;
    if (table->selection->format == CLI_FORMAT_TEXT)
        return cli_text_table_finish(table->text, err);
    if (table->selection->format == CLI_FORMAT_JSON) {
        occ_json_close(&table->json);
        cli_json_end(&table->json);
    }
    return 0;
}

int cli_table_print(const char *name, const struct cli_selection *selection, const void *rows, size_t n,
                    size_t row_bytes, struct occ_error *err)
{
    _cleanup_(cli_table_freep) struct cli_table *table = NULL;
    int status = cli_table_new(cli_out(), name, selection, &table, err);
    for (size_t i = 0; i < n && status == 0; i++)
        status = cli_table_add(table, (const char *)rows + i * row_bytes, err);
    return status == 0 ? cli_table_finish(table, err) : status;
}

void cli_table_freep(struct cli_table **table)
{
    if (*table)
        cli_text_table_freep(&(*table)->text);
    free(*table);
}
