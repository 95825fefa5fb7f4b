/* `show`: everything about the configurations that fit a filter. One thread. */
#include <math.h>
#include <stdlib.h>

#include "arena.h"
#include "sum_by_config.h"
#include "store/config_columns.h"

#define CONFIG_COLUMN_2(a, b)    ", s." #a
#define CONFIG_COLUMN_3(a, b, c) ", s." #a
#define DEVICE_COLUMN_2(a, b)    ", d." #a

static const char config_sql[] =
    "SELECT s.kernel_id, s.device_id, k.short, k.demangled, k.mangled, d.name, d.simulated, s.shared_optin, "
    "s.local_bytes_per_thread, s.refused, s.theoretical IS NOT NULL" OCC_LAUNCH_COLUMNS(CONFIG_COLUMN_2)
        OCC_DEVICE_COLUMNS(DEVICE_COLUMN_2) OCC_RESULT_REALS(CONFIG_COLUMN_2)
            OCC_RESULT_INTEGERS(CONFIG_COLUMN_3) OCC_LIMITS(OCC_COLUMN_LIMIT) OCC_CAUSES(
                OCC_COLUMN_CAUSE) " FROM stored_launch_config s JOIN stored_kernel k USING(kernel_id) "
                                  "JOIN stored_device d USING(device_id) WHERE s.config_id = ?";

struct ask {
    struct occ_store *store;
    struct occ_error *err;
    struct occ_totals_table totals;
    struct occ_arena arena;
};

static void read_launch(sqlite3_stmt *stmt, int *at, struct occ_launch *launch)
{
#define X(column, field) launch->field = (__typeof__(launch->field))sqlite3_column_int64(stmt, (*at)++);
    OCC_LAUNCH_COLUMNS(X)
#undef X
}

static void read_limits(sqlite3_stmt *stmt, int *at, struct occ_device *limits)
{
#define X(column, field) limits->field = (uint32_t)sqlite3_column_int64(stmt, (*at)++);
    OCC_DEVICE_COLUMNS(X)
#undef X
}

static void read_result(sqlite3_stmt *stmt, int *at, struct occ_result *result)
{
#define X(column, field) result->field = sqlite3_column_double(stmt, (*at)++);
    OCC_RESULT_REALS(X)
#undef X
#define X(column, field, type) result->field = (type)sqlite3_column_int64(stmt, (*at)++);
    OCC_RESULT_INTEGERS(X)
#undef X
    for (unsigned i = 0; i < OCC_LIMIT_COUNT; i++, (*at)++)
        result->limit[i] = sqlite3_column_type(stmt, *at) == SQLITE_NULL
                               ? OCC_NO_LIMIT
                               : (uint32_t)sqlite3_column_int64(stmt, *at);
    for (unsigned i = 0; i < OCC_CAUSE_COUNT; i++)
        result->cause[i] = sqlite3_column_double(stmt, (*at)++);
}

static void read_config(struct ask *a, sqlite3_stmt *stmt, struct occ_config_row *row)
{
    int at = 0;
    row->kernel = sqlite3_column_int64(stmt, at++);
    row->device = sqlite3_column_int64(stmt, at++);
    const char **const names[] = {&row->short_name, &row->demangled, &row->mangled, &row->device_name};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *copy = occ_arena_copy(&a->arena, (const char *)sqlite3_column_text(stmt, at++));
        *names[i] = copy ? copy : "?";
    }
    row->simulated = sqlite3_column_int(stmt, at++) != 0;
    row->launch.smem_optin_known = sqlite3_column_type(stmt, at) != SQLITE_NULL;
    row->launch.smem_optin = sqlite3_column_int(stmt, at++) != 0;
    row->local_bytes_per_thread = (uint32_t)sqlite3_column_int64(stmt, at++);
    row->refused = occ_arena_copy(&a->arena, (const char *)sqlite3_column_text(stmt, at++));
    row->analysed = sqlite3_column_int(stmt, at++) != 0;
    read_launch(stmt, &at, &row->launch);
    read_limits(stmt, &at, &row->limits);
    if (row->analysed)
        read_result(stmt, &at, &row->result);
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
    for (size_t i = 0; i < 3; i++) {
        uint64_t q = occ_histogram_quantile(&t->histogram, shares[i]);
        *quantiles[i] = q < t->min_ns ? t->min_ns : q > t->max_ns ? t->max_ns : q;
    }
}

static void fill_waste(struct occ_config_row *row)
{
    struct occ_measurement means;
    struct occ_waterfall waterfall;
    row->waste_warp_seconds = NAN;
    if (!row->analysed)
        return;
    occ_measured_means(&row->measured, &means);
    occ_explain(&row->result, &means, &waterfall);
    row->waste_warp_seconds = (double)row->total_ns * 1e-9 * row->limits.sm_count *
                              row->result.max_warps_per_sm * (1 - waterfall.used);
}

