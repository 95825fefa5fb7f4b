/*
 * The Nsight Systems reader: exports of several versions (tests/data/import/nsys-*.sql, built into SQLite
 * here), the GPU of a launch, and files that are broken, hostile or still being written.
 */
#include "import/import.h"
#include "sanitized.h"

#include <dirent.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define N_OF(array) (sizeof(array) / sizeof *(array))

struct world {
    char directory[64], db[96], file[128];
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    if (!w)
        return -1;
    (void)snprintf(w->directory, sizeof w->directory, "/tmp/test_import_nsys_XXXXXX");
    if (!mkdtemp(w->directory))
        return -1;
    (void)snprintf(w->db, sizeof w->db, "%s/history.db", w->directory);
    (void)snprintf(w->file, sizeof w->file, "%s/export.sqlite", w->directory);
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

/* ---- making exports ---- */

static void run_sql(const struct world *w, const char *sql)
{
    sqlite3 *db = NULL;
    char *said = NULL;
    assert_int_equal(sqlite3_open(w->file, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &said) != SQLITE_OK)
        fail_msg("%s", said);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void make(const struct world *w, const char *sql)
{
    (void)unlink(w->file);
    run_sql(w, sql);
}

/* Makes the export that OCC_TEST_DATA/import/NAME describes. */
static void make_from(const struct world *w, const char *name)
{
    static char text[65536];
    char path[512];
    (void)snprintf(path, sizeof path, "%s/import/%s", OCC_TEST_DATA, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    assert_true(n < sizeof text - 1);
    (void)fclose(file);
    make(w, text);
}

#define GPU                                                                                                  \
    "CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, cuDevice INTEGER, smCount INTEGER, " \
    "computeMajor INTEGER, computeMinor INTEGER);"                                                           \
    "INSERT INTO TARGET_INFO_GPU VALUES (281474976710656, 4, 'H100', 0, 132, 9, 0);"
#define NAMES                                                                                                \
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"                                           \
    "INSERT INTO StringIds VALUES (1, 'k'), (2, '_Z1kv');"
#define KERNELS                                                                                              \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, "    \
    "globalPid, shortName, mangledName, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, "   \
    "staticSharedMemory, dynamicSharedMemory);"
#define ROW(start, device, pid, name)                                                                        \
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" start ", " start " + 10, " device ", 1, 7, 1, " pid    \
    ", 1, " name ", 32, 132, 1, 1, 256, 1, 1, 0, 0);"
#define PID "281474976710656 + (77 << 24)"

/* ---- importing ---- */

static int import(const struct world *w, const char *gpu, struct occ_import_result *result,
                  struct occ_error *err)
{
    static const struct occ_store_options writing = {.mode = OCC_STORE_WRITE};
    const struct occ_import_options options = {.gpu = gpu};
    struct occ_store *store = NULL;
    assert_int_equal(occ_store_open(w->db, &writing, &store, err), 0);
    int status = occ_import_file(store, w->file, &options, result, err);
    occ_store_close(store);
    return status;
}

static struct occ_import_result import_well(const struct world *w, const char *gpu)
{
    struct occ_import_result result;
    struct occ_error err = OCC_ERROR_INIT;
    if (import(w, gpu, &result, &err) != 0)
        fail_msg("%s", err.message);
    return result;
}

/* Expects an error with `says` and the file's name. */
static void must_fail(const struct world *w, const char *says)
{
    struct occ_import_result result;
    struct occ_error err = OCC_ERROR_INIT;
    if (import(w, NULL, &result, &err) == 0)
        fail_msg("'%s' was expected; it was imported", says);
    if (!strstr(err.message, says) || !strstr(err.message, w->file))
        fail_msg("'%s' does not say '%s' and the file", err.message, says);
}

/* Returns the text that a query of the history returns; valid until the next call. */
static const char *ask(const struct world *w, const char *sql)
{
    static const struct occ_store_options reading = {.mode = OCC_STORE_READ};
    static char text[1024];
    struct occ_store *store = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(occ_store_open(w->db, &reading, &store, NULL), 0);
    if (sqlite3_prepare_v2(occ_store_sqlite(store), sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(occ_store_sqlite(store)));
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const char *said = (const char *)sqlite3_column_text(stmt, 0);
    (void)snprintf(text, sizeof text, "%s", said ? said : "NULL");
    (void)sqlite3_finalize(stmt);
    occ_store_close(store);
    return text;
}

#define LAUNCHES                                                                                             \
    "FROM launch l JOIN stored_launch_config s USING(config_id) JOIN stored_device d ON d.device_id = "      \
    "s.device_id"

/* ---- versions ---- */

static void version_2022(void **state)
{
    struct world *w = *state;
    make_from(w, "nsys-2022.2.sql");
    struct occ_import_result r = import_well(w, NULL);
    assert_int_equal(r.launches, 2);
    assert_int_equal(r.kernels, 2);
    assert_false(r.time_base_unknown);
    assert_string_equal(ask(w, "SELECT group_concat(start_ns - 1687813257637297504) FROM launch"),
                        "1000,2000");
    assert_string_equal(ask(w, "SELECT hostname FROM stored_node"), "node7");
    assert_string_equal(ask(w, "SELECT source_version || ' ' || exe || ' ' || pid FROM stored_run"),
                        "2022.2.1.31 ./scale 1230");
    assert_string_equal(ask(w, "SELECT missing_fields FROM stored_run"),
                        "cluster size, active clusters, the requested carve-out");
    /* 512 threads of 26 registers fill an SM four times */
    assert_string_equal(ask(w, "SELECT theoretical || ' ' || launch_type || ' ' || shared_config_bytes FROM "
                               "stored_launch_config "
                               "WHERE registers_per_thread = 26"),
                        "1.0 0 16384");
    /* cooperative, 65 + 1 KiB of 164 KiB, 128 registers: two blocks of eight warps */
    assert_string_equal(ask(w, "SELECT warps_per_sm || ' ' || launch_type || ' ' || shared_optin FROM "
                               "stored_launch_config WHERE "
                               "registers_per_thread = 128"),
                        "16 1 1");
    assert_string_equal(ask(w, "SELECT mangled FROM stored_kernel ORDER BY kernel_id LIMIT 1"),
                        "_ZN2ns5scaleIfEEvPT_i");
    /* the demangled name replaces a missing mangled name */
    assert_string_equal(ask(w, "SELECT mangled FROM stored_kernel ORDER BY kernel_id DESC LIMIT 1"),
                        "gemm(float *)");
    assert_string_equal(ask(w, "SELECT max(graph_node_id) FROM launch"), "77");
}

static void version_2023(void **state)
{
    struct world *w = *state;
    make_from(w, "nsys-2023.4.sql");
    struct occ_import_result r = import_well(w, NULL);
    assert_int_equal(r.launches, 2);
    assert_int_equal(r.devices, 2);
    assert_string_equal(ask(w, "SELECT group_concat(substr(hex(uuid), 1, 1) || cluster_x || ' ' || "
                               "max_active_clusters) FROM (SELECT s.*, uuid, cc, sm_count " LAUNCHES
                               " ORDER BY l.start_ns)"),
                        "A0 0,B2 66");
    assert_string_equal(ask(w, "SELECT missing_fields FROM stored_run"), "the requested carve-out");
    assert_string_equal(ask(w, "SELECT pid FROM stored_run"), "NULL"); /* two processes */
    assert_string_equal(ask(w, "SELECT exe FROM stored_run"), "NULL");
}

static void version_2025(void **state)
{
    struct world *w = *state;
    make_from(w, "nsys-2025.6.sql");
    struct occ_import_result r = import_well(w, NULL);
    assert_int_equal(r.launches, 2);
    assert_true(r.time_base_unknown);
    assert_string_equal(ask(w,
                            "SELECT group_concat(substr(hex(uuid), 1, 1) || sm_count || ' ' || launch_type) "
                            "FROM (SELECT s.*, uuid, cc, sm_count " LAUNCHES " ORDER BY l.start_ns)"),
                        "C16 0,B132 2");
    assert_string_equal(ask(w, "SELECT rank FROM stored_run"), "3");
    assert_string_equal(ask(w, "SELECT missing_fields FROM stored_run"),
                        "the requested carve-out, kernels of CUDA graphs that were recorded whole");
}

static void version_2026(void **state)
{
    struct world *w = *state;
    make_from(w, "nsys-2026.2.sql");
    struct occ_import_result r = import_well(w, NULL);
    assert_int_equal(r.launches, 2);
    assert_false(r.time_base_unknown);
    assert_string_equal(ask(w, "SELECT group_concat(cc || ' ' || sm_count || ' ' || carveout_percent) FROM "
                               "(SELECT s.*, uuid, cc, sm_count " LAUNCHES " ORDER BY l.start_ns)"),
                        "90 132 50,80 108 -1");
    assert_string_equal(ask(w, "SELECT missing_fields FROM stored_run"), "NULL");
}

/* ---- the GPU of a launch ---- */

/* The GPU of a process's device number must not be guessed if processes disagree. */
static void devices_that_are_not_said(void **state)
{
    struct world *w = *state;
    make(w, GPU "INSERT INTO TARGET_INFO_GPU VALUES (281474976710656, 5, 'T4', 1, 40, 7, 5);"
                "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId, cudaId, pid);"
                "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (4, 0, 77), (5, 0, 78), (5, 1, 77), (5, 1, 78), "
                "(9, 3, 77);" NAMES KERNELS ROW("100", "0", PID, "2") /* GPU 4 */
         ROW("200", "0", "281474976710656 + (79 << 24)", "2") /* other processes disagree about device 0 */
         ROW("300", "1", "281474976710656 + (79 << 24)", "2") /* all processes agree about device 1 */
         ROW("400", "0", "NULL", "2") ROW("500", "NULL", PID, "2") /* without a process; without a device */
         ROW("600", "-9223372036854775808", PID, "2") ROW("700", "3", PID, "2") /* no such GPU */);
    struct occ_import_result r = import_well(w, NULL);
    assert_int_equal(r.launches, 2);
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_NO_DEVICE], 5);
    assert_string_equal(
        ask(w, "SELECT group_concat(sm_count) FROM (SELECT sm_count " LAUNCHES " ORDER BY l.start_ns)"),
        "132,40");
}

/* Thousands of processes with different GPUs as device 0, as on a large node. */
static void many_processes(void **state)
{
    struct world *w = *state;
    make(w, GPU
         "INSERT INTO TARGET_INFO_GPU VALUES (281474976710656, 5, 'T4', 1, 40, 7, 5);"
         "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId, cudaId, pid);"
         "WITH RECURSIVE p(pid) AS (SELECT 1000 UNION ALL SELECT pid + 1 FROM p WHERE pid < 3000) "
         "INSERT INTO TARGET_INFO_CUDA_DEVICE SELECT 4 + pid % 2, 0, pid FROM p;" NAMES KERNELS
         "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT pid, pid + 10, 0, 1, 7, 1, 281474976710656 + (pid << "
         "24), 1, 2, 32, 1 + pid % 2, 1, 1, 256, 1, 1, 0, 0 FROM TARGET_INFO_CUDA_DEVICE;");
    struct occ_import_result r = import_well(w, NULL);
    assert_int_equal(r.launches, 2001);
    assert_string_equal(ask(w, "SELECT sum(sm_count = CASE s.grid_x WHEN 1 THEN 132 ELSE 40 END) " LAUNCHES),
                        "2001");
}

/* A GPU that the file only names needs --gpu; so does a file without GPUs. */
static void gpus_that_are_not_described(void **state)
{
    struct world *w = *state;
    make(w, "CREATE TABLE TARGET_INFO_GPU (id, name); INSERT INTO TARGET_INFO_GPU VALUES (0, 'mystery'), (1, "
            "NULL);" NAMES KERNELS ROW("100", "0", PID, "2"));
    must_fail(w, "capability of mystery: name the GPU with --gpu NAME");
    assert_int_equal(import_well(w, "t4").launches, 1);
    assert_string_equal(ask(w, "SELECT name || ' ' || sm_count FROM stored_device"), "mystery 40");
    make(w, NAMES KERNELS ROW("100", "6", PID, "2"));
    must_fail(w, "--gpu NAME");
    assert_int_equal(import_well(w, "v100").launches, 1);
    assert_string_equal(ask(w, "SELECT max(sm_count) FROM stored_device"), "80");
}

/* ---- GPUs of one model ---- */

#define LAUNCHES_BY_DEVICE                                                                                   \
    "SELECT group_concat(n) FROM (SELECT count(*) AS n FROM launch GROUP BY device_id ORDER BY device_id)"

static void two_equal_gpus(void **state)
{
    struct world *w = *state;
    make_from(w, "two-equal-gpus.sql");
    assert_int_equal(import_well(w, NULL).devices, 2);
    assert_string_equal(ask(w, LAUNCHES_BY_DEVICE), "3,5");
    assert_string_equal(ask(w, "SELECT count(DISTINCT device_id) FROM stored_device"), "2");
}

/* --gpu gives the model of every device number. A second recording, where device 1 comes first, has the same
 * two devices. */
static void named_gpus_stay_apart(void **state)
{
    struct world *w = *state;
    make_from(w, "two-equal-gpus.sql");
    run_sql(w, "DROP TABLE TARGET_INFO_GPU");
    assert_int_equal(import_well(w, "h100").devices, 2);
    assert_string_equal(ask(w, LAUNCHES_BY_DEVICE), "3,5");
    run_sql(w, "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE correlationId = 1");
    assert_int_equal(import_well(w, "h100").devices, 2);
    assert_string_equal(ask(w, LAUNCHES_BY_DEVICE), "5,10");
}

/* CUDA_VISIBLE_DEVICES gives processes different GPUs as device 0; each machine has its own device 0. */
static void named_gpus_of_processes(void **state)
{
    struct world *w = *state;
    make(
        w,
        "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId, cudaId, pid, uuid, numMultiprocessors);"
        "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (4, 0, 77, NULL, 132), (5, 0, 78, NULL, 132), (5, 1, 78, "
        "'GPU-74e128b2-90b6-b409-07c8-33bee5ff6f88', 16);" NAMES KERNELS ROW("100", "0", PID, "2")
            ROW("200", "0", "281474976710656 + (78 << 24)", "2")
                ROW("300", "0", "281474976710656 + (78 << 24)", "2")
                    ROW("400", "1", "281474976710656 + (78 << 24)", "2"));
    assert_int_equal(import_well(w, "h100").devices, 3);
    assert_string_equal(ask(w, LAUNCHES_BY_DEVICE), "1,2,1");
    assert_string_equal(ask(w, "SELECT group_concat(sm_count) FROM stored_device"), "132,132,16");
    make(w, NAMES KERNELS ROW("500", "0", "(1 << 48) + (77 << 24)", "2")
                ROW("600", "0", "(2 << 48) + (77 << 24)", "2"));
    assert_int_equal(import_well(w, "h100").devices, 2);
}

/* TARGET_INFO_CUDA_GPU of 2021; TARGET_INFO_GPU of that year does not describe a GPU. */
#define GPUS_OF_2021                                                                                         \
    "CREATE TABLE TARGET_INFO_GPU (vmId, deviceId, name, busLocation, isDiscrete);"                          \
    "INSERT INTO TARGET_INFO_GPU VALUES (281474976710656, 0, 'T4', '0000:01:00.0', 1), (281474976710656, "   \
    "1, "                                                                                                    \
    "'A100', '0000:02:00.0', 1);"                                                                            \
    "CREATE TABLE TARGET_INFO_CUDA_GPU (vmId, name, globalMemorySize, numThreadsPerWarp, coreClockRate, "    \
    "numMultiprocessors, maxWarpsPerMultiprocessor, maxBlocksPerMultiprocessor, maxRegistersPerBlock, "      \
    "maxSharedMemoryPerBlock, maxThreadsPerBlock, computeCapabilityMajor, computeCapabilityMinor, "          \
    "deviceId, "                                                                                             \
    "pid, maxSharedMemoryPerMultiprocessor, maxRegistersPerMultiprocessor);"

static void devices_of_2021(void **state)
{
    struct world *w = *state;
    make(w, GPUS_OF_2021
         "INSERT INTO TARGET_INFO_CUDA_GPU VALUES (281474976710656, 'T4', 15000000000, 32, 1590000, "
         "40, 32, 16, 65536, 49152, 1024, 7, 5, 0, 77, 65536, 65536), (281474976710656, 'A100', "
         "42000000000, 32, 1410000, 108, 64, 32, 65536, 49152, 1024, 8, 0, 1, 77, 167936, 65536);" NAMES
             KERNELS ROW("100", "0", PID, "2") ROW("200", "1", PID, "2") ROW("300", "1", PID, "2"));
    struct occ_import_result r = import_well(w, NULL);
    assert_int_equal(r.devices, 2);
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_NO_DEVICE], 0);
    assert_string_equal(
        ask(w,
            "SELECT group_concat(name || ' ' || cc || ' ' || sm_count || ' ' || max_threads_per_sm || ' ' || "
            "shared_per_sm_bytes || ' ' || clock_khz || ' ' || memory_bytes, '; ') FROM stored_device"),
        "T4 75 40 1024 65536 1590000 15000000000; A100 80 108 2048 167936 1410000 42000000000");
    assert_string_equal(ask(w, LAUNCHES_BY_DEVICE), "1,2");
}

