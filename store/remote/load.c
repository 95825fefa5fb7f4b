/* From the warehouse's sums to a history in memory: see remote.h. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote.h"
#include "store/codec/histogram.h"
#include "tables.h"

#define TEXT_BYTES 1024 /* a quoted text of the question */
#define LISTED_MAX 5000 /* ids that a statement lists; more of them are asked for again */
#define SECOND_NS  INT64_C(1000000000)
#define HOUR_NS    INT64_C(3600000000000)
#define MOMENT_MAX UINT32_MAX /* of a DateTime, in seconds */

struct load {
    struct occ_warehouse *w;
    const struct occ_remote_question *question;
    struct sqlite3 *db;
    struct occ_error *err;
    char *where; /* condition on minutes */
};

static int no_memory(struct occ_error *err)
{
    return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
}

/* Fetches what a formatted statement (sqlite3_mprintf) gives; frees it. */
static int fetch(const struct load *l, const char *table, const char *names, char *sql)
{
    int rc = sql ? occ_remote_fetch(l->w, l->db, table, names, sql, l->err) : no_memory(l->err);
    sqlite3_free(sql);
    return rc;
}

/* Runs a formatted statement on the history; frees it. */
static int run(const struct load *l, char *sql)
{
    if (!sql)
        return no_memory(l->err);
    int code = sqlite3_exec(l->db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return code == SQLITE_OK ? 0
                             : occ_fail(l->err, code == SQLITE_NOMEM ? OCC_E_NO_MEMORY : OCC_E_CORRUPT,
                                        "%s: the answer has a value that cannot be: %s",
                                        l->w->options.http.url, sqlite3_errmsg(l->db));
}

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

static long long seconds(int64_t ns)
{
    int64_t s = ns / SECOND_NS + (ns % SECOND_NS > 0);
    return s > MOMENT_MAX ? MOMENT_MAX : s;
}

static void append_text(sqlite3_str *sql, const char *before, const char *text, const char *after)
{
    char quoted[TEXT_BYTES];
    if (text) {
        occ_warehouse_quote(text, quoted, sizeof quoted);
        sqlite3_str_appendf(sql, "%s%s%s", before, quoted, after);
    }
}

/* A job by Slurm's number, its pod or the name that it has here. */
static void append_job(sqlite3_str *sql, const char *job)
{
    append_text(sql, "(job = ", job, "");
    append_text(sql, " OR slurm_job = ", job, "");
    append_text(sql, " OR pod = ", job, ")");
}

/* Only columns of the tables' keys: what FINAL leaves does not depend on whether it comes before or after. */
static char *make_where(const struct load *l)
{
    const struct occ_remote_question *q = l->question;
    sqlite3_str *sql = sqlite3_str_new(l->db);
    sqlite3_str_appendall(sql, "1");
    if (q->since_ns > 0)
        sqlite3_str_appendf(sql, " AND bucket >= toDateTime(%lld)", seconds(q->since_ns));
    if (q->until_ns > 0)
        sqlite3_str_appendf(sql, " AND bucket < toDateTime(%lld)", seconds(q->until_ns));
    append_text(sql, " AND user = ", q->user, "");
    append_text(sql, " AND node = ", q->node, "");
    if (q->job) {
        sqlite3_str_appendf(sql, " AND job IN (SELECT DISTINCT job FROM %s.run WHERE ",
                            l->w->options.database);
        append_job(sql, q->job);
        sqlite3_str_appendall(sql, ")");
    }
    return sqlite3_str_finish(sql);
}

/* ---- launches ---- */

/* Sums by group and configuration. Ids are signed, as SQLite has them; low: 2^64 - 1 is none. */
static int fetch_sums(const struct load *l)
{
    static const char names[] =
        "grp, config_id, n, total, low, high, first, last, histogram, measures, wasted, "
        "capacity";
    static const char *const groups[] = {[OCC_TOP_BY_USER] = "user",
                                         [OCC_TOP_BY_JOB] =
                                             "multiIf(job LIKE 'slurm:%', substring(job, 7), job)",
                                         [OCC_TOP_BY_NODE] = "node"};
    enum occ_top_by by = l->question->by;
    const char *group = (size_t)by < sizeof groups / sizeof *groups && groups[by] ? groups[by] : "''";
    return fetch(
        l, "sums", names,
        sqlite3_mprintf("SELECT toString(%s) AS grp, toInt64(config) AS config_id, sum(launches) AS n, "
                        "sum(total_ns) AS total, minIf(min_ns, launches > 0) AS low, max(max_ns) AS high, "
                        "toUInt32(min(bucket)) AS first, toUInt32(max(bucket)) AS last, %s AS histogram, "
                        "sumForEach(measured) AS measures, sum(wasted_warp_s) AS wasted, "
                        "sum(capacity_warp_s) AS capacity FROM %s.minute FINAL WHERE %s "
                        "GROUP BY grp, config HAVING n > 0",
                        group, l->question->histograms ? "sumMap(hist_bin, hist_n)" : "''",
                        l->w->options.database, l->where));
}

/* "id, id, ..." of a column, or, where there are too many, the statement that selects them. */
static char *ids_of(const struct load *l, const char *sql, char *otherwise)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3_str *list = sqlite3_str_new(l->db);
    int n = 0;
    if (sqlite3_prepare_v2(l->db, sql, -1, &stmt, NULL) == SQLITE_OK)
        while (n <= LISTED_MAX && sqlite3_step(stmt) == SQLITE_ROW)
            sqlite3_str_appendf(list, "%s%s", n++ > 0 ? ", " : "",
                                (const char *)sqlite3_column_text(stmt, 0));
    (void)sqlite3_finalize(stmt);
    char *ids = sqlite3_str_finish(list);
    if (n > LISTED_MAX) {
        sqlite3_free(ids);
        return otherwise;
    }
    sqlite3_free(otherwise);
    return ids ? ids : sqlite3_mprintf("0");
}

