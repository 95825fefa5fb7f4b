/* occtrace_sqlite.so: after `.load .../occtrace_sqlite` in a sqlite3 shell on a history, `SELECT ... FROM
 * launch` (and FROM device_sample) works. SQLite enters when it loads the module, once per connection. */
#include "vtab.h"

SQLITE_EXTENSION_INIT1

#define ENTRY __attribute__((visibility("default")))

/* The name that SQLite derives from the file's name, and the name that SQLite tries first. */
ENTRY int sqlite3_occtracesqlite_init(sqlite3 *db, char **ret_message, const sqlite3_api_routines *api);
ENTRY int sqlite3_extension_init(sqlite3 *db, char **ret_message, const sqlite3_api_routines *api);

int sqlite3_occtracesqlite_init(sqlite3 *db, char **ret_message, const sqlite3_api_routines *api)
{
    (void)ret_message;
    SQLITE_EXTENSION_INIT2(api);
    int rc = occ_launch_table_register(db);
    return rc == SQLITE_OK ? occ_sample_table_register(db) : rc;
}

int sqlite3_extension_init(sqlite3 *db, char **ret_message, const sqlite3_api_routines *api)
{
    return sqlite3_occtracesqlite_init(db, ret_message, api);
}
