/*
 * Imports of other tools' recordings: small hand-made recordings of several versions, and broken recordings,
 * which must leave the history unchanged and give an error with file and position.
 */

#include "import/catalog.h"
#include "import/decimal.h"
#include "import/import.h"
#include "import/readers.h"
#include "sanitized.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#define N_OF(array) (sizeof(array) / sizeof *(array))

struct world {
    char directory[64], db[96], file[512];
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    (void)snprintf(w->directory, sizeof w->directory, "/tmp/test_import_XXXXXX");
    if (!w || !mkdtemp(w->directory))
        return -1;
    (void)snprintf(w->db, sizeof w->db, "%s/history.db", w->directory);
    (void)snprintf(w->file, sizeof w->file, "%s/recording with 100%% #?.x", w->directory);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    DIR *directory = opendir(w->directory);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        (void)unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        (void)closedir(directory);
    (void)rmdir(w->directory);
    free(w);
    return 0;
}

static void write_file(const struct world *w, const void *data, size_t n)
{
    FILE *file = fopen(w->file, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void write_gzip(const struct world *w, const char *text)
{
    gzFile file = gzopen(w->file, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
}

static int import(const struct world *w, const struct occ_import_options *options,
                  struct occ_import_result *result, struct occ_error *err)
{
    static const struct occ_store_options writing = {.mode = OCC_STORE_WRITE};
    struct occ_store *store = NULL;
    assert_int_equal(occ_store_open(w->db, &writing, &store, err), 0);
    int status = occ_import_file(store, w->file, options, result, err);
    occ_store_close(store);
    return status;
}

static struct occ_import_result import_well(const struct world *w, const struct occ_import_options *options)
{
    struct occ_import_result result;
    struct occ_error err = OCC_ERROR_INIT;
    if (import(w, options, &result, &err) != 0)
        fail_msg("%s", err.message);
    return result;
}

/* Returns the integer that a query of the history returns; the store's virtual tables are available. */
static int64_t number(const struct world *w, const char *sql)
{
    static const struct occ_store_options reading = {.mode = OCC_STORE_READ};
    struct occ_store *store = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(occ_store_open(w->db, &reading, &store, NULL), 0);
    assert_int_equal(sqlite3_prepare_v2(occ_store_sqlite(store), sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    occ_store_close(store);
    return value;
}

static int64_t all_rows(const struct world *w)
{
    return number(w, "SELECT (SELECT count(*) FROM stored_run) + (SELECT count(*) FROM stored_kernel) + "
                     "(SELECT count(*) FROM stored_launch_config) + "
                     "(SELECT count(*) FROM stored_device) + (SELECT count(*) FROM stored_chunk) + (SELECT "
                     "count(*) FROM stored_hour) + "
                     "(SELECT count(*) FROM stored_reported_occupancy)");
}

static const struct occ_import_options plain = {0};

static void must_fail(const struct world *w, const char *what, const char *says)
{
    struct occ_import_result result;
    struct occ_error err = OCC_ERROR_INIT;
    int64_t before = all_rows(w);
    if (import(w, &plain, &result, &err) == 0)
        fail_msg("%s: was imported", what);
    if (!strstr(err.message, says) || !strstr(err.message, w->file))
        fail_msg("%s: '%s' does not say '%s' and the file", what, err.message, says);
    assert_int_equal(all_rows(w), before);
}

/* ---- decimals ---- */

static void decimals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int scale;
        bool good;
        int64_t value;
    } cases[] = {
        {"1661203463029566.123", 3, true, INT64_C(1661203463029566123)},
        {"1661203463029566", 3, true, INT64_C(1661203463029566000)},
        {"2413669097444.5920", 3, true, INT64_C(2413669097444592)},
        {"0.0009", 3, true, 0},
        {"1.7609999999999999999999999999", 3, true, 1760},
        {"-7", 0, true, -7},
        {"12e3", 0, true, 12000},
        {"1.5e1", 0, true, 15},
        {"1.5", 0, false, 0},
        {"9223372036854775807", 0, true, INT64_MAX},
        {"9223372036854775808", 0, false, 0},
        {"99999999999999999999", 0, false, 0},
        {"9300000000000000", 3, false, 0},
        {"1e400", 0, false, 0},
        {"0e400", 0, true, 0},
        {"1e-400", 3, true, 0},
        {"1e99999999999999999999", 0, false, 0},
        {"", 0, false, 0},
        {"-", 0, false, 0},
        {"1.", 0, false, 0},
        {"1e", 0, false, 0},
        {"0x10", 0, false, 0},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        int64_t value = 0;
        if (occ_decimal_parse(cases[i].text, strlen(cases[i].text), cases[i].scale, &value) !=
                cases[i].good ||
            (cases[i].good && value != cases[i].value))
            fail_msg("'%s' x 10^%d gives %lld", cases[i].text, cases[i].scale, (long long)value);
    }
}

/* ---- the catalog ---- */

/* Finds keys that share their low or high half, in memory and in the database. The low halves come unordered.
 */
static void catalog(void **state)
{
    enum { KEYS = 500, IN_MEMORY = 100 };
    struct occ_catalog *c = NULL;
    uint64_t record[3];
    uint32_t got = 0;
    (void)state;
    assert_int_equal(occ_catalog_new(sizeof record, IN_MEMORY, &c, NULL), 0);
    for (int round = 0; round < 3; round++)
        for (uint32_t i = 0; i < KEYS; i++) {
            const struct occ_catalog_key key = {.low = i % 40 * UINT64_C(0x4000000000000001), .high = i / 40};
            assert_int_equal(occ_catalog_find(c, key, &got, NULL), round == 0);
            assert_int_equal(got, i);
            assert_int_equal(occ_catalog_get(c, i, record, NULL), 0);
            assert_true(round == 0 ? record[0] == 0 && record[2] == 0
                                   : record[0] == i && record[2] == UINT64_MAX - (uint64_t)round + 1);
            record[0] = i;
            record[2] = UINT64_MAX - (uint64_t)round;
            assert_int_equal(occ_catalog_set(c, i, record, NULL), 0);
        }
    assert_int_equal(occ_catalog_count(c), KEYS);
    occ_catalog_free(c);
    occ_catalog_free(NULL);
}

/* ---- Kineto ---- */

#define A100 NAMED_A100("0")
#define NAMED_A100(id)                                                                                       \
    "{\"id\": " id ", \"name\": \"NVIDIA A100\", \"totalGlobalMem\": 42505273344, \"computeMajor\": 8, "     \
    "\"computeMinor\": 0,"                                                                                   \
    "\"maxThreadsPerBlock\": 1024, \"maxThreadsPerMultiprocessor\": 2048, \"regsPerBlock\": 65536, "         \
    "\"regsPerMultiprocessor\": 65536, \"warpSize\": 32, \"sharedMemPerBlock\": 49152, "                     \
    "\"sharedMemPerMultiprocessor\": 167936, \"numSms\": 108, \"sharedMemPerBlockOptin\": 166912}"
#define ARGS_WITH(more)                                                                                      \
    "\"args\": {\"External id\": 7, \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": 7, "           \
    "\"correlation\": 42, "                                                                                  \
    "\"registers per thread\": 32, \"shared memory\": 65536, \"blocks per SM\": 8, \"warps per SM\": 64, "   \
    "\"grid\": [864, 1, 1], \"block\": [256, 1, 1]" more "}"
#define ARGS ARGS_WITH("")
#define KERNEL(fields)                                                                                       \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k<int>(int*)\", \"pid\": 0, \"tid\": 7, " fields "}"
#define GOOD KERNEL("\"ts\": 1661203463029566.125, \"dur\": 7.5, " ARGS)
#define CLAIMED                                                                                              \
    KERNEL("\"ts\": 1661203463029566.125, \"dur\": 7.5, " ARGS_WITH(", \"est. achieved occupancy %\": 0"))
#define OTHER                                                                                                \
    "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 311, \"tid\": 3, "  \
    "\"ts\": 1, \"dur\": "                                                                                   \
    "2, \"args\": {\"cbid\": 211, \"grid\": \"no\", \"list\": [[1, {\"a\": null}], true]}}"
#define TRACE(events)                                                                                        \
    "{\"schemaVersion\": 1, \"deviceProperties\": [" A100                                                    \
    "], \"distributedInfo\": {\"rank\": 3}, \"traceEvents\": [" events "]}"

static struct occ_import_result import_text(struct world *w, const char *text)
{
    write_file(w, text, strlen(text));
    return import_well(w, &plain);
}

static void kineto_launch(void **state)
{
    struct world *w = *state;
    struct occ_import_result r = import_text(w, TRACE(OTHER "," CLAIMED "," CLAIMED));
    assert_string_equal(r.source, "kineto");
    assert_int_equal(r.launches, 2);
    assert_int_equal(r.kernels, 1);
    assert_int_equal(r.configs, 1);
    assert_int_equal(r.devices, 1);
    assert_false(r.time_base_unknown);
    assert_int_equal(number(w, "SELECT min(start_ns) FROM launch"), INT64_C(1661203463029566125));
    assert_int_equal(number(w, "SELECT sum(end_ns - start_ns) FROM launch"), 15000);
    /* 64 KiB + 1 KiB of 164 KiB: two blocks of eight warps */
    assert_int_equal(number(w, "SELECT warps_per_sm FROM stored_launch_config"), 16);
    assert_int_equal(number(w, "SELECT dynamic_shared_bytes FROM stored_launch_config"), 65536);
    assert_int_equal(number(w, "SELECT shared_optin IS NULL FROM stored_launch_config"), 1);
    assert_int_equal(number(w, "SELECT launches * 10 + (mean = 0) FROM stored_reported_occupancy"), 21);
    assert_int_equal(number(w, "SELECT pid FROM stored_run"), 311);
    assert_int_equal(number(w, "SELECT rank FROM stored_run"), 3);
    assert_int_equal(number(w, "SELECT uid IS NULL FROM stored_run"), 1);
    assert_int_equal(number(w, "SELECT missing_fields LIKE '%carve-out%' FROM stored_run"), 1);
}

/* Accepts members in another order, a bare array, gzip, and a base time at the end. */
static void kineto_forms(void **state)
{
    struct world *w = *state;
    struct occ_import_result r = import_text(
        w, "{\"traceEvents\": [" GOOD "], \"baseTimeNanoseconds\": 5, \"deviceProperties\": [" A100 "]}");
    assert_int_equal(r.launches, 1);
    assert_int_equal(number(w, "SELECT start_ns FROM launch"), INT64_C(1661203463029566130));
    assert_int_equal(number(w, "SELECT sm_count FROM stored_device"), 108);

    static const char bare[] = "[" GOOD "]";
    static const struct occ_import_options with_gpu = {.gpu = "v100"};
    write_gzip(w, bare);
    r = import_well(w, &with_gpu);
    assert_int_equal(r.launches, 1);
    assert_int_equal(number(w, "SELECT max(sm_count = 80) FROM stored_device"), 1);

    r = import_text(w, TRACE(KERNEL("\"ts\": 99.5, \"dur\": 1, " ARGS)));
    assert_true(r.time_base_unknown);
    r = import_text(
        w,
        TRACE("{\"args\": {\"grid\": [1,1,1], \"block\": [1,1,1], \"registers per thread\": 9}, \"dur\": 1, "
              "\"ts\": 1661203463029566, \"name\": \"late\", \"cat\": \"Kernel\", \"ph\": \"X\"}"));
    assert_int_equal(r.launches, 1);
}

/* Times without an epoch may begin at 0 or before: the history's begin at 1 ns. */
static void kineto_early_times(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *ts;
        int64_t first_ns;
        uint64_t launches;
    } cases[] = {
        {"0", 1, 2},
        {"-5.5", 1, 2},
        {"0.001", 1, 2},
        {"0.002", 2, 2},
        {"-40000000000000", 7000, 1}, /* more than a year: damage */
    };
    char text[2048];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)snprintf(
            text, sizeof text,
            TRACE(KERNEL("\"ts\": 7, \"dur\": 1, " ARGS) "," KERNEL("\"ts\": %s, \"dur\": 1, " ARGS)),
            cases[i].ts);
        struct occ_import_result r = import_text(w, text);
        assert_int_equal(r.launches, cases[i].launches);
        assert_true(r.time_base_unknown);
        assert_int_equal(number(w, "SELECT min(start_ns) FROM launch WHERE run_id = "
                                   "(SELECT max(run_id) FROM stored_run)"),
                         cases[i].first_ns);
    }
}

