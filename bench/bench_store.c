/*
 * Measures the cost of the history: bench_store [--large] [--keep] [DIRECTORY]
 *
 *   codec         bytes and nanoseconds per launch of the codec alone (bench_codec.c)
 *   packed        launches/s into 64 k-row chunks with a commit every million; every wall-clock second; and
 *                 every second of launch time (level-0 chunks of 1250 rows, the most expensive case)
 *   plain         the same launches as plain SQLite rows (prepared INSERT, transactions of 10 k)
 *   bytes         file size per launch, rollups included
 *   scan, newest  SQL over the table `launch`, and the same over a table that only counts (bench_sql.c)
 *   top           milliseconds of the query alone, for the last hour and all time; cold: a new connection,
 *                 the file dropped from the page cache
 *   top_measured  the same for a day of one run that launches and measures its configurations every minute
 *
 * 8 GPUs, 10 k launches/s together, 1000 configurations each (generate.h). The times are CPU times of this
 * thread without the generator, except the queries' times. --large: 10^8 launches instead of 10^7 (minutes).
 * JSON on stdout.
 */
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>

#include "bench_codec.h"
#include "bench_report.h"
#include "bench_sql.h"
#include "generate.h"
#include "store/measured.h"

#define GPUS        8u
#define SHAPES      1000u
#define BEGIN       (INT64_C(1700000000) * 1000000000)
#define MINUTE_NS   INT64_C(60000000000)
#define DAY_MINUTES 1440u

struct history {
    const char *path;
    struct occ_store *store;
    struct generator *generator;
    int64_t run[GPUS], device[GPUS];
    uint32_t shape[GPUS][SHAPES];
    uint64_t n;
    double cpu_ns;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_store: %s\n", what);
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

static void put_shapes(struct history *h, uint32_t gpu)
{
    struct occ_error err = OCC_ERROR_INIT;
    for (uint32_t i = 0; i < SHAPES; i++) {
        char name[64];
        int64_t kernel = 0, shape = 0;
        (void)snprintf(name, sizeof name, "_Z9kernel%03uPfPKfi", i / 4);
        check(occ_store_put_kernel(h->store, name, i / 4 + 1, &kernel, &err), &err);
        struct occ_launch_config description = {.kernel = kernel,
                                                .device = h->device[gpu],
                                                .launch = {.grid = {64 + 32 * i, 1, 1},
                                                           .block = {32 * (1 + i % 16), 1, 1},
                                                           .registers_per_thread = 24 + i % 100,
                                                           .carveout_percent = -1}};
        check(occ_store_put_config(h->store, &description, &shape, &err), &err);
        h->shape[gpu][i] = (uint32_t)shape;
    }
}

static void open_history(struct history *h, const char *path, bool step)
{
    struct occ_error err = OCC_ERROR_INIT;
    *h = (struct history){.path = path};
    remove_history(path);
    check(occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_WRITE}, &h->store, &err), &err);
    h->generator = generate_new(&(struct generate_settings){.seed = 42,
                                                            .start_ns = BEGIN,
                                                            .gpus = GPUS,
                                                            .shapes = SHAPES,
                                                            .launches_per_s = 10000,
                                                            .step = step});
    if (!h->generator)
        die("out of memory");
    for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
        struct occ_run run = {
            .uuid = {(uint8_t)(gpu + 1)}, .start_ns = BEGIN, .hostname = "bench", .exe = "bench_store"};
        struct occ_store_device device = {
            .uuid = {(uint8_t)(gpu + 1)}, .name = "NVIDIA H200", .limits = {.cc = 90, .sm_count = 132}};
        check(occ_store_put_run(h->store, &run, &h->run[gpu], &err), &err);
        check(occ_store_put_device(h->store, &device, &h->device[gpu], &err), &err);
        put_shapes(h, gpu);
    }
}

static void close_history(struct history *h)
{
    occ_store_close(h->store);
    generate_free(h->generator);
}

/* Paces of commits. */
enum pace { PACE_MILLION, PACE_WALL_SECOND, PACE_OWN_SECOND };

