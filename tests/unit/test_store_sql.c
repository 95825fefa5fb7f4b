/*
 * SQL as an interface: order, edges, plans and rowids of the table launch, TEMP views, attached histories,
 * hostile files, column_help. Answers are compared with the same question in a form that SQLite works out
 * itself ("+start_ns").
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/sql_nouns.h"
#include "test_store_world.h"

#define BEGIN  INT64_C(1700000000000000000)
#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    world_make_directory(w);
    w->options.chunk_rows = 50;
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

/* Fills the history with two runs on two devices; their chunks overlap, and some chunks are full. */
static void fill(struct world *w)
{
    world_open(w);
    for (int i = 0; i < 8; i++) {
        world_append(w, i % 2, BEGIN + i * MINUTE, 3 * MINUTE, 120);
        commit(w);
    }
}

/* All rows of a statement as text. free() it. */
static char *answer(sqlite3 *db, const char *sql)
{
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    int step;
    while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(stmt); i++)
            sqlite3_str_appendf(text, "%s%s", i ? " " : "",
                                sqlite3_column_type(stmt, i) == SQLITE_NULL
                                    ? "NULL"
                                    : (const char *)sqlite3_column_text(stmt, i));
        sqlite3_str_appendall(text, "\n");
    }
    if (step != SQLITE_DONE)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    (void)sqlite3_finalize(stmt);
    sqlite3_str_appendall(text, ";");
    return sqlite3_str_finish(text);
}

static void assert_same(sqlite3 *db, const char *sql, const char *expected_sql)
{
    char *got = answer(db, sql), *expected = answer(db, expected_sql);
    if (!expected || !got || strcmp(got, expected) != 0)
        fail_msg("%s\n%s\nbut %s\n%s", sql, got, expected_sql, expected);
    sqlite3_free(got);
    sqlite3_free(expected);
}

static bool plan_has(sqlite3 *db, const char *sql, const char *words)
{
    char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql), *plan = answer(db, explain);
    bool has = plan && strstr(plan, words);
    sqlite3_free(explain);
    sqlite3_free(plan);
    return has;
}

static void execute(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
}

/* ---- order ---- */

#define COLUMNS                                                                                              \
    "start_ns, end_ns, run_id, device_id, config_id, kernel, stream_id, correlation_id, graph_node_id, "     \
    "measured_source, rowid"

#define ORDERED "SELECT start_ns FROM launch WHERE %s ORDER BY %sstart_ns%s%s"

/* Launches with equal starts come in any order: only their starts are compared. */
static void starts_come_in_order(void **state)
{
    static const char *const conditions[] = {
        "1",
        "run_id = 1",
        "device_id = 2 AND run_id = 2",
        "config_id BETWEEN 3 AND 9",
        "kernel_id = 2",
        "correlation_id > 700",
        "start_ns >= 1700000100000000000 AND start_ns < 1700000300000000000",
        "kernel = 'vecAdd_tn' AND duration_ns > 5000",
        "run_id = 3",
    };
    static const char *const limits[] = {"", " LIMIT 10", " LIMIT 7 OFFSET 123", " LIMIT 1", " LIMIT 0"};
    struct world *w = *state;
    fill(w);
    sqlite3 *db = occ_store_sqlite(w->store);
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        for (size_t k = 0; k < 2 * sizeof limits / sizeof *limits; k++) {
            char got[400], expected[400];
            const char *down = k % 2 ? " DESC" : "", *limit = limits[k / 2];
            (void)snprintf(got, sizeof got, ORDERED, conditions[i], "", down, limit);
            (void)snprintf(expected, sizeof expected, ORDERED, conditions[i], "+", down, limit);
            assert_false(plan_has(db, got, "TEMP B-TREE"));
            assert_true(plan_has(db, expected, "TEMP B-TREE"));
            assert_same(db, got, expected);
        }
    /* in any order of launches with equal starts, the columns of a row belong to the same launch */
    assert_same(db, "SELECT " COLUMNS " FROM (SELECT rowid, * FROM launch ORDER BY start_ns) ORDER BY rowid",
                "SELECT " COLUMNS " FROM launch ORDER BY rowid");
    assert_same(db,
                "SELECT " COLUMNS " FROM (SELECT rowid, * FROM launch ORDER BY start_ns DESC) ORDER BY rowid",
                "SELECT " COLUMNS " FROM launch ORDER BY rowid");
}