/* Each process has rows of its own: the same GPU in two processes is one device, different GPUs are two
 * devices. */
static void processes_of_2021(void **state)
{
    struct world *w = *state;
    make(w, GPUS_OF_2021
         "INSERT INTO TARGET_INFO_CUDA_GPU SELECT 281474976710656, 'T4', 15000000000, 32, 1590000, 40, "
         "32, 16, 65536, 49152, 1024, 7, 5, 0, column1, 65536, 65536 FROM (VALUES (77), (78));"
         "INSERT INTO TARGET_INFO_CUDA_GPU SELECT 281474976710656, 'A100', 42000000000, 32, 1410000, "
         "108, 64, 32, 65536, 49152, 1024, 8, 0, 0, 79, 167936, 65536;" NAMES KERNELS ROW(
             "100", "0", PID, "2") ROW("200", "0", "281474976710656 + (78 << 24)", "2")
             ROW("300", "0", "281474976710656 + (79 << 24)", "2")
                 ROW("400", "0", "281474976710656 + (80 << 24)", "2")); /* device 0 is ambiguous */
    struct occ_import_result r = import_well(w, NULL);
    assert_int_equal(r.devices, 2);
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_NO_DEVICE], 1);
    assert_string_equal(ask(w, LAUNCHES_BY_DEVICE), "2,1");
}

