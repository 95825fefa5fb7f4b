/* See trend.h. One thread. */
#include "trend.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/history/history.h"
#include "compare/changes.h"
#include "support/array.h"
#include "support/cleanup.h"
#include "support/text.h"

#define MINUTE_NS INT64_C(60000000000)
#define DAY_NS    (1440 * MINUTE_NS)
enum { UNITS_MAX = 10000, MINUTES_HOURS_MAX = 48 };

const char *const trend_units[] = {"minute", "hour", "day", NULL};

#define FIELD(name, key, unit, member, help)                                                                 \
    CLI_FIELD(name, key, unit, CLI_DEFAULT, struct trend_point, member, help)
const struct cli_column trend_point_columns[] = {
    FIELD("start", "start_ns", CLI_TIME, start_ns, "start of the unit of time"),
    FIELD("launches", "launches", CLI_PLAIN, launches, "launches that start in it"),
    FIELD("time", "total_duration_ns", CLI_DURATION, total_ns, "sum of their durations"),
    FIELD("mean", "mean_duration_ns", CLI_DURATION, mean_ns, "their mean duration"),
    FIELD("p50", "p50_duration_ns", CLI_DURATION, p50_ns,
          "median of their durations, from a histogram: at most 12.5 % off, as p95"),
    FIELD("p95", "p95_duration_ns", CLI_DURATION, p95_ns, "95 % of the launches are shorter"),
    FIELD("elapsed", "elapsed", CLI_RATIO, elapsed,
          "occupancy over the elapsed cycles of all SMs, mean by time: of launches that were measured the "
          "measured one, of others expected_elapsed_low"),
    FIELD("low", "elapsed_low", CLI_RATIO, elapsed_low,
          "low end of elapsed: 95 % confidence interval of the measured part"),
    FIELD("high", "elapsed_high", CLI_RATIO, elapsed_high,
          "high end of elapsed: the same, and the range of the expected part"),
    FIELD("measured", "measured_ratio", CLI_RATIO, measured, "part of the time that was measured"),
    FIELD("waste", "waste_warp_seconds", CLI_AMOUNT, waste, "wasted warp-seconds"),
    CLI_COLUMN_END,
};
#undef FIELD

static const struct cli_column utc_start =
    CLI_FIELD("start", "start_ns", CLI_UTC, CLI_DEFAULT, struct trend_point, start_ns, "");

#define FIELD(key, member) CLI_FIELD(key, key, CLI_PLAIN, CLI_DEFAULT, struct trend_change, member, "")
static const struct cli_column trend_change_columns[] = {
    FIELD("series", series),
    FIELD("start_ns", start_ns),
    FIELD("before", before),
    FIELD("after", after),
    FIELD("change_ratio", ratio),
    FIELD("p", p),
    FIELD("possible", possible),
    FIELD("drift", is_drift),
    FIELD("kernels_ratio", split.kernels),
    FIELD("mix_ratio", split.mix),
    FIELD("run_id", run),
    FIELD("run", began),
    CLI_COLUMN_END,
};

static const struct cli_column trend_label_columns[] = {
    CLI_FIELD("start_ns", "start_ns", CLI_PLAIN, CLI_DEFAULT, struct trend_label, start_ns, ""),
    CLI_FIELD("label", "label", CLI_PLAIN, CLI_DEFAULT, struct trend_label, label, ""),
    CLI_COLUMN_END,
};

#define TEXTS(name, key, text, source, member, low, high, band, unit) {key, text, source, band, unit},
const struct trend_series_text trend_series[TREND_SERIES_COUNT] = {TREND_SERIES(TEXTS)};

struct trend_value trend_value(const struct trend_point *point, enum trend_series series)
{
#define VALUES(name, key, text, source, member, low, high, band, unit)                                       \
    {(double)point->member, (double)point->low, (double)point->high},
    const struct trend_value values[] = {TREND_SERIES(VALUES)};
    return values[series];
}

const char *trend_value_text(enum trend_series series, double value, char *buffer, size_t size)
{
    enum cli_unit unit = trend_series[series].unit;
    return unit == CLI_RATIO      ? cli_percent_text(value, buffer, size)
           : unit == CLI_DURATION ? occ_format_duration((int64_t)llround(value), buffer, size)
                                  : cli_amount_text(value, buffer, size);
}

