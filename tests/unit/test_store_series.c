/* Series of counters: codes, values of single launches, samples of devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/vtab/launch_values.h"
#include "store/codec/codes.h"
#include "store/codec/columns.h"
#include "store/sql.h"
#include "test_store_world.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define BEGIN  (INT64_C(1700000000) * SECOND)

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    world_make_directory(w);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    occ_store_close(w->store);
    world_remove_directory(w);
    free(w);
    return 0;
}

static void commit(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    if (occ_store_commit(w->store, &err) != 0)
        fail_msg("%s", err.message);
}

static double number(struct occ_store *store, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3 *db = occ_store_sqlite(store);
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK || sqlite3_step(stmt) != SQLITE_ROW)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    double value = sqlite3_column_type(stmt, 0) == SQLITE_NULL ? NAN : sqlite3_column_double(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return value;
}

static void execute(struct occ_store *store, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(occ_store_sqlite(store), sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
}

/* ---- codes ---- */

static uint64_t random_number(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void numbers_keep_their_bounds(void **state)
{
    (void)state;
    uint64_t seed = 99;
    for (int i = 0; i < 200000; i++) {
        double u = (double)(random_number(&seed) >> 11) / 9007199254740992.0, v = u * 1.5;
        assert_true(fabs(occ_code_read(OCC_UNIT_ratio, occ_code_make(OCC_UNIT_ratio, v)) - v) <=
                    0.00005 * 1.0000001);
        v = u * 1.3;
        assert_true(fabs(occ_code_read(OCC_UNIT_value, occ_code_make(OCC_UNIT_value, v)) - v) <=
                    0.00001 * 1.0000001);
        v = u * 40;
        assert_true(fabs(occ_code_read(OCC_UNIT_blocks, occ_code_make(OCC_UNIT_blocks, v)) - v) <=
                    0.0005 * 1.0000001);
        v = exp2(-20 + u * 22);
        double error = occ_code_read(OCC_UNIT_error, occ_code_make(OCC_UNIT_error, v));
        assert_true(error >= v && error <= v * 1.0906);
        v = exp2(-20 - u * 30); /* below the smallest step: the code never understates an error */
        assert_true(occ_code_read(OCC_UNIT_error, occ_code_make(OCC_UNIT_error, v)) >= v);
    }
    for (int k = 1; k < 350; k++) { /* exactly on a step */
        double v = occ_code_read(OCC_UNIT_error, (uint16_t)k);
        assert_true(occ_code_read(OCC_UNIT_error, occ_code_make(OCC_UNIT_error, v)) >= v);
    }
    assert_true(isnan(occ_code_read(OCC_UNIT_ratio, occ_code_make(OCC_UNIT_ratio, NAN))));
    assert_true(isnan(occ_code_read(OCC_UNIT_ratio, occ_code_make(OCC_UNIT_ratio, INFINITY))));
    assert_true(isnan(occ_code_read(OCC_UNIT_blocks, occ_code_make(OCC_UNIT_blocks, NAN))));
    assert_true(isnan(occ_code_read(OCC_UNIT_error, occ_code_make(OCC_UNIT_error, NAN))));
    assert_true(occ_code_read(OCC_UNIT_error, occ_code_make(OCC_UNIT_error, 0)) == 0);
    assert_true(isnan(occ_code_read(OCC_UNIT_value, occ_code_make(OCC_UNIT_value, NAN))));
    assert_true(occ_code_read(OCC_UNIT_value, occ_code_make(OCC_UNIT_value, 1)) == 1);
    assert_true(occ_code_read(OCC_UNIT_value, occ_code_make(OCC_UNIT_value, 2)) > 1.31); /* not "unknown" */
    assert_true(occ_code_read(OCC_UNIT_ratio, occ_code_make(OCC_UNIT_ratio, 0)) == 0);
    assert_true(occ_code_read(OCC_UNIT_ratio, occ_code_make(OCC_UNIT_ratio, 1)) == 1);
    assert_true(occ_code_read(OCC_UNIT_ratio, occ_code_make(OCC_UNIT_ratio, -0.25)) == 0);
    assert_true(fabs(occ_code_read(OCC_UNIT_ratio, occ_code_make(OCC_UNIT_ratio, 1e9)) - 6.5534) <
                1e-9); /* not "unknown" */
}

/* ---- values of launches ---- */

/* Returns a launch's measured values, derived from its correlation; every seventh has no `achieved`. */
static struct occ_launch_value value_of(const struct world_launch *l)
{
    uint32_t c = l->launch.correlation;
    return (struct occ_launch_value){.start_ns = l->launch.start_ns,
                                     .correlation = c,
                                     .config = l->launch.config,
                                     .achieved = c % 7 == 0 ? NAN : (c % 1000) / 1000.0,
                                     .achieved_error = c % 7 == 0 ? NAN : 0.001 * (1 + c % 9),
                                     .elapsed = (c % 500) / 1000.0,
                                     .elapsed_error = 0.002};
}

static bool is_measured(const struct world_launch *l)
{
    return l->launch.correlation % 3 == 0;
}

/* Adds the values of the measured launches in from..to, last launch first. */
static void add_values(struct world *w, size_t from, size_t to)
{
    struct occ_error err = OCC_ERROR_INIT;
    for (size_t i = to; i-- > from;) {
        struct occ_launch_value value = value_of(&w->launches[i]);
        if (is_measured(&w->launches[i]) &&
            occ_store_add_launch_values(w->store, w->launches[i].run, w->launches[i].device, &value, 1,
                                        &err) != 0)
            fail_msg("%s", err.message);
    }
}

static void check_value(sqlite3_stmt *stmt)
{
    struct world_launch l = {.launch = {.correlation = (uint32_t)sqlite3_column_int64(stmt, 0)}};
    struct occ_launch_value v = value_of(&l);
    if (!is_measured(&l)) {
        for (int i = 1; i < 6; i++)
            assert_int_equal(sqlite3_column_type(stmt, i), SQLITE_NULL);
        return;
    }
    assert_string_equal((const char *)sqlite3_column_text(stmt, 5), "direct");
    assert_int_equal(sqlite3_column_type(stmt, 1) == SQLITE_NULL, isnan(v.achieved));
    assert_int_equal(sqlite3_column_type(stmt, 2) == SQLITE_NULL, isnan(v.achieved));
    if (!isnan(v.achieved)) {
        assert_true(fabs(sqlite3_column_double(stmt, 1) - v.achieved) < 0.000011);
        assert_true(sqlite3_column_double(stmt, 2) >= 1.96 * v.achieved_error);
        assert_true(sqlite3_column_double(stmt, 2) <= 1.96 * v.achieved_error * 1.0906);
    }
    assert_true(fabs(sqlite3_column_double(stmt, 3) - v.elapsed) < 0.000011);
    assert_true(sqlite3_column_double(stmt, 4) >= 1.96 * v.elapsed_error);
}

static void check_values(struct world *w, struct occ_store *store)
{
    sqlite3_stmt *stmt = NULL;
    size_t n = 0;
    assert_int_equal(sqlite3_prepare_v2(occ_store_sqlite(store),
                                        "SELECT correlation_id, achieved, achieved_ci95, elapsed, "
                                        "elapsed_ci95, measured_source FROM launch",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    for (; sqlite3_step(stmt) == SQLITE_ROW; n++)
        check_value(stmt);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(n, w->n);
}

static void every_launch_has_its_own_value(void **state)
{
    struct world *w = *state;
    w->options.chunk_rows = 700;
    world_open(w);
    size_t told = 0;
    for (int i = 0; i < 40; i++) {
        size_t before = w->n;
        world_append(w, i % 2, BEGIN + i * 20 * SECOND, 30 * SECOND, 150);
        commit(w);
        if (i % 3 == 2) { /* late, out of order, together with other launches */
            add_values(w, told, before);
            told = before;
        }
    }
    add_values(w, told, w->n);
    commit(w);
    check_values(w, w->store);
    /* 16 chunks become one */
    assert_true(world_number(w->store,
                             "SELECT max(n) FROM (SELECT count(*) AS n FROM stored_series_chunk GROUP BY "
                             "run_id, device_id, is_full)") < 16);
    assert_int_equal(world_number(w->store, "SELECT sum(rows) FROM stored_series_chunk"),
                     world_number(w->store, "SELECT count(*) FROM launch WHERE correlation_id % 3 = 0"));
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(occ_store_finish(w->store, &err), 0);
    check_values(w, w->store);
    assert_int_equal(
        world_number(w->store, "SELECT count(*) FROM launch WHERE measured_source = 'direct' AND start_ns < "
                               "1700000100000000000"),
        world_number(w->store, "SELECT count(*) FROM launch WHERE correlation_id % 3 = 0 AND start_ns < "
                               "1700000100000000000"));
}

static void what_waits_survives_a_failed_commit(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE, 3000);
    commit(w);
    add_values(w, 0, w->n);
    execute(w->store, "PRAGMA max_page_count=1"); /* = as it is now */
    struct occ_device_sample samples[5000];
    for (int i = 0; i < 5000; i++)
        samples[i] = (struct occ_device_sample){.start_ns = BEGIN + i * (SECOND / 1000),
                                                .end_ns = BEGIN + (i + 1) * (SECOND / 1000),
                                                .elapsed = (double)world_random(w) / 1.9e19};
    assert_int_equal(occ_store_add_samples(w->store, w->device[0], samples, 5000, &err), 0);
    assert_int_equal(occ_store_commit(w->store, &err), OCC_E_FULL);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_series_chunk"), 0);
    execute(w->store, "PRAGMA max_page_count=1000000");
    commit(w);
    check_values(w, w->store);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM device_sample"), 5000);
    assert_int_equal(world_number(w->store, "SELECT sum(samples) FROM stored_device_second"), 5000);
}

/* A graph's nodes start at the same time: values are matched by configuration, and each of several equal
 * launches gets one value. */
static void equal_launches_get_one_value_each(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    struct occ_store_launch launches[4];
    struct occ_launch_value values[4];
    for (int i = 0; i < 4; i++) {
        launches[i] = (struct occ_store_launch){.start_ns = BEGIN,
                                                .duration_ns = 1000,
                                                .config = (uint32_t)w->config[i < 3 ? 0 : 2],
                                                .correlation = 5,
                                                .stream = (uint32_t)i};
        values[i] = (struct occ_launch_value){.start_ns = BEGIN,
                                              .correlation = 5,
                                              .config = launches[i].config,
                                              .achieved = (i + 1) / 10.0,
                                              .elapsed = (i + 1) / 20.0};
    }
    assert_int_equal(occ_store_append(w->store, w->run[0], w->device[0], launches, 4, &err), 0);
    assert_int_equal(occ_store_add_launch_values(w->store, w->run[0], w->device[0], values, 4, &err), 0);
    commit(w);
    assert_int_equal(world_number(w->store, "SELECT count(DISTINCT achieved) FROM launch"), 4);
    assert_true(fabs(number(w->store, "SELECT achieved FROM launch WHERE stream_id = 3") - 0.4) < 1e-9);
    /* values of another start, run or device match no launch */
    values[0].start_ns++;
    assert_int_equal(occ_store_add_launch_values(w->store, w->run[0], w->device[0], values, 1, &err), 0);
    assert_int_equal(occ_store_add_launch_values(w->store, w->run[1], w->device[0], values + 1, 1, &err), 0);
    assert_int_equal(occ_store_add_launch_values(w->store, w->run[0], w->device[1], values + 1, 1, &err), 0);
    commit(w);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM launch WHERE achieved IS NOT NULL"), 4);
}

/* All launches of a crafted file start at once: the search among equal starts is bounded. */
static void so_many_equal_launches_are_told_apart(void **state)
{
    enum { EQUAL = 2 * OCC_LAUNCHES_AT_ONCE };
    static struct occ_store_launch launches[EQUAL];
    static struct occ_launch_value values[EQUAL];
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    for (uint32_t i = 0; i < EQUAL; i++) {
        launches[i] = (struct occ_store_launch){
            .start_ns = BEGIN, .duration_ns = 1000, .config = (uint32_t)w->config[0], .correlation = i};
        values[i] = (struct occ_launch_value){
            .start_ns = BEGIN, .config = launches[i].config, .correlation = i, .achieved = 0.5};
    }
    assert_int_equal(occ_store_append(w->store, w->run[0], w->device[0], launches, EQUAL, &err), 0);
    assert_int_equal(occ_store_add_launch_values(w->store, w->run[0], w->device[0], values, EQUAL, &err), 0);
    commit(w);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM launch"), EQUAL);
    assert_int_equal(world_number(w->store, "SELECT count(measured_source) FROM launch"),
                     OCC_LAUNCHES_AT_ONCE);
}

static void a_launch_without_one_has_its_configs(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    int64_t minute = BEGIN / MINUTE;
    world_open(w);
    struct occ_store_launch launches[5];
    for (int i = 0; i < 5; i++)
        launches[i] = (struct occ_store_launch){.start_ns = (minute + i / 2) * MINUTE + i,
                                                .duration_ns = 1000,
                                                .config = (uint32_t)w->config[0],
                                                .correlation = (uint32_t)i};
    assert_int_equal(occ_store_append(w->store, w->run[0], w->device[0], launches, 5, &err), 0);
    struct occ_measured_sums sums = {.direct = 1, .regression = 1};
    sums.sum[OCC_MEASURED_achieved] = 0.5 * 2000;
    sums.ns[OCC_MEASURED_achieved] = 2000;
    sums.sum[OCC_MEASURED_achieved_error] = 0.125 * 2000;
    sums.ns[OCC_MEASURED_achieved_error] = 2000;
    assert_int_equal(occ_store_add_measured(w->store, minute, w->run[0], (uint32_t)w->config[0], &sums, &err),
                     0);
    sums.regression = 0;
    sums.grouped = 3; /* longer ones */
    sums.ns[OCC_MEASURED_elapsed] = 2000;
    sums.sum[OCC_MEASURED_group_achieved] = 0.25 * 30000;
    sums.ns[OCC_MEASURED_group_achieved] = sums.ns[OCC_MEASURED_group_elapsed] = 30000;
    assert_int_equal(
        occ_store_add_measured(w->store, minute + 1, w->run[0], (uint32_t)w->config[0], &sums, &err), 0);
    sums.grouped = 0; /* only others were read */
    assert_int_equal(
        occ_store_add_measured(w->store, minute + 2, w->run[0], (uint32_t)w->config[0], &sums, &err), 0);
    struct occ_launch_value value = {.start_ns = launches[0].start_ns,
                                     .config = launches[0].config,
                                     .achieved = 0.75,
                                     .achieved_error = NAN,
                                     .elapsed = NAN,
                                     .elapsed_error = NAN};
    assert_int_equal(occ_store_add_launch_values(w->store, w->run[0], w->device[0], &value, 1, &err), 0);
    commit(w);
    assert_true(fabs(number(w->store, "SELECT achieved FROM launch WHERE correlation_id = 0") - 0.75) < 1e-9);
    assert_true(number(w->store, "SELECT achieved FROM launch WHERE correlation_id = 1") == 0.5);
    assert_true(fabs(number(w->store, "SELECT achieved_ci95 FROM launch WHERE correlation_id = 1") -
                     1.96 * 0.125 * OCC_MEASURED_WINDOWS) < 1e-12);
    assert_true(isnan(number(w->store, "SELECT elapsed FROM launch WHERE correlation_id = 1")));
    assert_true(isnan(number(w->store, "SELECT achieved FROM launch WHERE correlation_id = 2")));
    assert_true(isnan(number(w->store, "SELECT achieved_ci95 FROM launch WHERE correlation_id = 2")));
    assert_int_equal(world_number(w->store, "SELECT group_concat(coalesce(measured_source, '-')) = "
                                            "'direct,regression,withheld,withheld,-' FROM (SELECT "
                                            "measured_source FROM launch ORDER BY correlation_id)"),
                     1);
    assert_true(isnan(number(w->store, "SELECT achieved FROM launch WHERE correlation_id = 4")));
}

/* A configuration's launches in a minute by source of their values, and the expected source of a launch
 * without values of its own. */
struct minute_case {
    uint64_t direct, regression, grouped, exact;
    double ns, group_ns; /* how long launches with and without values of their own took together */
    const char *source;
};

static void add_minute(struct world *w, int64_t minute, const struct minute_case *c)
{
    static const double mean[OCC_MEASURED_VALUE_COUNT] = {[OCC_MEASURED_achieved] = 0.5,
                                                          [OCC_MEASURED_achieved_error] = 0.125,
                                                          [OCC_MEASURED_elapsed] = 0.25,
                                                          [OCC_MEASURED_elapsed_error] = 0.0625};
    struct occ_error err = OCC_ERROR_INIT;
    uint32_t config = (uint32_t)w->config[0];
    struct occ_store_launch launch = {
        .start_ns = minute * MINUTE + 1, .duration_ns = 1000, .config = config, .correlation = 1};
    struct occ_measured_sums sums = {
        .direct = c->direct, .regression = c->regression, .grouped = c->grouped, .exact = c->exact};
    for (int k = 0; k < OCC_MEASURED_VALUE_COUNT; k++) {
        sums.ns[k] = mean[k] > 0 ? c->ns : 0;
        sums.sum[k] = mean[k] * sums.ns[k];
    }
    sums.ns[OCC_MEASURED_group_elapsed] = c->group_ns;
    assert_int_equal(occ_store_append(w->store, w->run[0], w->device[0], &launch, 1, &err), 0);
    assert_int_equal(occ_store_add_measured(w->store, minute, w->run[0], config, &sums, &err), 0);
}

static double of_launch(struct world *w, const char *column, int64_t minute)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql, "SELECT %s FROM launch WHERE start_ns = %lld", column,
                   (long long)(minute * MINUTE + 1));
    return number(w->store, sql);
}

