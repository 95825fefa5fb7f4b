/* See sql_guard.h. One thread. */
#include "sql_guard.h"

#include <sqlite3.h>
#include <stdbool.h>

#include "names.h"
#include "sql_table.h"

/* PRAGMAs that only report. argument: true if the PRAGMA may have one, the name of a table or index. */
static const struct {
    const char *name;
    bool argument;
} pragmas[] = {
    {"table_info", true},    {"table_xinfo", true},    {"table_list", true},       {"index_list", true},
    {"index_info", true},    {"index_xinfo", true},    {"foreign_key_list", true}, {"integrity_check", true},
    {"quick_check", true},   {"user_version", false},  {"application_id", false},  {"schema_version", false},
    {"page_count", false},   {"page_size", false},     {"freelist_count", false},  {"compile_options", false},
    {"data_version", false}, {"database_list", false}, {"journal_mode", false},    {"encoding", false},
};

static bool pragma_allowed(const char *name, const char *argument)
{
    for (size_t i = 0; name && i < sizeof pragmas / sizeof *pragmas; i++)
        if (sqlite3_stricmp(pragmas[i].name, name) == 0)
            return pragmas[i].argument || !argument;
    return false;
}

static int authorize(void *unused, int action, const char *first, const char *second, const char *schema,
                     const char *trigger)
{
    (void)unused;
    (void)schema;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return second && sqlite3_stricmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
        return pragma_allowed(first, second) ? SQLITE_OK : SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

/* Uses the virtual tables once before the authorizer is set, since SQLite creates a virtual table on its
 * first use by a CREATE TABLE, which the authorizer refuses. */
static void declare_tables(sqlite3 *db)
{
    (void)sql_number(db, "SELECT 1 FROM launch, device_sample LIMIT 0");
}

int sql_guard(sqlite3 *db, struct occ_error *err)
{
    int status = sql_add_regexp(db, err);
    if (status == 0)
        status = kernel_owner_add_function(db, err);
    declare_tables(db);
    (void)sqlite3_set_authorizer(db, authorize, NULL);
    return status;
}

int sql_prepare_read(sqlite3 *db, const char *text, sqlite3_stmt **ret_statement, const char **ret_rest,
                     struct occ_error *err)
{
    int code = sqlite3_prepare_v2(db, text, -1, ret_statement, ret_rest);
    if (code == SQLITE_AUTH || (*ret_statement && !sqlite3_stmt_readonly(*ret_statement)))
        return occ_fail(err, OCC_E_READ_ONLY, "read-only: only statements that read are allowed");
    return code == SQLITE_OK ? 0 : occ_fail(err, OCC_E_INVALID, "%s", sqlite3_errmsg(db));
}
