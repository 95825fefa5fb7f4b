/* See otlp.h. */
#include "otlp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/seen/changes.h"
#include "cluster/seen/seen.h"
#include "collect.h"
#include "endpoint.h"
#include "profile.h"
#include "support/clock.h"
#include "support/log.h"

#define SECOND_NS       INT64_C(1000000000)
#define ROWS_A_PASS     INT64_C(200000) /* about a second; a longer backlog is counted in several passes */
#define NO_METRICS      "{\"resourceMetrics\": []}"
#define NO_PROFILES     "{\"resourceProfiles\": []}"
#define LAUNCHES_A_PASS INT64_C(5000000) /* read for layers: about a second */
#define PROFILES_WAIT_S INT64_C(300)     /* pause after a failure that a person has to repair */

struct occ_otlp {
    struct occ_otlp_settings settings;
    struct occ_otlp_endpoint *endpoint, *profiles; /* profiles NULL: none */
    struct occ_sums *sums;                         /* NULL: not open */
    struct occ_stacks *stacks;                     /* NULL: not open, or no profiles */
    struct occ_otlp_node node;
    struct occ_sums_counters counters;
    struct occ_seen seen;
    struct occ_map idle; /* histories without running programs */
    int64_t retry_after_s;
    bool have_profiles_failed;
    int64_t profiles_next_ns; /* earliest time of the next request of profiles, since boot */
    /* the last warnings of the server */
    char warning[OCC_ERROR_MESSAGE_BYTES], profiles_warning[OCC_ERROR_MESSAGE_BYTES];
};

int occ_otlp_open(const struct occ_otlp_settings *settings, struct occ_otlp **ret_otlp, struct occ_error *err)
{
    struct occ_otlp *otlp = calloc(1, sizeof *otlp);
    if (!otlp)
        return occ_no_memory(err);
    otlp->settings = *settings;
    otlp->node.origin = settings->origin;
    occ_seen_open(&otlp->seen);
    int rc = occ_otlp_endpoint_open(settings->url, OCC_OTLP_METRICS, &settings->http, &otlp->endpoint, err);
    if (rc == 0 && settings->has_profiles)
        rc = occ_otlp_endpoint_open(settings->url, OCC_OTLP_PROFILES, &settings->http, &otlp->profiles, err);
    if (rc == 0)
        *ret_otlp = otlp;
    else
        occ_otlp_close(otlp);
    return rc;
}

void occ_otlp_close(struct occ_otlp *otlp)
{
    if (!otlp)
        return;
    occ_otlp_endpoint_close(otlp->endpoint);
    occ_otlp_endpoint_close(otlp->profiles);
    occ_stacks_close(otlp->stacks);
    occ_sums_close(otlp->sums);
    occ_seen_close(&otlp->seen);
    occ_map_free(&otlp->idle);
    free(otlp);
}

/* ---- the sums: opened by a pass, so that a damaged file does not prevent other work ---- */

static int open_sums(struct occ_otlp *otlp, struct occ_error *err)
{
    if (otlp->sums)
        return 0;
    int rc = occ_sums_open(otlp->settings.state, false, &otlp->sums, err);
    if (rc == 0)
        rc = otlp->settings.has_profiles ? occ_stacks_open(otlp->sums, &otlp->stacks, err)
                                         : occ_stacks_clear(otlp->sums, err);
    return rc == 0 ? occ_sums_load_counters(otlp->sums, &otlp->counters, err) : rc;
}

/* The next pass opens the sums again, and reads every history again: the failed pass counted nothing. */
static void close_sums(struct occ_otlp *otlp)
{
    occ_stacks_close(otlp->stacks);
    occ_sums_close(otlp->sums);
    otlp->stacks = NULL;
    otlp->sums = NULL;
    occ_seen_close(&otlp->seen);
    occ_seen_open(&otlp->seen);
}

/* ---- counting ---- */

/* An unreadable history does not prevent other histories from counting. */
static int count_history(struct occ_otlp *otlp, size_t index, struct occ_collect *collect, int64_t now_ns,
                         struct occ_error *err)
{
    struct occ_seen_history seen;
    const char *path = otlp->seen.entries[index].path;
    enum occ_seen_state state = occ_seen_look(&otlp->seen, index, now_ns, &seen);
    bool is_whole = false;
    if (state == OCC_SEEN_SENT || state == OCC_SEEN_NONE)
        return 0;
    int rc = occ_collect_history(collect, path, &is_whole, err);
    if (rc == 0 && is_whole && state == OCC_SEEN_CHANGED)
        occ_seen_put(&otlp->seen, index, &seen);
    if (rc != OCC_E_CORRUPT)
        return rc;
    occ_log(OCC_LOG_WARNING, "%s", err->message);
    otlp->counters.unreadable++;
    return 0;
}

