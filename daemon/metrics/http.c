/* See http.h. */
#include "http.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/acl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "support/cleanup.h"
#include "support/groups.h"
#include "support/clock.h"
#include "support/text.h"

#define SERVERS_MAX     4
#define CONNECTIONS_MAX 32u
#define REQUEST_BYTES   ((size_t)16 * 1024)
#define SILENCE_S       10u
#define REQUEST_NS      INT64_C(10000000000)
#define PER_ADDRESS_MAX 8u /* connections of one address to a TCP socket */
#define CACHE_NS        INT64_C(500000000)
#define GROUP           "occtrace"
#define FIRST_PASSED    3 /* sd_listen_fds(3) */

/* Opened at run time, and only by a daemon that answers: with the TLS library that it brings, it would delay
 * the start of every private daemon. */
#define LIBRARY "libmicrohttpd.so.12"
#define FUNCTIONS(X)                                                                                         \
    X(start_daemon)                                                                                          \
    X(stop_daemon)                                                                                           \
    X(run)                                                                                                   \
    X(get_timeout)                                                                                           \
    X(get_daemon_info)                                                                                       \
    X(create_response_from_buffer)                                                                           \
    X(add_response_header)                                                                                   \
    X(queue_response)                                                                                        \
    X(destroy_response)                                                                                      \
    X(lookup_connection_value)                                                                               \
    X(get_connection_info)
static struct {
#define POINTER(name) __typeof__(MHD_##name) *name;
    FUNCTIONS(POINTER)
} mhd;

struct page {
    char *text;
    size_t n;
    int64_t made_ns;
};

/* A connection of the library. */
struct talk {
    int fd;           /* -1: the place is free */
    int64_t since_ns; /* since it was accepted, or since the last request was answered */
};

struct server {
    struct MHD_Daemon *daemon;
    struct talk talks[CONNECTIONS_MAX];
    struct occ_http *http;
    bool is_unix, is_tls;
};

struct occ_http {
    struct occ_http_options options;
    int64_t request_ns;
    struct occ_tls tls;
    struct server servers[SERVERS_MAX];
    size_t n;
    int epoll, timer;
    struct page pages[2][2];                                /* of /metrics: has_identity, is_openmetrics */
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* of our Unix socket, */
    dev_t dev;                                              /* which is this file; */
    ino_t ino;                                              /* 0: there is none */
};

/* ---- answers ---- */

static const struct page *metrics_page(struct occ_http *http, bool has_identity, bool is_openmetrics)
{
    struct page *page = &http->pages[has_identity][is_openmetrics];
    int64_t now_ns = occ_monotonic_ns();
    if (page->text && now_ns - page->made_ns < CACHE_NS)
        return page;
    free(page->text);
    *page = (struct page){.made_ns = now_ns};
    FILE *out = open_memstream(&page->text, &page->n);
    if (!out)
        return page;
    http->options.write_metrics(http->options.context, out, has_identity, is_openmetrics);
    if (fclose(out) != 0) {
        free(page->text);
        page->text = NULL;
    }
    return page;
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                              const char *text, size_t n)
{
    struct MHD_Response *response =
        mhd.create_response_from_buffer(n, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    (void)mhd.add_response_header(response, "Content-Type", type);
    enum MHD_Result result = mhd.queue_response(connection, status, response);
    mhd.destroy_response(response);
    return result;
}

static bool is_known(const struct server *server, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        server->is_tls ? mhd.get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION) : NULL;
    return server->is_unix || (info && occ_tls_client_is_known(info->tls_session));
}

static enum MHD_Result answer_metrics(struct server *server, struct MHD_Connection *connection)
{
    const char *accept = mhd.lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
    bool is_openmetrics = accept && strstr(accept, "application/openmetrics-text");
    const struct page *page = metrics_page(server->http, is_known(server, connection), is_openmetrics);
    return page->text ? answer(connection, MHD_HTTP_OK,
                               is_openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                              : "text/plain; version=0.0.4; charset=utf-8",
                               page->text, page->n)
                      : MHD_NO;
}

