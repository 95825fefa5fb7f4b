/* Files that an older version made (tests/data/upgrade/VERSION), read by this one: a history and a ring.
 *
 * `test_upgrade_fixtures write DIRECTORY` makes the files of the present version, until its release. */
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#include "ring_samples.h"
#include "support/cleanup.h"
#include "test_store_world.h"

#define MINUTE        INT64_C(60000000000)
#define BEGIN         INT64_C(1700000000000000000)
#define RING_LAUNCHES 200
#define BYTES_MAX     (16u << 20) /* of a fixture */
#define ANSWERS_BYTES 16384

/* Public names: they stay, whatever the stored tables become. */
static const char *const questions[] = {
    "SELECT count(*), sum(duration_ns), min(start_ns), max(start_ns) FROM launch",
    "SELECT kernel_mangled, count(*), sum(duration_ns) FROM launch GROUP BY 1 ORDER BY 1",
    "SELECT run_id, hostname, exe, pid, launches FROM run ORDER BY run_id",
    "SELECT device_id, device, compute_capability, sm_count FROM device ORDER BY device_id",
    "SELECT count(*), sum(grid_x), sum(block_x), sum(registers_per_thread) FROM launch_config",
};

/* ---- files ---- */

static size_t read_packed(const char *version, const char *name, uint8_t *ret_bytes)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s/%s.gz", OCC_UPGRADE_DATA, version, name);
    gzFile file = gzopen(path, "rb");
    assert_non_null(file);
    int n = gzread(file, ret_bytes, BYTES_MAX);
    assert_int_equal(gzclose(file), Z_OK);
    assert_true(n > 0);
    return (size_t)n;
}

static void write_packed(const char *directory, const char *name, const uint8_t *bytes, size_t n)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s.gz", directory, name);
    gzFile file = gzopen(path, "wb9");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)n), n);
    assert_int_equal(gzclose(file), Z_OK);
}

static size_t read_plain(const char *path, uint8_t *ret_bytes, size_t max)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t n = fread(ret_bytes, 1, max, file);
    assert_int_equal(fclose(file), 0);
    return n;
}

