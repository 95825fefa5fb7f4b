/* The history at exact times, after failed commits, and with impossible numbers in its tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/chunks.h"
#include "test_store_world.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define BEGIN  (INT64_C(1700000000) * SECOND / HOUR * HOUR) /* a whole hour */

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

static void execute(struct world *w, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(occ_store_sqlite(w->store), sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
}

static void commit(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    if (occ_store_commit(w->store, &err) != 0)
        fail_msg("%s", err.message);
}

/* Closes the writer without a final commit, as if it were killed, and opens another one. */
static void crash(struct world *w)
{
    occ_store_close(w->store);
    w->store = NULL;
    world_open(w);
}

/* `since` includes a launch that starts exactly then, `until` does not: at both ends of each run, and a
 * nanosecond beside. */
static void check_ends(struct world *w)
{
    for (int run = 0; run < WORLD_RUNS; run++) {
        int64_t first = INT64_MAX, last = 0;
        for (size_t i = 0; i < w->n; i++)
            if (w->launches[i].run == w->run[run]) {
                int64_t start_ns = w->launches[i].launch.start_ns;
                first = start_ns < first ? start_ns : first;
                last = start_ns > last ? start_ns : last;
            }
        for (int64_t offset = -1; offset <= 1; offset++) {
            const struct occ_filter edges[] = {
                {.run = w->run[run], .since_ns = first + offset},
                {.run = w->run[run], .until_ns = first + offset},
                {.run = w->run[run], .since_ns = last + offset},
                {.run = w->run[run], .until_ns = last + offset},
            };
            for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
                world_check(w, w->store, &edges[i]);
        }
    }
}

static void a_run_is_found_by_its_first_and_last_start(void **state)
{
    struct world *w = *state;
    w->options.chunk_rows = 200;
    world_open(w);
    for (int i = 0; i < 4; i++) {
        world_append(w, 0, BEGIN + i * HOUR, HOUR, 300);
        world_append(w, 1, BEGIN + i * 20 * MINUTE, 20 * MINUTE, 300);
        commit(w);
        check_ends(w);
    }
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(occ_store_finish(w->store, &err), 0);
    check_ends(w);
}

static void append_at(struct world *w, int64_t start_ns)
{
    world_append(w, 0, start_ns, 1, 1);
}

/* Launches that come together, on both sides of a minute's first nanosecond. */
static void launches_around_a_minute_are_of_two(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store_launch launches[3];
    world_open(w);
    for (int i = 0; i < 3; i++)
        launches[i] = (struct occ_store_launch){
            .start_ns = BEGIN + 5 * MINUTE + i - 1, .duration_ns = 10, .config = (uint32_t)w->config[0]};
    assert_int_equal(occ_store_append(w->store, w->run[0], w->config_device[0], launches, 3, &err), 0);
    assert_int_equal(occ_store_finish(w->store, &err), 0);
    char sql[96];
    for (int i = 0; i < 2; i++) {
        (void)snprintf(sql, sizeof sql, "SELECT launches FROM stored_minute WHERE minute = %lld",
                       (long long)(BEGIN / MINUTE + 4 + i));
        assert_int_equal(world_number(w->store, sql), 1 + i);
    }
}

/* The launches at and around a watermark are in the rollups or added up again, never both, never neither. */
static void a_launch_at_the_watermark_is_counted_once(void **state)
{
    struct world *w = *state;
    world_open(w);
    for (int64_t edge = 0; edge < 2; edge++) {
        int64_t at = BEGIN + (edge ? HOUR : 7 * MINUTE) + edge * 2 * HOUR;
        for (int64_t offset = -1; offset <= 1; offset++)
            append_at(w, at + offset);
        append_at(w, at + 6 * SECOND); /* rolls up to `at` */
        commit(w);
        commit(w);
        crash(w);
        world_check_rollups(w, w->store);
        append_at(w, at + 2 * MINUTE);
        commit(w);
        world_check(w, w->store, &(struct occ_filter){0});
        world_check_rollups(w, w->store);
        crash(w);
        append_at(w, at + 3 * HOUR);
        commit(w);
        commit(w);
        world_check(w, w->store, &(struct occ_filter){0});
        world_check_rollups(w, w->store);
    }
}

/* SQLite rolls back by itself only after some errors; after this one it does not. */
static void a_failed_commit_is_tried_again(void **state)
{
    static const char *const tables[] = {"stored_chunk", "stored_minute", "stored_run_config"};
    struct world *w = *state;
    w->options.chunk_rows = 500;
    world_open(w);
    for (int i = 0; i < 3; i++) {
        struct occ_error err = OCC_ERROR_INIT;
        char sql[160];
        (void)snprintf(
            sql, sizeof sql,
            "CREATE TEMP TRIGGER refuse BEFORE INSERT ON %s BEGIN SELECT RAISE(FAIL, 'refused'); END",
            tables[i]);
        execute(w, sql);
        if (i == 2) /* a configuration that is new in the run */
            execute(w, "DELETE FROM stored_run_config");
        world_append(w, i == 2, BEGIN + i * HOUR, HOUR, 1200);
        assert_int_not_equal(occ_store_commit(w->store, &err), 0);
        assert_true(sqlite3_get_autocommit(occ_store_sqlite(w->store)));
        assert_int_not_equal(occ_store_commit(w->store, &err), 0);
        execute(w, "DROP TRIGGER refuse");
        commit(w);
        world_check_random(w, w->store, 5);
        world_check_rollups(w, w->store);
    }
}

/* A run's last launch starts with an hour, and a quota has evicted everything but hours. */
static void an_hour_of_one_launch_is_counted(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    world_append(w, 0, BEGIN, HOUR, 200);
    append_at(w, BEGIN + 2 * HOUR);
    assert_int_equal(occ_store_finish(w->store, &err), 0);
    execute(w, "DELETE FROM stored_chunk; DELETE FROM stored_minute;"
               "UPDATE stored_run SET evicted_ns = last_start_ns + 1 WHERE run_id = 1;"
               "UPDATE stored_retention SET first_minute = 9999999999");
    world_check_questions(w, w->store, &(struct occ_filter){0});
    world_check_questions(w, w->store, &(struct occ_filter){.until_ns = BEGIN + 2 * HOUR});
    world_check_questions(w, w->store, &(struct occ_filter){.since_ns = BEGIN + HOUR});
}

/* A quota has evicted the chunks of two runs up to different minutes: neither is counted by chunk and minute
 * both. */
static void evicted_minutes_end_where_chunks_begin(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    for (int half = 0; half < 2; half++) { /* a chunk each */
        world_open(w);
        for (int run = 0; run < WORLD_RUNS; run++)
            world_append(w, run, BEGIN + half * 5 * MINUTE, 5 * MINUTE, 300);
        assert_int_equal(occ_store_finish(w->store, &err), 0);
        occ_store_close(w->store);
        w->store = NULL;
    }
    world_open(w);
    char sql[400];
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM stored_chunk WHERE last_start_ns < %lld OR run_id = 2;"
                   "UPDATE stored_run SET evicted_ns = iif(run_id = 1, %lld, last_start_ns + 1)",
                   (long long)(BEGIN + 5 * MINUTE), (long long)(BEGIN + 5 * MINUTE));
    execute(w, sql);
    for (int minute = 1; minute <= 10; minute++) {
        world_check_questions(w, w->store, &(struct occ_filter){.until_ns = BEGIN + minute * MINUTE});
        world_check_questions(w, w->store, &(struct occ_filter){.since_ns = BEGIN + minute * MINUTE});
    }
}

