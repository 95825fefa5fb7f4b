/* See nsys_parts.h. One thread. */
#include "nsys_parts.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* maximum length of a value; names of more than 1 MiB are skipped anyway */
#define TEXT_MAX_BYTES   (2 << 20)
#define SCHEMA_MAX_BYTES (24 << 20) /* memory including SQLite's cache; valid exports need about 1 MiB */
#define PROGRESS_STEPS   2000       /* steps of SQLite's virtual machine between two checks of the budget */
/* The budget of steps. A launch of a valid export takes 100 bytes and 60 steps. Damaged pages that are shared
 * many times, and name tables without a key, would take forever. */
#define STEPS_PER_BYTE 16u
#define STEPS_MIN      4000000u
#define SQL_BYTES      4096

int occ_nsys_fail(struct occ_nsys_db *d)
{
    int code = sqlite3_errcode(d->db);
    const char *why = sqlite3_errmsg(d->db), *table = d->table ? d->table : "sqlite_master";
    if (code == SQLITE_NOTADB)
        return occ_fail(d->err, OCC_E_CORRUPT, "not a valid SQLite file (encrypted or damaged?): %s", why);
    if (code == SQLITE_NOMEM)
        return occ_no_memory(d->err);
    if (code == SQLITE_INTERRUPT)
        why = "reading it takes more than a valid file of this size can need";
    if (d->row != 0)
        return occ_fail(d->err, OCC_E_CORRUPT, "table %s, row %lld: %s", table, (long long)d->row, why);
    return occ_fail(d->err, OCC_E_CORRUPT, "table %s: %s", table, why);
}

/* ---- restrictions ---- */

static int authorize(void *context, int action, const char *a, const char *b, const char *c, const char *d)
{
    (void)context;
    (void)b;
    (void)c;
    (void)d;
    bool reads = action == SQLITE_SELECT || action == SQLITE_READ;
    bool lists = action == SQLITE_PRAGMA && a && strcasecmp(a, "table_xinfo") == 0;
    return reads || lists ? SQLITE_OK : SQLITE_DENY;
}

/* Not 0: the budget of steps or memory is used up. */
static int check_budget(void *context)
{
    struct occ_nsys_db *d = context;
    if (d->steps_left < PROGRESS_STEPS || sqlite3_memory_used() > d->memory_max)
        return 1;
    d->steps_left -= PROGRESS_STEPS;
    return 0;
}

static int read_number(struct occ_nsys_db *d, const char *sql, int64_t *ret_number)
{
    sqlite3_stmt *stmt = NULL;
    int status = 0;
    if (sqlite3_prepare_v2(d->db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        *ret_number = sqlite3_column_int64(stmt, 0);
    else
        status = occ_nsys_fail(d);
    (void)sqlite3_finalize(stmt);
    return status;
}

/* Refuses a truncated file: SQLite would read the missing part of the last page as zeros. */
static int refuse_cut(struct occ_nsys_db *d, int64_t page_bytes)
{
    sqlite3_file *file = NULL;
    sqlite3_int64 size = 0;
    if (sqlite3_file_control(d->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
        !file->pMethods || file->pMethods->xFileSize(file, &size) != SQLITE_OK || page_bytes <= 0 ||
        size % page_bytes == 0)
        return 0;
    return occ_fail(d->err, OCC_E_CORRUPT, "the file ends inside a page: it was cut off");
}

int occ_nsys_restrict(sqlite3 *db, struct occ_nsys_db *ret_db, struct occ_error *err)
{
    static const struct {
        int what, on;
    } switches[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        {SQLITE_DBCONFIG_DQS_DML, 0},
    };
    int64_t pages = 0, page_bytes = 0;
    *ret_db = (struct occ_nsys_db){.db = db,
                                   .err = err,
                                   .steps_left = STEPS_MIN,
                                   .memory_max = sqlite3_memory_used() + SCHEMA_MAX_BYTES};
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        (void)sqlite3_db_config(db, switches[i].what, switches[i].on, (int *)NULL);
    (void)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, TEXT_MAX_BYTES);
    (void)sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    (void)sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 100);
    (void)sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, 0);
    sqlite3_progress_handler(db, PROGRESS_STEPS, check_budget, ret_db);
    (void)sqlite3_exec(db, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-4096", NULL,
                       NULL, NULL);
    int status = read_number(ret_db, "PRAGMA page_count", &pages);
    if (status == 0)
        status = read_number(ret_db, "PRAGMA page_size", &page_bytes);
    if (status == 0)
        status = refuse_cut(ret_db, page_bytes);
    if (status == 0)
        ret_db->steps_left += (uint64_t)pages * (uint64_t)page_bytes * STEPS_PER_BYTE;
    (void)sqlite3_set_authorizer(db, authorize, NULL);
    return status;
}

void occ_nsys_release(struct occ_nsys_db *d)
{
    sqlite3_progress_handler(d->db, 0, NULL, NULL);
}

/* ---- tables ---- */

/* Steps a statement on the current table. 1: a row; 0: no more; negative: failed. */
static int step(struct occ_nsys_db *d, sqlite3_stmt *stmt)
{
    int code = sqlite3_step(stmt);
    return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : occ_nsys_fail(d);
}

