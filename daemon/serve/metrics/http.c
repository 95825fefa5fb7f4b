/* See http.h. */
#include "http.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "http_sockets.h"
#include "support/address.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/http_connections.h"
#include "support/log.h"

#define SERVERS_MAX     (2 * (OCC_HTTP_PASSED_MAX + 2)) /* half of them serve an old certificate */
#define PER_ADDRESS_MAX 8u                              /* connections of one address to a TCP socket */
#define REQUEST_NS      INT64_C(10000000000)
#define CACHE_NS        INT64_C(500000000)
#define RELOAD_NS       INT64_C(10000000000)

/* Loaded at run time, and only by a daemon with an HTTP server: its TLS library would delay the start of
 * every private daemon. */
#define LIBRARY "libmicrohttpd.so.12"
#define FUNCTIONS(X)                                                                                         \
    X(start_daemon)                                                                                          \
    X(stop_daemon)                                                                                           \
    X(quiesce_daemon)                                                                                        \
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

struct server {
    struct MHD_Daemon *daemon; /* NULL: the entry is free */
    int listening;             /* owned by the library */
    /* for a server with an old certificate: time at which its last connections are closed; 0: it still
     * listens */
    int64_t ends_ns;
    struct occ_http_connections connections;
    struct occ_http *http;
    bool is_unix, is_tls;
};

struct occ_http {
    struct occ_http_options options;
    int64_t request_ns, reload_ns;
    int64_t next_reload_ns; /* next try to use valid files after a failure; 0: none */
    /* TLS was asked for and its files could not be used yet: TCP sockets are not served */
    bool waits_for_tls;
    int waiting[OCC_HTTP_PASSED_MAX]; /* passed TCP sockets meanwhile */
    size_t n_waiting;
    struct occ_tls tls;
    struct occ_file_signature tls_files[OCC_TLS_PARTS]; /* signatures of the files at the last read */
    struct server servers[SERVERS_MAX];
    int epoll, timer;
    struct page pages[2][2]; /* of /metrics, by has_identity and is_openmetrics */
    struct occ_http_socket own;
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

static bool may_see_names(const struct server *server, struct MHD_Connection *connection)
{
    const struct occ_http_options *options = &server->http->options;
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    const struct occ_connection_age *entry = info ? info->socket_context : NULL;
    return !options->may_see_names ||
           (entry && options->may_see_names(options->context, entry->fd, entry->since_ns));
}

static bool is_known(const struct server *server, struct MHD_Connection *connection)
{
    if (server->is_unix)
        return may_see_names(server, connection);
    const union MHD_ConnectionInfo *info =
        server->is_tls ? mhd.get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION) : NULL;
    return info && occ_tls_client_is_known(info->tls_session);
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

static enum MHD_Result answer_life(struct server *server, struct MHD_Connection *connection)
{
    static const char text[] = "ok\n";
    (void)server;
    return answer(connection, MHD_HTTP_OK, "text/plain", text, sizeof text - 1);
}

/* libmicrohttpd's callback signature. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_bytes, void **state)
{
    struct server *server = context;
    static const struct {
        const char *url;
        enum MHD_Result (*answer)(struct server *, struct MHD_Connection *);
    } pages[] = {{"/metrics", answer_metrics},
                 {"/healthz", answer_health},
                 {"/readyz", answer_health},
                 {"/livez", answer_life}};
    static const char not_found[] = "There are /metrics, /healthz, /readyz and /livez.\n";
    static const char not_allowed[] = "Only GET.\n";
    (void)version;
    (void)body;
    (void)body_bytes;
    (void)state;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", not_allowed,
                      sizeof not_allowed - 1);
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (strcmp(url, pages[i].url) == 0)
            return pages[i].answer(server, connection);
    return answer(connection, MHD_HTTP_NOT_FOUND, "text/plain", not_found, sizeof not_found - 1);
}

/* ---- sockets ---- */

/* The library stays loaded. */
static int open_library(struct occ_error *err)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    bool has_all = library != NULL;
#define LOAD(name) has_all = has_all && (*(void **)&mhd.name = dlsym(library, "MHD_" #name)) != NULL;
    FUNCTIONS(LOAD)
    return has_all ? 0 : occ_fail(err, OCC_E_NOT_FOUND, "%s", library ? LIBRARY " is too old" : dlerror());
}

static struct server *find_free(struct occ_http *http)
{
    struct server *server = http->servers;
    while (server < http->servers + SERVERS_MAX && server->daemon)
        server++;
    return server < http->servers + SERVERS_MAX ? server : NULL;
}

