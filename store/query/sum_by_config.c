/*
 * Totals by launch configuration of a filter's launches. The time of each run is divided by source:
 *
 *     whole hours that are rolled up   stored_hour
 *     time with evicted chunks         stored_minute (to the minute)
 *     the rest                         stored_minute for whole minutes that are rolled up, otherwise chunks
 *
 * Every launch counts exactly once, rolled up or not. One thread.
 */

#include "query.h"

struct sum {
    struct occ_store *store;
    struct occ_resolved_filter *filter;
    struct occ_totals_table *table;
    struct occ_error *err;
    bool detailed;
    struct occ_span hours; /* time answered by stored_hour; may be empty */
};

static struct occ_span intersect(struct occ_span a, struct occ_span b)
{
    return (struct occ_span){a.low > b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}

static bool is_empty(struct occ_span s)
{
    return s.low >= s.high;
}

static int corrupt(struct sum *sum, const char *what)
{
    return occ_fail(sum->err, OCC_E_CORRUPT, "%s: %s is damaged", sum->store->path, what);
}

/* The columns of chunks that rollups lack but the filter needs. */
static uint32_t own_columns(const struct occ_resolved_filter *f)
{
    return (f->stream != 0 || f->by_stream ? OCC_COLUMN_BIT(stream) : 0) |
           (f->by_range || f->has_range_filter ? OCC_COLUMN_BIT(range) : 0) |
           (f->graphs ? OCC_COLUMN_BIT(graph_node) : 0);
}

/* Group of a launch or a rollup that starts at this time. */
static uint32_t group_of(const struct occ_resolved_filter *f, const struct occ_filtered_run *run,
                         int64_t start_ns)
{
    return f->unit_ns ? (uint32_t)(start_ns / f->unit_ns) : run->group;
}

/* ---- rollups ---- */

/* Adds a row: unit of time, run, configuration, launches, total, min, max, first, last, histogram. */
static int add_rollup(struct sum *sum, sqlite3_stmt *stmt, uint32_t group, int64_t start_ns)
{
    uint64_t config = (uint64_t)sqlite3_column_int64(stmt, 2);
    if (!occ_filter_has_config(sum->filter, config))
        return 0;
    struct occ_totals *t = occ_totals_at(sum->table, (uint64_t)group << 32 | config);
    if (!t)
        return occ_no_memory(sum->err);
    occ_totals_add_totals(
        t, &(struct occ_totals){
               .launches = (uint64_t)sqlite3_column_int64(stmt, 3),
               .total_ns = (uint64_t)sqlite3_column_int64(stmt, 4),
               .min_ns = (uint64_t)sqlite3_column_int64(stmt, 5),
               .max_ns = (uint64_t)sqlite3_column_int64(stmt, 6),
               .first_ns = (int64_t)((uint64_t)start_ns + (uint64_t)sqlite3_column_int64(stmt, 7)),
               .last_ns = (int64_t)((uint64_t)start_ns + (uint64_t)sqlite3_column_int64(stmt, 8))});
    int rc = sum->detailed ? occ_histogram_add_bytes(&t->histogram, sqlite3_column_blob(stmt, 9),
                                                     (size_t)sqlite3_column_bytes(stmt, 9))
                           : 0;
    return rc == 0 ? 0 : rc == OCC_E_NO_MEMORY ? occ_no_memory(sum->err) : corrupt(sum, "a histogram");
}

static const struct occ_filtered_run *find_run(const struct sum *sum, int64_t id)
{
    uint32_t at = occ_map_get(&sum->filter->run_index, (uint64_t)id);
    return at == OCC_MAP_NONE ? NULL : &sum->filter->runs[at];
}

/* True if the minute's row counts. Rows before the first kept minute are evicted, or contain late launches
 * that chunks contain too. */
static bool wants_minute(const struct sum *sum, const struct occ_filtered_run *run, int64_t minute_ns,
                         struct occ_span span)
{
    return minute_ns < run->evicted_ns ||
           (minute_ns >= sum->filter->first_minute_ns && minute_ns <= span.high - MINUTE_NS);
}

/* Adds the statement's rows of a rollup. */
static int add_rows(struct sum *sum, sqlite3_stmt *stmt, bool hours, struct occ_span span)
{
    int64_t unit = hours ? HOUR_NS : MINUTE_NS;
    int rc = 0;
    while (occ_store_next(sum->store, stmt, &rc, sum->err)) {
        const struct occ_filtered_run *run = find_run(sum, sqlite3_column_int64(stmt, 1));
        int64_t start_ns = (int64_t)((uint64_t)sqlite3_column_int64(stmt, 0) * (uint64_t)unit);
        if (run && (hours || wants_minute(sum, run, start_ns, span)))
            rc = add_rollup(sum, stmt, group_of(sum->filter, run, start_ns), start_ns);
    }
    return rc;
}

/* Adds the rows of a rollup that start in `span`. Of one run each unit is found by key, so that the time for
 * a run does not grow with the number of other runs; a long run has more units than a scan is worth. */
static int add_rollups(struct sum *sum, bool hours, struct occ_span span)
{
    enum { UNITS_MAX = 4096 };
    int64_t unit = hours ? HOUR_NS : MINUTE_NS;
    int64_t low = occ_round_up(span.low, unit) / unit, high = occ_round_up(span.high, unit) / unit;
    int rc = 0;
    if (is_empty(span))
        return 0;
    if (sum->filter->n_runs > 1 || high - low > UNITS_MAX)
        return add_rows(
            sum, occ_store_query(sum->store, hours ? OCC_SQL_HOURS : OCC_SQL_MINUTES, OCC_INTS(low, high)),
            hours, span);
    for (int64_t at = low; at < high && rc == 0; at++)
        rc = add_rows(sum,
                      occ_store_query(sum->store, hours ? OCC_SQL_HOUR_OF_RUN : OCC_SQL_MINUTE_OF_RUN,
                                      OCC_INTS(at, sum->filter->runs[0].id)),
                      hours, span);
    return rc;
}

/* ---- chunks ---- */

/* Finds the group of a launch. False: the filter excludes the launch. */
static bool find_group(const struct occ_resolved_filter *f, const struct occ_filtered_run *run,
                       const struct occ_columns *c, uint32_t i, uint32_t *ret_group)
{
    uint32_t range = c->range ? occ_map_get(&f->ranges, occ_range_key(run->id, c->range[i])) : OCC_MAP_NONE;
    *ret_group = f->by_stream  ? (uint32_t)c->stream[i]
                 : f->by_range ? (range == OCC_MAP_NONE ? 0 : range)
                               : group_of(f, run, c->start_ns ? (int64_t)c->start_ns[i] : 0);
    return (f->stream == 0 || c->stream[i] == (uint64_t)f->stream) &&
           (!f->has_range_filter || range != OCC_MAP_NONE) && (!f->graphs || c->graph_node[i] != 0);
}

static int add_launches(struct sum *sum, const struct occ_columns *c, const struct occ_filtered_run *run,
                        struct occ_span span, bool straddles)
{
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t group = 0;
        if (straddles && ((int64_t)c->start_ns[i] < span.low || (int64_t)c->start_ns[i] >= span.high))
            continue;
        if (!occ_filter_has_config(sum->filter, c->config[i]))
            continue;
        bool is_in = find_group(sum->filter, run, c, i, &group);
        struct occ_totals *t = occ_totals_at(sum->table, (uint64_t)group << 32 | c->config[i]);
        if (!t || (is_in && sum->detailed && !occ_histogram_add(&t->histogram, c->duration_ns[i], 1)))
            return occ_no_memory(sum->err);
        if (is_in)
            occ_totals_add(t, c->start_ns ? (int64_t)c->start_ns[i] : 0, c->duration_ns[i]);
        else
            t->others_ns = occ_add_saturated(t->others_ns, c->duration_ns[i]);
    }
    return 0;
}