/* A launch that cannot be imported is counted by reason; other launches are imported. */
static void kineto_skips(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *event;
        enum occ_import_skip why;
    } cases[] = {
        {KERNEL("\"ts\": 5, \"dur\": 1"), OCC_IMPORT_SKIP_NO_CONFIGURATION},
        {KERNEL("\"ts\": 5, \"dur\": 1, \"args\": {\"device\": 0, \"grid\": [1,1,1], \"block\": [1,1,1]}"),
         OCC_IMPORT_SKIP_NO_CONFIGURATION},
        {KERNEL("\"ts\": 5, \"dur\": -1, " ARGS), OCC_IMPORT_SKIP_BAD_TIMES},
        {KERNEL("\"ts\": 5, " ARGS), OCC_IMPORT_SKIP_BAD_TIMES},
        {KERNEL("\"ts\": \"5\", \"dur\": 1, " ARGS), OCC_IMPORT_SKIP_BAD_TIMES},
        {KERNEL("\"ts\": 9223372036854775, \"dur\": 9223372036854775, " ARGS), OCC_IMPORT_SKIP_BAD_TIMES},
        {KERNEL("\"ts\": 1e400, \"dur\": 1, " ARGS), OCC_IMPORT_SKIP_BAD_TIMES},
        {KERNEL("\"ts\": 9223285636854775.808, \"dur\": 1, " ARGS), OCC_IMPORT_SKIP_BAD_TIMES},
        {KERNEL("\"ts\": 5, \"dur\": 1, \"args\": {\"device\": 9, \"registers per thread\": 8, \"grid\": "
                "[1,1,1], "
                "\"block\": [1,1,1]}"),
         OCC_IMPORT_SKIP_NO_DEVICE},
        {KERNEL("\"ts\": 5, \"dur\": 1, \"args\": {\"registers per thread\": 99999999999999999999, \"grid\": "
                "[1,1,1], "
                "\"block\": [1,1,1]}"),
         OCC_IMPORT_SKIP_BAD_VALUE},
        {KERNEL("\"ts\": 5, \"dur\": 1, \"args\": {\"registers per thread\": 8, \"grid\": [1,1,1,1], "
                "\"block\": [1,1,1]}"),
         OCC_IMPORT_SKIP_BAD_VALUE},
        {KERNEL("\"ts\": 5, \"dur\": 1, \"args\": {\"registers per thread\": 8, \"grid\": [1,\"x\",1], "
                "\"block\": [1,1,1]}"),
         OCC_IMPORT_SKIP_BAD_VALUE},
        {KERNEL("\"ts\": 5, \"dur\": 1, \"args\": {\"registers per thread\": 8, \"shared memory\": -1, "
                "\"grid\": [1,1,1], "
                "\"block\": [1,1,1]}"),
         OCC_IMPORT_SKIP_BAD_VALUE},
        {"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"\", \"ts\": 5, \"dur\": 1, " ARGS "}",
         OCC_IMPORT_SKIP_NO_NAME},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        char text[4096];
        (void)snprintf(text, sizeof text,
                       "{\"deviceProperties\": [" A100 "], \"n\": %zu, \"traceEvents\": [" GOOD ", %s]}", i,
                       cases[i].event);
        struct occ_import_result r = import_text(w, text);
        if (r.launches != 1 || r.skipped[cases[i].why] != 1)
            fail_msg("case %zu: %llu launches, %llu skipped as %s", i, (unsigned long long)r.launches,
                     (unsigned long long)r.skipped[cases[i].why], occ_import_skip_word(cases[i].why));
    }
}

