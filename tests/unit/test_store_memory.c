/*
 * Memory that cannot be had: every allocation of the store fails once, in turn. Whatever happens is an error
 * or goes well; the file stays whole, and a later writer continues it. Under a sanitizer every fifth
 * allocation fails. The linker replaces malloc and its kin (--wrap).
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
#include <unistd.h>

#include "sanitized.h"
#include "store/store.h"

#define MINUTE INT64_C(60000000000)
#define BEGIN  INT64_C(1700000000000000000)

static long countdown = -1; /* allocations until one fails; < 0: none does */
static long step = 1;       /* from one failing allocation to the next */

static int must_fail(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);

void *__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return must_fail() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return must_fail() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return must_fail() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t n)
{
    return must_fail() ? NULL : __real_strndup(text, n);
}

static void append_some(struct occ_store *store, int64_t run, int64_t device, int64_t config, int round,
                        int *rc)
{
    struct occ_store_launch launches[60];
    for (int i = 0; i < 60; i++)
        launches[i] = (struct occ_store_launch){.start_ns = BEGIN + (round * 60 + i) * MINUTE / 2,
                                                .duration_ns = 1000,
                                                .config = (uint32_t)config,
                                                .stream = 7,
                                                .correlation = (uint32_t)i};
    if (*rc == 0)
        *rc = occ_store_append(store, run, device, launches, 60, NULL);
    for (int i = 0; i < 60 && *rc == 0; i++) {
        struct occ_launch_value value = {
            .start_ns = launches[i].start_ns, .correlation = (uint32_t)i, .config = (uint32_t)config};
        *rc = occ_store_add_launch_values(store, run, device, &value, 1, NULL);
    }
}

/* Commits twice in the same second of the device: the second commit reads the first one's row. */
static void add_samples(struct occ_store *store, int64_t device, int *rc)
{
    for (int i = 0; i < 2 && *rc == 0; i++) {
        struct occ_device_sample sample = {.start_ns = BEGIN + i, .end_ns = BEGIN + i + 1000};
        *rc = occ_store_add_samples(store, device, &sample, 1, NULL);
        if (*rc == 0)
            *rc = occ_store_commit(store, NULL);
    }
}

static void ask(struct occ_store *store, int *rc)
{
    struct occ_filter filter = {.kernel_regex = "k", .since_ns = BEGIN + 7 * MINUTE};
    struct occ_top top;
    struct occ_config_rows configs;
    if (*rc == 0 && (*rc = occ_store_top(store, &filter, OCC_TOP_BY_KERNEL, &top, NULL)) == 0)
        occ_top_free(&top);
    if (*rc == 0 && (*rc = occ_store_configs(store, &filter, &configs, NULL)) == 0)
        occ_config_rows_free(&configs);
    if (*rc == 0 &&
        sqlite3_exec(occ_store_sqlite(store),
                     "SELECT max(theoretical), max(kernel_id), max(achieved) FROM launch WHERE start_ns "
                     "> 5; SELECT max(elapsed) FROM device_sample; SELECT * FROM run",
                     NULL, NULL, NULL) != SQLITE_OK)
        *rc = OCC_E_NO_MEMORY;
}

/* A short life of a history, up to the first error. */
static int live(const char *path)
{
    struct occ_store *store = NULL;
    int64_t run = 0, device = 0, kernel = 0, config = 0;
    struct occ_store_options options = {.mode = OCC_STORE_WRITE, .chunk_rows = 100};
    struct occ_run description = {.uuid = {1}, .start_ns = BEGIN, .exe = "/bin/app", .hostname = "here"};
    struct occ_store_device gpu = {.uuid = {1}, .name = "Device", .limits = {.cc = 80, .sm_count = 108}};
    int rc = occ_store_open(path, &options, &store, NULL);
    if (rc == 0)
        rc = occ_store_put_run(store, &description, &run, NULL);
    if (rc == 0)
        rc = occ_store_put_device(store, &gpu, &device, NULL);
    if (rc == 0)
        rc = occ_store_put_kernel(store, "_Z1kv", 1, &kernel, NULL);
    struct occ_launch_config launch = {
        .kernel = kernel,
        .device = device,
        .launch = {
            .grid = {9, 1, 1}, .block = {64, 1, 1}, .registers_per_thread = 20, .carveout_percent = -1}};
    if (rc == 0)
        rc = occ_store_put_config(store, &launch, &config, NULL);
    for (int round = 0; round < 4; round++) {
        append_some(store, run, device, config, round, &rc);
        if (rc == 0)
            rc = occ_store_put_position(store, OCC_POSITION_RING, (const uint8_t[16]){1}, 5, NULL);
        if (rc == 0)
            rc = occ_store_commit(store, NULL);
    }
    add_samples(store, device, &rc);
    if (rc == 0)
        ask(store, &rc);
    if (rc == 0)
        rc = occ_store_finish(store, NULL);
    occ_store_close(store);
    return rc;
}