/* Adds the launches of a run in chunks that overlap the span. */
static int add_chunks(struct sum *sum, const struct occ_filtered_run *run, struct occ_span span)
{
    if (is_empty(span))
        return 0;
    uint32_t own = own_columns(sum->filter);
    sqlite3_stmt *stmt =
        occ_store_query(sum->store, OCC_SQL_CHUNKS_OF_TIME, OCC_INTS(run->id, span.low, span.high));
    int rc = 0;
    while (occ_store_next(sum->store, stmt, &rc, sum->err)) {
        struct occ_columns columns;
        bool straddles =
            sqlite3_column_int64(stmt, 0) < span.low || sqlite3_column_int64(stmt, 1) >= span.high;
        uint32_t starts = straddles || sum->detailed ? OCC_COLUMN_BIT(start_ns) : 0;
        int unpacked = occ_columns_decode(
            sum->store->work->decoder, sqlite3_column_blob(stmt, 2), (size_t)sqlite3_column_bytes(stmt, 2),
            OCC_COLUMN_BIT(config) | OCC_COLUMN_BIT(duration_ns) | starts | own, &columns);
        rc = unpacked == 0                 ? add_launches(sum, &columns, run, span, straddles)
             : unpacked == OCC_E_NO_MEMORY ? occ_no_memory(sum->err)
                                           : corrupt(sum, "a chunk");
    }
    return rc;
}

