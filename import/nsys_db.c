/* See nsys_db.h. One thread. */
#include "nsys_db.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* One value, and what is needed of one row; names of more than 1 MiB are refused anyway. */
#define TEXT_MOST_BYTES   (2 << 20)
#define SCHEMA_MOST_BYTES (24 << 20) /* with SQLite's cache; sound exports need one of them */
#define STEPS_AT_ONCE     2000       /* of SQLite's virtual machine, between two looks at what was used */
/* A launch of a sound export takes 100 bytes and 60 steps. Damaged pages that are shared many times, and tables of names
 * without a key, would take for ever. */
#define STEPS_PER_BYTE 16u
#define STEPS_ANYWAY   4000000u
#define SQL_BYTES      4096

int occ_nsys_db_fail(struct occ_nsys_db *d)
{
    int code = sqlite3_errcode(d->db);
    const char *said = sqlite3_errmsg(d->db), *table = d->table ? d->table : "sqlite_master";
    if (code == SQLITE_NOTADB)
        return occ_fail(d->err, OCC_E_CORRUPT, "not a sound SQLite file (encrypted or damaged?): %s", said);
    if (code == SQLITE_NOMEM)
        return occ_fail(d->err, OCC_E_NO_MEMORY, "out of memory");
    if (code == SQLITE_INTERRUPT)
        said = "reading it takes more than a sound file of this size can need";
    if (d->row != 0)
        return occ_fail(d->err, OCC_E_CORRUPT, "table %s, row %lld: %s", table, (long long)d->row, said);
    return occ_fail(d->err, OCC_E_CORRUPT, "table %s: %s", table, said);
}

/* ---- harmless ---- */

static int authorize(void *context, int action, const char *a, const char *b, const char *c, const char *d)
{
    (void)context;
    (void)b;
    (void)c;
    (void)d;
    bool reads = action == SQLITE_SELECT || action == SQLITE_READ;
    bool asks = action == SQLITE_PRAGMA && a && strcasecmp(a, "table_xinfo") == 0;
    return reads || asks ? SQLITE_OK : SQLITE_DENY;
}

static int spend(void *context)
{
    struct occ_nsys_db *d = context;
    if (d->steps_left < STEPS_AT_ONCE || sqlite3_memory_used() > d->memory_most)
        return 1;
    d->steps_left -= STEPS_AT_ONCE;
    return 0;
}

static int ask_number(struct occ_nsys_db *d, const char *sql, int64_t *ret_number)
{
    sqlite3_stmt *stmt = NULL;
    int status = 0;
    if (sqlite3_prepare_v2(d->db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        *ret_number = sqlite3_column_int64(stmt, 0);
    else
        status = occ_nsys_db_fail(d);
    (void)sqlite3_finalize(stmt);
    return status;
}

int occ_nsys_db_make_harmless(sqlite3 *db, struct occ_nsys_db *ret_db, struct occ_error *err)
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
                                   .steps_left = STEPS_ANYWAY,
                                   .memory_most = sqlite3_memory_used() + SCHEMA_MOST_BYTES};
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        (void)sqlite3_db_config(db, switches[i].what, switches[i].on, (int *)NULL);
    (void)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, TEXT_MOST_BYTES);
    (void)sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    (void)sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 100);
    (void)sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, 0);
    sqlite3_progress_handler(db, STEPS_AT_ONCE, spend, ret_db);
    (void)sqlite3_exec(db, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-4096", NULL,
                       NULL, NULL);
    int status = ask_number(ret_db, "PRAGMA page_count", &pages);
    if (status == 0)
        status = ask_number(ret_db, "PRAGMA page_size", &page_bytes);
    if (status == 0)
        ret_db->steps_left += (uint64_t)pages * (uint64_t)page_bytes * STEPS_PER_BYTE;
    (void)sqlite3_set_authorizer(db, authorize, NULL);
    return status;
}

void occ_nsys_db_finish(struct occ_nsys_db *d)
{
    sqlite3_progress_handler(d->db, 0, NULL, NULL);
}

/* ---- tables ---- */

static int is_ordinary(struct occ_nsys_db *d, sqlite3_stmt *stmt)
{
    const char *type = occ_nsys_text(stmt, 0), *sql = occ_nsys_text(stmt, 1);
    if (type && sql && strcmp(type, "table") == 0 && strncasecmp(sql, "CREATE TABLE", 12) == 0)
        return 1;
    return occ_fail(d->err, OCC_E_INVALID, "%s is not an ordinary table", d->table);
}

