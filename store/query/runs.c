/* `runs`: what ran, and how well it could be watched. One thread. */
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "sum_by_config.h"
#include "support/text.h"

/* Texts of a row in the order of the statement. */
#define RUN_TEXTS(X)                                                                                         \
    X(hostname)                                                                                              \
    X(exe)                                                                                                   \
    X(cmdline)                                                                                               \
    X(user)                                                                                                  \
    X(label)                                                                                                 \
    X(session)                                                                                               \
    X(source)                                                                                                \
    X(level)                                                                                                 \
    X(level_reason)                                                                                          \
    X(slurm_job) X(k8s_pod) X(source_version) X(source_file) X(time_base) X(lacks) X(rank) X(lost_text)      \
        X(devices)

static const char runs_sql[] =
    "SELECT r.run_id, r.uuid, r.pid, r.uid, r.start_ns, coalesce(r.end_ns, 0), r.launches, r.gpu_time_ns, "
    "r.simulated, coalesce(r.cupti_version, 0), v.kernels, v.configs, v.lost, coalesce(v.helper_cpu_ns, 0), "
    "coalesce(v.process_cpu_ns, 0), v.hostname, r.exe, r.command_line, r.user, r.label, r.session_id, "
    "r.source, "
    "r.level, r.level_reason, r.slurm_job, r.k8s_pod, r.source_version, r.source_file, r.time_base, "
    "r.missing_fields, r.rank, coalesce(v.lost_causes, ''), v.devices "
    "FROM stored_run r JOIN run v USING(run_id) "
    "WHERE (?1 = 0 OR r.run_id = ?1) AND (?2 IS NULL OR r.session_id = ?2) "
    /* a run's time: from its start to its end, its last launch, or its start */
    "AND max(coalesce(r.end_ns, 0), coalesce(r.last_start_ns, 0), r.start_ns) >= ?3 AND r.start_ns < ?4 "
    "AND (?5 OR r.time_base IS NOT 'unknown') "
    "ORDER BY r.start_ns DESC, r.run_id DESC";

struct ask {
    struct occ_store *store;
    struct occ_error *err;
    struct occ_scope scope;
    struct occ_run_row *rows;
    size_t n, capacity;
    struct occ_arena arena;
};

/* Has the run launched a shape that fits? */
static int fits(struct ask *a, int64_t run, bool *ret_fits)
{
    sqlite3_stmt *stmt = NULL;
    int step = SQLITE_DONE;
    *ret_fits = a->scope.any_shape;
    if (*ret_fits)
        return 0;
    int rc =
        occ_ask_prepare(a->store, "SELECT config_id FROM stored_run_config WHERE run_id = ?", &stmt, a->err);
    if (rc != 0)
        return rc;
    (void)sqlite3_bind_int64(stmt, 1, run);
    while (!*ret_fits && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        *ret_fits = occ_scope_has_shape(&a->scope, (uint64_t)sqlite3_column_int64(stmt, 0));
    return occ_ask_end(a->store, stmt, *ret_fits ? SQLITE_DONE : step, a->err);
}

static void read_run(struct ask *a, sqlite3_stmt *stmt, struct occ_run_row *row)
{
    int at = 0;
    row->id = sqlite3_column_int64(stmt, at++);
    const void *uuid = sqlite3_column_blob(stmt, at);
    if (uuid && sqlite3_column_bytes(stmt, at) == 16)
        occ_hex_encode(uuid, 16, row->uuid);
    at++;
    row->pid = (int32_t)sqlite3_column_int64(stmt, at++);
    row->uid = (uint32_t)sqlite3_column_int64(stmt, at++);
    row->start_ns = sqlite3_column_int64(stmt, at++);
    row->end_ns = sqlite3_column_int64(stmt, at++);
    row->launches = (uint64_t)sqlite3_column_int64(stmt, at++);
    row->gpu_ns = (uint64_t)sqlite3_column_int64(stmt, at++);
    row->simulated = sqlite3_column_int(stmt, at++) != 0;
    row->cupti_version = (uint32_t)sqlite3_column_int64(stmt, at++);
    row->kernels = (uint64_t)sqlite3_column_int64(stmt, at++);
    row->shapes = (uint64_t)sqlite3_column_int64(stmt, at++);
    row->lost = (uint64_t)sqlite3_column_int64(stmt, at++);
    row->helper_cpu_ns = (uint64_t)sqlite3_column_int64(stmt, at++);
    row->process_cpu_ns = (uint64_t)sqlite3_column_int64(stmt, at++);
#define X(member) row->member = occ_arena_copy(&a->arena, (const char *)sqlite3_column_text(stmt, at++));
    RUN_TEXTS(X)
#undef X
}

static int add_run(struct ask *a, sqlite3_stmt *stmt)
{
    bool fit = false;
    int rc = fits(a, sqlite3_column_int64(stmt, 0), &fit);
    if (rc != 0 || !fit)
        return rc;
    if (a->n == a->capacity) {
        size_t capacity = a->capacity * 2 + 16;
        struct occ_run_row *rows = realloc(a->rows, capacity * sizeof *rows);
        if (!rows)
            return occ_store_no_memory(a->err);
        a->rows = rows;
        a->capacity = capacity;
    }
    struct occ_run_row *row = &a->rows[a->n++];
    memset(row, 0, sizeof *row);
    read_run(a, stmt, row);
    return a->arena.failed ? occ_store_no_memory(a->err) : 0;
}

static int read_runs(struct ask *a, const struct occ_filter *filter)
{
    sqlite3_stmt *stmt = NULL;
    int step = SQLITE_DONE, rc = occ_ask_prepare(a->store, runs_sql, &stmt, a->err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, filter->run);
    occ_bind_text(&b, filter->session);
    occ_bind_int(&b, a->scope.since_ns);
    occ_bind_int(&b, a->scope.until_ns);
    occ_bind_int(&b, filter->since_ns <= 0 && filter->until_ns <= 0);
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        rc = add_run(a, stmt);
    if (rc == 0)
        return occ_ask_end(a->store, stmt, step, a->err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

int occ_store_runs(struct occ_store *s, const struct occ_filter *filter, struct occ_runs *ret_runs,
                   struct occ_error *err)
{
    struct ask a = {.store = s, .err = err};
    int rc = occ_store_do(s, OCC_SQL_BEGIN, err);
    if (rc != 0)
        return rc;
    rc = occ_scope_open(s, filter, &a.scope, err);
    if (rc == 0)
        rc = read_runs(&a, filter);
    occ_store_rollback(s);
    occ_scope_close(&a.scope);
    if (rc == 0)
        *ret_runs = (struct occ_runs){.rows = a.rows, .n = a.n, .memory = occ_arena_take(&a.arena)};
    else
        free(a.rows);
    occ_arena_free_blocks(occ_arena_take(&a.arena));
    return rc;
}

void occ_runs_free(struct occ_runs *runs)
{
    free(runs->rows);
    occ_arena_free_blocks(runs->memory);
    *runs = (struct occ_runs){0};
}