/* Adds runs [low, high) that overlap. */
static void add_runs(struct world *w, int low, int high)
{
    enum { EACH = 20, SPREAD = 1103 };
    struct occ_error err = OCC_ERROR_INIT;
    for (int r = low; r < high; r++) {
        const struct occ_run run = {.uuid = {9, (uint8_t)r, (uint8_t)(r >> 8)}, .start_ns = BEGIN};
        struct occ_store_launch launches[EACH];
        int64_t id = 0;
        assert_int_equal(occ_store_put_run(w->store, &run, &id, &err), 0);
        for (int i = 0; i < EACH; i++)
            launches[i] =
                (struct occ_store_launch){.start_ns = BEGIN + i * SECOND + (r * 7919 % SPREAD) * 1000,
                                          .duration_ns = (uint64_t)(1 + r),
                                          .config = (uint32_t)w->config[r % WORLD_CONFIGS],
                                          .correlation = (uint32_t)(r * EACH + i)};
        assert_int_equal(occ_store_append(w->store, id, w->device[0], launches, EACH, &err), 0);
    }
    commit(w);
}

/* Up to 64 chunks at a time are merged. Beyond, SQLite sorts: decoding chunks again and again would take
 * longer. The launches of one run are always merged. */
static void many_runs_are_merged(void **state)
{
    static const char by_start[] = "SELECT start_ns FROM launch ORDER BY start_ns";
    struct world *w = *state;
    world_open(w);
    sqlite3 *db = occ_store_sqlite(w->store);
    add_runs(w, 0, 64);
    assert_false(plan_has(db, by_start, "TEMP B-TREE"));
    add_runs(w, 64, 65);
    assert_true(plan_has(db, by_start, "TEMP B-TREE"));
    assert_true(plan_has(db, "SELECT start_ns FROM launch ORDER BY start_ns DESC", "TEMP B-TREE"));
    assert_false(
        plan_has(db, "SELECT start_ns FROM launch WHERE run_id = 3 ORDER BY start_ns", "TEMP B-TREE"));
    add_runs(w, 65, 1100);
    assert_same(db, "SELECT " COLUMNS ", achieved FROM launch ORDER BY start_ns",
                "SELECT " COLUMNS ", achieved FROM launch ORDER BY +start_ns");
    assert_same(
        db, "SELECT " COLUMNS " FROM launch WHERE kernel_id <> 3 AND config_id > 4 ORDER BY start_ns DESC",
        "SELECT " COLUMNS " FROM launch WHERE kernel_id <> 3 AND config_id > 4 ORDER BY +start_ns DESC");
}

static void ends_and_groups_need_no_sorting(void **state)
{
    struct world *w = *state;
    fill(w);
    sqlite3 *db = occ_store_sqlite(w->store);
    assert_same(db, "SELECT max(start_ns) FROM launch", "SELECT max(+start_ns) FROM launch");
    assert_same(db, "SELECT min(start_ns) FROM launch", "SELECT min(+start_ns) FROM launch");
    assert_same(db, "SELECT max(start_ns) FROM launch WHERE run_id = 1 AND config_id = 3",
                "SELECT max(+start_ns) FROM launch WHERE run_id = 1 AND config_id = 3");
    assert_same(db, "SELECT run_id, count(*), sum(duration_ns) FROM launch GROUP BY run_id",
                "SELECT +run_id, count(*), sum(duration_ns) FROM launch GROUP BY 1");
    assert_same(db, "SELECT device_id, count(*) FROM launch GROUP BY device_id ORDER BY device_id DESC",
                "SELECT +device_id, count(*) FROM launch GROUP BY 1 ORDER BY 1 DESC");
    assert_false(plan_has(db, "SELECT run_id, count(*) FROM launch GROUP BY run_id", "TEMP B-TREE"));
    assert_true(plan_has(db, "SELECT start_ns FROM launch ORDER BY start_ns, run_id", "TEMP B-TREE"));
}

