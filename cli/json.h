/* Documents of commands in JSON, and rows of columns (values.h) in them. The writer is support/json.h's. */
#pragma once

#include "support/json.h"
#include "values.h"

/* Goes up when a key goes or changes its meaning; new keys may come without. */
#define CLI_JSON_SCHEMA 1

/* The document's object, with "schema" in it. */
void cli_json_begin(struct occ_json *json, FILE *out);
void cli_json_end(struct occ_json *json);

/* From now on each document of the process ends with what this puts, if it is the last to be set; NULL:
 * nothing. */
void cli_json_set_last(void (*put)(struct occ_json *json));

/* `key` NULL inside arrays. */
void cli_json_value(struct occ_json *json, const char *key, struct cli_value value);
/* A member for each column of `table`. */
void cli_json_row(struct occ_json *json, const struct cli_column *table, const void *row);
/* An array of an object for each of `n` rows of `row_bytes` bytes. */
void cli_json_rows(struct occ_json *json, const char *key, const struct cli_column *table, const void *rows,
                   size_t n, size_t row_bytes);
