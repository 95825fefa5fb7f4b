/*
 * Packed launches of a history, chunk by chunk: for sums over so many launches that the rows of the table
 * `launch` would take too long. The history is only read. Any thread; one for each database and decoder.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/codec/columns.h"
#include "support/error.h"

struct sqlite3;

enum occ_chunks_kind {
    OCC_CHUNKS_OF_DEVICE, /* launches that run in the time, of recorded runs (not imported) with known times
                           */
    OCC_CHUNKS_OF_RUN,    /* launches that start in the time */
    OCC_CHUNKS_KINDS
};

struct occ_chunks_question {
    enum occ_chunks_kind kind;
    int64_t id;                /* of the device or the run */
    int64_t from_ns, until_ns; /* from <= time < until */
    uint32_t columns;          /* set of OCC_COLUMN_BIT() */
};

/* A chunk has launches before and after the time, too. The columns are valid during the call. False: no
 * further chunk is wanted. */
typedef bool occ_chunk_visitor(void *context, const struct occ_columns *chunk);

/* Calls `visit` for each chunk that may have such launches, in no order. OCC_E_CORRUPT: the tables or a chunk
 * are damaged; OCC_E_FULL: `visit` returned false; OCC_E_NO_MEMORY. */
int occ_chunks_visit(struct sqlite3 *db, struct occ_columns_decoder *decoder,
                     const struct occ_chunks_question *question, occ_chunk_visitor *visit, void *context,
                     struct occ_error *err);
