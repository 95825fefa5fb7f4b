/*
 * A streaming JSON writer: two blanks of indentation, one line for objects opened as compact. Texts may hold
 * any bytes: control characters are escaped, bytes that are not UTF-8 become U+FFFD. NaN and infinities
 * become null. Write errors stay in the stream (ferror).
 *
 * One writer belongs to one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "values.h"

#define CLI_JSON_DEPTH 16
/* Goes up when a key goes or changes its meaning; new keys may come without. */
#define CLI_JSON_SCHEMA 1

struct cli_json {
    FILE *out;
    bool in_html; /* escapes what could end or open an element: set after cli_json_begin() */
    int depth;
    struct {
        char end; /* '}' or ']' */
        bool compact, filled;
    } open[CLI_JSON_DEPTH];
};

/* The document's object, with "schema" in it. */
void cli_json_begin(struct cli_json *json, FILE *out);
void cli_json_end(struct cli_json *json);

/* From now on each document of the process ends with what this puts, if it is the last to be set; NULL:
 * nothing. */
void cli_json_set_last(void (*put)(struct cli_json *json));

/* `key` NULL inside arrays. */
void cli_json_object(struct cli_json *json, const char *key, bool compact);
void cli_json_array(struct cli_json *json, const char *key, bool compact);
/* Ends the object or array opened last. */
void cli_json_close(struct cli_json *json);

void cli_json_value(struct cli_json *json, const char *key, struct cli_value value);
void cli_json_string(struct cli_json *json, const char *key, const char *string); /* NULL: null */
void cli_json_unsigned(struct cli_json *json, const char *key, uint64_t number);
void cli_json_integer(struct cli_json *json, const char *key, int64_t number);
void cli_json_real(struct cli_json *json, const char *key, double real);
void cli_json_bool(struct cli_json *json, const char *key, bool boolean);
void cli_json_null(struct cli_json *json, const char *key);

/* A member for each column of `table`. */
void cli_json_row(struct cli_json *json, const struct cli_column *table, const void *row);
/* An array of an object for each of `n` rows of `row_bytes` bytes. */
void cli_json_rows(struct cli_json *json, const char *key, const struct cli_column *table, const void *rows,
                   size_t n, size_t row_bytes);
