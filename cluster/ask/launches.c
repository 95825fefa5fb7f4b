/* Asks for sums of minutes: the rows, the keys and the summed columns; hours.c puts the sums into the
 * history. See load.h. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "load.h"
#include "schema/schema.h"
#include "store/codec/histogram.h"

/* ---- the question ---- */

/* Makes the condition, from columns of the tables' keys only: then FINAL gives the same rows before and after
 * the condition. */
static char *make_where(const struct occ_load *l)
{
    const struct occ_remote_question *q = l->question;
    sqlite3_str *sql = sqlite3_str_new(l->db);
    sqlite3_str_appendall(sql, "1");
    occ_load_append_cluster(l, sql);
    occ_load_append_period(l, sql);
    occ_load_append_text(sql, " AND user = ", q->user, "");
    occ_load_append_text(sql, " AND node = ", q->node, "");
    if (q->job || q->account || q->partition) {
        sqlite3_str_appendf(sql, " AND job IN (SELECT DISTINCT job FROM %s.run WHERE 1",
                            l->w->options.database);
        occ_load_append_cluster(l, sql);
        if (q->job) {
            sqlite3_str_appendall(sql, " AND ");
            occ_load_append_job(sql, q->job);
        }
        occ_load_append_text(sql, " AND slurm_account = ", q->account, "");
        occ_load_append_text(sql, " AND slurm_partition = ", q->partition, "");
        sqlite3_str_appendall(sql, ")");
    }
    return sqlite3_str_finish(sql);
}

/* ---- launches ---- */

static bool has_groups(const struct occ_load *l)
{
    enum occ_top_by by = l->question->by;
    return by == OCC_TOP_BY_USER || by == OCC_TOP_BY_JOB || by == OCC_TOP_BY_ACCOUNT ||
           by == OCC_TOP_BY_PARTITION || by == OCC_TOP_BY_NODE || by == OCC_TOP_BY_MINUTE;
}

/* Programs without a job or pod are separated from programs with one, but not further. */
static char *make_job_group(const struct occ_load *l)
{
    sqlite3_str *sql = sqlite3_str_new(l->db);
    sqlite3_str_appendf(sql, "if(job LIKE 'slurm:%%' OR job IN (SELECT job FROM %s.run WHERE pod <> ''",
                        l->w->options.database);
    occ_load_append_cluster(l, sql);
    sqlite3_str_appendall(sql, "), toString(job), '')");
    return sqlite3_str_finish(sql);
}

/* Makes the expression of the group. */
static char *make_group(const struct occ_load *l)
{
    if (l->question->by == OCC_TOP_BY_MINUTE) { /* begins at 100: all numbers have three digits */
        int64_t first = occ_load_number(l, "SELECT min(CAST(at AS INTEGER)) / 60 FROM parts"),
                minutes = occ_load_number(l, "SELECT max(CAST(at AS INTEGER)) / 60 FROM parts") + 1 - first,
                each = (minutes + OCC_REMOTE_BLOCKS - 1) / OCC_REMOTE_BLOCKS;
        return sqlite3_mprintf("100 + intDiv(intDiv(toUInt32(bucket), 60) - %lld, %lld)", first, each);
    }
    static const char *const columns[] = {[OCC_TOP_BY_USER] = "user",
                                          [OCC_TOP_BY_ACCOUNT] = "slurm_account",
                                          [OCC_TOP_BY_PARTITION] = "slurm_partition",
                                          [OCC_TOP_BY_NODE] = "node"};
    enum occ_top_by by = l->question->by;
    return by == OCC_TOP_BY_JOB
               ? make_job_group(l)
               : sqlite3_mprintf("%s",
                                 by < sizeof columns / sizeof *columns && columns[by] ? columns[by] : "''");
}

/* Sums of measured values of rows that have any. Each array is summed separately, which costs less than one
 * joined array. */
static const char measured_sums[] =
    "sumForEachIf(sources, notEmpty(sources)) AS by_source, sumForEachIf(arrayMap((m, s) -> m * s * "
    "total_ns, means, shares), notEmpty(sources)) AS value_sums, sumForEachIf(arrayMap(s -> s * "
    "toFloat64(total_ns), shares), notEmpty(sources)) AS value_ns";
static const char none_measured[] = "'[]' AS by_source, '[]' AS value_sums, '[]' AS value_ns";

/* Sums of evidence, in the order of store/measured.h, over rows with evidence. */
static const char evidence_sums[] =
    "[sumIf((means[3] * means[3] + evidence[1]) * shares[3] * total_ns, notEmpty(evidence)), "
    "sum(evidence[2] * total_ns), sum(evidence[3] * total_ns), sum(evidence[4] * total_ns)] AS evidence_sums";
static const char no_evidence[] = "'[]' AS evidence_sums";

/* Sums of histograms. A count of 0 stands for the launches minus the sum of the other counts. */
static const char histogram_sums[] =
    "sumMap(hist_bin, arrayMap(c -> if(c = 0, toUInt64(greatest(launches, arraySum(hist_n)) - "
    "arraySum(hist_n)), c), hist_n))";

