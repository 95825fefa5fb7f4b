/* See arrow_column.h. One thread. */
#include "arrow_column.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

enum { BUFFERS_MAX = 3, INTEGER_BITS_OF_DOUBLE = 53, NUMBER_BYTES = 8 };

enum query_kind query_kind_of_type(const char *declared)
{
    static const struct {
        const char *part;
        enum query_kind kind;
    } parts[] = {{"INT", QUERY_INTEGER}, {"CHAR", QUERY_TEXT}, {"CLOB", QUERY_TEXT}, {"TEXT", QUERY_TEXT},
                 {"BLOB", QUERY_BLOB},   {"REAL", QUERY_REAL}, {"FLOA", QUERY_REAL}, {"DOUB", QUERY_REAL}};
    for (size_t i = 0; declared && i < sizeof parts / sizeof *parts; i++)
        if (strcasestr(declared, parts[i].part))
            return parts[i].kind;
    return QUERY_UNKNOWN;
}

/* ---- buffers ---- */

/* Makes room for `n` further bytes. Returns their address; NULL: no memory. */
static uint8_t *extend(struct query_buffer *buffer, size_t n)
{
    size_t room = buffer->room ? buffer->room : 64;
    while (room < buffer->used + n)
        room *= 2;
    if (room > buffer->room) {
        uint8_t *bytes = realloc(buffer->bytes, room);
        if (!bytes)
            return NULL;
        buffer->bytes = bytes;
        buffer->room = room;
    }
    buffer->used += n;
    return buffer->bytes + buffer->used - n;
}

static bool put(struct query_buffer *buffer, const void *bytes, size_t n)
{
    uint8_t *to = extend(buffer, n);
    if (to && n > 0)
        memcpy(to, bytes, n);
    return to != NULL;
}

static void release_buffer(struct query_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct query_buffer){.used = 0};
}

/* ---- values ---- */

static bool is_sized(enum query_kind kind)
{
    return kind == QUERY_TEXT || kind == QUERY_BLOB;
}

static bool put_end(struct query_column *column)
{
    int32_t end = (int32_t)column->data.used;
    return put(&column->ends, &end, sizeof end);
}

/* Sets the bit of the next row. */
static bool put_valid(struct query_column *column, bool is_valid)
{
    uint8_t none = 0;
    size_t byte = (size_t)column->rows / 8;
    if (byte == column->valid.used && !put(&column->valid, &none, 1))
        return false;
    if (is_valid)
        column->valid.bytes[byte] |= (uint8_t)(1u << (column->rows % 8));
    column->nulls += !is_valid;
    column->rows++;
    return true;
}

/* Writes the slot of a row without a value. */
static bool put_empty(struct query_column *column)
{
    static const uint8_t zero[NUMBER_BYTES];
    if (is_sized(column->kind))
        return put_end(column);
    return column->kind == QUERY_UNKNOWN || put(&column->data, zero, sizeof zero);
}

/* Gives the column, which has no value yet, its kind, and its earlier rows their slots. */
static bool set_kind(struct query_column *column, enum query_kind kind)
{
    bool done = true;
    column->kind = kind;
    column->data.used = column->ends.used = 0;
    if (is_sized(kind))
        done = put_end(column);
    for (int64_t row = 0; row < column->rows && done; row++)
        done = put_empty(column);
    return done;
}

static bool is_exact(int64_t number)
{
    const int64_t limit = INT64_C(1) << INTEGER_BITS_OF_DOUBLE;
    return number >= -limit && number <= limit;
}

/* Turns the integers of the batch into reals. Returns false, and changes nothing, if one of them has no
 * equal. */
static bool turn_real(struct query_column *column)
{
    size_t n = column->data.used / NUMBER_BYTES;
    int64_t *numbers = (int64_t *)(void *)column->data.bytes;
    for (size_t i = 0; i < n; i++)
        if (!is_exact(numbers[i]))
            return false;
    for (size_t i = 0; i < n; i++) {
        double real = (double)numbers[i];
        memcpy(&numbers[i], &real, sizeof real);
    }
    column->kind = QUERY_REAL;
    return true;
}

static enum query_kind kind_of(sqlite3_stmt *row, int index)
{
    static const enum query_kind kinds[] = {[SQLITE_INTEGER] = QUERY_INTEGER,
                                            [SQLITE_FLOAT] = QUERY_REAL,
                                            [SQLITE_TEXT] = QUERY_TEXT,
                                            [SQLITE_BLOB] = QUERY_BLOB,
                                            [SQLITE_NULL] = QUERY_UNKNOWN};
    return kinds[sqlite3_column_type(row, index)];
}

/* Prepares the column for a value of the kind. Returns 1; 0: the value does not fit; -1: no memory. */
static int accept(struct query_column *column, enum query_kind kind, bool is_exact_integer)
{
    bool is_whole = kind == QUERY_INTEGER && column->kind == QUERY_REAL;
    if (kind == column->kind)
        return 1;
    if (is_whole || column->is_frozen)
        return is_whole && is_exact_integer;
    if (!column->has_value)
        return set_kind(column, kind) ? 1 : -1;
    return kind == QUERY_REAL && column->kind == QUERY_INTEGER && turn_real(column);
}