static double of_minute(struct world *w, const char *column, int64_t minute)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT %s FROM minute WHERE minute = %lld", column, (long long)minute);
    return number(w->store, sql);
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Two minutes with utilization and a third without; the mean weights minutes by time. */
static void utilization_is_null_where_it_was_not_measured(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const int64_t first = BEGIN / MINUTE;
    world_open(w);
    for (int i = 0; i < 3; i++) {
        const struct occ_store_launch launch = {.start_ns = (first + i) * MINUTE + 1,
                                                .duration_ns = 1000,
                                                .config = (uint32_t)w->config[0],
                                                .correlation = 1};
        struct occ_measured_sums sums = {.regression = 1};
        assert_int_equal(occ_store_append(w->store, w->run[0], w->device[0], &launch, 1, &err), 0);
        sums.ns[OCC_MEASURED_elapsed] = 1000;
        sums.sum[OCC_MEASURED_elapsed] = 500;
        for (int k = OCC_MEASURED_issue_active; k <= OCC_MEASURED_throughput_error && i < 2; k++) {
            sums.ns[k] = k == OCC_MEASURED_tensor_active ? 0 : 1000 * (1 + 2 * i); /* a chip without */
            sums.sum[k] = sums.ns[k] * (k == OCC_MEASURED_issue_active ? 0.25 : 0.125) * (1 + i);
        }
        assert_int_equal(
            occ_store_add_measured(w->store, first + i, w->run[0], (uint32_t)w->config[0], &sums, &err), 0);
    }
    assert_int_equal(occ_store_finish(w->store, &err), 0);
    assert_true(number(w->store, "SELECT issue_active FROM measured_minute ORDER BY minute LIMIT 1") == 0.25);
    assert_true(number(w->store, "SELECT no_eligible FROM measured_minute ORDER BY minute LIMIT 1") == 0.75);
    assert_true(number(w->store, "SELECT sum(l2_throughput IS NULL) FROM measured_minute") == 1);
    assert_true(number(w->store, "SELECT sum(no_eligible IS NULL) FROM measured_minute") == 1);
    assert_true(number(w->store, "SELECT count(tensor_active) FROM measured_minute") == 0);
    assert_true(number(w->store, "SELECT dram_throughput FROM measured_config") == 0.21875);
    assert_true(fabs(number(w->store, "SELECT issue_active_ci95 FROM measured_config") - 1.96 * 0.21875) <
                1e-12);
    assert_true(fabs(number(w->store, "SELECT throughput_ci95 FROM measured_config") - 1.96 * 0.21875) <
                1e-12);
    struct occ_config_rows configs;
    struct occ_measurement means;
    const struct occ_filter all = {0};
    assert_int_equal(occ_store_configs(w->store, &all, &configs, &err), 0);
    assert_int_equal(configs.n, 1);
    occ_measured_means(&configs.rows[0].measured, configs.rows[0].measurable_ns, &means);
    assert_true(means.utilization.ratio[OCC_HW_ISSUE] == 0.4375);
    assert_true(means.utilization.ratio[OCC_HW_L1] == 0.21875 &&
                isnan(means.utilization.ratio[OCC_HW_TENSOR]));
    assert_true(isnan(means.utilization.ratio[OCC_HW_COMPUTE])); /* Nsight Compute's alone */
    occ_config_rows_free(&configs);
}

