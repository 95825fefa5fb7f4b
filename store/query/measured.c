/* Sums of measured values, from whole hours if the time contains any, and from minutes otherwise. One
 * thread. */
#include "query.h"

static void add_row(sqlite3_stmt *stmt, struct occ_measured_sums *sums)
{
    int at = 1;
#define X(name, text)                                                                                        \
    sums->name = occ_add_saturated(sums->name, (uint64_t)occ_column_clamped(stmt, at++, 0, INT64_MAX));
    OCC_MEASURED_SOURCES(X)
    X(overlapped, "")
    for (int k = 0; k < OCC_MEASURED_VALUE_COUNT; k++) {
        sums->sum[k] += sqlite3_column_double(stmt, at++);
        sums->ns[k] += sqlite3_column_double(stmt, at++);
    }
#define ADD_ONE(name) sums->name += sqlite3_column_double(stmt, at++);
    OCC_MEASURED_EVIDENCE(ADD_ONE)
}

struct read {
    struct occ_store *store;
    const struct occ_resolved_filter *filter;
    int64_t config, group;
    struct occ_measured_sums *sums;
    struct occ_error *err;
};

/* Adds rows in [low, high), in units of time of the statement's table. */
static int add_rows(const struct read *read, enum occ_sql which, int64_t low, int64_t high)
{
    const struct occ_resolved_filter *f = read->filter;
    int rc = 0;
    if (f->n_runs == 1) { /* its minutes or hours: the time for a run does not grow with that of others */
        int64_t unit_ns = which == OCC_SQL_MEASURED_HOURS ? HOUR_NS : MINUTE_NS;
        int64_t first = f->runs[0].first_ns / unit_ns, end = f->runs[0].last_ns / unit_ns + 1;
        low = low > first ? low : first;
        high = high < end ? high : end;
    }
    if (low >= high)
        return 0;
    sqlite3_stmt *stmt = occ_store_query(read->store, which, OCC_INTS(read->config, low, high));
    while (occ_store_next(read->store, stmt, &rc, read->err)) {
        uint32_t at = occ_map_get(&f->run_index, (uint64_t)sqlite3_column_int64(stmt, 0));
        if (at != OCC_MAP_NONE && (read->group == OCC_ANY_GROUP || f->runs[at].group == read->group))
            add_row(stmt, read->sums);
    }
    return rc;
}

int occ_measured_first(struct occ_store *s, const struct occ_resolved_filter *f, int64_t config,
                       struct occ_measured_rows *ret_rows, struct occ_error *err)
{
    bool hours = f->unit_ns >= HOUR_NS;
    int64_t unit_ns = hours ? HOUR_NS : MINUTE_NS;
    int rc = 0;
    ret_rows->in_unit = f->unit_ns / unit_ns;
    ret_rows->stmt = occ_store_query(
        s, hours ? OCC_SQL_MEASURED_HOURS : OCC_SQL_MEASURED_MINUTES,
        OCC_INTS(config, f->time.low / unit_ns, occ_round_up(f->time.high, unit_ns) / unit_ns));
    ret_rows->has_row = occ_store_next(s, ret_rows->stmt, &rc, err);
    return rc;
}

int occ_measured_of_unit(struct occ_store *s, const struct occ_resolved_filter *f,
                         struct occ_measured_rows *rows, int64_t group, struct occ_measured_sums *ret_sums,
                         struct occ_error *err)
{
    int rc = 0, last = rows->has_row ? sqlite3_column_count(rows->stmt) - 1 : 0;
    *ret_sums = (struct occ_measured_sums){0};
    while (rows->has_row && sqlite3_column_int64(rows->stmt, last) / rows->in_unit <= group) {
        if (sqlite3_column_int64(rows->stmt, last) / rows->in_unit == group &&
            occ_map_get(&f->run_index, (uint64_t)sqlite3_column_int64(rows->stmt, 0)) != OCC_MAP_NONE)
            add_row(rows->stmt, ret_sums);
        rows->has_row = occ_store_next(s, rows->stmt, &rc, err);
    }
    return rc;
}

int occ_measured_read(struct occ_store *s, const struct occ_resolved_filter *f, int64_t config, int64_t group,
                      struct occ_measured_sums *ret_sums, struct occ_error *err)
{
    const struct read read = {s, f, config, group, ret_sums, err};
    struct occ_span minutes = {f->time.low / MINUTE_NS, occ_round_up(f->time.high, MINUTE_NS) / MINUTE_NS};
    struct occ_span hours = {f->hours.low / HOUR_NS, f->hours.high / HOUR_NS};
    if (hours.low >= hours.high) /* no whole hour in the time: read minutes only */
        hours.low = hours.high = minutes.high / 60 + 1;
    int64_t before = hours.low * 60 < minutes.high ? hours.low * 60 : minutes.high;
    *ret_sums = (struct occ_measured_sums){0};
    int rc = add_rows(&read, OCC_SQL_MEASURED_MINUTES, minutes.low, before);
    if (rc == 0)
        rc = add_rows(&read, OCC_SQL_MEASURED_HOURS, hours.low, hours.high);
    if (rc == 0 && f->time.high < INT64_MAX) /* if the time has no end, the last hour covers the rest */
        rc = add_rows(&read, OCC_SQL_MEASURED_MINUTES, hours.high * 60, minutes.high);
    return rc;
}
