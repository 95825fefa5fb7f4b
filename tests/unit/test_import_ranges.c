/*
 * Places of launches in the program: the rules of import/ranges.h one by one, recordings of Nsight Systems
 * made here, and input that no program would produce.
 */
#include "import/import.h"
#include "import/ranges.h"
#include "import/sorter.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the sorter ---- */

static int compare_numbers(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* Sorts the numbers 0 ... n - 1, each twice, from a shuffled order. */
static void sort_numbers(size_t n, size_t run)
{
    struct occ_sorter *sorter = NULL;
    const void *record = NULL;
    assert_int_equal(occ_sorter_new(sizeof(uint64_t), run, compare_numbers, &sorter, NULL), 0);
    for (uint64_t i = 0; i < 2 * n; i++)
        assert_int_equal(occ_sorter_put(sorter, &(uint64_t){i * 7919 % n}, NULL), 0);
    for (uint64_t i = 0; i < 2 * n; i++) {
        assert_int_equal(occ_sorter_next(sorter, &record, NULL), 0);
        assert_non_null(record);
        assert_int_equal(*(const uint64_t *)record, i / 2);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(occ_sorter_next(sorter, &record, NULL), 0);
        assert_null(record);
    }
    occ_sorter_free(sorter);
}

static void sorts_in_memory_and_in_files(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 15, 16, 17, 1000, 5003};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        sort_numbers(counts[i], 1u << 16);
        sort_numbers(counts[i], 16);
        sort_numbers(counts[i], 1);
    }
    struct occ_sorter *sorter = NULL; /* freed before its last record was read */
    const void *record = NULL;
    assert_int_equal(occ_sorter_new(sizeof(uint64_t), 4, compare_numbers, &sorter, NULL), 0);
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(occ_sorter_put(sorter, &i, NULL), 0);
    assert_int_equal(occ_sorter_next(sorter, &record, NULL), 0);
    occ_sorter_free(sorter);
}

/* ---- the rules ---- */

struct fixture {
    struct occ_ranges *ranges;
};

static int set_up(void **state)
{
    static struct fixture f;
    *state = &f;
    return occ_ranges_new(1234, &f.ranges, NULL);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    occ_ranges_free(f->ranges);
    return 0;
}

enum { PROCESS = 100, MAIN = 1, AUTOGRAD = 2, NO_NUMBER = -1 };

static void range_of(struct fixture *f, int64_t process, int64_t thread, int64_t start, int64_t end,
                     const char *name, int64_t sequence)
{
    const struct occ_import_range range = {.process = process,
                                           .thread = thread,
                                           .start_ns = start,
                                           .end_ns = end,
                                           .name = name,
                                           .name_bytes = strlen(name),
                                           .is_autograd = strncmp(name, "evaluate", 8) == 0,
                                           .sequence = sequence};
    assert_int_equal(occ_ranges_add(f->ranges, &range, NULL), 0);
}

static void range(struct fixture *f, int64_t start, int64_t end, const char *name)
{
    range_of(f, PROCESS, MAIN, start, end, name, NO_NUMBER);
}

static void call_of(struct fixture *f, int64_t process, int64_t thread, int64_t start, int64_t end,
                    uint64_t id)
{
    struct occ_import_call call;
    memset(&call, 0, sizeof call);
    call.process = process;
    call.thread = thread;
    call.start_ns = start;
    call.end_ns = end;
    call.origin.process = (uint64_t)process;
    call.origin.id = id;
    assert_int_equal(occ_ranges_add_call(f->ranges, &call, NULL), 0);
}

static void call(struct fixture *f, int64_t start, int64_t end, uint64_t id)
{
    call_of(f, PROCESS, MAIN, start, end, id);
}

static void launch_of(struct fixture *f, uint64_t process, uint64_t id)
{
    struct occ_import_origin origin;
    memset(&origin, 0, sizeof origin);
    origin.process = process;
    origin.id = id;
    assert_int_equal(occ_ranges_add_launch(f->ranges, &origin, NULL), 0);
}

static void launch(struct fixture *f, uint64_t id)
{
    launch_of(f, PROCESS, id);
}