static bool is_due(enum pace pace, uint64_t since_rows, double since_ns)
{
    return pace == PACE_MILLION       ? since_rows >= 1000000
           : pace == PACE_WALL_SECOND ? since_ns >= 1e9
                                      : since_rows >= 10000;
}

/* Appends like the daemon: commits first if too many launches wait. */
static void append(struct history *h, uint32_t gpu, const struct occ_store_launch *launches, uint32_t n)
{
    struct occ_error err = OCC_ERROR_INIT;
    int rc = occ_store_append(h->store, h->run[gpu], h->device[gpu], launches, n, &err);
    if (rc == OCC_E_FULL) {
        check(occ_store_commit(h->store, &err), &err);
        rc = occ_store_append(h->store, h->run[gpu], h->device[gpu], launches, n, &err);
    }
    check(rc, &err);
}

/* Appends in pieces of one GPU's second (1250 launches), so that every commit has launches of every GPU. */
static void fill(struct history *h, uint64_t n, enum pace pace)
{
    static struct occ_store_launch launches[GPUS][GENERATE_BLOCK];
    uint32_t used[GPUS];
    struct occ_error err = OCC_ERROR_INIT;
    uint64_t since_rows = 0;
    double commit_ns = 0; /* CPU time since the last commit */
    for (uint32_t gpu = 0; gpu < GPUS; gpu++)
        used[gpu] = GENERATE_BLOCK;
    for (uint64_t done = 0; done < n;) {
        for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
            for (uint32_t left = 1250; left > 0;) {
                if (used[gpu] == GENERATE_BLOCK) {
                    generate_block(h->generator, gpu, launches[gpu]);
                    for (uint32_t i = 0; i < GENERATE_BLOCK; i++)
                        launches[gpu][i].config = h->shape[gpu][launches[gpu][i].config];
                    used[gpu] = 0;
                }
                uint32_t piece = GENERATE_BLOCK - used[gpu] < left ? GENERATE_BLOCK - used[gpu] : left;
                double begin = cpu_now_ns();
                append(h, gpu, launches[gpu] + used[gpu], piece);
                h->cpu_ns += cpu_now_ns() - begin;
                used[gpu] += piece;
                left -= piece;
            }
        }
        done += 1250u * GPUS;
        since_rows += 1250u * GPUS;
        if (is_due(pace, since_rows, h->cpu_ns - commit_ns)) {
            double begin = cpu_now_ns();
            check(occ_store_commit(h->store, &err), &err);
            h->cpu_ns += cpu_now_ns() - begin;
            commit_ns = h->cpu_ns;
            since_rows = 0;
        }
        h->n = done;
    }
    double begin = cpu_now_ns();
    check(occ_store_finish(h->store, &err), &err);
    h->cpu_ns += cpu_now_ns() - begin;
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

static void execute(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        die(sqlite3_errmsg(db));
}