static enum MHD_Result answer_health(struct server *server, struct MHD_Connection *connection)
{
    _cleanup_(occ_freep) char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return MHD_NO;
    bool is_healthy = server->http->options.write_health(server->http->options.context, out);
    return fclose(out) == 0 ? answer(connection, is_healthy ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
                                     "text/plain", text, n)
                            : MHD_NO;
}

/* The signature is the library's. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_bytes, void **state)
{
    struct server *server = context;
    static const char not_found[] = "There are /metrics and /healthz.\n";
    static const char not_allowed[] = "Only GET.\n";
    (void)version;
    (void)body;
    (void)body_bytes;
    (void)state;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", not_allowed,
                      sizeof not_allowed - 1);
    if (strcmp(url, "/metrics") == 0)
        return answer_metrics(server, connection);
    if (strcmp(url, "/healthz") == 0)
        return answer_health(server, connection);
    return answer(connection, MHD_HTTP_NOT_FOUND, "text/plain", not_found, sizeof not_found - 1);
}

/* ---- deadlines ---- */

/* The signature is the library's. */
static void on_connection(void *context, struct MHD_Connection *connection, void **place,
                          enum MHD_ConnectionNotificationCode code)
{
    struct server *server = context;
    struct talk *talk = *place;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (talk)
            talk->fd = -1;
        return;
    }
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    for (talk = server->talks; talk < server->talks + CONNECTIONS_MAX; talk++)
        if (info && talk->fd < 0) {
            *talk = (struct talk){.fd = info->connect_fd, .since_ns = occ_monotonic_ns()};
            *place = talk;
            return;
        }
}

/* The signature is the library's. */
static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode why)
{
    (void)context;
    (void)state;
    (void)why;
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct talk *talk = info ? info->socket_context : NULL;
    if (talk)
        talk->since_ns = occ_monotonic_ns();
}

/* Ends connections whose request takes too long: the library's own limit is of silence, and a byte now and
 * then would hold a connection for ever. How long until the next one's deadline, in ms. */
static uint64_t end_late_requests(struct server *server)
{
    int64_t now_ns = occ_monotonic_ns(), least_ns = INT64_MAX;
    for (struct talk *talk = server->talks; talk < server->talks + CONNECTIONS_MAX; talk++) {
        int64_t left_ns = talk->since_ns + server->http->request_ns - now_ns;
        if (talk->fd < 0)
            continue;
        if (left_ns <= 0) {
            (void)shutdown(talk->fd, SHUT_RDWR); /* the library closes it */
            continue;
        }
        least_ns = left_ns < least_ns ? left_ns : least_ns;
    }
    return least_ns == INT64_MAX ? UINT64_MAX : (uint64_t)least_ns / 1000000 + 1;
}

/* ---- sockets ---- */

/* For root and the group, by an access control list: changing a file's group needs a capability. */
static void admit_group(const char *path)
{
    char text[64];
    uint32_t gid;
    if (!occ_group_is_local(GROUP, &gid))
        return;
    (void)snprintf(text, sizeof text, "u::rw,g::---,g:%u:rw,m::rw,o::---", gid);
    acl_t acl = acl_from_text(text);
    if (!acl)
        return;
    (void)acl_set_file(path, ACL_TYPE_ACCESS, acl); /* not possible: 0600 */
    (void)acl_free(acl);
}