static struct MHD_Daemon *start_library(struct server *server, const struct occ_tls *tls)
{
    const struct occ_http_limits limits = {.connections = 32,
                                           .per_address = server->is_unix ? 0 : PER_ADDRESS_MAX,
                                           .silence_s = 10,
                                           .memory_bytes = (size_t)16 * 1024};
    char *const *pem = tls->text;
    struct MHD_OptionItem watch[OCC_HTTP_OPTIONS];
    const struct MHD_OptionItem parts[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, pem[OCC_TLS_CERTIFICATE]},
                                           {MHD_OPTION_HTTPS_MEM_KEY, 0, pem[OCC_TLS_KEY]},
                                           {MHD_OPTION_HTTPS_MEM_TRUST, 0, pem[OCC_TLS_CLIENT_CA]},
                                           {MHD_OPTION_END, 0, NULL}};
    occ_http_connections_init(&server->connections, &limits, mhd.get_connection_info, watch);
    return mhd.start_daemon(MHD_USE_EPOLL | (server->is_tls ? MHD_USE_TLS : 0), 0, NULL, NULL, on_request,
                            server, MHD_OPTION_ARRAY, parts + (server->is_tls ? 0 : 3),
                            MHD_OPTION_LISTEN_SOCKET, server->listening, MHD_OPTION_ARRAY, watch,
                            MHD_OPTION_END);
}

/* Takes over fd. */
static int start_server(struct server *server, int fd, bool is_unix, const struct occ_tls *tls,
                        struct occ_error *err)
{
    struct occ_http *http = server->http;
    *server = (struct server){
        .http = http, .listening = fd, .is_unix = is_unix, .is_tls = !is_unix && tls->text[OCC_TLS_KEY]};
    int status = mhd.run ? 0 : open_library(err);
    if (status == 0 && !(server->daemon = start_library(server, tls)))
        status = occ_fail(err, OCC_E_IO, "cannot start the HTTP server");
    if (status != 0) {
        (void)close(fd);
        return status;
    }
    struct epoll_event event = {.events = EPOLLIN};
    const union MHD_DaemonInfo *info = mhd.get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info || epoll_ctl(http->epoll, EPOLL_CTL_ADD, info->epoll_fd, &event) != 0)
        return occ_fail_errno(err, errno, "cannot watch the HTTP server");
    return 0;
}

/* Takes over fd. */
static int add_server(struct occ_http *http, int fd, bool is_unix, struct occ_error *err)
{
    struct server *server = find_free(http);
    server->http = http;
    return start_server(server, fd, is_unix, &http->tls, err);
}

static int add_passed(struct occ_http *http, struct occ_error *err)
{
    int fds[OCC_HTTP_PASSED_MAX], n = occ_http_take_passed(fds), status = 0;
    for (int i = 0; i < n && status == 0; i++) {
        bool is_unix = false;
        status = occ_http_adopt(fds[i], &is_unix, err);
        if (status == 0 && !is_unix && http->waits_for_tls)
            http->waiting[http->n_waiting++] = fds[i];
        else if (status == 0)
            status = add_server(http, fds[i], is_unix, err);
    }
    return status;
}

static int add_socket(struct occ_http *http, struct occ_error *err)
{
    int fd = -1;
    if (!http->options.socket_path[0])
        return 0;
    int status = occ_http_listen(http->options.socket_path, &http->own, &fd, err);
    return status == 0 ? add_server(http, fd, true, err) : occ_error_prefix(err, "http.socket");
}

static int add_address(struct occ_http *http, struct occ_error *err)
{
    uint16_t port;
    int fd = -1;
    if (!http->options.listen[0] || http->waits_for_tls)
        return 0;
    int status = occ_address_listen(http->options.listen, &fd, &port, err);
    if (status == 0)
        status = add_server(http, fd, false, err);
    return status == 0 ? 0 : occ_error_prefix(err, "http.listen");
}

/* A socket that is taken or forbidden does not end the others: its error is logged. Returns the last error if
 * no socket is served, or waits for TLS. */
static int add_sockets(struct occ_http *http, struct occ_error *err)
{
    static int (*const add[])(struct occ_http *, struct occ_error *) = {add_passed, add_socket, add_address};
    struct occ_error errors[sizeof add / sizeof *add];
    int status = 0;
    for (size_t i = 0; i < sizeof add / sizeof *add; i++) {
        errors[i] = (struct occ_error)OCC_ERROR_INIT;
        int code = add[i](http, &errors[i]);
        status = code != 0 ? occ_fail(err, code, "%s", errors[i].message) : status;
    }
    if (!http->servers[0].daemon && !http->waits_for_tls)
        return status;
    for (size_t i = 0; i < sizeof add / sizeof *add; i++)
        if (errors[i].code != 0)
            occ_log(OCC_LOG_ERROR, "%s", errors[i].message);
    return 0;
}

