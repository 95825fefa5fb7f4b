/*
 * Measures the import of recordings: MB of JSON and rows of Nsight Systems per second, from file to committed
 * history, also by processor time, and the process's memory peak. The benchmark makes the recordings in a
 * temporary directory: JSON with the event mix of real PyTorch traces (one kernel among a dozen events, long
 * template names, call stacks), an export with 2 M launches, and an export with 200 000 kernels, each
 * launched five times, in rounds.
 *
 *   bench_import [MB of JSON] [million rows] [thousand kernels]        default 300, 2 and 200
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "bench_report.h"
#include "import/import.h"

#define NAMES  200
#define SHAPES 12 /* launch configurations of each name */
#define ROUNDS 5  /* launches of each kernel in the export of many kernels */

struct figures {
    double seconds, cpu_seconds, mebibytes;
    uint64_t launches;
    bool failed;
};

static const char device[] =
    "{\"id\": 0, \"name\": \"NVIDIA A100\", \"totalGlobalMem\": 42505273344, \"computeMajor\": 8, "
    "\"computeMinor\": 0, "
    "\"maxThreadsPerBlock\": 1024, \"maxThreadsPerMultiprocessor\": 2048, \"regsPerBlock\": 65536, "
    "\"regsPerMultiprocessor\": 65536, \"warpSize\": 32, \"sharedMemPerBlock\": 49152, "
    "\"sharedMemPerMultiprocessor\": 167936, \"numSms\": 108, \"sharedMemPerBlockOptin\": 166912}";

static void write_host_event(FILE *file, uint64_t i)
{
    (void)fprintf(
        file,
        "  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"aten::op_%llu\", \"pid\": 311, \"tid\": %llu,\n"
        "    \"ts\": %llu.%03llu, \"dur\": %llu,\n    \"args\": {\n      \"External id\": %llu, \"cbid\": "
        "211, "
        "\"correlation\": %llu, \"Input Dims\": [[%llu, 64], [], [3]], \"Call stack\": \"train.py(%llu): "
        "step;"
        "module.py(1190): _call_impl\"\n    }\n  },\n",
        i % 3 ? "cpu_op" : "cuda_runtime", (unsigned long long)(i % 97), (unsigned long long)(i % 4),
        (unsigned long long)(1661203463029566 + i), (unsigned long long)(i % 1000),
        (unsigned long long)(i % 50), (unsigned long long)i, (unsigned long long)i,
        (unsigned long long)(i % 512), (unsigned long long)(i % 900));
}

static void write_kernel(FILE *file, uint64_t i)
{
    (void)fprintf(
        file,
        "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void "
        "at::native::vectorized_elementwise_kernel<4, "
        "at::native::functor_%llu<float>, at::detail::Array<char*, 3> >(int, "
        "at::native::functor_%llu<float>, "
        "at::detail::Array<char*, 3>)\", \"pid\": 0, \"tid\": 7,\n    \"ts\": %llu.%03llu, \"dur\": "
        "%llu.%03llu,\n"
        "    \"args\": {\n      \"External id\": %llu,\n      \"queued\": 0, \"device\": 0, \"context\": 1,\n"
        "      \"stream\": 7, \"correlation\": %llu,\n      \"registers per thread\": %llu,\n"
        "      \"shared memory\": 0,\n      \"blocks per SM\": 8.5,\n      \"warps per SM\": 34,\n"
        "      \"grid\": [%llu, 1, 1],\n      \"block\": [128, 1, 1],\n"
        "      \"est. achieved occupancy %%\": 53\n    }\n  },\n",
        (unsigned long long)(i % NAMES), (unsigned long long)(i % NAMES),
        (unsigned long long)(1661203463029566 + i), (unsigned long long)(i % 1000),
        (unsigned long long)(3 + i % 90), (unsigned long long)(i % 1000), (unsigned long long)i,
        (unsigned long long)i, (unsigned long long)(16 + i % NAMES % 64),
        (unsigned long long)(1 + i / NAMES % SHAPES * 40));
}

