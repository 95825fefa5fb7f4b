/*
 * Runs the daemon's server in a child of a test, with options of the test's choice, and observes it from
 * outside: status, descriptors, memory. Waits poll a condition, with a deadline that only a fault reaches.
 * Include cmocka.h first.
 */
#pragma once

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/server.h"
#include "support/control.h"
#include "support/log.h"
#include "support/text.h"
#include "sanitized.h"

#define DEADLINE_MS   600000
#define SESSION       "0123456789abcdef0123456789abcdef"
#define MAX_PRODUCERS 32

struct place {
    char directory[64], db[96], socket[96];
    char http[96]; /* socket of /metrics; "": none */
    int passed_fd; /* a listening socket, as systemd passes it; 0: none */
    bool split;    /* one history per owner, one socket for all users, and these limits per user */
    size_t max_producers, max_user_producers; /* the first 0: MAX_PRODUCERS */
    uint64_t max_user_ring_bytes;
    int64_t idle_ns, upkeep_ns, closed_upkeep_ns, census_ns, skew_ns, round_ns;
    uint64_t max_total_bytes;
    int64_t raw_age_ns, hours_age_ns; /* age limits of launches, of hours; 0: none */
    uint64_t max_bytes;               /* quota of each history; 0: none */
    bool has_counters;
    const char *nvml;           /* path of NVML for coverage; NULL: no coverage */
    char jobs[96], root[96];    /* directories for support/gpu_jobs.h; "": none */
    int64_t commit_interval_ns; /* 0: 100 ms */
    enum occ_command_lines command_lines;
    pid_t daemon;
    int control;  /* the test's own connection: uses one client and one descriptor of the daemon */
    int leave[2]; /* a program that waits ends when leave[1] is closed */
};

static inline void pause_ms(long ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&t, NULL);
}

static inline int setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    (void)snprintf(p->directory, sizeof p->directory, "/tmp/occtraced-clients-XXXXXX");
    p->control = p->leave[0] = p->leave[1] = -1;
    p->closed_upkeep_ns = INT64_C(86400000000000); /* longer than a test: no upkeep ends a wait */
    if (!mkdtemp(p->directory))
        return -1;
    (void)snprintf(p->db, sizeof p->db, "%s/history.db", p->directory);
    (void)snprintf(p->socket, sizeof p->socket, "%s/occtraced.sock", p->directory);
    *state = p;
    return 0;
}

static inline int teardown(void **state)
{
    struct place *p = *state;
    char command[128];
    if (p->daemon > 0) {
        (void)kill(p->daemon, SIGKILL);
        (void)waitpid(p->daemon, NULL, 0);
    }
    const int fds[] = {p->control, p->leave[0], p->leave[1]};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    (void)snprintf(command, sizeof command, "rm -rf %s", p->directory);
    int status = system(command);
    free(p);
    return status == 0 ? 0 : -1;
}

