/* The three renderers of a table; see table.h. One thread. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "table_text.h"
#include "support/cleanup.h"
#include "support/text.h"

struct cli_table {
    FILE *out;
    const struct cli_selection *selection;
    struct cli_text_table *text;
    struct cli_json json;
};

static void put_csv_field(FILE *out, const char *text)
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
        put_csv_field(table->out, table->selection->columns[i]->key);
    }
    (void)fputc('\n', table->out);
}

/* Line ends may stand in a field; other control characters would reach a reader's terminal. */
int cli_csv_value(FILE *out, const struct cli_value *value, struct occ_error *err)
{
    char digits[64];
    _cleanup_(occ_freep) char *clean = value->type == CLI_STRING ? strdup(value->string) : NULL;
    if (value->type != CLI_STRING) {
        (void)fputs(cli_value_raw(value, digits, sizeof digits), out);
        return 0;
    }
    if (!clean)
        return occ_no_memory(err);
    occ_text_sanitise(clean);
    for (size_t i = 0; value->string[i]; i++)
        if (value->string[i] == '\n' || value->string[i] == '\t' || value->string[i] == '\r')
            clean[i] = value->string[i];
    put_csv_field(out, clean);
    return 0;
}

static int csv_add(struct cli_table *table, const void *row, struct occ_error *err)
{
    int status = 0;
    for (size_t i = 0; i < table->selection->n && status == 0; i++) {
        struct cli_value value = table->selection->columns[i]->get(table->selection->columns[i], row);
        (void)fputs(i ? "," : "", table->out);
        status = cli_csv_value(table->out, &value, err);
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
        return occ_no_memory(err);
    table->out = out;
    table->selection = selection;
    if (selection->format == CLI_FORMAT_TEXT && cli_text_table_new(out, selection, &table->text, err) != 0)
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
        return cli_text_table_add(table->text, row, err);
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
        return cli_text_table_finish(table->text, err);
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
        cli_text_table_freep(&(*table)->text);
    free(*table);
}