/* Writes the same launches as plain rows; returns launches per second. */
static double plain_rows(const char *path, uint64_t n, double *ret_bytes)
{
    static struct occ_store_launch launches[GENERATE_BLOCK];
    struct generator *g = generate_new(&(struct generate_settings){
        .seed = 42, .start_ns = BEGIN, .gpus = GPUS, .shapes = SHAPES, .launches_per_s = 10000});
    sqlite3 *db = NULL;
    sqlite3_stmt *insert = NULL;
    remove_history(path);
    if (!g || sqlite3_open(path, &db) != SQLITE_OK)
        die("cannot make the plain table");
    execute(
        db,
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536; CREATE TABLE "
        "launch(id INTEGER "
        "PRIMARY KEY, start INTEGER, duration INTEGER, graph_node INTEGER, shape INTEGER, stream INTEGER, "
        "correlation INTEGER, context INTEGER, run INTEGER, device INTEGER); BEGIN");
    if (sqlite3_prepare_v2(db, "INSERT INTO launch VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)", -1, &insert,
                           NULL) != SQLITE_OK)
        die(sqlite3_errmsg(db));
    double cpu = 0;
    uint64_t done = 0;
    for (uint32_t gpu = 0; done < n; gpu = (gpu + 1) % GPUS) {
        generate_block(g, gpu, launches);
        double begin = cpu_now_ns();
        for (uint32_t i = 0; i < GENERATE_BLOCK; i++) {
            const struct occ_store_launch *l = &launches[i];
            const int64_t values[] = {l->start_ns,
                                      (int64_t)l->duration_ns,
                                      (int64_t)l->graph_node,
                                      l->config,
                                      l->stream,
                                      l->correlation,
                                      l->context,
                                      gpu + 1,
                                      gpu + 1};
            for (int k = 0; k < 9; k++)
                (void)sqlite3_bind_int64(insert, k + 1, values[k]);
            if (sqlite3_step(insert) != SQLITE_DONE)
                die(sqlite3_errmsg(db));
            (void)sqlite3_reset(insert);
            if (++done % 10000 == 0)
                execute(db, "COMMIT; BEGIN");
        }
        cpu += cpu_now_ns() - begin;
    }
    double begin = cpu_now_ns();
    execute(db, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
    cpu += cpu_now_ns() - begin;
    (void)sqlite3_finalize(insert);
    (void)sqlite3_close(db);
    generate_free(g);
    *ret_bytes = file_bytes(path) / (double)done;
    remove_history(path);
    return (double)done / cpu * 1e9;
}

static struct occ_store *open_reader(const char *path)
{
    struct occ_store *store = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    check(occ_store_open(path, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, &err), &err);
    return store;
}

static double ask_top(struct occ_store *store, const struct occ_filter *filter)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_top top;
    double begin = bench_now_ns();
    check(occ_store_top(store, filter, OCC_TOP_BY_KERNEL, &top, &err), &err);
    double took = bench_now_ns() - begin;
    occ_top_free(&top);
    return took / 1e6;
}

static double cold_top(const char *path, const struct occ_filter *filter)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        die("cannot drop the file from the page cache");
    (void)close(fd);
    double begin = bench_now_ns();
    struct occ_store *store = open_reader(path);
    (void)ask_top(store, filter);
    double took = (bench_now_ns() - begin) / 1e6;
    occ_store_close(store);
    return took;
}

static void print_top(const char *name, const char *path, const struct occ_filter *filter, const char *end)
{
    struct occ_store *store = open_reader(path);
    double warm[7], cold[3];
    (void)ask_top(store, filter);
    for (int i = 0; i < 7; i++)
        warm[i] = ask_top(store, filter);
    occ_store_close(store);
    for (int i = 0; i < 3; i++)
        cold[i] = cold_top(path, filter);
    (void)printf("    \"%s\": {\"warm_ms\": %.1f, \"cold_ms\": %.1f}%s\n", name, bench_median(warm, 7),
                 bench_median(cold, 3), end);
}

static double rate(const struct history *h)
{
    return (double)h->n / h->cpu_ns * 1e9;
}

/* Fills a history at a pace and removes it; returns launches per second. */
static double rate_at(const char *path, uint64_t n, enum pace pace, bool step, double *ret_bytes)
{
    struct history h;
    open_history(&h, path, step);
    fill(&h, n, pace);
    close_history(&h);
    double result = rate(&h);
    *ret_bytes = file_bytes(path) / (double)n;
    remove_history(path);
    return result;
}

/* Adds a minute of the first GPU: one launch of every configuration, and measured sums as of a full minute.
 */
static void add_minute(struct history *h, int64_t minute)
{
    static struct occ_store_launch launches[SHAPES];
    struct occ_error err = OCC_ERROR_INIT;
    for (uint32_t i = 0; i < SHAPES; i++) {
        struct occ_measured_sums sums = {.direct = i % 5, .regression = 20, .overlapped = i % 20};
        for (int k = 0; k < OCC_MEASURED_group_achieved; k++) { /* without values of groups */
            sums.ns[k] = 1e6 + i;
            sums.sum[k] = sums.ns[k] * (double)(minute % 60 + 1) / 64;
        }
        launches[i] = (struct occ_store_launch){
            .start_ns = minute * MINUTE_NS + i * 50000, .duration_ns = 40000, .config = h->shape[0][i]};
        check(occ_store_add_measured(h->store, minute, h->run[0], h->shape[0][i], &sums, &err), &err);
    }
    check(occ_store_append(h->store, h->run[0], h->device[0], launches, SHAPES, &err), &err);
    check(occ_store_commit(h->store, &err), &err);
}

