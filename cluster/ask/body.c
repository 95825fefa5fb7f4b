/* Rows as text: see body.h. */
#define XXH_INLINE_ALL /* the header alone is enough */
#include "body.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>
#include <string.h>

#include "support/array.h"

#define NUMBER_BYTES 40
#define REAL_DIGITS  14 /* ClickHouse reads decimals with an error of a few units in the 16th digit */

uint64_t occ_body_id(const char *data, size_t n)
{
    return XXH3_64bits(data, n);
}

void occ_body_free(struct occ_body *body)
{
    free(body->data);
    *body = (struct occ_body){0};
}

void occ_body_clear(struct occ_body *body)
{
    body->n = 0;
    body->rows = 0;
    body->in_row = body->failed = false;
}

/* Room for `n` > 0 bytes more, or NULL. */
static char *reserve(struct occ_body *body, size_t n)
{
    body->failed |= !occ_grow((void **)&body->data, &body->allocated, body->n + n - 1, SIZE_MAX, 1);
    return body->failed ? NULL : body->data + body->n;
}

void occ_body_put_raw(struct occ_body *body, const char *text, size_t n)
{
    char *at = n > 0 ? reserve(body, n) : NULL;
    if (at) {
        memcpy(at, text, n);
        body->n += n;
    }
}

static void begin_column(struct occ_body *body)
{
    if (body->in_row)
        occ_body_put_raw(body, "\t", 1);
    body->in_row = true;
}

static void put_number(struct occ_body *body, int digits, double value)
{
    char text[NUMBER_BYTES];
    int n = snprintf(text, sizeof text, "%.*g", digits, value);
    occ_body_put_raw(body, text, (size_t)n);
}

static void put_digits(struct occ_body *body, uint64_t value)
{
    char text[NUMBER_BYTES], *at = text + sizeof text;
    do
        *--at = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    occ_body_put_raw(body, at, (size_t)(text + sizeof text - at));
}

void occ_body_put_u64(struct occ_body *body, uint64_t value)
{
    begin_column(body);
    put_digits(body, value);
}

void occ_body_put_float(struct occ_body *body, double value)
{
    begin_column(body);
    if (isnan(value))
        occ_body_put_raw(body, "\\N", 2);
    else if (value == 0)
        occ_body_put_raw(body, "0", 1);
    else
        put_number(body, 9, value);
}

void occ_body_put_text(struct occ_body *body, const char *text, size_t n)
{
    begin_column(body);
    char *at = n > 0 ? reserve(body, 2 * n) : NULL;
    for (size_t i = 0; at && i < n; i++) {
        const char *escaped = memchr("\t\n\r\\", text[i], 4);
        if (escaped || text[i] == '\0')
            *at++ = '\\';
        *at++ = text[i] == '\t'   ? 't'
                : text[i] == '\n' ? 'n'
                : text[i] == '\r' ? 'r'
                : text[i] == '\0' ? '0'
                                  : text[i];
    }
    if (at)
        body->n = (size_t)(at - body->data);
}

void occ_body_put_list(struct occ_body *body, const uint64_t *values, size_t n)
{
    begin_column(body);
    occ_body_put_raw(body, "[", 1);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            occ_body_put_raw(body, ",", 1);
        put_digits(body, values[i]);
    }
    occ_body_put_raw(body, "]", 1);
}

static void put_column(struct occ_body *body, sqlite3_stmt *stmt, int i)
{
    int type = sqlite3_column_type(stmt, i);
    if (type == SQLITE_TEXT || type == SQLITE_BLOB) {
        const char *text =
            type == SQLITE_TEXT ? (const char *)sqlite3_column_text(stmt, i) : sqlite3_column_blob(stmt, i);
        occ_body_put_text(body, text ? text : "", text ? (size_t)sqlite3_column_bytes(stmt, i) : 0);
        return;
    }
    begin_column(body);
    if (type == SQLITE_NULL) {
        occ_body_put_raw(body, "\\N", 2);
    } else if (type == SQLITE_FLOAT) {
        put_number(body, REAL_DIGITS, sqlite3_column_double(stmt, i));
    } else {
        int64_t value = sqlite3_column_int64(stmt, i);
        if (value < 0)
            occ_body_put_raw(body, "-", 1);
        put_digits(body, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    }
}

void occ_body_put_columns(struct occ_body *body, sqlite3_stmt *stmt, int first, int n)
{
    for (int i = first; i < first + n; i++)
        put_column(body, stmt, i);
}

void occ_body_end_row(struct occ_body *body)
{
    occ_body_put_raw(body, "\n", 1);
    body->in_row = false;
    body->rows++;
}