/* Expects the next launch at the place `path`, with "< " in front in the backward phase; NULL: no place. */
static void expect(struct fixture *f, const char *path)
{
    char text[OCC_STORE_RANGE_BYTES + 1], found[OCC_STORE_RANGE_BYTES + 8] = "";
    const char *phase = NULL;
    uint32_t place = 0;
    assert_int_equal(occ_ranges_next(f->ranges, &place, NULL), 0);
    assert_true(place < OCC_RANGES_PLACES_MAX);
    if (place != 0) {
        const char *got = occ_ranges_path(f->ranges, place, text, &phase);
        (void)snprintf(found, sizeof found, "%s%s", phase ? "< " : "", got);
    }
    assert_string_equal(found, path ? path : "");
}

static void the_innermost_range_that_contains_the_call(void **state)
{
    struct fixture *f = *state;
    launch(f, 5); /* files have launches and calls in any order */
    launch(f, 6);
    call(f, 40, 50, 6); /* as long as its range */
    range(f, 20, 30, "layer 12");
    range(f, 0, 100, "step 7");
    range(f, 40, 50, "b");
    range(f, 30, 40, "beside"); /* ends where b begins */
    range(f, 20, 30, "inner");  /* as long as layer 12, and later in the file */
    call(f, 22, 24, 1);
    call(f, 28, 33, 2); /* ends after the range that it began in */
    call(f, 41, 42, 3);
    call(f, 200, 201, 4); /* outside of all ranges */
    call(f, 40, 40, 5);
    for (uint64_t id = 1; id <= 4; id++)
        launch(f, id);
    launch(f, 77); /* without a call */
    launch(f, 0);
    launch(f, 1); /* a graph's launch has many kernels */
    expect(f, "step #/b");
    expect(f, "step #/b");
    expect(f, "step #/layer #/inner");
    expect(f, "step #");
    expect(f, "step #/b");
    expect(f, NULL);
    expect(f, NULL);
    expect(f, NULL);
    expect(f, "step #/layer #/inner");
    expect(f, NULL);
}

/* Thread numbers and correlation ids are unique only within a process. */
static void processes_have_their_own(void **state)
{
    struct fixture *f = *state;
    range_of(f, 1, 5, 0, 10, "one", NO_NUMBER);
    range_of(f, 2, 5, 0, 10, "two", NO_NUMBER);
    range_of(f, 1, 6, 0, 10, "other thread", NO_NUMBER);
    call_of(f, 1, 5, 3, 4, 9);
    call_of(f, 2, 5, 3, 4, 9);
    call_of(f, 3, 5, 3, 4, 9);
    call_of(f, 1, 5, 5, 6, 10); /* one correlation id on two threads: the launch has no place */
    call_of(f, 1, 6, 5, 6, 10);
    call_of(f, 1, 6, 7, 8, 10);
    launch_of(f, 2, 9);
    launch_of(f, 1, 9);
    launch_of(f, 3, 9);
    launch_of(f, 1, 10);
    expect(f, "two");
    expect(f, "one");
    expect(f, NULL);
    expect(f, NULL);
}

static void ranges_that_do_not_nest(void **state)
{
    struct fixture *f = *state;
    range(f, 0, 10, "a");
    range(f, 5, 20, "b");
    range(f, 12, 15, "c");
    call(f, 7, 8, 1);
    call(f, 13, 14, 2);
    call(f, 16, 17, 3);
    for (uint64_t id = 1; id <= 3; id++)
        launch(f, id);
    expect(f, "a/b");
    expect(f, "b/c");
    expect(f, "b");
}

/* A backward launch belongs to a forward operator with the same sequence number on another thread of its
 * process: the last operator to start before the call. */
