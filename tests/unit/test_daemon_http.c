/* The sockets of the daemon's HTTP server, without a daemon: own sockets and foreign ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/serve/metrics/http.h"
#include "support/clock.h"

static char directory[] = "/tmp/test_daemon_http_XXXXXX";
static struct sockaddr_un address = {.sun_family = AF_UNIX};

static int make_directory(void **state)
{
    (void)state;
    if (!mkdtemp(directory))
        return 1;
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/metrics.sock", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    (void)unlink(address.sun_path);
    return rmdir(directory);
}

static int open_http(const char *path, struct occ_http **ret_http)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_http_options options = {.socket_path = path, .listen = "", .tls_paths = {"", "", ""}};
    return occ_http_open(&options, ret_http, &err);
}

static int listen_at_path(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void a_socket_goes_with_its_server(void **state)
{
    struct occ_http *http = NULL;
    (void)state;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(open_http(address.sun_path, &http), 0);
        assert_int_equal(access(address.sun_path, F_OK), 0);
        occ_http_close(http);
        assert_int_equal(access(address.sun_path, F_OK), -1);
    }
}

/* A socket that another daemon has put in place of the server's stays. */
static void the_socket_of_another_stays(void **state)
{
    struct occ_http *http = NULL;
    (void)state;
    assert_int_equal(open_http(address.sun_path, &http), 0);
    assert_int_equal(unlink(address.sun_path), 0);
    int other = listen_at_path();
    occ_http_close(http);
    assert_int_equal(access(address.sun_path, F_OK), 0);
    assert_int_equal(open_http(address.sun_path, &http),
                     OCC_E_BUSY); /* a socket in use is not replaced, either */
    (void)close(other);
    assert_int_equal(open_http(address.sun_path, &http), 0);
    occ_http_close(http);
}

/* Opens a server with a listening socket as descriptor 3, passed for the process `pid`. Returns the exit
 * code: 1 if the variables are left, 2 if the socket is taken, 3 if neither. */
static int open_passed(const char *pid, const char *count)
{
    struct occ_http *http = NULL;
    int fd = listen_at_path();
    if (dup2(fd, 3) != 3 || setenv("LISTEN_PID", pid, 1) != 0 || setenv("LISTEN_FDS", count, 1) != 0)
        return 10;
    if (open_http("", &http) != 0)
        return 11;
    bool is_left = getenv("LISTEN_PID") && getenv("LISTEN_FDS");
    bool is_taken = http != NULL;
    occ_http_close(http);
    return is_left ? 1 : is_taken ? 2 : 3;
}

static int passed_to(int64_t pid, const char *count)
{
    char text[24];
    int status = 0;
    (void)fflush(NULL);
    (void)unlink(address.sun_path);
    pid_t child = fork();
    if (child == 0) {
        (void)snprintf(text, sizeof text, "%lld", (long long)(pid ? pid : getpid()));
        _exit(open_passed(text, count));
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* A process inherits the variables of sd_listen_fds(3), but not the descriptors. */
static void sockets_of_another_process_are_not_taken(void **state)
{
    (void)state;
    assert_int_equal(passed_to(0, "1"), 2);
    assert_int_equal(passed_to(getpid(), "1"), 1);
    assert_int_equal(passed_to(1, "1"), 1);
    assert_int_equal(passed_to(0, "0"), 1);
    assert_int_equal(passed_to(0, "99"), 1);
}

/* ---- slow clients of a TCP socket ---- */

static int listen_tcp(struct sockaddr_in *ret_name)
{
    socklen_t size = sizeof *ret_name;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *ret_name = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (const struct sockaddr *)ret_name, size), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)ret_name, &size), 0);
    return fd;
}

/* Serves the listening socket until it is killed. */
static pid_t serve(int listening, int64_t request_ns)
{
    struct occ_http *http = NULL;
    struct occ_http_options options = {
        .socket_path = "", .listen = "", .tls_paths = {"", "", ""}, .request_ns = request_ns};
    char text[24];
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0)
        return child;
    (void)snprintf(text, sizeof text, "%lld", (long long)getpid());
    if (dup2(listening, 3) != 3 || setenv("LISTEN_PID", text, 1) != 0 || setenv("LISTEN_FDS", "1", 1) != 0 ||
        occ_http_open(&options, &http, NULL) != 0)
        _exit(1);
    for (;;) {
        (void)poll(&(struct pollfd){.fd = occ_http_fd(http), .events = POLLIN}, 1, -1);
        occ_http_serve(http);
    }
}

static void end(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Connects from the address 127.0.0.`host`. */
static int connect_from(const struct sockaddr_in *server, uint32_t host)
{
    const struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000 | host)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)server, sizeof *server), 0);
    return fd;
}

