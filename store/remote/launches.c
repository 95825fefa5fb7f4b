/* Sums of minutes as hours of a history: see load.h. */
#include <stdlib.h>
#include <string.h>

#include "load.h"
#include "store/codec/histogram.h"

#define SECOND_NS INT64_C(1000000000)
#define HOUR_NS   INT64_C(3600000000000)

/* ---- histograms ---- */

/* "[1,2]" -> the numbers; moves *at past it. */
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

/* pack_histogram('([bins],[counts])'), as rollups have it. */
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
        sqlite3_result_error(context, "a histogram", -1);
    occ_histogram_free(&histogram);
    free(bytes.data);
}

/* ---- what is asked ---- */

/* Only columns of the tables' keys: what FINAL leaves does not depend on whether it comes before or after. */
static char *make_where(const struct occ_load *l)
{
    const struct occ_remote_question *q = l->question;
    sqlite3_str *sql = sqlite3_str_new(l->db);
    sqlite3_str_appendall(sql, "1");
    occ_load_append_period(l, sql);
    occ_load_append_text(sql, " AND user = ", q->user, "");
    occ_load_append_text(sql, " AND node = ", q->node, "");
    if (q->job) {
        sqlite3_str_appendf(sql, " AND job IN (SELECT DISTINCT job FROM %s.run WHERE ",
                            l->w->options.database);
        occ_load_append_job(sql, q->job);
        sqlite3_str_appendall(sql, ")");
    }
    return sqlite3_str_finish(sql);
}

/* ---- launches ---- */

/* Sums by group and configuration. Ids are signed, as SQLite has them; low: 2^64 - 1 is none. */
static int fetch_sums(const struct occ_load *l)
{
    static const char names[] =
        "config_id, grp, n, total, low, high, first, last, histogram, measures, wasted, "
        "capacity";
    static const char *const groups[] = {[OCC_TOP_BY_USER] = "user",
                                         [OCC_TOP_BY_JOB] =
                                             "multiIf(job LIKE 'slurm:%', substring(job, 7), job)",
                                         [OCC_TOP_BY_NODE] = "node"};
    enum occ_top_by by = l->question->by;
    const char *group = (size_t)by < sizeof groups / sizeof *groups ? groups[by] : NULL;
    bool is_new = l->w->dialect == OCC_DIALECT_NEW;
    return occ_load_fetch(
        l, "sums", names,
        sqlite3_mprintf(
            "SELECT toInt64(config) AS config_id, toString(%s) AS grp, sum(launches) AS n, sum(total_ns) AS "
            "total, minIf(min_ns, launches > 0) AS low, max(max_ns) AS high, toUInt32(min(bucket)) AS first, "
            "toUInt32(max(bucket)) AS last, %s AS histogram, sumForEach(measured) AS measures, "
            "sum(wasted_warp_s) AS wasted, sum(capacity_warp_s) AS capacity FROM %s.minute FINAL WHERE %s "
            "GROUP BY %s config HAVING n > 0%s",
            group ? group : "''", l->question->histograms ? "sumMap(hist_bin, hist_n)" : "''",
            l->w->options.database, l->where, group ? "grp," : "",
            /* days are partitions, and part of the key */
            is_new ? " SETTINGS do_not_merge_across_partitions_select_final = 1" : ""));
}

/* A run for each group, within the hour of the first minute; its launches are rolled up and evicted. */
static int put_groups(const struct occ_load *l)
{
    int rc = occ_load_run(
        l, sqlite3_mprintf("CREATE TEMP TABLE span AS SELECT min(CAST(first AS INTEGER)) / 3600 AS hour "
                           "FROM sums; INSERT INTO stored_node(hostname) SELECT DISTINCT grp FROM sums"));
    if (rc == 0)
        rc = occ_load_run(
            l, sqlite3_mprintf(
                   "INSERT INTO stored_run(uuid, node_id, start_ns, first_start_ns, last_start_ns, "
                   "rolled_ns, evicted_ns, user, slurm_job, source, simulated) SELECT CAST(grp AS BLOB), "
                   "node_id, hour * %lld, hour * %lld, hour * %lld, (hour + 1) * %lld, (hour + 1) * %lld, "
                   "nullif(grp, ''), nullif(grp, ''), 'trace', 0 FROM (SELECT DISTINCT grp FROM sums) JOIN "
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
#define X(name, text) sqlite3_str_appendf(sql, ", CAST(json_extract(measures, '$[%d]') AS INTEGER)", n++);
    OCC_MEASURED_SOURCES(X)
    X(overlapped, "")
#undef X
    for (int end = n + 2 * OCC_MEASURED_VALUE_COUNT; n < end; n++)
        sqlite3_str_appendf(sql, ", json_extract(measures, '$[%d]')", n);
    sqlite3_str_appendall(sql,
                          " FROM sums AS s JOIN span JOIN stored_run AS r ON r.uuid = CAST(grp AS BLOB) JOIN "
                          "stored_launch_config AS c ON c.key = CAST(s.config_id AS BLOB) WHERE measures <> "
                          "'[]'");
    return occ_load_run(l, sqlite3_str_finish(sql));
}

static int64_t count(const struct occ_load *l, const char *table)
{
    sqlite3_stmt *stmt = NULL;
    char *sql = sqlite3_mprintf("SELECT count(*) FROM %s", table);
    int64_t n = -1;
    if (sql && sqlite3_prepare_v2(l->db, sql, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        n = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    sqlite3_free(sql);
    return n;
}

int occ_load_launches(struct occ_load *l)
{
    l->where = make_where(l);
    int rc = l->where && sqlite3_create_function(l->db, "pack_histogram", 1, SQLITE_UTF8, NULL,
                                                 pack_histogram, NULL, NULL) == SQLITE_OK
                 ? fetch_sums(l)
                 : occ_load_no_memory(l->err);
    if (rc == 0)
        rc = occ_load_dimensions(l);
    if (rc == 0)
        rc = put_groups(l);
    if (rc == 0)
        rc = put_hours(l);
    if (rc == 0 && count(l, "sums") != count(l, "stored_hour"))
        rc = occ_fail(l->err, OCC_E_IO, "%s: launch configurations are missing: ask again",
                      l->w->options.http.url);
    if (rc == 0)
        rc = put_measured(l);
    sqlite3_free(l->where);
    return rc;
}
