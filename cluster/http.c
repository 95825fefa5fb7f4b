/* See http.h. */
#include "http.h"

#define ZLIB_CONST /* inputs */
#include <curl/curl.h>
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
#define SLOW_BYTES  1024L /* a second */
#define GZIP_WINDOW (15 + 16)
#define GZIP_ROOM   64
#define COMPRESSION 1

struct occ_http {
    CURL *curl;
    struct curl_slist *headers;
    struct occ_body query; /* of the next request */
    struct occ_body packed;
    const char *url;
    uint64_t sent_bytes;
    size_t received;
    struct occ_http_answer *answer; /* of the request under way */
};

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
    bool has = curl_url_get(parts, part, &text, 0) == CURLUE_OK;
    curl_free(text);
    return has;
}

int occ_http_check_url(const char *url, struct occ_error *err)
{
    CURLU *parts = curl_url();
    char *scheme = NULL, *host = NULL;
    int rc = 0;
    if (!parts || curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK ||
        curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK)
        rc = occ_fail(err, OCC_E_INVALID, "ship.url: '%.200s' is no URL", url);
    else if (has_part(parts, CURLUPART_QUERY) || has_part(parts, CURLUPART_FRAGMENT) ||
             has_part(parts, CURLUPART_USER))
        rc = occ_fail(err, OCC_E_INVALID,
                      "ship.url: only scheme, host, port and path are expected; ship.user and "
                      "ship.password_file are settings of their own");
    else if (strcmp(scheme, "https") != 0 && (strcmp(scheme, "http") != 0 || !is_this_machine(host)))
        rc = occ_fail(
            err, OCC_E_INVALID,
            "ship.url: https is needed; http goes to this machine only (127.0.0.1, [::1], localhost)");
    curl_free(scheme);
    curl_free(host);
    curl_url_cleanup(parts);
    return rc;
}

/* ---- a connection ---- */

static size_t receive(char *data, size_t size, size_t n, void *http_)
{
    struct occ_http *http = http_;
    size_t room = sizeof http->answer->text - 1 - http->received, bytes = size * n;
    if (bytes > room)
        return 0; /* ends the request: no answer that we want is that long */
    memcpy(http->answer->text + http->received, data, bytes);
    http->received += bytes;
    http->answer->text[http->received] = '\0';
    return bytes;
}

static bool add_header(struct occ_http *http, const char *name, const char *value)
{
    _cleanup_(occ_freep) char *line = NULL;
    if (value[0] == '\0')
        return true;
    if (occ_format_text(&line, NULL, "%s: %s", name, value) != 0)
        return false;
    struct curl_slist *longer = curl_slist_append(http->headers, line);
    http->headers = longer ? longer : http->headers;
    return longer != NULL;
}

static void set_file(CURL *curl, CURLoption option, const char *path)
{
    if (path[0] != '\0')
        (void)curl_easy_setopt(curl, option, path);
}

static bool set_up(struct occ_http *http, const struct occ_http_options *options)
{
    CURL *curl = http->curl = curl_easy_init();
    if (!curl || !add_header(http, "X-ClickHouse-User", options->user) ||
        !add_header(http, "X-ClickHouse-Key", options->password) ||
        !add_header(http, "Content-Encoding", "gzip") ||
        !add_header(http, "Content-Type", "application/octet-stream"))
        return false;
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http->headers);
    (void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT, REQUEST_S);
    (void)curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, SLOW_S);
    (void)curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, http);
    set_file(curl, CURLOPT_CAINFO, options->ca_file);
    set_file(curl, CURLOPT_SSLCERT, options->cert_file);
    set_file(curl, CURLOPT_SSLKEY, options->key_file);
    return true;
}

int occ_http_open(const struct occ_http_options *options, struct occ_http **ret_http, struct occ_error *err)
{
    int rc = occ_http_check_url(options->url, err);
    if (rc != 0)
        return rc;
    struct occ_http *http = calloc(1, sizeof *http);
    if (!http || !set_up(http, options)) {
        occ_http_close(http);
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    }
    http->url = options->url;
    *ret_http = http;
    return 0;
}

void occ_http_close(struct occ_http *http)
{
    if (!http)
        return;
    curl_easy_cleanup(http->curl);
    curl_slist_free_all(http->headers);
    occ_body_free(&http->query);
    occ_body_free(&http->packed);
    free(http);
}

/* ---- a request ---- */

int occ_http_add(struct occ_http *http, const char *name, const char *value, struct occ_error *err)
{
    char *escaped = curl_easy_escape(http->curl, value, 0);
    occ_body_put_raw(&http->query, http->query.n ? "&" : "?", 1);
    occ_body_put_raw(&http->query, name, strlen(name));
    occ_body_put_raw(&http->query, "=", 1);
    if (escaped)
        occ_body_put_raw(&http->query, escaped, strlen(escaped));
    bool failed = !escaped || http->query.failed;
    curl_free(escaped);
    return failed ? occ_fail(err, OCC_E_NO_MEMORY, "out of memory") : 0;
}

static int compress_body(struct occ_http *http, const char *data, size_t n, struct occ_error *err)
{
    static const z_stream unset;
    z_stream stream = unset;
    occ_body_clear(&http->packed);
    if (deflateInit2(&stream, COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
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
    return code == Z_STREAM_END ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
}

static int perform(struct occ_http *http, struct occ_error *err)
{
    _cleanup_(occ_freep) char *url = NULL;
    CURL *curl = http->curl;
    int rc = occ_format_text(&url, err, "%s%.*s", http->url, (int)http->query.n,
                             http->query.n ? http->query.data : "");
    if (rc != 0)
        return rc;
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, http->packed.data);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)http->packed.n);
    CURLcode code = curl_easy_perform(curl);
    if (code != CURLE_OK)
        return occ_fail(err, OCC_E_IO, "%s: %s", http->url, curl_easy_strerror(code));
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &http->answer->status);
    http->sent_bytes += http->packed.n;
    return 0;
}

int occ_http_post(struct occ_http *http, const char *data, size_t n, struct occ_http_answer *ret_answer,
                  struct occ_error *err)
{
    ret_answer->status = 0;
    ret_answer->text[0] = '\0';
    http->answer = ret_answer;
    http->received = 0;
    int rc = compress_body(http, data, n, err);
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
