/* See server.h. */
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/address.h"
#include "support/clock.h"
#include "support/file_signature.h"
#include "support/http_connections.h"
#include "support/log.h"
#include "support/paths.h"

#define FILE_BYTES ((size_t)1 << 20)
#define LOOK_NS    INT64_C(1000000000) /* between two looks at the files */

/* A server with one certificate. */
struct server {
    struct occ_webhook *webhook;
    struct MHD_Daemon *daemon; /* NULL: none */
    struct occ_http_connections connections;
};

struct occ_webhook {
    const struct occ_webhook_options *options;
    struct occ_admission_options forbidden; /* options of /annotate */
    int listening;
    uint16_t port;
    struct server servers[2]; /* the server with the current, and with the previous certificate */
    int current;
    int64_t previous_ends_ns; /* time at which the previous server's connections are closed */
    bool is_fresh;            /* the files' present content is in use */
    struct occ_file_signature files[2];
    int64_t looked_ns;
};

/* ---- answers ---- */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                              char *text, size_t n)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_line(struct MHD_Connection *connection, unsigned status, const char *line)
{
    char text[OCC_ERROR_MESSAGE_BYTES + 2];
    (void)snprintf(text, sizeof text, "%s\n", line);
    return answer(connection, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* State of a POST request. */
struct post {
    struct occ_admission *admission;
    size_t bytes;
    bool is_wrong; /* the rest of the body is skipped */
    struct occ_error err;
};

static void take(struct post *post, const char *bytes, size_t n)
{
    post->bytes += n;
    if (post->is_wrong)
        return;
    if (post->bytes > OCC_WEBHOOK_BODY_BYTES)
        post->is_wrong = occ_fail(&post->err, OCC_E_INVALID, "the request is too large") != 0;
    else
        post->is_wrong = occ_admission_feed(post->admission, bytes, n, &post->err) != 0;
}

static enum MHD_Result answer_post(struct MHD_Connection *connection, struct post *post)
{
    _cleanup_(occ_freep) char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return MHD_NO;
    if (!post->is_wrong)
        post->is_wrong = occ_admission_answer(post->admission, out, &post->err) != 0;
    if (fclose(out) != 0)
        return MHD_NO;
    if (post->is_wrong) {
        occ_log(OCC_LOG_WARNING, "a request is refused: %s", post->err.message);
        return answer_line(connection, MHD_HTTP_BAD_REQUEST, post->err.message);
    }
    if (occ_admission_outcome(post->admission)[0])
        occ_log(OCC_LOG_INFO, "%s", occ_admission_outcome(post->admission));
    return answer(connection, MHD_HTTP_OK, "application/json", text, n);
}

static void release_post(void *state)
{
    struct post *post = state;
    if (post)
        occ_admission_free(post->admission);
    free(post);
}

static enum MHD_Result begin_post(const struct occ_webhook *webhook, bool forbids, void **state)
{
    struct post *post = calloc(1, sizeof *post);
    if (post)
        post->admission = occ_admission_new(forbids ? &webhook->forbidden : &webhook->options->admission);
    if (!post || !post->admission) {
        free(post);
        return MHD_NO;
    }
    *state = post;
    return MHD_YES;
}

/* libmicrohttpd's callback signature: called with the headers, for each part of the body, and at its end. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data, size_t *data_n,
                                  void **state)
{
    const struct server *server = context;
    struct post *post = *state;
    bool is_mutate = strcmp(url, "/mutate") == 0, is_annotate = strcmp(url, "/annotate") == 0;
    (void)version;
    if (post && *data_n > 0) {
        take(post, data, *data_n);
        *data_n = 0;
        return post->bytes > 2 * OCC_WEBHOOK_BODY_BYTES ? MHD_NO : MHD_YES;
    }
    if (post)
        return answer_post(connection, post);
    if (strcmp(url, "/healthz") == 0 && strcmp(method, MHD_HTTP_METHOD_GET) == 0)
        return answer_line(connection, MHD_HTTP_OK, "ok");
    if (!is_mutate && !is_annotate)
        return answer_line(connection, MHD_HTTP_NOT_FOUND, "POST /mutate, POST /annotate, GET /healthz");
    if (strcmp(method, MHD_HTTP_METHOD_POST) != 0)
        return answer_line(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "an AdmissionReview is posted");
    return begin_post(server->webhook, is_annotate, state);
}

/* ---- the certificate ---- */

static int read_file(const char *path, char **ret_text, struct occ_error *err)
{
    size_t n = 0;
    int status = occ_path_read(path, FILE_BYTES, ret_text, &n, err);
    return status != 0 || n > 0 ? status : occ_fail(err, OCC_E_INVALID, "%s is empty", path);
}

static void freep_key(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(*text);
}

static int start(struct server *server, struct occ_error *err)
{
    /* per_address: all API servers may come from one address */
    static const struct occ_http_limits limits = {.connections = 64,
                                                  .per_address = 32,
                                                  .silence_s = 5,
                                                  .memory_bytes = (size_t)32 * 1024,
                                                  .release = release_post};
    struct MHD_OptionItem watch[OCC_HTTP_OPTIONS];
    const struct occ_webhook_options *options = server->webhook->options;
    _cleanup_(occ_freep) char *certificate = NULL;
    _cleanup_(freep_key) char *key = NULL;
    int status = read_file(options->certificate_file, &certificate, err);
    if (status == 0)
        status = read_file(options->key_file, &key, err);
    if (status != 0)
        return status;
    occ_http_connections_init(&server->connections, &limits, MHD_get_connection_info, watch);
    int fd = fcntl(server->webhook->listening, F_DUPFD_CLOEXEC, 0); /* the library closes it */
    if (fd < 0)
        return occ_fail_errno(err, errno, "cannot copy the listening socket");
    server->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_TLS, 0, NULL, NULL, on_request, server,
                                      MHD_OPTION_HTTPS_MEM_CERT, certificate, MHD_OPTION_HTTPS_MEM_KEY, key,
                                      MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_ARRAY, watch, MHD_OPTION_END);
    if (server->daemon)
        return 0;
    (void)close(fd);
    return occ_fail(err, OCC_E_INVALID, "cannot serve with the certificate %s and the key %s",
                    options->certificate_file, options->key_file);
}

static void stop(struct server *server)
{
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    server->daemon = NULL;
}

static void look(const struct occ_webhook *webhook, struct occ_file_signature files[2])
{
    files[0] = occ_file_signature_of(webhook->options->certificate_file);
    files[1] = occ_file_signature_of(webhook->options->key_file);
}

/* Serves new connections with the files' present content. The old server's connections may finish a request.
 */
static int renew(struct occ_webhook *webhook, struct occ_error *err)
{
    struct server *old = &webhook->servers[webhook->current], *fresh = &webhook->servers[!webhook->current];
    stop(fresh);
    look(webhook, webhook->files);
    int status = start(fresh, err);
    webhook->is_fresh = status == 0;
    if (status != 0)
        return status;
    int listening = old->daemon ? MHD_quiesce_daemon(old->daemon) : -1;
    if (listening >= 0)
        (void)close(listening);
    webhook->current = !webhook->current;
    webhook->previous_ends_ns = occ_monotonic_ns() + webhook->options->request_ns;
    return 0;
}

/* A renewal that failed is tried again with each look: one file of the pair may have been older than the
 * other. */
static void follow_files(struct occ_webhook *webhook)
{
    struct occ_file_signature now[2];
    struct occ_error err = OCC_ERROR_INIT;
    bool was_fresh = webhook->is_fresh;
    if (occ_monotonic_ns() - webhook->looked_ns < LOOK_NS)
        return;
    webhook->looked_ns = occ_monotonic_ns();
    look(webhook, now);
    bool is_same = occ_file_signature_is_same(&now[0], &webhook->files[0]) &&
                   occ_file_signature_is_same(&now[1], &webhook->files[1]);
    if (is_same && was_fresh)
        return;
    if (renew(webhook, &err) == 0)
        occ_log(OCC_LOG_INFO, "the certificate is read anew from %s", webhook->options->certificate_file);
    else if (was_fresh || !is_same)
        occ_log(OCC_LOG_ERROR, "the certificate stays as it was: %s", err.message);
}

/* ---- the server ---- */

int occ_webhook_open(const struct occ_webhook_options *options, struct occ_webhook **ret_webhook,
                     struct occ_error *err)
{
    struct occ_webhook *webhook = calloc(1, sizeof *webhook);
    if (!webhook)
        return occ_no_memory(err);
    *webhook = (struct occ_webhook){.options = options, .forbidden = options->admission, .listening = -1};
    webhook->forbidden.forbids_host_paths = true;
    for (int i = 0; i < 2; i++)
        webhook->servers[i].webhook = webhook;
    int status = occ_address_listen(options->listen, &webhook->listening, &webhook->port, err);
    if (status == 0)
        status = renew(webhook, err);
    if (status == 0)
        *ret_webhook = webhook;
    else
        occ_webhook_close(webhook);
    return status;
}

void occ_webhook_close(struct occ_webhook *webhook)
{
    if (!webhook)
        return;
    for (int i = 0; i < 2; i++)
        stop(&webhook->servers[i]);
    occ_close_fd(&webhook->listening);
    free(webhook);
}

uint16_t occ_webhook_port(const struct occ_webhook *webhook)
{
    return webhook->port;
}

/* Waits for an event of a server, a signal, or the next look at the files. */
static void wait_for_event(const struct occ_webhook *webhook, const sigset_t *signals)
{
    struct pollfd fds[2];
    int64_t wait_ns = LOOK_NS;
    nfds_t n = 0;
    for (int i = 0; i < 2; i++) {
        struct MHD_Daemon *daemon = webhook->servers[i].daemon;
        const union MHD_DaemonInfo *info =
            daemon ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
        MHD_UNSIGNED_LONG_LONG wait_ms = 0;
        if (!info)
            continue;
        fds[n++] = (struct pollfd){.fd = info->epoll_fd, .events = POLLIN};
        if (MHD_get_timeout(daemon, &wait_ms) == MHD_YES && wait_ms < (uint64_t)wait_ns / 1000000)
            wait_ns = (int64_t)wait_ms * 1000000;
    }
    const struct timespec wait = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
    (void)ppoll(fds, n, &wait, signals);
}

void occ_webhook_serve(struct occ_webhook *webhook, const volatile sig_atomic_t *is_over,
                       const sigset_t *signals)
{
    while (!*is_over) {
        wait_for_event(webhook, signals);
        follow_files(webhook);
        if (occ_monotonic_ns() > webhook->previous_ends_ns)
            stop(&webhook->servers[!webhook->current]);
        for (int i = 0; i < 2; i++)
            if (webhook->servers[i].daemon) {
                (void)MHD_run(webhook->servers[i].daemon);
                (void)occ_http_connections_end(&webhook->servers[i].connections,
                                               webhook->options->request_ns);
            }
    }
}