#define ANY(what) "(SELECT count() FROM (SELECT 1 FROM %s.minute WHERE %s AND " what " LIMIT 1))"

/* Finds if any row has measured values, and if any row is of the configuration '(other)'. */
static int fetch_kinds(const struct occ_load *l)
{
    const char *database = l->w->options.database;
    return occ_load_fetch(l, "kinds", "measured, folded",
                          sqlite3_mprintf("SELECT " ANY("notEmpty(sources)") " AS measured, " ANY(
                                              "capacity_warp_s > 0") " AS folded",
                                          database, l->where, database, l->where));
}

/* Fetches sums of rows by group and configuration. Ids are signed, as in SQLite; low: 2^64 - 1 means none. */
static int fetch_groups(const struct occ_load *l, const char *group)
{
    bool histograms = l->question->histograms,
         measured = occ_load_number(l, "SELECT measured FROM kinds") > 0,
         folded = occ_load_number(l, "SELECT folded FROM kinds") > 0,
         evidence = measured && l->w->has_evidence;
    char *columns = sqlite3_mprintf("config, bucket, launches, total_ns, min_ns, max_ns%s%s%s%s, %s AS whose",
                                    measured ? ", sources, means, shares" : "", evidence ? ", evidence" : "",
                                    folded ? ", wasted_warp_s, capacity_warp_s" : "",
                                    histograms ? ", hist_bin, hist_n" : "", group);
    char *sums = sqlite3_mprintf(
        "toInt64(config) AS config_id, toString(%s) AS grp, sum(launches) AS n, sum(total_ns) AS total, "
        "minIf(min_ns, launches > 0) AS low, max(max_ns) AS high, toUInt32(min(bucket)) AS first, "
        "toUInt32(max(bucket)) AS last, %s AS histogram, %s, %s, %s",
        has_groups(l) ? "whose" : "''", histograms ? histogram_sums : "''",
        measured ? measured_sums : none_measured, evidence ? evidence_sums : no_evidence,
        folded ? "sum(wasted_warp_s) AS waste, sum(capacity_warp_s) AS capacity"
               : "0 AS waste, 0 AS capacity");
    struct occ_load_sums what = {.columns = columns,
                                 .sums = sums,
                                 .names = "config_id, grp, n, total, low, high, first, last, histogram, "
                                          "by_source, value_sums, value_ns, evidence_sums, waste, capacity, "
                                          "counted",
                                 .keys = has_groups(l) ? "whose, config" : "config"};
    int rc = columns && sums ? occ_load_sums(l, &what) : occ_no_memory(l->err);
    sqlite3_free(columns);
    sqlite3_free(sums);
    return rc;
}

/* Appends a condition on minutes for these kernels; no condition if there are too many kernels to list. */
static void append_kernels(const struct occ_load *l, const struct occ_map *kernels, sqlite3_str *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (kernels->used > OCC_LOAD_LISTED_MAX)
        return;
    sqlite3_str_appendf(sql,
                        " AND config IN (SELECT config FROM %s.launch_config WHERE toInt64(kernel) IN (0",
                        l->w->options.database);
    if (sqlite3_prepare_v2(l->db, "SELECT kernel_id, hash FROM stored_kernel", -1, &stmt, NULL) == SQLITE_OK)
        while (sqlite3_step(stmt) == SQLITE_ROW)
            if (occ_map_get(kernels, (uint64_t)sqlite3_column_int64(stmt, 0)) != OCC_MAP_NONE)
                sqlite3_str_appendf(sql, ", %lld", (long long)sqlite3_column_int64(stmt, 1));
    (void)sqlite3_finalize(stmt);
    sqlite3_str_appendall(sql, "))");
}

/* Chooses kernels by the history's own rules, because ClickHouse's regular expressions differ. */
static int choose_kernels(struct occ_load *l)
{
    struct occ_map kernels = {0};
    const char *database = l->w->options.database;
    int rc =
        occ_load_kernels(l, sqlite3_mprintf("SELECT toInt64(kernel) FROM %s.launch_config WHERE config IN "
                                            "(SELECT DISTINCT config FROM %s.minute WHERE %s)",
                                            database, database, l->where));
    l->has_kernels = true;
    if (rc == 0)
        rc = l->question->choose(l->store, l->question->chooser, &kernels, l->err);
    sqlite3_str *where = sqlite3_str_new(l->db);
    sqlite3_str_appendall(where, l->where);
    append_kernels(l, &kernels, where);
    sqlite3_free(l->where);
    l->where = sqlite3_str_finish(where);
    occ_map_free(&kernels);
    return rc == 0 && !l->where ? occ_no_memory(l->err) : rc;
}

/* ---- impossible rows ---- */

