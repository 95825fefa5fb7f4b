/* See state.h. */
#include "state.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cluster/seen/state_file.h"
#include "support/text.h"
#include "user_forms.h"

struct occ_state {
    sqlite3 *db;
};

#define COLUMN(name)                 #name " INTEGER NOT NULL, "
#define NAME(name)                   #name ", "
#define PARAMETER(name)              "?, "
#define SEEN_COLUMN(name, member)    COLUMN(name)
#define SEEN_NAME(name, member)      NAME(name)
#define SEEN_PARAMETER(name, member) "?, "
static const char schema[] =
    "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL;"
    "CREATE TABLE IF NOT EXISTS position (" OCC_POSITION(
        COLUMN) "stored TEXT NOT NULL, PRIMARY KEY (identity));" OCC_STATE_FILE_COUNTERS
                "CREATE TABLE IF NOT EXISTS seen (" OCC_SEEN_COLUMNS(
                    SEEN_COLUMN) "path TEXT PRIMARY KEY) WITHOUT ROWID;";

static int fail_sql(struct occ_state *s, struct occ_error *err, const char *what)
{
    int code = sqlite3_errcode(s->db);
    return occ_fail(err, code == SQLITE_FULL ? OCC_E_FULL : OCC_E_IO, "%s: %s: %s",
                    sqlite3_db_filename(s->db, "main"), what, sqlite3_errmsg(s->db));
}

/* The file tells which user has which hash. */
static int close_to_others(const char *path, struct occ_error *err)
{
    struct stat status;
    if (stat(path, &status) == 0 &&
        ((status.st_mode & S_IRWXO) == 0 || chmod(path, status.st_mode & 0770) == 0))
        return 0;
    return occ_fail_errno(err, errno, "%s: cannot close it to other users", path);
}

int occ_state_open(const char *path, bool read_only, struct occ_state **ret_state, struct occ_error *err)
{
    struct occ_state *s = calloc(1, sizeof *s);
    int rc = s ? 0 : occ_no_memory(err);
    if (rc == 0)
        rc = occ_state_file_open(path, read_only, &s->db, err);
    if (rc == 0 && !read_only && sqlite3_exec(s->db, schema, NULL, NULL, NULL) != SQLITE_OK)
        rc = fail_sql(s, err, "cannot make it");
    if (rc == 0 && !read_only)
        rc = close_to_others(path, err);
    if (rc == 0 && !read_only)
        rc = occ_user_forms_prepare(s->db, err);
    if (rc == 0) {
        *ret_state = s;
        return 0;
    }
    occ_state_close(s);
    return rc;
}

struct sqlite3 *occ_state_sqlite(struct occ_state *s)
{
    return s->db;
}

void occ_state_close(struct occ_state *s)
{
    if (!s)
        return;
    (void)sqlite3_close(s->db);
    free(s);
}