/* ---- cutting ---- */

/* Adds the launches in chunks of a span that stored_hour does not answer: launches that are not evicted,
 * outside of the whole minutes that are rolled up. */
static int add_span(struct sum *sum, const struct occ_filtered_run *run, struct occ_span span)
{
    /* no launch is outside of the run's time; whole minutes, so that the first minute is not partial */
    span = intersect(
        span,
        (struct occ_span){occ_round_down(run->first_ns, MINUTE_NS),
                          occ_round_up(run->last_ns < INT64_MAX ? run->last_ns + 1 : INT64_MAX, MINUTE_NS)});
    span = intersect(span, (struct occ_span){run->evicted_ns, INT64_MAX});
    int64_t end_ns = span.high < run->rolled_ns ? span.high : run->rolled_ns;
    struct occ_span minutes = {occ_round_up(span.low, MINUTE_NS), occ_round_down(end_ns, MINUTE_NS)};
    minutes = intersect(minutes, (struct occ_span){sum->filter->first_minute_ns, INT64_MAX});
    if (is_empty(minutes) || is_empty(span))
        return add_chunks(sum, run, span);
    int rc = add_chunks(sum, run, (struct occ_span){span.low, minutes.low});
    return rc != 0 ? rc : add_chunks(sum, run, (struct occ_span){minutes.high, span.high});
}

static int add_run(struct sum *sum, const struct occ_filtered_run *run)
{
    struct occ_span all = sum->filter->time;
    struct occ_span hours = intersect(sum->hours, (struct occ_span){0, run->rolled_ns});
    if (is_empty(hours))
        return add_span(sum, run, all);
    int rc = add_span(sum, run, (struct occ_span){all.low, hours.low});
    return rc != 0 ? rc : add_span(sum, run, (struct occ_span){hours.high, all.high});
}

/* The minutes in which the runs have launches. */
static struct occ_span minutes_of_runs(const struct occ_resolved_filter *f)
{
    int64_t first = INT64_MAX, last = 0;
    for (size_t i = 0; i < f->n_runs; i++) {
        first = f->runs[i].first_ns < first ? f->runs[i].first_ns : first;
        last = f->runs[i].last_ns > last ? f->runs[i].last_ns : last;
    }
    return (struct occ_span){occ_round_down(first, MINUTE_NS),
                             occ_round_up(last < INT64_MAX ? last + 1 : last, MINUTE_NS)};
}

static int add_all_chunks(struct sum *sum)
{
    int rc = 0;
    for (size_t i = 0; i < sum->filter->n_runs && rc == 0; i++)
        rc = add_chunks(sum, &sum->filter->runs[i], sum->filter->time);
    return rc;
}

int occ_sum_by_config(struct occ_store *s, struct occ_resolved_filter *f, bool detailed,
                      struct occ_totals_table *table, struct occ_error *err)
{
    struct sum sum = {.store = s, .filter = f, .table = table, .err = err, .detailed = detailed};
    if (f->n_runs == 0)
        return 0;
    struct occ_span runs = minutes_of_runs(f), minutes = intersect(f->time, runs);
    sum.hours = intersect(
        f->hours, (struct occ_span){occ_round_down(runs.low, HOUR_NS), occ_round_up(runs.high, HOUR_NS)});
    bool no_hours = is_empty(sum.hours);
    if (own_columns(f) != 0)
        return add_all_chunks(&sum);
    int rc = no_hours ? add_rollups(&sum, false, minutes) : add_rollups(&sum, true, sum.hours);
    if (rc == 0 && !no_hours)
        rc = add_rollups(&sum, false, (struct occ_span){minutes.low, sum.hours.low});
    if (rc == 0 && !no_hours)
        rc = add_rollups(&sum, false, (struct occ_span){sum.hours.high, minutes.high});
    for (size_t i = 0; i < f->n_runs && rc == 0; i++)
        rc = add_run(&sum, &f->runs[i]);
    return rc;
}
