/* Histories of older versions: read by the next version, changed by the one after it, copied before. The
 * schema here is the real one and two more migrations, which tests/data/schema has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "full_disk.h"
#include "store/sql_nouns.h"
#include "store/upgrade.h"
#include "test_store_world.h"

#define MINUTE INT64_C(60000000000)
#define BEGIN  INT64_C(1700000000000000000)

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
    char command[128];
    occ_store_close(w->store);
    (void)snprintf(command, sizeof command, "rm -f %s/*.schema1*", w->directory);
    assert_int_equal(system(command), 0);
    world_remove_directory(w);
    free(w);
    return 0;
}

static int64_t number_in(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(occ_store_register(db), SQLITE_OK);
    int64_t number = world_number_in(db, sql);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return number;
}

/* A history with launches, as an older version has left it. */
static void make_history(struct world *w, int version)
{
    static const char *const undo[] = {"DROP TABLE stored_latest; PRAGMA user_version = 2",
                                       "ALTER TABLE stored_run DROP COLUMN later; DROP TABLE stored_later; "
                                       "PRAGMA user_version = 1"};
    struct occ_error err = OCC_ERROR_INIT;
    sqlite3 *db = NULL;
    char *message = NULL;
    world_open(w);
    for (int i = 0; i < 5; i++) {
        world_append(w, i % 2, BEGIN + i * MINUTE, MINUTE, 2000);
        assert_int_equal(occ_store_commit(w->store, &err), 0);
    }
    assert_int_equal(occ_store_finish(w->store, &err), 0);
    occ_store_close(w->store);
    w->store = NULL;
    assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
    assert_int_equal(occ_store_register(db), SQLITE_OK);
    for (int i = 3; i > version; i--)
        if (sqlite3_exec(db, undo[3 - i], NULL, NULL, &message) != SQLITE_OK)
            fail_msg("%s", message);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(number_in(w->path, "PRAGMA user_version"), version);
}

