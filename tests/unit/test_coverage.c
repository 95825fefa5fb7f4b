/* Means over a part of the launches: the values that a history returns for kernels that change while most of
 * their launches have no value. Launches, settled values and samples enter a history as in the daemon, and
 * every answer is judged against all launches: the truth lies within value +- ci95, or no value is returned.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/sampling/known_totals.h"
#include "test_store_world.h"

#define SECOND   INT64_C(1000000000)
#define BEGIN    (INT64_C(1700000040) * SECOND) /* the start of a minute */
#define LAUNCHES 20                             /* per second, 40 ms each */
#define LAUNCH   (40 * SECOND / 1000)

/* Periods in seconds; a period ends where the next begins. */
struct history {
    const char *name;
    int seconds;
    double first, second;           /* elapsed occupancy in even and in odd phases */
    int phase_s;                    /* length of a phase; 0: no change */
    int measured_from, measured_to; /* seconds with values, per `measured_every` seconds */
    int measured_every;             /* 0: once */
    bool has_samples;
    enum occ_withheld withheld;
    double rough_se; /* standard error of launches with only a rough value; 0: they have none */
    int ended_runs;  /* earlier runs, each with a measured launch */
};

static const struct history histories[] = {
    /* values from before the change only: the worlds "halves" and "burst-then-change" */
    {"halves", 120, 0.760, 0.374, 60, 0, 5, 0, true, OCC_WITHHELD_TOTAL, 0, 0},
    {"halves, 47 %", 120, 0.760, 0.374, 60, 0, 56, 0, true, OCC_WITHHELD_TOTAL, 0, 0},
    {"burst-then-change", 30, 0.760, 0.380, 15, 8, 10, 0, true, OCC_WITHHELD_TOTAL, 0, 0},
    /* values in one of two alternating phases only */
    {"phases-7s", 140, 0.803, 0.477, 7, 0, 2, 14, true, OCC_WITHHELD_TOTAL, 0, 0},
    /* values in both phases: they differ, with or without a known total */
    {"bursts differ", 120, 0.760, 0.374, 10, 8, 12, 20, false, OCC_WITHHELD_LAUNCHES, 0, 0},
    /* no change: the value is given, with an error for the rest */
    {"steady, 4 %", 120, 0.760, 0.760, 0, 0, 5, 0, true, OCC_WITHHELD_NOT, 0, 0},
    {"steady, no samples", 120, 0.760, 0.760, 0, 0, 5, 0, false, OCC_WITHHELD_NOT, 0, 0},
    {"drift of 8 %", 120, 0.760, 0.700, 60, 0, 5, 0, false, OCC_WITHHELD_NOT, 0, 0},
    /* rough values reveal the change, also without a total */
    {"halves, rough", 120, 0.760, 0.374, 60, 0, 5, 0, false, OCC_WITHHELD_TOTAL, 0.06, 0},
    {"steady, rough", 120, 0.760, 0.760, 0, 0, 5, 0, false, OCC_WITHHELD_NOT, 0.06, 0},
    {"halves, too rough", 120, 0.760, 0.374, 60, 0, 5, 0, false, OCC_WITHHELD_NOT, 0.5, 0},
    /* more earlier runs than the daemon keeps means for */
    {"halves, after many runs", 120, 0.760, 0.374, 60, 0, 5, 0, true, OCC_WITHHELD_TOTAL, 0, 70000},
    /* the rest is short, but differs: the mean's error covers it */
    {"late change, 92 %", 60, 0.374, 0.760, 55, 0, 55, 0, true, OCC_WITHHELD_NOT, 0, 0},
    {"late change, rough", 60, 0.374, 0.760, 55, 0, 55, 0, false, OCC_WITHHELD_NOT, 0.03, 0},
    /* the whole change has values, so the mean is correct */
    {"measured change", 120, 0.760, 0.374, 60, 0, 120, 0, true, OCC_WITHHELD_NOT, 0, 0},
};

static double occupancy_at(const struct history *h, int second)
{
    return h->phase_s && second / h->phase_s % 2 ? h->second : h->first;
}

static bool is_measured(const struct history *h, int second)
{
    int at = h->measured_every ? second % h->measured_every : second;
    return at >= h->measured_from && at < h->measured_to;
}

static double truth(const struct history *h)
{
    double sum = 0;
    for (int i = 0; i < h->seconds; i++)
        sum += occupancy_at(h, i);
    return sum / h->seconds;
}

static double measured_part(const struct history *h)
{
    int measured = 0;
    for (int i = 0; i < h->seconds; i++)
        measured += is_measured(h, i);
    return (double)measured / h->seconds;
}

/* ---- the daemon's path ---- */

struct recorder {
    struct world *world;
    struct occ_known_totals *totals;
    struct occ_gpu_results results;
};

