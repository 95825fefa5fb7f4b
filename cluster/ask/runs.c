/* Loads the table `run`: see load.h. */
#include <string.h>

#include "load.h"

/* Selects runs like `occq runs`: runs that are active in the question's time. */
char *occ_load_runs_where(const struct occ_load *l)
{
    const struct occ_remote_question *q = l->question;
    sqlite3_str *sql = sqlite3_str_new(l->db);
    sqlite3_str_appendall(sql, OCC_LOAD_IS_RUN);
    occ_load_append_cluster(l, sql);
    if (q->since_ns > 0)
        sqlite3_str_appendf(
            sql, " AND greatest(greatest(coalesce(end_ns, 0), coalesce(last_start_ns, 0)), start_ns) >= %lld",
            (long long)q->since_ns);
    if (q->until_ns > 0)
        sqlite3_str_appendf(sql, " AND start_ns < %lld", (long long)q->until_ns);
    if (q->run > 0)
        sqlite3_str_appendf(sql, " AND substring(toString(run), 1, 8) IN ('%08llx', '%08llx')",
                            (unsigned long long)q->run, (unsigned long long)q->run | 0x80000000u);
    occ_load_append_text(sql, " AND user = ", q->user, "");
    occ_load_append_text(sql, " AND node = ", q->node, "");
    occ_load_append_text(sql, " AND slurm_account = ", q->account, "");
    occ_load_append_text(sql, " AND slurm_partition = ", q->partition, "");
    if (q->job) {
        sqlite3_str_appendall(sql, " AND ");
        occ_load_append_job(sql, q->job);
    }
    return sqlite3_str_finish(sql);
}

#define NO_COLUMN(column, ...) ", '' AS " #column

/* The added columns that the table has, and empty texts in place of the others; the caller frees it. */
static char *added_columns(const struct occ_warehouse *w)
{
    static const char columns[] = OCC_SHIP_RUN_ADDED_COLUMNS(OCC_LOAD_COMMA),
                      none[] = OCC_SHIP_RUN_ADDED_COLUMNS(NO_COLUMN);
    return sqlite3_mprintf("%.*s%s", (int)occ_warehouse_names_length(columns, w->added.run), columns,
                           none + occ_warehouse_names_length(none, w->added.run));
}

static int fetch_runs(const struct occ_load *l)
{
    static const char head[] = "number, run, node, history" OCC_SHIP_RUN_COLUMNS(OCC_LOAD_COMMA),
                      names[] = "number, run, node, history" OCC_SHIP_RUN_COLUMNS(OCC_LOAD_COMMA)
                          OCC_SHIP_RUN_ADDED_COLUMNS(OCC_LOAD_COMMA);
    char *where = occ_load_runs_where(l), *added = added_columns(l->w);
    int rc = occ_load_fetch(
        l, "runs", names,
        sqlite3_mprintf("SELECT bitAnd(reinterpretAsUInt32(reverse(unhex(substring(toString(run), 1, "
                        "8)))), 2147483647) AS number, run, node, history%s%s FROM %s.run FINAL "
                        "WHERE %s ORDER BY start_ns DESC LIMIT %lld",
                        head + strlen("number, run, node, history"), added, l->w->options.database, where,
                        (long long)l->question->max_runs));
    sqlite3_free(where);
    sqlite3_free(added);
    return rc;
}

/* Any node may send rows of any run's UUID. */
#define RUN_UUID "CAST(runs.run || runs.history || '/' || runs.node AS BLOB)"

/* Values without a column in stored_run go into a table that hides the view `run`. */
static const char put_runs[] =
    "INSERT INTO stored_node(hostname) SELECT DISTINCT node FROM runs;"
    "INSERT OR IGNORE INTO stored_run(run_id, uuid, node_id, pid, uid, start_ns, end_ns, exe, user, label, "
    "session_id, slurm_job, slurm_step, slurm_account, slurm_partition, slurm_qos, slurm_array_job, "
    "slurm_array_task, k8s_pod, k8s_namespace, k8s_pod_uid, container, job_trust, rank, "
    "source, level, level_reason, simulated, launches, gpu_time_ns, last_start_ns) "
    "SELECT iif(row_number() OVER (PARTITION BY number ORDER BY run, history, node) = 1, "
    "max(CAST(number AS INTEGER), 1), NULL) AS id, " RUN_UUID ", node_id, pid, uid, start_ns, end_ns, "
    "nullif(program, ''), nullif(user, ''), nullif(label, ''), nullif(session, ''), nullif(slurm_job, ''), "
    "nullif(slurm_step, ''), nullif(slurm_account, ''), nullif(slurm_partition, ''), nullif(slurm_qos, ''), "
    "nullif(slurm_array_job, ''), nullif(slurm_array_task, ''), nullif(pod, ''), nullif(namespace, ''), "
    "nullif(pod_uid, ''), "
    "nullif(container, ''), nullif(job_trust, ''), nullif(rank, ''), 'trace', nullif(level, ''), "
    "nullif(level_reason, ''), simulated, launches, gpu_time_ns, last_start_ns "
    "FROM runs JOIN stored_node ON hostname = node WHERE length(launches) < 19 AND length(gpu_time_ns) < 19 "
    "ORDER BY id IS NULL;"
    "CREATE TEMP TABLE run AS SELECT * FROM main.run;"
    "UPDATE temp.run SET (uuid, exe, kernels, configs, devices, lost, lost_causes, helper_cpu_ns, "
    "process_cpu_ns, overhead_ratio) = (SELECT replace(runs.run, '-', ''), NULL, "
    "CAST(runs.kernels AS INTEGER), CAST(runs.configs AS INTEGER), nullif(runs.devices, ''), "
    "coalesce(nullif(CAST(runs.lost AS INTEGER), 0), "
    "iif(runs.end_ns IS NULL OR runs.lost_causes = 'unknown', NULL, 0)), nullif(runs.lost_causes, ''), "
    "CAST(runs.helper_cpu_ns AS INTEGER), CAST(runs.process_cpu_ns AS INTEGER), "
    "CAST(runs.helper_cpu_ns AS REAL) / CAST(runs.process_cpu_ns AS REAL) "
    "FROM runs WHERE lower(hex(" RUN_UUID ")) = temp.run.uuid)";

int occ_load_runs(struct occ_load *l)
{
    int rc = fetch_runs(l);
    if (rc == 0)
        rc = occ_load_run(l, sqlite3_mprintf("%s", put_runs));
    return rc == 0
               ? occ_load_leave_out(l, sqlite3_mprintf("SELECT node, count(*) FROM runs WHERE " RUN_UUID
                                                       " NOT IN (SELECT uuid FROM main.stored_run) GROUP BY "
                                                       "node"))
               : rc;
}
