/*
 * The program occtraced from outside: its socket, its signals and its command line. This process and its
 * children make rings with the producer's side of ring/. Each wait is for a condition, with a deadline that
 * only a fault reaches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "ring/handshake.h"
#include "ring_samples.h"
#include "store/store.h"
#include "support/clock.h"
#include "support/control.h"
#include "support/text.h"

#define DEADLINE_MS 600000
#define SESSION     "0123456789abcdef0123456789abcdef"

struct place {
    char directory[64], db[96], socket[96], config[96], log[96];
    pid_t daemon;
    int private_fd; /* the test's end of --private's socket pair; -1: not private */
};

/* ---- a daemon ---- */

static void pause_ms(long ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&t, NULL);
}

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    (void)snprintf(p->directory, sizeof p->directory, "/tmp/occtraced-test-XXXXXX");
    if (!mkdtemp(p->directory))
        return -1;
    (void)snprintf(p->db, sizeof p->db, "%s/history.db", p->directory);
    (void)snprintf(p->socket, sizeof p->socket, "%s/run/occtraced.sock", p->directory);
    (void)snprintf(p->config, sizeof p->config, "%s/occtrace.yaml", p->directory);
    (void)snprintf(p->log, sizeof p->log, "%s/log", p->directory);
    p->private_fd = -1;
    *state = p;
    return 0;
}

static void write_config(const struct place *p, const char *text)
{
    FILE *file = fopen(p->config, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Starts the program with further arguments (at most 8, NULL-terminated) after --db and --socket. */
static pid_t spawn(const struct place *p, int inherited_fd, const char *const *more)
{
    const char *arguments[16] = {OCC_DAEMON, "--db", p->db, "--socket", p->socket};
    size_t n = 5;
    while (more && *more)
        arguments[n++] = *more++;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int log = open(p->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        (void)dup2(log, STDERR_FILENO);
        (void)dup2(log, STDOUT_FILENO);
        if (inherited_fd >= 0)
            (void)fcntl(inherited_fd, F_SETFD, 0);
        (void)execv(OCC_DAEMON, (char *const *)(uintptr_t)arguments);
        _exit(126);
    }
    return pid;
}

/* Returns the exit code of a child that must end within the deadline, or minus its signal. */
static int wait_exit(pid_t pid)
{
    int status = 0;
    for (int ms = 0; ms < DEADLINE_MS; ms += 5) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        pause_ms(5);
    }
    fail_msg("process %d did not end", (int)pid);
    return -1;
}

/* Reads a file's text; an unreadable file reads as an empty text. */
static void read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        (void)close(fd);
}

static bool says(const struct place *p, const char *text)
{
    static char log[65536];
    read_file(p->log, log, sizeof log);
    return strstr(log, text) != NULL;
}

static int ask(const struct place *p, const char *request, char *answer, size_t size)
{
    int fd = -1;
    struct occ_error err = OCC_ERROR_INIT;
    int status = occ_control_connect(p->socket, &fd, &err);
    if (status == 0)
        status = occ_control_request(fd, request, DEADLINE_MS, answer, size, &err);
    if (status != 0)
        (void)snprintf(answer, size, "%s", err.message);
    if (fd >= 0)
        (void)close(fd);
    return status;
}

static void start(struct place *p, const char *const *more)
{
    char answer[OCC_CONTROL_BYTES];
    p->daemon = spawn(p, -1, more);
    for (int ms = 0; ask(p, "ping", answer, sizeof answer) != 0; ms += 5) {
        assert_true(ms < DEADLINE_MS && waitpid(p->daemon, NULL, WNOHANG) == 0);
        pause_ms(5);
    }
}

static void start_private(struct place *p)
{
    int ends[2];
    char fd_text[16], byte;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    (void)snprintf(fd_text, sizeof fd_text, "%d", ends[1]);
    p->daemon = spawn(p, ends[1], (const char *[]){"--private", fd_text, NULL});
    (void)close(ends[1]);
    p->private_fd = ends[0];
    assert_int_equal(read(p->private_fd, &byte, 1), 1);
}

static int stop(struct place *p)
{
    assert_int_equal(kill(p->daemon, SIGTERM), 0);
    int code = wait_exit(p->daemon);
    p->daemon = 0;
    return code;
}

static int teardown(void **state)
{
    struct place *p = *state;
    char command[128];
    if (p->daemon > 0) {
        (void)kill(p->daemon, SIGKILL);
        (void)waitpid(p->daemon, NULL, 0);
    }
    if (p->private_fd >= 0)
        (void)close(p->private_fd);
    (void)snprintf(command, sizeof command, "rm -rf %s", p->directory);
    int status = system(command);
    free(p);
    return status == 0 ? 0 : -1;
}

/* ---- a program under observation ---- */

static int connect_to(const struct place *p)
{
    int fd = -1;
    for (int ms = 0; occ_control_connect(p->socket, &fd, NULL) != 0; ms += 5) {
        assert_true(ms < DEADLINE_MS);
        pause_ms(5);
    }
    return fd;
}

static void send_packet(int fd, const void *bytes, size_t n, const int *fds, size_t n_fds)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    if (n_fds) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    assert_int_equal(sendmsg(fd, &message, MSG_NOSIGNAL), n);
}

