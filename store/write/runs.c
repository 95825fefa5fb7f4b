/*
 * State of the runs that this handle writes: loaded from the file, counted as launches come, written with every commit.
 * One thread a handle.
 */
#include <stdlib.h>

#include "store/internal.h"

void occ_run_state_free(struct occ_run_state *r)
{
    for (uint32_t i = 0; i < r->n_lanes; i++) {
        free(r->lanes[i].rows);
        free(r->lanes[i].small_ids);
    }
    free(r->lanes);
    occ_sealed_free(r, 0);
    free(r->sealed);
    free(r->new_configs);
    occ_totals_table_free(&r->minutes);
    occ_totals_table_free(&r->hours);
    occ_map_free(&r->configs);
}

static int load_row(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_RUN_STATE, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, r->id);
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW) {
        r->launches = (uint64_t)sqlite3_column_int64(stmt, 0);
        r->gpu_ns = (uint64_t)sqlite3_column_int64(stmt, 1);
        r->first_ns = sqlite3_column_int64(stmt, 2);
        r->last_ns = sqlite3_column_int64(stmt, 3);
        r->rolled_minute_ns = sqlite3_column_int64(stmt, 4);
        r->rolled_hour_ns = sqlite3_column_int64(stmt, 5);
        r->retired_ns = sqlite3_column_int64(stmt, 6);
    } else {
        rc = step == SQLITE_DONE
                 ? occ_fail(err, OCC_E_NOT_FOUND, "%s: no run %lld", s->path, (long long)r->id)
                 : occ_sql_fail(s->db, s->path, step, err, "cannot read a run");
    }
    (void)sqlite3_reset(stmt);
    return rc;
}

static int load_configs(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_RUN_CONFIGS, &stmt, err), step = SQLITE_DONE;
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, r->id);
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        if (occ_map_put(&r->configs, (uint64_t)sqlite3_column_int64(stmt, 0), 0) == OCC_MAP_NONE)
            rc = occ_store_no_memory(err);
    if (rc == 0 && step != SQLITE_DONE)
        rc = occ_sql_fail(s->db, s->path, step, err, "cannot read a run");
    (void)sqlite3_reset(stmt);
    return rc;
}

/* The level-0 chunks that the last writer of this run left. */
static int load_lanes(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_SMALL_CHUNKS, &stmt, err), step = SQLITE_DONE;
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, r->id);
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct occ_lane *lane = occ_run_lane(r, sqlite3_column_int64(stmt, 1));
        if (!lane || !occ_lane_add_small(lane, sqlite3_column_int64(stmt, 0))) {
            rc = occ_store_no_memory(err);
            break;
        }
        int64_t n = sqlite3_column_int64(stmt, 2);
        lane->dropped += n > 0 && n <= OCC_COLUMNS_MAX_ROWS ? (uint32_t)n : 0;
        lane->n_small_dropped = lane->n_small;
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = occ_sql_fail(s->db, s->path, step, err, "cannot read chunks");
    (void)sqlite3_reset(stmt);
    return rc;
}

static int load_run(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    int rc = load_row(s, r, err);
    if (rc != 0 || r->launches == 0)
        return rc;
    rc = load_configs(s, r, err);
    if (rc == 0)
        rc = load_lanes(s, r, err);
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
        return occ_store_no_memory(err);
    s->runs = runs;
    struct occ_run_state *r = &runs[s->n_runs];
    *r = (struct occ_run_state){.id = run};
    int rc = load_run(s, r, err);
    if (rc != 0) {
        occ_run_state_free(r);
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
            occ_run_state_free(&s->runs[i]);
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

static int write_new_configs(struct occ_store *s, const struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_ADD_RUN_CONFIG, &stmt, err);
    for (uint32_t i = 0; i < r->n_new_configs && rc == 0; i++) {
        struct occ_binder b = {.stmt = stmt};
        occ_bind_int(&b, r->id);
        occ_bind_int(&b, r->new_configs[i]);
        rc = occ_store_run(s, stmt, err, "cannot add a configuration to a run");
    }
    return rc;
}

static int write_state(struct occ_store *s, const struct occ_run_state *r, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_store_statement(s, OCC_SQL_SET_RUN_STATE, &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, (int64_t)r->launches);
    occ_bind_int(&b, (int64_t)r->gpu_ns);
    if (r->launches > 0) {
        occ_bind_int(&b, r->first_ns);
        occ_bind_int(&b, r->last_ns);
    } else {
        b.at += 2; /* NULL */
    }
    occ_bind_int(&b, r->want_minute_ns);
    occ_bind_int(&b, r->want_hour_ns);
    occ_bind_int(&b, r->id);
    return occ_store_run(s, stmt, err, "cannot update a run");
}

int occ_run_write(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < r->n_lanes && rc == 0; i++)
        rc = occ_lane_write(s, r, &r->lanes[i], err);
    if (rc == 0) /* after the lanes, which gave back what these replace */
        rc = occ_sealed_write(s, r, err);
    if (rc == 0)
        rc = occ_rollup_write(s, r, err);
    if (rc == 0)
        rc = write_new_configs(s, r, err);
    return rc != 0 ? rc : write_state(s, r, err);
}

void occ_run_written(struct occ_run_state *r)
{
    occ_sealed_free(r, 0);
    for (uint32_t i = 0; i < r->n_lanes; i++)
        occ_lane_written(&r->lanes[i]);
    occ_rollup_written(r);
    r->n_new_configs = 0;
    r->force_minute_ns = 0;
    r->dirty = r->ending && r->hours.n > 0; /* the hours of a run that ends follow in a second transaction */
}

/* Another writer may have rolled the run up to make room (quota.c): what it wrote must not be written again. */
int occ_run_follow_watermarks(struct occ_store *s, struct occ_run_state *r, struct occ_error *err)
{
    struct occ_run_state file = {.id = r->id};
    int rc = load_row(s, &file, err);
    if (rc != 0 || (file.rolled_minute_ns == r->rolled_minute_ns && file.rolled_hour_ns == r->rolled_hour_ns))
        return rc;
    r->rolled_minute_ns = file.rolled_minute_ns;
    r->rolled_hour_ns = file.rolled_hour_ns;
    r->stale = true;
    return 0;
}
