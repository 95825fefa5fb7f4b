/* The sockets of the daemon's HTTP server, without a daemon: own sockets and foreign ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/metrics/http.h"

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
    const struct occ_http_options options = {.socket_path = path, .tls_paths = {"", "", ""}};
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

/* Another daemon has replaced the socket without notice. */
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
                     OCC_E_BUSY); /* nor is it replaced while it is used */
    (void)close(other);
    assert_int_equal(open_http(address.sun_path, &http), 0);
    occ_http_close(http);
}

/* Exit code of a process that got a listening socket as descriptor 3, for the process `pid`. */
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

/* Variables of sd_listen_fds(3) are inherited; the descriptors are not. */
static void sockets_of_another_process_are_not_taken(void **state)
{
    (void)state;
    assert_int_equal(passed_to(0, "1"), 2);
    assert_int_equal(passed_to(getpid(), "1"), 1);
    assert_int_equal(passed_to(1, "1"), 1);
    assert_int_equal(passed_to(0, "0"), 1);
    assert_int_equal(passed_to(0, "99"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_socket_goes_with_its_server),
        cmocka_unit_test(the_socket_of_another_stays),
        cmocka_unit_test(sockets_of_another_process_are_not_taken),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