/* ---- many kernels ---- */

/* The file has more kernels and configurations than fit in memory: kernel i has a grid of i blocks. The last
 * 6000 kernels, mostly beyond the limit of memory, are launched again after all others. */
static void many_kernels(void **state)
{
    SKIP_IF_SANITIZED();
    struct world *w = *state;
    make(w,
         GPU "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);" KERNELS
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70000) "
             "INSERT INTO StringIds SELECT i, 'kernel' || i FROM n;"
             "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT column1 * 1000000 + id, column1 * 1000000 + id + "
             "1, 0, 1, 7, 1, 0, id, id, 32, id, 1, 1, 32, 1, 1, 0, 0 FROM (VALUES (1), (2)), StringIds WHERE "
             "column1 = 1 "
             "OR id > 64000 ORDER BY 1;");
    struct occ_import_result r = import_well(w, NULL);
    assert_int_equal(r.launches, 76000);
    assert_int_equal(r.kernels, 70000);
    assert_int_equal(r.configs, 70000);
    assert_string_equal(ask(w, "SELECT count(*) || ' ' || sum(mangled = 'kernel' || grid_x) FROM launch JOIN "
                               "stored_kernel USING(kernel_id)"),
                        "76000 76000");
    assert_string_equal(ask(w, "SELECT sum(start_ns % 1000000 = grid_x) FROM launch"), "76000");
    /* all launches are in one minute, which is written in parts */
    assert_string_equal(ask(w, "SELECT count(*) || ' ' || sum(launches) || ' ' || max(launches) FROM minute"),
                        "70000 76000 2");
    assert_string_equal(
        ask(w, "SELECT count(*) || ' ' || sum(launches) || ' ' || sum(total_duration_ns) FROM hour"),
        "70000 76000 76000");
}

