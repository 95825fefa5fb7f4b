/* What importing needs beside appending: one transaction around everything, reported occupancy, and finding an earlier
 * import. One thread. */
#include "store/internal.h"

int occ_store_begin_bulk(struct occ_store *s, struct occ_error *err)
{
    int rc = occ_store_do(s, OCC_SQL_BEGIN_IMMEDIATE, err);
    if (rc == 0)
        s->bulk = true;
    return rc;
}

int occ_bulk_check(struct occ_store *s, struct occ_error *err)
{
    /* SQLite itself rolls back after some errors: what follows would be a transaction of its own */
    s->bulk_failed |= s->bulk && sqlite3_get_autocommit(s->db) != 0;
    return s->bulk_failed
               ? occ_fail(err, OCC_E_INVALID,
                          "%s: an earlier write of this transaction failed, nothing of it is stored", s->path)
               : 0;
}

int occ_store_end_bulk(struct occ_store *s, struct occ_error *err)
{
    int rc = occ_bulk_check(s, err);
    if (rc == 0)
        rc = occ_store_do(s, OCC_SQL_COMMIT, err);
    s->bulk = s->bulk_failed = rc != 0;
    if (rc != 0)
        occ_store_rollback(s);
    return rc;
}

int occ_store_put_reported(struct occ_store *s, int64_t run, int64_t config,
                           const struct occ_reported_occupancy *reported, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_ADD_REPORTED, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, run);
    occ_bind_int(&b, config);
    occ_bind_int(&b, (int64_t)reported->launches);
    occ_bind_real(&b, reported->mean);
    occ_bind_real(&b, reported->min);
    occ_bind_real(&b, reported->max);
    return occ_store_run(s, stmt, err, "cannot add reported occupancy");
}

/* The first number of a statement's only row; OCC_E_NOT_FOUND: it has none. */
static int ask_number(struct occ_store *s, enum occ_sql which, const char *text, int64_t *ret_number,
                      struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, which, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    if (text)
        occ_bind_text(&b, text);
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW)
        *ret_number = sqlite3_column_int64(stmt, 0);
    else
        rc = step == SQLITE_DONE ? occ_fail(err, OCC_E_NOT_FOUND, "%s: no such run", s->path)
                                 : occ_sql_fail(s->db, s->path, step, err, "cannot read runs");
    (void)sqlite3_reset(stmt);
    (void)sqlite3_clear_bindings(stmt);
    return rc;
}

int occ_store_find_import(struct occ_store *s, const char *source_hash, int64_t *ret_run,
                          struct occ_error *err)
{
    return ask_number(s, OCC_SQL_FIND_IMPORT, source_hash, ret_run, err);
}

int occ_store_session_launches(struct occ_store *s, const char *session, uint64_t *ret_launches,
                               struct occ_error *err)
{
    int64_t n = 0;
    int rc = ask_number(s, OCC_SQL_SESSION_LAUNCHES, session, &n, err);
    if (rc == 0)
        *ret_launches = (uint64_t)n;
    return rc;
}

int occ_store_count_unknown_time_base(struct occ_store *s, uint64_t *ret_runs, struct occ_error *err)
{
    int64_t n = 0;
    int rc = ask_number(s, OCC_SQL_COUNT_TIMELESS, NULL, &n, err);
    if (rc == 0)
        *ret_runs = (uint64_t)n;
    return rc;
}
