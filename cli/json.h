/* Documents of commands in JSON, with rows of columns (values.h). The writer is in support/json.h. */
#pragma once

#include "support/json.h"
#include "values.h"

/* Increases when a key is removed or changes its meaning; new keys do not need a new number. */
#define CLI_JSON_SCHEMA 1

/* Opens the document's object, with the member "schema". */
void cli_json_begin(struct occ_json *json, FILE *out);
void cli_json_end(struct occ_json *json);

/* Registers a function that writes the last members of every later document of the command; the last
 * registered function counts; NULL: none. */
void cli_json_set_last(void (*put)(struct occ_json *json));

/* Writes a value; `key` is NULL inside arrays. */
void cli_json_value(struct occ_json *json, const char *key, struct cli_value value);
/* Writes a member for each column of `table`. */
void cli_json_row(struct occ_json *json, const struct cli_column *table, const void *row);
/* Writes an array with an object for each of `n` rows of `row_bytes` bytes. */
void cli_json_rows(struct occ_json *json, const char *key, const struct cli_column *table, const void *rows,
                   size_t n, size_t row_bytes);