/* ---- values ---- */

static void skips(void **state)
{
    struct world *w = *state;
    make(
        w, GPU NAMES
        "INSERT INTO StringIds VALUES (3, printf('%.*c', 524288, 'x')), (4, printf('%.*c', 1048577, 'x')), "
        "(5, printf('%.*c', 3000000, 'x')), (6, x'00'), (7, '');" KERNELS ROW("100", "0", PID, "2")
            ROW("200", "0", PID, "3")                         /* half a MiB is a name */
        ROW("300", "0", PID, "4") ROW("400", "0", PID, "5")   /* longer names are refused */
        ROW("'now'", "0", PID, "2") ROW("1.5", "0", PID, "2") /* no integers */
        ROW("9223372036854775800", "0", PID, "2")             /* an end that is no integer any more */
        ROW("9223285636854775807", "0", PID, "2")             /* the last start: a day before 2^63 */
        ROW("NULL", "0", PID, "2") ROW("0", "0", PID, "2")    /* no start; 0 is no time */
        ROW("-20", "0", PID, "2") "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET shortName = NULL;" /* no fallback */
        ROW("500", "0", PID, "6") ROW("600", "0", PID, "7") /* the short name stands in */
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 800, 810, 0, 1, 4294967296, 1, globalPid, 1, 2, 32, "
        "1, 1, 1, 32, 1, "
        "1, 0, 0 FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1;"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 900, 910, 0, 1, 7, 1, globalPid, NULL, 99, 32, 1, 1, "
        "1, 32, 1, "
        "1, 0, 0 FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1;"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 900, 910, 0, 1, 7, 1, globalPid, 1, 2, NULL, 1, 1, 1, "
        "32, 1, "
        "1, 0, 0 FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1;");
    struct occ_import_result r = import_well(w, NULL);
    assert_int_equal(r.launches, 5);
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_BAD_VALUE], 6);
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_BAD_TIMES], 3);
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_NO_NAME], 1);
    assert_int_equal(r.skipped[OCC_IMPORT_SKIP_NO_CONFIGURATION], 1);
}