static_assert(OCC_HISTOGRAM_BINS == 496 && OCC_MEASURED_VALUE_COUNT == 23, "schema/clickhouse/warehouse.sql");
/* Appends AND and a constraint's expression from the table of minutes: a line of the schema. */
static void append_constraint(sqlite3_str *sql, const char *name)
{
    char before[64];
    (void)snprintf(before, sizeof before, "ADD CONSTRAINT %s CHECK ", name);
    const char *at = strstr(occ_schema_warehouse_sql, before) + strlen(before);
    size_t n = strcspn(at, "|\n");
    sqlite3_str_appendf(sql, " AND (%.*s)", (int)(at[n - 1] == ',' ? n - 1 : n), at);
}

/* Excludes impossible rows. Only if there are any, the condition uses columns outside of the table's key. */
static int leave_out_impossible(struct occ_load *l)
{
    sqlite3_str *sql = sqlite3_str_new(l->db);
    sqlite3_str_appendall(sql, "1");
    append_constraint(sql, "possible");
    if (l->question->histograms)
        append_constraint(sql, "possible_histogram");
    bool measured = occ_load_number(l, "SELECT measured FROM kinds") > 0;
    if (measured)
        append_constraint(sql, "possible_measured");
    if (measured && l->w->has_evidence)
        append_constraint(sql, "possible_evidence");
    char *possible = sqlite3_str_finish(sql);
    int rc = possible
                 ? occ_load_fetch(
                       l, "impossible", "n, node",
                       sqlite3_mprintf(
                           "SELECT count() AS n, node FROM %s.minute WHERE %s AND NOT (%s) GROUP BY node",
                           l->w->options.database, l->where, possible))
                 : occ_no_memory(l->err);
    if (rc == 0 && occ_load_number(l, "SELECT count(*) FROM impossible") > 0) {
        char *where = sqlite3_mprintf("%s AND %s", l->where, possible);
        sqlite3_free(l->where);
        l->where = where;
        rc = where ? occ_load_leave_out(l, sqlite3_mprintf("SELECT node, n FROM impossible"))
                   : occ_no_memory(l->err);
    }
    sqlite3_free(possible);
    return rc;
}

/* True if a number of an answer is one of SQLite's integers. */
#define FITS(column) "CAST(CAST(" column " AS INTEGER) AS TEXT) = " column

/* Excludes minutes whose configuration is missing or does not match its id, and sums beyond a history's
 * range. */
static int leave_out_others(const struct occ_load *l)
{
    int rc = occ_load_run(
        l,
        sqlite3_mprintf(
            "CREATE TEMP TABLE strange AS SELECT rowid AS number, CAST(config_id AS INTEGER) AS id FROM "
            "sums WHERE CAST(config_id AS BLOB) NOT IN (SELECT key FROM stored_launch_config) OR NOT " FITS(
                "n") " OR NOT " FITS("total") " OR pack_histogram(histogram) IS NULL"));
    if (rc != 0 || occ_load_number(l, "SELECT count(*) FROM strange") == 0)
        return rc;
    char *ids = occ_load_ids(l, "SELECT DISTINCT id FROM strange", NULL);
    rc = occ_load_fetch(
        l, "others", "n, node",
        sqlite3_mprintf("SELECT count() AS n, node FROM %s.minute FINAL WHERE %s AND launches > 0 AND "
                        "toInt64(config) IN (%s) GROUP BY node",
                        l->w->options.database, l->where, ids));
    sqlite3_free(ids);
    if (rc == 0 && occ_load_number(l, "SELECT CAST(total(n) AS INTEGER) FROM others") == 0)
        rc = occ_fail(l->err, OCC_E_IO, "%s: launch configurations are missing: ask again",
                      l->w->options.http.url);
    if (rc == 0)
        rc = occ_load_run(l, sqlite3_mprintf("DELETE FROM sums WHERE rowid IN (SELECT number FROM strange)"));
    return rc == 0 ? occ_load_leave_out(l, sqlite3_mprintf("SELECT node, n FROM others")) : rc;
}

/* ---- sums ---- */

static int fetch_sums(struct occ_load *l)
{
    int rc = fetch_kinds(l);
    if (rc == 0)
        rc = leave_out_impossible(l);
    if (rc == 0)
        rc = occ_load_parts(l);
    char *group = rc == 0 ? make_group(l) : NULL;
    if (rc == 0)
        rc = group ? fetch_groups(l, group) : occ_no_memory(l->err);
    sqlite3_free(group);
    return rc == 0 ? occ_load_run(l, sqlite3_mprintf("DELETE FROM temp.sums WHERE n = '0'")) : rc;
}

int occ_load_launches(struct occ_load *l)
{
    l->table = "minute";
    l->where = make_where(l);
    int rc = l->where ? occ_load_pack_histograms(l) : occ_no_memory(l->err);
    if (rc == 0 && l->question->choose)
        rc = choose_kernels(l);
    if (rc == 0)
        rc = fetch_sums(l);
    if (rc == 0)
        rc = occ_load_dimensions(l);
    if (rc == 0)
        rc = leave_out_others(l);
    if (rc == 0)
        rc = occ_load_put_hours(l);
    sqlite3_free(l->where);
    return rc;
}
