/* What a filter means in ids: runs by run, session and time; configurations by device, kernel name and occupancy. The regular
 * expression is tried once per kernel. One thread. */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

#include "sum_by_config.h"

/* The kernels whose demangled name matches. */
static int match_kernels(struct occ_store *s, const char *pattern, struct occ_map *kernels,
                         struct occ_error *err)
{
    regex_t regex;
    char reason[128];
    sqlite3_stmt *stmt = NULL;
    int failed = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), step = SQLITE_DONE;
    if (failed != 0) {
        (void)regerror(failed, &regex, reason, sizeof reason);
        return occ_fail(err, OCC_E_INVALID, "'%.128s' is not a regular expression: %s", pattern, reason);
    }
    int rc = occ_ask_prepare(s, "SELECT kernel_id, demangled FROM stored_kernel", &stmt, err);
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(stmt, 1);
        if (name && regexec(&regex, name, 0, NULL, 0) == 0 &&
            occ_map_put(kernels, (uint64_t)sqlite3_column_int64(stmt, 0), 0) == OCC_MAP_NONE)
            rc = occ_store_no_memory(err);
    }
    regfree(&regex);
    if (rc == 0)
        return occ_ask_end(s, stmt, step, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* A configuration's achieved occupancy: measured where it was, else expected; NaN: neither is known. */
static int achieved_of(struct occ_store *s, const struct occ_scope *scope, sqlite3_stmt *config,
                       sqlite3_stmt *measured, double *ret_achieved, struct occ_error *err)
{
    struct occ_measured_sums sums;
    struct occ_measurement means;
    int rc = occ_measured_read(s, scope, sqlite3_column_int64(config, 0), measured, &sums, err);
    if (rc != 0)
        return rc;
    occ_measured_means(&sums, &means);
    *ret_achieved = !isnan(means.achieved)                          ? means.achieved
                    : sqlite3_column_type(config, 2) != SQLITE_NULL ? sqlite3_column_double(config, 2)
                                                                    : NAN;
    return 0;
}

static int allow_configs(struct occ_store *s, const struct occ_filter *filter, const struct occ_map *kernels,
                         struct occ_scope *scope, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL, *measured = NULL;
    int step = SQLITE_DONE;
    int rc = occ_ask_prepare(s,
                             "SELECT config_id, kernel_id, expected_achieved FROM stored_launch_config WHERE "
                             "?1 = 0 OR device_id = ?1",
                             &stmt, err);
    if (rc == 0)
        rc = occ_measured_prepare(s, &measured, err);
    if (rc == 0)
        (void)sqlite3_bind_int64(stmt, 1, filter->device);
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        double achieved = 0;
        if (filter->kernel_regex &&
            occ_map_get(kernels, (uint64_t)sqlite3_column_int64(stmt, 1)) == OCC_MAP_NONE)
            continue;
        if (filter->below_achieved > 0) {
            rc = achieved_of(s, scope, stmt, measured, &achieved, err);
            if (rc != 0 || !(achieved < filter->below_achieved))
                continue;
        }
        if (occ_map_put(&scope->configs, (uint64_t)sqlite3_column_int64(stmt, 0), 0) == OCC_MAP_NONE)
            rc = occ_store_no_memory(err);
    }
    (void)sqlite3_finalize(measured);
    if (rc == 0)
        return occ_ask_end(s, stmt, step, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

static int find_configs(struct occ_store *s, const struct occ_filter *filter, struct occ_scope *scope,
                        struct occ_error *err)
{
    struct occ_map kernels = {0};
    scope->any_config = !filter->kernel_regex && filter->device == 0 && !(filter->below_achieved > 0);
    if (scope->any_config)
        return 0;
    int rc = filter->kernel_regex ? match_kernels(s, filter->kernel_regex, &kernels, err) : 0;
    if (rc == 0)
        rc = allow_configs(s, filter, &kernels, scope, err);
    occ_map_free(&kernels);
    return rc;
}

static int add_run(struct occ_scope *scope, sqlite3_stmt *stmt)
{
    if ((scope->n_runs & (scope->n_runs + 1)) == 0) { /* 0, 1, 3, 7 ...: full */
        struct occ_scope_run *runs = realloc(scope->runs, (scope->n_runs * 2 + 2) * sizeof *runs);
        if (!runs)
            return OCC_E_NO_MEMORY;
        scope->runs = runs;
    }
    scope->runs[scope->n_runs] = (struct occ_scope_run){.id = sqlite3_column_int64(stmt, 0),
                                                        .first_ns = sqlite3_column_int64(stmt, 1),
                                                        .last_ns = sqlite3_column_int64(stmt, 2),
                                                        .rolled_minute_ns = sqlite3_column_int64(stmt, 3),
                                                        .rolled_hour_ns = sqlite3_column_int64(stmt, 4),
                                                        .retired_ns = sqlite3_column_int64(stmt, 5)};
    if (occ_map_put(&scope->run_index, (uint64_t)scope->runs[scope->n_runs].id, scope->n_runs) ==
        OCC_MAP_NONE)
        return OCC_E_NO_MEMORY;
    scope->n_runs++;
    return 0;
}

static int find_runs(struct occ_store *s, const struct occ_filter *filter, struct occ_scope *scope,
                     struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int step = SQLITE_DONE;
    int rc = occ_ask_prepare(s,
                             "SELECT run_id, first_start_ns, last_start_ns, rolled_minute_ns, "
                             "rolled_hour_ns, evicted_ns FROM stored_run WHERE "
                             "first_start_ns IS NOT NULL AND last_start_ns >= ?1 AND first_start_ns < ?2 AND "
                             "(?3 = 0 OR run_id = ?3) AND "
                             "(?4 IS NULL OR session_id = ?4) AND (?5 OR time_base IS NOT 'unknown')",
                             &stmt, err);
    if (rc != 0)
        return rc;
    struct occ_binder b = {.stmt = stmt};
    occ_bind_int(&b, scope->since_ns);
    occ_bind_int(&b, scope->until_ns);
    occ_bind_int(&b, filter->run);
    occ_bind_text(&b, filter->session);
    occ_bind_int(&b, filter->since_ns <= 0 && filter->until_ns <= 0);
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW)
        if (add_run(scope, stmt) != 0)
            rc = occ_store_no_memory(err);
    if (rc == 0)
        return occ_ask_end(s, stmt, step, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

static int find_retention(struct occ_store *s, struct occ_scope *scope, struct occ_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = occ_ask_prepare(s, "SELECT max(first_minute) FROM stored_retention", &stmt, err);
    if (rc != 0)
        return rc;
    int step = sqlite3_step(stmt);
    if (step == SQLITE_ROW) {
        scope->minutes_from = occ_column_clamped(stmt, 0, 0, INT64_MAX / MINUTE_NS);
        step = SQLITE_DONE;
    }
    return occ_ask_end(s, stmt, step, err);
}

int occ_scope_open(struct occ_store *s, const struct occ_filter *filter, struct occ_scope *scope,
                   struct occ_error *err)
{
    *scope = (struct occ_scope){.since_ns = filter->since_ns > 0 ? filter->since_ns : 0,
                                .until_ns = filter->until_ns > 0 ? filter->until_ns : INT64_MAX};
    int rc = find_retention(s, scope, err);
    if (rc == 0)
        rc = find_runs(s, filter, scope, err);
    if (rc == 0)
        rc = find_configs(s, filter, scope,
                          err); /* what was measured of a configuration depends on the runs */
    if (rc != 0)
        occ_scope_close(scope);
    return rc;
}

void occ_scope_close(struct occ_scope *scope)
{
    occ_map_free(&scope->configs);
    occ_map_free(&scope->run_index);
    free(scope->runs);
    *scope = (struct occ_scope){0};
}