static bool is_answered(int fd)
{
    static const char request[] = "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n";
    char answer[16];
    return send(fd, request, sizeof request - 1, MSG_NOSIGNAL) > 0 && recv(fd, answer, sizeof answer, 0) > 0;
}

/* Occasional bytes do not extend a request's deadline. */
static void a_request_has_a_deadline(void **state)
{
    struct sockaddr_in server;
    char byte;
    (void)state;
    int listening = listen_tcp(&server);
    pid_t child = serve(listening, INT64_C(300000000));
    int fd = connect_from(&server, 1);
    assert_true(send(fd, "GET /", 5, MSG_NOSIGNAL) == 5);
    int tries = 0;
    while (tries++ < 500 && send(fd, "a", 1, MSG_NOSIGNAL) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) < 0 &&
           errno == EAGAIN)
        (void)poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 20);
    assert_in_range(tries, 2, 500);
    (void)close(fd);
    fd = connect_from(&server, 1);
    assert_true(is_answered(fd));
    (void)close(fd);
    end(child);
    (void)close(listening);
}

/* Idle connections of one address leave room for other addresses. */
static void an_address_leaves_places_for_others(void **state)
{
    struct sockaddr_in server;
    int fds[40];
    char byte;
    (void)state;
    int listening = listen_tcp(&server);
    pid_t child = serve(listening, INT64_C(3600000000000));
    for (size_t i = 0; i < 40; i++)
        fds[i] = connect_from(&server, 1);
    int fd = connect_from(&server, 2);
    assert_true(is_answered(fd));
    assert_int_equal(recv(fds[0], &byte, 1, MSG_DONTWAIT),
                     -1); /* still waiting while the other is answered */
    (void)close(fd);
    for (size_t i = 0; i < 40; i++)
        (void)close(fds[i]);
    end(child);
    (void)close(listening);
}

/* ---- an address of the settings ---- */

static void write_who(void *context, FILE *out, bool has_identity, bool is_openmetrics)
{
    (void)context;
    (void)is_openmetrics;
    (void)fputs(has_identity ? "with names" : "without names", out);
}

static bool write_illness(void *context, FILE *out)
{
    (void)context;
    (void)fputs("disk", out);
    return false;
}

/* Serves at the address and at the path until it is killed. */
static pid_t serve_address(const char *listen, const char *path)
{
    struct occ_http *http = NULL;
    const struct occ_http_options options = {.socket_path = path,
                                             .listen = listen,
                                             .tls_paths = {"", "", ""},
                                             .write_metrics = write_who,
                                             .write_health = write_illness};
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) {
        (void)close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        (void)close(ready[0]);
        return child;
    }
    if (occ_http_open(&options, &http, NULL) != 0 || !http || write(ready[1], "r", 1) != 1)
        _exit(1);
    for (;;) {
        (void)poll(&(struct pollfd){.fd = occ_http_fd(http), .events = POLLIN}, 1, -1);
        occ_http_serve(http);
    }
}