/* Offers the ring to the daemon. Returns the connection, which the caller keeps open. */
static int offer(const struct place *p, const struct occ_ring_producer *ring)
{
    struct occ_hello hello = occ_hello_of(ring);
    int fd = connect_to(p);
    send_packet(fd, &hello, sizeof hello, &ring->fd, 1);
    return fd;
}

static void make_ring(struct occ_ring_producer *ring, uint32_t slots, const char *session)
{
    char text[128];
    int n = snprintf(text, sizeof text, "exe%c/bin/app%csession%c%s", 0, 0, 0, session);
    assert_int_equal(occ_ring_create(ring, slots, 64u << 10), 0);
    assert_true(log_process(ring, 2, text, (uint32_t)n + 1) && log_device(ring, 0) &&
                log_kernel(ring, 0, "_Z4axpyPf") && log_config(ring, 0));
}

static void push_range(struct occ_ring_producer *ring, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        struct occ_ring_launch l = sample_launch(i);
        for (int ms = 0; !occ_ring_push(ring, &l); ms++) {
            assert_true(ms < DEADLINE_MS);
            pause_ms(1);
        }
    }
}

/* ---- contents of the history ---- */

static uint64_t flush(const struct place *p)
{
    char answer[OCC_CONTROL_BYTES];
    uint64_t launches = 0;
    if (ask(p, "flush " SESSION, answer, sizeof answer) != 0)
        fail_msg("flush: %s", answer);
    assert_int_equal(occ_parse_u64(answer, 0, UINT64_MAX, &launches, NULL), 0);
    return launches;
}

static int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return value;
}

/* Expects launches 0 ... n - 1 of sample_launch(), each once, in `runs` runs that have all ended. */
static void assert_history(const struct place *p, uint64_t n, int64_t runs)
{
    const struct occ_store_options options = {.mode = OCC_STORE_READ};
    struct occ_store *store = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    if (occ_store_open(p->db, &options, &store, &err) != 0)
        fail_msg("%s", err.message);
    sqlite3 *db = occ_store_sqlite(store);
    int64_t durations = 0;
    for (uint64_t i = 0; i < n; i++)
        durations += (int64_t)(i % 977);
    assert_int_equal(number(db, "SELECT count(*) FROM launch"), n);
    assert_int_equal(number(db, "SELECT count(DISTINCT correlation_id) FROM launch"), n);
    assert_int_equal(number(db, "SELECT coalesce(sum(correlation_id), 0) FROM launch"), n * (n - 1) / 2);
    assert_int_equal(number(db, "SELECT coalesce(sum(duration_ns), 0) FROM launch"), durations);
    assert_int_equal(number(db, "SELECT count(*) FROM stored_run"), runs);
    assert_int_equal(number(db, "SELECT count(*) FROM stored_run WHERE end_ns IS NOT NULL"), runs);
    occ_store_close(store);
}

/* Expects `runs` runs with an unknown number of lost launches; all other runs that ended lost none. */
static void assert_unknown(const struct place *p, int64_t runs)
{
    static const char unknown[] =
        "SELECT count(*) FROM run WHERE lost IS NULL AND lost_causes = 'unknown' AND recording_periods LIKE "
        "'unknown __:__:__-: occtraced ended before the program did'";
    struct occ_store *store = NULL;
    assert_int_equal(occ_store_open(p->db, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, NULL),
                     0);
    sqlite3 *db = occ_store_sqlite(store);
    assert_int_equal(number(db, unknown), runs);
    assert_int_equal(number(db, "SELECT count(*) FROM run WHERE lost = 0 AND recording_periods IS NULL"),
                     number(db, "SELECT count(end_ns) FROM run") - runs);
    occ_store_close(store);
}

/* ---- tests ---- */

/* Sends a request as another user. Returns 0, or 1 on an error; `answer` gets the answer's text. */
static int ask_as(const struct place *p, uid_t uid, const char *request, char *answer, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int status = setresuid(uid, uid, uid) == 0 ? ask(p, request, answer, size) : 1;
        _exit(write(ends[1], answer, strlen(answer) + 1) < 0 || status != 0);
    }
    (void)close(ends[1]);
    ssize_t n = read(ends[0], answer, size - 1);
    answer[n > 0 ? n : 0] = '\0';
    (void)close(ends[0]);
    return wait_exit(pid);
}

static void recording_of_a_program_is_paused_by_its_owner(void **state)
{
    struct place *p = *state;
    struct occ_ring_producer ring;
    char answer[OCC_CONTROL_BYTES], pause[64], resume[64];
    (void)snprintf(pause, sizeof pause, "pause_run %d", (int)getpid());
    (void)snprintf(resume, sizeof resume, "resume_run %d", (int)getpid());
    write_config(p, "socket:\n  mode: \"0666\"\n");
    start(p, (const char *[]){"--config", p->config, NULL});
    make_ring(&ring, 1024, SESSION);
    assert_int_not_equal(ask(p, pause, answer, sizeof answer), 0);
    assert_non_null(strstr(answer, "no process"));
    int connection = offer(p, &ring);
    while (ask(p, pause, answer, sizeof answer) != 0) /* the daemon may not have read the offer yet */
        pause_ms(1);
    assert_string_equal(answer, "1");
    assert_true(occ_ring_is_paused(&ring));
    if (geteuid() == 0) {
        (void)chmod(p->directory, 0755);
        assert_int_equal(ask_as(p, 65534, resume, answer, sizeof answer), 1);
        assert_non_null(strstr(answer, "only root and its owner may resume"));
        assert_true(occ_ring_is_paused(&ring));
    }
    assert_int_equal(ask(p, resume, answer, sizeof answer), 0);
    assert_false(occ_ring_is_paused(&ring));
    ring.header->version_minor = 1; /* a library without pausing */
    assert_int_not_equal(ask(p, pause, answer, sizeof answer), 0);
    assert_non_null(strstr(answer, "an older occtrace"));
    (void)close(connection);
    occ_ring_destroy(&ring);
    assert_int_equal(stop(p), 0);
}