static inline int serve(const struct place *p, int64_t grace_ns)
{
    const struct occ_store_options store_options = {
        .mode = OCC_STORE_WRITE,
        .busy_timeout_ms = 1,
        .max_bytes = p->max_bytes,
        .ages = {.raw_ns = p->raw_age_ns, .hours_ns = p->hours_age_ns}};
    const struct occ_server_options options = {
        .histories = {.path = p->db,
                      .split = p->split,
                      .idle_ns = p->idle_ns,
                      .upkeep_ns = p->upkeep_ns,
                      .closed_upkeep_ns = p->closed_upkeep_ns,
                      .census_ns = p->census_ns,
                      .max_total_bytes = p->max_total_bytes,
                      .store = store_options,
                      .collector = {.commit_interval_ns =
                                        p->commit_interval_ns ? p->commit_interval_ns : 100000000,
                                    .memory_bytes = 32u << 20,
                                    .max_producers = p->max_producers ? p->max_producers : MAX_PRODUCERS,
                                    .max_ring_bytes = 41u << 20,
                                    .command_lines = p->command_lines,
                                    .skew_ns = p->skew_ns,
                                    .round_ns = p->round_ns,
                                    .max_user_producers = p->max_user_producers,
                                    .max_user_ring_bytes = p->max_user_ring_bytes,
                                    .orphan_grace_ns = grace_ns}},
        .socket_path = p->socket,
        .socket_mode = p->split ? 0666 : 0600,
        .private_fd = -1,
        .http_socket = p->http,
        .http_max_runs = 64,
        .is_covering = p->nvml != NULL,
        .nvml_path = p->nvml,
        .coverage_interval_ns = 1,
        .job_directory = p->jobs,
        .root = p->root,
        .sampler = {.mode = p->has_counters ? OCC_SAMPLER_PM : OCC_SAMPLER_NONE, .interval_ns = 1000000},
    };
    struct occ_error err = OCC_ERROR_INIT;
    occ_log_set_level(OCC_LOG_ERROR);
    if (p->passed_fd) {
        char pid[16];
        (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
        (void)dup2(p->passed_fd, 3);
        (void)setenv("LISTEN_PID", pid, 1);
        (void)setenv("LISTEN_FDS", "1", 1);
    }
    int status = occ_server_run(&options, &err);
    if (status != 0)
        (void)fprintf(stderr, "daemon: %s\n", err.message);
    return status == 0 ? 0 : 1;
}

static inline bool is_alive(const struct place *p)
{
    siginfo_t ended = {0};
    return waitid(P_PID, (id_t)p->daemon, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0;
}

static inline bool ask(const struct place *p, const char *request, char answer[OCC_CONTROL_BYTES])
{
    return occ_control_request(p->control, request, DEADLINE_MS, answer, OCC_CONTROL_BYTES, NULL) == 0;
}

static inline void start(struct place *p, int64_t grace_ns)
{
    char answer[OCC_CONTROL_BYTES];
    (void)fflush(NULL);
    p->daemon = fork();
    assert_true(p->daemon >= 0);
    if (p->daemon == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* as in run() of daemon_programs.h */
        _exit(serve(p, grace_ns));
    }
    for (int ms = 0; occ_control_connect(p->socket, &p->control, NULL) != 0; ms += 5) {
        assert_true(ms < DEADLINE_MS && is_alive(p));
        pause_ms(5);
    }
    assert_true(ask(p, "ping", answer)); /* the daemon has accepted the connection */
}

/* Stops the daemon and waits until it stands: a daemon that still runs would handle the test's next messages
 * in several turns. */
static inline void suspend(const struct place *p)
{
    assert_int_equal(kill(p->daemon, SIGSTOP), 0);
    assert_int_equal(waitpid(p->daemon, NULL, WUNTRACED), p->daemon);
}

static inline void assert_stops(struct place *p)
{
    int status = -1;
    assert_int_equal(kill(p->daemon, SIGTERM), 0);
    assert_int_equal(waitpid(p->daemon, &status, 0), p->daemon);
    p->daemon = 0;
    assert_int_equal(status, 0);
}

static inline uint64_t flush(const struct place *p)
{
    char answer[OCC_CONTROL_BYTES];
    uint64_t launches = 0;
    if (!ask(p, "flush " SESSION, answer))
        fail_msg("no flush");
    assert_int_equal(occ_parse_u64(answer, 0, UINT64_MAX, &launches, NULL), 0);
    return launches;
}

/* Waits until the history holds the `n` launches that a running program has pushed. */
static inline void await_launches(const struct place *p, uint64_t n)
{
    for (int ms = 0; flush(p) != n; ms += 5) {
        assert_true(ms < DEADLINE_MS);
        pause_ms(5);
    }
}

/* Waits until status contains the text. The test counts as a client, too. */
static inline void await_status(const struct place *p, const char *what)
{
    char answer[OCC_CONTROL_BYTES] = "";
    for (int ms = 0; !ask(p, "status", answer) || !strstr(answer, what); ms += 5) {
        if (ms >= DEADLINE_MS || !is_alive(p))
            fail_msg("the daemon %s instead of '%s': %s", is_alive(p) ? "says" : "is dead", what, answer);
        pause_ms(5);
    }
}

static inline size_t count_descriptors(const struct place *p)
{
    char path[64];
    size_t n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)p->daemon);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    while (readdir(directory))
        n++;
    (void)closedir(directory);
    return n;
}

static inline void await_descriptors(const struct place *p, size_t n)
{
    for (int ms = 0; count_descriptors(p) != n; ms += 5) {
        if (ms >= DEADLINE_MS)
            fail_msg("%zu descriptors, not %zu", count_descriptors(p), n);
        pause_ms(5);
    }
}

static inline long resident_bytes(const struct place *p)
{
    char path[64];
    long pages = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)p->daemon);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
    (void)fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Returns the size of the daemon's own anonymous memory; pages of rings belong to the programs. */
static inline long anonymous_bytes(const struct place *p)
{
    char path[64], line[128];
    long kilobytes = -1;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)p->daemon);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "RssAnon:", 8) == 0)
            kilobytes = strtol(line + 8, NULL, 10);
    (void)fclose(file);
    assert_true(kilobytes > 0);
    return kilobytes * 1024;
}
