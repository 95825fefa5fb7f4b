/* `show`: all data about a filter's launch configurations. One thread. */
#include <stdlib.h>

#include "query.h"

struct query {
    struct occ_store *store;
    struct occ_error *err;
    struct occ_resolved_filter filter;
    int64_t run; /* the filter's run; 0: any */
    struct occ_totals_table totals;
    struct occ_arena arena;
};

/* A copy of a column; NULL: the column is NULL. */
static const char *copy_text(struct query *q, sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    return text ? occ_arena_copy(&q->arena, text) : NULL;
}

static uint32_t read_u32(sqlite3_stmt *stmt, int column)
{
    return (uint32_t)occ_column_clamped(stmt, column, 0, UINT32_MAX);
}

static void read_launch(sqlite3_stmt *stmt, int *at, struct occ_launch *launch)
{
#define READ_LAUNCH(column, field)                                                                           \
    launch->field = (__typeof__(launch->field))sqlite3_column_int64(stmt, (*at)++);
    OCC_LAUNCH_COLUMNS(READ_LAUNCH)
}

static void read_limits(sqlite3_stmt *stmt, int *at, struct occ_device *limits)
{
#define READ_LIMIT(column, field) limits->field = read_u32(stmt, (*at)++);
    OCC_DEVICE_COLUMNS(READ_LIMIT)
}

static void read_result(sqlite3_stmt *stmt, int *at, struct occ_result *result)
{
#define READ_REAL(column, field) result->field = sqlite3_column_double(stmt, (*at)++);
    OCC_RESULT_REALS(READ_REAL)
#define READ_INTEGER(column, field, type) result->field = (type)sqlite3_column_int64(stmt, (*at)++);
    OCC_RESULT_INTEGERS(READ_INTEGER)
    for (unsigned i = 0; i < OCC_LIMIT_COUNT; i++, (*at)++)
        result->limit[i] = sqlite3_column_type(stmt, *at) == SQLITE_NULL ? OCC_NO_LIMIT : read_u32(stmt, *at);
    for (unsigned i = 0; i < OCC_CAUSE_COUNT; i++)
        result->cause[i] = sqlite3_column_double(stmt, (*at)++);
}

/* The model divides by these numbers. A file from another person may have any; a configuration with an
 * impossible one counts as not analysed. */
static bool is_possible(const struct occ_device *limits, const struct occ_result *result)
{
    return limits->warp_size > 0 && limits->sm_count > 0 && result->wave_blocks > 0 &&
           result->warps_per_block > 0 && result->max_warps_per_sm > 0;
}

/* A row of OCC_SQL_CONFIG_DETAILS. */
static void read_config(struct query *q, sqlite3_stmt *stmt, struct occ_config_row *row)
{
    int at = 0;
    row->kernel.id = sqlite3_column_int64(stmt, at++);
    row->kernel.device = sqlite3_column_int64(stmt, at++);
    const char **const names[] = {&row->kernel.short_name, &row->kernel.demangled, &row->kernel.mangled,
                                  &row->kernel.device_name};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        *names[i] = occ_arena_copy(&q->arena, (const char *)sqlite3_column_text(stmt, at++));
    row->kernel.simulated = sqlite3_column_int(stmt, at++) != 0;
    row->launch.smem_optin_known = sqlite3_column_type(stmt, at) != SQLITE_NULL;
    row->launch.smem_optin = sqlite3_column_int(stmt, at++) != 0;
    row->local_bytes_per_thread = (uint32_t)sqlite3_column_int64(stmt, at++);
    row->refused = copy_text(q, stmt, at++);
    row->model_version = (uint32_t)sqlite3_column_int64(stmt, at++);
    row->analysed = sqlite3_column_int(stmt, at++) != 0;
    read_launch(stmt, &at, &row->launch);
    read_limits(stmt, &at, &row->limits);
    if (row->analysed)
        read_result(stmt, &at, &row->result);
    row->analysed = row->analysed && is_possible(&row->limits, &row->result);
}

static void fill_durations(struct query *q, const struct occ_histogram *h, struct occ_duration_bins *ret_bins)
{
    size_t n = 0;
    for (uint32_t i = 0; i < h->count; i++)
        n += h->bins[i] != 0;
    struct occ_duration_bin *list = occ_arena_get(&q->arena, n + 1, sizeof *list);
    *ret_bins = (struct occ_duration_bins){.list = list};
    for (uint32_t i = 0; list && i < h->count; i++)
        if (h->bins[i])
            list[ret_bins->n++] = (struct occ_duration_bin){occ_histogram_low(h->first + i),
                                                            occ_histogram_low(h->first + i + 1), h->bins[i]};
}