static void a_launch_and_its_config_agree(void **state)
{
    static const struct minute_case cases[] = {
        {.regression = 4, .ns = 4000, .source = "regression"},
        {.direct = 3, .regression = 1, .ns = 4000, .source = "regression"},
        {.grouped = 4, .group_ns = 4000, .source = "group"},
        /* fewer without values of their own, but much longer ones: the mean is withdrawn */
        {.regression = 5, .grouped = 4, .ns = 5000, .group_ns = 40000, .source = "withheld"},
        {.direct = 5, .grouped = 2, .ns = 5000, .group_ns = 20000, .source = "withheld"},
        /* more without, but they are like the others, or take next to no time: the mean stands for all */
        {.regression = 4, .grouped = 40, .ns = 4000, .group_ns = 40000, .source = "regression"},
        {.direct = 4, .grouped = 40, .ns = 4000, .group_ns = 40000, .source = "regression"},
        {.regression = 4, .grouped = 40, .ns = 4000, .group_ns = 40, .source = "regression"},
        {.exact = 4, .ns = 4000, .source = "exact"},
    };
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const int64_t first = BEGIN / MINUTE;
    enum { CASES = sizeof cases / sizeof *cases };
    world_open(w);
    for (int i = 0; i < CASES; i++)
        add_minute(w, first + i, &cases[i]);
    assert_int_equal(occ_store_finish(w->store, &err), 0);
    for (int i = 0; i < CASES; i++) {
        const struct occ_filter filter = {.since_ns = (first + i) * MINUTE,
                                          .until_ns = (first + i + 1) * MINUTE};
        char source[64];
        struct occ_config_rows configs;
        struct occ_measurement means;
        assert_int_equal(occ_store_configs(w->store, &filter, &configs, &err), 0);
        assert_int_equal(configs.n, 1);
        occ_measured_means(&configs.rows[0].measured, configs.rows[0].measurable_ns, &means);
        double waste = configs.rows[0].waste.warp_seconds;
        occ_config_rows_free(&configs);
        assert_true(same(of_launch(w, "achieved", first + i), means.achieved));
        assert_true(same(of_launch(w, "achieved_ci95", first + i), 1.96 * means.achieved_error));
        assert_true(same(of_launch(w, "elapsed", first + i), means.elapsed));
        assert_true(same(of_launch(w, "elapsed_ci95", first + i), 1.96 * means.elapsed_error));
        assert_int_equal(means.withheld != OCC_WITHHELD_NOT, isnan(means.elapsed));
        (void)snprintf(source, sizeof source, "measured_source = '%s'", cases[i].source);
        assert_true(of_launch(w, source, first + i) == 1);
        /* and the view of minutes */
        assert_true(same(of_minute(w, "elapsed", first + i), means.elapsed));
        /* waste of the launch, and of the whole minute: measured occupancy for the measured part of its time,
         * expected for the rest */
        double expected = of_minute(w, "expected_elapsed_low", first + i), warp_s = 1e-6 * 108 * 64;
        double share = cases[i].ns / (cases[i].ns + cases[i].group_ns);
        double elapsed = isnan(means.elapsed) ? expected : means.elapsed;
        assert_true(fabs(of_launch(w, "waste_warp_seconds", first + i) - warp_s * (1 - elapsed)) < 1e-12);
        assert_true(fabs(of_minute(w, "waste_warp_seconds", first + i) -
                         warp_s * (1 - share * 0.25 - (1 - share) * expected)) < 1e-12);
        assert_true(fabs(waste / of_minute(w, "waste_warp_seconds", first + i) - 1) < 1e-12);
    }
    /* the unused part of 108 SMs of 64 warps for 1 us, by the measured and by the expected occupancy */
    assert_true(fabs(of_launch(w, "waste_warp_seconds", first) - 1e-6 * 108 * 64 * 0.75) < 1e-12);
    assert_true(fabs(of_launch(w, "waste_warp_seconds - 1e-6 * 108 * 64 * (1 - expected_elapsed_low)",
                               first + 2)) < 1e-12);
}