/* The occupancy that recordings among the filter's runs report for a configuration, and the fields they lack. */
static const char reported_sql[] =
    "SELECT r.run_id, r.source, r.missing_fields, coalesce(c.launches, 0), c.mean, c.min, c.max "
    "FROM stored_run r JOIN stored_run_config x ON x.run_id = r.run_id AND x.config_id = ?1 "
    "LEFT JOIN stored_reported_occupancy c ON c.run_id = r.run_id AND c.config_id = x.config_id "
    "WHERE r.source_hash IS NOT NULL";

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

static int read_reported(struct ask *a, const struct occ_scope *scope, sqlite3_stmt *stmt,
                         struct occ_config_row *row)
{
    int step;
    (void)sqlite3_bind_int64(stmt, 1, row->id);
    while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (occ_map_get(&scope->run_index, (uint64_t)sqlite3_column_int64(stmt, 0)) == OCC_MAP_NONE)
            continue;
        add_reported(&row->reported, stmt);
        row->source = occ_arena_copy(&a->arena, (const char *)sqlite3_column_text(stmt, 1));
        row->missing_fields = occ_arena_copy(&a->arena, (const char *)sqlite3_column_text(stmt, 2));
    }
    (void)sqlite3_reset(stmt);
    return step == SQLITE_DONE
               ? 0
               : occ_sql_fail(a->store->db, a->store->path, step, a->err, "cannot read reported occupancy");
}

static int most_time_first(const void *a, const void *b)
{
    const struct occ_config_row *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int make_rows(struct ask *a, const struct occ_scope *scope, struct occ_config_rows *ret_configs)
{
    struct occ_config_row *rows = calloc(a->totals.n + 1, sizeof *rows);
    sqlite3_stmt *stmt = NULL, *reported = NULL, *measured = NULL;
    size_t n = 0;
    int rc = rows ? occ_ask_prepare(a->store, config_sql, &stmt, a->err) : occ_store_no_memory(a->err);
    if (rc == 0)
        rc = occ_ask_prepare(a->store, reported_sql, &reported, a->err);
    if (rc == 0)
        rc = occ_measured_prepare(a->store, &measured, a->err);
    for (uint32_t i = 0; i < a->totals.n && rc == 0; i++) {
        const struct occ_totals *t = &a->totals.entries[i];
        (void)sqlite3_bind_int64(stmt, 1, (int64_t)t->key);
        int step = sqlite3_step(stmt);
        if (step == SQLITE_ROW) {
            struct occ_config_row *row = &rows[n++];
            row->id = (int64_t)t->key;
            read_config(a, stmt, row);
            fill_totals(t, row);
            rc = read_reported(a, scope, reported, row);
            if (rc == 0)
                rc = occ_measured_read(a->store, scope, row->id, measured, &row->measured, a->err);
            fill_waste(row);
        } else if (step != SQLITE_DONE) {
            rc = occ_sql_fail(a->store->db, a->store->path, step, a->err,
                              "cannot read a launch configuration");
        }
        (void)sqlite3_reset(stmt);
    }
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_finalize(measured);
    (void)sqlite3_finalize(reported);
    if (rc == 0 && a->arena.failed)
        rc = occ_store_no_memory(a->err);
    if (rc != 0) {
        free(rows);
        return rc;
    }
    qsort(rows, n, sizeof *rows, most_time_first);
    *ret_configs = (struct occ_config_rows){.rows = rows, .n = n, .memory = occ_arena_take(&a->arena)};
    return 0;
}

int occ_store_configs(struct occ_store *s, const struct occ_filter *filter,
                      struct occ_config_rows *ret_configs, struct occ_error *err)
{
    struct ask a = {.store = s, .err = err};
    struct occ_scope scope = {0};
    int rc = occ_store_do(s, OCC_SQL_BEGIN, err);
    if (rc != 0)
        return rc;
    rc = occ_scope_open(s, filter, &scope, err);
    if (rc == 0)
        rc = occ_gather(s, &scope, true, &a.totals, err);
    if (rc == 0)
        rc = make_rows(&a, &scope, ret_configs);
    occ_store_rollback(s);
    occ_scope_close(&scope);
    occ_totals_table_free(&a.totals);
    occ_arena_free_blocks(occ_arena_take(&a.arena));
    return rc;
}

void occ_config_rows_free(struct occ_config_rows *configs)
{
    free(configs->rows);
    occ_arena_free_blocks(configs->memory);
    *configs = (struct occ_config_rows){0};
}