static uint64_t make_json(const char *path, uint64_t megabytes)
{
    FILE *file = fopen(path, "w");
    uint64_t kernels = 0;
    if (!file)
        return 0;
    (void)fprintf(file, "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [%s],\n  \"traceEvents\": [\n",
                  device);
    for (uint64_t i = 0; (uint64_t)ftello(file) < megabytes * 1000000; i++) {
        if (i % 12 == 0)
            write_kernel(file, kernels++);
        else
            write_host_event(file, i);
    }
    (void)fprintf(file, "  {\"ph\": \"M\", \"name\": \"end\"}\n  ]\n}\n");
    return fclose(file) == 0 ? kernels : 0;
}

static bool make_nsys(const char *path, uint64_t rows, uint64_t names, uint64_t shapes)
{
    static const char schema[] = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
                                 "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
                                 "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);"
                                 "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1687813257637297504);"
                                 "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, cuDevice INTEGER, "
                                 "smCount INTEGER, computeMajor INTEGER, "
                                 "computeMinor INTEGER);"
                                 "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA A100', 0, 108, 8, 0);"
                                 "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end "
                                 "INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
                                 "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId "
                                 "INTEGER, globalPid INTEGER, demangledName "
                                 "INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, "
                                 "launchType INTEGER, cacheConfig INTEGER, "
                                 "registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER "
                                 "NOT NULL, gridZ INTEGER NOT NULL, "
                                 "blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, "
                                 "staticSharedMemory INTEGER NOT NULL, "
                                 "dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT "
                                 "NULL, localMemoryTotal INTEGER NOT NULL, "
                                 "gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId "
                                 "INTEGER, sharedMemoryLimitConfig INTEGER);"
                                 "BEGIN;";
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    bool good =
        sqlite3_open(path, &db) == SQLITE_OK && sqlite3_exec(db, schema, NULL, NULL, NULL) == SQLITE_OK;
    for (uint64_t i = 0; i < names && good; i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO StringIds VALUES (%llu, "
                       "'_ZN2at6native29vectorized_elementwise_kernelILi4EN7functor%lluEEEvi')",
                       (unsigned long long)i, (unsigned long long)i);
        good = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
    }
    good =
        good && sqlite3_prepare_v2(
                    db,
                    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?1 * 9000, ?1 * 9000 + 5000 + ?2, 0, "
                    "1, 7, ?1, 302119223558144, ?2, ?2, ?2, 1, 1, 16 + ?2 % 64, 1 + ?3 * 40, 1, 1, 128, 1, "
                    "1, 0, 0, 0, 127401984, ?1, 16384, NULL, 0)",
                    -1, &stmt, NULL) == SQLITE_OK;
    for (uint64_t i = 0; i < rows && good; i++) {
        (void)sqlite3_bind_int64(stmt, 1, (int64_t)i + 1);
        (void)sqlite3_bind_int64(stmt, 2, (int64_t)(i % names));
        (void)sqlite3_bind_int64(stmt, 3, (int64_t)(i / names % shapes));
        good = sqlite3_step(stmt) == SQLITE_DONE;
        (void)sqlite3_reset(stmt);
    }
    (void)sqlite3_finalize(stmt);
    good = good && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
    (void)sqlite3_close(db);
    return good;
}

