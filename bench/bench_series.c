/*
 * Measures the cost of counters in the history: bench_series [DIRECTORY]
 *
 *   samples  nanoseconds and bytes per sample of one GPU at 1 ms, with a commit every second of sample time,
 *            seconds included; and of the same samples as plain SQLite rows (prepared INSERT, a transaction
 *            every second)
 *   values   the same for launches with a direct measurement, 300 per second
 *   read     nanoseconds per row of sums over device_sample, and over a measured column of launch together
 *            with another column
 *
 * An hour of samples, ten minutes of launches. The counters are made up: phases of some seconds with
 * different levels, 1 % of noise, in the steps of a GPU's integers; every third sample has stalls. CPU times
 * of this thread, the median of three. JSON on stdout.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>

#include "bench_report.h"
#include "store/store.h"

#define BEGIN       (INT64_C(1700000000) * 1000000000)
#define MS          INT64_C(1000000)
#define PER_S       1000u
#define SAMPLES     (3600u * PER_S)
#define VALUES_A_S  300u
#define VALUES      (600u * VALUES_A_S)
#define SHAPES      50u
#define REPETITIONS 3

struct cost {
    double ns, bytes;
};

struct history {
    struct occ_store *store;
    int64_t run, device, kernel;
    uint32_t shape[SHAPES];
    uint64_t seed;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_series: %s\n", what);
    exit(1);
}

static void check(int rc, const struct occ_error *err)
{
    if (rc != 0)
        die(err->message);
}

static double cpu_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void remove_history(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char name[4200];
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
}

static double file_bytes(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        die("cannot read the file's size");
    double bytes = (double)ftell(file);
    (void)fclose(file);
    return bytes;
}

/* 0...1 */
static double next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

/* Approximately normal, sigma 1. */
static double next_noise(uint64_t *seed)
{
    double sum = -2;
    for (int i = 0; i < 4; i++)
        sum += next_random(seed);
    return sum * 1.732;
}

static double near(uint64_t *seed, double level)
{
    return fmin(fmax(level * (1 + 0.01 * next_noise(seed)), 0), 1);
}

static struct occ_device_sample make_sample(uint64_t *seed, uint32_t i)
{
    uint64_t phase = 1 + i / 3000 * UINT64_C(0x9e3779b97f4a7c15);
    double level = next_random(&phase) * 0.8, active = fmin(level + next_random(&phase), 1);
    bool stalls = i % 3 == 0;
    double stall[5];
    for (int k = 0; k < 5; k++)
        stall[k] = stalls ? near(seed, k == (int)(i / 3000 % 5) ? 0.4 : 0) : NAN;
    return (struct occ_device_sample){.start_ns = BEGIN + i * MS,
                                      .end_ns = BEGIN + (i + 1) * MS,
                                      .elapsed = near(seed, level),
                                      .sm_active = near(seed, active),
                                      .resident_blocks = 8 * near(seed, level),
                                      .stall_registers = stall[0],
                                      .stall_shared_memory = stall[1],
                                      .stall_blocks = stall[2],
                                      .stall_warps = stall[3],
                                      .stall_barriers = stall[4]};
}

static void open_history(struct history *h, const char *path)
{
    struct occ_error err = OCC_ERROR_INIT;
    *h = (struct history){.seed = 42};
    remove_history(path);
    check(occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_WRITE}, &h->store, &err), &err);
    struct occ_run run = {.uuid = {1}, .start_ns = BEGIN, .hostname = "bench", .exe = "bench_series"};
    struct occ_store_device device = {
        .uuid = {1}, .name = "NVIDIA H200", .limits = {.cc = 90, .sm_count = 132}};
    check(occ_store_put_run(h->store, &run, &h->run, &err), &err);
    check(occ_store_put_device(h->store, &device, &h->device, &err), &err);
    check(occ_store_put_kernel(h->store, "_Z6kernelPf", 1, &h->kernel, &err), &err);
    for (uint32_t i = 0; i < SHAPES; i++) {
        int64_t shape = 0;
        struct occ_launch_config description = {
            .kernel = h->kernel,
            .device = h->device,
            .launch = {.grid = {64 + i, 1, 1}, .block = {256, 1, 1}, .carveout_percent = -1}};
        check(occ_store_put_config(h->store, &description, &shape, &err), &err);
        h->shape[i] = (uint32_t)shape;
    }
}

static void finish(struct history *h)
{
    struct occ_error err = OCC_ERROR_INIT;
    check(occ_store_finish(h->store, &err), &err);
    occ_store_close(h->store);
}