/* Values beyond the limits of all GPUs are bad values. A launch beyond the limits of its own GPU is imported,
 * and the model refuses it. */
static void implausible_launches(void **state)
{
    struct world *w = *state;
    static const char *const bad[] = {"gridX = 2147483648",
                                      "gridY = 65536",
                                      "blockX = 1025",
                                      "blockX = 32, blockY = 33",
                                      "registersPerThread = 1025",
                                      "dynamicSharedMemory = 16777217",
                                      "staticSharedMemory = 16777217"};
    for (size_t i = 0; i < N_OF(bad); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET %s WHERE start = 200;",
                       bad[i]);
        make(w, GPU NAMES KERNELS ROW("100", "0", PID, "2") ROW("200", "0", PID, "2"));
        run_sql(w, sql);
        struct occ_import_result r = import_well(w, NULL);
        if (r.launches != 1 || r.skipped[OCC_IMPORT_SKIP_BAD_VALUE] != 1)
            fail_msg("%s: %llu launches", bad[i], (unsigned long long)r.launches);
    }
    make(w, GPU NAMES KERNELS ROW("100", "0", PID, "2"));
    run_sql(w, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET blockX = 64, blockZ = 16, registersPerThread = 300;");
    assert_int_equal(import_well(w, NULL).launches, 1);
    assert_string_equal(
        ask(w, "SELECT theoretical FROM stored_launch_config WHERE registers_per_thread = 300"), "NULL");
}