/* A program that exec'ed has two rings: recording of both is paused, or of none. */
static void two_rings_are_paused_together(void **state)
{
    struct place *p = *state;
    struct occ_ring_producer rings[2];
    int connections[2];
    char answer[OCC_CONTROL_BYTES] = "", pause[64];
    start(p, NULL);
    (void)snprintf(pause, sizeof pause, "pause_run %d", (int)getpid());
    for (int i = 0; i < 2; i++) {
        make_ring(&rings[i], 1024, SESSION);
        connections[i] = offer(p, &rings[i]);
    }
    while (ask(p, pause, answer, sizeof answer) != 0 || strcmp(answer, "2") != 0)
        pause_ms(1); /* the daemon may not have read the offers yet */
    assert_true(occ_ring_is_paused(&rings[0]) && occ_ring_is_paused(&rings[1]));
    for (int older = 0; older < 2; older++) {
        for (int i = 0; i < 2; i++) {
            rings[i].header->requests.paused = 0;
            rings[i].header->version_minor = i == older ? 1 : OCC_RING_VERSION_MINOR;
        }
        assert_int_not_equal(ask(p, pause, answer, sizeof answer), 0);
        assert_non_null(strstr(answer, "an older occtrace"));
        assert_false(occ_ring_is_paused(&rings[0]) || occ_ring_is_paused(&rings[1]));
    }
    for (int i = 0; i < 2; i++) {
        (void)close(connections[i]);
        occ_ring_destroy(&rings[i]);
    }
    assert_int_equal(stop(p), 0);
}

/* A program that has ended cannot be paused: the daemon finds no process. */
static void a_program_that_is_gone_is_not_paused(void **state)
{
    struct place *p = *state;
    char answer[OCC_CONTROL_BYTES], pause[64];
    start(p, NULL);
    pid_t program = fork();
    if (program == 0) {
        struct occ_ring_producer ring;
        make_ring(&ring, 1024, SESSION);
        (void)offer(p, &ring);
        occ_ring_close(&ring);
        _exit(0);
    }
    assert_int_equal(wait_exit(program), 0);
    (void)flush(p);
    (void)snprintf(pause, sizeof pause, "pause_run %d", (int)program);
    while (ask(p, pause, answer, sizeof answer) == 0) /* until its run is committed */
        pause_ms(1);
    assert_non_null(strstr(answer, "no process"));
    assert_int_equal(stop(p), 0);
}

static void a_short_program_is_complete_after_a_flush(void **state)
{
    struct place *p = *state;
    start(p, NULL);
    for (int program = 0; program < 3; program++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            struct occ_ring_producer ring;
            make_ring(&ring, 4096, SESSION);
            (void)offer(p, &ring);
            push_range(&ring, (uint64_t)program * 1000, (uint64_t)program * 1000 + 1000);
            _exit(0); /* the ring is neither closed nor drained */
        }
        assert_int_equal(wait_exit(pid), 0);
        assert_int_equal(flush(p), (program + 1) * 1000);
    }
    assert_history(p, 3000, 3);
    assert_int_equal(stop(p), 0);
}

static void a_live_program_is_committed_by_a_flush(void **state)
{
    struct place *p = *state;
    struct occ_ring_producer ring;
    start(p, NULL);
    make_ring(&ring, 4096, SESSION);
    int fd = offer(p, &ring);
    push_range(&ring, 0, 2000);
    assert_int_equal(flush(p), 2000);
    push_range(&ring, 2000, 2500);
    assert_int_equal(flush(p), 2500);
    (void)close(fd);
    occ_ring_close(&ring);
    assert_int_equal(flush(p), 2500);
    assert_int_equal(stop(p), 0);
    assert_history(p, 2500, 1);
    occ_ring_destroy(&ring);
}

static void sigterm_loses_nothing(void **state)
{
    struct place *p = *state;
    struct occ_ring_producer ring;
    start(p, NULL);
    make_ring(&ring, 8192, SESSION);
    push_range(&ring, 0, 8000);
    int fd = offer(p, &ring);
    assert_int_equal(stop(p), 0); /* the daemon may not have read the packet yet */
    assert_history(p, 8000, 1);
    assert_int_equal(access(p->socket, F_OK), -1);
    (void)close(fd);
    assert_unknown(p, 1); /* the program still runs */
    start(p, NULL);
    fd = offer(p, &ring);
    push_range(&ring, 8000, 8100);
    occ_ring_close(&ring);
    assert_int_equal(flush(p), 8100);
    assert_int_equal(stop(p), 0);
    assert_unknown(p, 0);
    (void)close(fd);
    occ_ring_destroy(&ring);
}

