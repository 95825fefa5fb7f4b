/* The tables `rank` and `idle`: see load.h. */
#include "load.h"

#define RUN_NAMES "run, node, rank, program, user, job, start_ns, last_start_ns"

/* Runs that the question is about, of those that `more` lets through. */
static int fetch_runs(const struct occ_load *l, const char *more)
{
    const struct occ_remote_question *q = l->question;
    sqlite3_str *where = sqlite3_str_new(l->db);
    sqlite3_str_appendall(where, more);
    occ_load_append_text(where, " AND user = ", q->user, "");
    occ_load_append_text(where, " AND node = ", q->node, "");
    if (q->job) {
        sqlite3_str_appendall(where, " AND ");
        occ_load_append_job(where, q->job);
    }
    char *condition = sqlite3_str_finish(where);
    int rc = occ_load_fetch(l, "runs", RUN_NAMES,
                            sqlite3_mprintf("SELECT " RUN_NAMES " FROM %s.run FINAL WHERE %s",
                                            l->w->options.database, condition ? condition : "0"));
    sqlite3_free(condition);
    return rc;
}

/* Of a node's first run of a job to its last are the job's. */
static int fetch_gpus(const struct occ_load *l)
{
    sqlite3_str *runs = sqlite3_str_new(l->db), *period = sqlite3_str_new(l->db);
    sqlite3_stmt *stmt = NULL;
    sqlite3_str_appendall(runs, "'00000000-0000-0000-0000-000000000000'");
    if (sqlite3_prepare_v2(l->db,
                           "SELECT run FROM runs WHERE length(run) = 36 AND run NOT GLOB '*[^0-9a-f-]*'", -1,
                           &stmt, NULL) == SQLITE_OK)
        while (sqlite3_step(stmt) == SQLITE_ROW)
            sqlite3_str_appendf(runs, ", '%s'", (const char *)sqlite3_column_text(stmt, 0));
    (void)sqlite3_finalize(stmt);
    occ_load_append_period(l, period);
    char *list = sqlite3_str_finish(runs), *when = sqlite3_str_finish(period);
    int rc = occ_load_fetch(
        l, "gpus", "run, gpu, n, busy, wasted, capacity, first, last",
        sqlite3_mprintf(
            "SELECT run, gpu, sum(launches) AS n, sum(busy_ns) AS busy, sum(wasted_warp_s) AS wasted, "
            "sum(capacity_warp_s) AS capacity, toUInt32(min(bucket)) AS first, toUInt32(max(bucket)) AS "
            "last FROM %s.rank_minute FINAL WHERE run IN (%s)%s GROUP BY run, gpu",
            l->w->options.database, list, when ? when : ""));
    sqlite3_free(list);
    sqlite3_free(when);
    return rc;
}

int occ_load_ranks(struct occ_load *l)
{
    int rc = fetch_runs(l, "1");
    if (rc == 0)
        rc = fetch_gpus(l);
    return rc == 0
               ? occ_load_run(
                     l,
                     sqlite3_mprintf(
                         "CREATE TEMP TABLE rank AS SELECT run, gpu, node, nullif(rank, '') AS rank, "
                         "program, "
                         "nullif(user, '') AS user, job, CAST(n AS INTEGER) AS launches, CAST(busy AS "
                         "INTEGER) AS "
                         "busy_ns, CAST(wasted AS REAL) AS wasted_warp_s, CAST(capacity AS REAL) AS "
                         "capacity_warp_s, first * 1000000000 AS first_ns, last * 1000000000 AS last_ns FROM "
                         "gpus JOIN runs USING(run)"))
               : rc;
}

/* Of a node that is silent nobody knows what it does since. */
int occ_load_idle(struct occ_load *l)
{
    int rc = fetch_runs(l, "end_ns IS NULL");
    if (rc == 0)
        rc = fetch_gpus(l);
    if (rc == 0)
        rc = occ_load_fetch(
            l, "watermarks", "until, node",
            sqlite3_mprintf("SELECT toUInt32(complete_until) AS until, node FROM %s.watermark FINAL",
                            l->w->options.database));
    return rc == 0
               ? occ_load_run(
                     l,
                     sqlite3_mprintf(
                         "CREATE TEMP TABLE idle AS SELECT run, gpu, node, nullif(rank, '') AS rank, "
                         "program, "
                         "nullif(user, '') AS user, job, last * 1000000000 AS last_ns, until * 1000000000 - "
                         "max(coalesce(last * 1000000000 + 60000000000, 0), start_ns + 0) AS idle_ns FROM "
                         "runs LEFT "
                         "JOIN gpus USING(run) JOIN watermarks USING(node); DELETE FROM temp.idle WHERE "
                         "idle_ns < %lld",
                         (long long)l->question->idle_ns))
               : rc;
}