/* Times before the session's start are dates, too; a file with several session starts has no dates. */
static void epochs(void **state)
{
    struct world *w = *state;
    make(w, GPU NAMES KERNELS ROW("-20", "0", PID,
                                  "2") "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs); INSERT "
                                       "INTO TARGET_INFO_SESSION_START_TIME VALUES "
                                       "(1700000000000000000);");
    assert_false(import_well(w, NULL).time_base_unknown);
    assert_string_equal(ask(w, "SELECT start_ns FROM launch"), "1699999999999999980");
    make(w, GPU NAMES KERNELS ROW("20", "0", PID,
                                  "2") "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs); INSERT "
                                       "INTO TARGET_INFO_SESSION_START_TIME VALUES "
                                       "(1700000000000000000), (1700000000000000001);");
    assert_true(import_well(w, NULL).time_base_unknown);
    make(w, GPU NAMES KERNELS ROW("20", "0", PID, "2")
                ROW("-9223372036854775808", "0", PID,
                    "2") "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs); INSERT INTO "
                         "TARGET_INFO_SESSION_START_TIME VALUES "
                         "(9223372036854775800);");
    must_fail(w, "no kernel launch");
}

/* ---- broken, hostile, unfinished ---- */

static void broken(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *sql, *says;
    } cases[] = {
        {"CREATE TABLE t(x);", "no table CUPTI_ACTIVITY_KIND_KERNEL: recorded without --trace=cuda"},
        {GPU NAMES KERNELS, "is empty: no kernel was recorded"},
        {GPU NAMES KERNELS "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start); INSERT INTO "
                           "CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1);",
         "--cuda-graph-trace=node"},
        {GPU NAMES "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, gridX, blockX);",
         "has no column registersPerThread"},
        {GPU NAMES "CREATE VIEW cupti_activity_kind_kernel AS SELECT 1 AS start;",
         "is not an ordinary table"},
        {GPU NAMES "CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_KERNEL USING fts5(start);",
         "is not an ordinary table"},
        {GPU "CREATE VIEW StringIds AS SELECT 1 AS id, load_extension('x') AS value;" KERNELS ROW("1", "0",
                                                                                                  PID, "2"),
         "StringIds is not an ordinary table"},
        {GPU NAMES KERNELS ROW(
             "1", "0", PID,
             "2") "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN graphNodeId AS (start * 2);",
         "it has a computed column"},
        {GPU NAMES KERNELS ROW("1", "0", PID, "2") "CREATE TABLE MPI_RANKS (globalTid AS (1), rank);",
         "MPI_RANKS is not an ordinary table"},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        make(w, cases[i].sql);
        must_fail(w, cases[i].says);
    }
    assert_string_equal(ask(w, "SELECT count(*) FROM stored_run"), "0");
}

/* Each name costs a search of all rows if the table has no key: fine for 100 names, too expensive for 30000.
 */