static void nobody_says(struct occ_store *store, const char *sql, const char *text)
{
    char *message = NULL;
    assert_int_not_equal(sqlite3_exec(occ_store_sqlite(store), sql, NULL, NULL, &message), SQLITE_OK);
    assert_non_null(strstr(message, text));
    sqlite3_free(message);
}

static void open_with_values(struct world *w)
{
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE, 300);
    add_values(w, 0, w->n);
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_device_sample sample = {.start_ns = BEGIN, .end_ns = BEGIN + SECOND, .elapsed = 0.5};
    assert_int_equal(occ_store_add_samples(w->store, w->device[0], &sample, 1, &err), 0);
    commit(w);
}

/* Damage to series hides only samples and measured values; the launches remain. */
static void damage_is_of_values_alone(void **state)
{
    struct world *w = *state;
    open_with_values(w);
    static const char *const damage[] = {
        "UPDATE stored_series_chunk SET data = x'01'",
        "UPDATE stored_series_chunk SET data = zeroblob(1000)",
        "UPDATE stored_series_chunk SET data = 7",
        "UPDATE stored_series_chunk SET data = NULL || data",
        "UPDATE stored_series_chunk SET data = substr(data, 1, length(data) - 1)",
        ("UPDATE stored_series_chunk SET kind = iif(kind = 'launch_value', 'device_sample', 'launch_value'), "
         "run_id = iif(run_id IS NULL, 1, NULL)"),
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        execute(w->store, "BEGIN");
        world_loosen(w->store, "stored_series_chunk");
        if (sqlite3_exec(occ_store_sqlite(w->store), damage[i], NULL, NULL, NULL) == SQLITE_OK) {
            assert_int_equal(world_number(w->store, "SELECT count(measured_source) FROM launch"), 0);
            assert_int_equal(world_number(w->store, "SELECT count(*) FROM launch WHERE achieved IS NULL"),
                             300);
            nobody_says(w->store, "SELECT sum(elapsed) FROM device_sample", "damaged");
        }
        execute(w->store, "ROLLBACK");
    }
    check_values(w, w->store);
}

