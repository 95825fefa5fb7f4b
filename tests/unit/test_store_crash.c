/*
 * A writer that is killed at any moment: the file opens, is whole, holds all commits, and its rollups
 * are right after the next writer continues. The child reports each commit through a pipe; the commit in
 * progress at its death may be there or not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_store_world.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define BEGIN  (INT64_C(1700000000) * SECOND)
#define BATCH  400
#define VALUES 15

static const uint8_t ring[16] = {9};

/* Adds values to the batch's last VALUES launches, and as many samples. */
static void add_counters(struct world *w, uint64_t number)
{
    struct occ_error err = OCC_ERROR_INIT;
    for (size_t i = 0; i < VALUES; i++) {
        const struct world_launch *l = &w->launches[w->n - 1 - i];
        struct occ_launch_value value = {.start_ns = l->launch.start_ns,
                                         .correlation = l->launch.correlation,
                                         .config = l->launch.config,
                                         .achieved = 0.5};
        struct occ_device_sample sample = {.start_ns = BEGIN + (int64_t)(number * VALUES + i) * SECOND / 10,
                                           .end_ns = BEGIN + (int64_t)(number * VALUES + i + 1) * SECOND / 10,
                                           .elapsed = 0.25};
        assert_int_equal(occ_store_add_launch_values(w->store, l->run, l->device, &value, 1, &err), 0);
        assert_int_equal(occ_store_add_samples(w->store, w->device[0], &sample, 1, &err), 0);
    }
}

/* Batch `number` is the same in parent and child: launches that carry its number. */
static void append_batch(struct world *w, uint64_t number)
{
    w->seed = number * UINT64_C(0x9e3779b97f4a7c15) + 1;
    world_append(w, (int)(number % 2), BEGIN + (int64_t)number * 40 * SECOND, 40 * SECOND, BATCH);
    if (number % 5 == 0)
        world_append(w, 0, BEGIN, (int64_t)number * 40 * SECOND + SECOND, 20); /* late ones */
    add_counters(w, number);
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(occ_store_put_position(w->store, OCC_POSITION_RING, ring, number + 1, &err), 0);
}

static void write_until_killed(struct world *w, int report)
{
    struct occ_error err = OCC_ERROR_INIT;
    uint64_t number = 0;
    world_open(w);
    if (occ_store_position(w->store, OCC_POSITION_RING, ring, &number, &err) != 0)
        _exit(1);
    for (;; number++) {
        append_batch(w, number);
        if (occ_store_commit(w->store, &err) != 0)
            _exit(1);
        if (write(report, &number, sizeof number) != (ssize_t)sizeof number)
            _exit(1);
    }
}

/* Runs a writer and kills it after so many commits and some more moments. */
static uint64_t kill_a_writer(struct world *w, uint64_t commits, unsigned delay_us)
{
    int report[2];
    uint64_t number = 0, seen = 0;
    assert_int_equal(pipe(report), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(report[0]);
        write_until_killed(w, report[1]);
    }
    (void)close(report[1]);
    while (seen < commits && read(report[0], &number, sizeof number) == (ssize_t)sizeof number)
        seen++;
    (void)usleep(delay_us);
    assert_int_equal(kill(child, SIGKILL), 0);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status)); /* it did not fail by itself */
    while (read(report[0], &number, sizeof number) == (ssize_t)sizeof number)
        seen++;
    (void)close(report[0]);
    assert_true(seen >= commits);
    return number;
}

/* Checks that the file holds batches 0 ... next - 1; `next` is the position stored in the file. */
static void check_file(struct world *w, uint64_t committed)
{
    struct occ_error err = OCC_ERROR_INIT;
    uint64_t next = 0;
    world_open(w);
    assert_int_equal(
        world_number(w->store, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
        1);
    assert_int_equal(occ_store_position(w->store, OCC_POSITION_RING, ring, &next, &err), 0);
    assert_in_range(next, committed + 1, committed + 2);
    assert_int_equal(world_number(w->store, "SELECT sum(samples) FROM stored_device_second"), next * VALUES);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM device_sample"), next * VALUES);
    assert_int_equal(world_number(w->store, "SELECT count(*) FROM launch WHERE measured_source = 'direct'"),
                     next * VALUES);
    occ_store_close(w->store);
    w->store = NULL;
    /* the same launches once more, in memory only: a store that is never committed */
    struct world copy = *w;
    char path[128];
    (void)snprintf(path, sizeof path, "%s/copy.db", w->directory);
    memcpy(copy.path, path, strlen(path) + 1 < sizeof copy.path ? strlen(path) + 1 : sizeof copy.path - 1);
    w->n = 0;
    copy.launches = w->launches;
    copy.capacity = w->capacity;
    copy.n = 0;
    world_open(&copy);
    for (uint64_t number = 0; number < next; number++)
        append_batch(&copy, number);
    occ_store_close(copy.store);
    w->launches = copy.launches;
    w->capacity = copy.capacity;
    w->n = copy.n;
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        char name[160];
        (void)snprintf(name, sizeof name, "%s%s", copy.path, suffixes[i]);
        (void)unlink(name);
    }
    world_open(w);
    world_check_rollups(w, w->store);
    world_check_random(w, w->store, 4);
    occ_store_close(w->store);
    w->store = NULL;
}

static void kill_writers(int times)
{
    struct world w;
    uint64_t delays = 1;
    memset(&w, 0, sizeof w);
    world_make_directory(&w);
    w.options.chunk_rows = 1500;
    for (int i = 0; i < times; i++) {
        delays = delays * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t committed = kill_a_writer(&w, 1 + (delays >> 60), (unsigned)(delays >> 40) % 8000);
        check_file(&w, committed);
    }
    world_open(&w);
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(occ_store_finish(w.store, &err), 0);
    world_check_random(&w, w.store, 10);
    world_check_rollups(&w, w.store);
    occ_store_close(w.store);
    world_remove_directory(&w);
}

static void a_killed_writer_loses_nothing_committed(void **state)
{
    kill_writers(*(int *)*state);
}

int main(int argc, char **argv)
{
    int times = argc > 1 && strcmp(argv[1], "long") == 0 ? 60 : 6;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(a_killed_writer_loses_nothing_committed, &times),
    };
    return cmocka_run_group_tests_name("store crash", tests, NULL, NULL);
}