/* Launches one nanosecond before, at and after the edges of a minute and of an hour, and launches across the
 * edges. */
static void kineto_edges_of_minutes(void **state)
{
    struct world *w = *state;
    struct occ_import_result r = import_text(
        w,
        TRACE(KERNEL("\"ts\": 1661201999999999.999, \"dur\": 0.001, " ARGS) ","      /* ends at the hour */
              KERNEL("\"ts\": 1661202000000000, \"dur\": 60000000, " ARGS) ","       /* a whole minute */
              KERNEL("\"ts\": 1661202000000000.001, \"dur\": 3600000000, " ARGS) "," /* over the next hour */
              KERNEL("\"ts\": 1661202059999999.999, \"dur\": 0.002, " ARGS) "," KERNEL(
                  "\"ts\": 1661202060000000, \"dur\": 0, " ARGS)));
    assert_int_equal(r.launches, 5);
    static const struct {
        const char *sql;
        int64_t launches;
    } cases[] = {
        {"SELECT launches FROM minute WHERE start_ns = 1661201940000000000", 1},
        {"SELECT launches FROM minute WHERE start_ns = 1661202000000000000", 3},
        {"SELECT launches FROM minute WHERE start_ns = 1661202060000000000", 1},
        {"SELECT count(*) FROM minute", 3},
        {"SELECT launches FROM hour WHERE start_ns = 1661198400000000000", 1},
        {"SELECT launches FROM hour WHERE start_ns = 1661202000000000000", 4},
        {"SELECT last_start_ns FROM hour WHERE start_ns = 1661198400000000000", INT64_C(1661201999999999999)},
        {"SELECT first_start_ns FROM hour WHERE start_ns = 1661202000000000000",
         INT64_C(1661202000000000000)},
        {"SELECT count(*) FROM launch WHERE start_ns >= 1661202000000000000", 4},
        {"SELECT count(*) FROM launch WHERE end_ns = 1661202060000000000", 2},
    };
    for (size_t i = 0; i < N_OF(cases); i++)
        if (number(w, cases[i].sql) != cases[i].launches)
            fail_msg("%s: %lld", cases[i].sql, (long long)number(w, cases[i].sql));
}

/* Times near 2^63 ns, beyond the history's last minute and hour. */
static void kineto_ends_of_time(void **state)
{
    struct world *w = *state;
    struct occ_import_result r;
    struct occ_error err = OCC_ERROR_INIT;
    static const char late[] = TRACE(KERNEL("\"ts\": 9223372036854775.7, \"dur\": 0.05, " ARGS));
    write_file(w, late, sizeof late - 1);
    assert_int_equal(import(w, &plain, &r, &err), OCC_E_INVALID);
    assert_non_null(strstr(err.message, "no kernel launch"));
    assert_int_equal(all_rows(w), 0);
    r = import_text(w, TRACE(KERNEL("\"ts\": 9223285636854775.807, \"dur\": 86400000000, " ARGS)));
    assert_int_equal(r.launches, 1);
    assert_int_equal(number(w, "SELECT start_ns FROM launch"), INT64_C(9223285636854775807));
    assert_int_equal(number(w, "SELECT end_ns FROM launch"), INT64_MAX);
}

/* The import stores no device of another maker; its launches are counted as skipped. */
static void kineto_other_maker(void **state)
{
    struct world *w = *state;
    static const char text[] =
        "{\"deviceProperties\": [" A100 ", {\"id\": 1, \"name\": \"gfx90a\", \"computeMajor\": 9, "
        "\"computeMinor\": 0, \"warpSize\": 64, \"numSms\": 104}], \"traceEvents\": [" GOOD ", "
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"ts\": 5, \"dur\": 1, \"args\": "
        "{\"device\": 1, \"registers per thread\": 8, \"grid\": [1,1,1], \"block\": [64,1,1]}}]}";
    struct occ_import_result r = import_text(w, text);
    assert_int_equal(r.launches, 1);
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_NO_DEVICE], 1);
}

#define AMD_KERNEL                                                                                           \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": 0, \"ts\": 5, \"dur\": 1, "  \
    "\"args\": {\"device\": 0, \"stream\": 0, \"correlation\": 9, \"grid\": [1,1,1], \"block\": [64,1,1]}}"
#define INTEL_KERNEL(queue)                                                                                  \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": 0, \"ts\": 5, \"dur\": 1, "  \
    "\"args\": {\"device\": 0, \"" queue "\": 64, \"context\": \"0x55\", \"correlation\": 9}}"
#define DEVICE_OF(name, warp)                                                                                \
    "{\"id\": 0, \"name\": \"" name "\", \"computeMajor\": 9, \"computeMinor\": 4, \"warpSize\": " warp      \
    ", \"numSms\": 304}"

/* A trace that only has GPUs of another maker is refused; the error gives the maker and the sign in the file.
 * --gpu cannot override this. */