static void add_launch(struct recorder *r, const struct history *h, int second, int i)
{
    struct world *w = r->world;
    struct occ_error err = OCC_ERROR_INIT;
    int64_t start_ns = BEGIN + second * SECOND + i * (SECOND / LAUNCHES);
    double elapsed = occupancy_at(h, second);
    const struct occ_store_launch launch = {.start_ns = start_ns,
                                            .duration_ns = LAUNCH,
                                            .config = (uint32_t)w->config[0],
                                            .correlation = (uint32_t)(second * LAUNCHES + i)};
    struct occ_attribution_value value = {
        .tag = occ_gpu_results_tag(w->run[0], launch.correlation),
        .shape = occ_gpu_results_config(0, launch.config),
        .start_ns = start_ns,
        .end_ns = start_ns + LAUNCH,
        .measured = OCC_NOT_MEASURED,
    };
    if (is_measured(h, second))
        value.measured = (struct occ_measured){.source = OCC_ATTRIBUTION_REGRESSED,
                                               .achieved = elapsed,
                                               .achieved_se = 0.01,
                                               .elapsed = elapsed,
                                               .elapsed_se = 0.01,
                                               .sm_active = 1,
                                               .variance_inflation = 1,
                                               .blocks = NAN,
                                               .imbalance = NAN};
    else if (h->rough_se > 0) {
        value.measured.rough = elapsed;
        value.measured.rough_se = h->rough_se;
    }
    assert_int_equal(occ_store_append(w->store, w->run[0], w->device[0], &launch, 1, &err), 0);
    occ_known_totals_add_value(r->totals, &value);
    occ_gpu_results_add_value(&r->results, &value);
}

static void add_sample(struct recorder *r, const struct history *h, int second)
{
    struct occ_attribution_sample sample = {.start_ns = BEGIN + second * SECOND,
                                            .end_ns = BEGIN + (second + 1) * SECOND};
    double busy = (double)(LAUNCHES * LAUNCH) / 1e9;
    sample.ratio[OCC_RATIO_WARPS] = (float)(occupancy_at(h, second) * busy);
    occ_known_totals_add_sample(r->totals, &sample);
}

/* Stores the results with one commit per second, like the daemon. */
static void store(struct recorder *r)
{
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(occ_gpu_results_store(&r->results, r->world->store, r->world->device[0], &err), 0);
    occ_gpu_results_free(&r->results);
    assert_int_equal(occ_store_commit(r->world->store, &err), 0);
}

static void add_ended_runs(struct recorder *r, int n)
{
    const int64_t begin_ns = BEGIN - 1000 * SECOND;
    for (int i = 0; i < n; i++) {
        const struct occ_attribution_value value = {
            .tag = occ_gpu_results_tag(r->world->run[0] + 1 + i, 0),
            .shape = occ_gpu_results_config(0, 1),
            .start_ns = begin_ns,
            .end_ns = begin_ns + LAUNCH,
            .measured = {.source = OCC_ATTRIBUTION_REGRESSED, .elapsed = 0.5, .elapsed_se = 0.01},
        };
        occ_known_totals_add_value(r->totals, &value);
    }
    occ_known_totals_close(r->totals, begin_ns + SECOND, true, &r->results);
    occ_gpu_results_free(&r->results);
}

static void record(struct world *w, const struct history *h)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct recorder r = {.world = w, .totals = occ_known_totals_new()};
    assert_non_null(r.totals);
    add_ended_runs(&r, h->ended_runs);
    for (int second = 0; second < h->seconds; second++) {
        for (int i = 0; i < LAUNCHES; i++)
            add_launch(&r, h, second, i);
        if (h->has_samples)
            add_sample(&r, h, second);
        occ_known_totals_close(r.totals, BEGIN + second * SECOND, false, &r.results);
        store(&r);
    }
    occ_known_totals_close(r.totals, INT64_MAX, true, &r.results);
    store(&r);
    assert_int_equal(occ_store_finish(w->store, &err), 0);
    occ_known_totals_free(r.totals);
}

/* ---- answers ---- */

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

static void check(const struct history *h, const char *what, double value, double ci95, double ratio)
{
    print_message("%-20s %-16s truth %5.1f  printed %5.1f +- %4.1f  measured %5.1f %%\n", h->name, what,
                  truth(h) * 100, value * 100, ci95 * 100, ratio * 100);
    assert_true(fabs(ratio - measured_part(h)) < 0.001);
    if (isnan(value) != (h->withheld != OCC_WITHHELD_NOT))
        fail_msg("%s, %s: %s", h->name, what, isnan(value) ? "withheld" : "not withheld");
    if (!isnan(value) && !(fabs(value - truth(h)) <= ci95))
        fail_msg("%s, %s: %.1f +- %.1f for %.1f", h->name, what, value * 100, ci95 * 100, truth(h) * 100);
}

