/* Writes documents and columns in JSON; see json.h. State: the function for the last members of documents. */
#include "json.h"

void cli_json_begin(struct occ_json *json, FILE *out)
{
    occ_json_begin(json, out);
    occ_json_unsigned(json, "schema", CLI_JSON_SCHEMA);
}

static void (*put_last)(struct occ_json *json);

void cli_json_set_last(void (*put)(struct occ_json *json))
{
    put_last = put;
}

void cli_json_end(struct occ_json *json)
{
    if (put_last)
        put_last(json);
    occ_json_end(json);
}

void cli_json_value(struct occ_json *json, const char *key, struct cli_value value)
{
    char digits[OCC_DIGITS_BYTES];
    if (value.type == CLI_STRING)
        occ_json_string(json, key, value.string);
    else
        occ_json_raw(json, key, value.type == CLI_NONE ? "null" : cli_value_raw(&value, digits));
}

void cli_json_row(struct occ_json *json, const struct cli_column *table, const void *row)
{
    for (; table->name; table++)
        if (!(table->flags & CLI_TEXT_ONLY))
            cli_json_value(json, table->key, table->get(table, row));
}

void cli_json_rows(struct occ_json *json, const char *key, const struct cli_column *table, const void *rows,
                   size_t n, size_t row_bytes)
{
    occ_json_array(json, key, false);
    for (size_t i = 0; i < n; i++) {
        occ_json_object(json, NULL, true);
        cli_json_row(json, table, (const char *)rows + i * row_bytes);
        occ_json_close(json);
    }
    occ_json_close(json);
}