static void kill_9_at_any_moment_loses_and_repeats_nothing(void **state)
{
    struct place *p = *state;
    struct occ_ring_producer ring;
    uint64_t pushed = 0;
    make_ring(&ring, 1024, SESSION);
    for (int life = 0; life < 12; life++) {
        start(p, NULL);
        int fd = offer(p, &ring);
        push_range(&ring, pushed, pushed + 1500 + (uint64_t)life * 37);
        pushed += 1500 + (uint64_t)life * 37;
        if (life % 3 == 0)
            (void)flush(p);
        pause_ms(life % 4 * 7);
        assert_int_equal(kill(p->daemon, SIGKILL), 0);
        assert_int_equal(wait_exit(p->daemon), -SIGKILL);
        p->daemon = 0;
        (void)close(fd);
    }
    start(p, NULL);
    int fd = offer(p, &ring);
    occ_ring_close(&ring);
    assert_int_equal(flush(p), pushed);
    assert_int_equal(stop(p), 0);
    assert_history(p, pushed, 1);
    (void)close(fd);
    occ_ring_destroy(&ring);
}

/* Starts a program that pushes 10 launches of the present into a ring of its own and waits to be killed. */
static pid_t run_program(const struct place *p)
{
    struct occ_ring_producer ring;
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    make_ring(&ring, 256, SESSION);
    for (uint64_t i = 0; i < 10; i++) {
        struct occ_ring_launch launch = sample_launch(i);
        launch.start_ns = (uint64_t)occ_now_ns();
        launch.duration_ns = 5000000000;
        (void)occ_ring_push(&ring, &launch);
    }
    (void)offer(p, &ring);
    for (;;)
        (void)pause();
}

/* The daemon of two runs is killed: if a run's program is gone too, the next daemon ends the run at its last
 * launch. */
static void a_run_that_lost_program_and_daemon_gets_its_end(void **state)
{
    struct place *p = *state;
    struct occ_store *store = NULL;
    start(p, NULL);
    pid_t programs[] = {run_program(p), run_program(p)};
    while (flush(p) != 20)
        pause_ms(5);
    assert_int_equal(kill(p->daemon, SIGKILL), 0);
    assert_int_equal(wait_exit(p->daemon), -SIGKILL);
    assert_int_equal(kill(programs[0], SIGKILL), 0);
    assert_int_equal(wait_exit(programs[0]), -SIGKILL);
    start(p, NULL);
    assert_int_equal(stop(p), 0);
    assert_int_equal(kill(programs[1], SIGKILL), 0);
    assert_int_equal(wait_exit(programs[1]), -SIGKILL);
    assert_int_equal(occ_store_open(p->db, &(struct occ_store_options){.mode = OCC_STORE_READ}, &store, NULL),
                     0);
    sqlite3 *db = occ_store_sqlite(store);
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "SELECT end_ns = (SELECT max(last_end_ns) FROM stored_chunk c WHERE c.run_id = r.run_id) "
                   "FROM stored_run r WHERE pid = %d",
                   (int)programs[0]);
    assert_int_equal(number(db, sql), 1);
    (void)snprintf(sql, sizeof sql,
                   "SELECT sum(m.launches) FROM stored_minute m JOIN stored_run USING(run_id) WHERE pid = %d",
                   (int)programs[0]);
    assert_int_equal(number(db, sql), 10);
    assert_int_equal(number(db, "SELECT count(*) FROM run WHERE end_ns IS NULL AND lost IS NULL"), 1);
    occ_store_close(store);
    assert_unknown(p, 1);
}

/* Returns true if a packet is the daemon's confirmation that it took a ring. */
static bool is_taken(const char *bytes, ssize_t n)
{
    return n >= (ssize_t)strlen(OCC_HELLO_TAKEN) &&
           memcmp(bytes, OCC_HELLO_TAKEN, strlen(OCC_HELLO_TAKEN)) == 0;
}

/* Waits until the daemon ends the connection: it refuses the client, or drops a client after taking its ring.
 */
static void assert_refused(int fd, const char *what)
{
    char bytes[512];
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    ssize_t n;
    do
        n = poll(&wait, 1, DEADLINE_MS) == 1 ? recv(fd, bytes, sizeof bytes, 0) : -1;
    while (is_taken(bytes, n));
    if (n != 0)
        fail_msg("not refused: %s", what);
    (void)close(fd);
}

static int open_memfd(size_t bytes, bool sealed)
{
    int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    if (sealed)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    return fd;
}