/* Runs a statement about the table at hand for each of its rows. */
static int each(struct occ_nsys_db *d, const char *sql,
                int (*take)(struct occ_nsys_db *, sqlite3_stmt *, void *), void *context)
{
    sqlite3_stmt *stmt = NULL;
    int status = 0, step = SQLITE_DONE;
    if (sqlite3_prepare_v2(d->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return occ_nsys_db_fail(d);
    if (sqlite3_bind_parameter_count(stmt) > 0)
        (void)sqlite3_bind_text(stmt, 1, d->table, -1, SQLITE_STATIC);
    while (status == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        status = take(d, stmt, context);
    if (status == 0 && step != SQLITE_DONE)
        status = occ_nsys_db_fail(d);
    (void)sqlite3_finalize(stmt);
    return status;
}

static int take_entry(struct occ_nsys_db *d, sqlite3_stmt *stmt, void *found)
{
    *(bool *)found = true;
    int ordinary = is_ordinary(d, stmt);
    return ordinary < 0 ? ordinary : 0;
}

static int find_table(struct occ_nsys_db *d, const char *table, bool *ret_found)
{
    *ret_found = false;
    d->table = table;
    d->row = 0;
    return each(d, "SELECT type, sql FROM sqlite_master WHERE name = ? COLLATE NOCASE", take_entry,
                ret_found);
}

struct wanted {
    const char *const *columns;
    size_t n;
    uint64_t present;
};

/* A row of table_xinfo: (cid, name, type, notnull, default, pk, hidden). */
static int take_column(struct occ_nsys_db *d, sqlite3_stmt *stmt, void *context)
{
    struct wanted *wanted = context;
    const char *name = occ_nsys_text(stmt, 1);
    if (occ_nsys_integer(stmt, 6, 0) != 0)
        return occ_fail(d->err, OCC_E_INVALID, "%s is not an ordinary table: it has a computed column",
                        d->table);
    for (size_t i = 0; name && i < wanted->n; i++)
        if (strcasecmp(name, wanted->columns[i]) == 0)
            wanted->present |= UINT64_C(1) << i;
    return 0;
}

static int find_columns(struct occ_nsys_db *d, struct wanted *wanted)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "PRAGMA table_xinfo(\"%s\")", d->table);
    return each(d, sql, take_column, wanted);
}

int occ_nsys_db_has(struct occ_nsys_db *d, const char *table)
{
    struct wanted nothing = {0};
    bool found = false;
    int status = find_table(d, table, &found);
    if (status == 0 && found)
        status = find_columns(d, &nothing);
    return status != 0 ? status : found;
}

int occ_nsys_db_select(struct occ_nsys_db *d, const char *table, const char *const *columns, size_t n,
                       const char *end, uint64_t *ret_present, sqlite3_stmt **ret_stmt)
{
    char sql[SQL_BYTES] = "SELECT ";
    struct wanted wanted = {.columns = columns, .n = n};
    bool found = false;
    *ret_stmt = NULL;
    int status = find_table(d, table, &found);
    if (status == 0 && found)
        status = find_columns(d, &wanted);
    if (status != 0 || !found)
        return status;
    size_t used = strlen(sql);
    for (size_t i = 0; i < n && used < sizeof sql; i++)
        used += (size_t)snprintf(sql + used, sizeof sql - used,
                                 wanted.present >> i & 1 ? "\"%s\", " : "NULL, ", columns[i]);
    if (used < sizeof sql)
        used += (size_t)snprintf(sql + used, sizeof sql - used, "rowid FROM main.\"%s\"%s", table, end);
    if (used >= sizeof sql)
        return occ_fail(d->err, OCC_E_INVALID, "too many columns are asked of table %s", table);
    if (sqlite3_prepare_v2(d->db, sql, -1, ret_stmt, NULL) != SQLITE_OK)
        return occ_nsys_db_fail(d);
    if (ret_present)
        *ret_present = wanted.present;
    return 0;
}

int occ_nsys_db_step(struct occ_nsys_db *d, sqlite3_stmt *stmt, size_t n)
{
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW)
        d->row = sqlite3_column_int64(stmt, (int)n);
    return step == SQLITE_ROW ? 1 : step == SQLITE_DONE ? 0 : occ_nsys_db_fail(d);
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