#define COMMA(column, ...) ", " #column

static int fetch_configs(const struct load *l)
{
    static const char names[] = "config_id, kernel_id" OCC_SHIP_LAUNCH_CONFIG_COLUMNS(COMMA);
    char *ids = ids_of(l, "SELECT DISTINCT config_id FROM sums",
                       sqlite3_mprintf("SELECT DISTINCT toInt64(config) FROM %s.minute WHERE %s",
                                       l->w->options.database, l->where));
    int rc = fetch(l, "configs", names,
                   sqlite3_mprintf("SELECT toInt64(config) AS config_id, toInt64(kernel) AS kernel_id"
                                   "%s FROM %s.launch_config FINAL WHERE toInt64(config) IN (%s)",
                                   names + strlen("config_id, kernel_id"), l->w->options.database, ids));
    sqlite3_free(ids);
    return rc;
}

static int fetch_kernels(const struct load *l)
{
    static const char names[] = "kernel_id" OCC_SHIP_KERNEL_COLUMNS(COMMA);
    char *ids =
        ids_of(l, "SELECT DISTINCT kernel_id FROM configs",
               sqlite3_mprintf("SELECT toInt64(kernel) FROM %s.launch_config", l->w->options.database));
    int rc = fetch(l, "kernels", names,
                   sqlite3_mprintf("SELECT toInt64(kernel) AS kernel_id%s FROM %s.kernel FINAL WHERE "
                                   "toInt64(kernel) IN (%s)",
                                   names + strlen("kernel_id"), l->w->options.database, ids));
    sqlite3_free(ids);
    return rc;
}

/* A short number for an id: 31 bits of it; NULL (SQLite takes another) where two are alike. */
#define NUMBER(id)                                                                                           \
    "iif(row_number() OVER (PARTITION BY CAST(" id " AS INTEGER) & 2147483647 ORDER BY " id ") = 1, "        \
    "max(CAST(" id " AS INTEGER) & 2147483647, 1), NULL) AS number"
#define NUMBERED_FIRST " ORDER BY number IS NULL"

static int put_kernels(const struct load *l)
{
    return run(l,
               sqlite3_mprintf("INSERT INTO stored_kernel(kernel_id, hash, mangled, demangled, short) "
                               "SELECT " NUMBER("kernel_id") ", CAST(kernel_id AS INTEGER), mangled, "
                                                             "demangled, short FROM kernels" NUMBERED_FIRST));
}

/* The columns of a table of the history: what comes from it has its letter. */
static void append_columns(sqlite3_str *sql, char letter, const char *between, bool in_warehouse)
{
    static const struct {
        const char *column, *expression;
    } all[] = {
#define X(column, expression, other) {#column, expression},
        OCC_SHIP_LAUNCH_CONFIG_COLUMNS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool is_device = all[i].expression[0] == 'd';
        if (is_device != (letter == 'd'))
            continue;
        sqlite3_str_appendall(sql, between);
        if (in_warehouse && all[i].expression[1] == 'o') /* a coalesce() of a text */
            sqlite3_str_appendf(sql, "nullif(%s, '')", all[i].column);
        else
            sqlite3_str_appendall(sql, in_warehouse || !is_device ? all[i].column : all[i].expression + 2);
    }
}

static char *device_key(sqlite3 *db)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "CAST(''");
    append_columns(sql, 'd', " || '/' || ", true);
    sqlite3_str_appendall(sql, " AS BLOB)");
    return sqlite3_str_finish(sql);
}