static void kineto_only_other_makers(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *text, *maker, *sign;
    } cases[] = {
        {"{\"roctracer_version\": \"4.1\", \"traceEvents\": [" AMD_KERNEL "]}", "AMD", "roctracer_version"},
        {"{\"traceEvents\": [" AMD_KERNEL "], \"hip_runtime_version\": 60131199}", "AMD",
         "hip_runtime_version"},
        {"{\"hip_driver_version\": [{}], \"traceEvents\": [" AMD_KERNEL "]}", "AMD", "hip_driver_version"},
        {"{\"deviceProperties\": [" DEVICE_OF("gfx942", "64") "], \"traceEvents\": [" AMD_KERNEL "]}", "AMD",
         "warpSize 64"},
        {"{\"traceEvents\": [" AMD_KERNEL "], \"deviceProperties\": [" DEVICE_OF("gfx942", "64") "]}", "AMD",
         "warpSize 64"},
        {"{\"deviceProperties\": [" DEVICE_OF("AMD Radeon PRO W7900", "32") "], \"traceEvents\": [" AMD_KERNEL
                                                                            "]}",
         "AMD", "the device's name"},
        {"{\"deviceProperties\": [" DEVICE_OF("Intel(R) Data Center GPU Max 1550",
                                              "32") "], \"traceEvents\": [" AMD_KERNEL "]}",
         "Intel", "the device's name"},
        {"{\"traceEvents\": [" INTEL_KERNEL("sycl queue") "]}", "Intel", "sycl queue"},
        {"{\"traceEvents\": [" INTEL_KERNEL("l0 queue") "]}", "Intel", "l0 queue"},
        {"{\"traceEvents\": [{\"cat\": \"xpu_runtime\"}, " AMD_KERNEL "]}", "Intel", "xpu_runtime"},
    };
    static const struct occ_import_options named = {.gpu = "a100"};
    (void)import_text(w, TRACE(GOOD));
    for (size_t i = 0; i < N_OF(cases); i++) {
        char says[128];
        struct occ_import_result result;
        struct occ_error err = OCC_ERROR_INIT;
        write_file(w, cases[i].text, strlen(cases[i].text));
        (void)snprintf(says, sizeof says, "recorded on a GPU of %s (%s in the file)", cases[i].maker,
                       cases[i].sign);
        must_fail(w, cases[i].text, says);
        assert_int_not_equal(import(w, &named, &result, &err), 0);
        assert_non_null(strstr(err.message, says));
    }
}

static void kineto_long_names(void **state)
{
    struct world *w = *state;
    static const size_t sizes[] = {512 << 10, (1 << 20) + 1, 512 << 10};
    static const char last[] = {'a', 'a', 'b'};
    size_t room = (4u << 20) + 4096, used = 0;
    char *text = malloc(room);
    assert_non_null(text);
    used += (size_t)snprintf(text, room, "{\"deviceProperties\": [" A100 "], \"traceEvents\": [" GOOD);
    for (size_t i = 0; i < N_OF(sizes); i++) {
        used +=
            (size_t)snprintf(text + used, room - used, ", {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"");
        memset(text + used, 'a', sizes[i]);
        text[used + sizes[i] - 1] = last[i];
        used += sizes[i];
        used +=
            (size_t)snprintf(text + used, room - used, "\", \"ts\": 1661203463029566, \"dur\": 1, " ARGS "}");
    }
    used += (size_t)snprintf(text + used, room - used, "]}");
    write_file(w, text, used);
    free(text);
    struct occ_import_result r = import_well(w, &plain);
    assert_int_equal(r.launches, 3);
    assert_int_equal(r.kernels, 3); /* distinguished by the last letter */
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_BAD_VALUE], 1);
}

/* ---- Nsight Systems ---- */

#define GPU_TABLE                                                                                            \
    "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, uuid TEXT, cuDevice INTEGER, smCount INTEGER, "    \
    "computeMajor "                                                                                          \
    "INTEGER, computeMinor INTEGER, threadsPerWarp INTEGER, maxWarpsPerSm INTEGER, maxBlocksPerSm INTEGER, " \
    "maxThreadsPerBlock INTEGER, maxRegistersPerBlock INTEGER, maxRegistersPerSm INTEGER, maxShmemPerBlock " \
    "INTEGER, "                                                                                              \
    "maxShmemPerBlockOptin INTEGER, maxShmemPerSm INTEGER, totalMemory INTEGER, clockRate INTEGER);"         \
    "INSERT INTO TARGET_INFO_GPU VALUES (4, 'NVIDIA H100', 'GPU-74e128b2-90b6-b409-07c8-33bee5ff6f88', 1, "  \
    "132, 9, 0, "                                                                                            \
    "32, 64, 32, 1024, 65536, 65536, 49152, 232448, 233472, 85000000000, 1980000000);"
#define NAMES                                                                                                \
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"                                  \
    "INSERT INTO StringIds VALUES (1, 'kernel'), (2, 'void ns::kernel<int>(int *)'), (3, "                   \
    "'_ZN2ns6kernelIiEEvPT_');"
#define OLD_COLUMNS                                                                                          \
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER, streamId "  \
    "INTEGER, "                                                                                              \
    "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, "                   \
    "registersPerThread INTEGER, "                                                                           \
    "gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, "          \
    "staticSharedMemory "                                                                                    \
    "INTEGER, dynamicSharedMemory INTEGER"
#define OLD_VALUES "100, 250, 1, 1, 7, 140, 302119223558144, 2, 1, 32, 1000, 1, 1, 128, 1, 1, 1024, 2048"
#define OLD        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (" OLD_COLUMNS ");"
#define OLD_ROW    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" OLD_VALUES ");"
#define NEW                                                                                                  \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (" OLD_COLUMNS                                                  \
    ", mangledName INTEGER, sharedMemoryExecuted INTEGER, "                                                  \
    "clusterX INTEGER, clusterY INTEGER, clusterZ INTEGER, graphNodeId INTEGER, localMemoryPerThread "       \
    "INTEGER, "                                                                                              \
    "launchType INTEGER, cacheConfig INTEGER, sharedMemoryLimitConfig INTEGER, maxActiveClusters INTEGER, "  \
    "sharedMemoryRequestedPercentage INTEGER);"
#define NEW_ROW                                                                                              \
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" OLD_VALUES ", 3, 102400, 2, 1, 1, 77, 16, 1, NULL, "   \
    "1, 60, NULL);"
#define EPOCH                                                                                                \
    "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);"        \
    "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1687813257637297504, '', '');"

