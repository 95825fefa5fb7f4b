/*
 * SQL from users: read-only. Three guards: the store is opened read-only, SQLite must report each statement
 * as read-only, and an authorizer refuses access to other files (ATTACH, extensions) and changes of settings
 * (PRAGMA with effects). One thread.
 */
#pragma once

#include "support/error.h"

struct sqlite3;
struct sqlite3_stmt;

/* Guards the connection for the rest of its life, and adds REGEXP (sql_add_regexp()) and kernel_owner()
 * (kernel_owner_add_function()). */
int sql_guard(struct sqlite3 *db, struct occ_error *err);

/* Prepares the first statement of `text`; *ret_rest then points behind the statement. *ret_statement NULL: no
 * statement is left. OCC_E_READ_ONLY: the statement would write, or the authorizer refuses it; OCC_E_INVALID:
 * it is wrong. The caller finalizes *ret_statement, also after a failure. */
int sql_prepare_read(struct sqlite3 *db, const char *text, struct sqlite3_stmt **ret_statement,
                     const char **ret_rest, struct occ_error *err);
