/* See state_file.h. */
#include "state_file.h"

#include <sqlite3.h>
#include <time.h>

#include "support/paths.h"

#define BUSY_MS 5000

int occ_state_file_open(const char *path, bool read_only, sqlite3 **ret_db, struct occ_error *err)
{
    int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int rc = read_only ? 0 : occ_path_make_parents(path, err);
    if (rc != 0)
        return rc;
    if (sqlite3_open_v2(path, ret_db, flags, NULL) != SQLITE_OK)
        return occ_fail(err, OCC_E_NOT_FOUND, "%s: %s", path,
                        *ret_db ? sqlite3_errmsg(*ret_db) : "out of memory");
    (void)sqlite3_busy_timeout(*ret_db, BUSY_MS);
    return 0;
}

bool occ_state_file_put(sqlite3 *db, const char *name, int64_t value, const char *text)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO counter VALUES(?, ?)", -1, &stmt, NULL) != SQLITE_OK)
        return false;
    (void)sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
    if (text)
        (void)sqlite3_bind_text(stmt, 2, text, -1, SQLITE_STATIC);
    else
        (void)sqlite3_bind_int64(stmt, 2, value);
    bool done = sqlite3_step(stmt) == SQLITE_DONE;
    (void)sqlite3_finalize(stmt);
    return done;
}

void occ_state_file_print(FILE *out, const char *label, int64_t value, bool is_time)
{
    char text[64] = "never";
    time_t time = (time_t)value;
    struct tm tm = {0};
    if (!is_time)
        (void)snprintf(text, sizeof text, "%lld", (long long)value);
    else if (value > 0 && localtime_r(&time, &tm))
        (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    (void)fprintf(out, "  %-24s %s\n", label, text);
}

void occ_state_file_print_failure(FILE *out, sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    (void)sqlite3_prepare_v2(db, "SELECT value FROM counter WHERE name = 'failure' AND value <> ''", -1,
                             &stmt, NULL);
    if (stmt && sqlite3_step(stmt) == SQLITE_ROW)
        (void)fprintf(out, "  %-24s %s\n", "it fails", (const char *)sqlite3_column_text(stmt, 0));
    (void)sqlite3_finalize(stmt);
}
