/* `show`: everything about the shapes that fit a filter. One thread. */
#include <math.h>
#include <stdlib.h>

#include "arena.h"
#include "sum_by_config.h"
#include "store/shape_columns.h"

#define SHAPE_COLUMN_2(a, b)    ", s." #a
#define SHAPE_COLUMN_3(a, b, c) ", s." #a
#define DEVICE_COLUMN_2(a, b)   ", d." #a

static const char shape_sql[] =
    "SELECT s.kernel_id, s.device_id, k.short, k.demangled, k.mangled, d.name, d.simulated, s.shared_optin, "
    "s.local_bytes_per_thread, s.refused, s.theoretical IS NOT NULL" OCC_LAUNCH_COLUMNS(SHAPE_COLUMN_2)
        OCC_DEVICE_COLUMNS(DEVICE_COLUMN_2) OCC_RESULT_REALS(SHAPE_COLUMN_2)
            OCC_RESULT_INTEGERS(SHAPE_COLUMN_3) OCC_LIMITS(OCC_COLUMN_LIMIT) OCC_CAUSES(
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

static void read_shape(struct ask *a, sqlite3_stmt *stmt, struct occ_shape_row *row)
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

static void fill_totals(const struct occ_totals *t, struct occ_shape_row *row)
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

static void fill_waste(struct occ_shape_row *row)
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

/* What recordings among the scope's runs claim of a shape, and what they never say. */
static const char claim_sql[] =
    "SELECT r.run_id, r.source, r.missing_fields, coalesce(c.launches, 0), c.mean, c.min, c.max "
    "FROM stored_run r JOIN stored_run_config x ON x.run_id = r.run_id AND x.config_id = ?1 "
    "LEFT JOIN stored_reported_occupancy c ON c.run_id = r.run_id AND c.config_id = x.config_id "
    "WHERE r.source_hash IS NOT NULL";

static void add_claim(struct occ_claim *claim, sqlite3_stmt *stmt)
{
    uint64_t n = (uint64_t)sqlite3_column_int64(stmt, 3), sum = claim->launches + n;
    double low = sqlite3_column_double(stmt, 5), high = sqlite3_column_double(stmt, 6);
    if (n == 0)
        return;
    claim->mean += (sqlite3_column_double(stmt, 4) - claim->mean) * (double)n / (double)sum;
    claim->min = claim->launches == 0 || low < claim->min ? low : claim->min;
    claim->max = claim->launches == 0 || high > claim->max ? high : claim->max;
    claim->launches = sum;
}

static int read_claim(struct ask *a, const struct occ_scope *scope, sqlite3_stmt *stmt,
                      struct occ_shape_row *row)
{
    int step;
    (void)sqlite3_bind_int64(stmt, 1, row->id);
    while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (occ_map_get(&scope->run_index, (uint64_t)sqlite3_column_int64(stmt, 0)) == OCC_MAP_NONE)
            continue;
        add_claim(&row->claim, stmt);
        row->claim_source = occ_arena_copy(&a->arena, (const char *)sqlite3_column_text(stmt, 1));
        row->lacks = occ_arena_copy(&a->arena, (const char *)sqlite3_column_text(stmt, 2));
    }
    (void)sqlite3_reset(stmt);
    return step == SQLITE_DONE
               ? 0
               : occ_sql_fail(a->store->db, a->store->path, step, a->err, "cannot read a claim");
}

static int most_time_first(const void *a, const void *b)
{
    const struct occ_shape_row *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int make_rows(struct ask *a, const struct occ_scope *scope, struct occ_shapes *ret_shapes)
{
    struct occ_shape_row *rows = calloc(a->totals.n + 1, sizeof *rows);
    sqlite3_stmt *stmt = NULL, *claim = NULL, *measured = NULL;
    size_t n = 0;
    int rc = rows ? occ_ask_prepare(a->store, shape_sql, &stmt, a->err) : occ_store_no_memory(a->err);
    if (rc == 0)
        rc = occ_ask_prepare(a->store, claim_sql, &claim, a->err);
    if (rc == 0)
        rc = occ_measured_prepare(a->store, &measured, a->err);
    for (uint32_t i = 0; i < a->totals.n && rc == 0; i++) {
        const struct occ_totals *t = &a->totals.entries[i];
        (void)sqlite3_bind_int64(stmt, 1, (int64_t)t->key);
        int step = sqlite3_step(stmt);
        if (step == SQLITE_ROW) {
            struct occ_shape_row *row = &rows[n++];
            row->id = (int64_t)t->key;
            read_shape(a, stmt, row);
            fill_totals(t, row);
            rc = read_claim(a, scope, claim, row);
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
    (void)sqlite3_finalize(claim);
    if (rc == 0 && a->arena.failed)
        rc = occ_store_no_memory(a->err);
    if (rc != 0) {
        free(rows);
        return rc;
    }
    qsort(rows, n, sizeof *rows, most_time_first);
    *ret_shapes = (struct occ_shapes){.rows = rows, .n = n, .memory = occ_arena_take(&a->arena)};
    return 0;
}

int occ_store_shapes(struct occ_store *s, const struct occ_filter *filter, struct occ_shapes *ret_shapes,
                     struct occ_error *err)
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
        rc = make_rows(&a, &scope, ret_shapes);
    occ_store_rollback(s);
    occ_scope_close(&scope);
    occ_totals_table_free(&a.totals);
    occ_arena_free_blocks(occ_arena_take(&a.arena));
    return rc;
}

void occ_shapes_free(struct occ_shapes *shapes)
{
    free(shapes->rows);
    occ_arena_free_blocks(shapes->memory);
    *shapes = (struct occ_shapes){0};
}