/* Many launches of one configuration, few of the others. */
static sqlite3 *fill_unevenly(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store_launch many[300] = {0};
    fill(w);
    for (int i = 0; i < 300; i++)
        many[i] = (struct occ_store_launch){.start_ns = BEGIN + i * SECOND,
                                            .duration_ns = (uint64_t)i,
                                            .config = (uint32_t)w->config[8],
                                            .correlation = (uint32_t)(5000 + i)};
    assert_int_equal(occ_store_append(w->store, w->run[0], w->device[0], many, 300, &err), 0);
    commit(w);
    return occ_store_sqlite(w->store);
}

/* Groups of configurations and of kernels: the same rows as SQLite's own, but without its sort. */
static void check_groups(sqlite3 *db, const char *condition)
{
    static const char *const groups[][2] = {
        {"count(*), sum(duration_ns), avg(duration_ns), max(end_ns)",
         "count(*), sum(duration_ns), avg(duration_ns), max(end_ns)"},
        {"sum(stream_id), min(start_ns), count(graph_node_id), kernel, grid_x",
         "sum(stream_id), min(start_ns), count(graph_node_id), kernel, count(DISTINCT config_id)"},
        {"count(DISTINCT rowid), sum(rowid), total(context_id)",
         "count(DISTINCT rowid), sum(rowid), total(context_id)"}};
    static const char *const keys[] = {"config_id", "kernel_id"};
    char got[400], expected[400];
    for (size_t k = 0; k < 2 * sizeof groups / sizeof *groups; k++) {
        const char *key = keys[k % 2], *group = groups[k / 2][k % 2];
        (void)snprintf(got, sizeof got, "SELECT %s, %s FROM launch WHERE %s GROUP BY %s", key, group,
                       condition, key);
        (void)snprintf(expected, sizeof expected, "SELECT +%s, %s FROM launch WHERE %s GROUP BY 1", key,
                       group, condition);
        if (plan_has(db, got, "TEMP B-TREE FOR GROUP BY"))
            fail_msg("%s is sorted", got);
        assert_true(plan_has(db, expected, "TEMP B-TREE FOR GROUP BY"));
        assert_same(db, got, expected);
    }
}

/* Groups by configuration take several passes: see PASS_ROWS in store.cmake. */
static void configurations_come_together(void **state)
{
    static const char *const conditions[] = {"1",
                                             "run_id = 1",
                                             "config_id > 7",
                                             "config_id = 9",
                                             "config_id = 3 AND config_id = 4",
                                             "config_id BETWEEN 8 AND 12 AND correlation_id % 2",
                                             "kernel_id = 2",
                                             "start_ns >= 1700000100000000000 AND duration_ns > 3000",
                                             "config_id = 1000"};
    sqlite3 *db = fill_unevenly(*state);
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        check_groups(db, conditions[i]);
    assert_false(plan_has(db, "SELECT kernel_id, min(run_id) FROM launch WHERE run_id = 1 GROUP BY kernel_id",
                          "TEMP B-TREE"));
    assert_same(db, "SELECT kernel_id FROM launch ORDER BY kernel_id DESC",
                "SELECT kernel_id FROM launch ORDER BY +kernel_id DESC");
    assert_same(db, "SELECT config_id FROM launch ORDER BY config_id DESC",
                "SELECT config_id FROM launch ORDER BY +config_id DESC");
    /* a scan for each row of another table */
    assert_same(db,
                "SELECT c.config_id, (SELECT group_concat(n) FROM (SELECT count(*) AS n FROM launch l WHERE "
                "l.device_id = c.device_id GROUP BY l.config_id)) FROM launch_config c ORDER BY 1",
                "SELECT c.config_id, (SELECT group_concat(n) FROM (SELECT count(*) AS n FROM launch l WHERE "
                "l.device_id = c.device_id GROUP BY +l.config_id)) FROM launch_config c ORDER BY 1");
}

