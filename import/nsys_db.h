/*
 * A SQLite file of an unknown maker, read without trusting it: what nsys.c and nsys_devices.c read through.
 *
 * occ_nsys_db_make_harmless() forbids everything but reading columns (authorizer, no views, no triggers, no trusted
 * schema) and bounds the work: as much of it as a sound file of this size can need, and a bounded schema. Tables are
 * read by the names of their columns, because columns come and go between versions. One thread.
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
    int64_t memory_most;
};

/* `db` stays the caller's; it must not be used without `ret_db` from then on. 0 or OCC_E_CORRUPT. */
int occ_nsys_db_make_harmless(struct sqlite3 *db, struct occ_nsys_db *ret_db, struct occ_error *err);
/* Before `db` is closed. */
void occ_nsys_db_finish(struct occ_nsys_db *d);

/* 1: an ordinary table without computed columns; 0: there is none of this name; negative: something else has the name,
 * or the file is broken. */
int occ_nsys_db_has(struct occ_nsys_db *d, const char *table);

/* The rows of a table in file order: column i of the statement is columns[i], NULL in every row where the table lacks it;
 * the rowid comes after the last. `end` is what follows the table's name ("", " WHERE id = ?"). *ret_stmt NULL: there is
 * no such table. Bit i of *ret_present (NULL: not wanted): it has columns[i]. n at most 64. */
int occ_nsys_db_select(struct occ_nsys_db *d, const char *table, const char *const *columns, size_t n,
                       const char *end, uint64_t *ret_present, struct sqlite3_stmt **ret_stmt);

/* 1: a row is at hand; 0: no more; negative: the file is broken, with table and row in the message. `n`: columns asked
 * for. */
int occ_nsys_db_step(struct occ_nsys_db *d, struct sqlite3_stmt *stmt, size_t n);

/* The message of the failure that SQLite has just met. */
int occ_nsys_db_fail(struct occ_nsys_db *d);

/* Values of the row at hand; what is of another type counts as not there. Texts live until the next step. */
int64_t occ_nsys_integer(struct sqlite3_stmt *stmt, int column, int64_t otherwise);
uint32_t occ_nsys_u32(struct sqlite3_stmt *stmt, int column); /* 0: not there, or not in 1 ... 2^32-1 */
const char *occ_nsys_text(struct sqlite3_stmt *stmt, int column);

#endif
