/* Runs removed from a history that another process writes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/store.h"

#define START_NS INT64_C(1700000000000000000)

struct world {
    char directory[32], path[64];
    struct occ_store *store; /* the daemon's */
    int64_t runs[2], device, config;
};

static void check(int rc, const struct occ_error *err)
{
    if (rc != 0)
        fail_msg("%s", err->message);
}

static void append(struct world *w, int run, int64_t first_ns, uint32_t n)
{
    struct occ_error err = OCC_ERROR_INIT;
    for (uint32_t i = 0; i < n; i++) {
        const struct occ_store_launch one = {.start_ns = first_ns + i * 1000000,
                                             .duration_ns = 1000,
                                             .config = (uint32_t)w->config,
                                             .stream = 7};
        check(occ_store_append(w->store, w->runs[run], w->device, &one, 1, &err), &err);
    }
    check(occ_store_commit(w->store, &err), &err);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    const struct occ_store_device device = {.name = "T4", .limits = {.cc = 75, .sm_count = 40}};
    int64_t kernel = 0;
    (void)snprintf(w->directory, sizeof w->directory, "/tmp/remove.XXXXXX");
    assert_non_null(mkdtemp(w->directory));
    (void)snprintf(w->path, sizeof w->path, "%s/h.db", w->directory);
    check(occ_store_open(w->path, &options, &w->store, &err), &err);
    for (uint8_t i = 0; i < 2; i++) {
        const struct occ_run run = {.uuid = {(uint8_t)(i + 1)},
                                    .pid = 1,
                                    .start_ns = START_NS,
                                    .end_ns = i ? 0 : START_NS + 1,
                                    .level = "trace"};
        check(occ_store_put_run(w->store, &run, &w->runs[i], &err), &err);
    }
    check(occ_store_put_device(w->store, &device, &w->device, &err), &err);
    check(occ_store_put_kernel(w->store, "k", 1, &kernel, &err), &err);
    const struct occ_launch_config config = {.kernel = kernel,
                                             .device = w->device,
                                             .launch = {.grid = {40, 1, 1},
                                                        .block = {128, 1, 1},
                                                        .cluster = {1, 1, 1},
                                                        .registers_per_thread = 32,
                                                        .carveout_percent = -1}};
    check(occ_store_put_config(w->store, &config, &w->config, &err), &err);
    const struct occ_loss loss = {"ring_full", 5};
    check(occ_store_put_losses(w->store, w->runs[0], &loss, 1, &err), &err);
    check(occ_store_put_range(w->store, w->runs[0], "step", NULL, &(uint32_t){0}, &err), &err);
    check(occ_store_put_position(w->store, OCC_POSITION_RING, (const uint8_t[16]){1}, 3000, &err), &err);
    const struct occ_measured_sums sums = {.direct = 1};
    check(occ_store_add_measured(w->store, START_NS / 60000000000, w->runs[0], (uint32_t)w->config, &sums,
                                 &err),
          &err);
    append(w, 0, START_NS + 1, 3000);
    check(occ_store_end_run(w->store, w->runs[0], &err), &err);
    append(w, 1, START_NS + 1, 100);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    char file[80];
    occ_store_close(w->store);
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(file, sizeof file, "%s%s", w->path, (const char *[]){"", "-wal", "-shm"}[i]);
        (void)unlink(file);
    }
    (void)rmdir(w->directory);
    free(w);
    return 0;
}