static void fill_totals(const struct occ_totals *t, struct occ_config_row *row)
{
    row->launches = t->launches;
    row->total_ns = t->total_ns;
    row->min_ns = t->min_ns;
    row->max_ns = t->max_ns;
    row->first_ns = t->first_ns;
    row->last_ns = t->last_ns;
    uint64_t *const quantiles[] = {&row->p50_ns, &row->p95_ns, &row->p99_ns};
    static const double shares[] = {0.50, 0.95, 0.99};
    for (size_t i = 0; i < 3; i++)
        *quantiles[i] = occ_histogram_quantile_within(&t->histogram, shares[i], t->min_ns, t->max_ns);
}

static void fill_waste(double all_ns, struct occ_config_row *row)
{
    struct occ_measurement means;
    struct occ_waterfall waterfall;
    row->measurable_ns = all_ns;
    row->waste.warp_seconds = NAN;
    row->waste.measured_ratio = occ_measured_own(&row->measured, all_ns, &means);
    if (!row->analysed)
        return;
    occ_explain_partly(&row->result, &means, row->waste.measured_ratio, &waterfall);
    row->waste.warp_seconds = (double)row->total_ns * 1e-9 * row->limits.sm_count *
                              row->result.max_warps_per_sm * fmax(1 - waterfall.used, 0);
}

static void add_reported(struct occ_reported_occupancy *reported, sqlite3_stmt *stmt)
{
    uint64_t n = (uint64_t)sqlite3_column_int64(stmt, 3), sum = reported->launches + n;
    double low = sqlite3_column_double(stmt, 5), high = sqlite3_column_double(stmt, 6);
    if (n == 0)
        return;
    reported->mean += (sqlite3_column_double(stmt, 4) - reported->mean) * (double)n / (double)sum;
    reported->min = reported->launches == 0 || low < reported->min ? low : reported->min;
    reported->max = reported->launches == 0 || high > reported->max ? high : reported->max;
    reported->launches = sum;
}

/* Reads the occupancy of a configuration that recordings among the filter's runs report, and their missing
 * fields. */
static int read_reported(struct query *q, struct occ_config_row *row)
{
    sqlite3_stmt *stmt = occ_store_query(q->store, OCC_SQL_REPORTED, OCC_INTS(row->id));
    int rc = 0;
    while (occ_store_next(q->store, stmt, &rc, q->err)) {
        if (occ_map_get(&q->filter.run_index, (uint64_t)sqlite3_column_int64(stmt, 0)) == OCC_MAP_NONE)
            continue;
        add_reported(&row->reported, stmt);
        row->source = copy_text(q, stmt, 1);
        row->missing_fields = copy_text(q, stmt, 2);
    }
    return rc;
}

/* Reads the values of Nsight Compute's reports for the configuration; reports of the filter's run come
 * first. */
static int read_ncu(struct query *q, struct occ_config_row *row)
{
    const struct occ_ncu_value **end = &row->ncu.first;
    sqlite3_stmt *stmt = occ_store_query(q->store, OCC_SQL_NCU_METRICS, OCC_INTS(row->id, q->run));
    int rc = 0;
    while (occ_store_next(q->store, stmt, &rc, q->err)) {
        struct occ_ncu_value *value = occ_arena_get(&q->arena, 1, sizeof *value);
        uint64_t launches = (uint64_t)sqlite3_column_int64(stmt, 1);
        if (!value)
            continue; /* the arena is out of memory */
        *value =
            (struct occ_ncu_value){.metric = copy_text(q, stmt, 2), .mean = sqlite3_column_double(stmt, 3)};
        row->ncu.run = sqlite3_column_int64(stmt, 0);
        row->ncu.launches = launches > row->ncu.launches ? launches : row->ncu.launches;
        *end = value;
        end = &value->next;
    }
    return rc;
}

/* Makes a row and counts it in n, unless the file has no such configuration. */
static int make_row(struct query *q, const struct occ_totals *t, struct occ_config_row *row, size_t *n)
{
    sqlite3_stmt *stmt = occ_store_query(q->store, OCC_SQL_CONFIG_DETAILS, OCC_INTS((int64_t)t->key));
    int rc = 0;
    while (occ_store_next(q->store, stmt, &rc, q->err)) {
        row->id = (int64_t)t->key;
        read_config(q, stmt, row);
    }
    if (rc != 0 || row->id == 0)
        return rc;
    fill_totals(t, row);
    fill_durations(q, &t->histogram, &row->durations);
    rc = read_reported(q, row);
    if (rc == 0)
        rc = occ_measured_read(q->store, &q->filter, row->id, OCC_ANY_GROUP, &row->measured, q->err);
    if (rc == 0)
        rc = read_ncu(q, row);
    fill_waste(occ_totals_all_ns(t), row);
    ++*n;
    return rc;
}