/* Making room overwrites the buffer of the key: the new configuration's row must still get its own key. */
static void a_key_survives_making_room(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *other = NULL;
    int64_t ids[400];
    w->options.chunk_rows = 500;
    world_open(w);
    world_append(w, 0, BEGIN, MINUTE / 2, 20500); /* in a minute that is not rolled up yet */
    commit(w);
    struct occ_store_options options = {.mode = OCC_STORE_WRITE, .max_bytes = 1u << 20};
    assert_int_equal(occ_store_open(w->path, &options, &other, &err), 0);
    assert_int_equal(sqlite3_exec(occ_store_sqlite(other), "PRAGMA max_page_count=1", NULL, NULL, NULL),
                     SQLITE_OK); /* as it is now */
    struct occ_launch_config config = {
        .kernel = w->kernel[0], .device = w->device[0], .launch = {.block = {32, 1, 1}}};
    for (uint32_t i = 0; i < 400; i++) {
        config.launch.grid[0] = config.launch.grid[1] = config.launch.grid[2] = 100000 + i;
        if (occ_store_put_config(other, &config, &ids[i], &err) != 0)
            fail_msg("%s", err.message);
    }
    assert_true(world_number(other, "SELECT max(evicted_ns) FROM stored_run") > 0); /* room was made */
    for (uint32_t i = 0; i < 400; i++) {
        int64_t id = 0;
        config.launch.grid[0] = config.launch.grid[1] = config.launch.grid[2] = 100000 + i;
        assert_int_equal(occ_store_put_config(other, &config, &id, &err), 0);
        assert_int_equal(id, ids[i]);
    }
    occ_store_close(other);
    world_check_questions(w, w->store, &(struct occ_filter){0});
}

