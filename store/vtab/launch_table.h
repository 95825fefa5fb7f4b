/*
 * The virtual table `launch`: the packed launches of a history as rows of plain SQL. Eponymous and read-only; any
 * connection whose main database is a history can have it. Not usable in the schema of a file (views, triggers).
 *
 * Compiled twice: with our own SQLite for the store, and with OCC_SQLITE_EXTENSION for the loadable module, which
 * calls its host's.
 */
#ifndef OCC_STORE_LAUNCH_TABLE_H
#define OCC_STORE_LAUNCH_TABLE_H

#ifdef OCC_SQLITE_EXTENSION
#include <sqlite3ext.h>
#else
#include <sqlite3.h>
#endif

/* SQLite code. */
int occ_launch_table_register(struct sqlite3 *db);

#endif