static void hostile_handshakes_are_refused(void **state)
{
    struct place *p = *state;
    struct occ_ring_producer ring;
    char answer[OCC_CONTROL_BYTES];
    start(p, (const char *[]){"--log-level", "warning", NULL});
    make_ring(&ring, 256, SESSION);
    const struct occ_hello good = occ_hello_of(&ring);
    struct occ_hello magic = good, major = good, size = good, uuid = good;
    magic.magic ^= 1ull << 40;
    major.version_major++;
    size.bytes++;
    uuid.uuid[3] ^= 1;
    int unsealed = open_memfd(1u << 20, false), zeros = open_memfd(1u << 20, true),
        tiny = open_memfd(16, true);
    int directory = open("/tmp", O_RDONLY | O_DIRECTORY);
    int two[2] = {ring.fd, ring.fd};
    const struct {
        const char *what;
        const void *bytes;
        size_t n;
        const int *fds;
        size_t n_fds;
    } packets[] = {
        {"no descriptor", &good, sizeof good, NULL, 0},
        {"two descriptors", &good, sizeof good, two, 2},
        {"an unsealed memfd", &good, sizeof good, &unsealed, 1},
        {"a memfd of zeros", &good, sizeof good, &zeros, 1},
        {"a tiny memfd", &good, sizeof good, &tiny, 1},
        {"a directory", &good, sizeof good, &directory, 1},
        {"a short packet", &good, sizeof good - 1, &ring.fd, 1},
        {"one byte", &good, 1, &ring.fd, 1},
        {"bad magic", &magic, sizeof magic, &ring.fd, 1},
        {"another version", &major, sizeof major, &ring.fd, 1},
        {"a wrong size inside", &size, sizeof size, &ring.fd, 1},
        {"another ring's uuid", &uuid, sizeof uuid, &ring.fd, 1},
    };
    for (size_t i = 0; i < sizeof packets / sizeof *packets; i++) {
        int fd = connect_to(p);
        send_packet(fd, packets[i].bytes, packets[i].n, packets[i].fds, packets[i].n_fds);
        assert_refused(fd, packets[i].what);
    }
    int fd = offer(p, &ring);
    struct occ_hello again = good;
    send_packet(fd, &again, sizeof again, &ring.fd, 1);
    assert_refused(fd, "a second ring on one connection");
    assert_int_equal(ask(p, "ping", answer, sizeof answer), 0);
    assert_true(says(p, "is refused"));
    fd = offer(p, &ring);
    push_range(&ring, 0, 100);
    assert_int_equal(flush(p), 100);
    assert_int_equal(stop(p), 0);
    (void)close(fd);
    int fds[] = {unsealed, zeros, tiny, directory};
    for (size_t i = 0; i < 4; i++)
        (void)close(fds[i]);
    occ_ring_destroy(&ring);
}

static void a_broken_ring_is_put_away_and_others_go_on(void **state)
{
    struct place *p = *state;
    struct occ_ring_producer bad, good;
    start(p, NULL);
    make_ring(&bad, 256, "ffffffffffffffffffffffffffffffff");
    make_ring(&good, 256, SESSION);
    int bad_fd = offer(p, &bad), good_fd = offer(p, &good);
    memset(bad.log + bad.log_head, 0xff, 64);
    bad.header->log_head = bad.log_head + 64;
    push_range(&good, 0, 200);
    assert_refused(bad_fd, "garbage in the log");
    assert_int_equal(flush(p), 200);
    assert_refused(offer(p, &bad), "a ring in quarantine");
    assert_int_equal(stop(p), 0);
    assert_history(p, 200, 2);
    assert_true(says(p, "is broken"));
    (void)close(good_fd);
    occ_ring_destroy(&bad);
    occ_ring_destroy(&good);
}

