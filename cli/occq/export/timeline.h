/* Writes launches and samples of a history as a timeline for other viewers. One thread. */
#pragma once

#include "export.h"
#include "store/store.h"

struct sqlite3_stmt;

/* Columns that timeline_write() reads from `launch`; the SQL function kernel_name() must exist (names.h). */
extern const struct cli_column timeline_columns[];

struct timeline_request {
    struct occ_store *store;
    struct sqlite3_stmt *statement; /* has timeline_columns in the order of starts, and is at its first row */
    const struct export_format *format;
    FILE *out;
    int64_t number; /* maximum number of launches */
};
struct timeline_counts {
    uint64_t launches, left_out; /* left_out: launches without a free lane in their stream */
    bool more;                   /* the statement has more rows */
};

/* Writes launches of the statement, and the samples of their GPUs from the first start to the last end. */
int timeline_write(const struct timeline_request *request, struct timeline_counts *ret_counts,
                   struct occ_error *err);