static void one_damaged_chunk_hides_no_others(void **state)
{
    struct world *w = *state;
    open_with_values(w);
    int64_t measured = world_number(w->store, "SELECT count(measured_source) FROM launch");
    execute(
        w->store,
        "BEGIN; UPDATE stored_series_chunk SET data = x'01' WHERE kind = 'launch_value' AND device_id = 1");
    assert_int_equal(world_number(w->store, "SELECT count(measured_source) FROM launch WHERE device_id = 1"),
                     0);
    assert_int_equal(
        world_number(w->store, "SELECT count(measured_source) FROM launch WHERE device_id = 2"),
        world_number(
            w->store,
            "SELECT sum(rows) FROM stored_series_chunk WHERE kind = 'launch_value' AND device_id = 2"));
    assert_true(world_number(w->store, "SELECT count(measured_source) FROM launch") < measured);
    execute(w->store, "ROLLBACK");
    /* a newer format is no damage: queries fail, instead of returning "not measured" */
    execute(w->store, "BEGIN; UPDATE stored_series_chunk SET data = CAST(x'02' || substr(data, 2) AS BLOB)");
    nobody_says(w->store, "SELECT sum(achieved) FROM launch", "newer version");
    nobody_says(w->store, "SELECT sum(elapsed) FROM device_sample", "newer version");
    execute(w->store, "ROLLBACK");
    check_values(w, w->store);
    /* a damaged chunk is kept, and does not stop the merging of other chunks */
    execute(w->store,
            "UPDATE stored_series_chunk SET data = x'01' WHERE kind = 'launch_value' AND device_id = 1");
    for (int i = 0; i < 40; i++) {
        size_t before = w->n;
        world_append(w, 0, BEGIN + (i + 1) * MINUTE, MINUTE, 20);
        add_values(w, before, w->n);
        commit(w);
    }
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_series_chunk WHERE data = x'01'"),
                     1);
    assert_true(
        world_number(w->store, "SELECT count(*) FROM stored_series_chunk WHERE kind = 'launch_value'") < 40);
}

/* ---- samples of devices ---- */

static struct occ_device_sample sample_at(int64_t start_ns, int64_t length_ns, int i)
{
    return (struct occ_device_sample){.start_ns = start_ns,
                                      .end_ns = start_ns + length_ns,
                                      .elapsed = (i % 100) / 100.0,
                                      .sm_active = i % 4 == 0 ? NAN : 0.25,
                                      .resident_blocks = 2.125,
                                      .stall_registers = NAN,
                                      .stall_shared_memory = 0.5,
                                      .stall_blocks = 0.25,
                                      .stall_warps = 0.125,
                                      .stall_barriers = i % 2 ? 1 : NAN};
}

enum { COUNT = 4000 };

/* 100 a second of one device, and one of another. */
static void open_with_samples(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    const int64_t length = SECOND / 100;
    world_open(w);
    for (int i = 0; i < COUNT; i++) { /* even ones first, then odd ones; a commit every 100 */
        int k = i < COUNT / 2 ? 2 * i : 2 * (i - COUNT / 2) + 1;
        struct occ_device_sample sample = sample_at(BEGIN + k * length, length, k);
        assert_int_equal(occ_store_add_samples(w->store, w->device[0], &sample, 1, &err), 0);
        if (i % 100 == 99)
            commit(w);
    }
    struct occ_device_sample other = sample_at(BEGIN, length, 7);
    assert_int_equal(occ_store_add_samples(w->store, w->device[1], &other, 1, &err), 0);
    commit(w);
}

