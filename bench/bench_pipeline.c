/*
 * Rings -> collector -> store on disk, on one core, and the daemon at a steady pace. One JSON object on
 * stdout.
 *
 *   crash_window_1s   launches come at 250 k per second of made-up time, a commit each such second or
 *                     when the ring (the
 *                     default size) is half full, whichever is first
 *   chunks_64k        a commit each million launches: full chunks only
 *   plain_rows        the same launches as plain SQLite rows in transactions of 128 k, to compare with
 *   paced             the program occtraced, fed with 80 k launches per second from this process: its CPU
 *                     and memory
 *
 * Launches: 1000 shapes with Zipf weights, durations around a mean per shape, starts that overlap a little
 * out of order as CUPTI's do. Making them is not timed: only the collector's polls and the store's end are.
 *
 *   bench_pipeline [--launches N] [--seconds N] [--directory DIR]
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/collector.h"
#include "ring/handshake.h"
#include "ring/ring.h"
#include "store/store.h"
#include "support/clock.h"
#include "support/control.h"
#include "support/text.h"

#define SHAPES     1000
#define ZIPF_TABLE 65536
#define EPOCH_NS   INT64_C(1700000000000000000)
#define SECOND_NS  INT64_C(1000000000)
#define PACE       80000 /* launches per second */
#define WARM_UP_MS 4000  /* once round the ring: all its pages are then in the daemon's memory */

struct bench {
    uint64_t launches;
    uint64_t seconds;
    char directory[256];
};

struct generator {
    uint32_t shape[ZIPF_TABLE]; /* weights as shares of the table */
    uint32_t mean_ns[SHAPES];
    uint64_t seed, n;
    int64_t time_ns, step_ns;
};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench_pipeline: %s: %s\n", what, why);
    exit(1);
}

