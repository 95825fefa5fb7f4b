/*
 * Measures the path from rings through the collector to a store on disk, on one core, and the daemon at a
 * steady pace. Prints one JSON object on stdout.
 *
 *   crash_window_1s  250 k launches per second of made-up time; a commit after each such second or at a
 *                    half-full ring (the default size), whichever is first
 *   chunks_64k       a commit every million launches: full chunks only
 *   plain_rows       for comparison: the same launches as plain SQLite rows in transactions of 128 k
 *   paced            the program occtraced with 80 k launches per second from this process: its CPU and
 *                    memory
 *   owners           the service with 250 k launches per second of 1 owner, then of 100 owners, each with
 *                    their own history and 100 configurations: CPU per launch as a multiple of
 *                    crash_window_1s. Needs root
 *
 * Making launches (pipeline.h) is not timed; only the collector's polls and the store's end are.
 *
 *   bench_pipeline [--launches N] [--seconds N] [--directory DIR]
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/collect/collector.h"
#include "pipeline.h"
#include "store/store.h"
#include "support/text.h"

/* ---- collector and store in this process ---- */

struct mode {
    const char *name;
    uint32_t slots;
    uint64_t per_second; /* launches per second of made-up time */
    uint64_t memory_bytes;
    double target_per_second;
};

struct measured {
    int64_t wall_ns, cpu_ns;
    uint64_t commits;
    off_t file_bytes;
};

static struct occ_store *open_store(const char *path)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_store *store = NULL;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    check(occ_store_open(path, &options, &store, &err), &err, path);
    return store;
}

static struct occ_collector *open_collector(struct occ_store *store, const struct mode *mode,
                                            const struct occ_ring_producer *ring)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_collector *collector = NULL;
    struct occ_producer *producer = NULL;
    struct occ_offer offer = {.fd = dup(ring->fd), .peer = {.pid = getpid(), .uid = getuid()}};
    const struct occ_collector_options options = {.commit_interval_ns = SECOND_NS,
                                                  .memory_bytes = mode->memory_bytes,
                                                  .max_producers = 8,
                                                  .max_ring_bytes = 512u << 20,
                                                  .orphan_grace_ns = 10 * SECOND_NS};
    check(occ_collector_new(store, &options, &collector, &err), &err, "collector");
    memcpy(offer.uuid, ring->header->uuid, sizeof offer.uuid);
    check(occ_collector_offer(collector, &offer, 1, &producer, &err), &err, "offer");
    return collector;
}

/* Alternates between filling the ring with 100 ms of made-up time and polling. */
static void feed(const struct bench *b, const struct mode *mode, struct generator *g,
                 struct occ_ring_producer *ring, struct occ_collector *collector, struct measured *m)
{
    int64_t now_ns = SECOND_NS;
    occ_collector_poll(collector, now_ns); /* not timed: names and configurations, once per program */
    for (uint64_t pushed = 0; pushed < b->launches;) {
        uint64_t batch = mode->per_second / 10;
        for (uint64_t i = 0; i < batch; i++) {
            struct occ_ring_launch l = make_launch(g);
            if (!occ_ring_push(ring, &l))
                die(mode->name, "the ring is full");
        }
        pushed += batch;
        now_ns += SECOND_NS / 10;
        int64_t wall = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        occ_collector_poll(collector, now_ns);
        m->wall_ns += clock_ns(CLOCK_MONOTONIC) - wall;
        m->cpu_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    }
}

static void run_mode(const struct bench *b, const struct mode *mode, struct measured *m)
{
    static struct generator g;
    struct occ_ring_producer ring;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_collector_stats stats;
    struct stat status;
    char path[320];
    *m = (struct measured){0};
    name_database(b, mode->name, path);
    make_generator(&g, mode->per_second);
    make_ring(&ring, mode->slots);
    struct occ_store *store = open_store(path);
    struct occ_collector *collector = open_collector(store, mode, &ring);
    feed(b, mode, &g, &ring, collector, m);
    int64_t wall = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    check(occ_collector_stop(collector, INT64_MAX / 2, &err), &err, "stop");
    check(occ_store_finish(store, &err), &err, "finish");
    m->wall_ns += clock_ns(CLOCK_MONOTONIC) - wall;
    m->cpu_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    occ_collector_get_stats(collector, &stats);
    m->commits = stats.commits;
    if (stats.launches < b->launches || stats.failures)
        die(mode->name, "launches are missing");
    occ_collector_free(collector);
    occ_store_close(store);
    occ_ring_destroy(&ring);
    m->file_bytes = stat(path, &status) == 0 ? status.st_size : 0;
}

static double per_second(uint64_t n, int64_t ns)
{
    return (double)n * 1e9 / (double)ns;
}

/* Prints a mode's results; returns launches per second. */
static double report_mode(const struct bench *b, const struct mode *mode, double *ret_cpu_ns)
{
    struct measured m;
    run_mode(b, mode, &m);
    double rate = per_second(b->launches, m.wall_ns);
    (void)printf("  \"%s\": {\"launches\": %llu, \"launches_per_second\": %.0f, \"cpu_ns_per_launch\": %.1f, "
                 "\"commits\": %llu, \"bytes_per_launch\": %.2f, \"target_launches_per_second\": %.0f, "
                 "\"reached\": %s}",
                 mode->name, (unsigned long long)b->launches, rate, (double)m.cpu_ns / (double)b->launches,
                 (unsigned long long)m.commits, (double)m.file_bytes / (double)b->launches,
                 mode->target_per_second, rate >= mode->target_per_second ? "true" : "false");
    *ret_cpu_ns = (double)m.cpu_ns / (double)b->launches;
    return rate;
}