static void print_top_measured(const char *path)
{
    struct history h;
    struct occ_error err = OCC_ERROR_INIT;
    const int64_t first = BEGIN / MINUTE_NS + 1;
    open_history(&h, path, false);
    for (int64_t i = 0; i < DAY_MINUTES; i++)
        add_minute(&h, first + i);
    check(occ_store_finish(h.store, &err), &err);
    close_history(&h);
    struct occ_filter all = {0}, hour = {.since_ns = (first + DAY_MINUTES - 60) * MINUTE_NS};
    (void)printf("  \"top_measured\": {\n    \"rows\": %u,\n", SHAPES * DAY_MINUTES);
    print_top("all_time", path, &all, ",");
    print_top("last_hour", path, &hour, "");
    (void)printf("  }\n");
    remove_history(path);
}

static void measure(const char *path, uint64_t n, bool keep)
{
    struct history h;
    double plain_bytes = 0, second_bytes = 0, own_bytes = 0, step_bytes = 0;
    uint64_t less = 4000000; /* enough for a steady rate */
    double plain = 0, own = 0;
    for (int i = 0; i < 3; i++) { /* in turn, the best of each: other programs may slow one down */
        plain = fmax(plain, plain_rows(path, less / 2, &plain_bytes));
        own = fmax(own, rate_at(path, less, PACE_OWN_SECOND, false, &own_bytes));
    }
    double second = rate_at(path, less, PACE_WALL_SECOND, false, &second_bytes);
    double step = rate_at(path, less, PACE_MILLION, true, &step_bytes);
    open_history(&h, path, false);
    fill(&h, n, PACE_MILLION);
    close_history(&h);
    (void)printf("  \"launches\": %llu,\n", (unsigned long long)n);
    (void)printf(
        "  \"launches_per_s\": {\"plain_rows\": %.0f, \"packed\": %.0f, \"packed_commit_each_second\": %.0f, "
        "\"packed_commit_each_own_second\": %.0f, \"packed_training_step\": %.0f},\n",
        plain, rate(&h), second, own, step);
    (void)printf("  \"packed_over_plain\": {\"commit_each_second\": %.2f, \"commit_each_own_second\": %.2f, "
                 "\"target\": 2.5},\n",
                 second / plain, own / plain);
    (void)printf("  \"bytes_per_launch\": {\"plain_rows\": %.2f, \"packed\": %.2f, "
                 "\"packed_commit_each_own_second\": %.2f, "
                 "\"training_step\": %.2f, \"target\": 6.5},\n",
                 plain_bytes, file_bytes(path) / (double)n, own_bytes, step_bytes);
    bench_sql_print(path, n);
    int64_t end_ns = BEGIN + (int64_t)(n / 10000) * 1000000000;
    struct occ_filter all = {0}, hour = {.since_ns = end_ns - INT64_C(3600000000000)};
    struct occ_filter minutes = {.since_ns = end_ns - INT64_C(300000000000)};
    (void)printf("  \"top\": {\n");
    print_top("all_time", path, &all, ",");
    print_top("last_hour", path, &hour, ",");
    print_top("last_5_minutes", path, &minutes, "");
    (void)printf("  },\n");
    if (!keep)
        remove_history(path);
}

int main(int argc, char **argv)
{
    const char *directory = getenv("TMPDIR");
    bool large = false, keep = false;
    char path[4096];
    for (int i = 1; i < argc; i++) {
        large |= strcmp(argv[i], "--large") == 0;
        keep |= strcmp(argv[i], "--keep") == 0;
        if (argv[i][0] != '-')
            directory = argv[i];
    }
    (void)snprintf(path, sizeof path, "%s/occ-bench-%ld.db", directory && *directory ? directory : "/tmp",
                   (long)getpid());
    (void)printf("{\n  \"benchmark\": \"store\",\n");
    bench_print_machine();
    (void)printf(",\n");
    bench_codec_print();
    measure(path, large ? 100000000 : 10000000, keep);
    (void)snprintf(path + strlen(path), sizeof path - strlen(path), "-measured");
    print_top_measured(path);
    (void)printf("}\n");
    return 0;
}