/* A history of this version by a program that did not have the columns of a Slurm job yet. */
static void make_history_without_columns(struct world *w)
{
    static const char undo[] =
        "ALTER TABLE stored_run DROP COLUMN slurm_account; ALTER TABLE stored_run DROP COLUMN "
        "slurm_partition; "
        "ALTER TABLE stored_run DROP COLUMN slurm_qos; ALTER TABLE stored_run DROP COLUMN slurm_array_job; "
        "ALTER TABLE stored_run DROP COLUMN slurm_array_task; "
        "ALTER TABLE stored_device_second DROP COLUMN energy_mj; "
        "ALTER TABLE stored_device_second DROP COLUMN energy_ns; "
        "INSERT INTO stored_device_second(second, device_id, samples, covered_ns) VALUES (1, 1, 5, 9)";
    static const char old_view[] =
        "DROP VIEW run; CREATE VIEW run AS SELECT run_id, launches FROM stored_run; "
        "DROP VIEW device_second; CREATE VIEW device_second AS SELECT second, samples FROM "
        "stored_device_second; DELETE FROM column_help WHERE column_name IN ('slurm_account', 'energy_j')";
    sqlite3 *db = NULL;
    char *message = NULL;
    make_history(w, 3);
    assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
    assert_int_equal(occ_store_register(db), SQLITE_OK);
    assert_int_equal(occ_sql_drop_nouns(db), SQLITE_OK);
    if (sqlite3_exec(db, undo, NULL, NULL, &message) != SQLITE_OK || occ_sql_make_nouns(db) != SQLITE_OK ||
        sqlite3_exec(db, old_view, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int open_as(struct world *w, enum occ_store_mode mode, struct occ_error *err)
{
    return occ_store_open(w->path, &(struct occ_store_options){.mode = mode}, &w->store, err);
}

static void the_previous_version_is_read(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    sqlite3 *db = NULL;
    char *message = NULL;
    make_history(w, 2);
    if (open_as(w, OCC_STORE_READ, &err) != 0)
        fail_msg("%s", err.message);
    world_check_random(w, w->store, 10);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM run"), WORLD_RUNS);
    assert_int_equal(number_in(w->path, "PRAGMA user_version"), 2);
    /* and by any sqlite3 with the extension */
    assert_int_equal(sqlite3_open_v2(w->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_enable_load_extension(db, 1), SQLITE_OK);
    if (sqlite3_load_extension(db, OCC_SQLITE_MODULE, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    assert_int_equal(world_number_in(db, "SELECT count(*) FROM launch"), w->n);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void an_older_one_says_what_to_do(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    make_history(w, 1);
    assert_int_equal(open_as(w, OCC_STORE_READ, &err), OCC_E_VERSION);
    assert_non_null(strstr(err.message, "schema 1, this one reads 2 and 3"));
    assert_non_null(strstr(err.message, "occtraced --migrate"));
}

static void a_writer_changes_it(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    make_history(w, 1);
    if (open_as(w, OCC_STORE_WRITE, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(world_number(w->store, "PRAGMA user_version"), 3);
    assert_int_equal(world_number(w->store, "SELECT sum(later) FROM stored_run"), 7 * WORLD_RUNS);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM stored_latest"), 0);
    /* the nouns are made anew, once */
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM run"), WORLD_RUNS);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM column_help WHERE table_name = 'run' AND "
                                            "column_name = 'run_id'"),
                     1);
    world_append(w, 0, BEGIN + 9 * MINUTE, MINUTE, 100);
    assert_int_equal(occ_store_commit(w->store, &err), 0);
    world_check_random(w, w->store, 5);
}

static void a_copy_is_left_as_it_was(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_upgrade done;
    struct stat status;
    char copy[160];
    make_history(w, 1);
    (void)snprintf(copy, sizeof copy, "%s.schema1", w->path);
    assert_int_equal(chmod(w->path, 0604), 0);
    if (occ_store_upgrade(w->path, true, &done, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(done.from, 1);
    assert_int_equal(done.to, 3);
    assert_string_equal(done.backup, copy);
    free(done.backup);
    assert_int_equal(stat(copy, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0604);
    assert_int_equal(number_in(copy, "PRAGMA user_version"), 1);
    assert_int_equal(number_in(copy, "SELECT count(*) FROM launch"), w->n);
    assert_int_equal(number_in(copy, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    assert_int_equal(number_in(w->path, "PRAGMA user_version"), 3);
    assert_int_equal(number_in(w->path, "SELECT count(*) FROM launch"), w->n);
    /* again: nothing to do, and no copy */
    assert_int_equal(unlink(copy), 0);
    assert_int_equal(occ_store_upgrade(w->path, true, &done, &err), 0);
    assert_int_equal(done.from, 3);
    assert_null(done.backup);
    assert_int_not_equal(stat(copy, &status), 0);
}

/* A refused upgrade changes nothing, and leaves no copy. */
static void refusals_change_nothing(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_upgrade done;
    struct stat status;
    sqlite3 *db = NULL;
    char copy[160];
    make_history(w, 1);
    (void)snprintf(copy, sizeof copy, "%s.schema1", w->path);
    /* a daemon of the older version, between two commits */
    assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
    assert_int_equal(world_number_in(db, "SELECT count(*) FROM stored_run"), WORLD_RUNS);
    assert_int_equal(occ_store_upgrade(w->path, true, &done, &err), OCC_E_BUSY);
    assert_non_null(strstr(err.message, "a daemon or another program has it open"));
    assert_int_equal(world_number_in(db, "PRAGMA user_version"), 1);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_not_equal(stat(copy, &status), 0);
    /* an older copy */
    FILE *file = fopen(copy, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(occ_store_upgrade(w->path, true, &done, &err), OCC_E_IO);
    assert_non_null(strstr(err.message, copy));
    assert_int_equal(number_in(w->path, "PRAGMA user_version"), 1);
    /* no history, none at all, a newer one */
    assert_int_equal(occ_store_upgrade(copy, false, &done, &err), OCC_E_CORRUPT);
    assert_int_not_equal(occ_store_upgrade("/nonexistent/history.db", false, &done, &err), 0);
    assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 4", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(occ_store_upgrade(w->path, false, &done, &err), OCC_E_VERSION);
}

/* The disk is full at any write, of the copy or of the upgrade: the history stays whole, of its version or of
 * the last migration that had room; a copy is whole or does not exist; with room the history is upgraded. */
static void a_full_disk_leaves_a_whole_history(void **state)
{
    struct world *w = *state;
    struct occ_upgrade done;
    char begin[512], end[512], copy[160];
    int failures[2] = {0};
    make_history(w, 1);
    (void)snprintf(copy, sizeof copy, "%s.schema1", w->path);
    (void)snprintf(begin, sizeof begin, "cp %s %s.before", w->path, w->path);
    (void)snprintf(end, sizeof end, "rm -f %s* %s-*; cp %s.before %s", copy, w->path, w->path, w->path);
    assert_int_equal(system(begin), 0);
    for (int64_t writes = 0, is_full = 1; is_full; writes = writes * 5 / 4 + 1) {
        struct occ_error err = OCC_ERROR_INIT;
        writes_left = writes;
        is_full = occ_store_upgrade(w->path, true, &done, &err) != 0;
        writes_left = WITH_ROOM;
        assert_in_range(number_in(w->path, "PRAGMA user_version"), is_full ? 1 : 3, is_full ? 2 : 3);
        assert_int_equal(number_in(w->path, "SELECT count(*) FROM launch"), w->n);
        assert_int_equal(number_in(w->path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
        if (is_full) {
            assert_int_equal(err.code, OCC_E_FULL);
            failures[done.backup != NULL]++;
        }
        assert_int_equal(access(copy, F_OK), done.backup ? 0 : -1);
        if (done.backup)
            assert_int_equal(number_in(copy, "SELECT count(*) FROM launch"), w->n);
        free(done.backup);
        assert_int_equal(system(end), 0);
    }
    (void)snprintf(copy, sizeof copy, "%s.before", w->path);
    assert_int_equal(unlink(copy), 0);
    assert_true(failures[0] > 0 && failures[1] > 0); /* in either */
}

/* Columns that came without a new version: a reader finds NULL, a writer adds them, programs without them go
 * on writing. */
static void columns_are_added_to_a_version(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_device_energy energy;
    int64_t id = 0;
    make_history_without_columns(w);
    if (open_as(w, OCC_STORE_READ, &err) != 0)
        fail_msg("%s", err.message);
    world_check_random(w, w->store, 10);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM run WHERE slurm_account IS NULL"),
                     WORLD_RUNS);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM device_second WHERE energy_j IS NULL AND "
                                            "samples = 5"),
                     1);
    occ_store_begin_energies(w->store, 0, INT64_MAX);
    assert_int_equal(occ_store_next_energy(w->store, &energy, &err), 0);
    occ_store_close(w->store);
    w->store = NULL;
    assert_int_equal(number_in(w->path,
                               "SELECT count(*) FROM pragma_table_info('stored_run') WHERE name GLOB "
                               "'slurm_a*'"),
                     0);
    for (int again = 0; again < 2; again++) {
        if (open_as(w, OCC_STORE_WRITE, &err) != 0)
            fail_msg("%s", err.message);
        const struct occ_run run = {
            .uuid = {1},
            .start_ns = BEGIN,
            .job = {.slurm_job = "7", .slurm_account = "phys", .slurm_array_task = "3"}};
        assert_int_equal(occ_store_put_run(w->store, &run, &id, &err), 0);
        energy =
            (struct occ_device_energy){.device = 1, .second = 1, .length_ns = INT64_C(1000000000), .mj = 350};
        assert_int_equal(occ_store_add_energy(w->store, &energy, &err), 0);
        assert_int_equal(occ_store_finish(w->store, &err), 0);
        occ_store_close(w->store);
        w->store = NULL;
    }
    assert_int_equal(number_in(w->path, "SELECT count(*) FROM device_second WHERE energy_j = 0.35 AND "
                                        "energy_ns = 1000000000 AND samples = 5"),
                     1);
    assert_int_equal(number_in(w->path, "SELECT count(*) FROM run WHERE slurm_account = 'phys' AND "
                                        "slurm_array_task = '3' AND slurm_qos IS NULL"),
                     1);
    assert_int_equal(
        number_in(w->path, "SELECT count(*) FROM column_help WHERE column_name = 'slurm_account'"), 1);
    assert_int_equal(number_in(w->path, "PRAGMA user_version"), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_previous_version_is_read),
        TEST(an_older_one_says_what_to_do),
        TEST(a_writer_changes_it),
        TEST(a_copy_is_left_as_it_was),
        TEST(refusals_change_nothing),
        TEST(a_full_disk_leaves_a_whole_history),
        TEST(columns_are_added_to_a_version),
    };
    return cmocka_run_group_tests(tests, replace_writes, NULL);
}