static struct cost pack_samples(const char *path)
{
    static struct occ_device_sample samples[PER_S];
    struct occ_error err = OCC_ERROR_INIT;
    struct history h;
    double cpu = 0;
    open_history(&h, path);
    for (uint32_t i = 0; i < SAMPLES;) {
        for (uint32_t k = 0; k < PER_S; k++, i++)
            samples[k] = make_sample(&h.seed, i);
        double begin = cpu_now_ns();
        check(occ_store_add_samples(h.store, h.device, samples, PER_S, &err), &err);
        check(occ_store_commit(h.store, &err), &err);
        cpu += cpu_now_ns() - begin;
    }
    finish(&h);
    return (struct cost){cpu / SAMPLES, file_bytes(path) / SAMPLES};
}

static void execute(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        die(sqlite3_errmsg(db));
}

static void insert_plain(sqlite3 *db, sqlite3_stmt *insert, const struct occ_device_sample *s)
{
    const double values[] = {s->elapsed,         s->sm_active,           s->resident_blocks,
                             s->stall_registers, s->stall_shared_memory, s->stall_blocks,
                             s->stall_warps,     s->stall_barriers};
    (void)sqlite3_bind_int64(insert, 1, s->start_ns);
    (void)sqlite3_bind_int64(insert, 2, s->end_ns - s->start_ns);
    (void)sqlite3_bind_int64(insert, 3, 1);
    for (int k = 0; k < 8; k++)
        (void)sqlite3_bind_double(insert, 4 + k, values[k]);
    if (sqlite3_step(insert) != SQLITE_DONE)
        die(sqlite3_errmsg(db));
    (void)sqlite3_reset(insert);
}