static void make_sqlite(const struct world *w, const char *sql)
{
    sqlite3 *db = NULL;
    char *said = NULL;
    (void)unlink(w->file);
    assert_int_equal(sqlite3_open(w->file, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &said) != SQLITE_OK)
        fail_msg("%s", said);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void nsys_old(void **state)
{
    struct world *w = *state;
    make_sqlite(w, GPU_TABLE NAMES OLD OLD_ROW);
    struct occ_import_result r = import_well(w, &plain);
    assert_string_equal(r.source, "nsys");
    assert_int_equal(r.launches, 1);
    assert_true(r.time_base_unknown);
    assert_int_equal(number(w, "SELECT start_ns FROM launch"), 100);
    assert_int_equal(number(w, "SELECT shared_config_bytes FROM stored_launch_config"), 0); /* unknown */
    assert_int_equal(
        number(
            w,
            "SELECT missing_fields LIKE '%carve-out%' AND missing_fields LIKE '%cluster%' FROM stored_run"),
        1);
    assert_int_equal(number(w, "SELECT short = 'kernel' FROM stored_kernel"), 1);
    assert_int_equal(number(w, "SELECT max_threads_per_sm FROM stored_device"), 2048);
    assert_int_equal(number(w, "SELECT hex(uuid) LIKE '74E128B2%' FROM stored_device"), 1);
    assert_int_equal(number(w, "SELECT warps_per_sm FROM stored_launch_config"), 64);
}

static void nsys_new(void **state)
{
    struct world *w = *state;
    make_sqlite(w, GPU_TABLE NAMES NEW NEW_ROW EPOCH
                "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT); INSERT INTO "
                "META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2025.1');"
                "CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);"
                "INSERT INTO PROCESSES VALUES (0, 1230493, 'train');");
    struct occ_import_result r = import_well(w, &plain);
    assert_int_equal(r.launches, 1);
    assert_false(r.time_base_unknown);
    assert_int_equal(number(w, "SELECT start_ns FROM launch"), INT64_C(1687813257637297604));
    assert_int_equal(number(w, "SELECT shared_config_bytes FROM stored_launch_config"), 102400);
    assert_int_equal(number(w, "SELECT cluster_x FROM stored_launch_config"), 2);
    assert_int_equal(number(w, "SELECT shared_optin FROM stored_launch_config"), 1);
    assert_int_equal(number(w, "SELECT graph_node_id FROM launch"), 77);
    assert_int_equal(number(w, "SELECT mangled = '_ZN2ns6kernelIiEEvPT_' FROM stored_kernel"), 1);
    assert_int_equal(
        number(
            w,
            "SELECT source_version = '2025.1' AND exe = 'train' AND missing_fields IS NULL FROM stored_run"),
        1);
}

/* Two processes have different GPUs as their device 0. */
static void nsys_devices(void **state)
{
    struct world *w = *state;
    make_sqlite(
        w, GPU_TABLE
        "INSERT INTO TARGET_INFO_GPU (id, name, smCount, computeMajor, computeMinor) VALUES (5, 'T4', "
        "40, 7, 5);"
        "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);"
        "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (4, 0, 10), (5, 0, 11);" NAMES OLD
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 1, 7, 1, 10 << 24, 2, 1, 32, 1, 1, 1, 128, "
        "1, 1, 0, 0), (3, 4, 0, 1, 7, 2, 11 << 24, 2, 1, 32, 1, 1, 1, 128, 1, 1, 0, 0);");
    struct occ_import_result r = import_well(w, &plain);
    assert_int_equal(r.launches, 2);
    assert_int_equal(r.devices, 2);
    assert_int_equal(number(w, "SELECT count(DISTINCT device_id) FROM launch"), 2);
    assert_int_equal(number(w, "SELECT pid IS NULL FROM stored_run"), 1);
}

static void nsys_skips(void **state)
{
    struct world *w = *state;
    make_sqlite(
        w, GPU_TABLE NAMES OLD OLD_ROW
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
        "(100, 50, 1, 1, 7, 140, 0, 2, 1, 32, 1, 1, 1, 128, 1, 1, 0, 0),"            /* end before start */
        "(100, 150, 1, 1, 7, 140, 0, 2, 1, 32, 99999999999, 1, 1, 128, 1, 1, 0, 0)," /* grid too large */
        "(100, 150, 1, 1, 7, 140, 0, 2, 1, 32, -5, 1, 1, 128, 1, 1, 0, 0),"          /* below 0 */
        "(100, 150, 1, 1, 7, 140, 0, 2, 1, 'many', 1, 1, 1, 128, 1, 1, 0, 0),"       /* text */
        "(100, 150, 9, 1, 7, 140, 0, 2, 1, 32, 1, 1, 1, 128, 1, 1, 0, 0),"           /* no such device */
        "(100, 150, 1, 1, 7, 140, 0, 99, 98, 32, 1, 1, 1, 128, 1, 1, 0, 0);");       /* no such names */
    struct occ_import_result r = import_well(w, &plain);
    assert_int_equal(r.launches, 1);
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_BAD_TIMES], 1);
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_BAD_VALUE], 3);
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_NO_DEVICE], 1);
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_NO_NAME], 1);
}

/* ---- rules of every import ---- */

static void same_file_twice(void **state)
{
    struct world *w = *state;
    struct occ_import_result first = import_text(w, TRACE(GOOD)), second = import_well(w, &plain);
    assert_false(first.known);
    assert_true(second.known);
    assert_int_equal(second.run, first.run);
    assert_int_equal(number(w, "SELECT count(*) FROM stored_run"), 1);
    static const struct occ_import_options again = {.again = true, .label = "again"};
    struct occ_import_result third = import_well(w, &again);
    assert_false(third.known);
    assert_int_equal(number(w, "SELECT count(*) FROM launch"), 2);
    assert_int_equal(number(w, "SELECT count(*) FROM stored_run WHERE label = 'again'"), 1);
}

/* Results with --since exclude runs without dates. */
static void timeless_runs(void **state)
{
    struct world *w = *state;
    static const struct occ_store_options reading = {.mode = OCC_STORE_READ};
    static const struct occ_filter all = {0}, since = {.since_ns = 1};
    struct occ_store *store = NULL;
    struct occ_top top;
    uint64_t timeless = 0;
    (void)import_text(w, TRACE(KERNEL("\"ts\": 99.5, \"dur\": 1, " ARGS)));
    assert_int_equal(occ_store_open(w->db, &reading, &store, NULL), 0);
    assert_int_equal(occ_store_count_unknown_time_base(store, &timeless, NULL), 0);
    assert_int_equal(timeless, 1);
    assert_int_equal(occ_store_top(store, &all, OCC_TOP_BY_KERNEL, &top, NULL), 0);
    assert_int_equal(top.n, 1);
    occ_top_free(&top);
    assert_int_equal(occ_store_top(store, &since, OCC_TOP_BY_KERNEL, &top, NULL), 0);
    assert_int_equal(top.n, 0);
    occ_top_free(&top);
    occ_store_close(store);
}

static void broken_json(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "empty"},
        {"hello", "byte 0: neither"},
        {"\x7f"
         "ELF",
         "byte 0: neither"},
        {"{\"traceEvents\": [" GOOD ", ]}", "invalid JSON"},
        {"{\"deviceProperties\": [" A100 "], \"traceEvents\": [" GOOD ", " GOOD, "ends inside"},
        {"{\"deviceProperties\": [" A100 "], \"traceEvents\": [" GOOD "]} more", "invalid JSON"},
        {"{\"deviceProperties\": [" A100 "], \"traceEvents\": [" GOOD ", {\"name\": nan}]}", "invalid JSON"},
        {"{\"traceEvents\": [" GOOD "]}", "--gpu"},
        {"{\"traceEvents\": [" OTHER "]}", "no kernel"},
        {TRACE(KERNEL("\"ts\": 5, \"dur\": 1")), "could be imported: no_configuration 1"},
        {"{}", "no kernel"},
    };
    (void)import_text(w, TRACE(GOOD));
    for (size_t i = 0; i < N_OF(cases); i++) {
        write_file(w, cases[i].text, strlen(cases[i].text));
        must_fail(w, cases[i].text, cases[i].says);
    }
    char deep[4096] = "{\"traceEvents\": ";
    memset(deep + strlen(deep), '[', 1000);
    write_file(w, deep, strlen(deep));
    must_fail(w, "deep nesting", "nested deeper");
    char *endless = malloc(6u << 20);
    assert_non_null(endless);
    memset(endless, 'a', 6u << 20);
    memcpy(endless, "{\"", 2);
    write_file(w, endless, 6u << 20);
    free(endless);
    must_fail(w, "an endless text", "a text of more than");
}

/* Writes a trace with a string of `text` digits and a number of `digits` digits. */
static void write_long_tokens(const struct world *w, size_t text, size_t digits)
{
    char *json = malloc(text + digits + 4096), *at = json;
    assert_non_null(json);
    at = stpcpy(at, "{\"deviceProperties\": [" A100 "], \"traceEvents\": [" GOOD "], \"a\": \"");
    memset(at, '7', text);
    at = stpcpy(at + text, "\", \"b\": -");
    memset(at, '7', digits);
    at = stpcpy(at + digits, "}");
    write_file(w, json, (size_t)(at - json));
    free(json);
}

