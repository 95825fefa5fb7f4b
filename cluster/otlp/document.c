/* See document.h. */
#include "document.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cleanup.h"
#include "support/json.h"

#define CUMULATIVE 2 /* AGGREGATION_TEMPORALITY_CUMULATIVE of metrics.proto */
#define MINUTE_NS  UINT64_C(60000000000)

struct document {
    struct occ_json json;
    struct occ_sums *sums;
    const struct occ_otlp_node *node;
    uint64_t until_ns;
};

/* ---- elements ---- */

static void put_times(struct document *d, int64_t start_minute)
{
    uint64_t start_ns = start_minute > 0 ? (uint64_t)start_minute * MINUTE_NS : 0;
    /* After a clock was set back the start is 1 ns before the end: equal times would mean no interval. */
    if (start_minute >= 0)
        occ_otlp_put_unsigned(&d->json, "startTimeUnixNano",
                              start_ns < d->until_ns ? start_ns : d->until_ns - 1);
    occ_otlp_put_unsigned(&d->json, "timeUnixNano", d->until_ns);
}

/* ---- metrics ---- */

enum kind { GAUGE, COUNTER, UP_DOWN_COUNTER, HISTOGRAM };
/* Columns of a point: the GPU's UUID, its model, the kernel (NULL: none), the first minute (NULL: none), the
 * value. Integers stay integers. ?1: the job. */
enum { GPU, MODEL, KERNEL, START, VALUE };

static const struct metric {
    enum kind kind;
    const char *name, *unit, *description, *sql;
} node_metrics[] = {
    {UP_DOWN_COUNTER, "hw.gpu.memory.limit", "By", "Size of the GPU's memory",
     "SELECT gpu, model, NULL, NULL, memory_bytes FROM gpu WHERE memory_bytes > 0"},
};

#define SERIES(value)                                                                                        \
    "SELECT gpu, coalesce(g.model, ''), kernel, start_minute, " value                                        \
    " AS value FROM series LEFT JOIN gpu g USING(gpu) WHERE job = ?1 AND value IS NOT NULL"
/* A mean of launches of one kernel only. */
#define MEAN(sum, ns) SERIES(sum " / nullif(" ns ", 0)") " AND kernel <> '" OCC_SUMS_OTHER "'"

static const struct metric job_metrics[] = {
    {COUNTER, "gpu.cuda.kernel.launch.calls", "", "Launches of CUDA kernels, also as nodes of graphs",
     SERIES("launches")},
    {COUNTER, "occtrace.kernel.time", "s", "Sum of the durations of launches", SERIES("ns / 1e9")},
    {COUNTER, "occtrace.kernel.capacity", "{warp}.s",
     "Warps that the GPU could hold while the launches ran, times their durations", SERIES("capacity")},
    {COUNTER, "occtrace.kernel.wasted", "{warp}.s",
     "The part of the capacity that, by the model, the launches leave empty", SERIES("wasted")},
    {GAUGE, "occtrace.kernel.occupancy.theoretical", "1", "Theoretical occupancy, the mean over time",
     MEAN("theoretical", "theoretical_ns")},
    {GAUGE, "occtrace.kernel.occupancy.expected.low", "1",
     "Lower end of the range of expected achieved occupancy, by the model", MEAN("low", "expected_ns")},
    {GAUGE, "occtrace.kernel.occupancy.expected.high", "1", "Upper end of that range",
     MEAN("high", "expected_ns")},
    {GAUGE, "occtrace.kernel.occupancy.achieved", "1",
     "Achieved occupancy, measured, the mean over the time of the launches with a value",
     MEAN("achieved", "achieved_ns")},
    {GAUGE, "occtrace.kernel.occupancy.achieved.error", "1", "Upper bound of the standard error of that mean",
     MEAN("error", "error_ns")},
};

/* Buckets of the sizes of one kind; ?1: the job, ?2: the kind. */
static const char read_sizes[] =
    "SELECT s.gpu, coalesce(g.model, ''), s.bucket, s.launches, s.total, min(s.start_minute) OVER (PARTITION "
    "BY "
    "s.gpu) FROM size s LEFT JOIN gpu g USING(gpu) WHERE s.job = ?1 AND s.kind = ?2 ORDER BY s.gpu, s.bucket";
