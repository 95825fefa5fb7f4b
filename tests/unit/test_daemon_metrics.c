/*
 * /metrics and /healthz of a daemon: over its Unix socket, over a TCP socket that is passed as systemd does,
 * and with clients that send too much, too slowly, or nothing, in great number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "cases.h"
#include "daemon_programs.h"

#define NEVER_NS   INT64_C(3600000000000)
#define PAGE_BYTES ((size_t)128 * 1024)
#define CROWD      1000

static void start_with_http(struct place *p)
{
    (void)snprintf(p->http, sizeof p->http, "%s/metrics.sock", p->directory);
    if (!p->root[0]) /* the driver of this machine does not list the programs' GPUs */
        (void)snprintf(p->root, sizeof p->root, "%s/root", p->directory);
    start(p, NEVER_NS);
}

static int connect_http(const struct place *p, bool nonblocking)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", p->http);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0), 0);
    assert_true(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* Sends a request and reads until the server hangs up. Closes fd. */
static void talk(int fd, const char *request, char page[PAGE_BYTES])
{
    size_t n = 0;
    assert_true(fd >= 0);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    for (ssize_t got; (got = recv(fd, page + n, PAGE_BYTES - 1 - n, 0)) > 0;)
        n += (size_t)got;
    page[n] = '\0';
    (void)close(fd);
}

static void get(const struct place *p, const char *path, char page[PAGE_BYTES])
{
    char request[128];
    (void)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    talk(connect_http(p, false), request, page);
}

/* Waits until the page contains the text. */
static void await_metric(const struct place *p, const char *what, char page[PAGE_BYTES])
{
    get(p, "/metrics", page);
    for (int ms = 0; !strstr(page, what); ms += 50) {
        if (ms >= DEADLINE_MS || !is_alive(p))
            fail_msg("no '%s' in:\n%s", what, page);
        pause_ms(50);
        get(p, "/metrics", page);
    }
}

static void report(const struct place *p, int variant)
{
    struct occ_ring_producer ring;
    make_ring(&ring, (uint64_t)variant);
    meet(offer(p, &ring));
    wait_for_end(p);
}

static void launches_are_counted(void **state)
{
    struct place *p = *state;
    char *page = malloc(PAGE_BYTES);
    start_with_http(p);
    pid_t program = run(p, report, 200);
    await_launches(p, 200);
    await_metric(p, "modelName=\"a device\"} 200\n", page);
    assert_non_null(strstr(page, "HTTP/1.1 200 OK"));
    assert_non_null(strstr(page, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert_non_null(strstr(page, "occtrace_kernel_wasted_warp_seconds_total{"));
    assert_non_null(strstr(page, "kernel=\"axpy\"}"));
    assert_non_null(strstr(page, "occtrace_run_info{"));
    let_go(p, program);
    get(p, "/healthz", page);
    assert_non_null(strstr(page, "HTTP/1.1 200 OK"));
    assert_non_null(strstr(page, "\r\n\r\nok\n"));
    assert_stops(p);
    assert_int_equal(access(p->http, F_OK), -1);
    free(page);
}

#define CROWD_PROGRAMS 200
#define CROWD_KERNELS  500

/* Makes a ring with one launch of each of its kernels, on one of 8 GPUs, in one of 50 jobs. */
static void make_full_ring(struct occ_ring_producer *ring, unsigned int number)
{
    char text[128], name[32];
    struct occ_record_device device = {
        .record.type = OCC_RECORD_DEVICE, .cc_major = 9, .sm_count = 132, .name = "a device"};
    device.uuid[0] = (uint8_t)(number % 8 + 1);
    int n = snprintf(text, sizeof text, "session%c" SESSION "%cslurm_job%c%u", 0, 0, 0, number % 50);
    check(occ_ring_create(ring, 512, 128u << 10) == 0);
    check(log_process(ring, 2, text, (uint32_t)n + 1) &&
          occ_ring_log(ring, &device.record, sizeof device, NULL, 0));
    for (uint32_t i = 0; i < CROWD_KERNELS; i++) {
        struct occ_record_config config = sample_config(i);
        struct occ_ring_launch launch = sample_launch(i);
        (void)snprintf(name, sizeof name, "_Z9kernel%03uPf", i);
        config.kernel = launch.config = i;
        check(log_kernel(ring, i, name) && occ_ring_log(ring, &config.record, sizeof config, NULL, 0));
        check(occ_ring_push(ring, &launch));
    }
}

static void report_all(const struct place *p, int variant)
{
    static struct occ_ring_producer rings[CROWD_PROGRAMS];
    (void)variant;
    for (unsigned int i = 0; i < CROWD_PROGRAMS; i++) {
        make_full_ring(&rings[i], i);
        meet(offer(p, &rings[i]));
    }
    wait_for_end(p);
}

static size_t count_series(const char *page)
{
    size_t n = 0;
    for (const char *line = strstr(page, "\r\n\r\n") + 4; *line; line = strchr(line, '\n') + 1)
        n += *line != '#';
    return n;
}

/* The page stays small, however many programs and kernels a node has. */
static void a_full_node_has_few_series(void **state)
{
    struct place *p = *state;
    char *page = malloc(PAGE_BYTES);
    p->max_producers = p->max_user_producers = CROWD_PROGRAMS + 8;
    start_with_http(p);
    pid_t program = run(p, report_all, 0);
    await_launches(p, (uint64_t)CROWD_PROGRAMS * CROWD_KERNELS);
    await_metric(p, "occtrace_programs{", page);
    for (int gpu = 1; gpu <= 8; gpu++) {
        char uuid[128];
        (void)snprintf(uuid, sizeof uuid,
                       "UUID=\"GPU-%02d000000-0000-0000-0000-000000000000\",modelName=\"a device\"} %d\n",
                       gpu, CROWD_PROGRAMS / 8 * CROWD_KERNELS);
        await_metric(p, uuid, page);
    }
    assert_in_range(count_series(page), 200, 699);
    assert_non_null(strstr(page, "slurm_job=\"49\""));
    let_go(p, program);
    assert_stops(p);
    free(page);
}

/* The program runs on GPU 0; the scheduler has given GPU 0 and the idle GPU 1 to jobs. */
static void jobs_are_named(void **state)
{
    struct place *p = *state;
    char *page = malloc(PAGE_BYTES), command[512];
    if (geteuid() != 0) {
        free(page);
        print_message("skipped: only root's files are believed\n");
        skip();
    }
    (void)snprintf(p->root, sizeof p->root, "%s/root", p->directory);
    (void)snprintf(p->jobs, sizeof p->jobs, "%s/jobs", p->directory);
    (void)snprintf(
        command, sizeof command,
        "g=%s/proc/driver/nvidia/gpus; mkdir -p $g/0 $g/1 %s && cd %s && echo 4711 >0 && "
        "echo 4712 >1 && echo 'GPU UUID: GPU-00000000-0000-0000-0000-000000000000' >$g/0/information && "
        "echo 'GPU UUID: GPU-11111111-1111-1111-1111-111111111111' >$g/1/information",
        p->root, p->jobs, p->jobs);
    assert_int_equal(system(command), 0);
    start_with_http(p);
    pid_t program = run(p, report, 200);
    await_launches(p, 200);
    await_metric(p, ",slurm_job=\"4711\",job_trust=\"scheduler\"} 1\n", page);
    assert_non_null(
        strstr(page, "UUID=\"GPU-11111111-1111-1111-1111-111111111111\",slurm_job=\"4712\"} 1\n"));
    let_go(p, program);
    assert_stops(p);
    free(page);
}

static void openmetrics_on_request(void **state)
{
    struct place *p = *state;
    char *page = malloc(PAGE_BYTES);
    start_with_http(p);
    talk(connect_http(p, false),
         "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept: "
         "application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\r\n",
         page);
    assert_non_null(strstr(page, "application/openmetrics-text; version=1.0.0"));
    assert_non_null(strstr(page, "# TYPE occtrace_launches_lost counter\n"));
    assert_string_equal(page + strlen(page) - 6, "# EOF\n");
    assert_stops(p);
    free(page);
}

/* Only the daemon's user (or a group, by an access control list) has access to the Unix socket. */
static void socket_is_closed_to_others(void **state)
{
    struct place *p = *state;
    struct stat status;
    start_with_http(p);
    assert_int_equal(stat(p->http, &status), 0);
    assert_int_equal(status.st_mode & 0007, 0);
    assert_stops(p);
}

static void tcp_names_nobody(void **state)
{
    struct place *p = *state;
    char *page = malloc(PAGE_BYTES);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    p->passed_fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(p->passed_fd, (const struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(p->passed_fd, 16), 0);
    assert_int_equal(getsockname(p->passed_fd, (struct sockaddr *)&address, &size), 0);
    start_with_http(p);
    pid_t program = run(p, report, 200);
    await_launches(p, 200);
    await_metric(p, "modelName=\"a device\"} 200\n", page);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, size), 0);
    talk(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", page);
    assert_non_null(strstr(page, "modelName=\"a device\"} 200\n"));
    assert_non_null(strstr(page, "occtrace_store_bytes"));
    assert_null(strstr(page, "axpy"));
    assert_null(strstr(page, "occtrace_run"));
    let_go(p, program);
    assert_stops(p);
    (void)close(p->passed_fd);
    free(page);
}

/* Other requests than for a page get an error, or the end of the connection. */
static void hostile_requests_are_refused(void **state)
{
    struct place *p = *state;
    char *page = malloc(PAGE_BYTES), *huge = malloc(PAGE_BYTES);
    start_with_http(p);
    get(p, "/../etc/passwd", page);
    assert_non_null(strstr(page, "HTTP/1.1 404 "));
    talk(connect_http(p, false), "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\nxxx",
         page);
    assert_non_null(strstr(page, "HTTP/1.1 405 "));
    (void)snprintf(huge, PAGE_BYTES, "GET /metrics HTTP/1.1\r\nHost: x\r\nX: %0100000d\r\n\r\n", 0);
    int fd = connect_http(p, false);
    (void)send(fd, huge, strlen(huge), MSG_NOSIGNAL); /* may fail: the server stops reading */
    while (recv(fd, page, PAGE_BYTES, 0) > 0)
        assert_null(strstr(page, "200 OK"));
    (void)close(fd);
    get(p, "/healthz", page);
    assert_non_null(strstr(page, "200 OK"));
    assert_stops(p);
    free(page);
    free(huge);
}

/* Most of the connections wait in the socket's queue or are refused by the kernel: the daemon keeps few
 * descriptors and serves programs that start meanwhile. */
static void a_crowd_does_not_stop_the_collector(void **state)
{
    struct place *p = *state;
    int fds[CROWD];
    start_with_http(p);
    size_t before = count_descriptors(p);
    for (int i = 0; i < CROWD; i++) {
        fds[i] = connect_http(p, true);
        if (fds[i] >= 0 && i % 2)
            (void)send(fds[i], "GET /metr", 9, MSG_NOSIGNAL);
    }
    pid_t program = run(p, report, 200);
    await_launches(p, 200);
    assert_true(count_descriptors(p) <= before + 32 + 3); /* 32 connections; 3 for the program */
    let_go(p, program);
    for (int i = 0; i < CROWD; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    char *page = malloc(PAGE_BYTES);
    await_metric(p, "occtrace_programs{", page);
    assert_stops(p);
    free(page);
}

/* A silent connection is closed, and the daemon sleeps until then. */
static void silence_ends_a_connection(void **state)
{
    struct place *p = *state;
    char byte;
    start_with_http(p);
    int fd = connect_http(p, false);
    assert_int_equal(send(fd, "GET /m", 6, MSG_NOSIGNAL), 6);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, DEADLINE_MS), 1);
    while (recv(fd, &byte, 1, 0) > 0)
        ;
    (void)close(fd);
    assert_stops(p);
}

/* A daemon that starts while this one drains its rings must not find the metrics socket taken and the main
 * socket free: it would run without metrics for its whole life. */
static void its_socket_goes_before_the_daemons(void **state)
{
    struct place *p = *state;
    _Alignas(struct inotify_event) char events[4096];
    int removals = inotify_init1(IN_CLOEXEC);
    const char *order[8] = {NULL};
    size_t n = 0;
    start_with_http(p);
    assert_true(removals >= 0 && inotify_add_watch(removals, p->directory, IN_DELETE) >= 0);
    assert_stops(p);
    ssize_t bytes = read(removals, events, sizeof events);
    for (ssize_t at = 0; at < bytes && n < 8;) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)(events + at);
        if (strstr(event->name, ".sock"))
            order[n++] = event->name;
        at += (ssize_t)(sizeof *event + event->len);
    }
    assert_int_equal(n, 2);
    assert_string_equal(order[0], "metrics.sock");
    assert_string_equal(order[1], "occtraced.sock");
    (void)close(removals);
}

int main(int argc, char **argv)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(jobs_are_named),
        T(launches_are_counted),
        T(a_full_node_has_few_series),
        T(openmetrics_on_request),
        T(socket_is_closed_to_others),
        T(its_socket_goes_before_the_daemons),
        T(tcp_names_nobody),
        T(hostile_requests_are_refused),
        T(a_crowd_does_not_stop_the_collector),
        T(silence_ends_a_connection),
    };
    choose_cases(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