const char *trend_change_text(const struct trend *t, const struct trend_change *c, char *buffer, size_t size)
{
    const char *what = t->n_kernels == 1 ? "configurations" : "kernels";
    char time[32], before[32], after[32], split[96] = "", began[256] = "";
    if (!isnan(c->split.kernels))
        (void)snprintf(split, sizeof split, ": %s %+.1f%%, mix of %s %+.1f%%", what, 100 * c->split.kernels,
                       what, 100 * c->split.mix);
    if (!isnan(c->run))
        (void)snprintf(began, sizeof began, "; run %.0f began: %s", c->run, c->began);
    (void)snprintf(buffer, size, "%s%s%s: %s %s -> %s (%+.1f%%%s)%s", c->is_drift ? "slowly since " : "",
                   trend_time_text(t, c->start_ns, time, sizeof time),
                   c->possible ? " (only possible yet)" : "", trend_series[c->in].name,
                   trend_value_text(c->in, c->before, before, sizeof before),
                   trend_value_text(c->in, c->after, after, sizeof after), 100 * c->ratio, split, began);
    return buffer;
}

bool trend_is_utc(const struct trend *t)
{
    return t->unit_ns == DAY_NS;
}

const char *trend_time_text(const struct trend *t, int64_t ns, char *buffer, size_t size)
{
    return cli_zone_time_text(ns, trend_is_utc(t), buffer, size);
}

void trend_name_zone(const struct trend *t, struct cli_selection *selection)
{
    for (size_t i = 0; i < selection->n && trend_is_utc(t); i++)
        if (strcmp(selection->columns[i]->key, utc_start.key) == 0)
            selection->columns[i] = &utc_start;
}

void trend_release(struct trend *t)
{
    free(t->points);
    free(t->changes);
    free(t->labels);
}

/* ---- points ---- */