static void check_sql(struct world *w, const struct history *h)
{
    check(h, "measured_config", number(w->store, "SELECT elapsed FROM measured_config"),
          number(w->store, "SELECT elapsed_ci95 FROM measured_config"),
          number(w->store, "SELECT measured_ratio FROM measured_config"));
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT coalesce(withheld, '') = '%s' FROM measured_config",
                   occ_withheld_word(h->withheld));
    assert_true(number(w->store, sql) == 1);
}

static void check_rows(struct world *w, const struct history *h)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_filter all = {0};
    struct occ_top top;
    struct occ_config_rows configs;
    struct occ_measurement m;
    assert_int_equal(occ_store_top(w->store, &all, OCC_TOP_BY_KERNEL, &top, &err), 0);
    assert_int_equal(top.n, 1);
    check(h, "top", top.rows[0].elapsed, 1.96 * top.rows[0].elapsed_error, top.rows[0].measured_ratio);
    check(h, "top, achieved", top.rows[0].achieved, 1.96 * top.rows[0].achieved_error,
          top.rows[0].measured_ratio);
    occ_top_free(&top);
    assert_int_equal(occ_store_configs(w->store, &all, &configs, &err), 0);
    assert_int_equal(configs.n, 1);
    occ_measured_means(&configs.rows[0].measured, configs.rows[0].measurable_ns, &m);
    check(h, "show", m.elapsed, 1.96 * m.elapsed_error, m.measured_ratio);
    assert_int_equal(m.withheld, h->withheld);
    occ_config_rows_free(&configs);
}

static void open_and_record(struct world *w, const struct history *h)
{
    *w = (struct world){.n = 0};
    world_make_directory(w);
    world_open(w);
    record(w, h);
}

static void close_and_remove(struct world *w)
{
    occ_store_close(w->store);
    world_remove_directory(w);
}

static void a_mean_covers_all_launches_or_is_withheld(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof histories / sizeof *histories; i++) {
        struct world w;
        open_and_record(&w, &histories[i]);
        check_sql(&w, &histories[i]);
        check_rows(&w, &histories[i]);
        close_and_remove(&w);
    }
}

/* ---- several configurations, and views ---- */

/* Appends as many launches of another configuration of the device, all without a value. */
static void append_unmeasured(struct world *w, int seconds)
{
    struct occ_error err = OCC_ERROR_INIT;
    int other = 1;
    while (w->config_device[other] != w->config_device[0])
        other++;
    for (int i = 0; i < seconds * LAUNCHES; i++) {
        const struct occ_store_launch launch = {.start_ns = BEGIN + i * (SECOND / LAUNCHES) + 1,
                                                .duration_ns = LAUNCH,
                                                .config = (uint32_t)w->config[other],
                                                .correlation = (uint32_t)i};
        assert_int_equal(occ_store_append(w->store, w->run[0], w->device[0], &launch, 1, &err), 0);
    }
    assert_int_equal(occ_store_finish(w->store, &err), 0);
}

/* The unmeasured half of the time may have any occupancy that its launches' resources allow. */
static void a_row_covers_configurations_without_a_value(void **state)
{
    static const struct history half = {"half", 60, 0.76, 0.76, 0, 0, 60, 0, true, OCC_WITHHELD_NOT, 0, 0};
    struct occ_error err = OCC_ERROR_INIT;
    struct world w;
    struct occ_top top;
    (void)state;
    open_and_record(&w, &half);
    append_unmeasured(&w, half.seconds);
    assert_int_equal(occ_store_top(w.store, &(struct occ_filter){0}, OCC_TOP_BY_GPU, &top, &err), 0);
    assert_int_equal(top.n, 1);
    assert_true(fabs(top.rows[0].measured_ratio - 0.5) < 1e-6);
    assert_true(fabs(top.rows[0].elapsed - 0.76) < 1e-6);
    assert_true(1.96 * top.rows[0].elapsed_error >= 0.76 / 2);
    occ_top_free(&top);
    assert_int_equal(occ_store_top(w.store, &(struct occ_filter){0}, OCC_TOP_BY_CONFIG, &top, &err), 0);
    assert_int_equal(top.n, 2);
    for (size_t i = 0; i < top.n; i++) /* no coverage: no value */
        assert_true(isnan(top.rows[i].elapsed) == (top.rows[i].measured_ratio == 0) &&
                    isnan(top.rows[i].elapsed_error) == isnan(top.rows[i].elapsed));
    occ_top_free(&top);
    close_and_remove(&w);
}

static double combined(double a, double b)
{
    return fmax(a, b) + OCC_MEASURED_CHORD * fmin(a, b);
}