/* The parser would read a number of many chunks again with each chunk, so long numbers are refused. */
static void long_numbers(void **state)
{
    struct world *w = *state;
    struct occ_import_result result;
    struct occ_error err = OCC_ERROR_INIT;
    write_long_tokens(w, 200000, 63); /* digits in a string */
    if (import(w, &plain, &result, &err) != 0)
        fail_msg("%s", err.message);
    static const size_t digits[] = {64, 4096, 65536, 70000, 3u << 20};
    for (size_t i = 0; i < N_OF(digits); i++) {
        write_long_tokens(w, 10, digits[i]);
        must_fail(w, "a long number", "a number of more than 64 characters");
    }
}

struct text_input {
    struct occ_kineto_input input;
    const char *text;
    size_t step;
};

static int read_text(struct occ_kineto_input *input, unsigned char *data, size_t size, size_t *ret_n,
                     struct occ_error *err)
{
    struct text_input *t = (struct text_input *)input;
    size_t n = strlen(t->text);
    (void)err;
    n = n < t->step ? n : t->step;
    n = n < size ? n : size;
    memcpy(data, t->text, n);
    t->text += n;
    *ret_n = n;
    return 0;
}

/* The repair makes strict JSON of lenient JSON, wherever reads end, and leaves strict JSON unchanged. */
static void repaired_json(void **state)
{
    static const struct {
        const char *text, *repaired;
    } cases[] = {
        {"{\"a\": [1, -2.5e-3, true, null, \"x\\u00e9\\n\\\\\\\"y\"]}",
         "{\"a\": [1, -2.5e-3, true, null, \"x\\u00e9\\n\\\\\\\"y\"]}"},
        {"\xef\xbb\xbf[NaN, -Infinity,Infinity, -1]", "[null, null,null, -1]"},
        {"[\"NaN\", \"a\tb\x01\"]", "[\"NaN\", \"a\\u0009b\\u0001\"]"},
        {"[\"C:\\users\\name\\q\\u12\"]", "[\"C:\\\\users\\name\\\\q\\\\u12\"]"},
        {"[\"ends in a backslash\\", "[\"ends in a backslash\\"},
        {"[NaNs, nan, -", "[NaNs, nan, -"},
        {"[Infinit", "[Infinit"},
    };
    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++)
        for (size_t step = 1; step < 40; step++) {
            struct text_input from = {{.read = read_text}, cases[i].text, i == 1 && step < 3 ? 3 : step};
            struct occ_repair repair = occ_repair(&from.input);
            char got[256] = "", data[128];
            size_t at = 0, n = 0;
            while (repair.input.read(&repair.input, (unsigned char *)data, 64 + step, &n, NULL) == 0 &&
                   n > 0) {
                memcpy(got + at, data, n);
                at += n;
            }
            got[at] = '\0';
            assert_string_equal(got, cases[i].repaired);
        }
}

static void lenient_json(void **state)
{
    struct world *w = *state;
    (void)import_text(w, TRACE(GOOD));
    write_file(w, "\xef\xbb\xbf" TRACE(GOOD ", {\"path\": \"C:\\users\", \"x\": NaN}"),
               strlen("\xef\xbb\xbf" TRACE(GOOD ", {\"path\": \"C:\\users\", \"x\": NaN}")));
    struct occ_import_result result = import_well(w, &plain);
    assert_true(result.repaired && result.launches == 1);
}

/* GPUs without UUIDs are distinguished by their device numbers; a second recording has the same two devices.
 */
static void two_gpus_of_one_model(void **state)
{
    struct world *w = *state;
#define ON_TWO(more)                                                                                         \
    "{\"deviceProperties\": [" A100 "," NAMED_A100("1") "], \"traceEvents\": [" GOOD "," ON_1 "]" more "}"
#define ON_1                                                                                                 \
    KERNEL(                                                                                                  \
        "\"ts\": 1661203463029577.5, \"dur\": 2, \"args\": {\"device\": 1, \"registers per thread\": 32, "   \
        "\"grid\": [1, 1, 1], \"block\": [32, 1, 1]}")
    assert_int_equal(import_text(w, ON_TWO("")).devices, 2);
    assert_int_equal(import_text(w, ON_TWO(", \"again\": 1")).devices, 2);
    assert_int_equal(number(w, "SELECT count(*) FROM stored_device"), 2);
}

#define LAUNCHES_OF(device)                                                                                  \
    "SELECT count(*) FROM launch WHERE device_id = (SELECT " device "(device_id) FROM stored_device)"

static void two_equal_gpus(void **state)
{
    struct world *w = *state;
    static const char bare[] = "[" GOOD "," GOOD "," ON_1 "]";
    (void)snprintf(w->file, sizeof w->file, "%s", OCC_TEST_DATA "/import/two-equal-gpus.json");
    assert_int_equal(import_well(w, &plain).devices, 2);
    assert_int_equal(number(w, LAUNCHES_OF("min")), 3);
    assert_int_equal(number(w, LAUNCHES_OF("max")), 5);
    (void)snprintf(w->db, sizeof w->db, "%s/named.db", w->directory);
    (void)snprintf(w->file, sizeof w->file, "%s/bare.json", w->directory);
    write_file(w, bare, strlen(bare));
    assert_int_equal(import_well(w, &(struct occ_import_options){.gpu = "h100"}).devices, 2);
    assert_int_equal(number(w, LAUNCHES_OF("min")), 2);
    assert_int_equal(number(w, LAUNCHES_OF("max")), 1);
}

/* A trace of XLA's profiler has the GPU in the process's name, the stream in the thread and the configuration
 * in a text. */
static void xla(void **state)
{
    struct world *w = *state;
    static const char text[] =
        "{\"displayTimeUnit\": \"ns\", \"traceEvents\": ["
        "{\"ph\": \"M\", \"pid\": 2, \"name\": \"process_name\", \"args\": {\"name\": \"/device:GPU:1\"}},"
        "{\"ph\": \"M\", \"pid\": 701, \"name\": \"process_name\", \"args\": {\"name\": \"/host:CPU\"}},"
        "{\"ph\": \"X\", \"pid\": 2, \"tid\": 14, \"ts\": 10.5, \"dur\": 3, \"name\": \"loop_fusion\", "
        "\"args\": "
        "{\"hlo_op\": \"fusion.1\", \"kernel_details\": \"regs:16 static_shared:1024 dynamic_shared:512 "
        "grid:80,2,1 "
        "block:128,1,1 occ_pct:100\"}},"
        "{\"ph\": \"X\", \"pid\": 2, \"tid\": 14, \"ts\": 20, \"dur\": 3, \"name\": \"odd\", \"args\": "
        "{\"kernel_details\": \"regs:many\"}},"
        "{\"ph\": \"X\", \"pid\": 701, \"tid\": 1, \"ts\": 1, \"dur\": 30, \"name\": \"host\", \"args\": "
        "{}}]}";
    (void)import_text(w, TRACE(GOOD));
    write_file(w, text, strlen(text));
    must_fail(w, "no GPU", "--gpu");
    struct occ_import_result r = import_well(w, &(struct occ_import_options){.gpu = "a100"});
    assert_int_equal(r.launches, 1);
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_NO_CONFIGURATION], 1);
    assert_int_equal(
        number(w,
               "SELECT count(*) FROM launch l JOIN launch_config c USING(config_id) WHERE l.stream_id = 14 "
               "AND c.grid_x = 80 AND c.grid_y = 2 AND c.block_x = 128 AND c.registers_per_thread = 16 "
               "AND c.dynamic_shared_bytes = 1536 AND l.duration_ns = 3000"),
        1);
}