static int put_devices(const struct load *l, const char *key)
{
    sqlite3_str *sql = sqlite3_str_new(l->db);
    sqlite3_str_appendall(sql, "INSERT INTO stored_device(key");
    append_columns(sql, 'd', ", ", false);
    sqlite3_str_appendf(sql, ") SELECT DISTINCT %s", key);
    append_columns(sql, 'd', ", ", true);
    sqlite3_str_appendall(sql, " FROM configs ORDER BY 1");
    return run(l, sqlite3_str_finish(sql));
}

static int put_configs(const struct load *l, const char *key)
{
    sqlite3_str *sql = sqlite3_str_new(l->db);
    sqlite3_str_appendall(sql, "INSERT INTO stored_launch_config(config_id, key, kernel_id, device_id");
    append_columns(sql, 'c', ", ", false);
    sqlite3_str_appendall(
        sql, ") SELECT " NUMBER(
                 "config_id") ", CAST(config_id AS BLOB), (SELECT k.kernel_id "
                              "FROM stored_kernel AS k WHERE k.hash = CAST(c.kernel_id AS INTEGER)), (SELECT "
                              "device_id FROM stored_device AS d WHERE d.key = c.device_key)");
    append_columns(sql, 'c', ", ", true);
    sqlite3_str_appendf(sql, " FROM (SELECT *, %s AS device_key FROM configs) AS c" NUMBERED_FIRST, key);
    return run(l, sqlite3_str_finish(sql));
}

static int put_dimensions(const struct load *l)
{
    char *key = device_key(l->db);
    int rc = key ? fetch_configs(l) : no_memory(l->err);
    if (rc == 0)
        rc = fetch_kernels(l);
    if (rc == 0)
        rc = put_kernels(l);
    if (rc == 0)
        rc = put_devices(l, key);
    if (rc == 0)
        rc = put_configs(l, key);
    sqlite3_free(key);
    return rc;
}

/* A run for each group, within the hour of the first minute; its launches are rolled up and evicted. */
static int put_groups(const struct load *l)
{
    int rc =
        run(l, sqlite3_mprintf("CREATE TEMP TABLE span AS SELECT min(CAST(first AS INTEGER)) / 3600 AS hour "
                               "FROM sums; INSERT INTO stored_node(hostname) SELECT DISTINCT grp FROM sums"));
    if (rc == 0)
        rc = run(l,
                 sqlite3_mprintf(
                     "INSERT INTO stored_run(uuid, node_id, start_ns, first_start_ns, last_start_ns, "
                     "rolled_ns, evicted_ns, user, slurm_job, source, simulated) SELECT CAST(grp AS BLOB), "
                     "node_id, hour * %lld, hour * %lld, hour * %lld, (hour + 1) * %lld, (hour + 1) * %lld, "
                     "nullif(grp, ''), nullif(grp, ''), 'trace', 0 FROM (SELECT DISTINCT grp FROM sums) JOIN "
                     "span JOIN stored_node ON hostname = grp ORDER BY grp",
                     HOUR_NS, HOUR_NS, HOUR_NS, HOUR_NS, HOUR_NS));
    return rc;
}

static int put_hours(const struct load *l)
{
    return run(
        l, sqlite3_mprintf(
               "INSERT INTO stored_hour SELECT hour, run_id, c.config_id, n, total, low, high, "
               "(first - hour * 3600) * %lld, (last - hour * 3600) * %lld, pack_histogram(histogram) FROM "
               "sums AS s JOIN span JOIN stored_run AS r ON r.uuid = CAST(grp AS BLOB) JOIN "
               "stored_launch_config AS c ON c.key = CAST(s.config_id AS BLOB)",
               SECOND_NS, SECOND_NS));
}

static int put_measured(const struct load *l)
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
    return run(l, sqlite3_str_finish(sql));
}

static int64_t count(const struct load *l, const char *table)
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