static int by_kernel_and_time(const void *a, const void *b)
{
    const struct occ_config_row *x = a, *y = b;
    if (x->kernel.id != y->kernel.id)
        return x->kernel.id < y->kernel.id ? -1 : 1;
    if (x->kernel.device != y->kernel.device)
        return x->kernel.device < y->kernel.device ? -1 : 1;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int make_rows(struct query *q, struct occ_config_rows *ret_rows)
{
    struct occ_config_row *rows = calloc(q->totals.n + 1, sizeof *rows);
    size_t n = 0;
    int rc = rows ? 0 : occ_no_memory(q->err);
    for (uint32_t i = 0; i < q->totals.n && rc == 0; i++)
        rc = q->totals.entries[i].launches == 0 ? 0 : make_row(q, &q->totals.entries[i], &rows[n], &n);
    if (rc == 0 && q->arena.failed)
        rc = occ_no_memory(q->err);
    if (rc != 0) {
        free(rows);
        return rc;
    }
    qsort(rows, n, sizeof *rows, by_kernel_and_time);
    *ret_rows = (struct occ_config_rows){.rows = rows, .n = n, .memory = q->arena.blocks};
    q->arena.blocks = NULL;
    return 0;
}

static int take_totals(struct query *q, const struct occ_config_total *totals, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct occ_totals *t = occ_totals_at(&q->totals, (uint64_t)totals[i].config);
        if (!t)
            return occ_no_memory(q->err);
        t->launches = totals[i].launches;
        t->total_ns = totals[i].total_ns;
    }
    return 0;
}

/* Answers from `totals`, or from the launches if it is NULL. */
static int answer(struct query *q, const struct occ_filter *filter, const struct occ_config_total *totals,
                  size_t n, struct occ_config_rows *ret_rows)
{
    int rc = occ_store_execute(q->store, OCC_SQL_BEGIN, NULL, 0, q->err);
    if (rc != 0)
        return rc;
    rc = occ_filter_resolve(q->store, filter, OCC_TOP_BY_KERNEL, &q->filter, q->err);
    if (rc == 0)
        rc = totals ? take_totals(q, totals, n)
                    : occ_sum_by_config(q->store, &q->filter, true, &q->totals, q->err);
    if (rc == 0)
        rc = make_rows(q, ret_rows);
    occ_store_rollback(q->store);
    occ_resolved_filter_free(&q->filter);
    occ_totals_table_free(&q->totals);
    occ_arena_free(q->arena.blocks);
    return rc;
}

int occ_store_configs(struct occ_store *s, const struct occ_filter *filter, struct occ_config_rows *ret_rows,
                      struct occ_error *err)
{
    return answer(&(struct query){.store = s, .err = err, .run = filter->run}, filter, NULL, 0, ret_rows);
}

int occ_store_configs_of(struct occ_store *s, const struct occ_filter *filter,
                         const struct occ_config_total *totals, size_t n, struct occ_config_rows *ret_rows,
                         struct occ_error *err)
{
    return answer(&(struct query){.store = s, .err = err, .run = filter->run}, filter, totals, n, ret_rows);
}

int occ_store_read_config(struct occ_store *s, int64_t config, struct occ_config_rows *ret_rows,
                          struct occ_error *err)
{
    struct query q = {.store = s, .err = err};
    struct occ_config_row *row = calloc(1, sizeof *row);
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_CONFIG_DETAILS, OCC_INTS(config));
    int rc = row ? 0 : occ_no_memory(err);
    while (row && occ_store_next(s, stmt, &rc, err)) {
        row->id = config;
        read_config(&q, stmt, row);
    }
    if (rc == 0 && q.arena.failed)
        rc = occ_no_memory(err);
    *ret_rows = (struct occ_config_rows){.rows = row, .n = row && row->id, .memory = q.arena.blocks};
    if (rc != 0)
        occ_config_rows_free(ret_rows);
    return rc;
}

void occ_config_rows_free(struct occ_config_rows *rows)
{
    free(rows->rows);
    occ_arena_free(rows->memory);
    *rows = (struct occ_config_rows){0};
}