static int64_t number(const struct world *w, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int64_t result = -1;
    if (sqlite3_prepare_v2(occ_store_sqlite(w->store), sql, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        result = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return result;
}

static int choose_first(void *context, struct occ_store *store, const int64_t **ret_runs, size_t *ret_n,
                        struct occ_error *err)
{
    const struct world *w = context;
    (void)store;
    (void)err;
    *ret_runs = w->runs;
    *ret_n = 1;
    return 0;
}

static int remove_first(struct world *w, struct occ_error *err)
{
    struct occ_store *other = NULL;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE, .busy_timeout_ms = 50};
    check(occ_store_open(w->path, &options, &other, err), err);
    int rc = occ_store_remove_runs(other, &(struct occ_run_chooser){choose_first, w}, START_NS, err);
    occ_store_close(other);
    return rc;
}

/* The writer goes on with its run; of the other nothing is left in any table. */
static void test_beside_a_writer(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    check(remove_first(w, &err), &err);
    append(w, 1, START_NS + INT64_C(120000000000), 50);
    check(occ_store_finish(w->store, &err), &err);
    assert_int_equal(number(w, "SELECT count(*) FROM run"), 1);
    assert_int_equal(number(w, "SELECT sum(launches) FROM run"), 150);
    assert_int_equal(number(w, "SELECT count(*) FROM launch"), 150);
    static const char *const tables[] = {"chunk",           "minute",        "hour",       "loss",
                                         "measured_minute", "measured_hour", "run_config", "range"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char sql[128];
        (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM stored_%s WHERE run_id = %lld", tables[i],
                       (long long)w->runs[0]);
        assert_int_equal(number(w, sql), 0);
    }
    assert_int_equal(
        number(w, "SELECT count(*) FROM stored_chunk_data WHERE chunk_id NOT IN (SELECT chunk_id FROM "
                  "stored_chunk)"),
        0);
    assert_int_equal(number(w, "SELECT count(*) FROM stored_ring"), 0);
    assert_int_equal(number(w, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}

#define DAY_NS INT64_C(86400000000000)

static int64_t keys(const struct world *w)
{
    return number(w, "SELECT (SELECT count(*) FROM stored_removed_run) + (SELECT count(*) FROM "
                     "stored_removed_minute)");
}

static void maintain(struct world *w, int64_t now_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    bool more = true;
    while (more)
        check(occ_store_maintain(w->store, now_ns, &more, &err), &err);
}

/* The warehouse keeps rows of minutes for 90 days: older keys are useless, whether or not minutes are evicted
 * here. */
static void test_keys_go_when_the_warehouse_has_no_rows(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    check(occ_store_finish(w->store, &err), &err);
    check(remove_first(w, &err), &err);
    maintain(w, START_NS + 89 * DAY_NS);
    assert_true(keys(w) > 1);
    maintain(w, START_NS + 91 * DAY_NS);
    assert_int_equal(keys(w), 1); /* the run's, for a change that is sent late */
    maintain(w, START_NS + 98 * DAY_NS);
    assert_int_equal(keys(w), 0);
}

/* The key of a run goes by the time of its removal: of one that is removed late the row is taken back too. */
static void test_a_run_that_is_removed_late_has_a_key(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_run_chooser chooser = {choose_first, w};
    check(occ_store_finish(w->store, &err), &err);
    check(occ_store_remove_runs(w->store, &chooser, START_NS + 200 * DAY_NS, &err), &err);
    assert_int_equal(number(w, "SELECT count(*) FROM stored_removed_run"), 1);
    assert_int_equal(number(w, "SELECT count(*) FROM stored_minute_change WHERE minute = -1 AND run_id = 1"),
                     1);
}

/* Removal of a locked history removes nothing, and returns after the timeout. */
static void test_locked(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(sqlite3_exec(occ_store_sqlite(w->store), "BEGIN IMMEDIATE", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(remove_first(w, &err), OCC_E_BUSY);
    assert_int_equal(sqlite3_exec(occ_store_sqlite(w->store), "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(number(w, "SELECT sum(launches) FROM run"), 3100);
}

/* People and scripts name runs by their numbers. */
static void test_number_is_not_given_again(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_run runs[] = {{.uuid = {7}, .start_ns = START_NS, .end_ns = START_NS + 1},
                                   {.uuid = {8}, .start_ns = START_NS, .end_ns = START_NS + 1}};
    int64_t newest = 0, again = 0, next = 0;
    check(occ_store_put_run(w->store, &runs[0], &newest, &err), &err);
    check(occ_store_put_run(w->store, &runs[0], &again, &err), &err);
    assert_int_equal(again, newest);
    check(occ_store_commit(w->store, &err), &err);
    w->runs[0] = newest;
    check(remove_first(w, &err), &err);
    check(occ_store_put_run(w->store, &runs[1], &next, &err), &err);
    assert_int_equal(next, newest + 1);
}

struct takeover {
    struct world *w;
    int rc;
};

/* A daemon that finds the run's program again while it is being chosen. */
static int choose_slowly(void *context, struct occ_store *store, const int64_t **ret_runs, size_t *ret_n,
                         struct occ_error *err)
{
    struct takeover *takeover = context;
    struct occ_store *other = NULL;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE, .busy_timeout_ms = 50};
    const struct occ_run run = {.uuid = {1}, .start_ns = START_NS, .level = "trace"};
    int64_t id = 0;
    takeover->rc = occ_store_open(takeover->w->path, &options, &other, NULL);
    if (takeover->rc == 0)
        takeover->rc = occ_store_put_run(other, &run, &id, NULL);
    occ_store_close(other);
    return choose_first(takeover->w, store, ret_runs, ret_n, err);
}

static void test_chosen_in_its_transaction(void **state)
{
    struct takeover takeover = {.w = *state};
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *other = NULL;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    check(occ_store_open(takeover.w->path, &options, &other, &err), &err);
    check(occ_store_remove_runs(other, &(struct occ_run_chooser){choose_slowly, &takeover}, START_NS, &err),
          &err);
    occ_store_close(other);
    assert_int_equal(takeover.rc, OCC_E_BUSY);
}

#define SECRETS 60
#define SECRET  "token-of-ann"

struct secrets {
    int64_t runs[SECRETS];
    size_t n;
};

static int choose_secrets(void *context, struct occ_store *store, const int64_t **ret_runs, size_t *ret_n,
                          struct occ_error *err)
{
    struct secrets *s = context;
    (void)store;
    (void)err;
    *ret_runs = s->runs;
    *ret_n = s->n;
    return 0;
}

/* A run whose row grows and shrinks, as the daemon learns more of the program, with texts in other tables. */
static void put_secrets(struct world *w, struct secrets *secrets)
{
    struct occ_error err = OCC_ERROR_INIT;
    for (int round = 0; round < 6; round++)
        for (size_t i = 0; i < SECRETS; i++) {
            char line[256], reason[64];
            uint32_t range = 0;
            (void)snprintf(line, sizeof line, SECRET " %.*s", (round * 37 + (int)i) % 200,
                           "------------------------------------------------------------------------------"
                           "------------------------------------------------------------------------------"
                           "--------------------------------------------");
            (void)snprintf(reason, sizeof reason, SECRET " %zu", i);
            const struct occ_run run = {.uuid = {0xee, (uint8_t)i},
                                        .start_ns = START_NS,
                                        .end_ns = round == 5 ? START_NS + 1 : 0,
                                        .cmdline = line,
                                        .label = round % 2 ? SECRET : NULL,
                                        .level = "trace",
                                        .level_reason = round > 2 ? reason : NULL};
            const struct occ_period period = {START_NS + round, round == 5 ? START_NS + 9 : 0, "nothing",
                                              reason};
            check(occ_store_put_run(w->store, &run, &secrets->runs[i], &err), &err);
            check(occ_store_put_period(w->store, secrets->runs[i], &period, &err), &err);
            check(occ_store_put_range(w->store, secrets->runs[i], reason, NULL, &range, &err), &err);
            check(occ_store_commit(w->store, &err), &err);
        }
    secrets->n = SECRETS;
}

static size_t count_in(const char *path, const char *text)
{
    size_t found = 0, length = strlen(text), n = 0;
    FILE *file = fopen(path, "rb");
    char *bytes = malloc((size_t)64 << 20);
    assert_non_null(bytes);
    if (file) {
        n = fread(bytes, 1, (size_t)64 << 20, file);
        assert_int_equal(fclose(file), 0);
    }
    for (char *at = bytes; n >= length && (at = memmem(at, (size_t)(bytes + n - at), text, length)); at++)
        found++;
    free(bytes);
    return found;
}

/* Deleted rows are no part of the file either, while the daemon has it open. */
static void test_texts_leave_the_file(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct secrets secrets = {.n = 0};
    char log[80];
    put_secrets(w, &secrets);
    (void)snprintf(log, sizeof log, "%s-wal", w->path);
    assert_true(count_in(w->path, SECRET) + count_in(log, SECRET) > SECRETS);
    struct occ_store *own = NULL;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    check(occ_store_open(w->path, &options, &own, &err), &err);
    const struct occ_run_chooser chooser = {choose_secrets, &secrets};
    check(occ_store_remove_runs(own, &chooser, START_NS, &err), &err);
    occ_store_close(own);
    assert_int_equal(count_in(w->path, SECRET), 0);
    assert_int_equal(count_in(log, SECRET), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_beside_a_writer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_keys_go_when_the_warehouse_has_no_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_run_that_is_removed_late_has_a_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_texts_leave_the_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_locked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_number_is_not_given_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_chosen_in_its_transaction, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
