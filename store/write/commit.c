/*
 * The commit: all pending data becomes durable in one transaction. A transaction only writes; memory changes
 * after it succeeded, so that a failed transaction can simply be repeated. One thread for each handle.
 */
#include "store/internal.h"

/* Loads the rollups of the runs to be written or, if `all`, of all runs, since eviction may change any of
 * them. */
static int prepare_runs(struct occ_store *s, bool all, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->n_runs && rc == 0; i++) {
        struct occ_run_state *r = &s->runs[i];
        if (!r->dirty && !all)
            continue;
        rc = occ_run_follow_watermark(s, r, err);
        if (rc == 0 && r->stale)
            rc = occ_rollup_load(s, r, err);
    }
    return rc;
}

static int write_everything(struct occ_store *s, uint32_t amount, bool *ret_evicted, struct occ_error *err)
{
    int rc = prepare_runs(s, amount > 0, err);
    if (rc == 0 && amount > 0)
        rc = occ_quota_evict(s, amount, true, ret_evicted, err);
    for (uint32_t i = 0; i < s->n_runs && rc == 0; i++)
        if (s->runs[i].dirty)
            rc = occ_run_write(s, &s->runs[i], err);
    if (rc == 0)
        rc = occ_pending_totals_write(s, err);
    if (rc == 0)
        rc = occ_measured_write(s, err);
    return rc != 0 ? rc : occ_series_write(s, err);
}

/* Makes one attempt, in one transaction. */
static int try_commit(struct occ_store *s, uint32_t amount, bool *ret_evicted, struct occ_error *err)
{
    int rc = s->bulk ? 0 : occ_store_begin(s, err);
    if (rc != 0)
        return rc;
    rc = write_everything(s, amount, ret_evicted, err);
    if (rc == 0 && !s->bulk)
        rc = occ_store_execute(s, OCC_SQL_COMMIT, NULL, 0, err);
    occ_runs_forget_foreign(s);
    if (rc != 0) {
        occ_store_rollback(s);
        s->bulk_failed = s->bulk;
        return rc;
    }
    for (uint32_t i = 0; i < s->n_runs; i++)
        if (s->runs[i].dirty)
            occ_run_written(&s->runs[i]);
    s->n_totals = s->n_measured = 0;
    occ_series_written(&s->series);
    return 0;
}

/* Commits, and evicts increasing amounts of the oldest data while the file is full. */
static int commit_once(struct occ_store *s, struct occ_error *err)
{
    bool evicted = true;
    int rc = try_commit(s, 0, &evicted, err);
    if (rc != OCC_E_FULL || s->options.max_bytes == 0 || s->bulk)
        return rc;
    uint32_t amount = occ_quota_relieve(s) ? 0 : 1;
    while (rc == OCC_E_FULL && evicted && amount <= 1024) {
        evicted = amount == 0;
        rc = try_commit(s, amount, &evicted, err);
        amount = amount == 0 ? 1 : amount * 2;
    }
    return rc;
}

static bool is_pending(const struct occ_store *s)
{
    bool pending = s->n_totals > 0 || s->n_measured > 0 || occ_series_is_pending(&s->series);
    for (uint32_t i = 0; i < s->n_runs; i++)
        pending |= s->runs[i].dirty;
    return pending;
}

/* Fails if a write of the bulk transaction has failed before. */
static int check_bulk(struct occ_store *s, struct occ_error *err)
{
    /* SQLite rolls back by itself after some errors; later writes would be a separate transaction */
    s->bulk_failed |= s->bulk && sqlite3_get_autocommit(s->db) != 0;
    return s->bulk_failed
               ? occ_fail(err, OCC_E_INVALID,
                          "%s: an earlier write of this transaction failed, nothing of it is stored", s->path)
               : 0;
}

static bool has_ended(const struct occ_run_state *r)
{
    return r->ending;
}

int occ_store_commit(struct occ_store *s, struct occ_error *err)
{
    int rc = occ_store_check_writable(s, err);
    if (rc == 0)
        rc = check_bulk(s, err);
    if (rc == 0 && is_pending(s))
        rc = occ_quota_check_log(s, err);
    if (rc == 0 && is_pending(s))
        rc = commit_once(s, err);
    if (rc == 0)
        occ_runs_forget(s, has_ended);
    occ_scratch_trim(s);
    return rc;
}

int occ_store_finish(struct occ_store *s, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->n_runs && rc == 0; i++)
        rc = occ_store_end_run(s, s->runs[i].id, err);
    if (rc == 0)
        rc = occ_store_commit(s, err);
    if (rc == 0) /* readers may keep a part of the log */
        (void)sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return rc;
}

static bool writes_run(const struct occ_store *s, int64_t run)
{
    for (uint32_t i = 0; i < s->n_runs; i++)
        if (s->runs[i].id == run)
            return true;
    return false;
}

static int end_lost_run(struct occ_store *s, int64_t run, struct occ_error *err)
{
    int rc = occ_store_execute(s, OCC_SQL_END_LOST_RUN, OCC_INTS(run), err);
    if (rc == 0)
        rc = occ_store_execute(s, OCC_SQL_ADD_UNKNOWN, OCC_INTS(run), err);
    return rc == 0 ? occ_store_end_run(s, run, err) : rc;
}

int occ_store_end_lost_runs(struct occ_store *s, const char *hostname, const char *session,
                            bool (*is_alive)(int64_t pid, int64_t start_ns), size_t *ret_open,
                            struct occ_error *err)
{
    size_t n_open = 0;
    int rc = occ_store_begin(s, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = occ_store_statement(s, OCC_SQL_OPEN_RUNS);
    occ_bind_text(&b, hostname);
    occ_bind_text(&b, session);
    while (occ_store_next(s, b.stmt, &rc, err)) {
        int64_t run = sqlite3_column_int64(b.stmt, 0);
        if (writes_run(s, run))
            continue;
        if (is_alive(sqlite3_column_int64(b.stmt, 1), sqlite3_column_int64(b.stmt, 2)))
            n_open++;
        else
            rc = end_lost_run(s, run, err);
    }
    if (ret_open)
        *ret_open = n_open;
    rc = occ_store_conclude(s, rc, err);
    return rc == 0 ? occ_store_commit(s, err) : rc; /* writes the last minutes of the ended runs */
}

int occ_store_label_run(struct occ_store *s, int64_t run, const char *label, bool *ret_changed,
                        struct occ_error *err)
{
    int rc = occ_store_begin(s, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = occ_store_statement(s, OCC_SQL_SET_RUN_LABEL);
    occ_bind_int(&b, run);
    occ_bind_text(&b, label);
    rc = occ_store_run(s, b.stmt, err);
    *ret_changed = rc == 0 && sqlite3_changes(s->db) > 0;
    return occ_store_conclude(s, rc, err);
}

/* ---- bulk transactions ---- */

int occ_store_begin_bulk(struct occ_store *s, struct occ_error *err)
{
    int rc = occ_store_begin(s, err);
    if (rc == 0)
        s->bulk = true;
    return rc;
}

int occ_store_end_bulk(struct occ_store *s, struct occ_error *err)
{
    int rc = occ_store_conclude(s, check_bulk(s, err), err);
    s->bulk = s->bulk_failed = rc != 0;
    return rc;
}
