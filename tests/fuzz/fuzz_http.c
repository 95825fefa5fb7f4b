/*
 * Fuzzes the HTTP server of /metrics and /healthz with any bytes, in several pieces over its Unix socket.
 * Every answer is complete HTTP, and the server continues to listen.
 *
 * Input: parts between zero bytes; the server runs after each part. A complete request gets an answer.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/serve/metrics/http.h"
#include "fuzz_bytes.h"

#define TURNS 20 /* turns of the server after each part */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct occ_http *http;
static char directory[64] = "/tmp/occtrace-fuzz-XXXXXX";
static struct sockaddr_un address = {.sun_family = AF_UNIX};

static void must(bool good)
{
    if (!good)
        abort();
}

static void write_metrics(void *context, FILE *out, bool has_identity, bool is_openmetrics)
{
    (void)context;
    (void)fprintf(out, "occtrace_up 1\n%s%s", has_identity ? "" : "# no names\n",
                  is_openmetrics ? "# EOF\n" : "");
}

static bool write_health(void *context, FILE *out)
{
    (void)context;
    (void)fputs("ok\n", out);
    return true;
}

static void clean_up(void)
{
    occ_http_close(http);
    (void)rmdir(directory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    must(mkdtemp(directory) != NULL);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/metrics", directory);
    const struct occ_http_options options = {
        .socket_path = address.sun_path,
        .listen = "",
        .tls_paths = {"", "", ""},
        .write_metrics = write_metrics,
        .write_health = write_health,
    };
    struct occ_error err = OCC_ERROR_INIT;
    if (occ_http_open(&options, &http, &err) != 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        abort();
    }
    must(atexit(clean_up) == 0);
    return 0;
}

static void serve(void)
{
    for (int i = 0; i < TURNS; i++) {
        struct pollfd ready = {.fd = occ_http_fd(http), .events = POLLIN};
        if (poll(&ready, 1, 0) != 1)
            return;
        occ_http_serve(http);
    }
}

static int connect_client(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    must(fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

static void check_answer(int fd)
{
    static const char begin[] = "HTTP/1.";
    char answer[16384];
    ssize_t n = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
    if (n > 0)
        must((size_t)n > strlen(begin) && memcmp(answer, begin, strlen(begin)) == 0);
}

static void ask_for_health(void)
{
    static const char request[] = "GET /healthz HTTP/1.0\r\n\r\n";
    char answer[4096];
    int fd = connect_client();
    must(send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request));
    serve();
    ssize_t n = recv(fd, answer, sizeof answer - 1, MSG_DONTWAIT);
    must(n > 0);
    answer[n] = '\0';
    must(strncmp(answer, "HTTP/1.", 7) == 0 && strstr(answer, " 200 ") && strstr(answer, "ok\n"));
    (void)close(fd);
    serve();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes input = {data, size};
    int fd = connect_client();
    while (input.n > 0) {
        struct fuzz_bytes part = fuzz_part(&input);
        if (part.n > 0 && send(fd, part.data, part.n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            break; /* the server has closed the connection */
        serve();
    }
    check_answer(fd);
    (void)close(fd);
    serve();
    ask_for_health();
    return 0;
}