/* Imports a file compressed with zstd, and a pipe that a child fills. */
static void packed_and_piped(void **state)
{
    struct world *w = *state;
    static const char text[] = TRACE(GOOD);
    char packed[8192];
    size_t n = ZSTD_compress(packed, sizeof packed, text, strlen(text), 1);
    write_file(w, packed, n);
    assert_int_equal(import_well(w, &plain).launches, 1);
    write_file(w, packed, n - 5);
    must_fail(w, "cut", "inside a zstd frame");
    packed[n / 2] ^= 0x55;
    write_file(w, packed, n);
    must_fail(w, "damaged", "");
    assert_int_equal(unlink(w->file), 0);
    assert_int_equal(mkfifo(w->file, 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        write_file(w, text, strlen(text));
        _exit(0);
    }
    assert_true(import_well(w, &plain).known); /* the same text */
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Returns the number of the import's named temporary files in the world's directory. */
static int temporary_files(const struct world *w)
{
    DIR *directory = opendir(w->directory);
    int n = 0;
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        n += strncmp(entry->d_name, "occq-import-", 12) == 0;
    (void)closedir(directory);
    return n;
}

/* An import that is killed while it reads a pipe leaves no temporary file. */
static void killed_at_a_pipe(void **state)
{
    struct world *w = *state;
    static char blanks[1 << 20]; /* more than a pipe holds: after the write, the import has read most */
    int probe = open(w->directory, O_TMPFILE | O_RDWR, 0600);
    if (probe < 0)
        skip();
    (void)close(probe);
    memset(blanks, ' ', sizeof blanks);
    assert_int_equal(setenv("TMPDIR", w->directory, 1), 0);
    assert_int_equal(mkfifo(w->file, 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)import_well(w, &plain);
        _exit(0);
    }
    int fd = open(w->file, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0 && write(fd, blanks, sizeof blanks) == sizeof blanks);
    assert_int_equal(temporary_files(w), 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    (void)close(fd);
    assert_int_equal(temporary_files(w), 0);
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

/* SQLite opens files by name only: the import copies a database from a pipe into a temporary file. */
static void piped_sqlite(void **state)
{
    struct world *w = *state;
    static char bytes[1 << 18];
    make_sqlite(w, GPU_TABLE NAMES OLD OLD_ROW);
    FILE *file = fopen(w->file, "rb");
    assert_non_null(file);
    size_t n = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    assert_in_range(n, 1, sizeof bytes - 1);
    assert_int_equal(setenv("TMPDIR", w->directory, 1), 0);
    assert_int_equal(unlink(w->file), 0);
    assert_int_equal(mkfifo(w->file, 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        write_file(w, bytes, n);
        _exit(0);
    }
    assert_int_equal(import_well(w, &plain).launches, 1);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(temporary_files(w), 0);
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

static size_t read_bytes(const struct world *w, char *bytes, size_t room)
{
    FILE *file = fopen(w->file, "rb");
    assert_non_null(file);
    size_t n = fread(bytes, 1, room, file);
    (void)fclose(file);
    assert_in_range(n, 1, room - 1);
    return n;
}

static size_t pack_gzip(const struct world *w, const char *bytes, size_t n, char *packed, size_t room)
{
    gzFile file = gzopen(w->file, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)n), n);
    assert_int_equal(gzclose(file), Z_OK);
    return read_bytes(w, packed, room);
}

/* Imports databases compressed with gzip or zstd: whole, in two members, through a pipe, cut and damaged. */
static void packed_sqlite(void **state)
{
    struct world *w = *state;
    static char bytes[1 << 18], packed[1 << 18];
    make_sqlite(w, GPU_TABLE NAMES OLD OLD_ROW);
    size_t n = read_bytes(w, bytes, sizeof bytes), size = ZSTD_compress(packed, sizeof packed, bytes, n, 1);
    assert_int_equal(setenv("TMPDIR", w->directory, 1), 0);
    write_file(w, packed, size);
    assert_int_equal(import_well(w, &plain).launches, 1);
    size = pack_gzip(w, bytes, n, packed, sizeof packed);
    assert_true(import_well(w, &plain).known); /* the same bytes inside */
    write_file(w, packed, size - 5);
    must_fail(w, "cut", "inside a gzip member");
    packed[size / 2] ^= 0x55;
    write_file(w, packed, size);
    must_fail(w, "damaged", "damaged: ");
    size = pack_gzip(w, bytes, n / 2, packed, sizeof packed);
    size += pack_gzip(w, bytes + n / 2, n - n / 2, packed + size, sizeof packed - size);
    memcpy(packed + size, "\0\0\0", 3);
    write_file(w, packed, size + 3);
    assert_true(import_well(w, &plain).known);
    assert_int_equal(unlink(w->file), 0);
    assert_int_equal(mkfifo(w->file, 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        write_file(w, packed, size);
        _exit(0);
    }
    assert_true(import_well(w, &plain).known);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(temporary_files(w), 0);
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

/* More output than fits in one call for the last bytes of the input. */
static void packed_zeros(void **state)
{
    struct world *w = *state;
    static char bytes[4 << 20], packed[1 << 18];
    make_sqlite(w,
                GPU_TABLE NAMES OLD OLD_ROW "CREATE TABLE z (x); INSERT INTO z VALUES (zeroblob(3000000));");
    size_t n = read_bytes(w, bytes, sizeof bytes);
    assert_int_equal(import_well(w, &plain).launches, 1);
    (void)pack_gzip(w, bytes, n, packed, sizeof packed);
    assert_true(import_well(w, &plain).known);
}

static void packed_report(void **state)
{
    struct world *w = *state, source = *w;
    static char bytes[1 << 18], packed[1 << 18];
    (void)snprintf(source.file, sizeof source.file, "%s", OCC_TEST_DATA "/import/ncu.ncu-rep");
    (void)pack_gzip(w, bytes, read_bytes(&source, bytes, sizeof bytes), packed, sizeof packed);
    struct occ_import_result r = import_well(w, &plain);
    assert_string_equal(r.source, "ncu");
    assert_true(r.launches > 0);
    write_gzip(w, "some text");
    must_fail(w, "text", "byte 0: neither");
}

/* A JSON file that is cut before its last byte is refused, wherever the cut is. */
static void cut_json(void **state)
{
    struct world *w = *state;
    static const char text[] = TRACE(OTHER "," GOOD);
    write_file(w, TRACE(GOOD), strlen(TRACE(GOOD)));
    (void)import_well(w, &plain);
    int64_t before = all_rows(w);
    for (size_t n = 1; n < sizeof text - 1; n += 7) {
        struct occ_import_result result;
        write_file(w, text, n);
        if (import(w, &plain, &result, NULL) == 0)
            fail_msg("cut after %zu of %zu bytes: imported", n, sizeof text - 1);
    }
    assert_int_equal(all_rows(w), before);
}

static void broken_gzip(void **state)
{
    struct world *w = *state;
    unsigned char bytes[8192];
    (void)import_text(w, TRACE(GOOD));
    write_gzip(w, TRACE(GOOD "," OTHER));
    FILE *file = fopen(w->file, "rb");
    assert_non_null(file);
    size_t n = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    write_file(w, bytes, n / 2);
    must_fail(w, "a cut gzip file", "byte ");
    write_file(w, bytes, n - 6);
    must_fail(w, "a gzip file without its end", "byte ");
    bytes[n / 2] ^= 0x55;
    write_file(w, bytes, n);
    must_fail(w, "a damaged gzip file", "byte ");
}

static void broken_sqlite(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *sql, *says;
    } cases[] = {
        {"CREATE TABLE t(x);", "no table CUPTI_ACTIVITY_KIND_KERNEL"},
        {GPU_TABLE NAMES OLD, "no kernel was recorded"},
        {NAMES OLD OLD_ROW, "--gpu"},
        {GPU_TABLE NAMES "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER);", "has no column"},
        {GPU_TABLE NAMES
         "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 "
         "FROM r) SELECT x AS start FROM r;",
         "not an ordinary table"},
        {GPU_TABLE "CREATE VIEW StringIds AS SELECT 1 AS id, load_extension('x') AS value;" OLD OLD_ROW,
         "not an ordinary table"},
        {GPU_TABLE NAMES OLD OLD_ROW
         "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN extra AS (abs(start));",
         "row"},
    };
    (void)import_text(w, TRACE(GOOD));
    for (size_t i = 0; i < N_OF(cases); i++) {
        if (i == N_OF(cases) - 1 && sqlite3_libversion_number() < 3031000)
            continue; /* no generated columns */
        make_sqlite(w, cases[i].sql);
        if (i == N_OF(cases) - 1) {
            struct occ_import_result result; /* a generated column may be read or refused, never harm */
            (void)import(w, &plain, &result, NULL);
            continue;
        }
        must_fail(w, cases[i].sql, cases[i].says);
    }
    char garbage[8192] = "SQLite format 3";
    for (size_t i = 16; i < sizeof garbage; i++)
        garbage[i] = (char)(i * 2654435761u >> 7);
    write_file(w, garbage, sizeof garbage);
    must_fail(w, "garbage after the header (encrypted)", "");
}

static unsigned damage_step = 1; /* from one damaged byte to the next, relative to a release build */

/* A file that is cut or damaged anywhere gives an error or a sound import of its remaining launch, never a
 * partial run; SQLite leaves no file beside it. */
static void damaged_sqlite(void **state)
{
    struct world *w = *state;
    static unsigned char bytes[65536];
    make_sqlite(w, GPU_TABLE NAMES NEW NEW_ROW EPOCH);
    FILE *file = fopen(w->file, "rb");
    assert_non_null(file);
    size_t n = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    for (size_t i = 100; i < n; i += 97 * damage_step) {
        static const struct occ_import_options again = {.again = true};
        struct occ_import_result result;
        unsigned char kept = bytes[i];
        bytes[i] ^= 0xff;
        write_file(w, bytes, n);
        bytes[i] = kept;
        if (import(w, &again, &result, NULL) == 0)
            assert_int_equal(result.launches, 1);
    }
    write_file(w, bytes, n / 2);
    struct occ_import_result result;
    assert_int_not_equal(import(w, &plain, &result, NULL), 0);
    assert_int_equal(number(w, "SELECT count(*) FROM stored_run WHERE launches = 0"), 0);
    char beside[128];
    (void)snprintf(beside, sizeof beside, "%s-wal", w->file);
    assert_int_not_equal(access(beside, F_OK), 0);
}

/* A failure at the file's very end undoes the whole import. */
static void all_or_nothing(void **state)
{
    struct world *w = *state;
    size_t room = 8u << 20, used = 0;
    char *text = malloc(room);
    assert_non_null(text);
    used += (size_t)snprintf(text, room, "{\"deviceProperties\": [" A100 "], \"traceEvents\": [" GOOD);
    for (int i = 0; i < 10000; i++)
        used += (size_t)snprintf(
            text + used, room - used,
            ", {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k%d\", \"ts\": %d, \"dur\": 1, " ARGS "}", i,
            1000 + i);
    write_file(w, TRACE(GOOD), strlen(TRACE(GOOD)));
    (void)import_well(w, &plain);
    write_file(w, text, used); /* without its closing brackets */
    must_fail(w, "ten thousand kernels and no end", "ends inside");
    used += (size_t)snprintf(text + used, room - used, "]}");
    write_file(w, text, used);
    free(text);
    struct occ_import_result r = import_well(w, &plain);
    assert_int_equal(r.launches, 10001);
    assert_int_equal(r.kernels, 10001);
    assert_int_equal(number(w, "SELECT count(*) FROM launch"), 10002);
}

static void no_files(void **state)
{
    struct world *w = *state;
    (void)import_text(w, TRACE(GOOD));
    (void)unlink(w->file);
    must_fail(w, "a missing file", "No such file");
    (void)snprintf(w->file, sizeof w->file, "%s", w->directory);
    must_fail(w, "a directory", "neither a file nor a pipe");
}

static void append_blank(void *context, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    FILE *file = fopen(context, "ab");
    assert_non_null(file);
    assert_int_equal(fputc('\n', file), '\n');
    assert_int_equal(fclose(file), 0);
}

/* A file that changes during the import is refused: the history's content under a hash must match the hash.
 */
static void changing_file(void **state)
{
    struct world *w = *state;
    const struct occ_import_options options = {.progress = append_blank, .context = w->file};
    struct occ_import_result result;
    struct occ_error err = OCC_ERROR_INIT;
    write_file(w, TRACE(GOOD), sizeof TRACE(GOOD) - 1);
    assert_int_equal(import(w, &options, &result, &err), OCC_E_INVALID);
    assert_non_null(strstr(err.message, "changed while it was read"));
    assert_int_equal(all_rows(w), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    damage_step = input_step(argc, argv, 4);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimals),
        cmocka_unit_test(catalog),
        TEST(kineto_launch),
        TEST(kineto_forms),
        TEST(kineto_early_times),
        TEST(kineto_skips),
        TEST(kineto_edges_of_minutes),
        TEST(kineto_ends_of_time),
        TEST(kineto_other_maker),
        TEST(kineto_only_other_makers),
        TEST(kineto_long_names),
        TEST(nsys_old),
        TEST(nsys_new),
        TEST(nsys_devices),
        TEST(nsys_skips),
        TEST(same_file_twice),
        TEST(timeless_runs),
        TEST(broken_json),
        TEST(long_numbers),
        TEST(cut_json),
        TEST(broken_gzip),
        TEST(broken_sqlite),
        TEST(damaged_sqlite),
        TEST(all_or_nothing),
        TEST(no_files),
        cmocka_unit_test(repaired_json),
        TEST(lenient_json),
        TEST(packed_and_piped),
        TEST(killed_at_a_pipe),
        TEST(piped_sqlite),
        TEST(packed_sqlite),
        TEST(packed_zeros),
        TEST(packed_report),
        TEST(two_gpus_of_one_model),
        TEST(two_equal_gpus),
        TEST(xla),
        TEST(changing_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