/* ---- measured values ---- */

#define MEASURED_MINUTES 200

static void add_measured(struct world *w, int run, int64_t minute)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_measured_sums sums = {.direct = 1, .overlapped = 2};
    sums.sum[OCC_MEASURED_elapsed] = 0.25 * 1e6;
    sums.ns[OCC_MEASURED_elapsed] = 1e6;
    assert_int_equal(occ_store_add_measured(w->store, BEGIN / MINUTE + minute, w->run[run],
                                            (uint32_t)w->config[0], &sums, &err),
                     0);
}

/* The measured sums of the first configuration; `minutes`: of the first run, each with a launch. */
static void check_measured(struct world *w, int64_t since_ns, int64_t until_ns, int64_t minutes)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_config_rows rows;
    bool found = false;
    const struct occ_filter filter = {.run = w->run[0], .since_ns = since_ns, .until_ns = until_ns};
    assert_int_equal(occ_store_configs(w->store, &filter, &rows, &err), 0);
    for (size_t i = 0; i < rows.n; i++)
        if (rows.rows[i].id == w->config[0]) {
            found = true;
            const struct occ_measured_sums *sums = &rows.rows[i].measured;
            assert_int_equal(sums->direct, minutes);
            assert_int_equal(sums->overlapped, 2 * minutes);
            assert_true(sums->ns[OCC_MEASURED_elapsed] == 1e6 * (double)minutes);
            assert_true(sums->sum[OCC_MEASURED_elapsed] == 0.25 * 1e6 * (double)minutes);
        }
    assert_true(found);
    occ_config_rows_free(&rows);
}

/* The sums use hours where the time range has whole hours, and minutes elsewhere; each minute counts once. */
static void measured_sums_are_of_whole_minutes(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    for (int64_t minute = 0; minute < MEASURED_MINUTES; minute++) {
        struct occ_store_launch launch = {.start_ns = BEGIN + minute * MINUTE + 30 * SECOND,
                                          .duration_ns = 9,
                                          .config = (uint32_t)w->config[0]};
        assert_int_equal(occ_store_append(w->store, w->run[0], w->config_device[0], &launch, 1, &err), 0);
        add_measured(w, 0, minute);
        add_measured(w, 1, minute);
    }
    commit(w);
    check_measured(w, 0, 0, MEASURED_MINUTES);
    for (int64_t since = 0; since < MEASURED_MINUTES; since += 12)
        for (int64_t until = since + 1; until <= MEASURED_MINUTES; until += 7) {
            check_measured(w, BEGIN + since * MINUTE, BEGIN + until * MINUTE, until - since);
            check_measured(w, BEGIN + since * MINUTE + 1, BEGIN + until * MINUTE + 1,
                           (until < MEASURED_MINUTES ? until + 1 : until) - since);
            check_measured(w, BEGIN + since * MINUTE, 0, MEASURED_MINUTES - since);
            check_measured(w, 0, BEGIN + until * MINUTE, until);
        }
}

static void measured_hours_outlive_their_minutes(void **state)
{
    struct world *w = *state;
    world_open(w);
    world_append(w, 0, BEGIN, 4 * HOUR, 2000);
    for (int64_t minute = 0; minute < MEASURED_MINUTES; minute++)
        add_measured(w, 0, minute);
    commit(w);
    execute(
        w,
        "DELETE FROM stored_measured_minute;"
        "UPDATE stored_retention SET first_minute = (SELECT min(hour) + 3 FROM stored_measured_hour) * 60");
    check_measured(w, 0, 0, MEASURED_MINUTES);
    check_measured(w, BEGIN + HOUR, BEGIN + 2 * HOUR, 60);
    check_measured(w, BEGIN + HOUR, BEGIN + 2 * HOUR + MINUTE,
                   120); /* an evicted hour at the end counts whole */
    assert_int_equal(world_number(w->store, "SELECT sum(direct) FROM measured_config"), MEASURED_MINUTES);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM measured_hour"), 4);
}

/* ---- impossible numbers ---- */

static void ask_everything(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_filter filters[] = {
        {0}, {.since_ns = BEGIN + 90 * MINUTE}, {.until_ns = BEGIN + 90 * MINUTE}, {.below_achieved = 0.9}};
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        struct occ_top top;
        struct occ_config_rows configs;
        assert_int_equal(occ_store_top(w->store, &filters[i], OCC_TOP_BY_KERNEL, &top, &err), 0);
        occ_top_free(&top);
        assert_int_equal(occ_store_configs(w->store, &filters[i], &configs, &err), 0);
        occ_config_rows_free(&configs);
    }
}

