/* stored_minute_change: every minute that a transaction changes is numbered anew in that transaction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "test_store_world.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define BEGIN  (INT64_C(1700000000) * SECOND / MINUTE * MINUTE)

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    world_make_directory(w);
    world_open(w);
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

static void maintain(struct world *w, int64_t now_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    bool more = true;
    while (more)
        if (occ_store_maintain(w->store, now_ns, &more, &err) != 0)
            fail_msg("%s", err.message);
}

static int choose_one(void *run, struct occ_store *store, const int64_t **ret_runs, size_t *ret_n,
                      struct occ_error *err)
{
    (void)store;
    (void)err;
    *ret_runs = run;
    *ret_n = 1;
    return 0;
}

static void remove_run(struct world *w, int64_t run)
{
    struct occ_error err = OCC_ERROR_INIT;
    if (occ_store_remove_runs(w->store, &(struct occ_run_chooser){choose_one, &run}, BEGIN, &err) != 0)
        fail_msg("%s", err.message);
}

static int64_t last_change(struct world *w)
{
    return world_number(w->store, "SELECT coalesce(max(change), 0) FROM stored_minute_change");
}

/* Counts minutes other than `minute_ns` with a change number above `since`. */
static int64_t others_since(struct world *w, int64_t since, int64_t minute_ns)
{
    char *sql =
        sqlite3_mprintf("SELECT count(*) FROM stored_minute_change WHERE change > %lld AND minute <> %lld",
                        (long long)since, (long long)(minute_ns / MINUTE));
    assert_non_null(sql);
    int64_t n = world_number(w->store, sql);
    sqlite3_free(sql);
    return n;
}

static int64_t number_of(struct world *w, int64_t minute_ns, int64_t run)
{
    char *sql = sqlite3_mprintf(
        "SELECT coalesce(max(change), 0) FROM stored_minute_change WHERE minute = %lld AND run_id = %lld",
        (long long)(minute_ns / MINUTE), (long long)run);
    assert_non_null(sql);
    int64_t n = world_number(w->store, sql);
    sqlite3_free(sql);
    return n;
}

static void the_minutes_that_a_transaction_writes_have_a_number(void **state)
{
    struct world *w = *state;
    world_append(w, 0, BEGIN, 10 * MINUTE, 2000);
    world_append(w, 1, BEGIN, 10 * MINUTE, 2000);
    commit(w);
    assert_int_equal(
        world_number(w->store, "SELECT count(*) FROM (SELECT DISTINCT minute, run_id FROM stored_minute)"),
        18); /* the last one is open */
    assert_int_equal(world_number(w->store,
                                  "SELECT count(*) FROM (SELECT DISTINCT minute, run_id FROM stored_minute "
                                  "EXCEPT SELECT minute, run_id FROM stored_minute_change)"),
                     0);
    assert_int_equal(world_number(w->store,
                                  "SELECT count(*) FROM (SELECT minute, run_id FROM stored_minute_change "
                                  "WHERE minute >= 0 EXCEPT SELECT minute, run_id FROM stored_minute)"),
                     0);
    int64_t before = last_change(w);
    commit(w);
    assert_int_equal(last_change(w), before);
}

static void a_late_launch_gives_its_minute_a_new_number(void **state)
{
    struct world *w = *state;
    int64_t late = BEGIN + 3 * MINUTE;
    world_append(w, 0, BEGIN, 10 * MINUTE, 2000);
    commit(w);
    int64_t before = last_change(w),
            rows = world_number(w->store, "SELECT count(*) FROM stored_minute_change");
    world_append(w, 0, late + SECOND, SECOND, 1);
    commit(w);
    assert_true(number_of(w, late, w->run[0]) > before);
    assert_int_equal(others_since(w, before, late), 0);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_minute_change"), rows);
}

static void a_measured_value_gives_its_minute_a_new_number(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_measured_sums sums = {.direct = 1};
    int64_t minute = BEGIN + 2 * MINUTE;
    world_append(w, 0, BEGIN, 10 * MINUTE, 2000);
    commit(w);
    int64_t before = last_change(w);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(
            occ_store_add_measured(w->store, minute / MINUTE, w->run[0], (uint32_t)w->config[i], &sums, &err),
            0);
    assert_int_equal(
        occ_store_add_measured(w->store, minute / MINUTE, w->run[1], (uint32_t)w->config[0], &sums, &err), 0);
    commit(w);
    assert_true(number_of(w, minute, w->run[0]) > before);
    assert_true(number_of(w, minute, w->run[1]) > before);
    assert_int_equal(others_since(w, before, minute), 0);
}

static void a_run_has_a_number_for_its_own_row(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    int64_t first = number_of(w, -MINUTE, w->run[0]), run = 0;
    assert_true(first > 0);
    const struct occ_run ended = {.uuid = {99}, .start_ns = BEGIN, .end_ns = BEGIN + 1};
    assert_int_equal(occ_store_put_run(w->store, &ended, &run, &err), 0);
    int64_t put = number_of(w, -MINUTE, run);
    assert_int_equal(occ_store_put_run(w->store, &ended, &run, &err), 0);
    assert_true(number_of(w, -MINUTE, run) > put);
    assert_int_equal(number_of(w, -MINUTE, w->run[0]), first);
    assert_int_equal(occ_store_end_run(w->store, run, &err), 0);
    commit(w);
    put = number_of(w, -MINUTE, run);
    remove_run(w, run);
    assert_true(number_of(w, -MINUTE, run) > put);
}

