/* See http.h. */
#include "http.h"

#define ZLIB_CONST               /* makes zlib's inputs const */
#define CURL_DISABLE_DEPRECATION /* CURLOPT_PROTOCOLS is deprecated, but its successor is missing in 7.81 */
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "body.h"
#include "support/cleanup.h"
#include "support/text.h"

#define CONNECT_S   5L
#define REQUEST_S   30L
#define SLOW_S      20L
#define SLOW_BYTES  1024L /* minimum bytes per second */
#define GZIP_WINDOW (15 + 16)
#define GZIP_ROOM   64
#define COMPRESSION 1
#define ANSWER_MIN  65536

/* libcurl, opened when the first connection is made. X(function) */
#define CURL_FUNCTIONS(X)                                                                                    \
    X(easy_init)                                                                                             \
    X(easy_cleanup)                                                                                          \
    X(easy_perform)                                                                                          \
    X(easy_getinfo)                                                                                          \
    X(easy_escape)                                                                                           \
    X(easy_strerror) X(slist_append) X(slist_free_all) X(free) X(url) X(url_cleanup) X(url_set) X(url_get)
static struct {
#define X(name) __typeof__(&curl_##name) name;
    CURL_FUNCTIONS(X)
#undef X
    __typeof__(&(curl_easy_setopt)) easy_setopt;
} curl;

struct occ_http {
    CURL *easy;
    struct occ_http_options options; /* its password is only the first one */
    struct curl_slist *headers;
    struct occ_body query; /* query of the next request */
    struct occ_body packed;
    const char *url;
    uint64_t sent_bytes;
    size_t max_answer_bytes;
    bool is_too_long;               /* the current answer is too long */
    struct occ_http_answer *answer; /* answer of the current request */
};

/* ---- libcurl ---- */

static bool find_function(void *library, const char *name, void *ret_function)
{
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(ret_function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static int open_curl(struct occ_error *err)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *library = NULL;
    if (curl.easy_setopt)
        return 0;
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    bool found = library != NULL;
#define X(name) found = found && find_function(library, "curl_" #name, &curl.name);
    CURL_FUNCTIONS(X)
#undef X
    if (found && find_function(library, "curl_easy_setopt", &curl.easy_setopt))
        return 0;
    return occ_fail(
        err, OCC_E_NOT_FOUND,
        "a server is reached with libcurl.so.4, which is missing: install libcurl4 (Debian, Ubuntu) "
        "or libcurl (RHEL)");
}

/* ---- addresses ---- */

static bool is_this_machine(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "[::1]", "localhost"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(host, names[i]) == 0)
            return true;
    return false;
}

static bool has_part(CURLU *parts, CURLUPart part)
{
    char *text = NULL;
    bool has = curl.url_get(parts, part, &text, 0) == CURLUE_OK;
    curl.free(text);
    return has;
}