static void backward_kernels_belong_to_the_forward_operator(void **state)
{
    struct fixture *f = *state;
    range_of(f, PROCESS, MAIN, 0, 1000, "model", NO_NUMBER);
    range_of(f, PROCESS, MAIN, 10, 20, "no grad", 5);
    range_of(f, PROCESS, MAIN, 30, 60, "linear", 5);
    range_of(f, PROCESS, MAIN, 40, 50, "addmm", 5);
    range_of(f, PROCESS, MAIN, 900, 950, "too late", 5);
    range_of(f, PROCESS + 1, MAIN, 45, 50, "of another process", 5);
    range_of(f, PROCESS, AUTOGRAD, 100, 200, "evaluate: Addmm", 5);
    range_of(f, PROCESS, AUTOGRAD, 110, 190, "AddmmBackward0", 5);
    range_of(f, PROCESS, AUTOGRAD, 300, 400, "evaluate: AccumulateGrad", NO_NUMBER);
    range_of(f, PROCESS, AUTOGRAD, 310, 390, "all_reduce", NO_NUMBER);
    range_of(f, PROCESS, MAIN, 80, 90, "of another number", 4);
    range_of(f, PROCESS, AUTOGRAD, 70, 75, "of the same thread", 5);
    range_of(f, PROCESS, AUTOGRAD, 500, 600, "evaluate: Unknown", 6);
    range_of(f, PROCESS, AUTOGRAD, 700, 710, "hook", NO_NUMBER);
    call_of(f, PROCESS, AUTOGRAD, 120, 130, 1);
    call_of(f, PROCESS, AUTOGRAD, 320, 330, 2);
    call_of(f, PROCESS, AUTOGRAD, 520, 530, 3);
    call_of(f, PROCESS, AUTOGRAD, 701, 702, 4);
    call_of(f, PROCESS, MAIN, 44, 45, 5);
    for (uint64_t id = 1; id <= 5; id++)
        launch(f, id);
    expect(f, "< model/linear/addmm");
    expect(f, "< evaluate: AccumulateGrad/all_reduce");
    expect(f, "< evaluate: Unknown");
    expect(f, "hook");
    expect(f, "model/linear/addmm");
}

/* ---- input that no program would produce ---- */

/* Ranges beyond the maximum depth are left out: a launch in them gets the path of the ranges around them. */
static void nothing_is_closed(void **state)
{
    struct fixture *f = *state;
    for (int64_t i = 0; i < 100000; i++)
        range(f, i, INT64_MAX, "open");
    call(f, 3, 4, 1);
    call(f, 100000, 100001, 2);
    launch(f, 1);
    launch(f, 2);
    expect(f, "open/open/open/open");
    char path[OCC_STORE_RANGE_BYTES + 1];
    const char *phase = NULL;
    uint32_t place = 0;
    assert_int_equal(occ_ranges_next(f->ranges, &place, NULL), 0);
    const char *open = occ_ranges_path(f->ranges, place, path, &phase);
    assert_in_range(strlen(open), 1000, OCC_STORE_RANGE_BYTES);
    assert_int_equal(strncmp(open, "\u2026/open/", 9), 0);
}

static void times_that_cannot_be(void **state)
{
    struct fixture *f = *state;
    range(f, -50, 50, "since before the beginning");
    range(f, 10, 5, "backwards");
    range(f, INT64_MIN, INT64_MAX, "always");
    range(f, 0, 100, "");
    call(f, 8, 7, 1);
    call(f, 6, 7, 2);
    call(f, INT64_MAX, INT64_MAX, 3);
    for (uint64_t id = 1; id <= 3; id++)
        launch(f, id);
    expect(f, NULL);
    expect(f, "always/since before the beginning");
    expect(f, "always");
}

/* Long names are cut, and names beyond the maximum become "(other ranges)"; memory does not grow with the
 * file. */
static void too_many_names(void **state)
{
    struct fixture *f = *state;
    enum { NAMES = 1000000, LONG = 1 << 20 };
    struct rusage before, after;
    char *long_name = malloc(LONG + 1), text[32];
    assert_non_null(long_name);
    memset(long_name, 'x', LONG);
    long_name[LONG] = '\0';
    range(f, 0, 5, long_name);
    call(f, 1, 2, 1);
    launch(f, 1);
    (void)getrusage(RUSAGE_SELF, &before);
    for (int64_t i = 0; i < NAMES; i++) {
        size_t n = 0; /* without digits */
        for (uint64_t left = (uint64_t)i + 1; left > 0; left /= 26)
            text[n++] = (char)('a' + left % 26);
        text[n] = '\0';
        range(f, 10 * i + 10, 10 * i + 15, text);
        call(f, 10 * i + 11, 10 * i + 12, (uint64_t)i + 2);
        launch(f, (uint64_t)i + 2);
    }
    char expected[257] = "";
    memset(expected, 'x', 253);
    strcpy(expected + 253, "\u2026");
    expect(f, expected);
    expect(f, "b");
    for (int64_t i = 1; i < NAMES - 1; i++)
        assert_int_equal(occ_ranges_next(f->ranges, &(uint32_t){0}, NULL), 0);
    expect(f, "(other ranges)");
    (void)getrusage(RUSAGE_SELF, &after);
    assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 128 * 1024); /* KiB; the records are 300 MB */
    free(long_name);
}