/* A socket that nobody answers at is replaced. */
static int listen_at(struct occ_http *http, const char *path, int *ret_fd, struct occ_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct sockaddr *name = (const struct sockaddr *)&address;
    struct stat status;
    if (strlen(path) >= sizeof address.sun_path)
        return occ_fail(err, OCC_E_INVALID, "the socket's path is too long: %s", path);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    _cleanup_(occ_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return occ_fail_errno(err, errno, "cannot make a socket");
    if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode)) {
        _cleanup_(occ_closep) int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(other, name, sizeof address) == 0 || errno == EAGAIN)
            return occ_fail(err, OCC_E_BUSY, "somebody listens at %s", path);
        (void)unlink(path);
    }
    mode_t old = umask(0177);
    int failed = bind(fd, name, sizeof address);
    int why = errno;
    (void)umask(old);
    if (failed || listen(fd, SOMAXCONN) != 0)
        return occ_fail_errno(err, failed ? why : errno, "cannot listen at %s", path);
    if (lstat(path, &status) != 0)
        return occ_fail_errno(err, errno, "cannot look at %s", path);
    http->dev = status.st_dev;
    http->ino = status.st_ino;
    (void)snprintf(http->path, sizeof http->path, "%s", path);
    admit_group(path);
    *ret_fd = fd;
    fd = -1;
    return 0;
}

/* It stays open. */
static int open_library(struct occ_error *err)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    bool has_all = library != NULL;
#define LOAD(name) has_all = has_all && (*(void **)&mhd.name = dlsym(library, "MHD_" #name)) != NULL;
    FUNCTIONS(LOAD)
    return has_all ? 0 : occ_fail(err, OCC_E_NOT_FOUND, "%s", library ? LIBRARY " is too old" : dlerror());
}

/* Takes fd. */
static int add_server(struct occ_http *http, int fd, bool is_unix, struct occ_error *err)
{
    struct server *server = &http->servers[http->n];
    char *const *pem = http->tls.text;
    *server = (struct server){.http = http, .is_unix = is_unix, .is_tls = !is_unix && pem[OCC_TLS_KEY]};
    const struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, pem[OCC_TLS_CERTIFICATE]},
                                         {MHD_OPTION_HTTPS_MEM_KEY, 0, pem[OCC_TLS_KEY]},
                                         {MHD_OPTION_HTTPS_MEM_TRUST, 0, pem[OCC_TLS_CLIENT_CA]},
                                         {MHD_OPTION_END, 0, NULL}};
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        server->talks[i].fd = -1;
    if (!mhd.run && open_library(err) != 0) {
        (void)close(fd);
        return OCC_E_NOT_FOUND;
    }
    server->daemon =
        mhd.start_daemon(MHD_USE_EPOLL | (server->is_tls ? MHD_USE_TLS : 0), 0, NULL, NULL, on_request,
                         server, MHD_OPTION_ARRAY, tls + (server->is_tls ? 0 : 3), MHD_OPTION_LISTEN_SOCKET,
                         fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                         is_unix ? 0u : PER_ADDRESS_MAX, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
                         MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_CONNECTION_TIMEOUT,
                         SILENCE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_BYTES, MHD_OPTION_END);
    if (!server->daemon) {
        (void)close(fd);
        return occ_fail(err, OCC_E_IO, "cannot start the HTTP server");
    }
    http->n++;
    struct epoll_event event = {.events = EPOLLIN};
    const union MHD_DaemonInfo *info = mhd.get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info || epoll_ctl(http->epoll, EPOLL_CTL_ADD, info->epoll_fd, &event) != 0)
        return occ_fail_errno(err, errno, "cannot watch the HTTP server");
    return 0;
}

/* How many sockets the service manager passes to this process, and to no other. */
static int count_passed(void)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    uint64_t whose = 0, n = 0;
    if (!pid || !fds || occ_parse_u64(pid, 1, INT32_MAX, &whose, NULL) != 0 || whose != (uint64_t)getpid() ||
        occ_parse_u64(fds, 1, SERVERS_MAX - 1, &n, NULL) != 0)
        return 0;
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    return (int)n;
}