static void check(int status, const struct occ_error *err, const char *what)
{
    if (status != 0)
        die(what, err->message);
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

/* ---- launches ---- */

static uint64_t next_random(struct generator *g)
{
    g->seed ^= g->seed << 13;
    g->seed ^= g->seed >> 7;
    g->seed ^= g->seed << 17;
    return g->seed;
}

static void make_generator(struct generator *g, uint64_t launches_per_second)
{
    double total = 0;
    uint32_t at = 0;
    *g = (struct generator){.seed = 88172645463325252u, .time_ns = EPOCH_NS};
    g->step_ns = SECOND_NS / (int64_t)launches_per_second;
    for (int i = 0; i < SHAPES; i++)
        total += 1.0 / (i + 1);
    for (uint32_t i = 0; i < SHAPES; i++) {
        uint32_t share = (uint32_t)(ZIPF_TABLE / (i + 1) / total) + 1;
        for (; share > 0 && at < ZIPF_TABLE; share--)
            g->shape[at++] = i;
        g->mean_ns[i] = 2000 + (uint32_t)(next_random(g) % 100000);
    }
    while (at < ZIPF_TABLE)
        g->shape[at++] = 0;
}

static struct occ_ring_launch make_launch(struct generator *g)
{
    uint64_t r = next_random(g);
    uint32_t shape = g->shape[r % ZIPF_TABLE];
    uint32_t mean = g->mean_ns[shape];
    g->time_ns += (int64_t)((r >> 20) % (uint64_t)(2 * g->step_ns));
    /* every 16th comes a little late, as from another buffer */
    int64_t late = (r >> 40) % 16 == 0 ? (int64_t)((r >> 44) % 16) * g->step_ns : 0;
    return (struct occ_ring_launch){.start_ns = (uint64_t)(g->time_ns - late),
                                    .duration_ns = mean - mean / 16 + (r >> 48) % (mean / 8),
                                    .config = shape,
                                    .stream = shape % 4 + 7,
                                    .correlation = (uint32_t)++g->n};
}

static bool log_kernel(struct occ_ring_producer *ring, uint32_t id)
{
    char name[64];
    uint32_t n = (uint32_t)snprintf(name, sizeof name, "_Z9kernel%04uPfi", id);
    struct occ_record_kernel f = {
        .record.type = OCC_RECORD_KERNEL, .id = id, .name_bytes = n + 1, .name_hash = occ_fnv1a(name, n)};
    return occ_ring_log(ring, &f.record, sizeof f, name, n + 1);
}

static bool log_shape(struct occ_ring_producer *ring, uint32_t id)
{
    struct occ_record_config f = {.record.type = OCC_RECORD_CONFIG,
                                  .id = id,
                                  .kernel = id / 4,
                                  .grid = {100 + id, 1, 1},
                                  .block = {32 * (1 + id % 32), 1, 1},
                                  .cluster = {1, 1, 1},
                                  .registers_per_thread = 16 + id % 48,
                                  .carveout_percent = -1};
    return occ_ring_log(ring, &f.record, sizeof f, NULL, 0);
}

static void make_ring(struct occ_ring_producer *ring, uint32_t slots)
{
    struct occ_record_device device = {.record.type = OCC_RECORD_DEVICE, .cc_major = 9, .sm_count = 132};
    (void)snprintf(device.name, sizeof device.name, "H200 (simulated)");
    bool ok = occ_ring_create(ring, slots, 1u << 20) == 0 &&
              occ_ring_log(ring, &device.record, sizeof device, NULL, 0);
    for (uint32_t i = 0; ok && i < SHAPES / 4; i++)
        ok = log_kernel(ring, i);
    for (uint32_t i = 0; ok && i < SHAPES; i++)
        ok = log_shape(ring, i);
    if (!ok)
        die("ring", "cannot be made");
}

static void name_database(const struct bench *b, const char *name, char path[320])
{
    (void)snprintf(path, 320, "%s/%s.db", b->directory, name);
}

/* ---- collector and store in this process ---- */

struct mode {
    const char *name;
    uint32_t slots;
    uint64_t per_second; /* of made-up time */
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

/* Fills the ring up to the next poll (100 ms of made-up time), then polls, and so on. */
static void feed(const struct bench *b, const struct mode *mode, struct generator *g,
                 struct occ_ring_producer *ring, struct occ_collector *collector, struct measured *m)
{
    int64_t now_ns = SECOND_NS;
    occ_collector_poll(collector, now_ns); /* names and shapes, once a program: not the figure */
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

static double report_mode(const struct bench *b, const struct mode *mode)
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

/* Rows per second of prepared inserts, without analysis and rollups: what a straightforward program would do.
 */
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

/* ---- the daemon at a steady pace ---- */

static pid_t start_daemon(const char *database, const char *socket_path, int *ret_private)
{
    int ends[2];
    char fd_text[16], byte;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        die("socketpair", strerror(errno));
    (void)snprintf(fd_text, sizeof fd_text, "%d", ends[1]);
    pid_t pid = fork();
    if (pid == 0) {
        (void)fcntl(ends[1], F_SETFD, 0);
        (void)execl(OCC_DAEMON, OCC_DAEMON, "--private", fd_text, "--db", database, "--socket", socket_path,
                    NULL);
        _exit(126);
    }
    (void)close(ends[1]);
    if (pid < 0 || read(ends[0], &byte, 1) != 1)
        die("occtraced", "does not start");
    *ret_private = ends[0];
    return pid;
}

static int offer(const char *socket_path, const struct occ_ring_producer *ring)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_hello hello = {.magic = OCC_HELLO_MAGIC,
                              .version_major = OCC_RING_VERSION_MAJOR,
                              .version_minor = OCC_RING_VERSION_MINOR,
                              .bytes = sizeof hello};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec iov = {.iov_base = &hello, .iov_len = sizeof hello};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    int fd = -1;
    memcpy(hello.uuid, ring->header->uuid, sizeof hello.uuid);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &ring->fd, sizeof(int));
    check(occ_control_connect(socket_path, &fd, &err), &err, "connect");
    if (sendmsg(fd, &message, MSG_NOSIGNAL) != (ssize_t)sizeof hello)
        die("sendmsg", strerror(errno));
    return fd;
}

/* The first number after `key` in a file of /proc; 0: not there. */
static uint64_t proc_number(pid_t pid, const char *file, const char *key)
{
    char path[64], text[8192];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    FILE *in = fopen(path, "r");
    size_t n = in ? fread(text, 1, sizeof text - 1, in) : 0;
    text[n] = '\0';
    if (in)
        (void)fclose(in);
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* A millisecond's launches each millisecond. */
static void pace(struct generator *g, struct occ_ring_producer *ring, uint64_t milliseconds)
{
    int64_t next_ns = clock_ns(CLOCK_MONOTONIC);
    for (uint64_t ms = 0; ms < milliseconds; ms++) {
        for (int i = 0; i < PACE / 1000; i++) {
            struct occ_ring_launch l = make_launch(g);
            (void)occ_ring_push(ring, &l);
        }
        next_ns += 1000000;
        const struct timespec until = {.tv_sec = next_ns / SECOND_NS, .tv_nsec = next_ns % SECOND_NS};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
}

static void report_paced(const struct bench *b)
{
    static struct generator g;
    struct occ_ring_producer ring;
    char database[320], socket_path[320];
    int private_fd = -1;
    name_database(b, "paced", database);
    (void)snprintf(socket_path, sizeof socket_path, "%s/s", b->directory);
    make_generator(&g, PACE);
    g.time_ns = occ_now_ns(); /* as real launches: rollups close as time goes by */
    make_ring(&ring, OCC_RING_DEFAULT_SLOTS);
    pid_t daemon = start_daemon(database, socket_path, &private_fd);
    int connection = offer(socket_path, &ring);
    pace(&g, &ring, WARM_UP_MS);
    /* schedstat's first number is the time on a CPU in ns */
    uint64_t cpu = proc_number(daemon, "schedstat", "");
    uint64_t rss_early = proc_number(daemon, "status", "VmRSS:");
    int64_t wall = clock_ns(CLOCK_MONOTONIC);
    pace(&g, &ring, b->seconds * 1000);
    double seconds = (double)(clock_ns(CLOCK_MONOTONIC) - wall) / 1e9;
    double percent = (double)(proc_number(daemon, "schedstat", "") - cpu) / 1e7 / seconds;
    uint64_t rss = proc_number(daemon, "status", "VmRSS:"), peak = proc_number(daemon, "status", "VmHWM:");
    uint64_t own = proc_number(daemon, "status", "RssAnon:");
    uint64_t lost = ring.header->lost[OCC_LOSS_RING_FULL];
    (void)close(connection);
    occ_ring_close(&ring);
    (void)close(private_fd);
    (void)waitpid(daemon, NULL, 0);
    occ_ring_destroy(&ring);
    (void)printf("  \"paced\": {\"launches_per_second\": %d, \"seconds\": %.1f, \"cpu_percent\": %.2f, "
                 "\"rss_kib\": %llu, \"rss_after_warm_up_kib\": %llu, \"rss_peak_kib\": %llu, "
                 "\"rss_anonymous_kib\": %llu, "
                 "\"lost\": %llu, \"target_cpu_percent\": 2.5, \"target_rss_kib\": 65536, \"reached\": %s}",
                 PACE, seconds, percent, (unsigned long long)rss, (unsigned long long)rss_early,
                 (unsigned long long)peak, (unsigned long long)own, (unsigned long long)lost,
                 percent <= 2.5 && peak <= 65536 && lost == 0 ? "true" : "false");
}

/* ---- main ---- */

static void remove_files(const struct bench *b)
{
    static const char *const names[] = {"crash_window_1s", "chunks_64k", "plain_rows", "paced"};
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t j = 0; j < sizeof suffixes / sizeof *suffixes; j++) {
            char path[320], file[336];
            name_database(b, names[i], path);
            (void)snprintf(file, sizeof file, "%s%s", path, suffixes[j]);
            (void)unlink(file);
        }
    (void)rmdir(b->directory);
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
    parse(argc, argv, &b);
    (void)printf("{\"benchmark\": \"pipeline\",\n");
    double first = report_mode(&b, &modes[0]);
    (void)printf(",\n");
    (void)report_mode(&b, &modes[1]);
    double plain = plain_rows(&b);
    (void)printf(",\n  \"plain_rows\": {\"rows_per_second\": %.0f, \"crash_window_1s_is_faster_by\": %.2f, "
                 "\"target_faster_by\": 2.5, \"reached\": %s},\n",
                 plain, first / plain, first / plain >= 2.5 ? "true" : "false");
    (void)fflush(stdout);
    report_paced(&b);
    (void)printf("\n}\n");
    remove_files(&b);
    return fflush(stdout) == 0 ? 0 : 1;
}
