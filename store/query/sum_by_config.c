/*
 * Totals per configuration of the launches that fit a filter. For each run the time range is cut into
 *
 *     whole hours that are rolled up      rollup_hour
 *     what a quota took the chunks of     rollup_minute (to the minute)
 *     the rest, in short                  each chunk's totals, unpacked only where it straddles an edge
 *     the rest, in detail                 rollup_minute for whole minutes that are rolled up, else chunks unpacked
 *
 * so that every launch is counted once, whether it was rolled up yet or not. Runs inside a read transaction; one
 * thread.
 */
#include "sum_by_config.h"

#include <stdlib.h>
#include <string.h>

struct gather {
    struct occ_store *store;
    struct occ_scope *scope;
    struct occ_totals_table *table;
    struct occ_error *err;
    bool detailed;
    struct occ_span hours; /* that rollup_hour answers; empty: none */
    sqlite3_stmt *chunks, *data;
};

static int64_t round_down(int64_t ns, int64_t unit)
{
    return ns / unit * unit;
}

static int64_t round_up(int64_t ns, int64_t unit)
{
    int64_t down = round_down(ns, unit);
    return down == ns ? ns : down > INT64_MAX - unit ? INT64_MAX : down + unit;
}

static struct occ_span intersect(struct occ_span a, struct occ_span b)
{
    return (struct occ_span){a.low > b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}

static bool is_empty(struct occ_span s)
{
    return s.low >= s.high;
}

static int corrupt(struct gather *g, const char *what)
{
    return occ_fail(g->err, OCC_E_CORRUPT, "%s: %s is damaged", g->store->path, what);
}

static struct occ_totals *totals_of(struct gather *g, uint64_t config)
{
    return occ_totals_at(g->table, config);
}

/* ---- rollups ---- */

/* A row: bucket, run, configuration, launches, total, min, max [, first, last, histogram]. */
static int add_rollup(struct gather *g, sqlite3_stmt *stmt, int64_t bucket_ns)
{
    uint64_t config = (uint64_t)sqlite3_column_int64(stmt, 2);
    if (!occ_scope_has_config(g->scope, config))
        return 0;
    struct occ_totals *t = totals_of(g, config);
    struct occ_totals row = {.launches = (uint64_t)sqlite3_column_int64(stmt, 3),
                             .total_ns = (uint64_t)sqlite3_column_int64(stmt, 4),
                             .min_ns = (uint64_t)sqlite3_column_int64(stmt, 5),
                             .max_ns = (uint64_t)sqlite3_column_int64(stmt, 6),
                             .first_ns = INT64_MAX,
                             .last_ns = INT64_MIN};
    if (!t)
        return occ_store_no_memory(g->err);
    if (g->detailed) {
        row.first_ns = (int64_t)((uint64_t)bucket_ns + (uint64_t)sqlite3_column_int64(stmt, 7));
        row.last_ns = (int64_t)((uint64_t)bucket_ns + (uint64_t)sqlite3_column_int64(stmt, 8));
        if (!occ_histogram_add_bytes(&t->histogram, sqlite3_column_blob(stmt, 9),
                                     (size_t)sqlite3_column_bytes(stmt, 9)))
            return corrupt(g, "a histogram");
    }
    occ_totals_add_totals(t, &row);
    return 0;
}

static const struct occ_scope_run *run_of(const struct gather *g, int64_t id)
{
    uint32_t at = occ_map_get(&g->scope->run_index, (uint64_t)id);
    return at == OCC_MAP_NONE ? NULL : &g->scope->runs[at];
}

static bool wants_minute(const struct occ_scope_run *run, int64_t minute_ns)
{
    for (uint32_t i = 0; i < run->n_minutes; i++)
        if (minute_ns >= run->minutes[i].low && minute_ns < run->minutes[i].high)
            return true;
    return false;
}

/* Adds the rows of a rollup table whose bucket starts in `span`. */
static int add_rollups(struct gather *g, bool hours, struct occ_span span)
{
    static const char *const sql[2][2] = {
        {"SELECT minute, run_id, config_id, launches, total_duration_ns, min_duration_ns, max_duration_ns "
         "FROM stored_minute WHERE minute >= ? AND minute < ?",
         "SELECT * FROM stored_minute WHERE minute >= ? AND minute < ?"},
        {"SELECT hour, run_id, config_id, launches, total_duration_ns, min_duration_ns, max_duration_ns "
         "FROM stored_hour WHERE hour >= ? AND hour < ?",
         "SELECT * FROM stored_hour WHERE hour >= ? AND hour < ?"},
    };
    int64_t unit = hours ? HOUR_NS : MINUTE_NS;
    sqlite3_stmt *stmt = NULL;
    int step = SQLITE_DONE, rc = occ_ask_prepare(g->store, sql[hours][g->detailed], &stmt, g->err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, round_up(span.low, unit) / unit);
    occ_bind_int(&b, round_up(span.high, unit) / unit);
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        const struct occ_scope_run *run = run_of(g, sqlite3_column_int64(stmt, 1));
        int64_t bucket_ns = (int64_t)((uint64_t)sqlite3_column_int64(stmt, 0) * (uint64_t)unit);
        if (run && (hours || wants_minute(run, bucket_ns)))
            rc = add_rollup(g, stmt, bucket_ns);
    }
    if (rc == 0)
        return occ_ask_end(g->store, stmt, step, g->err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

static void want_minutes(struct occ_scope_run *run, struct occ_span span)
{
    if (!is_empty(span) && run->n_minutes < OCC_SCOPE_SPANS)
        run->minutes[run->n_minutes++] = span;
}

static int compare_spans(const void *a, const void *b)
{
    const struct occ_span *x = a, *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

/* Reads the minutes that the runs want; where they overlap, once. */
static int add_minutes(struct gather *g)
{
    struct occ_span *spans = malloc((g->scope->n_runs * OCC_SCOPE_SPANS + 1) * sizeof *spans);
    uint32_t n = 0;
    int rc = 0;
    if (!spans)
        return occ_store_no_memory(g->err);
    for (uint32_t i = 0; i < g->scope->n_runs; i++)
        for (uint32_t k = 0; k < g->scope->runs[i].n_minutes; k++)
            spans[n++] = g->scope->runs[i].minutes[k];
    if (n > 0)
        qsort(spans, n, sizeof *spans, compare_spans);
    for (uint32_t i = 0; i < n && rc == 0;) {
        struct occ_span joined = spans[i++];
        for (; i < n && spans[i].low <= joined.high; i++)
            joined.high = spans[i].high > joined.high ? spans[i].high : joined.high;
        rc = add_rollups(g, false, joined);
    }
    free(spans);
    return rc;
}

/* ---- chunks ---- */

static int add_launches(struct gather *g, const struct occ_columns *v, struct occ_span span, bool straddles)
{
    for (uint32_t i = 0; i < v->n; i++) {
        if (straddles && ((int64_t)v->start_ns[i] < span.low || (int64_t)v->start_ns[i] >= span.high))
            continue;
        if (!occ_scope_has_config(g->scope, v->config[i]))
            continue;
        struct occ_totals *t = totals_of(g, v->config[i]);
        if (!t || (g->detailed && !occ_histogram_add(&t->histogram, v->duration_ns[i], 1)))
            return occ_store_no_memory(g->err);
        if (straddles || g->detailed) {
            occ_totals_add(t, (int64_t)v->start_ns[i], v->duration_ns[i]);
        } else {
            struct occ_totals row = {.launches = 1,
                                     .total_ns = v->duration_ns[i],
                                     .min_ns = v->duration_ns[i],
                                     .max_ns = v->duration_ns[i],
                                     .first_ns = INT64_MAX,
                                     .last_ns = INT64_MIN};
            occ_totals_add_totals(t, &row);
        }
    }
    return 0;
}

static int unpack_chunk(struct gather *g, int64_t id, struct occ_span span, bool straddles)
{
    struct occ_columns columns;
    uint32_t wanted = OCC_COLUMN_BIT(config) | OCC_COLUMN_BIT(duration_ns);
    if (straddles || g->detailed)
        wanted |= OCC_COLUMN_BIT(start_ns);
    if (!g->data) {
        int rc = occ_ask_prepare(g->store, "SELECT data FROM stored_chunk_data WHERE chunk_id = ?", &g->data,
                                 g->err);
        if (rc != 0)
            return rc;
    }
    (void)sqlite3_bind_int64(g->data, 1, id);
    int rc = sqlite3_step(g->data) == SQLITE_ROW
                 ? occ_columns_decode(g->store->decoder, sqlite3_column_blob(g->data, 0),
                                      (size_t)sqlite3_column_bytes(g->data, 0), wanted, &columns)
                 : OCC_E_CORRUPT;
    if (rc == 0)
        rc = add_launches(g, &columns, span, straddles);
    else
        rc = rc == OCC_E_NO_MEMORY ? occ_store_no_memory(g->err) : corrupt(g, "a chunk");
    (void)sqlite3_reset(g->data);
    return rc;
}

static int add_totals(struct gather *g, const void *data, size_t bytes)
{
    struct occ_columns c;
    int rc = occ_columns_decode(g->store->decoder, data, bytes,
                                OCC_COLUMN_BIT(config) | OCC_COLUMN_BITS(launches, max_ns), &c);
    if (rc != 0)
        return rc == OCC_E_NO_MEMORY ? occ_store_no_memory(g->err) : corrupt(g, "a chunk's totals");
    for (uint32_t i = 0; i < c.n; i++) {
        if (!occ_scope_has_config(g->scope, c.config[i]))
            continue;
        struct occ_totals *t = totals_of(g, c.config[i]);
        struct occ_totals row = {.launches = c.launches[i],
                                 .total_ns = c.total_ns[i],
                                 .min_ns = c.min_ns[i],
                                 .max_ns = c.max_ns[i],
                                 .first_ns = INT64_MAX,
                                 .last_ns = INT64_MIN};
        if (!t)
            return occ_store_no_memory(g->err);
        occ_totals_add_totals(t, &row);
    }
    return 0;
}

/* The chunks of a run that overlap the span. */
static int add_chunks(struct gather *g, const struct occ_scope_run *run, struct occ_span span)
{
    int rc = 0, step = SQLITE_DONE;
    if (is_empty(span))
        return 0;
    if (!g->chunks)
        rc = occ_ask_prepare(
            g->store,
            "SELECT c.chunk_id, c.first_start_ns, c.last_start_ns, t.data FROM stored_chunk c "
            "LEFT JOIN stored_chunk_totals t USING(chunk_id) "
            "WHERE c.run_id = ? AND c.last_start_ns >= ? AND c.first_start_ns < ?",
            &g->chunks, g->err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = g->chunks};
    occ_bind_int(&b, run->id);
    occ_bind_int(&b, span.low);
    occ_bind_int(&b, span.high);
    while (rc == 0 && (step = sqlite3_step(g->chunks)) == SQLITE_ROW) {
        bool straddles =
            sqlite3_column_int64(g->chunks, 1) < span.low || sqlite3_column_int64(g->chunks, 2) >= span.high;
        const void *totals = sqlite3_column_blob(g->chunks, 3);
        if (totals && !straddles && !g->detailed)
            rc = add_totals(g, totals, (size_t)sqlite3_column_bytes(g->chunks, 3));
        else
            rc = unpack_chunk(g, sqlite3_column_int64(g->chunks, 0), span, straddles);
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = occ_sql_fail(g->store->db, g->store->path, step, g->err, "cannot read");
    (void)sqlite3_reset(g->chunks);
    return rc;
}

/* ---- cutting ---- */

/* A span of a run that rollup_hour does not answer. */
static int add_span(struct gather *g, struct occ_scope_run *run, struct occ_span span)
{
    /* nothing is outside of the run's time; in whole minutes, so that its first one does not look like a part */
    span = intersect(span, (struct occ_span){
                               round_down(run->first_ns, MINUTE_NS),
                               round_up(run->last_ns < INT64_MAX ? run->last_ns + 1 : INT64_MAX, MINUTE_NS)});
    if (is_empty(span))
        return 0;
    int64_t retired_ns = run->retired_ns > 0 ? round_up(run->retired_ns, MINUTE_NS) : 0;
    want_minutes(run, intersect(span, (struct occ_span){0, retired_ns}));
    span = intersect(span, (struct occ_span){retired_ns, INT64_MAX});
    struct occ_span minutes = {
        round_up(span.low, MINUTE_NS),
        round_down(span.high < run->rolled_minute_ns ? span.high : run->rolled_minute_ns, MINUTE_NS)};
    minutes = intersect(minutes, (struct occ_span){g->scope->minutes_from * MINUTE_NS, INT64_MAX});
    if (!g->detailed || is_empty(minutes) || is_empty(span))
        return add_chunks(g, run, span);
    want_minutes(run, minutes);
    int rc = add_chunks(g, run, (struct occ_span){span.low, minutes.low});
    return rc != 0 ? rc : add_chunks(g, run, (struct occ_span){minutes.high, span.high});
}

static int add_run(struct gather *g, struct occ_scope_run *run)
{
    struct occ_span all = {g->scope->since_ns, g->scope->until_ns};
    struct occ_span hours = intersect(g->hours, (struct occ_span){0, run->rolled_hour_ns});
    if (is_empty(hours))
        return add_span(g, run, all);
    int rc = add_span(g, run, (struct occ_span){all.low, hours.low});
    return rc != 0 ? rc : add_span(g, run, (struct occ_span){hours.high, all.high});
}

/* The whole hours of the range; an hour at its end whose minutes are gone counts whole. */
static struct occ_span whole_hours(const struct occ_scope *scope)
{
    int64_t first = INT64_MAX, last = 0, gone_ns = scope->minutes_from * MINUTE_NS;
    for (uint32_t i = 0; i < scope->n_runs; i++) {
        first = scope->runs[i].first_ns < first ? scope->runs[i].first_ns : first;
        last = scope->runs[i].last_ns > last ? scope->runs[i].last_ns : last;
    }
    struct occ_span hours = {round_up(scope->since_ns, HOUR_NS), round_down(scope->until_ns, HOUR_NS)};
    if (hours.high < scope->until_ns && hours.high <= gone_ns - HOUR_NS)
        hours.high += HOUR_NS;
    /* nothing is outside of the runs' time */
    return intersect(hours, (struct occ_span){round_down(first, HOUR_NS), round_up(last, HOUR_NS)});
}

int occ_gather(struct occ_store *s, struct occ_scope *scope, bool detailed, struct occ_totals_table *table,
               struct occ_error *err)
{
    struct gather g = {.store = s, .scope = scope, .table = table, .err = err, .detailed = detailed};
    int rc = 0;
    if (scope->n_runs == 0)
        return 0;
    g.hours = whole_hours(scope);
    if (!is_empty(g.hours))
        rc = add_rollups(&g, true, g.hours);
    for (uint32_t i = 0; i < scope->n_runs && rc == 0; i++)
        rc = add_run(&g, &scope->runs[i]);
    if (rc == 0)
        rc = add_minutes(&g);
    (void)sqlite3_finalize(g.chunks);
    (void)sqlite3_finalize(g.data);
    return rc;
}