static void work_is_bounded(void **state)
{
    struct world *w = *state;
    static const char keyless[] =
        GPU "CREATE TABLE StringIds (id INTEGER, value TEXT);" KERNELS
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
            "INSERT INTO StringIds SELECT i, 'k' || i FROM n;"
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT id, id + 1, 0, 1, 7, 1, 0, id, NULL, 32, 1, 1, 1, "
            "32, 1, "
            "1, 0, 0 FROM StringIds;";
    char sql[2048];
    (void)snprintf(sql, sizeof sql, keyless, 100);
    make(w, sql);
    assert_int_equal(import_well(w, NULL).kernels, 100);
    (void)snprintf(sql, sizeof sql, keyless, 30000);
    make(w, sql);
    must_fail(w, "table StringIds: reading it takes more than a valid file of this size can need");
}

/* SQLite keeps the whole schema in memory: 800 tables of 1900 columns, written into sqlite_master. */
static void schemas_are_bounded(void **state)
{
    SKIP_IF_SANITIZED();
    struct world *w = *state;
    make(w, GPU NAMES KERNELS ROW("1", "0", PID, "2"));
    run_sql(
        w,
        "PRAGMA writable_schema=ON;"
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 1899), "
        "list(text) AS (SELECT group_concat('c' || i) FROM n) "
        "INSERT INTO sqlite_master SELECT 'table', 't' || i, 't' || i, 2, 'CREATE TABLE t' || i || ' (c,' || "
        "text || ')' FROM n, list WHERE i <= 800;");
    must_fail(w, "reading it takes more than a valid file of this size can need");
}

#define PAGE 512

static void page_io(FILE *file, bool write, uint32_t number, unsigned char *page)
{
    assert_int_equal(fseek(file, (long)(number - 1) * PAGE, SEEK_SET), 0);
    assert_int_equal(write ? fwrite(page, 1, PAGE, file) : fread(page, 1, PAGE, file), PAGE);
}

static uint32_t number_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Points all child pointers of a table's inner page at `child`. */
static void point_to(unsigned char *page, uint32_t child)
{
    const unsigned char bytes[] = {(unsigned char)(child >> 24), (unsigned char)(child >> 16),
                                   (unsigned char)(child >> 8), (unsigned char)child};
    assert_int_equal(page[0], 5);
    for (int i = (page[3] << 8 | page[4]) - 1; i >= 0; i--)
        memcpy(page + (page[12 + 2 * i] << 8 | page[13 + 2 * i]), bytes, 4);
    memcpy(page + 8, bytes, 4);
}

/* Inner pages with a single child page for all pointers, five levels deep: a small file with a hundred
 * million rows. */