static int check_url(const char *url, struct occ_error *err)
{
    CURLU *parts = curl.url();
    char *scheme = NULL, *host = NULL;
    int rc = 0;
    if (!parts || curl.url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK ||
        curl.url_get(parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl.url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK)
        rc = occ_fail(err, OCC_E_INVALID, "'%.200s' is no URL", url);
    else if (has_part(parts, CURLUPART_QUERY) || has_part(parts, CURLUPART_FRAGMENT) ||
             has_part(parts, CURLUPART_USER))
        rc = occ_fail(err, OCC_E_INVALID,
                      "only scheme, host, port and path are expected; user and password_file are settings of "
                      "their own");
    else if (strcmp(scheme, "https") != 0 && (strcmp(scheme, "http") != 0 || !is_this_machine(host)))
        rc = occ_fail(err, OCC_E_INVALID,
                      "https is needed; http goes to this machine only (127.0.0.1, [::1], localhost)");
    curl.free(scheme);
    curl.free(host);
    curl.url_cleanup(parts);
    return rc;
}

/* ---- a connection ---- */

/* Makes room for `n` more bytes and a NUL. */
static bool reserve(struct occ_http_answer *answer, size_t n, size_t max)
{
    size_t needed = answer->n + n + 1, more = 2 * answer->allocated;
    if (needed <= answer->allocated)
        return true;
    more = more < needed ? needed : more;
    more = more < ANSWER_MIN ? ANSWER_MIN : more;
    char *moved = needed <= max ? realloc(answer->text, more) : NULL;
    if (!moved)
        return false;
    answer->text = moved;
    answer->allocated = more;
    return true;
}

static size_t receive(char *data, size_t size, size_t n, void *http_)
{
    struct occ_http *http = http_;
    struct occ_http_answer *answer = http->answer;
    size_t bytes = size * n;
    http->is_too_long = !reserve(answer, bytes, http->max_answer_bytes);
    if (http->is_too_long)
        return 0; /* ends the request */
    memcpy(answer->text + answer->n, data, bytes);
    answer->n += bytes;
    answer->text[answer->n] = '\0';
    return bytes;
}

static bool add_line(struct occ_http *http, const char *line)
{
    struct curl_slist *longer = curl.slist_append(http->headers, line);
    http->headers = longer ? longer : http->headers;
    return longer != NULL;
}

static bool add_header(struct occ_http *http, const char *name, const char *value)
{
    _cleanup_(occ_freep) char *line = NULL;
    if (value[0] == '\0')
        return true;
    return occ_format_text(&line, NULL, "%s: %s", name, value) == 0 && add_line(http, line);
}

static bool add_lines(struct occ_http *http, const char *const *lines)
{
    while (lines && *lines && add_line(http, *lines))
        lines++;
    return !lines || !*lines;
}

static void set_file(CURL *easy, CURLoption option, const char *path)
{
    if (path[0] != '\0')
        (void)curl.easy_setopt(easy, option, path);
}

/* On failure the former headers stay. */
static bool set_headers(struct occ_http *http, const char *password)
{
    struct curl_slist *former = http->headers;
    const struct occ_http_options *options = &http->options;
    const char *type = options->content_type ? options->content_type : "application/octet-stream";
    http->headers = NULL;
    if (!add_header(http, "X-ClickHouse-User", options->user) ||
        !add_header(http, "X-ClickHouse-Key", password) || !add_header(http, "Content-Encoding", "gzip") ||
        !add_header(http, "Content-Type", type) || !add_lines(http, options->headers)) {
        curl.slist_free_all(http->headers);
        http->headers = former;
        return false;
    }
    (void)curl.easy_setopt(http->easy, CURLOPT_HTTPHEADER, http->headers);
    curl.slist_free_all(former);
    return true;
}

int occ_http_set_password(struct occ_http *http, const char *password, struct occ_error *err)
{
    return set_headers(http, password) ? 0 : occ_no_memory(err);
}

static bool set_up(struct occ_http *http)
{
    const struct occ_http_options *options = &http->options;
    CURL *easy = http->easy = curl.easy_init();
    if (!easy || !set_headers(http, options->password))
        return false;
    (void)curl.easy_setopt(easy, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
    (void)curl.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl.easy_setopt(easy, CURLOPT_PROXY, "");
    (void)curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
    (void)curl.easy_setopt(easy, CURLOPT_TIMEOUT, options->timeout_s ? options->timeout_s : REQUEST_S);
    (void)curl.easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, options->timeout_s ? options->timeout_s : SLOW_S);
    (void)curl.easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES);
    (void)curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
    (void)curl.easy_setopt(easy, CURLOPT_WRITEDATA, http);
    set_file(easy, CURLOPT_CAINFO, options->ca_file);
    set_file(easy, CURLOPT_SSLCERT, options->cert_file);
    set_file(easy, CURLOPT_SSLKEY, options->key_file);
    return true;
}

int occ_http_open(const struct occ_http_options *options, struct occ_http **ret_http, struct occ_error *err)
{
    int rc = open_curl(err);
    if (rc == 0)
        rc = check_url(options->url, err);
    if (rc != 0)
        return rc;
    struct occ_http *http = calloc(1, sizeof *http);
    if (http)
        http->options = *options;
    if (!http || !set_up(http)) {
        occ_http_close(http);
        return occ_no_memory(err);
    }
    http->url = options->url;
    http->max_answer_bytes = options->max_answer_bytes ? options->max_answer_bytes : ANSWER_MIN;
    *ret_http = http;
    return 0;
}

