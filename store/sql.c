/* Statements and SQLite's error codes. One connection belongs to one thread. */
#include "internal.h"

static const char *const texts[OCC_SQL_COUNT] = {
#define X(name, text) [OCC_SQL_##name] = text,
    OCC_SQL_STATEMENTS(X)};

/* Translates an error code. SQLite cannot lengthen the file of its shared memory on a full disk, and gives no
 * reason. */
static int code_of(int sqlite_code)
{
    static const struct {
        int sqlite, ours;
    } codes[] = {
        {SQLITE_NOTADB, OCC_E_CORRUPT},  {SQLITE_CORRUPT, OCC_E_CORRUPT},    {SQLITE_BUSY, OCC_E_BUSY},
        {SQLITE_LOCKED, OCC_E_BUSY},     {SQLITE_READONLY, OCC_E_READ_ONLY}, {SQLITE_FULL, OCC_E_FULL},
        {SQLITE_NOMEM, OCC_E_NO_MEMORY}, {SQLITE_PERM, OCC_E_DENIED},        {SQLITE_AUTH, OCC_E_DENIED},
        {SQLITE_TOOBIG, OCC_E_CORRUPT},  {SQLITE_MISMATCH, OCC_E_CORRUPT},
    };
    if (sqlite_code == SQLITE_IOERR_SHMSIZE)
        return OCC_E_FULL;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].sqlite == (sqlite_code & 0xff))
            return codes[i].ours;
    return OCC_E_IO;
}

int occ_sql_fail(struct sqlite3 *db, const char *path, int sqlite_code, struct occ_error *err,
                 const char *what)
{
    static const struct {
        int code;
        const char *text;
    } hints[] = {
        {OCC_E_CORRUPT, "not a database, or damaged"},
        {OCC_E_BUSY, "in use by another process"},
        {OCC_E_READ_ONLY, "may not be written"},
        {OCC_E_FULL, "disk or quota full"},
    };
    int code = code_of(sqlite_code);
    const char *message = db ? sqlite3_errmsg(db) : sqlite3_errstr(sqlite_code);
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (hints[i].code == code)
            return occ_fail(err, code, "%s: %s: %s (%s)", path, what, hints[i].text, message);
    return occ_fail(err, code, "%s: %s: %s", path, what, message);
}

struct occ_binder occ_store_statement(struct occ_store *s, enum occ_sql which)
{
    sqlite3_stmt **kept = &s->statements[which];
    if (!*kept)
        (void)sqlite3_prepare_v3(s->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT, kept, NULL);
    return (struct occ_binder){.stmt = *kept};
}

sqlite3_stmt *occ_store_query(struct occ_store *s, enum occ_sql which, const int64_t *values, int n)
{
    struct occ_binder b = occ_store_statement(s, which);
    for (int i = 0; i < n; i++)
        occ_bind_int(&b, values[i]);
    return b.stmt;
}

int occ_store_step(struct occ_store *s, sqlite3_stmt *stmt)
{
    /* the reason why the statement could not be prepared */
    return stmt ? sqlite3_step(stmt) : sqlite3_extended_errcode(s->db);
}

int occ_store_end(struct occ_store *s, sqlite3_stmt *stmt, int step, const char *what, struct occ_error *err)
{
    int rc = step == SQLITE_DONE ? 0 : occ_sql_fail(s->db, s->path, step, err, what);
    (void)sqlite3_reset(stmt);
    if (stmt)
        (void)sqlite3_clear_bindings(stmt);
    return rc;
}

bool occ_store_next(struct occ_store *s, sqlite3_stmt *stmt, int *rc, struct occ_error *err)
{
    int step = *rc == 0 ? occ_store_step(s, stmt) : SQLITE_DONE;
    if (step == SQLITE_ROW)
        return true;
    int failed = occ_store_end(s, stmt, step, "cannot read", err);
    *rc = failed ? failed : *rc;
    return false;
}

int occ_store_number(struct occ_store *s, sqlite3_stmt *stmt, int64_t *ret_number, struct occ_error *err)
{
    int rc = 0, found = OCC_E_NOT_FOUND;
    while (occ_store_next(s, stmt, &rc, err)) {
        *ret_number = sqlite3_column_int64(stmt, 0);
        found = 0;
    }
    return rc != 0 ? rc : found;
}

int occ_store_run(struct occ_store *s, sqlite3_stmt *stmt, struct occ_error *err)
{
    int step;
    do
        step = occ_store_step(s, stmt);
    while (step == SQLITE_ROW);
    return occ_store_end(s, stmt, step, "cannot write", err);
}

int occ_store_execute(struct occ_store *s, enum occ_sql which, const int64_t *values, int n,
                      struct occ_error *err)
{
    return occ_store_run(s, occ_store_query(s, which, values, n), err);
}

void occ_store_rollback(struct occ_store *s)
{
    /* after a full disk, SQLite has rolled back already */
    if (!sqlite3_get_autocommit(s->db))
        (void)occ_store_execute(s, OCC_SQL_ROLLBACK, NULL, 0, NULL);
}

int occ_store_begin(struct occ_store *s, struct occ_error *err)
{
    return occ_store_execute(s, OCC_SQL_BEGIN_IMMEDIATE, NULL, 0, err);
}

int occ_store_conclude(struct occ_store *s, int rc, struct occ_error *err)
{
    if (rc == 0)
        rc = occ_store_execute(s, OCC_SQL_COMMIT, NULL, 0, err);
    if (rc != 0)
        occ_store_rollback(s);
    return rc;
}

int occ_store_check_writable(const struct occ_store *s, struct occ_error *err)
{
    return s->options.mode == OCC_STORE_WRITE
               ? 0
               : occ_fail(err, OCC_E_READ_ONLY, "%s: opened for reading", s->path);
}