static int is_ordinary(struct occ_nsys_db *d, sqlite3_stmt *stmt)
{
    const char *type = occ_nsys_text(stmt, 0), *sql = occ_nsys_text(stmt, 1);
    if (type && sql && strcmp(type, "table") == 0 && strncasecmp(sql, "CREATE TABLE", 12) == 0)
        return 1;
    return occ_fail(d->err, OCC_E_INVALID, "%s is not an ordinary table", d->table);
}

/* 1: an ordinary table; 0: no such name; negative: not a table, or the schema is damaged. */
static int find_table(struct occ_nsys_db *d)
{
    sqlite3_stmt *stmt = NULL;
    int found = 0, more = -1;
    if (sqlite3_prepare_v2(d->db, "SELECT type, sql FROM sqlite_master WHERE name = ? COLLATE NOCASE", -1,
                           &stmt, NULL) != SQLITE_OK)
        return occ_nsys_fail(d);
    (void)sqlite3_bind_text(stmt, 1, d->table, -1, SQLITE_STATIC);
    while (found >= 0 && (more = step(d, stmt)) == 1)
        found = is_ordinary(d, stmt);
    (void)sqlite3_finalize(stmt);
    return found < 0 || more == 0 ? found : more;
}

/* A row of table_xinfo: (cid, name, type, notnull, default, pk, hidden). */
static int take_column(struct occ_nsys_db *d, sqlite3_stmt *stmt, struct occ_nsys_rows *rows)
{
    const char *name = occ_nsys_text(stmt, 1);
    if (occ_nsys_integer(stmt, 6, 0) != 0)
        return occ_fail(d->err, OCC_E_INVALID, "%s is not an ordinary table: it has a computed column",
                        d->table);
    for (size_t i = 0; name && i < rows->n; i++)
        if (strcasecmp(name, rows->columns[i]) == 0)
            rows->present |= UINT64_C(1) << i;
    return 0;
}

static int find_columns(struct occ_nsys_db *d, struct occ_nsys_rows *rows)
{
    char sql[128];
    sqlite3_stmt *stmt = NULL;
    int status = 0, more = 1;
    (void)snprintf(sql, sizeof sql, "PRAGMA table_xinfo(\"%s\")", d->table);
    if (sqlite3_prepare_v2(d->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return occ_nsys_fail(d);
    while (status == 0 && (more = step(d, stmt)) == 1)
        status = take_column(d, stmt, rows);
    (void)sqlite3_finalize(stmt);
    return status != 0 ? status : more;
}

static int prepare(struct occ_nsys_db *d, struct occ_nsys_rows *rows)
{
    char sql[SQL_BYTES] = "SELECT ";
    size_t used = strlen(sql);
    for (size_t i = 0; i < rows->n && used < sizeof sql; i++)
        used += (size_t)snprintf(sql + used, sizeof sql - used,
                                 rows->present >> i & 1 ? "\"%s\", " : "NULL, ", rows->columns[i]);
    if (used < sizeof sql)
        used += (size_t)snprintf(sql + used, sizeof sql - used, "rowid FROM main.\"%s\"%s", rows->table,
                                 rows->end ? rows->end : "");
    if (used >= sizeof sql)
        return occ_fail(d->err, OCC_E_INVALID, "too many columns of table %s", rows->table);
    return sqlite3_prepare_v2(d->db, sql, -1, &rows->stmt, NULL) == SQLITE_OK ? 0 : occ_nsys_fail(d);
}

int occ_nsys_open(struct occ_nsys_db *d, struct occ_nsys_rows *rows)
{
    d->table = rows->table;
    d->row = 0;
    int found = find_table(d);
    int status = found == 1 ? find_columns(d, rows) : found;
    if (status != 0 || found == 0 || (rows->present & rows->required) != rows->required)
        return status;
    return prepare(d, rows);
}

int occ_nsys_next(struct occ_nsys_db *d, struct occ_nsys_rows *rows)
{
    d->table = rows->table;
    int more = rows->stmt ? step(d, rows->stmt) : 0;
    if (more == 1)
        d->row = sqlite3_column_int64(rows->stmt, (int)rows->n);
    return more;
}

int occ_nsys_first(struct occ_nsys_db *d, struct occ_nsys_rows *rows)
{
    int status = occ_nsys_open(d, rows);
    return status == 0 ? occ_nsys_next(d, rows) : status;
}

int occ_nsys_close(struct occ_nsys_rows *rows, int result)
{
    (void)sqlite3_finalize(rows->stmt);
    rows->stmt = NULL;
    return result < 0 ? result : 0;
}

/* ---- values ---- */

int64_t occ_nsys_integer(sqlite3_stmt *stmt, int column, int64_t otherwise)
{
    return sqlite3_column_type(stmt, column) == SQLITE_INTEGER ? sqlite3_column_int64(stmt, column)
                                                               : otherwise;
}

uint32_t occ_nsys_u32(sqlite3_stmt *stmt, int column)
{
    int64_t value = occ_nsys_integer(stmt, column, 0);
    return value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

const char *occ_nsys_text(sqlite3_stmt *stmt, int column)
{
    return sqlite3_column_type(stmt, column) == SQLITE_TEXT ? (const char *)sqlite3_column_text(stmt, column)
                                                            : NULL;
}