static void a_retention_of_nonsense_changes_no_sum(void **state)
{
    static const char *const nonsense[] = {"-2147483648", "-9223372036854775808", "-1"};
    struct world *w = *state;
    w->options.chunk_rows = 400;
    world_open(w);
    world_append(w, 0, BEGIN, 3 * HOUR, 2000);
    commit(w);
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        char sql[96];
        (void)snprintf(sql, sizeof sql, "UPDATE stored_retention SET first_minute = %s", nonsense[i]);
        execute(w, sql);
        world_check_random(w, w->store, 5);
    }
    execute(w, "UPDATE stored_retention SET first_minute = 9223372036854775807"); /* no minute is left */
    ask_everything(w);
}

/* Numbers of the file that questions and the quota calculate with. */
static const struct {
    const char *table, *column;
} numbers[] = {{"stored_minute", "minute"},        {"stored_hour", "hour"},
               {"stored_chunk", "first_start_ns"}, {"stored_chunk", "last_start_ns"},
               {"stored_run", "rolled_ns"},        {"stored_run", "evicted_ns"},
               {"stored_run", "first_start_ns"},   {"stored_run", "last_start_ns"}};

static const int64_t nonsense[] = {INT64_MIN, INT64_MAX, -1, INT64_C(153722867280)};

static void replace_number(struct world *w, size_t i, int64_t from, int64_t to)
{
    char sql[320];
    (void)snprintf(sql, sizeof sql, "UPDATE OR REPLACE %s SET %s = %lld WHERE %s = %lld", numbers[i].table,
                   numbers[i].column, (long long)to, numbers[i].column, (long long)from);
    execute(w, sql);
}

static int64_t end_of_numbers(struct world *w, size_t i, const char *which)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql, "SELECT %s(%s) FROM %s", which, numbers[i].column, numbers[i].table);
    return world_number(w->store, sql);
}

static void numbers_of_nonsense_are_read(void **state)
{
    struct world *w = *state;
    w->options.chunk_rows = 400;
    world_open(w);
    world_append(w, 0, BEGIN, 3 * HOUR, 2000);
    world_append(w, 1, BEGIN, 3 * HOUR, 2000);
    commit(w);
    commit(w);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        for (size_t k = 0; k < sizeof nonsense / sizeof *nonsense; k++) {
            int64_t old = end_of_numbers(w, i, nonsense[k] < 0 ? "max" : "min");
            replace_number(w, i, old, nonsense[k]);
            ask_everything(w);
            replace_number(w, i, nonsense[k], old);
        }
    world_check_random(w, w->store, 3); /* all is as it was */
}

/* The oldest and newest rows of a history under a quota have absurd times: making room evicts these rows or
 * their neighbours, and recording continues. */
static void a_quota_copes_with_nonsense(void **state)
{
    struct world *w = *state;
    w->options.chunk_rows = 1000;
    w->options.max_bytes = 1u << 20;
    world_open(w);
    for (int i = 0; i < 140; i++) {
        size_t k = (size_t)i / 4 % 4; /* rollups and chunks */
        int64_t lie = i % 2 ? INT64_MAX : INT64_MIN;
        if (i >= 70 && i < 120)
            replace_number(w, k, end_of_numbers(w, k, i % 2 ? "max" : "min"), lie);
        if (i == 10 || i == 91) {
            char sql[160];
            (void)snprintf(sql, sizeof sql,
                           "INSERT INTO stored_device_second(second, device_id, samples, covered_ns) "
                           "SELECT %lld, device_id, 1, 1 FROM stored_device",
                           (long long)lie);
            execute(w, sql);
        }
        if (i == 80) { /* chunks of the end of time that seem to be rolled up */
            world_append(w, 1, BEGIN, MINUTE, 3000);
            commit(w);
            execute(w, "UPDATE stored_chunk SET last_start_ns = 9223372036854775807 WHERE run_id = 2; "
                       "UPDATE stored_run SET rolled_ns = 9223372036854775807 WHERE run_id = 2");
        }
        world_append(w, 0, BEGIN + i * 12 * MINUTE, 12 * MINUTE, 600);
        commit(w);
    }
    assert_int_equal(world_number(w->store, "SELECT sum(launches) FROM stored_run"), w->n);
    ask_everything(w);
}

/* ---- chunks for other readers ---- */

struct counted {
    const struct occ_chunks_question *question;
    uint64_t launches, chunks, most; /* most: chunks until the visitor stops */
};

