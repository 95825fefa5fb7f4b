/* The tables `rank` and `idle`: see load.h. */
#include "load.h"

#define RUN_KEYS  "run, node, history" /* any node may send rows of any run's UUID */
#define RUN_NAMES RUN_KEYS ", rank, program, user, job, start_ns, last_start_ns, lost"

/* Selects these columns of the question's runs, restricted by the condition `more`. */
static char *select_runs(const struct occ_load *l, const char *columns, const char *more)
{
    const struct occ_remote_question *q = l->question;
    sqlite3_str *sql = sqlite3_str_new(l->db);
    sqlite3_str_appendf(sql, "SELECT %s FROM %s.run FINAL WHERE " OCC_LOAD_IS_RUN " AND %s", columns,
                        l->w->options.database, more);
    occ_load_append_cluster(l, sql);
    occ_load_append_text(sql, " AND user = ", q->user, "");
    occ_load_append_text(sql, " AND node = ", q->node, "");
    if (q->job) {
        sqlite3_str_appendall(sql, " AND ");
        occ_load_append_job(sql, q->job);
    }
    return sqlite3_str_finish(sql);
}

/* Makes the condition for these runs in the question's time. */
static char *make_where(const struct occ_load *l, const char *more)
{
    char *runs = select_runs(l, "run", more);
    sqlite3_str *where = sqlite3_str_new(l->db);
    sqlite3_str_appendf(where, "run IN (%s)", runs ? runs : "");
    sqlite3_free(runs);
    occ_load_append_cluster(l, where);
    occ_load_append_period(l, where);
    return sqlite3_str_finish(where);
}

/* Fetches the runs, and their sums by GPU. */
static int fetch_gpus(struct occ_load *l, const char *more)
{
    static const struct occ_load_sums gpus = {
        .columns = RUN_KEYS ", gpu, bucket, launches, busy_ns, wasted_warp_s, capacity_warp_s",
        .sums = RUN_KEYS
        ", gpu, sum(launches) AS n, sum(busy_ns) AS busy, sum(wasted_warp_s) AS wasted, "
        "sum(capacity_warp_s) AS capacity, toUInt32(min(bucket)) AS first, toUInt32(max(bucket)) AS last",
        .names = RUN_KEYS ", gpu, n, busy, wasted, capacity, first, last, counted",
        .keys = RUN_KEYS ", gpu"};
    l->table = "rank_minute";
    l->where = make_where(l, more);
    int rc = l->where ? occ_load_fetch(l, "runs", RUN_NAMES, select_runs(l, RUN_NAMES, more))
                      : occ_no_memory(l->err);
    if (rc == 0)
        rc = occ_load_parts(l);
    if (rc == 0)
        rc = occ_load_sums(l, &gpus);
    sqlite3_free(l->where);
    return rc;
}

int occ_load_ranks(struct occ_load *l)
{
    int rc = fetch_gpus(l, "1");
    return rc == 0
               ? occ_load_run(
                     l,
                     sqlite3_mprintf(
                         "CREATE TEMP TABLE rank AS SELECT run, gpu, node, nullif(rank, '') AS rank, "
                         "nullif(program, '') AS program, "
                         "nullif(user, '') AS user, job, CAST(n AS INTEGER) AS launches, CAST(busy AS "
                         "INTEGER) AS "
                         "busy_ns, CAST(wasted AS REAL) AS wasted_warp_s, CAST(capacity AS REAL) AS "
                         "capacity_warp_s, first * 1000000000 AS first_ns, last * 1000000000 AS last_ns FROM "
                         "sums JOIN runs USING(" RUN_KEYS ")"))
               : rc;
}

/* ---- idle: silent nodes are unknown ---- */

#define IDLE_RUNS                                                                                            \
    "CREATE TEMP TABLE idle AS SELECT run, gpu, node, nullif(rank, '') AS rank, "                            \
    "nullif(program, '') AS program, "                                                                       \
    "nullif(user, '') AS user, job, last * 1000000000 AS last_ns, NULL AS allocated_ns, "                    \
    "until * 1000000000 - max(coalesce(last * 1000000000 + 60000000000, 0), start_ns + 0) AS idle_ns, "      \
    "CAST(lost AS INTEGER) AS lost "                                                                         \
    "FROM runs LEFT JOIN sums USING(" RUN_KEYS ") JOIN watermarks USING(node)"
#define IDLE_GPUS                                                                                            \
    "INSERT INTO temp.idle SELECT NULL, gpu, node, NULL, NULL, nullif(user, ''), job, "                      \
    "iif(last + 60 > since + 0, last * 1000000000, NULL), since * 1000000000, "                              \
    "(until - max(coalesce(last + 60, 0), since + 0)) * 1000000000, NULL "                                   \
    "FROM allocations a JOIN watermarks USING(node) LEFT JOIN uses USING(gpu) LEFT JOIN users USING(job) "   \
    "WHERE (%d OR coalesce(user = %Q, 0)) AND NOT EXISTS "                                                   \
    "(SELECT 1 FROM temp.idle i WHERE i.gpu = a.gpu AND i.node = a.node AND i.job = a.job)"