static int add_passed(struct occ_http *http, struct occ_error *err)
{
    int status = 0, n = count_passed();
    for (int fd = FIRST_PASSED; fd < FIRST_PASSED + n && status == 0; fd++) {
        int domain = 0;
        socklen_t size = sizeof domain;
        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 ||
            fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
            status = occ_fail_errno(err, errno, "descriptor %d of the service manager is not a socket", fd);
        else
            status = add_server(http, fd, domain == AF_UNIX, err);
    }
    return status;
}

int occ_http_open(const struct occ_http_options *options, struct occ_http **ret_http, struct occ_error *err)
{
    struct occ_http *http = calloc(1, sizeof *http);
    int status = 0, fd = -1;
    *ret_http = NULL;
    if (!http)
        return occ_no_memory(err);
    *http = (struct occ_http){.options = *options,
                              .request_ns = options->request_ns ? options->request_ns : REQUEST_NS,
                              .epoll = epoll_create1(EPOLL_CLOEXEC),
                              .timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
    struct epoll_event event = {.events = EPOLLIN};
    if (http->epoll < 0 || http->timer < 0 || epoll_ctl(http->epoll, EPOLL_CTL_ADD, http->timer, &event) != 0)
        status = occ_fail_errno(err, errno, "cannot watch the HTTP server");
    if (status == 0)
        status = occ_tls_load(options->tls_paths, &http->tls, err);
    if (status == 0)
        status = add_passed(http, err);
    if (status == 0 && options->socket_path[0])
        status = listen_at(http, options->socket_path, &fd, err);
    if (status == 0 && fd >= 0)
        status = add_server(http, fd, true, err);
    if (status == 0 && http->n > 0) {
        *ret_http = http;
        return 0;
    }
    occ_http_close(http);
    return status;
}

/* Unless another daemon has replaced it. */
static void remove_socket(const struct occ_http *http)
{
    struct stat status;
    if (http->ino && lstat(http->path, &status) == 0 && status.st_dev == http->dev &&
        status.st_ino == http->ino)
        (void)unlink(http->path);
}

void occ_http_close(struct occ_http *http)
{
    if (!http)
        return;
    for (size_t i = 0; i < http->n; i++)
        mhd.stop_daemon(http->servers[i].daemon);
    occ_tls_free(&http->tls);
    remove_socket(http);
    occ_close_fd(&http->epoll);
    occ_close_fd(&http->timer);
    for (int i = 0; i < 4; i++)
        free(http->pages[i / 2][i % 2].text);
    free(http);
}

/* ---- the loop's ---- */

int occ_http_fd(const struct occ_http *http)
{
    return http->epoll;
}

static unsigned connections_of(const struct server *server)
{
    const union MHD_DaemonInfo *info =
        mhd.get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info ? info->num_connections : 0;
}

/* How long the server may wait for its next event. Where connections ended it is run at once again: only then
 * does it listen again after it had as many as it may have. */
static uint64_t run_server(struct server *server)
{
    unsigned before = connections_of(server);
    unsigned MHD_LONG_LONG wait_ms = UINT64_MAX;
    (void)mhd.run(server->daemon);
    uint64_t deadline_ms = end_late_requests(server);
    if (connections_of(server) < before)
        return 0;
    return mhd.get_timeout(server->daemon, &wait_ms) == MHD_YES && wait_ms < deadline_ms ? wait_ms
                                                                                         : deadline_ms;
}

void occ_http_serve(struct occ_http *http)
{
    uint64_t least_ms = UINT64_MAX;
    for (size_t i = 0; i < http->n; i++) {
        uint64_t wait_ms = run_server(&http->servers[i]);
        least_ms = wait_ms < least_ms ? wait_ms : least_ms;
    }
    struct itimerspec when = {0}; /* all zero: disarmed; setting it also makes it not readable */
    if (least_ms < UINT64_MAX)
        when.it_value = (struct timespec){.tv_sec = (time_t)(least_ms / 1000),
                                          .tv_nsec = (long)(least_ms % 1000) * 1000000 + 1};
    (void)timerfd_settime(http->timer, 0, &when, NULL);
}
