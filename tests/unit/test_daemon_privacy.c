/*
 * Access to root's daemon: Alice, Bob and root try to read and to change a program of Alice. The results make
 * the table in docs/privacy.md. Only root can act as several users.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "daemon_programs.h"

#define NEVER_NS   INT64_C(3600000000000)
#define ALICE      61001
#define BOB        61002
#define PAGE_BYTES ((size_t)128 * 1024)

static struct sockaddr_in tcp; /* address of /metrics over TCP */
static pid_t program;          /* Alice's */

/* ---- attempts; true: allowed ---- */

static bool can_open(const struct place *p, int owner)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/u%d/history.db", p->directory, owner);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && close(fd) == 0;
}

static bool read_alices_history(const struct place *p)
{
    return can_open(p, ALICE);
}

static bool read_roots_history(const struct place *p)
{
    return can_open(p, 0);
}

static bool is_told(const struct place *p, const char *request, const char *what)
{
    char answer[OCC_CONTROL_BYTES];
    int fd = connect_to(p);
    int status = occ_control_request(fd, request, DEADLINE_MS, answer, sizeof answer, NULL);
    (void)close(fd);
    return status == 0 && strstr(answer, what) != NULL;
}

static bool ask_status(const struct place *p)
{
    return is_told(p, "status", "\nlaunches ");
}

static bool ask_for_alices_refusals(const struct place *p)
{
    return is_told(p, "status", "\nrefused_invalid 1\n");
}

static bool ask_for_alices_history(const struct place *p)
{
    return is_told(p, "history 0", "owner u61001\n") || is_told(p, "history 1", "owner u61001\n") ||
           is_told(p, "history 2", "owner u61001\n");
}

static bool ask_for_alices_session(const struct place *p)
{
    return is_told(p, "flush " SESSION, "10");
}

static bool pause_alices_program(const struct place *p)
{
    char request[32];
    (void)snprintf(request, sizeof request, "pause_run %d", (int)program);
    return is_told(p, request, "");
}

static bool page_has(int fd, const struct sockaddr *address, socklen_t size, const char *what)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    char *page = calloc(1, PAGE_BYTES);
    size_t n = 0;
    check(fd >= 0 && page);
    if (connect(fd, address, size) == 0 &&
        send(fd, request, sizeof request - 1, MSG_NOSIGNAL) == sizeof request - 1)
        for (ssize_t got; (got = recv(fd, page + n, PAGE_BYTES - 1 - n, 0)) > 0;)
            n += (size_t)got;
    bool found = strstr(page, what) != NULL;
    (void)close(fd);
    free(page);
    return found;
}

static bool read_metrics(const struct place *p)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", p->http);
    return page_has(socket(AF_UNIX, SOCK_STREAM, 0), (const struct sockaddr *)&address, sizeof address,
                    "occtrace_run_info{");
}

static bool read_tcp(const struct place *p)
{
    (void)p;
    return page_has(socket(AF_INET, SOCK_STREAM, 0), (const struct sockaddr *)&tcp, sizeof tcp,
                    "occtrace_gpu_launches_total{");
}

static bool read_names_by_tcp(const struct place *p)
{
    (void)p;
    return page_has(socket(AF_INET, SOCK_STREAM, 0), (const struct sockaddr *)&tcp, sizeof tcp,
                    "occtrace_run_info");
}

static const struct {
    const char *what;
    bool (*try)(const struct place *p);
} rows[] = {
    {"Alice's history: launches, command lines, measured values, seconds of her GPUs", read_alices_history},
    {"root's history: samples of all GPUs at full rate", read_roots_history},
    {"totals of the daemon (`occtraced --status`)", ask_status},
    {"refusals of Alice's programs by cause (`occtraced --status`, `occq runs`)", ask_for_alices_refusals},
    {"path, size and losses of Alice's history (`occtraced --status`)", ask_for_alices_history},
    {"number of launches of a session of Alice, by its id", ask_for_alices_session},
    {"`/metrics` on the Unix socket, with users, jobs, runs and kernels", read_metrics},
    {"`/metrics` over TCP: GPUs and the store", read_tcp},
    {"`/metrics` over TCP: users, jobs, runs or kernels", read_names_by_tcp},
    {"pausing Alice's program (`occq runs pause`)", pause_alices_program},
};
#define N_ROWS (sizeof rows / sizeof *rows)

/* ---- the table ---- */

static void launch_ten(const struct place *p, int uid)
{
    struct occ_ring_producer ring;
    check(setresgid((gid_t)uid, (gid_t)uid, (gid_t)uid) == 0 &&
          setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) == 0);
    make_ring(&ring, 10);
    meet(offer(p, &ring));
    wait_for_end(p);
}

static void be_refused(const struct place *p, int uid)
{
    const struct occ_hello hello = {.magic = OCC_HELLO_MAGIC}; /* without a ring */
    char byte;
    check(setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) == 0);
    int fd = connect_to(p);
    check(send(fd, &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello);
    while (recv(fd, &byte, 1, 0) != 0) /* until the daemon hangs up */
        pause_ms(1);
}

static bool tries(const struct place *p, uid_t uid, bool (*try)(const struct place *p))
{
    int status = -1;
    (void)fflush(NULL);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        check(setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0);
        _exit(try(p) ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    return WEXITSTATUS(status) == 1;
}

static void listen_tcp(struct place *p)
{
    socklen_t size = sizeof tcp;
    tcp = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    p->passed_fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(p->passed_fd, (const struct sockaddr *)&tcp, size), 0);
    assert_int_equal(listen(p->passed_fd, 16), 0);
    assert_int_equal(getsockname(p->passed_fd, (struct sockaddr *)&tcp, &size), 0);
}

static void the_documents_table_holds(void **state)
{
    struct place *p = *state;
    static const uid_t askers[] = {ALICE, BOB, 0};
    char document[8192] = "", line[256], answer[OCC_CONTROL_BYTES] = "";
    if (geteuid() != 0) {
        print_message("skipped: only root can be several users\n");
        skip();
    }
    FILE *file = fopen(OCC_PRIVACY, "r");
    assert_non_null(file);
    assert_true(fread(document, 1, sizeof document - 1, file) > 0);
    (void)fclose(file);
    p->split = true;
    listen_tcp(p);
    (void)snprintf(p->http, sizeof p->http, "%s/metrics.sock", p->directory);
    assert_int_equal(chmod(p->directory, 0755), 0);
    start(p, NEVER_NS);
    let_go(p, run(p, be_refused, ALICE));
    program = run(p, launch_ten, ALICE);
    for (int ms = 0; !strstr(answer, "\nlaunches 10\n"); ms += 5) {
        assert_true(ms < DEADLINE_MS && ask(p, "status", answer));
        pause_ms(5);
    }
    for (size_t i = 0; i < N_ROWS; i++) {
        int n = snprintf(line, sizeof line, "| %s |", rows[i].what);
        for (size_t k = 0; k < sizeof askers / sizeof *askers; k++)
            n += snprintf(line + n, sizeof line - (size_t)n, " %s |",
                          tries(p, askers[k], rows[i].try) ? "yes" : "-");
        if (!strstr(document, line))
            fail_msg("docs/privacy.md lacks '%s'", line);
    }
    let_go(p, program);
    assert_stops(p);
    (void)close(p->passed_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_documents_table_holds, setup, teardown)};
    return cmocka_run_group_tests_name("daemon privacy", tests, NULL, NULL);
}
