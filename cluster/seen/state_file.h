/* A SQLite file that keeps the progress of a receiver, with counters for --status. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "support/error.h"

struct sqlite3;

#define OCC_STATE_FILE_COUNTERS                                                                              \
    "CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;"

/* Opens the file; makes it and its directories unless `read_only`. The caller closes *ret_db, also after a
 * failure (NULL at first). OCC_E_NOT_FOUND: the file cannot be opened. */
int occ_state_file_open(const char *path, bool read_only, struct sqlite3 **ret_db, struct occ_error *err);

/* Stores a counter, or a text if `text` is not NULL. False: SQLite failed. */
bool occ_state_file_put(struct sqlite3 *db, const char *name, int64_t value, const char *text);

/* Prints a counter in a line; `is_time`: seconds since the epoch, 0: never. */
void occ_state_file_print(FILE *out, const char *label, int64_t value, bool is_time);
/* Prints the stored text "failure" in a line, if the text is not empty. */
void occ_state_file_print_failure(FILE *out, struct sqlite3 *db);