static void shared_pages_are_left(void **state)
{
    struct world *w = *state;
    make(w,
         "PRAGMA page_size = 512;" GPU NAMES KERNELS
         "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
         "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i, i + 1, 0, 1, 7, 1, 0, 1, 2, 32, 1, 1, 1, 32, 1, "
         "1, 0, 0 FROM n;");
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open(w->file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT rootpage FROM sqlite_master WHERE name LIKE 'CUPTI%'", -1,
                                        &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    uint32_t at = (uint32_t)sqlite3_column_int(stmt, 0);
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    unsigned char root[PAGE], inner[PAGE];
    FILE *file = fopen(w->file, "r+b");
    assert_non_null(file);
    page_io(file, false, at, root);
    uint32_t chain = number_at(root + (root[12] << 8 | root[13]));
    page_io(file, false, chain, inner);
    uint32_t leaves[4];
    for (int i = 0; i < 4; i++)
        leaves[i] = number_at(inner + (inner[12 + 2 * i] << 8 | inner[13 + 2 * i]));
    point_to(root, chain);
    page_io(file, true, at, root);
    for (int i = 0; i < 4; i++) { /* all leaves except the last become inner pages */
        point_to(inner, leaves[i]);
        page_io(file, true, i == 0 ? chain : leaves[i - 1], inner);
    }
    (void)fclose(file);
    must_fail(w, "reading it takes more than a valid file of this size can need");
    assert_string_equal(ask(w, "SELECT count(*) FROM stored_run"), "0");
}

/* Rows in a journal beside the file are not in the file yet, so the import refuses the file. */
static void unfinished_files(void **state)
{
    struct world *w = *state;
    char beside[160], link[160];
    make(w, GPU NAMES KERNELS ROW("100", "0", PID, "2"));
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(w->file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode=WAL;" ROW("200", "0", PID, "2"), NULL, NULL, NULL),
                     SQLITE_OK);
    must_fail(w, "-wal is beside it");
    (void)snprintf(link, sizeof link, "%s/link.sqlite", w->directory);
    assert_int_equal(symlink(w->file, link), 0);
    struct world through = *w;
    (void)snprintf(through.file, sizeof through.file, "%s", link);
    must_fail(&through, "-wal is beside it");
    (void)sqlite3_close(db);
    /* after the close the file is still in WAL mode; the import makes no file beside it */
    assert_int_equal(chmod(w->file, 0400), 0);
    assert_int_equal(import_well(w, NULL).launches, 2);
    static const char *const tails[] = {"-wal", "-shm", "-journal"};
    for (size_t i = 0; i < N_OF(tails); i++) {
        (void)snprintf(beside, sizeof beside, "%s%s", w->file, tails[i]);
        assert_int_not_equal(access(beside, F_OK), 0);
    }
}

static void cut_files(void **state)
{
    struct world *w = *state;
    struct stat st;
    make(w, GPU NAMES KERNELS ROW("100", "0", PID, "2"));
    assert_int_equal(stat(w->file, &st), 0);
    assert_int_equal(truncate(w->file, st.st_size - 1), 0);
    must_fail(w, "the file ends inside a page: it was cut off");
    assert_string_equal(ask(w, "SELECT count(*) FROM stored_run"), "0");
}

static void import_meanwhile(void *context, uint64_t done, uint64_t total)
{
    struct world **w = context;
    (void)done;
    (void)total;
    if (*w)
        assert_false(import_well(*w, NULL).known);
    *w = NULL;
}

/* A second handle imports the file while the first reads it: the history has it once. */
static void two_at_once(void **state)
{
    struct world *w = *state, *meanwhile = w;
    make(w, GPU NAMES KERNELS
         "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
         "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i, i + 1, 0, 1, 7, 1, 0, 1, 2, 32, 1, 1, 1, 32, 1, "
         "1, 0, 0 FROM n;");
    static const struct occ_store_options writing = {.mode = OCC_STORE_WRITE};
    const struct occ_import_options options = {.progress = import_meanwhile, .context = &meanwhile};
    struct occ_store *store = NULL;
    struct occ_import_result result;
    assert_int_equal(occ_store_open(w->db, &writing, &store, NULL), 0);
    assert_int_equal(occ_import_file(store, w->file, &options, &result, NULL), 0);
    occ_store_close(store);
    assert_null(meanwhile);
    assert_true(result.known);
    assert_int_equal(result.run, 1);
    assert_string_equal(result.source, "nsys");
    assert_string_equal(ask(w, "SELECT count(*) FROM stored_run"), "1");
    assert_string_equal(ask(w, "SELECT count(*) FROM launch"), "20000");
}

/* Paths with characters that have a meaning in URIs. */
static void odd_paths(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {"//a b", "/50%41?mode=rwc#x&", "/\303\251\377.sqlite", "/file:x"};
    for (size_t i = 0; i < N_OF(names); i++) {
        (void)snprintf(w->file, sizeof w->file, "%s%s", w->directory, names[i]);
        char plain[160];
        (void)snprintf(plain, sizeof plain, "INSERT INTO StringIds VALUES (%zu, 'x');", 50 + i);
        make(w, GPU NAMES KERNELS ROW("100", "0", PID, "2"));
        run_sql(w, plain); /* other content: equal content would count as the same file */
        assert_int_equal(import_well(w, NULL).launches, 1);
    }
    (void)snprintf(w->file, sizeof w->file, "/%s/export.sqlite", w->directory); /* "//tmp/..." */
    make(w, GPU NAMES KERNELS ROW("100", "0", PID, "2"));
    assert_int_equal(import_well(w, NULL).launches, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(version_2022),
        TEST(version_2023),
        TEST(version_2025),
        TEST(version_2026),
        TEST(devices_that_are_not_said),
        TEST(many_processes),
        TEST(many_kernels),
        TEST(gpus_that_are_not_described),
        TEST(two_equal_gpus),
        TEST(named_gpus_stay_apart),
        TEST(named_gpus_of_processes),
        TEST(devices_of_2021),
        TEST(processes_of_2021),
        TEST(skips),
        TEST(implausible_launches),
        TEST(two_at_once),
        TEST(epochs),
        TEST(broken),
        TEST(work_is_bounded),
        TEST(schemas_are_bounded),
        TEST(shared_pages_are_left),
        TEST(unfinished_files),
        TEST(cut_files),
        TEST(odd_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
