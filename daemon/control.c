/* Requests and answers of the daemon's socket. No global state; one thread. */
#include "control.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/text.h"

static const struct {
    const char *word;
    enum occ_request_kind kind;
    bool takes_session;
} requests[] = {
    {"ping", OCC_REQUEST_PING, false},
    {"flush", OCC_REQUEST_FLUSH, true},
    {"status", OCC_REQUEST_STATUS, false},
};

static int parse_session(const char *text, char session[33], struct occ_error *err)
{
    uint8_t bytes[16];
    if (!occ_hex_decode(text, bytes, sizeof bytes))
        return occ_fail(err, OCC_E_INVALID, "a session is 32 hexadecimal digits");
    occ_hex_encode(bytes, sizeof bytes, session); /* one spelling: lower case */
    return 0;
}

int occ_request_parse(const char *text, struct occ_request *ret_request, struct occ_error *err)
{
    struct occ_request request = {0};
    size_t n = strcspn(text, " ");
    const char *argument = text[n] ? text + n + 1 : "";
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        if (strlen(requests[i].word) != n || strncmp(text, requests[i].word, n) != 0)
            continue;
        request.kind = requests[i].kind;
        if (!requests[i].takes_session && text[n])
            return occ_fail(err, OCC_E_INVALID, "%s takes no argument", requests[i].word);
        int status = requests[i].takes_session ? parse_session(argument, request.session, err) : 0;
        if (status == 0)
            *ret_request = request;
        return status;
    }
    return occ_fail(err, OCC_E_INVALID, "unknown request (there are: ping, flush SESSION, status)");
}

void occ_control_status(const struct occ_collector *collector, const struct occ_control_facts *facts,
                        char *answer, size_t size)
{
    struct occ_collector_stats stats;
    occ_collector_get_stats(collector, &stats);
    (void)snprintf(
        answer, size,
        "ok\nversion %s\npid %ld\nuptime_s %lld\ndatabase %s\nsocket %s\nclients %zu\nprograms %zu\n"
        "launches %llu\ncommits %llu\nstore_failures %llu\nquarantined %llu\nrefused %llu\n"
        "held_bytes %llu\nstalled %s\n",
        OCC_VERSION, (long)getpid(), (long long)(facts->uptime_ns / 1000000000), facts->database,
        facts->socket, facts->clients, stats.producers, (unsigned long long)stats.launches,
        (unsigned long long)stats.commits, (unsigned long long)stats.failures,
        (unsigned long long)stats.quarantined, (unsigned long long)facts->refused,
        (unsigned long long)stats.held_bytes, stats.stalled ? "yes" : "no");
}

int occ_control_count(struct occ_store *store, const char *session, uint64_t *ret_launches,
                      struct occ_error *err)
{
    const struct occ_filter filter = {.session = session};
    struct occ_runs runs = {0};
    int status = occ_store_runs(store, &filter, &runs, err);
    if (status != 0)
        return status;
    uint64_t launches = 0;
    for (size_t i = 0; i < runs.n; i++)
        launches += runs.rows[i].launches;
    occ_runs_free(&runs);
    *ret_launches = launches;
    return 0;
}