/* Steps a statement to its only row or its end; false: it failed. */
static bool step(sqlite3_stmt *stmt, bool *ret_row)
{
    int code = stmt ? sqlite3_step(stmt) : SQLITE_ERROR;
    *ret_row = code == SQLITE_ROW;
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

int occ_state_load_position(struct occ_state *s, int64_t identity, struct occ_ship_position *ret_position,
                            struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    *ret_position = (struct occ_ship_position){.identity = identity};
    (void)sqlite3_prepare_v2(s->db, "SELECT " OCC_POSITION(NAME) "stored FROM position WHERE identity = ?",
                             -1, &stmt, NULL);
    (void)sqlite3_bind_int64(stmt, 1, identity);
    int rc = step(stmt, &row) ? 0 : fail_sql(s, err, "cannot read a position"), at = 0;
#define X(name) ret_position->name = sqlite3_column_int64(stmt, at++);
    if (row) {
        OCC_POSITION(X)
    }
#undef X
    (void)sqlite3_finalize(stmt);
    return rc;
}

int occ_state_load_counters(struct occ_state *s, struct occ_ship_counters *ret_counters,
                            struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = true;
    int rc = 0;
    *ret_counters = (struct occ_ship_counters){0};
    (void)sqlite3_prepare_v2(s->db, "SELECT name, value FROM counter", -1, &stmt, NULL);
    while (row && rc == 0) {
        rc = step(stmt, &row) ? 0 : fail_sql(s, err, "cannot read the counters");
        const char *name = row ? (const char *)sqlite3_column_text(stmt, 0) : "";
#define X(counter, label, kind)                                                                              \
    if (name && strcmp(name, #counter) == 0)                                                                 \
        ret_counters->counter = sqlite3_column_int64(stmt, 1);
        OCC_SHIP_COUNTERS(X)
#undef X
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

static bool run(struct occ_state *s, const char *sql, const int64_t *values, int n)
{
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    (void)sqlite3_prepare_v2(s->db, sql, -1, &stmt, NULL);
    for (int i = 0; i < n; i++)
        (void)sqlite3_bind_int64(stmt, i + 1, values[i]);
    bool done = step(stmt, &row);
    (void)sqlite3_finalize(stmt);
    return done;
}

/* Deletes positions of histories not seen for 400 days. */
static bool put_position(struct occ_state *s, const struct occ_ship_position *p)
{
#define X(name) p->name,
    const int64_t values[] = {OCC_POSITION(X)};
#undef X
    return run(s, "INSERT OR REPLACE INTO position VALUES(" OCC_POSITION(PARAMETER) "datetime())", values,
               sizeof values / sizeof *values) &&
           run(s, "DELETE FROM position WHERE stored < datetime('now', '-400 days')", NULL, 0);
}

int occ_state_store(struct occ_state *s, const struct occ_ship_position *position,
                    const struct occ_ship_counters *counters, const char *failure, struct occ_error *err)
{
    bool stored = run(s, "BEGIN IMMEDIATE", NULL, 0) && (!position || put_position(s, position)) &&
                  (!failure || occ_state_file_put(s->db, "failure", 0, failure));
#define X(name, label, kind) stored = stored && occ_state_file_put(s->db, #name, counters->name, NULL);
    OCC_SHIP_COUNTERS(X)
#undef X
    if (stored && run(s, "COMMIT", NULL, 0))
        return 0;
    int rc = fail_sql(s, err, "cannot store the position");
    (void)run(s, "ROLLBACK", NULL, 0);
    return rc;
}

/* ---- histories that were sent whole ---- */

int occ_state_load_seen(struct occ_state *s, struct occ_seen *seen, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = true;
    int rc = 0;
    (void)sqlite3_prepare_v2(
        s->db,
        "SELECT " OCC_SEEN_COLUMNS(SEEN_NAME) "path FROM seen WHERE typeof(path) = 'text' ORDER BY path", -1,
        &stmt, NULL);
    while (row && rc == 0) {
        struct occ_seen_history sent;
        int at = 0;
        rc = step(stmt, &row) ? 0 : fail_sql(s, err, "cannot read which histories were sent");
#define X(name, member) sent.member = row ? sqlite3_column_int64(stmt, at++) : 0;
        OCC_SEEN_COLUMNS(X)
#undef X
        const char *path = row && rc == 0 ? (const char *)sqlite3_column_text(stmt, at) : NULL;
        if (path)
            rc = occ_seen_load(seen, path, &sent, err);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

static bool put_seen(sqlite3_stmt *stmt, const struct occ_seen_entry *entry)
{
    int at = 0;
#define X(name, member) (void)sqlite3_bind_int64(stmt, ++at, entry->sent.member);
    OCC_SEEN_COLUMNS(X)
#undef X
    (void)sqlite3_bind_text(stmt, ++at, entry->path, -1, SQLITE_STATIC);
    return sqlite3_step(stmt) == SQLITE_DONE && sqlite3_reset(stmt) == SQLITE_OK;
}

static bool drop_seen(sqlite3_stmt *stmt, const struct occ_seen_entry *entry)
{
    (void)sqlite3_bind_text(stmt, 1, entry->path, -1, SQLITE_STATIC);
    return sqlite3_step(stmt) == SQLITE_DONE && sqlite3_reset(stmt) == SQLITE_OK;
}

static bool put_all_seen(struct occ_state *s, const struct occ_seen *seen)
{
    sqlite3_stmt *put = NULL, *drop = NULL;
    bool done =
        sqlite3_prepare_v2(s->db, "INSERT OR REPLACE INTO seen VALUES(" OCC_SEEN_COLUMNS(SEEN_PARAMETER) "?)",
                           -1, &put, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(s->db, "DELETE FROM seen WHERE path = ?", -1, &drop, NULL) == SQLITE_OK;
    for (size_t i = 0; done && i < seen->n; i++) {
        const struct occ_seen_entry *entry = &seen->entries[i];
        if (!entry->is_found)
            done = drop_seen(drop, entry);
        else if (entry->is_sent && !entry->is_stored)
            done = put_seen(put, entry);
    }
    (void)sqlite3_finalize(put);
    (void)sqlite3_finalize(drop);
    return done;
}

int occ_state_store_seen(struct occ_state *s, struct occ_seen *seen, struct occ_error *err)
{
    if (!seen->has_unstored)
        return 0;
    if (!run(s, "BEGIN IMMEDIATE", NULL, 0) || !put_all_seen(s, seen) || !run(s, "COMMIT", NULL, 0)) {
        int rc = fail_sql(s, err, "cannot store which histories were sent");
        (void)run(s, "ROLLBACK", NULL, 0);
        return rc;
    }
    occ_seen_stored(seen);
    return 0;
}

/* ---- --status ---- */

int occ_state_print(struct occ_state *s, FILE *out, struct occ_error *err)
{
    struct occ_ship_counters counters;
    enum { COUNT, TIME };
    int rc = occ_state_load_counters(s, &counters, err);
    if (rc != 0)
        return rc;
#define X(name, label, kind) occ_state_file_print(out, label, counters.name, kind == TIME);
    OCC_SHIP_COUNTERS(X)
#undef X
    occ_state_file_print_failure(out, s->db);
    return 0;
}