enum { SIZE_GPU, SIZE_MODEL, SIZE_BUCKET, SIZE_LAUNCHES, SIZE_TOTAL, SIZE_START };

static const struct size_metric {
    enum occ_sums_size size;
    struct metric metric;
} size_metrics[] = {
    {OCC_SUMS_GRID,
     {HISTOGRAM, "gpu.cuda.kernel.grid.size", "1", "Blocks of the grids of launches", read_sizes}},
    {OCC_SUMS_BLOCK,
     {HISTOGRAM, "gpu.cuda.kernel.block.size", "1", "Threads of the blocks of launches", read_sizes}},
};

static const char *text(sqlite3_stmt *stmt, int i)
{
    const char *found = (const char *)sqlite3_column_text(stmt, i);
    return found ? found : "";
}

/* hw.id: as the driver's tools name a GPU with a UUID. */
static void put_hardware(struct occ_json *json, const char *gpu, const char *model)
{
    char id[sizeof "GPU-" + OCC_SUMS_TEXT_BYTES];
    (void)snprintf(id, sizeof id, "%s%s", strlen(gpu) == 36 ? "GPU-" : "", gpu);
    occ_otlp_put_attribute(json, "hw.id", id);
    occ_otlp_put_attribute(json, "hw.type", "gpu");
    occ_otlp_put_attribute(json, "hw.model", model);
    occ_otlp_put_attribute(json, "hw.vendor", "NVIDIA");
}

static void put_point_attributes(struct occ_json *json, sqlite3_stmt *stmt, bool is_hardware)
{
    occ_json_array(json, "attributes", true);
    if (is_hardware) {
        put_hardware(json, text(stmt, GPU), text(stmt, MODEL));
    } else {
        occ_otlp_put_attribute(json, "cuda.device.uuid", text(stmt, GPU));
        occ_otlp_put_attribute(json, "cuda.device.model", text(stmt, MODEL));
        occ_otlp_put_attribute(json, "occtrace.kernel.name", text(stmt, KERNEL));
    }
    occ_json_close(json);
}

static void put_point(struct document *d, sqlite3_stmt *stmt, const struct metric *metric)
{
    struct occ_json *json = &d->json;
    bool has_start = metric->kind == COUNTER;
    occ_json_object(json, NULL, true);
    put_point_attributes(json, stmt, strncmp(metric->name, "hw.", 3) == 0);
    put_times(d, has_start ? sqlite3_column_int64(stmt, START) : -1);
    if (sqlite3_column_type(stmt, VALUE) == SQLITE_INTEGER)
        occ_json_string(json, "asInt", text(stmt, VALUE));
    else
        occ_json_real(json, "asDouble", sqlite3_column_double(stmt, VALUE));
    occ_json_close(json);
}

static void begin_points(struct document *d, const struct metric *metric)
{
    static const char *const members[] = {
        [GAUGE] = "gauge", [COUNTER] = "sum", [UP_DOWN_COUNTER] = "sum", [HISTOGRAM] = "histogram"};
    struct occ_json *json = &d->json;
    occ_json_object(json, NULL, false);
    occ_json_string(json, "name", metric->name);
    if (metric->unit[0])
        occ_json_string(json, "unit", metric->unit);
    occ_json_string(json, "description", metric->description);
    occ_json_object(json, members[metric->kind], false);
    if (metric->kind != GAUGE)
        occ_json_integer(json, "aggregationTemporality", CUMULATIVE);
    if (metric->kind == COUNTER || metric->kind == UP_DOWN_COUNTER)
        occ_json_bool(json, "isMonotonic", metric->kind == COUNTER);
    occ_json_array(json, "dataPoints", false);
}

/* Ends the data points, their kind and the metric. */
static void end_points(struct occ_json *json)
{
    for (int i = 0; i < 3; i++)
        occ_json_close(json);
}

/* Prepares a statement about a job. */
static int prepare(const struct document *d, const char *sql, const char *job, sqlite3_stmt **ret_stmt,
                   struct occ_error *err)
{
    if (sqlite3_prepare_v2(occ_sums_sqlite(d->sums), sql, -1, ret_stmt, NULL) != SQLITE_OK)
        return occ_sums_fail(d->sums, err);
    if (sqlite3_bind_parameter_count(*ret_stmt) > 0)
        (void)sqlite3_bind_text(*ret_stmt, 1, job, -1, SQLITE_STATIC);
    return 0;
}