static void text_requests(void **state)
{
    struct place *p = *state;
    char answer[OCC_CONTROL_BYTES], large[OCC_CONTROL_BYTES + 100];
    start(p, NULL);
    assert_int_equal(ask(p, "ping", answer, sizeof answer), 0);
    assert_true(answer[0] >= '0' && answer[0] <= '9');
    assert_int_equal(ask(p, "status", answer, sizeof answer), 0);
    assert_non_null(strstr(answer, "\nprograms 0\n"));
    assert_non_null(strstr(answer, p->db));
    assert_int_equal(flush(p), 0);
    memset(large, 'a', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    const char *const bad[] = {"pin",   "pingg",    "ping x",
                               "flush", "flush 12", "status now",
                               "x",     large,      "flush 0123456789abcdef0123456789abcdeg"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(ask(p, bad[i], answer, sizeof answer), OCC_E_INVALID);
    assert_int_equal(ask(p, "ping", answer, sizeof answer), 0);
    assert_int_equal(stop(p), 0);
}

static void a_private_daemon_ends_with_its_last_program(void **state)
{
    struct place *p = *state;
    int leave[2];
    char answer[OCC_CONTROL_BYTES], byte;
    start_private(p);
    assert_int_equal(pipe2(leave, O_CLOEXEC), 0);
    pid_t program = fork();
    assert_true(program >= 0);
    if (program == 0) {
        struct occ_ring_producer ring;
        (void)close(leave[1]);
        (void)close(p->private_fd);
        make_ring(&ring, 4096, SESSION);
        (void)offer(p, &ring);
        push_range(&ring, 0, 500);
        (void)!read(leave[0], &byte, 1); /* until the test lets it go */
        push_range(&ring, 500, 1000);
        _exit(0);
    }
    (void)close(leave[0]);
    for (int ms = 0; flush(p) != 500; ms += 5) {
        assert_true(ms < DEADLINE_MS);
        pause_ms(5);
    }
    assert_int_equal(kill(p->daemon, SIGINT), 0); /* a private daemon ignores Ctrl-C */
    (void)close(p->private_fd);
    p->private_fd = -1;
    assert_int_equal(ask(p, "ping", answer, sizeof answer), 0); /* its program still runs */
    (void)close(leave[1]);
    assert_int_equal(wait_exit(program), 0);
    assert_int_equal(wait_exit(p->daemon), 0);
    p->daemon = 0;
    assert_history(p, 1000, 1);
    assert_int_equal(access(p->socket, F_OK), -1);
}

static void a_private_daemon_without_programs_ends_at_once(void **state)
{
    struct place *p = *state;
    start_private(p);
    (void)close(p->private_fd);
    p->private_fd = -1;
    assert_int_equal(wait_exit(p->daemon), 0);
    p->daemon = 0;
}

static void a_program_that_closes_everything_is_still_read(void **state)
{
    struct place *p = *state;
    int done[2], leave[2];
    char byte;
    start(p, NULL);
    assert_int_equal(pipe2(done, O_CLOEXEC), 0);
    assert_int_equal(pipe2(leave, O_CLOEXEC), 0);
    pid_t program = fork();
    assert_true(program >= 0);
    if (program == 0) {
        struct occ_ring_producer ring;
        (void)close(leave[1]);
        make_ring(&ring, 4096, SESSION);
        (void)close(offer(p, &ring)); /* like a program that becomes a daemon */
        push_range(&ring, 0, 300);
        (void)!write(done[1], "x", 1);
        (void)!read(leave[0], &byte, 1);
        push_range(&ring, 300, 600);
        _exit(0);
    }
    (void)close(leave[0]);
    assert_int_equal(read(done[0], &byte, 1), 1);
    assert_int_equal(flush(p), 300);
    (void)close(leave[1]);
    assert_int_equal(wait_exit(program), 0);
    assert_int_equal(flush(p), 600);
    assert_int_equal(stop(p), 0);
    assert_history(p, 600, 1);
    (void)close(done[0]);
    (void)close(done[1]);
}

static void a_live_daemon_keeps_its_socket_a_dead_one_does_not(void **state)
{
    struct place *p = *state;
    char answer[OCC_CONTROL_BYTES];
    struct stat first, second;
    start(p, NULL);
    assert_int_equal(wait_exit(spawn(p, -1, NULL)), 1);
    assert_true(says(p, "another daemon listens at"));
    assert_int_equal(ask(p, "ping", answer, sizeof answer), 0);
    assert_int_equal(stat(p->socket, &first), 0);
    assert_int_equal(first.st_mode & 0777, 0600);
    assert_int_equal(kill(p->daemon, SIGKILL), 0);
    (void)wait_exit(p->daemon);
    assert_int_equal(access(p->socket, F_OK), 0); /* stale */
    start(p, NULL);
    assert_int_equal(stat(p->socket, &second), 0);
    assert_int_equal(stop(p), 0);
    /* the daemon never removes a file other than a socket */
    FILE *file = fopen(p->socket, "w");
    assert_non_null(file);
    (void)fclose(file);
    assert_int_equal(wait_exit(spawn(p, -1, NULL)), 1);
    assert_true(says(p, "is not a socket"));
    assert_int_equal(access(p->socket, F_OK), 0);
}

static void directories_of_others_are_not_trusted(void **state)
{
    struct place *p = *state;
    char directory[96];
    (void)snprintf(directory, sizeof directory, "%s/run", p->directory);
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(chmod(directory, 0777), 0);
    assert_int_equal(wait_exit(spawn(p, -1, NULL)), 1);
    assert_true(says(p, "others may write to"));
}

static void the_command_line(void **state)
{
    struct place *p = *state;
    static const struct {
        const char *arguments[4];
        int code;
        const char *says;
    } cases[] = {
        {{"--frobnicate"}, 2, "unknown option '--frobnicate'"},
        {{"--log-levle", "info"}, 2, "did you mean '--log-level'?"},
        {{"-x"}, 2, "unknown option '-x'"},
        {{"--config"}, 2, "option '--config' needs an argument"},
        {{"--private", "many"}, 2, "option '--private'"},
        {{"--private", "77"}, 2, "descriptor 77 is not a socket"},
        {{"--log-level", "loud"}, 2, "option '--log-level'"},
        {{"history.db"}, 2, "unexpected argument 'history.db'"},
        {{"--config", "/nonexistent.yaml"}, 1, "cannot read /nonexistent.yaml"},
        {{"--db", "/proc/none/history.db"}, 1, "cannot use the history: cannot create the"},
        {{"--socket", "/proc/none/x.sock"}, 1, "/proc/none"},
        {{"--help"}, 0, "Usage: occtraced"},
        {{"--version"}, 0, "occtraced "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)unlink(p->log);
        int code = wait_exit(spawn(p, -1, cases[i].arguments));
        if (code != cases[i].code || !says(p, cases[i].says))
            fail_msg("case %zu (%s): code %d, or does not say: %s", i, cases[i].arguments[0], code,
                     cases[i].says);
    }
}

static void the_configuration_counts_and_the_command_line_wins(void **state)
{
    struct place *p = *state;
    char answer[OCC_CONTROL_BYTES];
    struct stat status;
    write_config(p, "database:\n  path: /nonexistent/db\nsocket:\n  mode: 0666\n");
    start(p, (const char *[]){"--config", p->config, "--foreground", NULL});
    assert_int_equal(stat(p->socket, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0666);
    assert_int_equal(ask(p, "status", answer, sizeof answer), 0);
    assert_non_null(strstr(answer, p->db));
    assert_int_equal(stop(p), 0);
    write_config(p, "rings:\n  max_producers: none\n");
    assert_int_equal(wait_exit(spawn(p, -1, (const char *[]){"--config", p->config, NULL})), 1);
    assert_true(says(p, ":2:18: rings.max_producers: 'none' is not a whole number"));
}

static void what_is_no_database_is_refused(void **state)
{
    struct place *p = *state;
    FILE *file = fopen(p->db, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++)
        assert_true(fputs("this is not a database\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(wait_exit(spawn(p, -1, NULL)), 1);
    assert_true(says(p, p->db));
}

/* Waits for a message that begins with `begin`. */
static void await_message(int fd, const char *begin)
{
    char message[256];
    do {
        memset(message, 0, sizeof message);
        assert_true(recv(fd, message, sizeof message - 1, 0) > 0);
    } while (strncmp(message, begin, strlen(begin)) != 0);
}

static void service_managers_are_told(void **state)
{
    struct place *p = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char message[64] = "";
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", p->directory);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", address.sun_path, 1), 0);
    assert_int_equal(setenv("WATCHDOG_USEC", "20000", 1), 0);
    start(p, NULL);
    assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
    assert_int_equal(unsetenv("WATCHDOG_USEC"), 0);
    assert_true(recv(fd, message, sizeof message - 1, 0) > 0);
    assert_string_equal(message, "READY=1");
    await_message(fd, "WATCHDOG=1\nSTATUS="); /* repeatedly, even without events */
    await_message(fd, "WATCHDOG=1\nSTATUS=0 connections, 1 histories open");
    await_message(fd, "WATCHDOG=1\nSTATUS=0 connections");
    assert_int_equal(kill(p->daemon, SIGHUP), 0);
    await_message(fd, "RELOADING=1\nMONOTONIC_USEC=");
    await_message(fd, "READY=1");
    assert_int_equal(stop(p), 0);
    await_message(fd, "STOPPING=1");
    (void)close(fd);
}

static void await_log(const struct place *p, const char *text)
{
    for (int ms = 0; !says(p, text); ms += 5) {
        assert_true(ms < DEADLINE_MS);
        pause_ms(5);
    }
}

/* A running daemon applies the settings that it can change, names the settings that need a restart, and keeps
 * all settings if the file is not valid. */
static void settings_are_read_again(void **state)
{
    struct place *p = *state;
    char answer[OCC_CONTROL_BYTES];
    write_config(p, "rings: {max_producers: 1}\n");
    start(p, (const char *[]){"--config", p->config, NULL});
    write_config(p, "rings: {max_producers: 2}\nsocket: {mode: 0600}\nlog: {level: info}\n");
    assert_int_equal(kill(p->daemon, SIGHUP), 0);
    await_log(p, "rings.max_producers has a new value\n");
    await_log(p, "socket.mode has a new value, which needs a restart\n");
    await_log(p, "log.level has a new value\n");
    write_config(p, "rings: {max_producers: 0}\n");
    assert_int_equal(kill(p->daemon, SIGHUP), 0);
    await_log(p, "the settings stay as they were: ");
    assert_int_equal(ask(p, "ping", answer, sizeof answer), 0);
    const struct {
        const char *arguments[4];
        int code;
    } cases[] = {{{"--config", p->config, "--check-config"}, 1}, {{"--check-config"}, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(wait_exit(spawn(p, -1, cases[i].arguments)), cases[i].code);
    assert_int_equal(stop(p), 0);
}

/* Fills the history with about 20 MB: device seconds of the last days. */
static void fill_history(const struct place *p)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(p->db, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(
            db,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 210000) "
            "INSERT INTO stored_device_second(second, device_id, samples, covered_ns, elapsed_min_e4) "
            "SELECT unixepoch() - i, 1, 1000, 1000000000, 123456789012345 FROM n; "
            "PRAGMA wal_checkpoint(TRUNCATE)",
            NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void await_size(const struct place *p, off_t low, off_t high)
{
    struct stat status = {0};
    for (int ms = 0; stat(p->db, &status) != 0 || status.st_size < low || status.st_size > high; ms += 5) {
        assert_true(ms < DEADLINE_MS);
        pause_ms(5);
    }
}

/* The file shrinks after a reload and after a restart, although no program reports. */
static void a_smaller_quota_shrinks_the_file(void **state)
{
    struct place *p = *state;
    const char *const arguments[] = {"--config", p->config, NULL};
    write_config(p, "database: {max_size: 64M}\n");
    start(p, arguments);
    fill_history(p);
    await_size(p, 20 << 20, 64 << 20);
    write_config(p, "database: {max_size: 18M}\n");
    assert_int_equal(kill(p->daemon, SIGHUP), 0);
    await_log(p, "database.max_size has a new value\n");
    await_size(p, 1, 18 << 20);
    assert_int_equal(stop(p), 0);
    write_config(p, "database: {max_size: 16M}\n");
    start(p, arguments);
    await_size(p, 1, 16 << 20);
    assert_int_equal(stop(p), 0);
}

/* --migrate is refused while a daemon has the history open. The file already has the current version. */
static void histories_are_migrated_without_a_daemon(void **state)
{
    struct place *p = *state;
    start(p, NULL);
    assert_int_equal(wait_exit(spawn(p, -1, (const char *[]){"--migrate", p->db, NULL})), 1);
    await_log(p, "a daemon or another program has it open: end that first\n");
    assert_int_equal(stop(p), 0);
    assert_int_equal(wait_exit(spawn(p, -1, (const char *[]){"--migrate", p->directory, "--backup", NULL})),
                     0);
    assert_int_equal(wait_exit(spawn(p, -1, (const char *[]){"--migrate", "/nonexistent", NULL})), 1);
}

/* The daemon has only 40 descriptors: it turns excess clients away, and serves clients again once descriptors
 * are free. */
static void descriptors_run_out_and_come_back(void **state)
{
    struct place *p = *state;
    const struct rlimit few = {40, 40};
    int fds[60];
    char answer[OCC_CONTROL_BYTES];
    start(p, NULL);
    assert_int_equal(prlimit(p->daemon, RLIMIT_NOFILE, &few, NULL), 0);
    for (int i = 0; i < 60; i++)
        fds[i] = connect_to(p);
    int refused = 0;
    for (int i = 0; i < 60; i++) {
        char byte;
        (void)send(fds[i], "ping", 4, MSG_NOSIGNAL);
        struct pollfd wait = {.fd = fds[i], .events = POLLIN};
        assert_int_equal(poll(&wait, 1, DEADLINE_MS), 1); /* an answer or the end, never silence */
        refused += recv(fds[i], &byte, 1, 0) <= 0;
    }
    assert_true(refused > 20 && refused < 60);
    for (int i = 0; i < 60; i++)
        (void)close(fds[i]);
    for (int ms = 0; ask(p, "ping", answer, sizeof answer) != 0; ms += 5) {
        assert_true(ms < DEADLINE_MS);
        pause_ms(5);
    }
    assert_int_equal(stop(p), 0);
}

/* The man page names each long option of --help. */
static void the_man_page_knows_every_option(void **state)
{
    struct place *p = *state;
    static char help[65536], page[65536];
    int options = 0;
    assert_int_equal(wait_exit(spawn(p, -1, (const char *[]){"--help", NULL})), 0);
    read_file(p->log, help, sizeof help);
    read_file(OCC_MAN_PAGE, page, sizeof page);
    for (const char *at = strstr(help, " --"); at; at = strstr(at + 1, " --"), options++) {
        char escaped[64] = "\\-";
        size_t used = 2;
        for (const char *c = at + 3; (*c >= 'a' && *c <= 'z') || *c == '-'; c++) {
            if (*c == '-')
                escaped[used++] = '\\';
            escaped[used++] = *c;
            escaped[used] = '\0';
        }
        if (!strstr(page, escaped))
            fail_msg("the man page lacks %s", escaped);
    }
    assert_true(options >= 8);
}

/* The launches need more than 16 MiB: the daemon evicts the oldest and keeps running. */
static void a_quota_is_kept(void **state)
{
    struct place *p = *state;
    struct occ_ring_producer ring;
    struct stat status;
    char answer[OCC_CONTROL_BYTES];
    uint32_t seed = 5;
    write_config(p, "database: {max_size: 16M, chunk_rows: 8192}\n");
    start(p, (const char *[]){"--config", p->config, NULL});
    make_ring(&ring, 1u << 16, SESSION);
    int fd = offer(p, &ring);
    for (uint64_t i = 0; i < 2000000; i++) {
        struct occ_ring_launch l = sample_launch(i);
        seed = seed * 1664525u + 1013904223u;
        l.duration_ns = seed; /* packs badly */
        l.graph_node = (uint64_t)seed << 20;
        for (int ms = 0; !occ_ring_push(&ring, &l); ms++) {
            assert_true(ms < DEADLINE_MS);
            pause_ms(1);
        }
    }
    occ_ring_close(&ring);
    (void)flush(p);
    assert_int_equal(stat(p->db, &status), 0);
    assert_true(status.st_size <= 16 << 20);
    assert_int_equal(ask(p, "ping", answer, sizeof answer), 0);
    assert_int_equal(stop(p), 0);
    const struct occ_store_options options = {.mode = OCC_STORE_READ};
    struct occ_store *store = NULL;
    assert_int_equal(occ_store_open(p->db, &options, &store, NULL), 0);
    sqlite3 *db = occ_store_sqlite(store);
    int64_t kept = number(db, "SELECT count(*) FROM launch");
    assert_in_range(kept, 8192, 1999999); /* a starved daemon commits few at a time, which packs worse */
    assert_int_equal(number(db, "SELECT max(correlation_id) FROM launch"), 1999999);
    occ_store_close(store);
    (void)close(fd);
    occ_ring_destroy(&ring);
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_short_program_is_complete_after_a_flush),
        T(recording_of_a_program_is_paused_by_its_owner),
        T(two_rings_are_paused_together),
        T(a_program_that_is_gone_is_not_paused),
        T(a_live_program_is_committed_by_a_flush),
        T(sigterm_loses_nothing),
        T(kill_9_at_any_moment_loses_and_repeats_nothing),
        T(a_run_that_lost_program_and_daemon_gets_its_end),
        T(hostile_handshakes_are_refused),
        T(a_broken_ring_is_put_away_and_others_go_on),
        T(text_requests),
        T(a_private_daemon_ends_with_its_last_program),
        T(a_private_daemon_without_programs_ends_at_once),
        T(a_program_that_closes_everything_is_still_read),
        T(a_live_daemon_keeps_its_socket_a_dead_one_does_not),
        T(directories_of_others_are_not_trusted),
        T(the_command_line),
        T(the_configuration_counts_and_the_command_line_wins),
        T(what_is_no_database_is_refused),
        T(service_managers_are_told),
        T(settings_are_read_again),
        T(a_smaller_quota_shrinks_the_file),
        T(histories_are_migrated_without_a_daemon),
        T(descriptors_run_out_and_come_back),
        T(the_man_page_knows_every_option),
        T(a_quota_is_kept),
    };
#undef T
    choose_cases(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