static int count_histories(struct occ_otlp *otlp, struct occ_collect *collect, int64_t minute, int64_t now_ns,
                           struct occ_error *err)
{
    int rc = occ_sums_begin(otlp->sums, err);
    for (size_t i = 0; i < otlp->seen.n && rc == 0; i++)
        rc = count_history(otlp, i, collect, now_ns, err);
    if (rc == 0)
        rc = occ_sums_store_counters(otlp->sums, &otlp->counters, NULL, err);
    return rc == 0 ? occ_sums_end(otlp->sums, minute, err) : rc;
}

/* Counts up to `minute`. */
static int count(struct occ_otlp *otlp, bool all, int64_t minute, int64_t now_ns, struct occ_error *err)
{
    struct occ_sums_counters *counters = &otlp->counters;
    int rc = open_sums(otlp, err);
    struct occ_collect collect = {.sums = otlp->sums,
                                  .counters = counters,
                                  .stacks = otlp->stacks,
                                  .launches_left = LAUNCHES_A_PASS,
                                  .now_s = all ? 0 : now_ns / SECOND_NS,
                                  .rows_left = ROWS_A_PASS};
    if (rc == 0)
        rc = occ_seen_update(&otlp->seen, otlp->settings.history, now_ns, err);
    if (counters->since_minute == 0)
        counters->since_minute = minute;
    counters->unreadable = 0;
    if (rc == 0)
        rc = count_histories(otlp, &collect, minute, now_ns, err);
    if (rc != 0)
        close_sums(otlp);
    return rc;
}

/* ---- metrics ---- */

/* Logs a text that differs from the last one. */
static void warn(char last[OCC_ERROR_MESSAGE_BYTES], const char *warning)
{
    if (warning[0] && strcmp(warning, last) != 0)
        occ_log(OCC_LOG_WARNING, "%s", warning);
    (void)snprintf(last, OCC_ERROR_MESSAGE_BYTES, "%s", warning);
}

static int64_t limited(uint64_t number)
{
    return number < INT32_MAX ? (int64_t)number : INT32_MAX;
}

static int send_document(struct occ_otlp *otlp, const char *document, size_t n, struct occ_error *err)
{
    struct occ_otlp_outcome outcome;
    int rc = occ_otlp_endpoint_send(otlp->endpoint, document, n, &outcome, err);
    otlp->retry_after_s = outcome.retry_after_s;
    otlp->counters.sent_bytes += (int64_t)outcome.sent_bytes;
    if (rc != 0)
        return rc;
    warn(otlp->warning, err->message);
    otlp->counters.requests++;
    otlp->counters.rejected += limited(outcome.rejected);
    otlp->counters.last_success_s = occ_now_ns() / SECOND_NS;
    return 0;
}

static int send_sums(struct occ_otlp *otlp, int64_t until_ns, struct occ_error *err)
{
    char *document = NULL;
    size_t n = 0;
    occ_busy_read(&otlp->seen, otlp->sums, until_ns, &otlp->idle, &otlp->node.busy);
    int rc = occ_otlp_document(otlp->sums, &otlp->node, until_ns, &document, &n, err);
    if (rc == 0)
        rc = send_document(otlp, document, n, err);
    free(document);
    return rc == 0 ? occ_sums_clear_means(otlp->sums, err) : rc;
}

/* ---- profiles ---- */

/* Sends a request. A refusal for good ends it; any other failure leaves it for a later pass. */
static int send_request(struct occ_otlp *otlp, const struct occ_stacks_request *request,
                        struct occ_error *err)
{
    struct occ_sums_counters *counters = &otlp->counters;
    struct occ_otlp_outcome outcome;
    int rc = occ_otlp_endpoint_send(otlp->profiles, request->body, request->n, &outcome, err);
    int64_t wait_s = rc == OCC_E_DENIED || rc == OCC_E_NOT_FOUND ? PROFILES_WAIT_S : 0;
    wait_s = outcome.retry_after_s > wait_s ? outcome.retry_after_s : wait_s;
    otlp->profiles_next_ns = occ_boot_ns() + wait_s * SECOND_NS;
    counters->sent_bytes += (int64_t)outcome.sent_bytes;
    if (rc == 0) {
        warn(otlp->profiles_warning, err->message);
        counters->profile_requests++;
        counters->profiles_rejected += limited(outcome.rejected);
        return occ_stacks_drop_request(otlp->stacks, err);
    }
    if (rc == OCC_E_INVALID) {
        counters->profiles_refused++;
        counters->profiles_refused_s += (int64_t)fmin(fmax(request->gpu_ns / 1e9, 0), INT32_MAX);
        int dropped = occ_stacks_drop_request(otlp->stacks, NULL);
        return dropped != 0 ? dropped : rc;
    }
    return rc;
}

