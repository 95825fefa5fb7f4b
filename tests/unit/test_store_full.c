/*
 * A disk that becomes full at any write while a history ages or is made smaller: the step says so and changes
 * nothing, the file stays whole, and with room again the history ends as if the disk had never been full.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "full_disk.h"
#include "test_store_world.h"

#define MINUTE INT64_C(60000000000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define BEGIN  (INT64_C(1700000000000000000) / HOUR * HOUR)
#define HOURS  72
#define NOW    (BEGIN + HOURS * HOUR)

static const struct occ_store_ages ages = {
    .raw_ns = DAY, .seconds_ns = DAY, .minutes_ns = DAY, .hours_ns = 2 * DAY};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    writes_left = WITH_ROOM;
    world_make_directory(w);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    char command[128];
    writes_left = WITH_ROOM;
    occ_store_close(w->store);
    (void)snprintf(command, sizeof command, "rm -f %s/base", w->directory);
    assert_int_equal(system(command), 0);
    world_remove_directory(w);
    free(w);
    return 0;
}

static void close_history(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    if (occ_store_finish(w->store, &err) != 0)
        fail_msg("%s", err.message);
    occ_store_close(w->store);
    w->store = NULL;
}

/* Writes the file "base": `launches` launches per `unit_ns` from BEGIN to `until_ns`, without limits. */
static void make_base(struct world *w, int64_t unit_ns, int64_t until_ns, size_t launches)
{
    char command[256];
    struct occ_error err = OCC_ERROR_INIT;
    w->options.chunk_rows = 4000;
    world_open(w);
    for (int64_t at_ns = BEGIN; at_ns < until_ns; at_ns += unit_ns) {
        world_append(w, 0, at_ns, unit_ns, launches);
        assert_int_equal(occ_store_commit(w->store, &err), 0);
    }
    close_history(w);
    (void)snprintf(command, sizeof command, "mv %s %s/base", w->path, w->directory);
    assert_int_equal(system(command), 0);
}

static void open_base(struct world *w, uint64_t max_bytes, const struct occ_store_ages *limits)
{
    char command[256];
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_store_options options = {
        .mode = OCC_STORE_WRITE, .chunk_rows = 4000, .max_bytes = max_bytes, .ages = *limits};
    (void)snprintf(command, sizeof command, "cp %s/base %s && rm -f %s-wal %s-shm", w->directory, w->path,
                   w->path, w->path);
    assert_int_equal(system(command), 0);
    if (occ_store_open(w->path, &options, &w->store, &err) != 0)
        fail_msg("%s", err.message);
}

/* Until nothing more is to be done, or something fails. */
static int maintain(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    bool more = true;
    int status = 0;
    while (more && status == 0)
        status = occ_store_maintain(w->store, NOW, &more, &err);
    return status;
}

/* Returns the numbers of minutes, hours and chunks that remain, packed into one number. */
static int64_t sum(struct world *w)
{
    assert_int_equal(world_number(w->store, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    return world_number(
        w->store,
        "SELECT (SELECT count(*) FROM stored_minute) + 1000000 * (SELECT count(*) FROM stored_hour) "
        "+ 1000000000000 * (SELECT count(*) FROM stored_chunk)");
}

/* Maintains a copy of the base with room for `writes` writes, then with any. false: the room sufficed. */
static bool is_full_after(struct world *w, int64_t writes, uint64_t max_bytes,
                          const struct occ_store_ages *limits)
{
    open_base(w, max_bytes, limits);
    writes_left = writes;
    int status = maintain(w);
    if (status != 0) {
        assert_int_equal(status, OCC_E_FULL);
        assert_int_equal(maintain(w), OCC_E_FULL); /* the same error on repetition */
    }
    writes_left = WITH_ROOM;
    assert_int_equal(maintain(w), 0);
    return status != 0;
}

static void a_full_disk_while_ageing(void **state)
{
    struct world *w = *state;
    int tries = 0;
    make_base(w, HOUR, NOW, 500);
    assert_false(is_full_after(w, WITH_ROOM, 0, &ages));
    int64_t expected = sum(w);
    close_history(w);
    for (int64_t writes = 0, is_full = 1; is_full; writes = writes * 3 / 2 + 1) {
        is_full = is_full_after(w, writes, 0, &ages);
        assert_int_equal(sum(w), expected);
        close_history(w);
        tries++;
    }
    assert_true(tries > 5);
}

/* The quota keeps hours, so they still count every launch. */
static void a_full_disk_while_shrinking(void **state)
{
    struct world *w = *state;
    const struct occ_store_ages none = {.raw_ns = 0};
    struct stat status;
    int tries = 0;
    make_base(w, MINUTE, BEGIN + 200 * MINUTE, 6000);
    for (int64_t writes = 0, is_full = 1; is_full; writes = writes * 3 + 1) {
        is_full = is_full_after(w, writes, 4u << 20, &none);
        (void)sum(w);
        assert_int_equal(world_number(w->store, "SELECT sum(launches) FROM stored_hour"), w->n);
        close_history(w);
        assert_int_equal(stat(w->path, &status), 0);
        assert_true(status.st_size <= 4 << 20);
        tries++;
    }
    assert_true(tries > 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(a_full_disk_while_ageing), TEST(a_full_disk_while_shrinking)};
    return cmocka_run_group_tests(tests, replace_writes, NULL);
}