static int by_start(const void *left, const void *right)
{
    const struct trend_point *a = left, *b = right;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static int load_points(struct occ_store *store, const struct occ_filter *filter, enum occ_top_by by,
                       struct trend *t, struct occ_error *err)
{
    _cleanup_(occ_top_free) struct occ_top top = {0};
    static const int64_t unit_ns[] = {MINUTE_NS, 60 * MINUTE_NS, DAY_NS};
    t->unit_ns = unit_ns[by - OCC_TOP_BY_MINUTE];
    t->unit = trend_units[by - OCC_TOP_BY_MINUTE];
    int status = occ_store_top(store, filter, by, &top, err);
    if (status != 0)
        return status;
    t->n_kernels = filter->kernel ? top.n_kernels : 0;
    t->points = calloc(top.n + 1, sizeof *t->points);
    if (!t->points)
        return occ_no_memory(err);
    for (size_t i = 0; i < top.n; i++) {
        const struct occ_top_row *row = &top.rows[i];
        /* part with elapsed occupancy: reports without elapsed cycles measure only achieved occupancy */
        double measured = isnan(row->elapsed) ? 0 : row->measured_ratio;
        double error = measured > 0 ? row->elapsed_error * measured : 0;
        double half = OCC_ERRORS_OF_95_PERCENT * error, spread = row->tail_spread + row->small_grid_spread;
        t->simulated = t->simulated || row->kernel.simulated;
        double low = fmax(row->used - half, 0), high = fmin(row->used + spread + half, 1);
        double all = row->waste_warp_seconds / (1 - row->used); /* capacity in warp-seconds */
        t->points[t->n++] = (struct trend_point){.start_ns = row->kernel.id * t->unit_ns,
                                                 .launches = row->launches,
                                                 .total_ns = row->total_ns,
                                                 .p50_ns = row->p50_ns,
                                                 .p95_ns = row->p95_ns,
                                                 .mean_ns = (double)row->total_ns / (double)row->launches,
                                                 .elapsed = row->used,
                                                 .elapsed_low = low,
                                                 .elapsed_high = high,
                                                 .measured = measured,
                                                 .waste = row->waste_warp_seconds,
                                                 .waste_low = row->used < 1 ? all * (1 - high) : 0,
                                                 .waste_high = row->used < 1 ? all * (1 - low) : 0};
    }
    qsort(t->points, t->n, sizeof *t->points, by_start);
    return 0;
}

/* Loads points by `unit`. Without a unit, loads hours first to find the time from the first launch to the
 * last. */
static int choose_and_load(struct occ_store *store, const struct occ_filter *filter, const char *unit,
                           struct trend *t, struct occ_error *err)
{
    for (int i = 0; unit && trend_units[i]; i++)
        if (strcmp(unit, trend_units[i]) == 0)
            return load_points(store, filter, (enum occ_top_by)(OCC_TOP_BY_MINUTE + i), t, err);
    int status = load_points(store, filter, OCC_TOP_BY_HOUR, t, err);
    int64_t hours = t->n ? (t->points[t->n - 1].start_ns - t->points[0].start_ns) / t->unit_ns + 1 : 0;
    if (status != 0 || hours == 0 || (hours > MINUTES_HOURS_MAX && hours <= UNITS_MAX))
        return status;
    trend_release(t);
    *t = (struct trend){0};
    return load_points(store, filter, hours > UNITS_MAX ? OCC_TOP_BY_DAY : OCC_TOP_BY_MINUTE, t, err);
}

/* ---- changes ---- */

struct trend_question {
    struct occ_store *store;
    const struct occ_filter *filter;
    enum trend_series series;
    struct occ_error *err;
};

/* Binds the parameters of statements on the runs of the question that begin in a period. */
static void bind_runs(sqlite3_stmt *s, const struct trend_question *q, int64_t from_ns, int64_t to_ns)
{
    (void)sqlite3_bind_int64(s, sqlite3_bind_parameter_index(s, ":from"), from_ns);
    (void)sqlite3_bind_int64(s, sqlite3_bind_parameter_index(s, ":to"), to_ns);
    occ_filter_bind_runs(s, q->filter);
}

/* Finds the last run that began in the change's unit of time or in the unit before. */
static void find_run(const struct trend_question *q, const struct trend *t, struct trend_change *change)
{
    static const char sql[] =
        "SELECT run_id, coalesce(label, ''), coalesce(program, '') FROM run WHERE "
        "start_ns >= :from AND start_ns < :to AND " OCC_FILTER_RUNS " ORDER BY start_ns DESC LIMIT 1";
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(occ_store_sqlite(q->store), sql, -1, &s, NULL) != SQLITE_OK)
        return;
    bind_runs(s, q, change->start_ns - t->unit_ns, change->start_ns + t->unit_ns);
    if (sqlite3_step(s) == SQLITE_ROW) {
        change->run = (double)sqlite3_column_int64(s, 0);
        (void)snprintf(change->began, sizeof change->began, "%s%s%s", (const char *)sqlite3_column_text(s, 1),
                       sqlite3_column_bytes(s, 1) && sqlite3_column_bytes(s, 2) ? " " : "",
                       (const char *)sqlite3_column_text(s, 2));
        occ_text_sanitise(change->began);
    }
    (void)sqlite3_finalize(s);
}

/* Returns a filter for the launches of points `from` ... `to` - 1. */
static struct occ_filter between(const struct trend *t, const struct occ_filter *filter, size_t from,
                                 size_t to)
{
    struct occ_filter f = *filter;
    int64_t start = t->points[from].start_ns, end = t->points[to - 1].start_ns + t->unit_ns;
    f.since_ns = f.since_ns > start ? f.since_ns : start;
    f.until_ns = f.until_ns && f.until_ns < end ? f.until_ns : end;
    return f;
}

static int add_change(const struct trend_question *q, const struct diff_change *found, struct trend *t)
{
    if (!occ_grow((void **)&t->changes, &t->allocated, t->n_changes, SIZE_MAX, sizeof *t->changes))
        return occ_no_memory(q->err);
    t->changes[t->n_changes++] = (struct trend_change){.in = q->series,
                                                       .series = trend_series[q->series].key,
                                                       .start_ns = t->points[found->at].start_ns,
                                                       .before = found->before,
                                                       .after = found->after,
                                                       .ratio = found->after / found->before - 1,
                                                       .p = found->p,
                                                       .split = {NAN, NAN},
                                                       .run = NAN,
                                                       .possible = found->possible,
                                                       .is_drift = found->is_drift};
    return 0;
}

