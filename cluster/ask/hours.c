/* Puts the sums of a question's minutes (launches.c) into the history: each group is a run, whose launches
 * are one hour of rollups. See load.h. */
#include <stdlib.h>

#include "load.h"
#include "store/codec/histogram.h"
#include "store/measured.h"

#define SECOND_NS INT64_C(1000000000)
#define HOUR_NS   INT64_C(3600000000000)

/* ---- histograms ---- */

/* Reads "[1,2]" as numbers and moves *at past the list. */
static size_t read_list(const char **at, uint64_t *numbers, size_t max)
{
    size_t n = 0;
    *at += strcspn(*at, "[");
    while (**at && **at != ']' && n < max) {
        char *end = NULL;
        numbers[n] = strtoull(++*at, &end, 10);
        n += end != *at;
        *at = end;
    }
    return n;
}

/* SQL function pack_histogram('([bins],[counts])'): the histogram in the form of rollups; NULL: not a
 * histogram. */
static void pack_histogram(sqlite3_context *context, int argc, sqlite3_value **values)
{
    uint64_t bins[OCC_HISTOGRAM_BINS], counts[OCC_HISTOGRAM_BINS];
    const char *at = (const char *)sqlite3_value_text(values[0]);
    struct occ_histogram histogram = {0};
    struct occ_writer bytes = {0};
    (void)argc;
    at = at ? at : "";
    size_t n = read_list(&at, bins, OCC_HISTOGRAM_BINS),
           n_counts = read_list(&at, counts, OCC_HISTOGRAM_BINS);
    bool added = n == n_counts;
    for (size_t i = 0; i < n && added; i++)
        added = bins[i] < OCC_HISTOGRAM_BINS &&
                occ_histogram_add(&histogram, occ_histogram_low((uint32_t)bins[i]), counts[i]);
    occ_histogram_write(&histogram, &bytes);
    if (added && !bytes.failed)
        sqlite3_result_blob64(context, bytes.data, bytes.size, SQLITE_TRANSIENT);
    else
        sqlite3_result_null(context);
    occ_histogram_free(&histogram);
    free(bytes.data);
}

int occ_load_pack_histograms(const struct occ_load *l)
{
    return sqlite3_create_function(l->db, "pack_histogram", 1, SQLITE_UTF8, NULL, pack_histogram, NULL,
                                   NULL) == SQLITE_OK
               ? 0
               : occ_no_memory(l->err);
}

/* ---- groups, hours, measured values, losses ---- */

/* Fetches the names of the pods that are separate groups. */
static int fetch_pods(const struct occ_load *l)
{
    const char *database = l->w->options.database;
    if (l->question->by != OCC_TOP_BY_JOB)
        return occ_load_run(l, sqlite3_mprintf("CREATE TEMP TABLE pods(n, job, pod)"));
    sqlite3_str *sql = sqlite3_str_new(l->db);
    sqlite3_str_appendf(sql,
                        "SELECT DISTINCT 0 AS n, job, pod FROM %s.run WHERE pod <> '' AND job IN (SELECT "
                        "DISTINCT job FROM %s.minute WHERE %s)",
                        database, database, l->where);
    occ_load_append_cluster(l, sql);
    return occ_load_fetch(l, "pods", "n, job, pod", sqlite3_str_finish(sql));
}

/* Makes a run for each group, within the hour of the first minute; its launches are rolled up and evicted. */
static int put_groups(const struct occ_load *l)
{
    int rc = fetch_pods(l);
    if (rc == 0)
        rc = occ_load_run(
            l, sqlite3_mprintf("CREATE TEMP TABLE span AS SELECT min(CAST(first AS INTEGER)) / 3600 AS hour "
                               "FROM sums; INSERT INTO stored_node(hostname) SELECT DISTINCT grp FROM sums"));
    if (rc == 0)
        rc = occ_load_run(
            l, sqlite3_mprintf(
                   "INSERT INTO stored_run(uuid, node_id, start_ns, first_start_ns, last_start_ns, "
                   "rolled_ns, evicted_ns, launches, user, slurm_account, slurm_partition, slurm_job, "
                   "k8s_pod, source, simulated) SELECT "
                   "CAST(grp AS "
                   "BLOB), "
                   "node_id, hour * %lld, hour * %lld, hour * %lld, (hour + 1) * %lld, (hour + 1) * %lld, "
                   "launches, "
                   "nullif(grp, ''), nullif(grp, ''), nullif(grp, ''), iif(grp GLOB 'slurm:*', substr(grp, "
                   "7), NULL), (SELECT max(pod) FROM "
                   "pods WHERE "
                   "job = grp), 'trace', 0 FROM (SELECT grp, CAST(total(n) AS INTEGER) AS launches FROM sums "
                   "GROUP BY grp) JOIN "
                   "span JOIN stored_node ON hostname = grp ORDER BY grp",
                   HOUR_NS, HOUR_NS, HOUR_NS, HOUR_NS, HOUR_NS));
    return rc;
}