static int load_launches(struct load *l)
{
    l->where = make_where(l);
    int rc = l->where ? fetch_sums(l) : no_memory(l->err);
    if (rc == 0)
        rc = put_dimensions(l);
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

/* ---- runs ---- */

/* As `occq runs` chooses: those that go on in the time. */
static char *make_runs_where(const struct load *l)
{
    const struct occ_remote_question *q = l->question;
    sqlite3_str *sql = sqlite3_str_new(l->db);
    sqlite3_str_appendall(sql, "1");
    if (q->since_ns > 0)
        sqlite3_str_appendf(
            sql, " AND greatest(coalesce(end_ns, 0), coalesce(last_start_ns, 0), start_ns) >= %lld",
            (long long)q->since_ns);
    if (q->until_ns > 0)
        sqlite3_str_appendf(sql, " AND start_ns < %lld", (long long)q->until_ns);
    if (q->run > 0)
        sqlite3_str_appendf(sql, " AND substring(toString(run), 1, 8) IN ('%08llx', '%08llx')",
                            (unsigned long long)q->run, (unsigned long long)q->run | 0x80000000u);
    append_text(sql, " AND user = ", q->user, "");
    append_text(sql, " AND node = ", q->node, "");
    if (q->job) {
        sqlite3_str_appendall(sql, " AND ");
        append_job(sql, q->job);
    }
    return sqlite3_str_finish(sql);
}

static int fetch_runs(const struct load *l)
{
    static const char names[] = "number, run, node, history" OCC_SHIP_RUN_COLUMNS(COMMA);
    char *where = make_runs_where(l);
    int rc =
        fetch(l, "runs", names,
              sqlite3_mprintf("SELECT bitAnd(reinterpretAsUInt32(reverse(unhex(substring(toString(run), 1, "
                              "8)))), 2147483647) AS number, run, node, history%s FROM %s.run FINAL "
                              "WHERE %s ORDER BY start_ns DESC LIMIT %lld",
                              names + strlen("number, run, node, history"), l->w->options.database, where,
                              (long long)l->question->max_runs));
    sqlite3_free(where);
    return rc;
}

/* What is not of stored_run's own columns goes into a table that hides the view `run`. */
static const char put_runs[] =
    "INSERT INTO stored_node(hostname) SELECT DISTINCT node FROM runs;"
    "INSERT INTO stored_run(run_id, uuid, node_id, pid, uid, start_ns, end_ns, exe, user, label, session_id, "
    "slurm_job, slurm_step, k8s_pod, k8s_namespace, k8s_pod_uid, container, job_trust, rank, source, level, "
    "level_reason, simulated, launches, gpu_time_ns, last_start_ns) SELECT iif(row_number() OVER (PARTITION "
    "BY "
    "number ORDER BY run, history) = 1, max(CAST(number AS INTEGER), 1), NULL) AS id, CAST(run || history AS "
    "BLOB), node_id, pid, uid, start_ns, end_ns, program, nullif(user, ''), nullif(label, ''), "
    "nullif(session, ''), nullif(slurm_job, ''), nullif(slurm_step, ''), nullif(pod, ''), nullif(namespace, "
    "''), "
    "nullif(pod_uid, ''), nullif(container, ''), nullif(job_trust, ''), nullif(rank, ''), 'trace', "
    "nullif(level, ''), nullif(level_reason, ''), simulated, launches, gpu_time_ns, last_start_ns "
    "FROM runs JOIN stored_node ON hostname = node ORDER BY id IS NULL;"
    "CREATE TEMP TABLE run AS SELECT * FROM main.run;"
    "UPDATE temp.run SET (uuid, exe, kernels, configs, devices, lost, lost_causes, helper_cpu_ns, "
    "process_cpu_ns, overhead_ratio) = (SELECT replace(a.run, '-', ''), NULL, CAST(a.kernels AS INTEGER), "
    "CAST(a.configs AS INTEGER), nullif(a.devices, ''), CAST(a.lost AS INTEGER), nullif(a.lost_causes, ''), "
    "CAST(a.helper_cpu_ns AS INTEGER), CAST(a.process_cpu_ns AS INTEGER), CAST(a.helper_cpu_ns AS REAL) / "
    "CAST(a.process_cpu_ns AS REAL) FROM runs AS a WHERE lower(hex(CAST(a.run || a.history AS BLOB))) = "
    "temp.run.uuid)";

static int load_runs(const struct load *l)
{
    int rc = fetch_runs(l);
    return rc == 0 ? run(l, sqlite3_mprintf("%s", put_runs)) : rc;
}

/* ---- all of it ---- */

int occ_remote_ask(struct occ_warehouse *w, const struct occ_remote_question *question,
                   struct occ_store **ret_store, struct occ_error *err)
{
    struct occ_store *store = NULL;
    int rc = occ_store_open_memory(&store, err);
    if (rc != 0)
        return rc;
    struct load l = {.w = w, .question = question, .db = occ_store_sqlite(store), .err = err};
    if (sqlite3_create_function(l.db, "pack_histogram", 1, SQLITE_UTF8, NULL, pack_histogram, NULL, NULL) !=
        SQLITE_OK)
        rc = no_memory(err);
    if (rc == 0)
        rc = question->runs ? load_runs(&l) : load_launches(&l);
    if (rc == 0)
        *ret_store = store;
    else
        occ_store_close(store);
    return rc;
}