static void an_idle_run_has_its_minute_written(void **state)
{
    struct world *w = *state;
    world_append(w, 0, BEGIN + SECOND, SECOND, 50);
    commit(w);
    maintain(w, BEGIN + 2 * MINUTE);
    assert_int_equal(world_number(w->store, "SELECT coalesce(sum(launches), 0) FROM stored_minute"), 0);
    maintain(w, BEGIN + 3 * MINUTE);
    assert_int_equal(world_number(w->store, "SELECT coalesce(sum(launches), 0) FROM stored_minute"), 50);
    assert_true(number_of(w, BEGIN, w->run[0]) > 0);
    world_append(w, 0, BEGIN + 2 * SECOND, SECOND, 50); /* later ones are added */
    world_append(w, 0, BEGIN + 4 * MINUTE, SECOND, 50);
    commit(w);
    maintain(w, BEGIN + 10 * MINUTE);
    assert_int_equal(world_number(w->store, "SELECT sum(launches) FROM stored_minute"), 150);
    world_check_rollups(w, w->store);
    world_check_questions(w, w->store, &(struct occ_filter){0});
}

static void numbers_outlive_their_minutes_by_a_week(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_store_ages ages = {.minutes_ns = DAY, .hours_ns = 30 * DAY};
    assert_int_equal(occ_store_set_limits(w->store, 0, &ages, &err), 0);
    world_append(w, 0, BEGIN, SECOND, 10);
    world_append(w, 0, BEGIN + HOUR, SECOND, 10);
    commit(w);
    maintain(w, BEGIN + 7 * DAY);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_minute"), 0);
    assert_true(number_of(w, BEGIN, w->run[0]) > 0);
    maintain(w, BEGIN + 8 * DAY + 2 * HOUR);
    assert_int_equal(number_of(w, BEGIN, w->run[0]), 0);
}

/* A reader stores how far it came: a number that is given twice would be missed. */
static void numbers_are_not_given_again(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    world_append(w, 0, BEGIN, 10 * MINUTE, 100);
    world_append(w, 1, BEGIN, MINUTE, 100);
    assert_int_equal(occ_store_end_run(w->store, w->run[0], &err), 0);
    commit(w);
    int64_t before = last_change(w);
    remove_run(w, w->run[0]);
    assert_true(last_change(w) > before);
    world_append(w, 1, BEGIN + 5 * MINUTE, MINUTE, 100);
    assert_int_equal(occ_store_end_run(w->store, w->run[1], &err), 0);
    commit(w);
    assert_true(number_of(w, BEGIN + 5 * MINUTE, w->run[1]) > before);
}

static int64_t kept_of_removed(struct world *w)
{
    return world_number(w->store, "SELECT (SELECT count(*) FROM stored_removed_run) + (SELECT count(*) FROM "
                                  "stored_removed_minute)");
}

/* Each minute that the run had has a later number, with the configurations of its rows. */
static void the_minutes_of_a_removed_run_are_numbered_anew(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    world_append(w, 0, BEGIN, 10 * MINUTE, 2000);
    world_append(w, 1, BEGIN, 10 * MINUTE, 2000);
    assert_int_equal(occ_store_end_run(w->store, w->run[0], &err), 0);
    commit(w);
    int64_t rows = world_number(w->store, "SELECT count(*) FROM stored_minute WHERE run_id = 1"),
            before = last_change(w);
    remove_run(w, w->run[0]);
    for (int minute = 0; minute < 10; minute++) {
        assert_true(number_of(w, BEGIN + minute * MINUTE, w->run[0]) > before);
        assert_true(number_of(w, BEGIN + minute * MINUTE, w->run[1]) <= before);
    }
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_removed_minute WHERE run_id = 1"),
                     rows);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_minute WHERE run_id = 1"), 0);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

/* The warehouse keeps no rows of minutes that are as old. */
static void keys_of_removed_runs_do_not_stay(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_store_ages ages = {.minutes_ns = DAY, .hours_ns = 30 * DAY};
    world_append(w, 0, BEGIN, MINUTE, 100);
    assert_int_equal(occ_store_end_run(w->store, w->run[0], &err), 0);
    commit(w);
    remove_run(w, w->run[0]);
    assert_true(kept_of_removed(w) > 1);
    assert_int_equal(occ_store_set_limits(w->store, 0, &ages, &err), 0);
    maintain(w, BEGIN + 2 * DAY);
    assert_int_equal(kept_of_removed(w), 1);
    maintain(w, BEGIN + 9 * DAY);
    assert_int_equal(kept_of_removed(w), 0);
    assert_int_equal(number_of(w, -MINUTE, 1), 0);
    assert_int_equal(number_of(w, BEGIN, 1), 0);
}

static void a_recording_leaves_no_numbers(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_run recorded = {
        .uuid = {98}, .start_ns = BEGIN, .end_ns = BEGIN + 1, .source = {.tool = "nsys", .hash = "ab"}};
    int64_t run = 0;
    assert_int_equal(occ_store_put_run(w->store, &recorded, &run, &err), 0);
    commit(w);
    remove_run(w, run);
    assert_int_equal(number_of(w, -MINUTE, run), 0);
    assert_int_equal(kept_of_removed(w), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_minutes_that_a_transaction_writes_have_a_number),
        TEST(a_late_launch_gives_its_minute_a_new_number),
        TEST(a_measured_value_gives_its_minute_a_new_number),
        TEST(a_run_has_a_number_for_its_own_row),
        TEST(an_idle_run_has_its_minute_written),
        TEST(numbers_outlive_their_minutes_by_a_week),
        TEST(numbers_are_not_given_again),
        TEST(the_minutes_of_a_removed_run_are_numbered_anew),
        TEST(keys_of_removed_runs_do_not_stay),
        TEST(a_recording_leaves_no_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
