/*
 * Columns of a batch: values of SQLite → buffers of an Arrow array. A column takes the type of its values
 * until it is frozen (see occ_query_sql()). One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "occtrace-query.h"
#include "support/error.h"

struct sqlite3_stmt;

enum query_kind { QUERY_UNKNOWN, QUERY_INTEGER, QUERY_REAL, QUERY_TEXT, QUERY_BLOB };

struct query_buffer {
    uint8_t *bytes;
    size_t used, room;
};

struct query_column {
    char *name;
    enum query_kind kind;
    bool has_value, is_frozen;
    int64_t rows, nulls;       /* of this batch */
    struct query_buffer valid; /* a bit per row; complete bytes */
    struct query_buffer data;  /* numbers of 8 bytes, or the bytes of texts and blobs */
    struct query_buffer ends;  /* texts and blobs: int32_t, the first is 0 */
};

/* Returns the kind of a declared type, by SQLite's rules for affinity; NULL or other types: unknown. */
enum query_kind query_kind_of_type(const char *declared);

/* Adds the value of a further row: result column `index` of the statement. */
int query_column_add(struct query_column *column, struct sqlite3_stmt *row, int index, struct occ_error *err);
/* Keeps the column's type from now on; an unknown type becomes real. */
int query_column_freeze(struct query_column *column, struct occ_error *err);
/* Returns the bytes of the batch. */
size_t query_column_bytes(const struct query_column *column);

/* Moves the values into an Arrow array and begins a batch without rows. */
int query_column_take(struct query_column *column, struct ArrowArray *ret_array, struct occ_error *err);
/* Describes the column; `ret_schema` gets copies. */
int query_column_describe(const struct query_column *column, struct ArrowSchema *ret_schema,
                          struct occ_error *err);
void query_column_release(struct query_column *column);
