/* State of the runs that this handle writes: loaded from the file, updated with each launch, written with
 * every commit. One thread for each handle. */
#include <stdlib.h>

#include "store/internal.h"

static void release(struct occ_run_state *r)
{
    for (uint32_t i = 0; i < r->n_pending; i++)
        free(r->pending[i].rows);
    free(r->pending);
    occ_totals_table_free(&r->minutes);
    occ_map_free(&r->configs);
}

static int load_row(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    bool found = false;
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_RUN_STATE, OCC_INTS(r->id));
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err)) {
        found = true;
        r->launches = (uint64_t)sqlite3_column_int64(stmt, 0);
        r->gpu_ns = (uint64_t)sqlite3_column_int64(stmt, 1);
        r->first_ns = sqlite3_column_int64(stmt, 2);
        r->last_ns = sqlite3_column_int64(stmt, 3);
        r->rolled_ns = sqlite3_column_int64(stmt, 4);
    }
    return rc != 0 || found ? rc
                            : occ_fail(err, OCC_E_NOT_FOUND, "%s: no run %lld", s->path, (long long)r->id);
}

static int load_configs(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_RUN_CONFIGS, OCC_INTS(r->id));
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err))
        if (occ_map_put(&r->configs, (uint64_t)sqlite3_column_int64(stmt, 0), OCC_CONFIG_STORED) ==
            OCC_MAP_NONE)
            rc = occ_no_memory(err);
    return rc;
}

/* Reads the size of the level-0 chunks that the last writer of this run left. */
static int load_level0(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_COUNT_LEVEL0, OCC_INTS(r->id));
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err)) {
        struct occ_pending_rows *pending = occ_run_pending_rows(r, sqlite3_column_int64(stmt, 0));
        if (pending)
            pending->level0 = (struct occ_level0){(uint64_t)sqlite3_column_int64(stmt, 1),
                                                  (uint64_t)occ_column_clamped(stmt, 2, 0, INT64_MAX / 2)};
        else
            rc = occ_no_memory(err);
    }
    return rc;
}

static int load_run(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    int rc = load_row(s, r, err);
    if (rc != 0 || r->launches == 0)
        return rc;
    rc = load_configs(s, r, err);
    if (rc == 0)
        rc = load_level0(s, r, err);
    if (rc == 0)
        rc = occ_rollup_load(s, r, err);
    return rc;
}

int occ_store_run_state(struct occ_store *s, int64_t run, struct occ_run_state **ret, struct occ_error *err)
{
    for (uint32_t i = 0; i < s->n_runs; i++)
        if (s->runs[i].id == run) {
            *ret = &s->runs[i];
            return 0;
        }
    struct occ_run_state *runs = realloc(s->runs, (s->n_runs + 1) * sizeof *runs);
    if (!runs)
        return occ_no_memory(err);
    s->runs = runs;
    struct occ_run_state *r = &runs[s->n_runs];
    *r = (struct occ_run_state){.id = run};
    int rc = load_run(s, r, err);
    if (rc != 0) {
        release(r);
        return rc;
    }
    s->n_runs++;
    *ret = r;
    return 0;
}

void occ_runs_forget(struct occ_store *s, bool (*drop)(const struct occ_run_state *r))
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n_runs; i++) {
        if (drop(&s->runs[i]))
            release(&s->runs[i]);
        else
            s->runs[kept++] = s->runs[i];
    }
    s->n_runs = kept;
}

static bool is_foreign(const struct occ_run_state *r)
{
    return r->foreign;
}

void occ_runs_forget_foreign(struct occ_store *s)
{
    occ_runs_forget(s, is_foreign);
}

/* ---- writing ---- */

int occ_run_follow_watermark(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    struct occ_run_state file = {.id = r->id};
    int rc = load_row(s, &file, err);
    if (rc == 0) {
        /* minutes written by the other handle must not be written again */
        r->stale |= file.rolled_ns != r->rolled_ns;
        r->rolled_ns = file.rolled_ns;
    }
    return rc;
}

static int write_new_configs(struct occ_store *s, const struct occ_run_state *r, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < r->configs.capacity && r->has_new_configs && rc == 0; i++)
        if (r->configs.values[i] == OCC_CONFIG_NEW)
            rc = occ_store_execute(s, OCC_SQL_ADD_RUN_CONFIG, OCC_INTS(r->id, (int64_t)r->configs.keys[i]),
                                   err);
    return rc;
}

static int write_state(struct occ_store *s, const struct occ_run_state *r, struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, OCC_SQL_SET_RUN_STATE);
    occ_bind_int(&b, (int64_t)r->launches);
    occ_bind_int(&b, (int64_t)r->gpu_ns);
    if (r->launches > 0) {
        occ_bind_int(&b, r->first_ns);
        occ_bind_int(&b, r->last_ns);
    } else {
        b.at += 2; /* columns stay NULL */
    }
    occ_bind_int(&b, r->planned_ns);
    occ_bind_int(&b, r->id);
    int rc = occ_store_run(s, b.stmt, err);
    return rc == 0 && r->end_ns > 0
               ? occ_store_execute(s, OCC_SQL_SET_RUN_END, OCC_INTS(r->end_ns, r->id), err)
               : rc;
}

int occ_run_write(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < r->n_pending && rc == 0; i++)
        rc = occ_pending_rows_write(s, r, &r->pending[i], err);
    if (rc == 0)
        rc = occ_rollup_write(s, r, err);
    if (rc == 0)
        rc = write_new_configs(s, r, err);
    return rc != 0 ? rc : write_state(s, r, err);
}

void occ_run_written(struct occ_run_state *r)
{
    for (uint32_t i = 0; i < r->n_pending; i++)
        occ_pending_rows_written(&r->pending[i]);
    occ_rollup_written(r);
    for (uint32_t i = 0; i < r->configs.capacity && r->has_new_configs; i++)
        if (r->configs.values[i] == OCC_CONFIG_NEW)
            r->configs.values[i] = OCC_CONFIG_STORED;
    r->has_new_configs = false;
    r->forced_ns = r->end_ns = 0;
    r->dirty = false;
}