static void samples_come_back(void **state)
{
    struct world *w = *state;
    const int64_t length = SECOND / 100;
    sqlite3_stmt *stmt = NULL;
    open_with_samples(w);
    assert_int_equal(sqlite3_prepare_v2(occ_store_sqlite(w->store),
                                        "SELECT * FROM device_sample WHERE device_id = 1 ORDER BY start_ns",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
        assert_int_equal(sqlite3_column_int64(stmt, 0), BEGIN + i * length);
        assert_int_equal(sqlite3_column_int64(stmt, 1), BEGIN + (i + 1) * length);
        assert_int_equal(sqlite3_column_int64(stmt, 2), w->device[0]);
        assert_true(fabs(sqlite3_column_double(stmt, 3) - (i % 100) / 100.0) < 1e-9);
        assert_int_equal(sqlite3_column_type(stmt, 4) == SQLITE_NULL, i % 4 == 0);
        assert_true(fabs(sqlite3_column_double(stmt, 5) - 2.125) < 1e-9);
        assert_int_equal(sqlite3_column_type(stmt, 6), SQLITE_NULL);
        assert_true(fabs(sqlite3_column_double(stmt, 7) - 0.5) < 1e-9);
        assert_int_equal(sqlite3_column_type(stmt, 10) == SQLITE_NULL, i % 2 == 0);
    }
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    (void)sqlite3_finalize(stmt);
    assert_int_equal(
        world_number(w->store, "SELECT count(*) FROM stored_series_chunk WHERE kind = 'device_sample'") < 32,
        1);
}

/* Whatever the order in which samples came: i % 100 / 100 in each second. */
static void samples_add_up_to_seconds(void **state)
{
    struct world *w = *state;
    open_with_samples(w);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_device_second WHERE device_id = 1"),
                     40);
    assert_int_equal(world_number(w->store,
                                  "SELECT count(*) FROM device_second WHERE device_id = 1 AND "
                                  "samples = 100 AND covered_ns = 1000000000 AND elapsed_min = 0 "
                                  "AND elapsed_max = 0.99 AND elapsed_mean = 0.495 AND sm_active_mean "
                                  "= 0.25 AND resident_blocks_max = 2.125 AND stall_registers_mean IS "
                                  "NULL AND stall_barriers_min = 1 AND unexplained IS NULL"),
                     40);
}

static void samples_are_found_by_time_and_device(void **state)
{
    struct world *w = *state;
    char sql[200];
    open_with_samples(w);
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM device_sample WHERE start_ns >= %lld AND start_ns < %lld",
                   (long long)(BEGIN + SECOND), (long long)(BEGIN + 3 * SECOND));
    assert_int_equal(world_number(w->store, sql), 200);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM device_sample WHERE device_id > 1"), 1);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM device_sample WHERE start_ns < 'x'"),
                     COUNT + 1);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM device_sample WHERE start_ns = NULL"), 0);
    assert_int_equal(world_number(w->store, "SELECT count(DISTINCT rowid) FROM device_sample"), COUNT + 1);
}

static void means_are_weighed_by_time(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    const struct occ_device_sample samples[] = {
        {.start_ns = BEGIN, .end_ns = BEGIN + SECOND / 4, .elapsed = 0.1, .sm_active = NAN},
        {.start_ns = BEGIN + SECOND / 4, .end_ns = BEGIN + SECOND, .elapsed = 0.5, .sm_active = 0.75},
        {.start_ns = BEGIN + 2 * SECOND, .end_ns = BEGIN + 2 * SECOND, .elapsed = 0.5}, /* no time */
    };
    assert_int_equal(occ_store_add_samples(w->store, w->device[0], samples, 3, &err), 0);
    assert_int_equal(occ_store_add_unexplained(w->store, w->device[0], BEGIN / SECOND, 0.0625, &err), 0);
    assert_int_equal(occ_store_add_unexplained(w->store, w->device[0], BEGIN / SECOND + 1, 0.5, &err), 0);
    commit(w);
    assert_true(number(w->store, "SELECT elapsed_mean FROM device_second LIMIT 1") == 0.4);
    assert_true(number(w->store, "SELECT sm_active_mean FROM device_second LIMIT 1") == 0.75);
    assert_true(number(w->store, "SELECT unexplained FROM device_second LIMIT 1") == 0.0625);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_device_second"), 2);
    assert_true(isnan(number(w->store, "SELECT elapsed_mean FROM device_second ORDER BY start_ns DESC")));
    /* a further sample changes the mean of the second, and keeps its unexplained part */
    const struct occ_device_sample more = {
        .start_ns = BEGIN + SECOND / 2, .end_ns = BEGIN + SECOND / 2 + SECOND, .elapsed = 1};
    assert_int_equal(occ_store_add_samples(w->store, w->device[0], &more, 1, &err), 0);
    commit(w);
    assert_true(number(w->store, "SELECT elapsed_mean FROM device_second LIMIT 1") == 0.7);
    assert_true(number(w->store, "SELECT unexplained FROM device_second LIMIT 1") == 0.0625);
}

/* A late sample arrives after a quota evicted its second's samples: the row of the second keeps the evicted
 * samples' values. */
static void a_late_sample_does_not_belittle_its_second(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    for (int i = 0; i < 10; i++) {
        struct occ_device_sample sample = sample_at(BEGIN + i * (SECOND / 10), SECOND / 10, 50);
        assert_int_equal(occ_store_add_samples(w->store, w->device[0], &sample, 1, &err), 0);
    }
    commit(w);
    execute(w->store, "DELETE FROM stored_series_chunk");
    struct occ_device_sample late = sample_at(BEGIN + SECOND / 2, SECOND / 10, 99);
    assert_int_equal(occ_store_add_samples(w->store, w->device[0], &late, 1, &err), 0);
    commit(w);
    assert_int_equal(world_number(w->store, "SELECT samples FROM stored_device_second"), 10);
    assert_true(number(w->store, "SELECT elapsed_max FROM device_second") == 0.5);
}