static bool count_chunk(void *context, const struct occ_columns *c)
{
    struct counted *counted = context;
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t start_ns = (int64_t)c->start_ns[i], end_ns = start_ns + (int64_t)c->duration_ns[i];
        bool is_of_device = counted->question->kind == OCC_CHUNKS_OF_DEVICE;
        counted->launches +=
            start_ns < counted->question->until_ns &&
            (is_of_device ? end_ns > counted->question->from_ns : start_ns >= counted->question->from_ns);
    }
    assert_null(c->correlation); /* not asked for */
    return ++counted->chunks < counted->most;
}

static int64_t number_of(struct world *w, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(occ_store_sqlite(w->store), sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return number;
}

/* The chunks have the launches of the table; a damaged one, one without data and a visitor that stops end the
 * answer with the reason. */
static void chunks_are_read_by_others(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_columns_decoder *decoder = occ_columns_decoder_new();
    assert_non_null(decoder);
    w->options.chunk_rows = 200;
    world_open(w);
    for (int i = 0; i < 4; i++) {
        world_append(w, 0, BEGIN + i * MINUTE, MINUTE, 300);
        commit(w);
    }
    sqlite3 *db = occ_store_sqlite(w->store);
    int64_t device = number_of(w, "SELECT min(device_id) FROM stored_chunk");
    for (enum occ_chunks_kind kind = 0; kind < OCC_CHUNKS_KINDS; kind++) {
        char sql[256];
        const struct occ_chunks_question question = {.kind = kind,
                                                     .id = kind == OCC_CHUNKS_OF_DEVICE ? device : w->run[0],
                                                     .from_ns = BEGIN + MINUTE,
                                                     .until_ns = BEGIN + 2 * MINUTE,
                                                     .columns = OCC_COLUMN_BIT(start_ns) |
                                                                OCC_COLUMN_BIT(duration_ns)};
        struct counted all = {.question = &question, .most = UINT64_MAX}, one = {&question, 0, 0, 1};
        (void)snprintf(
            sql, sizeof sql,
            kind == OCC_CHUNKS_OF_DEVICE
                ? "SELECT count(*) FROM launch WHERE device_id = %lld AND start_ns < %lld AND "
                  "start_ns + duration_ns > %lld"
                : "SELECT count(*) FROM launch WHERE run_id = %lld AND start_ns < %lld AND start_ns "
                  ">= %lld",
            (long long)question.id, (long long)question.until_ns, (long long)question.from_ns);
        assert_int_equal(occ_chunks_visit(db, decoder, &question, count_chunk, &all, &err), 0);
        assert_true(all.chunks > 1 && all.launches > 0);
        assert_int_equal(all.launches, number_of(w, sql));
        assert_int_equal(occ_chunks_visit(db, decoder, &question, count_chunk, &one, &err), OCC_E_FULL);
        assert_int_equal(one.chunks, 1);
    }
    const struct occ_chunks_question question = {.kind = OCC_CHUNKS_OF_RUN,
                                                 .id = w->run[0],
                                                 .until_ns = INT64_MAX,
                                                 .columns =
                                                     OCC_COLUMN_BIT(start_ns) | OCC_COLUMN_BIT(duration_ns)};
    static const char *const damages[] = {"UPDATE stored_chunk_data SET data = x'00'",
                                          "DELETE FROM stored_chunk_data"};
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        struct counted counted = {.question = &question, .most = UINT64_MAX};
        execute(w, damages[i]);
        assert_int_equal(occ_chunks_visit(db, decoder, &question, count_chunk, &counted, &err),
                         OCC_E_CORRUPT);
    }
    execute(w, "DROP TABLE stored_chunk_data");
    struct counted counted = {.question = &question, .most = UINT64_MAX};
    assert_int_equal(occ_chunks_visit(db, decoder, &question, count_chunk, &counted, &err), OCC_E_CORRUPT);
    occ_columns_decoder_free(decoder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_is_found_by_its_first_and_last_start),
        TEST(launches_around_a_minute_are_of_two),
        TEST(a_launch_at_the_watermark_is_counted_once),
        TEST(a_failed_commit_is_tried_again),
        TEST(an_hour_of_one_launch_is_counted),
        TEST(evicted_minutes_end_where_chunks_begin),
        TEST(a_key_survives_making_room),
        TEST(measured_sums_are_of_whole_minutes),
        TEST(measured_hours_outlive_their_minutes),
        TEST(a_retention_of_nonsense_changes_no_sum),
        TEST(numbers_of_nonsense_are_read),
        TEST(a_quota_copes_with_nonsense),
        TEST(chunks_are_read_by_others),
    };
    return cmocka_run_group_tests_name("store edges", tests, NULL, NULL);
}