void occ_http_close(struct occ_http *http)
{
    if (!http)
        return;
    curl.easy_cleanup(http->easy);
    curl.slist_free_all(http->headers);
    occ_body_free(&http->query);
    occ_body_free(&http->packed);
    free(http);
}

/* ---- a request ---- */

int occ_http_add(struct occ_http *http, const char *name, const char *value, struct occ_error *err)
{
    char *escaped = curl.easy_escape(http->easy, value, 0);
    occ_body_put_raw(&http->query, http->query.n ? "&" : "?", 1);
    occ_body_put_raw(&http->query, name, strlen(name));
    occ_body_put_raw(&http->query, "=", 1);
    if (escaped)
        occ_body_put_raw(&http->query, escaped, strlen(escaped));
    bool failed = !escaped || http->query.failed;
    curl.free(escaped);
    return failed ? occ_no_memory(err) : 0;
}

static int compress_body(struct occ_http *http, const char *data, size_t n, struct occ_error *err)
{
    static const z_stream unset;
    z_stream stream = unset;
    occ_body_clear(&http->packed);
    if (deflateInit2(&stream, COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return occ_no_memory(err);
    size_t bound = deflateBound(&stream, n) + GZIP_ROOM;
    if (http->packed.allocated < bound) {
        occ_body_free(&http->packed);
        http->packed.data = malloc(bound);
        http->packed.allocated = http->packed.data ? bound : 0;
    }
    stream.next_in = (const Bytef *)data;
    stream.avail_in = (uInt)n;
    stream.next_out = (Bytef *)http->packed.data;
    stream.avail_out = (uInt)http->packed.allocated;
    int code = http->packed.data ? deflate(&stream, Z_FINISH) : Z_MEM_ERROR;
    http->packed.n = stream.total_out;
    (void)deflateEnd(&stream);
    return code == Z_STREAM_END ? 0 : occ_no_memory(err);
}

/* libcurl before 7.66 does not know the header. */
static int64_t retry_after_s(CURL *easy)
{
    curl_off_t seconds = 0;
    return curl.easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0 ? seconds : 0;
}

static int perform(struct occ_http *http, struct occ_error *err)
{
    _cleanup_(occ_freep) char *url = NULL;
    CURL *easy = http->easy;
    int rc = occ_format_text(&url, err, "%s%.*s", http->url, (int)http->query.n,
                             http->query.n ? http->query.data : "");
    if (rc != 0)
        return rc;
    (void)curl.easy_setopt(easy, CURLOPT_URL, url);
    (void)curl.easy_setopt(easy, CURLOPT_POSTFIELDS, http->packed.data);
    (void)curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)http->packed.n);
    CURLcode code = curl.easy_perform(easy);
    if (http->is_too_long)
        return occ_fail(err, OCC_E_IO, "%s: the answer is longer than %.3g MB, or than memory", http->url,
                        (double)http->max_answer_bytes / (1 << 20));
    if (code != CURLE_OK)
        return occ_fail(err, OCC_E_IO, "%s: %s", http->url, curl.easy_strerror(code));
    (void)curl.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &http->answer->status);
    http->answer->retry_after_s = retry_after_s(easy);
    http->sent_bytes += http->packed.n;
    return 0;
}

int occ_http_post(struct occ_http *http, const char *data, size_t n, struct occ_http_answer *ret_answer,
                  struct occ_error *err)
{
    ret_answer->status = 0;
    ret_answer->n = 0;
    ret_answer->retry_after_s = 0;
    http->answer = ret_answer;
    http->is_too_long = false;
    int rc = reserve(ret_answer, 0, SIZE_MAX) ? compress_body(http, data, n, err) : occ_no_memory(err);
    if (rc == 0)
        ret_answer->text[0] = '\0';
    if (rc == 0)
        rc = perform(http, err);
    occ_body_clear(&http->query);
    http->answer = NULL;
    return rc;
}

uint64_t occ_http_sent_bytes(const struct occ_http *http)
{
    return http->sent_bytes;
}
