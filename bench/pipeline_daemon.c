/* The program occtraced, fed from this process: see pipeline.h. */
#include "pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring/handshake.h"
#include "support/clock.h"
#include "support/control.h"

#define PACE       80000 /* launches per second */
#define WARM_UP_MS 4000  /* the ring wraps once, so that the daemon has mapped all its pages */

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
    const struct occ_hello hello = occ_hello_of(ring);
    int fd = -1;
    check(occ_control_connect(socket_path, &fd, &err), &err, "connect");
    if (!occ_hello_send(fd, &hello, ring->fd))
        die("sendmsg", strerror(errno));
    return fd;
}

/* Returns the first number after `key` in a file of /proc; 0 without file or key. */
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

static void wait_until(int64_t time_ns)
{
    const struct timespec until = {.tv_sec = time_ns / SECOND_NS, .tv_nsec = time_ns % SECOND_NS};
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* Pushes one millisecond's launches every millisecond. */
static void pace(struct generator *g, struct occ_ring_producer *ring, uint64_t milliseconds)
{
    int64_t next_ns = clock_ns(CLOCK_MONOTONIC);
    for (uint64_t ms = 0; ms < milliseconds; ms++) {
        for (int i = 0; i < PACE / 1000; i++) {
            struct occ_ring_launch l = make_launch(g);
            (void)occ_ring_push(ring, &l);
        }
        wait_until(next_ns += 1000000);
    }
}

void report_paced(const struct bench *b)
{
    static struct generator g;
    struct occ_ring_producer ring;
    char database[320], socket_path[320];
    int private_fd = -1;
    name_database(b, "paced", database);
    (void)snprintf(socket_path, sizeof socket_path, "%s/s", b->directory);
    make_generator(&g, PACE);
    g.time_ns = occ_now_ns(); /* current time as with real launches, so that rollups close as time passes */
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

/* ---- the service, with one history per owner ---- */

#define OWNERS_MAX        100
#define FIRST_UID         62000
#define OWNERS_PACE       250000 /* launches per second of all owners together, as in crash_window_1s */
#define OWNERS_CONFIGS    100
#define OWNERS_SLOTS      16384
#define OWNERS_WARM_UP_MS 8000 /* every ring wraps once */

struct owners {
    struct occ_ring_producer rings[OWNERS_MAX];
    int connections[OWNERS_MAX];
    int n, configs; /* configs: launch configurations of each owner */
};

static pid_t start_service(const struct bench *b, const char *socket_path)
{
    char path[320];
    (void)snprintf(path, sizeof path, "%s/occtrace.yaml", b->directory);
    FILE *out = fopen(path, "w");
    if (!out)
        die(path, strerror(errno));
    (void)fprintf(out,
                  "database: {path: %s/owners/history.db}\nsocket: {mode: 0666}\n"
                  "http: {socket: %s/metrics.sock}\n",
                  b->directory, b->directory);
    if (fclose(out) != 0 || chmod(b->directory, 0711) != 0)
        die(path, strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl(OCC_DAEMON, OCC_DAEMON, "-c", path, "--socket", socket_path, NULL);
        _exit(126);
    }
    return pid;
}

static void await_socket(pid_t daemon, const char *socket_path)
{
    int fd = -1;
    while (occ_control_connect(socket_path, &fd, NULL) != 0) {
        if (waitpid(daemon, NULL, WNOHANG) != 0)
            die("occtraced", "does not start");
        wait_until(clock_ns(CLOCK_MONOTONIC) + 10000000);
    }
    (void)close(fd);
}

/* Offers a ring as a user; the daemon reads the peer's credentials. */
static int offer_as(uid_t uid, const char *socket_path, const struct occ_ring_producer *ring)
{
    if (seteuid(uid) != 0)
        die("seteuid", strerror(errno));
    int fd = offer(socket_path, ring);
    if (seteuid(0) != 0)
        die("seteuid", strerror(errno));
    return fd;
}

/* Waits until the histories have all names and configurations. */
static void await_logs(struct generator *g, struct owners *o)
{
    for (int i = 0; i < o->n; i++) {
        struct occ_ring_launch l = make_launch(g);
        (void)occ_ring_push(&o->rings[i], &l);
    }
    for (int i = 0; i < o->n; i++)
        while (atomic_load(&o->rings[i].header->tail) == 0)
            wait_until(clock_ns(CLOCK_MONOTONIC) + 10000000);
}

/* Pushes one millisecond's launches every millisecond, to each owner in turn. */
static void pace_owners(struct generator *g, struct owners *o, uint64_t milliseconds)
{
    int64_t next_ns = clock_ns(CLOCK_MONOTONIC);
    for (uint64_t ms = 0; ms < milliseconds; ms++) {
        for (int i = 0; i < OWNERS_PACE / 1000; i++) {
            struct occ_ring_launch l = make_launch(g);
            l.config %= (uint32_t)o->configs;
            (void)occ_ring_push(&o->rings[g->n % (uint64_t)o->n], &l);
        }
        wait_until(next_ns += 1000000);
    }
}

/* Returns the daemon's CPU time per launch with `n` owners of one program each. */
static double measure_owners(const struct bench *b, int n)
{
    static struct generator g;
    static struct owners o;
    char socket_path[320];
    uint64_t lost = 0;
    (void)snprintf(socket_path, sizeof socket_path, "%s/owners.sock", b->directory);
    make_generator(&g, OWNERS_PACE);
    o.n = n;
    o.configs = n == 1 ? SHAPES : OWNERS_CONFIGS;
    pid_t daemon = start_service(b, socket_path);
    await_socket(daemon, socket_path);
    for (int i = 0; i < n; i++) {
        make_ring(&o.rings[i], n == 1 ? OCC_RING_DEFAULT_SLOTS : OWNERS_SLOTS);
        o.connections[i] = offer_as((uid_t)(FIRST_UID + i), socket_path, &o.rings[i]);
    }
    await_logs(&g, &o);
    g.time_ns = occ_now_ns();
    pace_owners(&g, &o, OWNERS_WARM_UP_MS);
    double cpu_ns = INFINITY; /* minimum of three, as other processes only add time */
    for (int i = 0; i < 3; i++) {
        uint64_t cpu = proc_number(daemon, "schedstat", ""), from = g.n;
        pace_owners(&g, &o, b->seconds * 1000);
        cpu_ns = fmin(cpu_ns, (double)(proc_number(daemon, "schedstat", "") - cpu) / (double)(g.n - from));
    }
    uint64_t own = proc_number(daemon, "status", "RssAnon:");
    for (int i = 0; i < n; i++) {
        lost += o.rings[i].header->lost[OCC_LOSS_RING_FULL];
        (void)close(o.connections[i]);
        occ_ring_close(&o.rings[i]);
        occ_ring_destroy(&o.rings[i]);
    }
    (void)kill(daemon, SIGTERM);
    (void)waitpid(daemon, NULL, 0);
    (void)printf("%s\"%d\": {\"cpu_ns_per_launch\": %.1f, \"rss_anonymous_kib\": %llu, \"lost\": %llu}",
                 n == 1 ? "" : ", ", n, cpu_ns, (unsigned long long)own, (unsigned long long)lost);
    return cpu_ns;
}

void report_owners(const struct bench *b, double base_ns)
{
    if (geteuid() != 0) {
        (void)printf("  \"owners\": {\"skipped\": \"only root can be other users\"}");
        return;
    }
    (void)printf("  \"owners\": {\"launches_per_second\": %d, ", OWNERS_PACE);
    double one = measure_owners(b, 1) / base_ns, all = measure_owners(b, OWNERS_MAX) / base_ns;
    (void)printf(", \"one_to_crash_window_1s\": %.2f, \"target_one\": 1.5, "
                 "\"all_to_crash_window_1s\": %.2f, \"target_all\": 2, \"reached\": %s}",
                 one, all, one <= 1.5 && all <= 2 ? "true" : "false");
}