static void impossible_ones_are_refused(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_device_sample backwards = {.start_ns = BEGIN, .end_ns = BEGIN - 1};
    const struct occ_launch_value never = {.start_ns = 0};
    world_open(w);
    assert_int_equal(occ_store_add_samples(w->store, 1, &backwards, 1, &err), OCC_E_INVALID);
    assert_int_equal(occ_store_add_launch_values(w->store, 1, 1, &never, 1, &err), OCC_E_INVALID);
    /* uncommitted samples are bounded; a call adds all of its samples or none */
    enum { MANY = 100000 };
    struct occ_device_sample *samples = calloc(MANY, sizeof *samples);
    assert_non_null(samples);
    for (int i = 0; i < MANY; i++)
        samples[i] = sample_at(BEGIN + i * (SECOND / 1000), SECOND / 1000, i);
    int rc = 0, calls = 0;
    for (; rc == 0 && calls < 100; calls++)
        rc = occ_store_add_samples(w->store, 1, samples, MANY, &err);
    assert_int_equal(rc, OCC_E_FULL);
    assert_true(calls > 1 && calls < 20);
    commit(w);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM device_sample"), MANY * (calls - 1));
    assert_int_equal(occ_store_add_samples(w->store, 1, samples, MANY, &err), 0);
    free(samples);
    occ_store_close(w->store);
    assert_int_equal(
        occ_store_open(w->path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &w->store, &err), 0);
    assert_int_equal(occ_store_add_samples(w->store, 1, &backwards, 1, &err), OCC_E_READ_ONLY);
    assert_int_equal(occ_store_add_launch_values(w->store, 1, 1, &never, 1, &err), OCC_E_READ_ONLY);
}

/* ---- retention ---- */

static void add_seconds(struct world *w, int64_t from_ns, int seconds)
{
    struct occ_error err = OCC_ERROR_INIT;
    for (int i = 0; i < seconds * 10; i++) {
        struct occ_device_sample sample = sample_at(from_ns + i * (SECOND / 10), SECOND / 10, i);
        sample.elapsed = (double)world_random(w) / 1.9e19;
        sample.sm_active = (double)world_random(w) / 1.9e19;
        if (occ_store_add_samples(w->store, w->device[0], &sample, 1, &err) != 0)
            fail_msg("%s", err.message);
    }
}

/* A chunk with more rows than a merge holds is not ours: it stays as it is, and merging goes on. */
static void a_chunk_that_is_too_large_is_not_merged(void **state)
{
    static uint64_t zeros[65537];
    struct world *w = *state;
    const uint8_t *data = NULL;
    size_t bytes = 0;
    sqlite3_stmt *stmt = NULL;
    struct occ_columns_encoder *encoder = occ_columns_encoder_new();
    struct occ_column_source sources[OCC_COLUMN_none] = {{0}};
    for (unsigned c = 0; c < OCC_COLUMN_none; c++)
        if (OCC_SAMPLE_COLUMNS >> c & 1)
            sources[c] = (struct occ_column_source){zeros, 8, 8};
    world_open(w);
    for (uint32_t n = 65536; n <= 65537; n++) {
        assert_int_equal(occ_columns_encode(encoder, sources, n, true, &data, &bytes), 0);
        assert_int_equal(
            sqlite3_prepare_v2(occ_store_sqlite(w->store),
                               "INSERT INTO stored_series_chunk(kind, device_id, is_full, rows, "
                               "first_start_ns, last_start_ns, data) VALUES('device_sample', ?, 0, ?, 0, "
                               "0, ?)",
                               -1, &stmt, NULL),
            SQLITE_OK);
        (void)sqlite3_bind_int64(stmt, 1, w->device[0]);
        (void)sqlite3_bind_int64(stmt, 2, n);
        (void)sqlite3_bind_blob(stmt, 3, data, (int)bytes, SQLITE_TRANSIENT);
        assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
        (void)sqlite3_finalize(stmt);
    }
    for (int i = 0; i < 20; i++) {
        add_seconds(w, BEGIN + i * SECOND, 1);
        commit(w);
    }
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_series_chunk WHERE is_full "
                                            "AND rows >= 65536"),
                     2);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM device_sample"), 65536 + 65537 + 200);
    occ_columns_encoder_free(encoder);
}

static void a_quota_takes_values_with_their_launches(void **state)
{
    struct world *w = *state;
    struct stat status;
    w->options.chunk_rows = 4000;
    w->options.max_bytes = 4u << 20;
    world_open(w);
    for (int i = 0; i < 120; i++) {
        size_t before = w->n;
        world_append(w, i % 2, BEGIN + i * 4 * MINUTE, 4 * MINUTE, 6000);
        add_values(w, before, w->n);
        add_seconds(w, BEGIN + i * 4 * MINUTE, 240);
        commit(w);
        assert_int_equal(stat(w->path, &status), 0);
        assert_true(status.st_size <= 4 << 20);
    }
    int64_t launches = world_number(w->store, "SELECT sum(launches) FROM stored_chunk");
    assert_true(launches > 0 && launches < (int64_t)w->n);
    /* every launch that is left has its value, no value is left without its chunk of launches */
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM launch WHERE (measured_source IS NOT NULL) "
                                            "<> (correlation_id % 3 = 0)"),
                     0);
    assert_int_equal(
        world_number(
            w->store,
            "SELECT count(*) FROM stored_series_chunk v WHERE kind = 'launch_value' AND NOT EXISTS(SELECT 1 "
            "FROM stored_chunk c WHERE c.run_id = v.run_id AND c.device_id = v.device_id AND c.last_start_ns "
            ">= "
            "v.first_start_ns AND c.first_start_ns <= v.last_start_ns)"),
        0);
    /* samples go with the launches of their time, seconds stay longer */
    assert_true(world_number(w->store, "SELECT count(*) FROM device_sample") > 0);
    assert_true(
        number(w->store, "SELECT min(last_start_ns) FROM stored_series_chunk WHERE kind = 'device_sample'") >
        (double)BEGIN);
    assert_true(
        world_number(w->store, "SELECT min(second) FROM stored_device_second") * SECOND <
        world_number(w->store,
                     "SELECT min(first_start_ns) FROM stored_series_chunk WHERE kind = 'device_sample'"));
    assert_int_equal(
        world_number(w->store, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
        1);
}