static int put_metric(struct document *d, const struct metric *metric, const char *job, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = prepare(d, metric->sql, job, &stmt, err), code = SQLITE_DONE;
    bool some = false;
    while (rc == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (!some)
            begin_points(d, metric);
        some = true;
        put_point(d, stmt, metric);
    }
    if (rc == 0 && code != SQLITE_DONE)
        rc = occ_sums_fail(d->sums, err);
    if (some)
        end_points(&d->json);
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* ---- histograms ---- */

/* A histogram of a GPU, while its buckets are read. */
struct histogram {
    char gpu[OCC_SUMS_TEXT_BYTES], model[OCC_SUMS_TEXT_BYTES];
    int64_t start_minute;
    uint64_t counts[OCC_SUMS_BOUNDS_MAX + 1], launches;
    double total;
};

static void put_histogram(struct document *d, const struct histogram *h, const struct occ_sums_bounds *bounds)
{
    struct occ_json *json = &d->json;
    if (h->launches == 0)
        return;
    occ_json_object(json, NULL, true);
    occ_json_array(json, "attributes", true);
    occ_otlp_put_attribute(json, "cuda.device.uuid", h->gpu);
    occ_otlp_put_attribute(json, "cuda.device.model", h->model);
    occ_json_close(json);
    put_times(d, h->start_minute);
    occ_otlp_put_unsigned(json, "count", h->launches);
    occ_json_real(json, "sum", h->total);
    occ_json_array(json, "bucketCounts", true);
    for (size_t i = 0; i <= bounds->n; i++)
        occ_otlp_put_unsigned(json, NULL, h->counts[i]);
    occ_json_close(json);
    occ_json_array(json, "explicitBounds", true);
    for (size_t i = 0; i < bounds->n; i++)
        occ_json_real(json, NULL, bounds->ends[i]);
    occ_json_close(json);
    occ_json_close(json);
}

/* Adds a bucket; a bucket of another GPU ends the histogram. */
static void add_bucket(struct document *d, sqlite3_stmt *stmt, struct histogram *h,
                       const struct occ_sums_bounds *bounds)
{
    int64_t bucket = sqlite3_column_int64(stmt, SIZE_BUCKET),
            launches = sqlite3_column_int64(stmt, SIZE_LAUNCHES);
    if (strcmp(h->gpu, text(stmt, SIZE_GPU)) != 0) {
        put_histogram(d, h, bounds);
        *h = (struct histogram){.start_minute = sqlite3_column_int64(stmt, SIZE_START)};
        (void)snprintf(h->gpu, sizeof h->gpu, "%s", text(stmt, SIZE_GPU));
        (void)snprintf(h->model, sizeof h->model, "%s", text(stmt, SIZE_MODEL));
    }
    if (bucket < 0 || (uint64_t)bucket > bounds->n || launches <= 0)
        return; /* a row of another version or program */
    h->counts[bucket] += (uint64_t)launches;
    h->launches += (uint64_t)launches;
    h->total += sqlite3_column_double(stmt, SIZE_TOTAL);
}

static int put_sizes(struct document *d, const struct size_metric *metric, const char *job,
                     struct occ_error *err)
{
    struct histogram h = {.launches = 0};
    const struct occ_sums_bounds *bounds = &occ_sums_bounds[metric->size];
    sqlite3_stmt *stmt = NULL;
    int rc = prepare(d, metric->metric.sql, job, &stmt, err), code = SQLITE_DONE;
    begin_points(d, &metric->metric);
    (void)sqlite3_bind_int64(stmt, 2, metric->size);
    while (rc == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW)
        add_bucket(d, stmt, &h, bounds);
    put_histogram(d, &h, bounds);
    end_points(&d->json);
    if (rc == 0 && code != SQLITE_DONE)
        rc = occ_sums_fail(d->sums, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* ---- resources ---- */

static const char read_jobs[] =
    "SELECT s.job, " OCC_OTLP_JOB_COLUMNS
    " FROM (SELECT DISTINCT job FROM series) s LEFT JOIN job j USING(job) ORDER BY s.job";

static void begin_resource(struct document *d, sqlite3_stmt *job)
{
    struct occ_json *json = &d->json;
    occ_otlp_begin_resource(json, &d->node->origin, job);
    occ_json_array(json, "scopeMetrics", false);
    occ_json_object(json, NULL, false);
    occ_otlp_put_scope(json, &d->node->origin);
    occ_json_array(json, "metrics", false);
}

static void end_resource(struct occ_json *json)
{
    for (int i = 0; i < 4; i++)
        occ_json_close(json);
}

static const struct metric utilization = {
    GAUGE, "hw.gpu.utilization", "1",
    "Part of the time in which at least one recorded kernel ran, of all programs together", NULL};

/* A point starts with the time that it covers. */
static void put_utilization(struct document *d)
{
    const struct occ_busy *busy = &d->node->busy;
    struct occ_json *json = &d->json;
    if (busy->n == 0)
        return;
    begin_points(d, &utilization);
    for (size_t i = 0; i < busy->n; i++) {
        uint64_t from_ns = (uint64_t)busy->gpus[i].from_ns;
        occ_json_object(json, NULL, true);
        occ_json_array(json, "attributes", true);
        put_hardware(json, busy->gpus[i].gpu, busy->gpus[i].model);
        occ_otlp_put_attribute(json, "hw.gpu.task", "general");
        occ_json_close(json);
        occ_otlp_put_unsigned(json, "startTimeUnixNano", from_ns < d->until_ns ? from_ns : d->until_ns - 1);
        occ_otlp_put_unsigned(json, "timeUnixNano", d->until_ns);
        occ_json_real(json, "asDouble", busy->gpus[i].ratio);
        occ_json_close(json);
    }
    end_points(json);
}

static int put_node(struct document *d, struct occ_error *err)
{
    int rc = 0;
    begin_resource(d, NULL);
    for (size_t i = 0; i < sizeof node_metrics / sizeof *node_metrics && rc == 0; i++)
        rc = put_metric(d, &node_metrics[i], "", err);
    put_utilization(d);
    end_resource(&d->json);
    return rc;
}

static int put_job(struct document *d, sqlite3_stmt *job, struct occ_error *err)
{
    int rc = 0;
    begin_resource(d, job);
    for (size_t i = 0; i < sizeof job_metrics / sizeof *job_metrics && rc == 0; i++)
        rc = put_metric(d, &job_metrics[i], text(job, 0), err);
    for (size_t i = 0; i < sizeof size_metrics / sizeof *size_metrics && rc == 0; i++)
        rc = put_sizes(d, &size_metrics[i], text(job, 0), err);
    end_resource(&d->json);
    return rc;
}

static int put_all(struct document *d, struct occ_error *err)
{
    sqlite3_stmt *jobs = NULL;
    int rc = put_node(d, err), code = SQLITE_DONE;
    if (rc == 0)
        rc = prepare(d, read_jobs, "", &jobs, err);
    while (rc == 0 && (code = sqlite3_step(jobs)) == SQLITE_ROW)
        rc = put_job(d, jobs, err);
    if (rc == 0 && code != SQLITE_DONE)
        rc = occ_sums_fail(d->sums, err);
    (void)sqlite3_finalize(jobs);
    return rc;
}

int occ_otlp_document(struct occ_sums *sums, const struct occ_otlp_node *node, int64_t until_ns,
                      char **ret_text, size_t *ret_n, struct occ_error *err)
{
    _cleanup_(occ_freep) char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return occ_no_memory(err);
    struct document d = {.sums = sums, .node = node, .until_ns = (uint64_t)until_ns};
    occ_json_begin(&d.json, out);
    occ_json_array(&d.json, "resourceMetrics", false);
    int rc = put_all(&d, err);
    occ_json_close(&d.json);
    occ_json_end(&d.json);
    bool failed = ferror(out) != 0;
    failed |= fclose(out) != 0;
    if (rc == 0 && failed)
        rc = occ_no_memory(err);
    if (rc == 0 && n > OCC_OTLP_BODY_MAX)
        rc = occ_fail(err, OCC_E_FULL, "the metrics take %zu bytes, more than a request may have", n);
    if (rc != 0)
        return rc;
    *ret_text = occ_take(text);
    *ret_n = n;
    return 0;
}