static bool put_text(struct query_column *column, sqlite3_stmt *row, int index)
{
    const char *text = (const char *)sqlite3_column_text(row, index);
    size_t n = (size_t)sqlite3_column_bytes(row, index);
    char *to = text ? (char *)extend(&column->data, query_utf8_copy(NULL, text, n)) : NULL;
    if (!to)
        return false;
    (void)query_utf8_copy(to, text, n);
    return put_end(column);
}

static bool put_value(struct query_column *column, sqlite3_stmt *row, int index)
{
    int64_t integer;
    double real;
    const void *bytes;
    switch (column->kind) {
    case QUERY_INTEGER:
        integer = sqlite3_column_int64(row, index);
        return put(&column->data, &integer, sizeof integer);
    case QUERY_REAL:
        real = sqlite3_column_double(row, index);
        return put(&column->data, &real, sizeof real);
    case QUERY_TEXT:
        return put_text(column, row, index);
    case QUERY_BLOB:
        bytes = sqlite3_column_blob(row, index);
        return put(&column->data, bytes, bytes ? (size_t)sqlite3_column_bytes(row, index) : 0) &&
               put_end(column);
    case QUERY_UNKNOWN:
    default:
        return false;
    }
}

int query_column_add(struct query_column *column, sqlite3_stmt *row, int index, struct occ_error *err)
{
    static const char *const words[] = {[QUERY_UNKNOWN] = "no value",
                                        [QUERY_INTEGER] = "an integer",
                                        [QUERY_REAL] = "a real",
                                        [QUERY_TEXT] = "a text",
                                        [QUERY_BLOB] = "a blob"};
    enum query_kind kind = kind_of(row, index);
    if (is_sized(column->kind) && column->ends.used == 0 && !put_end(column))
        return occ_no_memory(err);
    if (kind == QUERY_UNKNOWN)
        return put_empty(column) && put_valid(column, false) ? 0 : occ_no_memory(err);
    int fits = accept(column, kind, kind == QUERY_INTEGER && is_exact(sqlite3_column_int64(row, index)));
    if (fits == 0)
        return occ_fail(err, OCC_E_INVALID, "column '%.64s' has %s after %s: CAST gives it one type",
                        column->name, words[kind], words[column->kind]);
    if (fits < 0 || !put_value(column, row, index) || !put_valid(column, true))
        return occ_no_memory(err);
    column->has_value = true;
    return 0;
}

int query_column_freeze(struct query_column *column, struct occ_error *err)
{
    column->is_frozen = true;
    return column->kind != QUERY_UNKNOWN || set_kind(column, QUERY_REAL) ? 0 : occ_no_memory(err);
}

size_t query_column_bytes(const struct query_column *column)
{
    return column->data.used + column->ends.used + column->valid.used;
}

/* ---- Arrow ---- */

static void release_array(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_buffers; i++)
        free((void *)(uintptr_t)array->buffers[i]);
    free(array->buffers);
    array->release = NULL;
}

int query_column_take(struct query_column *column, struct ArrowArray *ret_array, struct occ_error *err)
{
    bool sized = is_sized(column->kind);
    if ((sized && column->ends.used == 0 && !put_end(column)) || !extend(&column->data, 0))
        return occ_no_memory(err);
    const void **buffers = calloc(BUFFERS_MAX, sizeof *buffers);
    if (!buffers)
        return occ_no_memory(err);
    size_t n = 0;
    buffers[n++] = column->valid.bytes;
    if (sized)
        buffers[n++] = column->ends.bytes;
    buffers[n++] = column->data.bytes;
    *ret_array = (struct ArrowArray){.length = column->rows,
                                     .null_count = column->nulls,
                                     .n_buffers = (int64_t)n,
                                     .buffers = buffers,
                                     .release = release_array};
    if (!sized)
        release_buffer(&column->ends);
    column->valid = column->data = column->ends = (struct query_buffer){.used = 0};
    column->rows = column->nulls = 0;
    return 0;
}

static void release_schema(struct ArrowSchema *schema)
{
    free(schema->private_data);
    schema->release = NULL;
}

int query_column_describe(const struct query_column *column, struct ArrowSchema *ret_schema,
                          struct occ_error *err)
{
    static const char *const formats[] = {
        [QUERY_INTEGER] = "l", [QUERY_REAL] = "g", [QUERY_TEXT] = "u", [QUERY_BLOB] = "z"};
    char *name = strdup(column->name);
    if (!name)
        return occ_no_memory(err);
    *ret_schema = (struct ArrowSchema){.format = formats[column->kind],
                                       .name = name,
                                       .flags = ARROW_FLAG_NULLABLE,
                                       .release = release_schema,
                                       .private_data = name};
    return 0;
}

void query_column_release(struct query_column *column)
{
    free(column->name);
    release_buffer(&column->valid);
    release_buffer(&column->data);
    release_buffer(&column->ends);
}