/* ---- plain rows ---- */

static void execute(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        die(sql, sqlite3_errmsg(db));
}

static void insert_row(sqlite3_stmt *statement, const struct occ_ring_launch *l)
{
    (void)sqlite3_bind_int64(statement, 1, (sqlite3_int64)l->start_ns);
    (void)sqlite3_bind_int64(statement, 2, (sqlite3_int64)l->duration_ns);
    (void)sqlite3_bind_int64(statement, 3, l->config);
    (void)sqlite3_bind_int64(statement, 4, l->stream);
    (void)sqlite3_bind_int64(statement, 5, l->correlation);
    (void)sqlite3_bind_int64(statement, 6, 1); /* run */
    (void)sqlite3_bind_int64(statement, 7, 1); /* device */
    if (sqlite3_step(statement) != SQLITE_DONE)
        die("insert", sqlite3_errmsg(sqlite3_db_handle(statement)));
    (void)sqlite3_reset(statement);
}

/* Returns rows per second of prepared inserts without analysis and rollups: the straightforward solution, for
 * comparison. */
static double plain_rows(const struct bench *b)
{
    static struct generator g;
    static struct occ_ring_launch batch[131072];
    const size_t n = sizeof batch / sizeof *batch;
    char path[320];
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    int64_t wall_ns = 0;
    uint64_t rows = 0;
    name_database(b, "plain_rows", path);
    make_generator(&g, 250000);
    if (sqlite3_open(path, &db) != SQLITE_OK)
        die(path, sqlite3_errmsg(db));
    execute(
        db,
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
        "CREATE TABLE launch(start_ns INT, duration_ns INT, shape INT, stream INT, correlation INT, run INT, "
        "device INT)");
    if (sqlite3_prepare_v2(db, "INSERT INTO launch VALUES(?, ?, ?, ?, ?, ?, ?)", -1, &statement, NULL) !=
        SQLITE_OK)
        die("prepare", sqlite3_errmsg(db));
    while (rows < b->launches / 4) { /* a quarter is enough for a rate */
        for (size_t i = 0; i < n; i++)
            batch[i] = make_launch(&g);
        int64_t wall = clock_ns(CLOCK_MONOTONIC);
        execute(db, "BEGIN");
        for (size_t i = 0; i < n; i++)
            insert_row(statement, &batch[i]);
        execute(db, "COMMIT");
        wall_ns += clock_ns(CLOCK_MONOTONIC) - wall;
        rows += n;
    }
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(db);
    return per_second(rows, wall_ns);
}

/* ---- main ---- */

static void remove_files(const struct bench *b)
{
    char command[320];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", b->directory);
    if (system(command) != 0)
        die(b->directory, "cannot be removed");
}

static void parse(int argc, char **argv, struct bench *b)
{
    const char *directory = "/tmp";
    struct occ_error err = OCC_ERROR_INIT;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--launches") == 0)
            check(occ_parse_u64(value, 1000000, 1000000000, &b->launches, &err), &err, argv[i]);
        else if (strcmp(argv[i], "--seconds") == 0)
            check(occ_parse_u64(value, 1, 86400, &b->seconds, &err), &err, argv[i]);
        else if (strcmp(argv[i], "--directory") == 0 && strlen(value) < 200)
            directory = value;
        else
            die(argv[i], "unknown option");
    }
    (void)snprintf(b->directory, sizeof b->directory, "%s/occ-bench-XXXXXX", directory);
    if (!mkdtemp(b->directory))
        die(b->directory, strerror(errno));
}

int main(int argc, char **argv)
{
    struct bench b = {.launches = 10000000, .seconds = 10};
    static const struct mode modes[] = {
        {"crash_window_1s", OCC_RING_DEFAULT_SLOTS, 250000, UINT64_C(16) << 20, 3e6},
        {"chunks_64k", OCC_RING_MAX_SLOTS, 1000000, UINT64_C(32) << 20, 5e6},
    };
    double base_ns, other_ns;
    parse(argc, argv, &b);
    (void)printf("{\"benchmark\": \"pipeline\",\n");
    double first = report_mode(&b, &modes[0], &base_ns);
    (void)printf(",\n");
    (void)report_mode(&b, &modes[1], &other_ns);
    double plain = plain_rows(&b);
    (void)printf(",\n  \"plain_rows\": {\"rows_per_second\": %.0f, \"crash_window_1s_is_faster_by\": %.2f, "
                 "\"target_faster_by\": 2.5, \"reached\": %s},\n",
                 plain, first / plain, first / plain >= 2.5 ? "true" : "false");
    (void)fflush(stdout);
    report_paced(&b);
    (void)printf(",\n");
    (void)fflush(stdout);
    report_owners(&b, base_ns);
    (void)printf("\n}\n");
    remove_files(&b);
    return fflush(stdout) == 0 ? 0 : 1;
}
