/*
 * Reading a SQLite file of untrusted origin.
 *
 * occ_nsys_restrict() allows nothing but reading columns (authorizer, no views, no triggers, no trusted
 * schema) and bounds the work: as many steps as a valid file of this size can need, and the schema's memory.
 * Tables are read by the names of their columns, because columns come and go between versions. One thread.
 */
#ifndef OCC_IMPORT_NSYS_DB_H
#define OCC_IMPORT_NSYS_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

struct sqlite3;
struct sqlite3_stmt;

struct occ_nsys_db {
    struct sqlite3 *db;
    struct occ_error *err;
    const char *table; /* at hand, for messages; NULL: none */
    int64_t row;       /* its rowid; 0: none */
    uint64_t steps_left;
    int64_t memory_max;
};

/* `db` stays the caller's and must not be used without `ret_db` from then on. 0 or OCC_E_CORRUPT. */
int occ_nsys_restrict(struct sqlite3 *db, struct occ_nsys_db *ret_db, struct occ_error *err);
/* Before `db` is closed. */
void occ_nsys_release(struct occ_nsys_db *d);

/* The rows of a table in file order. Column i of the statement is columns[i], NULL in every row where the
 * table lacks it; the rowid follows the last. */
struct occ_nsys_rows {
    const char *table;
    const char *const *columns;
    size_t n;                  /* at most 64 */
    const char *end;           /* after the table's name: " WHERE id = ?"; NULL: nothing */
    uint64_t required;         /* a bit for each column without which the table counts as missing */
    uint64_t present;          /* out: a bit for each column that the table has */
    struct sqlite3_stmt *stmt; /* out; NULL: the table is missing */
};

/* Prepares the statement. OCC_E_INVALID: not an ordinary table, or it has computed columns. */
int occ_nsys_open(struct occ_nsys_db *d, struct occ_nsys_rows *rows);
/* 1: a row is at hand; 0: no more, or the table is missing; negative: damaged, with table and row in the
 * message. */
int occ_nsys_next(struct occ_nsys_db *d, struct occ_nsys_rows *rows);
/* Both: the first row. */
int occ_nsys_first(struct occ_nsys_db *d, struct occ_nsys_rows *rows);
void occ_nsys_close(struct occ_nsys_rows *rows);

/* Sets the message of SQLite's last error. */
int occ_nsys_fail(struct occ_nsys_db *d);

/* Values of the row at hand; another type counts as missing. Texts live until the next row. */
int64_t occ_nsys_integer(struct sqlite3_stmt *stmt, int column, int64_t otherwise);
uint32_t occ_nsys_u32(struct sqlite3_stmt *stmt, int column); /* 0: missing, or not in 1 ... 2^32-1 */
const char *occ_nsys_text(struct sqlite3_stmt *stmt, int column);

#endif