static int64_t number(struct occ_store *store, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(occ_store_sqlite(store), sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return value;
}

static void check_file(const char *path)
{
    struct occ_store *store = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    int64_t run = 0;
    struct occ_run description = {.uuid = {1}, .start_ns = BEGIN};
    assert_int_equal(occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_WRITE}, &store, &err),
                     0);
    assert_int_equal(number(store, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    assert_int_equal(occ_store_put_run(store, &description, &run, &err), 0);
    assert_int_equal(occ_store_finish(store, &err), 0);
    int64_t launches = number(store, "SELECT count(*) FROM launch");
    assert_int_equal(launches % 60, 0); /* whole commits */
    assert_int_equal(number(store, "SELECT count(*) FROM launch WHERE measured_source = 'direct'"), launches);
    assert_int_equal(number(store, "SELECT coalesce(sum(samples), 0) FROM stored_device_second"),
                     number(store, "SELECT count(*) FROM device_sample"));
    assert_int_equal(number(store, "SELECT coalesce(sum(launches), 0) FROM stored_minute"), launches);
    assert_int_equal(number(store, "SELECT coalesce(sum(launches), 0) FROM stored_hour"), launches);
    assert_int_equal(number(store, "SELECT coalesce(sum(launches), 0) FROM stored_run"), launches);
    occ_store_close(store);
}

static void remove_file(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char name[160];
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    char directory[64], path[96];
    (void)snprintf(directory, sizeof directory, "%.40s/occ-store-XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/history.db", directory);
    int failures = 0;
    for (long nth = 0;; nth += step) {
        countdown = nth;
        int rc = live(path);
        bool reached = countdown < 0;
        countdown = -1;
        if (rc != 0) {
            failures++;
            assert_true(reached);
        }
        if (access(path, F_OK) == 0)
            check_file(path);
        remove_file(path);
        if (!reached)
            break;
    }
    assert_true(failures > 20); /* it was not all luck */
    assert_int_equal(rmdir(directory), 0);
}

/* Puts a new device with a configuration and a launch, with growing keys. Returns the first failure. */
static int put_one(struct occ_store *store, int64_t run, unsigned at)
{
    static const struct occ_launch launch = {
        .grid = {9, 1, 1}, .block = {64, 1, 1}, .registers_per_thread = 20, .carveout_percent = -1};
    char name[128];
    int64_t device = 0, kernel = 0, config = 0;
    (void)snprintf(name, sizeof name, "%0*u", (int)(at % 120) + 1, at);
    struct occ_store_device gpu = {
        .uuid = {(uint8_t)at, (uint8_t)(at >> 8)}, .name = name, .limits = {.cc = 80, .sm_count = 108}};
    int rc = occ_store_put_device(store, &gpu, &device, NULL);
    if (rc == 0)
        rc = occ_store_put_kernel(store, name, at + 1, &kernel, NULL);
    struct occ_launch_config description = {.kernel = kernel, .device = device, .launch = launch};
    if (rc == 0)
        rc = occ_store_put_config(store, &description, &config, NULL);
    struct occ_store_launch row = {
        .start_ns = BEGIN + at * MINUTE, .duration_ns = 1000, .config = (uint32_t)config};
    if (rc == 0)
        rc = occ_store_append(store, run, device, &row, 1, NULL);
    return rc == 0 ? occ_store_commit(store, NULL) : rc;
}

static void a_writer_goes_on_when_memory_is_back(void **state)
{
    (void)state;
    char path[64] = "/tmp/occ-store-memory-XXXXXX";
    struct occ_store *store = NULL;
    struct occ_run description = {.uuid = {1}, .start_ns = BEGIN, .exe = "/bin/app", .hostname = "here"};
    int64_t run = 0;
    int fd = mkstemp(path), failures = 0;
    assert_true(fd >= 0);
    (void)close(fd);
    for (long nth = 0; nth < 120; nth += step) { /* a new handle each time: its buffers have to grow again */
        remove_file(path);
        assert_int_equal(
            occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_WRITE}, &store, NULL), 0);
        assert_int_equal(occ_store_put_run(store, &description, &run, NULL), 0);
        countdown = nth;
        failures += put_one(store, run, 1) != 0;
        countdown = -1;
        for (unsigned at = 2; at < 5; at++)
            assert_int_equal(put_one(store, run, at), 0);
        assert_int_equal(occ_store_finish(store, NULL), 0);
        occ_store_close(store);
    }
    assert_true(failures > 0);
    remove_file(path);
}

int main(int argc, char **argv)
{
    step = input_step(argc, argv, 5);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail),
                                       cmocka_unit_test(a_writer_goes_on_when_memory_is_back)};
    return cmocka_run_group_tests_name("store memory", tests, NULL, NULL);
}