/* Returns the status of the answer, and checks that it contains the text. Closes fd. */
static int status_of(int fd, const char *url, const char *what)
{
    char request[64], text[1024];
    size_t n = 0;
    (void)snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", url);
    assert_true(send(fd, request, strlen(request), MSG_NOSIGNAL) > 0);
    for (ssize_t got; n < sizeof text - 1 && (got = recv(fd, text + n, sizeof text - 1 - n, 0)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
    (void)close(fd);
    assert_true(n > 12 && strstr(text, what));
    return atoi(text + 9);
}

static void an_address_of_the_settings_is_served(void **state)
{
    struct sockaddr_in server;
    char listen[32];
    (void)state;
    (void)close(listen_tcp(&server)); /* a port that is free */
    (void)snprintf(listen, sizeof listen, "127.0.0.1:%u", ntohs(server.sin_port));
    pid_t child = serve_address(listen, "");
    assert_int_equal(status_of(connect_from(&server, 1), "/metrics", "without names"), 200);
    assert_int_equal(status_of(connect_from(&server, 1), "/livez", "ok"), 200);
    assert_int_equal(status_of(connect_from(&server, 1), "/readyz", "disk"), 503);
    assert_int_equal(status_of(connect_from(&server, 1), "/nothing", "/readyz"), 404);
    end(child);
}

static void an_address_that_is_taken_leaves_the_socket(void **state)
{
    struct sockaddr_in server;
    char listen[32];
    (void)state;
    int taken = listen_tcp(&server);
    (void)snprintf(listen, sizeof listen, "127.0.0.1:%u", ntohs(server.sin_port));
    pid_t child = serve_address(listen, address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(status_of(fd, "/metrics", "with names"), 200);
    end(child);
    (void)close(taken);
}

/* ---- another certificate ---- */

static void make_certificates(void)
{
    char command[1024];
    (void)snprintf(
        command, sizeof command,
        "cd %s && for days in 2 30; do openssl req -x509 -newkey rsa:2048 -nodes -days $days -subj "
        "/CN=ca -keyout $days.key -out $days.pem || exit 1; done 2>errors",
        directory);
    if (system("command -v openssl >/dev/null") != 0)
        skip();
    assert_int_equal(system(command), 0);
}

static void use_certificate(int days)
{
    char command[256];
    (void)snprintf(command, sizeof command, "cd %s && cp %d.pem server.pem && cp %d.key server.key",
                   directory, days, days);
    if (system(command) != 0)
        _exit(1);
}

/* Leaves one free descriptor: enough for reading a file, too few for another server. */
static void leave_one_descriptor(rlim_t *ret_before)
{
    struct rlimit limit;
    int next = dup(0);
    (void)close(next);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(2);
    *ret_before = limit.rlim_cur;
    limit.rlim_cur = (rlim_t)next + 1;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(2);
}

/* Runs a server on `listening` that gets a new certificate while it has no descriptor for loading it, and
 * then has one again. Returns the exit code, 0 if the new certificate is in use at the end. */
static int change_certificate(int listening)
{
    char certificate[64], key[64], text[24];
    struct occ_http *http = NULL;
    struct rlimit limit;
    rlim_t before;
    (void)snprintf(certificate, sizeof certificate, "%s/server.pem", directory);
    (void)snprintf(key, sizeof key, "%s/server.key", directory);
    (void)snprintf(text, sizeof text, "%lld", (long long)getpid());
    const struct occ_http_options options = {
        .socket_path = "", .listen = "", .tls_paths = {certificate, key, certificate}, .reload_ns = 1};
    use_certificate(2);
    if (dup2(listening, 3) != 3 || setenv("LISTEN_PID", text, 1) != 0 || setenv("LISTEN_FDS", "1", 1) != 0 ||
        occ_http_open(&options, &http, NULL) != 0)
        return 3;
    int64_t first_s = occ_http_expiry_s(http, OCC_TLS_CERTIFICATE);
    use_certificate(30);
    leave_one_descriptor(&before);
    occ_http_serve(http);
    if (occ_http_expiry_s(http, OCC_TLS_CERTIFICATE) != first_s)
        return 4;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 5;
    limit.rlim_cur = before;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 5;
    occ_http_serve(http);
    int64_t second_s = occ_http_expiry_s(http, OCC_TLS_CERTIFICATE);
    occ_http_close(http);
    return second_s > first_s ? 0 : 6;
}

static bool is_listening(const struct sockaddr_in *server)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_connected = connect(fd, (const struct sockaddr *)server, sizeof *server) == 0;
    (void)close(fd);
    return is_connected;
}

/* Serves until no event is left. */
static void serve_events(struct occ_http *http, int n)
{
    for (int i = 0; i < n; i++) {
        assert_int_equal(poll(&(struct pollfd){.fd = occ_http_fd(http), .events = POLLIN}, 1, 60000), 1);
        occ_http_serve(http);
    }
}

/* Without its files TLS waits, and so do the TCP sockets: they are never served without it. */
static void a_missing_certificate_leaves_the_unix_socket(void **state)
{
    (void)state;
    struct sockaddr_in server;
    char certificate[64], key[64], listen[32], command[64];
    make_certificates();
    for (int is_told = 0; is_told < 2; is_told++) {
        struct occ_http *http = NULL;
        struct occ_error err = OCC_ERROR_INIT;
        (void)close(listen_tcp(&server)); /* a port that is free */
        (void)snprintf(listen, sizeof listen, "127.0.0.1:%u", ntohs(server.sin_port));
        (void)snprintf(certificate, sizeof certificate, "%s/server.pem", directory);
        (void)snprintf(key, sizeof key, "%s/server.key", directory);
        const struct occ_http_options options = {.socket_path = is_told ? "" : address.sun_path,
                                                 .listen = listen,
                                                 .tls_paths = {certificate, key, certificate},
                                                 .reload_ns = is_told ? INT64_C(3600000000000) : 1};
        (void)unlink(certificate);
        assert_int_equal(occ_http_open(&options, &http, &err), 0);
        assert_non_null(http);
        assert_int_equal(access(address.sun_path, F_OK), is_told ? -1 : 0);
        serve_events(http, 1);
        assert_false(is_listening(&server));
        use_certificate(2);
        if (is_told)
            occ_http_reload(http);
        else
            serve_events(http, 1);
        assert_true(is_listening(&server));
        assert_true(occ_http_expiry_s(http, OCC_TLS_CERTIFICATE) > 0);
        occ_http_close(http);
    }
    (void)snprintf(command, sizeof command, "rm %s/*", directory);
    assert_int_equal(system(command), 0);
}

/* Runs a server on a passed socket, at first without its certificate. Returns 0 if a client gets no answer
 * before, and no page without TLS afterwards. */
static int wait_with_passed(int listening, const struct sockaddr_in *name)
{
    static const char request[] = "GET /livez HTTP/1.0\r\n\r\n";
    char certificate[64], key[64], pid[24], page[256] = "";
    struct occ_http *http = NULL;
    (void)snprintf(certificate, sizeof certificate, "%s/server.pem", directory);
    (void)snprintf(key, sizeof key, "%s/server.key", directory);
    (void)snprintf(pid, sizeof pid, "%lld", (long long)getpid());
    const struct occ_http_options options = {.socket_path = "",
                                             .listen = "",
                                             .tls_paths = {certificate, key, certificate},
                                             .reload_ns = INT64_C(3600000000000)};
    if (dup2(listening, 3) != 3 || setenv("LISTEN_PID", pid, 1) != 0 || setenv("LISTEN_FDS", "1", 1) != 0 ||
        occ_http_open(&options, &http, NULL) != 0 || !http)
        return 1;
    int fd = connect_from(name, 1);
    if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) != sizeof request - 1)
        return 2;
    occ_http_serve(http);
    if (recv(fd, page, sizeof page, MSG_DONTWAIT) >= 0 || errno != EAGAIN)
        return 3;
    use_certificate(2);
    occ_http_reload(http);
    while (recv(fd, page, sizeof page - 1, MSG_DONTWAIT) < 0 && errno == EAGAIN) {
        (void)poll(&(struct pollfd){.fd = occ_http_fd(http), .events = POLLIN}, 1, 20);
        occ_http_serve(http);
    }
    occ_http_close(http);
    return strstr(page, "200") ? 4 : 0;
}