/* A column that is not the same for all launches of a group needs the sort. */
static void other_columns_are_sorted(void **state)
{
    sqlite3 *db = fill_unevenly(*state);
    /* columns that only a decoded chunk has need the sort */
    assert_true(
        plan_has(db, "SELECT config_id, sum(achieved) FROM launch GROUP BY config_id", "TEMP B-TREE"));
    assert_true(plan_has(db, "SELECT config_id, min(run_id) FROM launch GROUP BY config_id", "TEMP B-TREE"));
    /* a condition that leaves several runs or devices fixes none: each launch has its own */
    static const char *const many_values[] = {"> 0", ">= 1", "< 100", "<= 2", "BETWEEN 1 AND 2", "IN (1, 2)"};
    static const char *const keys[] = {"config_id", "kernel_id"}, *const fixed[] = {"run_id", "device_id"};
    for (size_t i = 0; i < 4 * sizeof many_values / sizeof *many_values; i++) {
        const char *key = keys[i % 2], *column = fixed[i / 2 % 2], *condition = many_values[i / 4];
        char got[200], expected[200];
        (void)snprintf(got, sizeof got,
                       "SELECT %s, min(%s), max(%s), sum(%s) FROM launch WHERE %s %s GROUP BY %s", key,
                       column, column, column, column, condition, key);
        (void)snprintf(expected, sizeof expected,
                       "SELECT +%s, min(%s), max(%s), sum(%s) FROM launch WHERE +%s %s GROUP BY 1", key,
                       column, column, column, column, condition);
        if (!plan_has(db, got, "TEMP B-TREE"))
            fail_msg("%s is not sorted", got);
        assert_same(db, got, expected);
    }
}

/* ---- edges ---- */

/* Starts exactly on bounds, at first and last launches of chunks, on minutes and hours. */
static void edges_of_starts_are_exact(void **state)
{
    static const char *const operators[] = {"=", ">", ">=", "<", "<="};
    struct world *w = *state;
    fill(w);
    sqlite3 *db = occ_store_sqlite(w->store);
    for (size_t i = 0; i < w->n; i += 37) {
        const int64_t start = w->launches[i].launch.start_ns;
        const int64_t moments[] = {start, start - 1, start + 1, start / MINUTE * MINUTE, start / HOUR * HOUR};
        for (size_t k = 0; k < sizeof moments / sizeof *moments; k++)
            for (size_t o = 0; o < sizeof operators / sizeof *operators; o++) {
                char got[128], expected[128];
                (void)snprintf(got, sizeof got, "SELECT count(*) FROM launch WHERE start_ns %s %lld",
                               operators[o], (long long)moments[k]);
                (void)snprintf(expected, sizeof expected,
                               "SELECT count(*) FROM launch WHERE +start_ns %s %lld", operators[o],
                               (long long)moments[k]);
                assert_same(db, got, expected);
            }
    }
    assert_same(
        db,
        "SELECT count(*) FROM stored_chunk c WHERE 1 <> (SELECT min(1, count(*)) FROM launch l WHERE "
        "l.run_id = c.run_id AND l.start_ns = c.first_start_ns) OR 1 <> (SELECT min(1, count(*)) FROM "
        "launch l WHERE l.run_id = c.run_id AND l.start_ns = c.last_start_ns)",
        "SELECT 0");
}

/* SQLite turns "a OR b" into two scans and counts a row that both find once, by rowid. */
static void rows_of_two_scans_are_the_same(void **state)
{
    static const char sql[] = "SELECT count(*), count(DISTINCT rowid), sum(duration_ns) FROM launch WHERE "
                              "(run_id = 2 AND correlation_id < 300) OR (config_id = 5 AND start_ns > 0)";
    struct world *w = *state;
    fill(w);
    sqlite3 *db = occ_store_sqlite(w->store);
    assert_true(plan_has(db, sql, "MULTI-INDEX OR"));
    assert_same(db, sql,
                "SELECT count(*), count(DISTINCT rowid), sum(duration_ns) FROM launch WHERE "
                "(+run_id = 2 AND +correlation_id < 300) OR (+config_id = 5 AND +start_ns > 0)");
    assert_same(db, "SELECT count(DISTINCT rowid) FROM launch", "SELECT count(*) FROM launch");
}

/* ---- plans ---- */

/* A table of launches is scanned once, configurations are looked up; not the other way round. */
static void joins_scan_launches_once(void **state)
{
    struct world *w = *state;
    fill(w);
    sqlite3 *db = occ_store_sqlite(w->store);
    static const char join[] = "SELECT c.kernel, count(*) FROM launch l JOIN stored_launch_config c0 "
                               "USING(config_id) JOIN launch_config c USING(config_id) GROUP BY 1";
    assert_true(plan_has(db, join, "SCAN l VIRTUAL TABLE"));
    assert_true(plan_has(db, join, "SEARCH c0 USING INTEGER PRIMARY KEY"));
    /* the run is looked up first, by its key */
    assert_true(plan_has(db, "SELECT 1 FROM stored_run r JOIN launch l USING(run_id) WHERE r.uuid = x'01'",
                         "SEARCH r USING"));
}

