/* History limits: parts that are too old, and files that are above their quota. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "test_store_world.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
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

static struct occ_store *open_reader(const struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *reader = NULL;
    if (occ_store_open(w->path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &reader, &err) != 0)
        fail_msg("%s", err.message);
    return reader;
}

/* ---- ages ---- */

static void maintain(struct world *w, int64_t now_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    bool more = true;
    while (more)
        if (occ_store_maintain(w->store, now_ns, &more, &err) != 0)
            fail_msg("%s", err.message);
}

static uint64_t launches_in(struct world *w, int64_t since_ns, int64_t until_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_top top;
    uint64_t launches = 0;
    const struct occ_filter filter = {.since_ns = since_ns, .until_ns = until_ns};
    if (occ_store_top(w->store, &filter, OCC_TOP_BY_KERNEL, &top, &err) != 0)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < top.n; i++)
        launches += top.rows[i].launches;
    occ_top_free(&top);
    return launches;
}

/* A recording of long ago, and one that does not know when. */
static void import_old(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    int64_t run = 0;
    for (uint8_t i = 0; i < 2; i++) {
        struct occ_store_launch launch = {
            .start_ns = i ? 1000 : BEGIN - 500 * DAY, .duration_ns = 10, .config = (uint32_t)w->config[0]};
        struct occ_run description = {.uuid = {(uint8_t)(100 + i)},
                                      .start_ns = launch.start_ns,
                                      .end_ns = launch.start_ns + 10,
                                      .source = {.tool = "nsys", .hash = i ? "a" : "b"}};
        assert_int_equal(occ_store_put_run(w->store, &description, &run, &err), 0);
        assert_int_equal(occ_store_append(w->store, run, w->config_device[0], &launch, 1, &err), 0);
        assert_int_equal(occ_store_end_run(w->store, run, &err), 0);
    }
}

/* 40 days in which each hour has launches, with a machine that is off for a day. */
static void parts_are_kept_for_their_time(void **state)
{
    struct world *w = *state;
    int64_t begin = BEGIN / HOUR * HOUR, now = begin;
    w->options.chunk_rows = 1000;
    w->options.ages = (struct occ_store_ages){
        .raw_ns = 3 * DAY, .seconds_ns = DAY, .minutes_ns = 5 * DAY, .hours_ns = 20 * DAY};
    world_open(w);
    import_old(w);
    for (int hour = 0; hour < 40 * 24; hour++, now += HOUR) {
        char sql[160];
        if (hour / 24 == 30)
            continue;
        world_append(w, 0, now, HOUR, 60);
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO stored_device_second(second, device_id, samples, covered_ns) "
                       "VALUES(%lld, 1, 1, 1)",
                       (long long)(now / SECOND));
        assert_int_equal(sqlite3_exec(occ_store_sqlite(w->store), sql, NULL, NULL, NULL), SQLITE_OK);
        commit(w);
        maintain(w, now);
    }
    maintain(w, now);
    const struct {
        const char *first;
        int64_t unit_ns, age_ns, slack_ns;
    } parts[] = {
        {"SELECT min(minute) FROM stored_minute JOIN stored_run USING(run_id) WHERE source = 'trace'", MINUTE,
         5 * DAY, HOUR},
        {"SELECT min(hour) FROM stored_hour JOIN stored_run USING(run_id) WHERE source = 'trace'", HOUR,
         20 * DAY, HOUR},
        {"SELECT min(second) FROM stored_device_second", SECOND, DAY, HOUR},
        {"SELECT min(stored_chunk.last_start_ns) FROM stored_chunk JOIN stored_run USING(run_id) "
         "WHERE source = 'trace'",
         1, 3 * DAY, DAY}}; /* chunks go whole */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int64_t first_ns = world_number(w->store, parts[i].first) * parts[i].unit_ns;
        assert_in_range(first_ns, now - parts[i].age_ns, now - parts[i].age_ns + parts[i].slack_ns);
    }
    /* the remaining launches are exact, by minute, hour and launch */
    assert_int_equal(launches_in(w, now - 20 * DAY, 0), 19 * 24 * 60);
    for (int i = 0; i < 10; i++) {
        world_check_questions(
            w, w->store, &(struct occ_filter){.since_ns = now - (i + 8) * DAY, .until_ns = now - 4 * DAY});
        world_check_questions(w, w->store, &(struct occ_filter){.since_ns = now - 4 * DAY + i * 7 * MINUTE});
        world_check(w, w->store, &(struct occ_filter){.since_ns = now - 2 * DAY + i * INT64_C(1234567891)});
    }
    assert_int_equal(world_number(w->store,
                                  "SELECT count(*) FROM stored_hour h JOIN stored_run USING(run_id) "
                                  "WHERE source = 'nsys'"),
                     2);
    assert_int_equal(world_number(w->store,
                                  "SELECT count(*) FROM launch l JOIN stored_run USING(run_id) WHERE "
                                  "source = 'nsys'"),
                     2);
}