static void write_plain(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static uint8_t *allocate(void)
{
    uint8_t *bytes = malloc(BYTES_MAX);
    assert_non_null(bytes);
    return bytes;
}

/* ---- a history ---- */

/* Appends the rows of a question, columns separated by bars. */
static void answer(sqlite3 *db, const char *sql, FILE *to)
{
    sqlite3_stmt *s = NULL;
    int step = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    while ((step = sqlite3_step(s)) == SQLITE_ROW)
        for (int i = 0, n = sqlite3_column_count(s); i < n; i++) {
            const char *text = (const char *)sqlite3_column_text(s, i);
            (void)fprintf(to, "%s%c", text ? text : "NULL", i + 1 < n ? '|' : '\n');
        }
    assert_int_equal(step, SQLITE_DONE);
    assert_int_equal(sqlite3_finalize(s), SQLITE_OK);
}

static void answer_all(struct occ_store *store, char *ret_text)
{
    FILE *to = fmemopen(ret_text, ANSWERS_BYTES, "w");
    assert_non_null(to);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        answer(occ_store_sqlite(store), questions[i], to);
    assert_int_equal(fclose(to), 0);
}

static void append_and_close(struct world *w, int64_t from_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    world_open(w);
    for (int i = 0; i < 4; i++) {
        world_append(w, i % WORLD_RUNS, from_ns + i * MINUTE, MINUTE, 100);
        assert_int_equal(occ_store_commit(w->store, &err), 0);
    }
    assert_int_equal(occ_store_finish(w->store, &err), 0);
    occ_store_close(w->store);
    w->store = NULL;
}

static void open_history(struct world *w)
{
    struct occ_error err = OCC_ERROR_INIT;
    if (occ_store_open(w->path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &w->store, &err) != 0)
        fail_msg("%s", err.message);
}

static void a_history_gives_the_same_answers(void **state)
{
    const char *version = *state;
    struct world w = {0};
    char expected[ANSWERS_BYTES] = "", found[ANSWERS_BYTES] = "", path[512];
    _cleanup_(occ_freep) uint8_t *bytes = allocate();
    world_make_directory(&w);
    write_plain(w.path, bytes, read_packed(version, "history.db", bytes));
    (void)snprintf(path, sizeof path, "%s/%s/answers.txt", OCC_UPGRADE_DATA, version);
    expected[read_plain(path, (uint8_t *)expected, sizeof expected - 1)] = 0;
    open_history(&w);
    answer_all(w.store, found);
    occ_store_close(w.store);
    assert_string_equal(found, expected);
    world_remove_directory(&w);
}

static void a_history_is_continued(void **state)
{
    struct world w = {0};
    _cleanup_(occ_freep) uint8_t *bytes = allocate();
    world_make_directory(&w);
    write_plain(w.path, bytes, read_packed(*state, "history.db", bytes));
    open_history(&w);
    int64_t before = world_number(w.store, "SELECT count(*) FROM launch");
    occ_store_close(w.store);
    append_and_close(&w, BEGIN + 60 * MINUTE);
    open_history(&w);
    assert_int_equal(world_number(w.store, "SELECT count(*) FROM launch"), before + (int64_t)w.n);
    occ_store_close(w.store);
    world_remove_directory(&w);
}

/* ---- a ring ---- */

static int sealed_file(const uint8_t *bytes, size_t n)
{
    int fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    return fd;
}

static unsigned kinds_of_log(struct occ_ring_consumer *consumer)
{
    const struct occ_log_record *record = NULL;
    unsigned kinds = 0;
    while (occ_ring_next_log_record(consumer, &record) == OCC_RING_OK)
        kinds |= 1u << record->type;
    return kinds;
}

static void a_ring_is_read(void **state)
{
    _cleanup_(occ_freep) uint8_t *bytes = allocate();
    struct occ_ring_launch launches[RING_LAUNCHES + 1];
    struct occ_ring_consumer *consumer = NULL;
    const char *why = NULL;
    size_t n = 0;
    int fd = sealed_file(bytes, read_packed(*state, "ring", bytes));
    if (occ_ring_attach(fd, 0, &consumer, &why) != 0)
        fail_msg("%s", why);
    const unsigned kinds = kinds_of_log(consumer); /* a bit for each type of record */
    for (unsigned type = OCC_RECORD_PROCESS; type <= OCC_RECORD_RANGE; type++)
        assert_true(kinds >> type & 1);
    assert_int_equal(occ_ring_read(consumer, launches, RING_LAUNCHES + 1, &n), OCC_RING_OK);
    assert_int_equal(n, RING_LAUNCHES);
    for (size_t i = 0; i < n; i++)
        assert_true(is_sample_launch(&launches[i], i));
    assert_true(occ_ring_is_closed(consumer));
    occ_ring_detach(consumer);
}

/* ---- files of this version ---- */

static const char *written_to;

static void write_history(void **state)
{
    (void)state;
    struct world w = {0};
    char answers[ANSWERS_BYTES] = "", path[512];
    _cleanup_(occ_freep) uint8_t *bytes = allocate();
    world_make_directory(&w);
    append_and_close(&w, BEGIN);
    open_history(&w);
    answer_all(w.store, answers);
    occ_store_close(w.store);
    write_packed(written_to, "history.db", bytes, read_plain(w.path, bytes, BYTES_MAX));
    (void)snprintf(path, sizeof path, "%s/answers.txt", written_to);
    write_plain(path, answers, strlen(answers));
    world_remove_directory(&w);
}

static void write_ring(void **state)
{
    (void)state;
    struct occ_ring_producer producer;
    _cleanup_(occ_freep) uint8_t *bytes = allocate();
    assert_int_equal(occ_ring_create(&producer, OCC_RING_MIN_SLOTS, OCC_RING_MIN_LOG_BYTES), 0);
    assert_true(log_samples(&producer) && log_range(&producer, 0, "step/layer"));
    struct occ_record_state level = {.record.type = OCC_RECORD_STATE,
                                     .time_ns = SAMPLE_EPOCH_NS,
                                     .level = OCC_LEVEL_TRACE,
                                     .reason = "all is well"};
    assert_true(occ_ring_log(&producer, &level.record, sizeof level, NULL, 0));
    for (uint64_t i = 0; i < RING_LAUNCHES; i++) {
        struct occ_ring_launch launch = sample_launch(i);
        assert_true(occ_ring_push(&producer, &launch));
    }
    struct occ_record_measured measured = sample_measured(RING_LAUNCHES, RING_LAUNCHES);
    assert_true(occ_ring_log(&producer, &measured.record, sizeof measured, NULL, 0));
    struct occ_record_closed closed = {
        .record.type = OCC_RECORD_CLOSED, .time_ns = SAMPLE_EPOCH_NS, .launches = RING_LAUNCHES};
    assert_true(occ_ring_log(&producer, &closed.record, sizeof closed, NULL, 0));
    occ_ring_close(&producer);
    ssize_t n = pread(producer.fd, bytes, BYTES_MAX, 0);
    assert_true(n > 0);
    write_packed(written_to, "ring", bytes, (size_t)n);
    occ_ring_destroy(&producer);
}

static int read_all(void)
{
    glob_t versions;
    int failed = 0;
    if (glob(OCC_UPGRADE_DATA "/*", GLOB_ONLYDIR, NULL, &versions) != 0)
        return 1;
    for (size_t i = 0; i < versions.gl_pathc; i++) {
        char *version = strrchr(versions.gl_pathv[i], '/') + 1;
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(a_history_gives_the_same_answers, version),
            cmocka_unit_test_prestate(a_history_is_continued, version),
            cmocka_unit_test_prestate(a_ring_is_read, version),
        };
        failed += cmocka_run_group_tests_name(version, tests, NULL, NULL);
    }
    globfree(&versions);
    return failed;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest writing[] = {cmocka_unit_test(write_history), cmocka_unit_test(write_ring)};
    if (argc != 3 || strcmp(argv[1], "write") != 0)
        return read_all();
    written_to = argv[2];
    return cmocka_run_group_tests(writing, NULL, NULL);
}