/* GPUs that a job has now, according to the node's watermark. */
#define ALLOCATED                                                                                            \
    "(SELECT gpu, node, job, since FROM (SELECT cluster, node, gpu, job, since, version FROM %s.allocation " \
    "FINAL WHERE 1%s) AS a ALL INNER JOIN (SELECT cluster, node, version AS seen FROM %s.watermark FINAL) "  \
    "AS w USING (cluster, node) WHERE version >= seen)"

/* The user of the job's latest program. Slurm gives ids again: only programs since 16 days before the
 * allocation, whose time is that of the last job if several share the GPU. Any program may claim a job. */
#define OWNERS                                                                                               \
    "SELECT job, argMax(user, start) AS user FROM (SELECT job, min(since) AS first FROM %s GROUP BY job) "   \
    "AS a ALL INNER JOIN (SELECT job, user, start FROM %s.run WHERE job_trust != 'claimed'%s AND job IN "    \
    "(SELECT job FROM %s)) AS r USING (job) WHERE toInt64(toUInt32(start)) >= toInt64(toUInt32(first)) - "   \
    "1382400 GROUP BY job"

/* Loads runs that have not ended. */
static int load_idle_runs(struct occ_load *l)
{
    int rc = fetch_gpus(l, "end_ns IS NULL");
    return rc == 0 ? occ_load_run(l, sqlite3_mprintf(IDLE_RUNS)) : rc;
}

/* Fetches the last launches on the allocated GPUs since their allocation, the owners of the jobs, and the
 * GPUs without a launch for the question's time. These GPUs come last, so that a GPU used in the meantime is
 * not among them. */
static int fetch_allocated(const struct occ_load *l, const char *allocated, const char *cluster)
{
    const char *db = l->w->options.database;
    int rc = occ_load_fetch(
        l, "uses", "gpu, last",
        sqlite3_mprintf(
            "SELECT toString(used) AS gpu, last FROM (SELECT gpu AS used, toUInt32(max(bucket)) AS "
            "last FROM %s.rank_minute WHERE launches > 0%s AND gpu IN (SELECT gpu FROM %s) AND bucket "
            ">= (SELECT min(since) FROM %s) GROUP BY gpu)",
            db, cluster, allocated, allocated));
    if (rc == 0)
        rc = occ_load_fetch(l, "users", "job, user",
                            sqlite3_mprintf(OWNERS, allocated, db, cluster, allocated));
    return rc == 0
               ? occ_load_fetch(
                     l, "allocations", "gpu, node, job, since",
                     sqlite3_mprintf("SELECT toString(id) AS gpu, node, job, toUInt32(begin) AS since FROM "
                                     "(SELECT gpu AS id, node, job, since AS begin FROM %s WHERE gpu NOT IN "
                                     "(SELECT gpu FROM %s.rank_minute WHERE launches > 0%s AND bucket >= "
                                     "now() - %lld))",
                                     allocated, db, cluster, (long long)(l->question->idle_ns / 1000000000)))
               : rc;
}

static int fetch_allocations(const struct occ_load *l, const char *cluster)
{
    const struct occ_remote_question *q = l->question;
    const char *db = l->w->options.database;
    sqlite3_str *where = sqlite3_str_new(l->db);
    sqlite3_str_appendall(where, cluster);
    occ_load_append_text(where, " AND node = ", q->node, "");
    occ_load_append_text(where, " AND (job = ", q->job, "");
    occ_load_append_text(where, " OR job = concat('slurm:', ", q->job, "))");
    char *condition = sqlite3_str_finish(where),
         *allocated = sqlite3_mprintf(ALLOCATED, db, condition ? condition : "", db);
    int rc = allocated ? fetch_allocated(l, allocated, cluster) : occ_no_memory(l->err);
    sqlite3_free(condition);
    sqlite3_free(allocated);
    return rc;
}

/* Loads GPUs without such a run of the job. */
static int load_idle_gpus(const struct occ_load *l, const char *cluster)
{
    int rc = fetch_allocations(l, cluster);
    return rc == 0 ? occ_load_run(l, sqlite3_mprintf(IDLE_GPUS, l->question->user == NULL, l->question->user))
                   : rc;
}

/* `cluster`: the condition on the cluster, from AND on. */
static int load_idle(struct occ_load *l, const char *cluster)
{
    int rc =
        occ_load_fetch(l, "watermarks", "until, node",
                       sqlite3_mprintf("SELECT toUInt32(complete_until) AS until, node FROM %s.watermark "
                                       "FINAL WHERE complete_until >= now() - %d%s",
                                       l->w->options.database, OCC_REMOTE_SILENT_S, cluster));
    if (rc == 0)
        rc = load_idle_runs(l);
    if (rc == 0)
        rc = load_idle_gpus(l, cluster);
    return rc == 0 ? occ_load_run(l, sqlite3_mprintf("DELETE FROM temp.idle WHERE idle_ns < %lld",
                                                     (long long)l->question->idle_ns))
                   : rc;
}

int occ_load_idle(struct occ_load *l)
{
    sqlite3_str *sql = sqlite3_str_new(l->db);
    occ_load_append_cluster(l, sql);
    int code = sqlite3_str_errcode(sql);
    char *cluster = sqlite3_str_finish(sql); /* NULL: empty */
    int rc = code == SQLITE_OK ? load_idle(l, cluster ? cluster : "") : occ_no_memory(l->err);
    sqlite3_free(cluster);
    return rc;
}
