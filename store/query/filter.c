/* Resolves a filter to ids and times: runs by run, time and the texts of OCC_FILTER_RUN_TEXTS; ranges by
 * path; configurations by device, kernel and occupancy. One thread. */
#define XXH_INLINE_ALL /* inlined, so that the extension links no library */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "query.h"
#include "support/array.h"

/* Reads a configuration's achieved occupancy: measured, otherwise expected; NaN: unknown. The time of all its
 * launches is not known yet, so a mean over a part of the time counts, too. */
static int read_achieved(struct occ_store *s, const struct occ_resolved_filter *f, sqlite3_stmt *config,
                         double *ret_achieved, struct occ_error *err)
{
    struct occ_measured_sums sums;
    struct occ_measurement means;
    int rc = occ_measured_read(s, f, sqlite3_column_int64(config, 0), OCC_ANY_GROUP, &sums, err);
    if (rc != 0)
        return rc;
    (void)occ_measured_own(&sums, 0, &means);
    *ret_achieved = !isnan(means.achieved)                          ? means.achieved
                    : sqlite3_column_type(config, 2) != SQLITE_NULL ? sqlite3_column_double(config, 2)
                                                                    : NAN;
    return 0;
}

/* Finds the allowed configurations. `kernels` NULL: all. */
static int allow_configs(struct occ_store *s, const struct occ_filter *filter, const struct occ_map *kernels,
                         struct occ_resolved_filter *f, struct occ_error *err)
{
    struct occ_binder b = occ_store_statement(s, OCC_SQL_CONFIGS_OF_DEVICE);
    sqlite3_stmt *stmt = b.stmt;
    int rc = 0;
    occ_bind_text(&b, filter->gpu);
    while (occ_store_next(s, stmt, &rc, err)) {
        double achieved = 0;
        if (kernels && occ_map_get(kernels, (uint64_t)sqlite3_column_int64(stmt, 1)) == OCC_MAP_NONE)
            continue;
        if (filter->below_achieved > 0)
            rc = read_achieved(s, f, stmt, &achieved, err);
        if (rc != 0 || (filter->below_achieved > 0 && !(achieved < filter->below_achieved)))
            continue;
        if (occ_map_put(&f->configs, (uint64_t)sqlite3_column_int64(stmt, 0), 0) == OCC_MAP_NONE)
            rc = occ_no_memory(err);
    }
    return rc;
}

static int find_configs(struct occ_store *s, const struct occ_filter *filter, struct occ_resolved_filter *f,
                        struct occ_error *err)
{
    struct occ_map kernels = {0};
    bool any_kernel = !filter->kernel && !filter->kernel_regex && !filter->exclude_regex;
    f->any_config = any_kernel && !filter->gpu && !(filter->below_achieved > 0);
    if (f->any_config)
        return 0;
    int rc = any_kernel ? 0 : occ_store_choose_kernels(s, filter, &kernels, err);
    if (rc == 0)
        rc = allow_configs(s, filter, any_kernel ? NULL : &kernels, f, err);
    occ_map_free(&kernels);
    return rc;
}

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Returns the index of the first run with this text; the caller is about to append a run with it.
 * OCC_MAP_NONE: no memory. */
static uint32_t find_group(struct occ_resolved_filter *f, const char *text)
{
    uint64_t hash = text ? XXH3_64bits(text, strlen(text)) : 0;
    uint32_t i = occ_map_put(&f->groups, hash, (uint32_t)f->n_runs);
    if (i == OCC_MAP_NONE || is_same(f->runs[i].text, text))
        return i;
    /* skip other texts with the same hash */
    for (i = 0; f->runs[i].group != i || !is_same(f->runs[i].text, text);)
        i++;
    return i;
}

/* Sets the run's group: the first run with the same text. */
static bool set_group(struct occ_resolved_filter *f, sqlite3_stmt *stmt, enum occ_top_by by,
                      struct occ_filtered_run *run)
{
    static const int columns[] = {
        [OCC_TOP_BY_RUN] = 5, [OCC_TOP_BY_RANK] = 6,  [OCC_TOP_BY_USER] = 7,     [OCC_TOP_BY_LABEL] = 8,
        [OCC_TOP_BY_JOB] = 9, [OCC_TOP_BY_NODE] = 10, [OCC_TOP_BY_ACCOUNT] = 11, [OCC_TOP_BY_PARTITION] = 12};
    if (by < OCC_TOP_BY_RUN || by > OCC_TOP_BY_NODE)
        return true;
    const char *text = (const char *)sqlite3_column_text(stmt, columns[by]);
    if (by == OCC_TOP_BY_RUN && text && strrchr(text, '/'))
        text = strrchr(text, '/') + 1; /* file name of the program or recording */
    bool done = !text || (run->text = strdup(text)) != NULL;
    run->group = (uint32_t)f->n_runs;
    if (done && by != OCC_TOP_BY_RUN)
        run->group = find_group(f, text);
    return done && run->group != OCC_MAP_NONE;
}