/* A time range that ends within an hour counts the whole hour once the hour's minutes have aged out: the file
 * stores its first remaining minute. */
static void an_hour_without_minutes_counts_whole(void **state)
{
    enum { LAUNCHES = 60, HOURS = 5 * 24 };
    struct world *w = *state;
    int64_t begin = BEGIN / HOUR * HOUR;
    w->options.chunk_rows = 1000;
    w->options.ages = (struct occ_store_ages){.raw_ns = DAY, .minutes_ns = 2 * DAY, .hours_ns = 30 * DAY};
    world_open(w);
    for (int hour = 0; hour < HOURS; hour++) {
        world_append(w, 0, begin + hour * HOUR, HOUR, LAUNCHES);
        commit(w);
    }
    assert_int_equal(world_number(w->store, "SELECT first_minute FROM stored_retention"), 0);
    maintain(w, begin + HOURS * HOUR);
    assert_int_equal(world_number(w->store, "SELECT first_minute FROM stored_retention") * MINUTE,
                     world_number(w->store, "SELECT min(minute) FROM stored_minute") * MINUTE / HOUR * HOUR);
    for (int hours = 0; hours < 48; hours += 7) {
        int64_t end = begin + hours * HOUR;
        assert_int_equal(launches_in(w, begin, end + 30 * MINUTE), (hours + 1) * LAUNCHES);
        assert_int_equal(launches_in(w, begin, end + 1), (hours + 1) * LAUNCHES);
        assert_int_equal(launches_in(w, end, end + 59 * MINUTE), LAUNCHES);
    }
}

/* Launches and minutes without an age limit are removed with their hours: a total counts all or none of an
 * hour. */
static void nothing_is_kept_longer_than_hours(void **state)
{
    struct world *w = *state;
    int64_t begin = BEGIN / HOUR * HOUR;
    w->options.chunk_rows = 1000;
    w->options.ages = (struct occ_store_ages){.hours_ns = 2 * DAY};
    world_open(w);
    for (int hour = 0; hour < 4 * 24; hour++) {
        world_append(w, 0, begin + hour * HOUR, HOUR, 300);
        commit(w);
    }
    maintain(w, begin + 4 * DAY);
    assert_int_equal(launches_in(w, begin + 2 * DAY, 0), 2 * 24 * 300);
    assert_int_equal(launches_in(w, 0, begin + DAY), 0);
    assert_int_equal(world_number(w->store, "SELECT min(minute) FROM stored_minute") * MINUTE / HOUR * HOUR,
                     begin + 2 * DAY);
    assert_true(world_number(w->store, "SELECT min(last_start_ns) FROM stored_chunk") >= begin + 2 * DAY);
    maintain(w, begin + 30 * DAY);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_hour"), 0);
}

/* A run that has ended keeps its row, and the number of that row's last change: neither is a reason to keep
 * the file, once the week is over in which the shipper may ask for its minutes. */
static void a_history_of_old_runs_is_spent(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct {
        int64_t now_ns;
        bool is_spent;
    } times[] = {{BEGIN + DAY, false}, {BEGIN + 5 * DAY, false}, {BEGIN + 10 * DAY, true}};
    w->options.ages = (struct occ_store_ages){.hours_ns = 2 * DAY};
    world_open(w);
    world_append(w, 0, BEGIN, HOUR, 300);
    for (int i = 0; i < WORLD_RUNS; i++)
        assert_int_equal(occ_store_end_run(w->store, w->run[i], &err), 0);
    commit(w);
    assert_int_equal(
        sqlite3_exec(occ_store_sqlite(w->store),
                     "UPDATE stored_run SET start_ns = 1700000000000000000, end_ns = 1700003600000000000",
                     NULL, NULL, NULL),
        SQLITE_OK);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        maintain(w, times[i].now_ns);
        assert_int_equal(occ_store_is_spent(w->store, times[i].now_ns), times[i].is_spent);
    }
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_minute_change"), WORLD_RUNS);
}