/* A device that nothing traced uses: its samples alone fill the file. */
static void samples_alone_stay_below_the_quota(void **state)
{
    struct world *w = *state;
    struct stat status;
    w->options.max_bytes = 1u << 20;
    world_open(w);
    for (int i = 0; i < 150; i++) {
        add_seconds(w, BEGIN + i * 5 * MINUTE, 300);
        commit(w);
        assert_int_equal(stat(w->path, &status), 0);
        assert_true(status.st_size <= 1 << 20);
    }
    char sql[96];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM stored_device_second WHERE second >= %lld",
                   (long long)((BEGIN + 149 * 5 * MINUTE) / SECOND));
    assert_int_equal(world_number(w->store, sql), 300);
    assert_true(world_number(w->store, "SELECT count(*) FROM stored_device_second") < 150 * 300);
}

/* Seconds of many devices fill the file before they span an hour: the newest seconds are kept. */
static void seconds_of_many_devices_stay_below_the_quota(void **state)
{
    enum { DEVICES = 20, MINUTES = 30 };
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    w->options.max_bytes = 1u << 20;
    world_open(w);
    for (int i = 10; i > 0; i--) /* small hours: evicting them frees almost no room */
        world_append(w, 0, BEGIN - i * HOUR, MINUTE, 1);
    commit(w);
    int64_t devices[DEVICES];
    for (int k = 0; k < DEVICES; k++) {
        const struct occ_store_device device = {.uuid = {(uint8_t)(100 + k)}, .name = "GPU"};
        assert_int_equal(occ_store_put_device(w->store, &device, &devices[k], &err), 0);
    }
    for (int i = 0; i < MINUTES * 60; i++) {
        for (int k = 0; k < DEVICES; k++) {
            struct occ_device_sample sample = sample_at(BEGIN + i * SECOND, SECOND, k + 1);
            assert_int_equal(occ_store_add_samples(w->store, devices[k], &sample, 1, &err), 0);
        }
        if (i % 20 == 19)
            commit(w);
    }
    char sql[96];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM stored_device_second WHERE second >= %lld",
                   (long long)(BEGIN / SECOND + MINUTES * 60 - 60));
    assert_int_equal(world_number(w->store, sql), 60 * DEVICES);
    assert_true(world_number(w->store, "SELECT count(*) FROM stored_device_second") < MINUTES * 60 * DEVICES);
}

/* Names are collected without looking for references to them. */
static bool is_collecting(const char *statement)
{
    static const char *const statements[] = {
#define X(name, text) text,
        OCC_SQL_COLLECT_STATEMENTS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (strcmp(statements[i], statement) == 0)
            return true;
    return false;
}

/* The quota's deletions hold the write lock: none may walk through a whole table. */
static void what_is_old_is_found_by_an_index(void **state)
{
    static const char *const deletions[] = {
#define X(name, text) text,
        OCC_SQL_STATEMENTS(X)
#undef X
    };
    struct world *w = *state;
    int n = 0;
    world_open(w);
    for (size_t i = 0; i < sizeof deletions / sizeof *deletions; i++) {
        char sql[1024];
        sqlite3_stmt *plan = NULL;
        if (strncmp(deletions[i], "DELETE", 6) != 0)
            continue;
        (void)sqlite3_exec(occ_store_sqlite(w->store),
                           is_collecting(deletions[i]) ? "PRAGMA foreign_keys=OFF" : "PRAGMA foreign_keys=ON",
                           NULL, NULL, NULL);
        (void)snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", deletions[i]);
        assert_int_equal(sqlite3_prepare_v2(occ_store_sqlite(w->store), sql, -1, &plan, NULL), SQLITE_OK);
        for (; sqlite3_step(plan) == SQLITE_ROW; n++) {
            const char *step = (const char *)sqlite3_column_text(plan, 3);
            if (strncmp(step, "SCAN", 4) == 0 && !strstr(step, "INDEX")) /* in order, up to a LIMIT */
                fail_msg("%s: %s", deletions[i], step);
        }
        (void)sqlite3_finalize(plan);
    }
    assert_true(n > 8);
}

/* ---- the loadable module ---- */

static void the_module_shows_them_too(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    char *message = NULL;
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE, 321);
    add_values(w, 0, w->n);
    add_seconds(w, BEGIN, 3);
    assert_int_equal(occ_store_finish(w->store, &err), 0);
    assert_int_equal(sqlite3_open_v2(w->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_enable_load_extension(db, 1), SQLITE_OK);
    if (sqlite3_load_extension(db, OCC_SQLITE_MODULE, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT count(measured_source), (SELECT count(*) FROM device_sample "
                                        "WHERE device_id = 1) FROM launch",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int64(stmt, 0),
                     world_number(w->store, "SELECT count(*) FROM launch WHERE correlation_id % 3 = 0"));
    assert_int_equal(sqlite3_column_int64(stmt, 1), 30);
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_keep_their_bounds),
        TEST(every_launch_has_its_own_value),
        TEST(what_waits_survives_a_failed_commit),
        TEST(equal_launches_get_one_value_each),
        TEST(so_many_equal_launches_are_told_apart),
        TEST(a_launch_without_one_has_its_configs),
        TEST(utilization_is_null_where_it_was_not_measured),
        TEST(a_launch_and_its_config_agree),
        TEST(damage_is_of_values_alone),
        TEST(one_damaged_chunk_hides_no_others),
        TEST(a_chunk_that_is_too_large_is_not_merged),
        TEST(samples_come_back),
        TEST(samples_add_up_to_seconds),
        TEST(samples_are_found_by_time_and_device),
        TEST(means_are_weighed_by_time),
        TEST(a_late_sample_does_not_belittle_its_second),
        TEST(impossible_ones_are_refused),
        TEST(a_quota_takes_values_with_their_launches),
        TEST(samples_alone_stay_below_the_quota),
        TEST(seconds_of_many_devices_stay_below_the_quota),
        TEST(what_is_old_is_found_by_an_index),
        TEST(the_module_shows_them_too),
    };
    return cmocka_run_group_tests_name("store series", tests, NULL, NULL);
}