/* Imports in a child process, so that the memory peak is the import's own. */
static struct figures measure(const char *db, const char *path)
{
    struct figures figures = {.failed = true};
    int pair[2];
    if (pipe(pair) != 0)
        return figures;
    pid_t pid = fork();
    if (pid == 0) {
        static const struct occ_import_options options = {.again = true};
        static const struct occ_store_options writing = {.mode = OCC_STORE_WRITE};
        struct occ_import_result result = {0};
        struct occ_error err = OCC_ERROR_INIT;
        struct occ_store *store = NULL;
        double begin = bench_now_ns();
        int status = occ_store_open(db, &writing, &store, &err);
        if (status == 0)
            status = occ_import_file(store, path, &options, &result, &err);
        occ_store_close(store);
        if (status != 0)
            (void)fprintf(stderr, "bench_import: %s\n", err.message);
        figures = (struct figures){
            .seconds = (bench_now_ns() - begin) * 1e-9, .launches = result.launches, .failed = status != 0};
        _exit(write(pair[1], &figures, sizeof figures) == (ssize_t)sizeof figures ? 0 : 1);
    }
    struct rusage usage;
    (void)close(pair[1]);
    bool read_all = read(pair[0], &figures, sizeof figures) == (ssize_t)sizeof figures;
    (void)close(pair[0]);
    if (wait4(pid, NULL, 0, &usage) != pid || !read_all)
        return (struct figures){.failed = true};
    figures.mebibytes = (double)usage.ru_maxrss / 1024;
    figures.cpu_seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                          (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    return figures;
}

/* Makes, measures and removes an export with this number of rows. */
static struct figures measure_nsys(const char *db, const char *path, uint64_t rows, uint64_t names,
                                   uint64_t shapes)
{
    struct figures figures = {.failed = true};
    if (make_nsys(path, rows, names, shapes))
        figures = measure(db, path);
    (void)remove(path);
    figures.failed |= figures.launches != rows;
    return figures;
}

static void print_rows(const char *name, const struct figures *f)
{
    (void)printf("  \"%s_rows_per_s\": {\"value\": %.0f, \"target\": 1000000, \"rows\": %llu},\n"
                 "  \"%s_rows_per_cpu_s\": {\"value\": %.0f},\n"
                 "  \"%s_peak_mib\": {\"value\": %.1f, \"target\": 64}",
                 name, (double)f->launches / f->seconds, (unsigned long long)f->launches, name,
                 (double)f->launches / f->cpu_seconds, name, f->mebibytes);
}

int main(int argc, char **argv)
{
    char directory[] = "/tmp/bench_import_XXXXXX", json[64], nsys[64], db[64], command[128];
    uint64_t megabytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 300;
    uint64_t rows = (uint64_t)((argc > 2 ? strtod(argv[2], NULL) : 2) * 1e6);
    uint64_t names = (argc > 3 ? strtoull(argv[3], NULL, 10) : 200) * 1000;
    struct stat status = {0};
    if (!mkdtemp(directory))
        return 1;
    (void)snprintf(json, sizeof json, "%s/trace.json", directory);
    (void)snprintf(nsys, sizeof nsys, "%s/report.sqlite", directory);
    (void)snprintf(db, sizeof db, "%s/history.db", directory);
    uint64_t kernels = make_json(json, megabytes);
    struct figures of_json = {.failed = true};
    if (kernels > 0 && stat(json, &status) == 0)
        of_json = measure(db, json);
    const struct figures of_nsys = measure_nsys(db, nsys, rows, NAMES, SHAPES);
    (void)remove(db);
    const struct figures of_many = measure_nsys(db, nsys, names * ROUNDS, names, 1);
    (void)snprintf(command, sizeof command, "rm -r %s", directory);
    int removed = system(command);
    if (removed != 0 || of_json.failed || of_nsys.failed || of_many.failed || of_json.launches != kernels) {
        (void)fprintf(stderr, "bench_import: failed\n");
        return 1;
    }
    (void)printf(
        "{\"benchmark\": \"import\",\n"
        "  \"json_mb_per_s\": {\"value\": %.0f, \"target\": 200, \"bytes\": %lld, \"launches\": %llu},\n"
        "  \"json_mb_per_cpu_s\": {\"value\": %.0f},\n"
        "  \"json_peak_mib\": {\"value\": %.1f, \"target\": 64},\n",
        (double)status.st_size / 1e6 / of_json.seconds, (long long)status.st_size,
        (unsigned long long)of_json.launches, (double)status.st_size / 1e6 / of_json.cpu_seconds,
        of_json.mebibytes);
    print_rows("nsys", &of_nsys);
    (void)printf(",\n  \"many_kernels\": {\"value\": %llu},\n", (unsigned long long)names);
    print_rows("many_kernels", &of_many);
    (void)printf("}\n");
    return 0;
}