static void a_passed_socket_waits_for_its_certificate(void **state)
{
    (void)state;
    struct sockaddr_in name;
    char command[64];
    int status = -1;
    make_certificates();
    int listening = listen_tcp(&name);
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(wait_with_passed(listening, &name));
    assert_int_equal(waitpid(child, &status, 0), child);
    (void)close(listening);
    (void)snprintf(command, sizeof command, "rm %s/*", directory);
    assert_int_equal(system(command), 0);
    assert_int_equal(status, 0);
}

/* ---- who is at the other end of the Unix socket ---- */

static bool names_stay(void *context, int connection, int64_t since_ns)
{
    if (since_ns <= 0 || since_ns > occ_monotonic_ns())
        return false;
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           peer.pid != *(pid_t *)context;
}

static void a_client_of_the_unix_socket_may_be_refused_names(void **state)
{
    (void)state;
    struct occ_http *http = NULL;
    pid_t own = getpid();
    char text[1024] = "";
    const struct occ_http_options options = {.socket_path = address.sun_path,
                                             .listen = "",
                                             .tls_paths = {"", "", ""},
                                             .write_metrics = write_who,
                                             .may_see_names = names_stay,
                                             .context = &own};
    assert_int_equal(occ_http_open(&options, &http, NULL), 0);
    for (int i = 0; i < 2; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
        static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
        assert_true(send(fd, request, sizeof request - 1, MSG_NOSIGNAL) == sizeof request - 1);
        memset(text, 0, sizeof text);
        for (size_t n = 0; !strstr(text, "names");) {
            serve_events(http, 1);
            ssize_t got = recv(fd, text + n, sizeof text - 1 - n, MSG_DONTWAIT);
            n += got > 0 ? (size_t)got : 0;
        }
        if (!strstr(text, i == 0 ? "without names" : "with names") || !strstr(text, "Connection: close"))
            fail_msg("%s", text);
        (void)close(fd);
        own = 0;
    }
    occ_http_close(http);
}

static void a_certificate_that_failed_is_tried_again(void **state)
{
    (void)state;
    struct sockaddr_in name;
    char command[64];
    int status = -1;
    make_certificates();
    int listening = listen_tcp(&name);
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(change_certificate(listening));
    assert_int_equal(waitpid(child, &status, 0), child);
    (void)close(listening);
    (void)snprintf(command, sizeof command, "rm %s/*", directory);
    assert_int_equal(system(command), 0);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_socket_goes_with_its_server),
        cmocka_unit_test(the_socket_of_another_stays),
        cmocka_unit_test(sockets_of_another_process_are_not_taken),
        cmocka_unit_test(a_request_has_a_deadline),
        cmocka_unit_test(an_address_leaves_places_for_others),
        cmocka_unit_test(an_address_of_the_settings_is_served),
        cmocka_unit_test(an_address_that_is_taken_leaves_the_socket),
        cmocka_unit_test(a_certificate_that_failed_is_tried_again),
        cmocka_unit_test(a_missing_certificate_leaves_the_unix_socket),
        cmocka_unit_test(a_passed_socket_waits_for_its_certificate),
        cmocka_unit_test(a_client_of_the_unix_socket_may_be_refused_names),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