static void warn_of_expired(const struct occ_http *http)
{
    for (int i = 0; i < OCC_TLS_PARTS; i++)
        if (http->tls.expires_s[i] && http->tls.expires_s[i] < occ_now_ns() / 1000000000)
            occ_log(OCC_LOG_WARNING, "%s has a certificate that has expired", http->options.tls_paths[i]);
}

/* Files that cannot be used yet leave the Unix socket; without TLS no TCP socket may take their place. */
static void load_tls(struct occ_http *http)
{
    struct occ_error err = OCC_ERROR_INIT;
    occ_tls_look(http->options.tls_paths, http->tls_files);
    if (occ_tls_load(http->options.tls_paths, &http->tls, &err) == 0) {
        warn_of_expired(http);
        return;
    }
    http->waits_for_tls = true;
    http->next_reload_ns = occ_monotonic_ns() + http->reload_ns;
    occ_log(OCC_LOG_ERROR, "no metrics over TCP until the files of TLS can be used: %s", err.message);
}

/* Sets the timer; UINT64_MAX: never. Setting it also clears its expiration. */
static void set_timer(const struct occ_http *http, uint64_t ms)
{
    struct itimerspec when = {0}; /* all zero: disarmed */
    if (ms < UINT64_MAX)
        when.it_value =
            (struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000 + 1};
    (void)timerfd_settime(http->timer, 0, &when, NULL);
}