/* ---- Nsight Systems ---- */

struct world {
    char directory[64], db[96], file[96];
};

static int set_up_world(void **state)
{
    static struct world w;
    (void)snprintf(w.directory, sizeof w.directory, "/tmp/test_import_ranges_XXXXXX");
    if (!mkdtemp(w.directory))
        return -1;
    (void)snprintf(w.db, sizeof w.db, "%s/history.db", w.directory);
    (void)snprintf(w.file, sizeof w.file, "%s/nsys.sqlite", w.directory);
    *state = &w;
    return 0;
}

static int tear_down_world(void **state)
{
    struct world *w = *state;
    char path[128];
    static const char *const tails[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s%s", w->db, tails[i]);
        (void)unlink(path);
    }
    (void)unlink(w->file);
    return rmdir(w->directory);
}

static int take_path(void *context, int n, char **values, char **names)
{
    char *all = context;
    (void)n;
    (void)names;
    size_t used = strlen(all);
    (void)snprintf(all + used, 512 - used, "%s;", values[0] ? values[0] : "-");
    return 0;
}

static void import_recording(struct world *w, const char *paths)
{
    static const struct occ_store_options writing = {.mode = OCC_STORE_WRITE};
    static const struct occ_import_options plain = {0};
    struct occ_import_result result;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *store = NULL;
    char all[512] = "";
    assert_int_equal(occ_store_open(w->db, &writing, &store, &err), 0);
    if (occ_import_file(store, w->file, &plain, &result, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(
        sqlite3_exec(occ_store_sqlite(store),
                     "SELECT range FROM launch LEFT JOIN range USING (run_id, range_id) WHERE run_id = "
                     "(SELECT max(run_id) FROM run) ORDER BY start_ns",
                     take_path, all, NULL),
        SQLITE_OK);
    occ_store_close(store);
    assert_string_equal(all, paths);
}

/* Makes an export from tests/data/import/nsys-nvtx.sql and the statements `more`. */
static void write_recording(struct world *w, const char *more)
{
    static char recording[8192];
    sqlite3 *db = NULL;
    char *message = NULL;
    FILE *file = fopen(OCC_TEST_DATA "/import/nsys-nvtx.sql", "r");
    assert_non_null(file);
    recording[fread(recording, 1, sizeof recording - 1, file)] = '\0';
    (void)fclose(file);
    (void)unlink(w->file);
    assert_int_equal(sqlite3_open(w->file, &db), SQLITE_OK);
    if (sqlite3_exec(db, recording, NULL, NULL, &message) != SQLITE_OK ||
        sqlite3_exec(db, more, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void nvtx_ranges(void **state)
{
    struct world *w = *state;
    write_recording(w, "");
    import_recording(w, "step #/MPI:registered #;step #;another;open;capture;-;-;");
    /* tables that files of other versions have, or lack */
    write_recording(w, "ALTER TABLE CUDA_GRAPH_EVENTS RENAME TO CUDA_GRAPH_NODE_EVENTS");
    import_recording(w, "step #/MPI:registered #;step #;another;open;capture;-;-;");
    write_recording(w, "DROP TABLE CUDA_GRAPH_EVENTS");
    import_recording(w, "step #/MPI:registered #;step #;another;open;-;-;-;");
    write_recording(w, "DELETE FROM NVTX_EVENTS WHERE eventType <> 34");
    import_recording(w, "-;-;-;-;-;-;-;");
    write_recording(w, "UPDATE NVTX_EVENTS SET start = 'text', text = x'00ff' WHERE eventType = 59");
    import_recording(w, "-;-;-;-;capture;-;-;");
}

int main(void)
{
#define RULE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorts_in_memory_and_in_files),
        RULE(the_innermost_range_that_contains_the_call),
        RULE(processes_have_their_own),
        RULE(ranges_that_do_not_nest),
        RULE(backward_kernels_belong_to_the_forward_operator),
        RULE(nothing_is_closed),
        RULE(times_that_cannot_be),
        RULE(too_many_names),
        cmocka_unit_test_setup_teardown(nvtx_ranges, set_up_world, tear_down_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
