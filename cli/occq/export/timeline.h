/* Launches and samples of a history as a timeline for other viewers. One thread. */
#pragma once

#include "export.h"

struct sqlite3_stmt;

/* What is read of `launch`; kernel_name() must be there (names.h). */
extern const struct cli_column timeline_columns[];

struct timeline_counts {
    uint64_t launches, left_out; /* left_out: more of a stream overlapped than there are lanes */
    bool more;                   /* the statement has more */
};

/* Writes the launches of `statement`, which has timeline_columns in the order of starts and stands at its
 * first row, `number` at most, and the samples of their GPUs from the first start to the last end. */
int timeline_write(struct sqlite3_stmt *statement, const struct export_format *format, FILE *out,
                   int64_t number, struct timeline_counts *ret_counts, struct occ_error *err);