/* Adds step `i` of the `n` steps in `found`. */
static int add_step(const struct trend_question *q, const struct diff_change *found, size_t n, size_t i,
                    struct trend *t)
{
    size_t at = found[i].at, from = i ? found[i - 1].at : 0, to = i + 1 < n ? found[i + 1].at : t->n;
    from = found[i].possible || at - from < DIFF_CHANGE_WINDOW ? from : at - DIFF_CHANGE_WINDOW;
    to = to - at < DIFF_CHANGE_WINDOW ? to : at + DIFF_CHANGE_WINDOW;
    const struct occ_filter sides[] = {between(t, q->filter, from, at), between(t, q->filter, at, to)};
    int status = add_change(q, &found[i], t);
    if (status != 0)
        return status;
    find_run(q, t, &t->changes[t->n_changes - 1]);
    return trend_split(q->store, sides, t->n_kernels == 1 ? OCC_TOP_BY_CONFIG : OCC_TOP_BY_KERNEL, q->series,
                       &t->changes[t->n_changes - 1].split, q->err);
}

/* Finds steps of each series before WASTE, and a drift after the last certain step. */
static int find_changes(struct trend_question *q, double min_change, struct trend *t)
{
    _cleanup_(occ_freep) double *values = calloc(t->n + 1, sizeof *values);
    int status = values ? 0 : occ_no_memory(q->err);
    for (q->series = 0; q->series < TREND_WASTE && status == 0; q->series++) {
        _cleanup_(occ_freep) struct diff_change *found = NULL;
        struct diff_change drift;
        size_t n = 0, last = 0;
        for (size_t i = 0; i < t->n; i++)
            values[i] = trend_value(&t->points[i], q->series).mean;
        status = diff_find_changes(values, t->n, min_change, &found, &n, q->err);
        for (size_t i = 0; i < n && status == 0; i++) {
            status = add_step(q, found, n, i, t);
            last = found[i].possible ? last : found[i].at;
        }
        if (status == 0 && diff_find_drift(values + last, t->n - last, min_change, &drift)) {
            drift.at += last;
            status = add_change(q, &drift, t);
        }
    }
    return status;
}

static int load_labels(const struct trend_question *q, struct trend *t)
{
    static const char sql[] = "SELECT start_ns, label FROM (SELECT start_ns, label, lag(label) OVER (ORDER "
                              "BY start_ns) AS before FROM run WHERE label IS NOT NULL "
                              "AND " OCC_FILTER_RUNS ") WHERE label IS NOT "
                              "before AND start_ns >= :from AND start_ns < :to ORDER BY start_ns";
    sqlite3 *db = occ_store_sqlite(q->store);
    sqlite3_stmt *s = NULL;
    int status = 0, step = SQLITE_ERROR;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK)
        bind_runs(s, q, t->points[0].start_ns, t->points[t->n - 1].start_ns + t->unit_ns);
    while (s && status == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
        if (!occ_grow((void **)&t->labels, &t->labels_allocated, t->n_labels, SIZE_MAX, sizeof *t->labels)) {
            status = occ_no_memory(q->err);
            continue;
        }
        struct trend_label *label = &t->labels[t->n_labels++];
        label->start_ns = sqlite3_column_int64(s, 0);
        (void)snprintf(label->label, sizeof label->label, "%s", (const char *)sqlite3_column_text(s, 1));
        occ_text_sanitise(label->label);
    }
    if (status == 0 && step != SQLITE_DONE)
        status = occ_fail(q->err, OCC_E_IO, "%s", sqlite3_errmsg(db));
    (void)sqlite3_finalize(s);
    return status;
}

int trend_load(struct occ_store *store, const struct occ_filter *filter, const char *unit, double min_change,
               struct trend *ret_trend, struct occ_error *err)
{
    *ret_trend = (struct trend){0};
    int status = choose_and_load(store, filter, unit, ret_trend, err);
    struct trend_question question = {.store = store, .filter = filter, .err = err};
    if (status == 0 && ret_trend->n)
        status = load_labels(&question, ret_trend);
    return status != 0 ? status : find_changes(&question, min_change, ret_trend);
}

void trend_json(struct occ_json *json, const struct trend *t)
{
    occ_json_integer(json, "unit_ns", t->unit_ns);
    occ_json_bool(json, "simulated", t->simulated);
    cli_json_value(json, "kernels", t->n_kernels ? cli_unsigned(t->n_kernels) : cli_string(NULL));
    cli_json_rows(json, "points", trend_point_columns, t->points, t->n, sizeof *t->points);
    cli_json_rows(json, "changes", trend_change_columns, t->changes, t->n_changes, sizeof *t->changes);
    cli_json_rows(json, "labels", trend_label_columns, t->labels, t->n_labels, sizeof *t->labels);
}