/* The file shrinks in small steps, while recording continues. */
static void a_smaller_quota_makes_the_file_smaller(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct stat status;
    int64_t now = BEGIN;
    bool more = true;
    int steps = 0;
    w->options.chunk_rows = 4000;
    world_open(w);
    for (; now < BEGIN + 200 * MINUTE; now += MINUTE) {
        world_append(w, 0, now, MINUTE, 6000);
        commit(w);
    }
    assert_int_equal(stat(w->path, &status), 0);
    int64_t large = status.st_size;
    assert_true(large > 12 << 20);
    assert_int_equal(occ_store_set_limits(w->store, 4u << 20, &w->options.ages, &err), 0);
    for (; more; steps++) {
        int64_t pages = world_number(w->store, "PRAGMA page_count");
        assert_int_equal(occ_store_maintain(w->store, now, &more, &err), 0);
        assert_true(pages - world_number(w->store, "PRAGMA page_count") <= 128);
        world_append(w, 0, now, MINUTE, 10);
        commit(w);
        now += MINUTE;
    }
    assert_true(steps >= (large - (4 << 20)) / (128 * 4096));
    assert_int_equal(stat(w->path, &status), 0);
    assert_true(status.st_size <= 4 << 20);
    assert_int_equal(launches_in(w, 0, 0), w->n); /* hours have them all */
    world_check(w, w->store, &(struct occ_filter){.since_ns = now - 10 * MINUTE});
    assert_int_equal(world_number(w->store, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    /* a larger one holds at once, and none at all too */
    assert_int_equal(occ_store_set_limits(w->store, 0, &w->options.ages, &err), 0);
    for (int i = 0; i < 100; i++, now += MINUTE) {
        world_append(w, 0, now, MINUTE, 6000);
        commit(w);
    }
    assert_int_equal(stat(w->path, &status), 0);
    assert_true(status.st_size > 8 << 20);
}

/* Nsight Compute's values go with the hours of their launches. */
static void a_quota_takes_metrics_with_their_hours(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct stat status;
    const int days = 30, metrics = 3000;
    world_open(w);
    for (int day = 0; day < days; day++) {
        world_append(w, 0, BEGIN + day * DAY, MINUTE, 10);
        assert_int_equal(occ_store_begin_bulk(w->store, &err), 0);
        for (int i = 0; i < metrics; i++) {
            const struct occ_ncu_metric metric = {.run = w->run[0],
                                                  .config = w->config[0],
                                                  .hour = (BEGIN + day * DAY) / HOUR,
                                                  .correlation = (uint32_t)(day * metrics + i),
                                                  .name = "sm__warps_active.avg.pct_of_peak_sustained_active",
                                                  .unit = "%",
                                                  .value = i};
            assert_int_equal(occ_store_add_ncu_metric(w->store, &metric, &err), 0);
        }
        assert_int_equal(occ_store_end_bulk(w->store, &err), 0);
        commit(w);
    }
    assert_int_equal(occ_store_set_limits(w->store, 2u << 20, &w->options.ages, &err), 0);
    maintain(w, BEGIN + days * DAY);
    assert_int_equal(stat(w->path, &status), 0);
    assert_true(status.st_size <= 2 << 20);
    assert_int_equal(world_number(w->store,
                                  "SELECT count(*) FROM stored_ncu_metric WHERE hour < (SELECT min(hour) "
                                  "FROM stored_hour)"),
                     0);
    assert_in_range(world_number(w->store, "SELECT count(*) FROM stored_ncu_metric"), metrics, 10 * metrics);
}

/* A permanent reader postpones shrinking: the log would grow with every step. */
static void a_reader_puts_shrinking_off(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct stat status;
    bool more = true;
    char log[128];
    (void)snprintf(log, sizeof log, "%s-wal", w->path);
    w->options.chunk_rows = 4000;
    world_open(w);
    for (int i = 0; i < 500; i++) {
        world_append(w, 0, BEGIN + i * MINUTE, MINUTE, 6000);
        commit(w);
    }
    struct occ_store *reader = open_reader(w);
    assert_int_equal(
        sqlite3_exec(occ_store_sqlite(reader), "BEGIN; SELECT count(*) FROM stored_chunk", NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(occ_store_set_limits(w->store, 1u << 20, &w->options.ages, &err), 0);
    while (more)
        assert_int_equal(occ_store_maintain(w->store, BEGIN, &more, &err), 0);
    assert_int_equal(stat(log, &status), 0);
    assert_true(status.st_size < 40 << 20);
    occ_store_close(reader);
    maintain(w, BEGIN);
    assert_int_equal(stat(w->path, &status), 0);
    assert_true(status.st_size <= 1 << 20);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(parts_are_kept_for_their_time),
        TEST(an_hour_without_minutes_counts_whole),
        TEST(nothing_is_kept_longer_than_hours),
        TEST(a_history_of_old_runs_is_spent),
        TEST(a_smaller_quota_makes_the_file_smaller),
        TEST(a_quota_takes_metrics_with_their_hours),
        TEST(a_reader_puts_shrinking_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