/* Sends the request that is left of an earlier pass, then one of all stacks. */
static int send_profiles(struct occ_otlp *otlp, struct occ_error *err)
{
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0; i++) {
        struct occ_stacks_request request;
        rc = occ_stacks_load_request(otlp->stacks, &request, err);
        if (rc == 0 && !request.body) {
            rc = occ_stacks_make_request(otlp->stacks, occ_otlp_profile, &otlp->node.origin, err);
            if (rc == 0)
                rc = occ_stacks_load_request(otlp->stacks, &request, err);
            i = 1;
        }
        if (rc == 0 && request.body)
            rc = send_request(otlp, &request, err);
        free(request.body);
    }
    return rc;
}

/* `all`: returns failures, which are otherwise only logged. */
static int pass_profiles(struct occ_otlp *otlp, bool all, struct occ_error *err)
{
    struct occ_error own = OCC_ERROR_INIT;
    if (!otlp->stacks || (!all && occ_boot_ns() < otlp->profiles_next_ns))
        return 0;
    int rc = send_profiles(otlp, all ? err : &own);
    otlp->counters.profile_failures += rc != 0;
    otlp->have_profiles_failed = rc != 0;
    if (rc != 0 && !all)
        warn(otlp->profiles_warning, own.message);
    return all ? rc : 0;
}

/* ---- passes ---- */

/* The server answered, and takes no metrics, but perhaps profiles. */
static bool refuses(int rc)
{
    return rc == OCC_E_INVALID || rc == OCC_E_DENIED || rc == OCC_E_NOT_FOUND;
}

int occ_otlp_pass(struct occ_otlp *otlp, bool all, struct occ_error *err)
{
    /* the time of each request is its own: two requests of one minute may have other sums */
    int64_t now_ns = occ_now_ns(), until_ns = now_ns - (all ? 0 : OCC_CHANGES_WAIT_S * SECOND_NS);
    otlp->retry_after_s = 0;
    int rc = count(otlp, all, until_ns / SECOND_NS / 60, now_ns, err);
    bool is_counted = rc == 0;
    if (rc == 0)
        rc = send_sums(otlp, until_ns, err);
    otlp->counters.failures += rc != 0;
    if (rc == 0)
        rc = pass_profiles(otlp, all, err);
    else if (is_counted && refuses(rc))
        (void)pass_profiles(otlp, false, NULL);
    const char *failure = rc != 0 ? err->message : otlp->have_profiles_failed ? otlp->profiles_warning : "";
    int stored =
        otlp->sums ? occ_sums_store_counters(otlp->sums, &otlp->counters, failure, rc == 0 ? err : NULL) : 0;
    rc = rc != 0 ? rc : stored;
    return rc == 0 && all
               ? occ_seen_check(&otlp->seen, otlp->settings.history, otlp->counters.unreadable, err)
               : rc;
}

int64_t occ_otlp_retry_after_s(const struct occ_otlp *otlp)
{
    return otlp->retry_after_s;
}

/* Pyroscope refuses a request without profiles, so that 400 shows a server of profiles, too. */
static int check_profiles(struct occ_otlp *otlp, struct occ_error *err)
{
    struct occ_otlp_outcome outcome;
    int rc = occ_otlp_endpoint_send(otlp->profiles, NO_PROFILES, strlen(NO_PROFILES), &outcome, err);
    return outcome.status == 400 ? 0 : rc;
}

int occ_otlp_check(struct occ_otlp *otlp, struct occ_error *err)
{
    struct occ_error own = OCC_ERROR_INIT;
    int rc = send_document(otlp, NO_METRICS, strlen(NO_METRICS), err);
    if (!otlp->profiles || (rc != 0 && !refuses(rc)))
        return rc;
    int also = check_profiles(otlp, rc == 0 ? err : &own);
    if (rc != 0 && also == 0)
        occ_log(OCC_LOG_WARNING, "%s takes profiles", otlp->settings.url);
    else if (rc != 0)
        occ_log(OCC_LOG_WARNING, "%s", own.message);
    return rc != 0 ? rc : also;
}
