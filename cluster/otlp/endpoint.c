/* See endpoint.h. */
#include "endpoint.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "support/text.h"

#define TIMEOUT_S        10
#define RETRY_AFTER_MAX  INT64_C(3600) /* no server silences a node for longer */
#define ANSWER_BYTES_MAX (64u << 10)

/* Paths by the specification, words for messages. */
static const struct signal {
    const char *path, *items, *refused, *missing;
} signals[] = {
    [OCC_OTLP_METRICS] = {"/v1/metrics", "points", "the metrics are refused",
                          "no server of OTLP takes metrics there"},
    [OCC_OTLP_PROFILES] = {"/v1development/profiles", "profiles", "the profiles are refused",
                           "no server of OTLP takes profiles there"},
};

struct occ_otlp_endpoint {
    const struct signal *signal;
    char *url;
    struct occ_http *http;
    struct occ_http_answer answer;
};

int occ_otlp_endpoint_open(const char *url, enum occ_otlp_signal signal,
                           const struct occ_http_options *options, struct occ_otlp_endpoint **ret_endpoint,
                           struct occ_error *err)
{
    struct occ_otlp_endpoint *endpoint = calloc(1, sizeof *endpoint);
    struct occ_http_options of_json = *options;
    size_t n = strlen(url);
    if (!endpoint)
        return occ_no_memory(err);
    while (n > 0 && url[n - 1] == '/')
        n--;
    int rc = occ_format_text(&endpoint->url, err, "%.*s%s", (int)n, url, signals[signal].path);
    endpoint->signal = &signals[signal];
    if (rc == 0) {
        of_json.url = endpoint->url;
        of_json.content_type = "application/json";
        of_json.timeout_s = TIMEOUT_S;
        of_json.max_answer_bytes = ANSWER_BYTES_MAX;
        rc = occ_http_open(&of_json, &endpoint->http, err);
    }
    if (rc == 0)
        *ret_endpoint = endpoint;
    else
        occ_otlp_endpoint_close(endpoint);
    return rc;
}

void occ_otlp_endpoint_close(struct occ_otlp_endpoint *endpoint)
{
    if (!endpoint)
        return;
    occ_http_close(endpoint->http);
    free(endpoint->answer.text);
    free(endpoint->url);
    free(endpoint);
}

/* Statuses whose reason is not the document; all other failures are final. reason NULL: the signal's
 * `missing`. */
static const struct {
    long first, last;
    int code;
    const char *reason;
} statuses[] = {
    {300, 399, OCC_E_NOT_FOUND, "redirects are not followed"},
    {401, 401, OCC_E_DENIED, "other credentials are needed: ship.otlp_headers_file"},
    {403, 403, OCC_E_DENIED, "other credentials are needed: ship.otlp_headers_file"},
    {404, 405, OCC_E_NOT_FOUND, NULL},
    {407, 407, OCC_E_DENIED, "a proxy wants credentials"},
    {408, 408, OCC_E_BUSY, "the server waited too long for the request"},
    {421, 421, OCC_E_NOT_FOUND, "the request is for another server"},
    {425, 425, OCC_E_BUSY, "the request is too early"},
    {429, 429, OCC_E_BUSY, "too many requests"},
    {502, 502, OCC_E_BUSY, "a proxy has no answer"},
    {503, 503, OCC_E_BUSY, "not available"},
    {504, 504, OCC_E_BUSY, "a proxy has no answer in time"},
    {511, 511, OCC_E_DENIED, "the network wants credentials"},
};

static int fail_status(const struct occ_otlp_endpoint *endpoint, const char *message, struct occ_error *err)
{
    long status = endpoint->answer.status;
    int code = OCC_E_INVALID;
    const char *reason = endpoint->signal->refused;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (status >= statuses[i].first && status <= statuses[i].last) {
            code = statuses[i].code;
            reason = statuses[i].reason ? statuses[i].reason : endpoint->signal->missing;
        }
    return occ_fail(err, code, "%s: %s (HTTP %ld)%s%s", endpoint->url, reason, status, message[0] ? ": " : "",
                    message);
}

int occ_otlp_endpoint_send(struct occ_otlp_endpoint *endpoint, const char *document, size_t n,
                           struct occ_otlp_outcome *ret_outcome, struct occ_error *err)
{
    struct occ_otlp_answer answer;
    uint64_t before = occ_http_sent_bytes(endpoint->http);
    *ret_outcome = (struct occ_otlp_outcome){0};
    int rc = occ_http_post(endpoint->http, document, n, &endpoint->answer, err);
    ret_outcome->sent_bytes = occ_http_sent_bytes(endpoint->http) - before;
    if (rc != 0)
        return rc;
    ret_outcome->status = endpoint->answer.status;
    int64_t wait_s = endpoint->answer.retry_after_s;
    ret_outcome->retry_after_s = wait_s < RETRY_AFTER_MAX ? wait_s : RETRY_AFTER_MAX;
    occ_otlp_answer_parse(endpoint->answer.text, endpoint->answer.n, &answer);
    if (endpoint->answer.status < 200 || endpoint->answer.status >= 300)
        return fail_status(endpoint, answer.message, err);
    ret_outcome->rejected = answer.rejected;
    err->message[0] = '\0';
    if (answer.rejected > 0 || answer.message[0])
        (void)occ_fail(err, 0, "%s: %llu %s rejected%s%s", endpoint->url, (unsigned long long)answer.rejected,
                       endpoint->signal->items, answer.message[0] ? ": " : "", answer.message);
    return 0;
}
