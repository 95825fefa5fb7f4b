/*
 * A statement of SQLite as an Arrow C stream. The first batch is read at once, since the types of columns
 * come from its values. One thread at a time.
 */
#pragma once

#include <stddef.h>

#include "cli/values.h"
#include "occtrace-query.h"
#include "support/error.h"

struct sqlite3_stmt;

enum { QUERY_COLUMNS_MAX = CLI_MAX_COLUMNS, QUERY_BATCH_ROWS = 16384, QUERY_BATCH_BYTES = 16 << 20 };

/* The statement of a stream, and its owner. */
struct query_source {
    struct sqlite3_stmt *statement;
    void (*close)(void *owner); /* called after the statement was finalized */
    void *owner;
    size_t batch_rows, batch_bytes; /* a batch ends at the first limit that is reached */
};

/* Begins a stream. Owns the source, also after a failure. */
int query_stream_begin(const struct query_source *source, struct ArrowArrayStream *ret_stream,
                       struct occ_error *err);