static struct cost plain_samples(const char *path)
{
    static struct occ_device_sample samples[PER_S];
    sqlite3 *db = NULL;
    sqlite3_stmt *insert = NULL;
    uint64_t seed = 42;
    double cpu = 0;
    remove_history(path);
    if (sqlite3_open(path, &db) != SQLITE_OK)
        die("cannot make the plain table");
    execute(
        db,
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE sample(start INTEGER PRIMARY KEY, "
        "duration INTEGER, device INTEGER, a REAL, b REAL, c REAL, d REAL, e REAL, f REAL, g REAL, h REAL)");
    if (sqlite3_prepare_v2(db, "INSERT INTO sample VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", -1, &insert,
                           NULL) != SQLITE_OK)
        die(sqlite3_errmsg(db));
    for (uint32_t i = 0; i < SAMPLES;) {
        for (uint32_t k = 0; k < PER_S; k++, i++)
            samples[k] = make_sample(&seed, i);
        double begin = cpu_now_ns();
        execute(db, "BEGIN");
        for (uint32_t k = 0; k < PER_S; k++)
            insert_plain(db, insert, &samples[k]);
        execute(db, "COMMIT");
        cpu += cpu_now_ns() - begin;
    }
    execute(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    (void)sqlite3_finalize(insert);
    (void)sqlite3_close(db);
    return (struct cost){cpu / SAMPLES, file_bytes(path) / SAMPLES};
}

/* Packs launches, and with `measured` their values a second later. Returns the cost of the values alone. */
static struct cost pack_values(const char *path, bool measured)
{
    static struct occ_store_launch launches[VALUES_A_S];
    static struct occ_launch_value values[VALUES_A_S];
    struct occ_error err = OCC_ERROR_INIT;
    struct history h;
    double cpu = 0;
    open_history(&h, path);
    for (uint32_t i = 0; i < VALUES;) {
        for (uint32_t k = 0; k < VALUES_A_S; k++, i++) {
            uint32_t shape = (uint32_t)(next_random(&h.seed) * SHAPES);
            double level = 0.1 + 0.8 * shape / SHAPES;
            launches[k] = (struct occ_store_launch){.start_ns = BEGIN + (int64_t)i * 3333333 +
                                                                (int64_t)(next_random(&h.seed) * 20000) * 32,
                                                    .duration_ns = (uint64_t)(3100000 * near(&h.seed, 0.9)),
                                                    .config = h.shape[shape],
                                                    .stream = 7,
                                                    .correlation = i * 3 + 100,
                                                    .context = 1};
            values[k] = (struct occ_launch_value){.start_ns = launches[k].start_ns,
                                                  .correlation = launches[k].correlation,
                                                  .config = launches[k].config,
                                                  .achieved = near(&h.seed, level),
                                                  .achieved_error = 0.004 * near(&h.seed, 0.9),
                                                  .elapsed = near(&h.seed, level * 0.9),
                                                  .elapsed_error = 0.004 * near(&h.seed, 0.9)};
        }
        check(occ_store_append(h.store, h.run, h.device, launches, VALUES_A_S, &err), &err);
        check(occ_store_commit(h.store, &err), &err);
        double begin = cpu_now_ns();
        if (measured)
            check(occ_store_add_launch_values(h.store, h.run, h.device, values, VALUES_A_S, &err), &err);
        check(occ_store_commit(h.store, &err), &err);
        cpu += cpu_now_ns() - begin;
    }
    finish(&h);
    return (struct cost){cpu / VALUES, file_bytes(path) / VALUES};
}

/* Returns nanoseconds of a statement per row. */
static double scan(const char *path, const char *sql, uint32_t rows)
{
    struct occ_store *store = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    double times[REPETITIONS];
    check(occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, &err), &err);
    for (int i = 0; i < REPETITIONS; i++) {
        double begin = cpu_now_ns();
        execute(occ_store_sqlite(store), sql);
        times[i] = (cpu_now_ns() - begin) / rows;
    }
    occ_store_close(store);
    return bench_median(times, REPETITIONS);
}

static double number(const char *path, const char *sql)
{
    struct occ_store *store = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    sqlite3_stmt *stmt = NULL;
    check(occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, &err), &err);
    if (sqlite3_prepare_v2(occ_store_sqlite(store), sql, -1, &stmt, NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW)
        die(sqlite3_errmsg(occ_store_sqlite(store)));
    double value = sqlite3_column_double(stmt, 0);
    (void)sqlite3_finalize(stmt);
    occ_store_close(store);
    return value;
}

static double median_ns(struct cost (*run)(const char *path), const char *path, double *ret_bytes)
{
    double times[REPETITIONS];
    for (int i = 0; i < REPETITIONS; i++) {
        struct cost cost = run(path);
        times[i] = cost.ns;
        *ret_bytes = cost.bytes;
    }
    return bench_median(times, REPETITIONS);
}

/* Returns the decrease of the file's size after its seconds are deleted. */
static double seconds_bytes(const char *path)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK)
        die("cannot open the history");
    execute(db, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
    double with = file_bytes(path);
    execute(db, "DELETE FROM stored_device_second; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
    (void)sqlite3_close(db);
    return with - file_bytes(path);
}

static void measure_samples(const char *path)
{
    double plain_bytes = 0, bytes = 0;
    double plain_ns = median_ns(plain_samples, path, &plain_bytes);
    double ns = median_ns(pack_samples, path, &bytes);
    double packed = number(path, "SELECT sum(length(data)) FROM stored_series_chunk") / SAMPLES;
    (void)printf("  \"samples\": {\"n\": %u, \"ns_per_sample\": %.0f, \"plain_ns_per_sample\": %.0f, "
                 "\"bytes_per_sample\": %.2f, \"bytes_per_sample_without_seconds\": %.2f, "
                 "\"plain_bytes_per_sample\": %.2f, \"bytes_over_plain\": %.2f},\n",
                 SAMPLES, ns, plain_ns, bytes, packed, plain_bytes, bytes / plain_bytes);
    (void)printf("  \"read_samples\": {\"sum_elapsed_ns_per_sample\": %.1f},\n",
                 scan(path, "SELECT sum(elapsed) FROM device_sample", SAMPLES));
    (void)printf("  \"seconds\": {\"bytes_per_second\": %.1f},\n", seconds_bytes(path) / (SAMPLES / PER_S));
}

static struct cost measured_values(const char *path)
{
    return pack_values(path, true);
}

static void measure_values(const char *path)
{
    double with = 0;
    double launches = pack_values(path, false).bytes;
    double ns = median_ns(measured_values, path, &with);
    (void)printf("  \"values\": {\"n\": %u, \"ns_per_value\": %.0f, \"bytes_per_value\": %.2f, "
                 "\"bytes_per_launch_without\": %.2f, \"value_over_launch\": %.2f},\n",
                 VALUES, ns, with - launches, launches, (with - launches) / launches);
    double shape = scan(path, "SELECT max(config_id) FROM launch", VALUES);
    double start =
        scan(path, "SELECT max(start_ns), max(correlation_id), max(config_id) FROM launch", VALUES);
    double achieved = scan(path, "SELECT max(achieved) FROM launch", VALUES);
    (void)printf("  \"read_values\": {\"max_shape_ns_per_launch\": %.1f, "
                 "\"max_start_correlation_shape_ns_per_launch\": %.1f, "
                 "\"max_achieved_ns_per_launch\": %.1f, \"achieved_over_those_three\": %.2f}\n",
                 shape, start, achieved, achieved / start);
}

int main(int argc, char **argv)
{
    const char *directory = argc > 1 ? argv[1] : getenv("TMPDIR");
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/occ-bench-%ld.db", directory && *directory ? directory : "/tmp",
                   (long)getpid());
    (void)printf("{\n  \"benchmark\": \"series\",\n");
    bench_print_machine();
    (void)printf(",\n");
    measure_samples(path);
    measure_values(path);
    (void)printf("}\n");
    remove_history(path);
    return 0;
}