static bool add_run(struct occ_resolved_filter *f, sqlite3_stmt *stmt, enum occ_top_by by)
{
    if (!occ_grow((void **)&f->runs, &f->runs_allocated, f->n_runs, UINT32_MAX, sizeof *f->runs))
        return false;
    struct occ_filtered_run *run = &f->runs[f->n_runs];
    *run = (struct occ_filtered_run){.id = sqlite3_column_int64(stmt, 0),
                                     .first_ns = sqlite3_column_int64(stmt, 1),
                                     .last_ns = sqlite3_column_int64(stmt, 2),
                                     .rolled_ns = sqlite3_column_int64(stmt, 3)};
    run->evicted_ns = occ_round_up(occ_column_clamped(stmt, 4, 0, INT64_MAX), MINUTE_NS);
    bool done = set_group(f, stmt, by, run);
    return occ_map_put(&f->run_index, (uint64_t)run->id, (uint32_t)f->n_runs++) != OCC_MAP_NONE && done;
}

void occ_filter_bind_runs(sqlite3_stmt *stmt, const struct occ_filter *filter)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{":run", filter->run},
                   {":first_run", filter->first_run},
                   {":last_run", filter->last_run},
                   {":since", filter->since_ns},
                   {":until", filter->until_ns}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        (void)sqlite3_bind_int64(stmt, sqlite3_bind_parameter_index(stmt, numbers[i].name), numbers[i].value);
#define BIND_TEXT(member, before, after)                                                                     \
    (void)sqlite3_bind_text(stmt, sqlite3_bind_parameter_index(stmt, ":" #member), filter->member, -1,       \
                            SQLITE_TRANSIENT);
    OCC_FILTER_RUN_TEXTS(BIND_TEXT)
}

static int find_runs(struct occ_store *s, const struct occ_filter *filter, enum occ_top_by by,
                     struct occ_resolved_filter *f, struct occ_error *err)
{
    struct occ_binder b =
        occ_store_statement(s, filter->run > 0 ? OCC_SQL_RUN_OF_FILTER : OCC_SQL_RUNS_OF_FILTER);
    int rc = 0;
    occ_filter_bind_runs(b.stmt, filter);
    while (occ_store_next(s, b.stmt, &rc, err))
        if (!add_run(f, b.stmt, by))
            rc = occ_no_memory(err);
    return rc;
}

static int find_retention(struct occ_store *s, struct occ_resolved_filter *f, struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_FIRST_MINUTE, NULL, 0);
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err))
        f->first_minute_ns = occ_column_clamped(stmt, 0, 0, INT64_MAX / MINUTE_NS) * MINUTE_NS;
    return rc;
}

/* The whole hours of the filter's time. If the minutes of its last, partial hour were evicted, the whole hour
 * counts. */
static struct occ_span whole_hours(const struct occ_resolved_filter *f)
{
    struct occ_span hours = {occ_round_up(f->time.low, HOUR_NS), occ_round_down(f->time.high, HOUR_NS)};
    if (hours.high < f->time.high && hours.high <= f->first_minute_ns - HOUR_NS)
        hours.high += HOUR_NS;
    return hours;
}

int occ_filter_resolve(struct occ_store *s, const struct occ_filter *filter, enum occ_top_by by,
                       struct occ_resolved_filter *f, struct occ_error *err)
{
    *f = (struct occ_resolved_filter){.stream = filter->stream,
                                      .by_stream = by == OCC_TOP_BY_STREAM,
                                      .unit_ns = by == OCC_TOP_BY_MINUTE ? MINUTE_NS
                                                 : by == OCC_TOP_BY_HOUR ? HOUR_NS
                                                 : by == OCC_TOP_BY_DAY  ? 24 * HOUR_NS
                                                                         : 0,
                                      .by_range = by == OCC_TOP_BY_RANGE || by == OCC_TOP_BY_LAYER,
                                      .by_phase = by == OCC_TOP_BY_LAYER,
                                      .has_range_filter = filter->range_regex != NULL,
                                      .graphs = filter->graphs,
                                      .time = {filter->since_ns > 0 ? filter->since_ns : 0,
                                               filter->until_ns > 0 ? filter->until_ns : INT64_MAX}};
    int rc = find_retention(s, f, err);
    f->hours = f->unit_ns == MINUTE_NS ? (struct occ_span){0, 0} : whole_hours(f);
    if (rc == 0)
        rc = find_runs(s, filter, by, f, err);
    if (rc == 0)
        rc = occ_filter_resolve_ranges(s, filter->range_regex, f, err);
    if (rc == 0) /* below_achieved compares values of the runs that find_runs() found */
        rc = find_configs(s, filter, f, err);
    if (rc != 0)
        occ_resolved_filter_free(f);
    return rc;
}

void occ_resolved_filter_free(struct occ_resolved_filter *f)
{
    occ_map_free(&f->configs);
    occ_map_free(&f->run_index);
    occ_map_free(&f->groups);
    for (size_t i = 0; i < f->n_runs; i++)
        free(f->runs[i].text);
    free(f->runs);
    occ_map_free(&f->ranges);
    occ_arena_free(f->range_texts.blocks);
    free(f->range_groups);
    *f = (struct occ_resolved_filter){0};
}

int occ_store_choose_ranges(struct occ_store *s, const char *text, struct occ_map *ret_ranges,
                            struct occ_error *err)
{
    struct occ_resolved_filter f = {0};
    int rc = occ_filter_resolve_ranges(s, text, &f, err);
    if (rc == 0) {
        *ret_ranges = f.ranges;
        f.ranges = (struct occ_map){0};
    }
    occ_resolved_filter_free(&f);
    return rc;
}
