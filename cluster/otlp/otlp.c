/* See otlp.h. */
#include "otlp.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/seen/changes.h"
#include "cluster/seen/seen.h"
#include "collect.h"
#include "endpoint.h"
#include "support/clock.h"
#include "support/log.h"

#define SECOND_NS   INT64_C(1000000000)
#define ROWS_A_PASS INT64_C(200000) /* about a second; a longer backlog is counted in several passes */
#define NO_METRICS  "{\"resourceMetrics\": []}"

struct occ_otlp {
    struct occ_otlp_settings settings;
    struct occ_otlp_endpoint *endpoint;
    struct occ_sums *sums; /* NULL: not open */
    struct occ_otlp_node node;
    struct occ_sums_counters counters;
    struct occ_seen seen;
    int64_t retry_after_s;
    char warning[OCC_ERROR_MESSAGE_BYTES]; /* the last warning of the server */
};

int occ_otlp_open(const struct occ_otlp_settings *settings, struct occ_otlp **ret_otlp, struct occ_error *err)
{
    struct occ_otlp *otlp = calloc(1, sizeof *otlp);
    if (!otlp)
        return occ_no_memory(err);
    otlp->settings = *settings;
    otlp->node.origin = settings->origin;
    occ_seen_open(&otlp->seen);
    int rc = occ_otlp_endpoint_open(settings->url, &settings->http, &otlp->endpoint, err);
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
    occ_sums_close(otlp->sums);
    occ_seen_close(&otlp->seen);
    free(otlp);
}

/* ---- the sums: opened by a pass, so that a damaged file does not prevent other work ---- */

static int open_sums(struct occ_otlp *otlp, struct occ_error *err)
{
    if (otlp->sums)
        return 0;
    int rc = occ_sums_open(otlp->settings.state, false, &otlp->sums, err);
    return rc == 0 ? occ_sums_load_counters(otlp->sums, &otlp->counters, err) : rc;
}

/* The next pass opens the sums again, and reads every history again: the failed pass counted nothing. */
static void close_sums(struct occ_otlp *otlp)
{
    occ_sums_close(otlp->sums);
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

/* ---- sending ---- */

static void warn(struct occ_otlp *otlp, const char *warning)
{
    if (warning[0] && strcmp(warning, otlp->warning) != 0)
        occ_log(OCC_LOG_WARNING, "%s", warning);
    (void)snprintf(otlp->warning, sizeof otlp->warning, "%s", warning);
}

static int send_document(struct occ_otlp *otlp, const char *document, size_t n, struct occ_error *err)
{
    struct occ_otlp_outcome outcome;
    int rc = occ_otlp_endpoint_send(otlp->endpoint, document, n, &outcome, err);
    otlp->retry_after_s = outcome.retry_after_s;
    otlp->counters.sent_bytes += (int64_t)outcome.sent_bytes;
    if (rc != 0)
        return rc;
    warn(otlp, err->message);
    otlp->counters.requests++;
    otlp->counters.rejected += outcome.rejected < INT32_MAX ? (int64_t)outcome.rejected : INT32_MAX;
    otlp->counters.last_success_s = occ_now_ns() / SECOND_NS;
    return 0;
}

static int send_sums(struct occ_otlp *otlp, int64_t until_ns, struct occ_error *err)
{
    char *document = NULL;
    size_t n = 0;
    int rc = occ_otlp_document(otlp->sums, &otlp->node, until_ns, &document, &n, err);
    if (rc == 0)
        rc = send_document(otlp, document, n, err);
    free(document);
    return rc == 0 ? occ_sums_clear_means(otlp->sums, err) : rc;
}

int occ_otlp_pass(struct occ_otlp *otlp, bool all, struct occ_error *err)
{
    /* the time of each request is its own: two requests of one minute may have other sums */
    int64_t now_ns = occ_now_ns(), until_ns = now_ns - (all ? 0 : OCC_CHANGES_WAIT_S * SECOND_NS);
    otlp->retry_after_s = 0;
    int rc = count(otlp, all, until_ns / SECOND_NS / 60, now_ns, err);
    if (rc == 0) {
        occ_busy_read(&otlp->seen, otlp->sums, until_ns, &otlp->node.busy);
        rc = send_sums(otlp, until_ns, err);
    }
    otlp->counters.failures += rc != 0;
    int stored = otlp->sums ? occ_sums_store_counters(otlp->sums, &otlp->counters,
                                                      rc == 0 ? "" : err->message, rc == 0 ? err : NULL)
                            : 0;
    return rc != 0 ? rc : stored;
}

int64_t occ_otlp_retry_after_s(const struct occ_otlp *otlp)
{
    return otlp->retry_after_s;
}

int occ_otlp_check(struct occ_otlp *otlp, struct occ_error *err)
{
    return send_document(otlp, NO_METRICS, strlen(NO_METRICS), err);
}