/* ---- where it can be used ---- */

static void launch_works_in_temp_views(void **state)
{
    struct world *w = *state;
    fill(w);
    sqlite3 *db = occ_store_sqlite(w->store);
    execute(db, "CREATE TEMP VIEW slow AS SELECT * FROM launch WHERE duration_ns > 10000");
    assert_same(db, "SELECT count(*) FROM slow WHERE run_id = 1",
                "SELECT count(*) FROM launch WHERE +duration_ns > 10000 AND +run_id = 1");
    /* anybody may have stored a view in the file: our connections refuse virtual tables in stored views */
    execute(db, "CREATE VIEW theirs AS SELECT * FROM launch");
    assert_int_not_equal(sqlite3_exec(db, "SELECT * FROM theirs", NULL, NULL, NULL), SQLITE_OK);
}

static void histories_can_be_attached(void **state)
{
    struct world *w = *state;
    struct world other = {.options = {.chunk_rows = 50}};
    char sql[256];
    fill(w);
    world_make_directory(&other);
    world_open(&other);
    world_append(&other, 0, BEGIN, MINUTE, 33);
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_device_sample sample = {.start_ns = BEGIN, .end_ns = BEGIN + SECOND, .elapsed = 0.5};
    assert_int_equal(occ_store_add_samples(other.store, other.device[1], &sample, 1, &err), 0);
    commit(&other);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(occ_store_register(db), SQLITE_OK);
    (void)snprintf(sql, sizeof sql, "ATTACH '%s' AS here; ATTACH '%s' AS \"the \"\"other\"\"\"", w->path,
                   other.path);
    execute(db, sql);
    assert_same(
        db,
        "SELECT (SELECT count(*) FROM here.launch), (SELECT count(*) FROM \"the \"\"other\"\"\".launch), "
        "(SELECT elapsed FROM \"the \"\"other\"\"\".device_sample)",
        "SELECT 960, 33, 0.5");
    assert_same(db,
                "SELECT a.kernel, count(*) FROM here.launch a JOIN \"the \"\"other\"\"\".launch b "
                "ON a.kernel = b.kernel AND b.correlation_id < 3 GROUP BY 1 ORDER BY 1",
                "SELECT k, sum(n) FROM (SELECT kernel AS k, (SELECT count(*) FROM \"the "
                "\"\"other\"\"\".launch b WHERE "
                "b.kernel = a.kernel AND +b.correlation_id < 3) AS n FROM here.launch a) WHERE n > 0 GROUP "
                "BY 1 ORDER "
                "BY 1");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    occ_store_close(other.store);
    world_remove_directory(&other);
}

/* ---- the file's documentation of itself ---- */

static void column_help_is_complete(void **state)
{
    struct world *w = *state;
    world_open(w);
    sqlite3 *db = occ_store_sqlite(w->store);
    for (const struct occ_sql_noun *noun = occ_sql_nouns; noun->name; noun++) {
        char *got = sqlite3_mprintf("SELECT name FROM pragma_table_info(%Q)", noun->name);
        char *expected = sqlite3_mprintf(
            "SELECT column_name FROM column_help WHERE table_name = %Q ORDER BY rowid", noun->name);
        assert_same(db, got, expected);
        sqlite3_free(got);
        sqlite3_free(expected);
    }
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM column_help WHERE length(help) < 4"), 0);
    /* units are part of names */
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM column_help WHERE (unit LIKE 'ns%') <> "
                                            "(column_name LIKE '%\\_ns' ESCAPE '\\')"),
                     0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(starts_come_in_order),
        TEST(many_runs_are_merged),
        TEST(ends_and_groups_need_no_sorting),
        TEST(configurations_come_together),
        TEST(other_columns_are_sorted),
        TEST(edges_of_starts_are_exact),
        TEST(rows_of_two_scans_are_the_same),
        TEST(joins_scan_launches_once),
        TEST(launch_works_in_temp_views),
        TEST(histories_can_be_attached),
        TEST(column_help_is_complete),
    };
    return cmocka_run_group_tests_name("store sql", tests, NULL, NULL);
}