static int put_hours(const struct occ_load *l)
{
    return occ_load_run(
        l, sqlite3_mprintf(
               "INSERT INTO stored_hour SELECT hour, run_id, c.config_id, n, total, low, high, "
               "(first - hour * 3600) * %lld, (last - hour * 3600) * %lld, pack_histogram(histogram) FROM "
               "sums AS s JOIN span JOIN stored_run AS r ON r.uuid = CAST(grp AS BLOB) JOIN "
               "stored_launch_config AS c ON c.key = CAST(s.config_id AS BLOB)",
               SECOND_NS, SECOND_NS));
}

static int put_measured(const struct occ_load *l)
{
    sqlite3_str *sql = sqlite3_str_new(l->db);
    sqlite3_str_appendall(sql, "INSERT INTO stored_measured_hour SELECT c.config_id, run_id, hour");
    int n = 0;
#define X(name, text) sqlite3_str_appendf(sql, ", CAST(json_extract(by_source, '$[%d]') AS INTEGER)", n++);
    OCC_MEASURED_SOURCES(X)
    X(overlapped, "")
#undef X
    for (int i = 0; i < OCC_MEASURED_VALUE_COUNT; i++)
        sqlite3_str_appendf(sql, ", json_extract(value_sums, '$[%d]'), json_extract(value_ns, '$[%d]')", i,
                            i);
    n = 0;
#define X(name) sqlite3_str_appendf(sql, ", coalesce(json_extract(evidence_sums, '$[%d]'), 0)", n++);
    OCC_MEASURED_EVIDENCE(X)
#undef X
    sqlite3_str_appendall(sql,
                          " FROM sums AS s JOIN span JOIN stored_run AS r ON r.uuid = CAST(grp AS BLOB) JOIN "
                          "stored_launch_config AS c ON c.key = CAST(s.config_id AS BLOB) WHERE by_source <> "
                          "'[]' AND capacity + 0 = 0"); /* waste of '(other)' already uses measured values */
    return occ_load_run(l, sqlite3_str_finish(sql));
}

/* Adds the losses of runs. They are not known by minute: the first block gets all. The blocks' runs have
 * ended if all runs of the question are known to have ended. */
static int put_losses(const struct occ_load *l)
{
    if (l->question->by != OCC_TOP_BY_MINUTE)
        return 0;
    char *where = occ_load_runs_where(l);
    int rc = occ_load_fetch(
        l, "losses", "unknown, lost",
        sqlite3_mprintf("SELECT countIf(isNull(end_ns) OR position(lost_causes, 'unknown') > 0) "
                        "AS unknown, sum(lost) AS lost FROM %s.run FINAL WHERE %s",
                        l->w->options.database, where ? where : "0"));
    sqlite3_free(where);
    return rc == 0
               ? occ_load_run(
                     l, sqlite3_mprintf(
                            "INSERT INTO stored_loss SELECT run_id, 'unknown', CAST(lost AS INTEGER) "
                            "FROM stored_run JOIN losses WHERE run_id = 1 AND lost <> '0';"
                            "UPDATE stored_run SET end_ns = last_start_ns FROM losses WHERE unknown = '0'"))
               : rc;
}

int occ_load_put_hours(const struct occ_load *l)
{
    int rc = put_groups(l);
    if (rc == 0)
        rc = put_losses(l);
    if (rc == 0)
        rc = put_hours(l);
    return rc == 0 ? put_measured(l) : rc;
}
