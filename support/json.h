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

#define OCC_JSON_DEPTH 16

struct occ_json {
    FILE *out;
    bool in_html; /* escapes what could end or open an element: set after occ_json_begin() */
    int depth;
    struct {
        char end; /* '}' or ']' */
        bool compact, filled;
    } open[OCC_JSON_DEPTH];
};

/* The document's object. */
void occ_json_begin(struct occ_json *json, FILE *out);
void occ_json_end(struct occ_json *json);

/* `key` NULL inside arrays. */
void occ_json_object(struct occ_json *json, const char *key, bool compact);
void occ_json_array(struct occ_json *json, const char *key, bool compact);
/* Ends the object or array opened last. */
void occ_json_close(struct occ_json *json);

void occ_json_string(struct occ_json *json, const char *key, const char *string); /* NULL: null */
void occ_json_unsigned(struct occ_json *json, const char *key, uint64_t number);
void occ_json_integer(struct occ_json *json, const char *key, int64_t number);
void occ_json_real(struct occ_json *json, const char *key, double real);
void occ_json_bool(struct occ_json *json, const char *key, bool boolean);
void occ_json_null(struct occ_json *json, const char *key);
/* `text` is JSON already, such as the digits of a number. */
void occ_json_raw(struct occ_json *json, const char *key, const char *text);
