/*
 * The virtual tables `launch` and `device_sample`, which give the packed launches and samples of a history as
 * rows, and their common functions. The tables are declared in the file and read-only; each reads the storage
 * tables of its own database, so that attached histories work too.
 *
 * Compiled twice: with our own SQLite for the store, and with OCC_SQLITE_EXTENSION for the loadable module,
 * which calls its host's. Threads: the connection's.
 *
 * Trust: a hostile file can declare anything under our storage tables' names, also a view over the virtual
 * table itself. The tables can be used in views and triggers of a file only where SQLite trusts schemas (our
 * own connections do not; TEMP views work everywhere), they read nothing but their own database, and a scan
 * that is entered by its own reading fails.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef OCC_SQLITE_EXTENSION
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3
#else
#include <sqlite3.h>
#endif

/* Register the modules. SQLite codes. */
int occ_launch_table_register(sqlite3 *db);
int occ_sample_table_register(sqlite3 *db);

struct occ_vtab {
    sqlite3_vtab base;
    sqlite3 *db;
    char *schema; /* name of the table's database: main, or the name given by ATTACH */
    sqlite3_stmt *statistics;
    bool reading; /* one of our statements is being prepared or stepped */
};

/* All functions return SQLite codes; after an error the table has a message. */
/* xConnect, with the module's declaration as its client data. */
int occ_vtab_connect(sqlite3 *db, void *declaration, int argc, const char *const *argv, sqlite3_vtab **ret,
                     char **message);
int occ_vtab_disconnect(sqlite3_vtab *vtab);
int occ_vtab_fail(sqlite3_vtab *vtab, int rc, const char *text);
/* SQLITE_OK, or an error if our own reading of the file enters the scan. */
int occ_vtab_enter(sqlite3_vtab *vtab);
/* Prepares a statement if *stmt is NULL. Each %w in `format` (at most 5) is replaced by the database's
 * name. */
int occ_vtab_prepare(sqlite3_vtab *vtab, sqlite3_stmt **stmt, const char *format);
/* sqlite3_step(). */
int occ_vtab_step(sqlite3_vtab *vtab, sqlite3_stmt *stmt);

/* Defines a read-only module with functions named PREFIX_open and so on. */
#define OCC_VTAB_MODULE(prefix)                                                                              \
    {                                                                                                        \
        .xCreate = occ_vtab_connect, .xConnect = occ_vtab_connect, .xBestIndex = prefix##_best_index,        \
        .xDisconnect = occ_vtab_disconnect, .xDestroy = occ_vtab_disconnect, .xOpen = prefix##_open,         \
        .xClose = prefix##_close, .xFilter = prefix##_filter, .xNext = prefix##_next, .xEof = prefix##_eof,  \
        .xColumn = prefix##_column, .xRowid = prefix##_rowid                                                 \
    }

/* ---- conditions ---- */

struct occ_range {
    int64_t low, high; /* both inclusive; empty when low > high */
};

static inline bool occ_in_range(const struct occ_range *r, int64_t v)
{
    return v >= r->low && v <= r->high;
}

/* Narrows the range by a comparison of an integer column with any value, as SQL defines it. */
void occ_range_narrow(struct occ_range *range, char letter, sqlite3_value *value);

struct occ_vtab_key {
    int column;
    char letter;
    bool of_rows; /* true: the scan tests rows; false: it only skips whole chunks */
};

/* Plans a scan: comparisons of key columns with = > >= < <= go into idxStr, two letters each, for the key and
 * the operator. `statistics`: a statement in the form of occ_vtab_prepare() that gives the number of rows,
 * then the number of values of each key. */
int occ_vtab_plan(sqlite3_vtab *vtab, sqlite3_index_info *info, const struct occ_vtab_key *keys, int n_keys,
                  const char *statistics);