/* Views by minute state the coverage of the minute. */
static void minutes_state_their_coverage(void **state)
{
    static const struct history first = {"first", 120, 0.76, 0.76, 0, 0, 30, 0, true, OCC_WITHHELD_NOT, 0, 0};
    struct world w;
    (void)state;
    open_and_record(&w, &first);
    assert_true(fabs(number(w.store, "SELECT measured_ratio FROM minute ORDER BY minute") - 0.5) < 1e-6);
    assert_true(number(w.store, "SELECT measured_ratio FROM minute ORDER BY minute DESC") == 0);
    assert_true(isnan(number(w.store, "SELECT elapsed FROM minute ORDER BY minute DESC")));
    assert_true(isnan(number(w.store, "SELECT elapsed_ci95 FROM minute ORDER BY minute DESC")));
    assert_true(fabs(number(w.store, "SELECT measured_ratio FROM hour") - 0.25) < 1e-6);
    assert_true(fabs(number(w.store, "SELECT measured_ratio FROM measured_hour") - 0.25) < 1e-6);
    assert_true(fabs(number(w.store, "SELECT elapsed_ci95 FROM measured_minute ORDER BY minute") -
                     1.96 * combined(0.01 * OCC_MEASURED_WINDOWS, 0.5 * 0.13 * 0.76)) < 1e-6);
    assert_true(fabs(number(w.store, "SELECT elapsed_ci95 FROM minute ORDER BY minute") -
                     1.96 * combined(0.01 * OCC_MEASURED_WINDOWS, 0.5 * 0.13 * 0.76)) < 1e-6);
    close_and_remove(&w);
}

/* Nsight Compute reports no errors: only launches without a value add one. */
static void an_unknown_error_is_that_of_the_rest(void **state)
{
    (void)state;
    assert_true(isnan(occ_measured_widened(NAN, 0)));
    assert_true(isnan(occ_measured_widened(NAN, NAN)));
    assert_true(occ_measured_widened(NAN, 0.0325) == 0.0325);
    assert_true(fabs(occ_measured_widened(0.01, 0.0325) - combined(0.01, 0.0325)) < 1e-12);
}

/* The combined error is at least the root of the summed squares, and at most 8.3 % above it. */
static void errors_are_combined_without_a_root(void **state)
{
    (void)state;
    for (double rest = 0; rest < 4; rest += 0.01) {
        double widened = occ_measured_widened(1, rest), root = sqrt(1 + rest * rest);
        assert_true(widened >= root * (1 - 1e-4) && widened <= 1.083 * root);
    }
}

/* Reports of Nsight Compute may lack elapsed cycles for some or all results. */
static void the_ratio_is_that_of_the_value(void **state)
{
    static const struct {
        double elapsed_ns, achieved_ns, ratio;
    } cases[] = {{500, 500, 0.5}, {0, 1000, 1}, {0, 500, 0.5}, {500, 1000, 0.5}, {0, 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world w = {0};
        struct occ_error err = OCC_ERROR_INIT;
        struct occ_measured_sums sums = {.ncu = cases[i].achieved_ns > 0};
        world_make_directory(&w);
        world_open(&w);
        sums.ns[OCC_MEASURED_elapsed] = cases[i].elapsed_ns;
        sums.sum[OCC_MEASURED_elapsed] = 0.25 * cases[i].elapsed_ns;
        sums.ns[OCC_MEASURED_achieved] = cases[i].achieved_ns;
        sums.sum[OCC_MEASURED_achieved] = 0.5 * cases[i].achieved_ns;
        assert_true(fabs(occ_measured_ratio(&sums, 1000) - cases[i].ratio) < 1e-9);
        const struct occ_store_launch launch = {
            .start_ns = BEGIN, .duration_ns = 1000, .config = (uint32_t)w.config[0], .correlation = 1};
        assert_int_equal(occ_store_append(w.store, w.run[0], w.device[0], &launch, 1, &err), 0);
        assert_int_equal(occ_store_add_measured(w.store, BEGIN / SECOND / 60, w.run[0], (uint32_t)w.config[0],
                                                &sums, &err),
                         0);
        assert_int_equal(occ_store_finish(w.store, &err), 0);
        double ratio = number(w.store, "SELECT measured_ratio FROM measured_config");
        assert_true(fabs(ratio - cases[i].ratio) < 1e-9);
        close_and_remove(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mean_covers_all_launches_or_is_withheld),
        cmocka_unit_test(a_row_covers_configurations_without_a_value),
        cmocka_unit_test(minutes_state_their_coverage),
        cmocka_unit_test(an_unknown_error_is_that_of_the_rest),
        cmocka_unit_test(errors_are_combined_without_a_root),
        cmocka_unit_test(the_ratio_is_that_of_the_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