int occ_http_open(const struct occ_http_options *options, struct occ_http **ret_http, struct occ_error *err)
{
    struct occ_http *http = calloc(1, sizeof *http);
    int status = 0;
    *ret_http = NULL;
    if (!http)
        return occ_no_memory(err);
    *http = (struct occ_http){.options = *options,
                              .request_ns = options->request_ns ? options->request_ns : REQUEST_NS,
                              .reload_ns = options->reload_ns ? options->reload_ns : RELOAD_NS,
                              .epoll = epoll_create1(EPOLL_CLOEXEC),
                              .timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
    struct epoll_event event = {.events = EPOLLIN};
    if (http->epoll < 0 || http->timer < 0 || epoll_ctl(http->epoll, EPOLL_CTL_ADD, http->timer, &event) != 0)
        status = occ_fail_errno(err, errno, "cannot watch the HTTP server");
    if (status == 0) {
        load_tls(http);
        status = add_sockets(http, err);
    }
    if (status == 0 && (http->servers[0].daemon || http->waits_for_tls)) {
        set_timer(http, http->waits_for_tls ? 0 : UINT64_MAX);
        *ret_http = http;
        return 0;
    }
    occ_http_close(http);
    return status;
}

/* Closes the server's connections. */
static void stop_server(struct server *server)
{
    if (server->daemon)
        mhd.stop_daemon(server->daemon);
    server->daemon = NULL;
}

void occ_http_close(struct occ_http *http)
{
    if (!http)
        return;
    for (size_t i = 0; i < SERVERS_MAX; i++)
        stop_server(&http->servers[i]);
    for (size_t i = 0; i < http->n_waiting; i++)
        (void)close(http->waiting[i]);
    occ_tls_free(&http->tls);
    occ_http_unlisten(&http->own);
    occ_close_fd(&http->epoll);
    occ_close_fd(&http->timer);
    for (int i = 0; i < 4; i++)
        free(http->pages[i / 2][i % 2].text);
    free(http);
}

/* ---- another certificate ---- */

/* Starts a server with this certificate for new connections; the old server's connections may finish a
 * request. */
static int replace_server(struct server *old, const struct occ_tls *tls, struct occ_error *err)
{
    struct occ_http *http = old->http;
    struct server *fresh = find_free(http);
    int fd = fcntl(old->listening, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return occ_fail_errno(err, errno, "cannot copy the listening socket");
    fresh->http = http;
    int status = start_server(fresh, fd, false, tls, err);
    if (status != 0) {
        stop_server(fresh);
        return status;
    }
    int listening = mhd.quiesce_daemon(old->daemon);
    if (listening >= 0)
        (void)close(listening);
    old->ends_ns = occ_monotonic_ns() + http->request_ns;
    return 0;
}

static int use_tls(struct occ_http *http, const struct occ_tls *tls, struct occ_error *err)
{
    int status = 0;
    bool is_old[SERVERS_MAX];
    for (size_t i = 0; i < SERVERS_MAX; i++) {
        struct server *server = &http->servers[i];
        if (server->ends_ns)
            stop_server(server);
        is_old[i] = server->daemon && server->is_tls;
    }
    for (size_t i = 0; i < SERVERS_MAX && status == 0; i++)
        if (is_old[i])
            status = replace_server(&http->servers[i], tls, err);
    return status;
}

/* Serves the TCP sockets that waited for the certificate. */
static void end_wait(struct occ_http *http)
{
    struct occ_error err = OCC_ERROR_INIT;
    http->waits_for_tls = false;
    for (size_t i = 0; i < http->n_waiting; i++)
        if (add_server(http, http->waiting[i], false, &err) != 0)
            occ_log(OCC_LOG_ERROR, "%s", err.message);
    http->n_waiting = 0;
    if (add_address(http, &err) != 0)
        occ_log(OCC_LOG_ERROR, "%s", err.message);
}

static bool asks_for_tls(const struct occ_http *http)
{
    return http->tls.text[OCC_TLS_KEY] || http->waits_for_tls;
}

/* `is_told`: a failure is logged. */
static void reload(struct occ_http *http, bool is_told)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_tls tls;
    if (!asks_for_tls(http))
        return;
    bool is_first = http->waits_for_tls;
    occ_tls_look(http->options.tls_paths, http->tls_files);
    int status = occ_tls_load(http->options.tls_paths, &tls, &err);
    if (status == 0 && !is_first)
        status = use_tls(http, &tls, &err);
    bool may_succeed_later = status != 0 && (is_first || err.code != OCC_E_INVALID);
    http->next_reload_ns = may_succeed_later ? occ_monotonic_ns() + http->reload_ns : 0;
    if (status != 0) {
        occ_tls_free(&tls);
        if (is_told)
            occ_log(OCC_LOG_ERROR, "%s: %s",
                    is_first ? "still no metrics over TCP" : "the certificate of /metrics stays as it was",
                    err.message);
        return;
    }
    occ_tls_free(&http->tls);
    http->tls = tls;
    warn_of_expired(http);
    if (is_first)
        end_wait(http);
    for (int i = 0; i < 4; i++)
        http->pages[i / 2][i % 2].made_ns = 0;
    occ_log(OCC_LOG_INFO, "the certificate of /metrics is read anew from %s", http->options.tls_paths[0]);
}

void occ_http_reload(struct occ_http *http)
{
    reload(http, true);
}

/* Reads changed files before the next connection is accepted, and tries files again at intervals if they
 * could not be used at the start, or if descriptors or memory were missing. */
static void follow_files(struct occ_http *http)
{
    struct occ_file_signature now[OCC_TLS_PARTS];
    bool is_same = true;
    if (!asks_for_tls(http))
        return;
    occ_tls_look(http->options.tls_paths, now);
    for (int i = 0; i < OCC_TLS_PARTS; i++)
        is_same = is_same && occ_file_signature_is_same(&now[i], &http->tls_files[i]);
    bool is_due = http->next_reload_ns && occ_monotonic_ns() >= http->next_reload_ns;
    if (!is_same || is_due)
        reload(http, !is_same || !http->waits_for_tls);
}

int64_t occ_http_expiry_s(const struct occ_http *http, enum occ_tls_part part)
{
    return http->tls.expires_s[part];
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

/* Returns the time that the server may wait for its next event. After connections ended it is run again at
 * once: a server at its limit of connections starts to listen again only then. */
static uint64_t run_server(struct server *server)
{
    unsigned before = connections_of(server);
    unsigned MHD_LONG_LONG wait_ms = UINT64_MAX;
    (void)mhd.run(server->daemon);
    uint64_t deadline_ms = occ_http_connections_end(&server->connections, server->http->request_ns);
    if (connections_of(server) < before)
        return 0;
    return mhd.get_timeout(server->daemon, &wait_ms) == MHD_YES && wait_ms < deadline_ms ? wait_ms
                                                                                         : deadline_ms;
}

/* Like run_server(), for a server with an old certificate. */
static uint64_t end_server(struct server *server)
{
    uint64_t wait_ms = run_server(server);
    int64_t left_ns = server->ends_ns - occ_monotonic_ns();
    if (left_ns <= 0 || connections_of(server) == 0) {
        stop_server(server);
        return UINT64_MAX;
    }
    uint64_t left_ms = (uint64_t)left_ns / 1000000 + 1;
    return left_ms < wait_ms ? left_ms : wait_ms;
}

void occ_http_serve(struct occ_http *http)
{
    uint64_t least_ms = UINT64_MAX;
    follow_files(http);
    for (struct server *server = http->servers; server < http->servers + SERVERS_MAX; server++) {
        uint64_t wait_ms = !server->daemon   ? UINT64_MAX
                           : server->ends_ns ? end_server(server)
                                             : run_server(server);
        least_ms = wait_ms < least_ms ? wait_ms : least_ms;
    }
    uint64_t reload_ms = (uint64_t)http->reload_ns / 1000000 + 1;
    if (http->waits_for_tls && reload_ms < least_ms)
        least_ms = reload_ms;
    set_timer(http, least_ms);
}
