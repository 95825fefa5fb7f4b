/* A daemon's answers about itself and its histories: see server_state.h and status.h. One thread. */
#include "status.h"

#include <sys/resource.h>
#include <unistd.h>

#include "server_state.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/text.h"

#define STATS_NS INT64_C(500000000) /* any user may ask, and an answer reads all histories */

/* ---- sums ---- */

static void add_collector(struct occ_collector_stats *sum, const struct occ_collector_stats *stats)
{
    sum->producers += stats->producers;
    sum->launches += stats->launches;
    sum->commits += stats->commits;
    sum->failures += stats->failures;
    sum->quarantined += stats->quarantined;
    sum->held_bytes += stats->held_bytes;
    sum->commit_ns = sum->commit_ns > stats->commit_ns ? sum->commit_ns : stats->commit_ns;
    sum->stalled |= stats->stalled;
    sum->ring_fill = sum->ring_fill > stats->ring_fill ? sum->ring_fill : stats->ring_fill;
    if (stats->waiting_since_ns &&
        (!sum->waiting_since_ns || stats->waiting_since_ns < sum->waiting_since_ns))
        sum->waiting_since_ns = stats->waiting_since_ns;
    sum->cpu_seconds += stats->cpu_seconds;
    for (int i = 0; i < OCC_LOSS_COUNT; i++)
        sum->lost[i] += stats->lost[i];
}

void occ_totals_add(struct occ_totals *t, struct occ_history *h)
{
    struct occ_collector_stats stats;
    int64_t now_ns = occ_monotonic_ns();
    occ_collector_get_stats(h->collector, &stats);
    add_collector(&t->all, &stats);
    t->all.stalled |= h->next_reopen_ns != 0;
    if (now_ns >= h->stats_until_ns) {
        occ_store_get_stats(h->store, &h->stats);
        h->stats_until_ns = now_ns + STATS_NS;
    }
    t->store.bytes += h->stats.bytes;
    t->store.quota_bytes += h->stats.quota_bytes;
    t->store.evicted_chunks += h->stats.evicted_chunks;
    if (h->stats.oldest_ns && (!t->store.oldest_ns || h->stats.oldest_ns < t->store.oldest_ns))
        t->store.oldest_ns = h->stats.oldest_ns;
}

struct occ_totals occ_totals_of(const struct occ_server *s)
{
    struct occ_totals t = s->closed;
    for (struct occ_history *h = s->histories.first; h; h = h->next)
        occ_totals_add(&t, h);
    return t;
}

double occ_status_resident_bytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file)
        (void)fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

double occ_status_cpu_seconds(void)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ---- answers ---- */

static void put(struct occ_answer *answer, enum occ_status_value value, double number)
{
    OCC_ANSWER(answer, "%s %.15g\n", occ_status_rows[value].key, number);
}

/* Omits an unknown text; control characters are replaced. */
static void put_text(struct occ_answer *answer, enum occ_status_value value, const char *text)
{
    char line[1024];
    if (!text || !text[0])
        return;
    (void)snprintf(line, sizeof line, "%s", text);
    occ_text_sanitise(line);
    OCC_ANSWER(answer, "%s %s\n", occ_status_rows[value].key, line);
}

/* Values that the daemon and each of its histories have. */
static void put_totals(struct occ_answer *answer, const struct occ_totals *t)
{
    const struct occ_collector_stats *all = &t->all;
    const struct {
        enum occ_status_value value;
        double number;
    } rows[] = {
        {OCC_STATUS_PROGRAMS, (double)all->producers},
        {OCC_STATUS_QUARANTINED, (double)all->quarantined},
        {OCC_STATUS_LAUNCHES, (double)all->launches},
        {OCC_STATUS_LAG,
         all->waiting_since_ns ? (double)(occ_monotonic_ns() - all->waiting_since_ns) / 1e9 : 0},
        {OCC_STATUS_RING_FILL, all->ring_fill},
        {OCC_STATUS_HELD, (double)all->held_bytes},
        {OCC_STATUS_COMMITS, (double)all->commits},
        {OCC_STATUS_FAILURES, (double)all->failures},
        {OCC_STATUS_BYTES, (double)t->store.bytes},
        {OCC_STATUS_QUOTA, (double)t->store.quota_bytes},
        {OCC_STATUS_EVICTED, (double)t->store.evicted_chunks},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        put(answer, rows[i].value, rows[i].number);
    for (unsigned int i = 0; i < OCC_LOSS_COUNT; i++)
        put(answer, (enum occ_status_value)(OCC_STATUS_LOST_RING_FULL + i), all->lost[i]);
    if (all->commits)
        put(answer, OCC_STATUS_COMMIT, (double)all->commit_ns / 1e9);
    if (t->store.quota_bytes)
        put(answer, OCC_STATUS_QUOTA_FILL, (double)t->store.bytes / (double)t->store.quota_bytes);
    if (t->store.oldest_ns)
        put(answer, OCC_STATUS_OLDEST, (double)t->store.oldest_ns / 1e9);
}

static void put_counts(struct occ_answer *answer, const uint64_t *n)
{
    for (unsigned int i = 0; n && i < OCC_REFUSAL_COUNT; i++)
        if (n[i] > 0)
            put(answer, (enum occ_status_value)(OCC_STATUS_REFUSED_ENDED + i), (double)n[i]);
}

/* Refusals of the client's owner, or of all owners if the client may command the daemon. */
static void put_refusals(const struct occ_server *s, const struct occ_client *client,
                         struct occ_answer *answer)
{
    put_counts(answer, occ_client_may_command(&s->clients, client, NULL)
                           ? s->refusals.all
                           : occ_refusals_by(&s->refusals, client->owner.name));
}

void occ_status_answer(const struct occ_server *s, struct occ_client *client, struct occ_answer *answer)
{
    const struct occ_totals t = occ_totals_of(s);
    struct occ_owner owner;
    _cleanup_(occ_freep) char *path = NULL;
    occ_histories_owner(&s->histories, &client->identity, &owner);
    (void)occ_histories_path(&s->histories, &owner, &path, NULL);
    OCC_ANSWER(answer, "ok\n");
    put_text(answer, OCC_STATUS_VERSION, OCC_VERSION);
    put(answer, OCC_STATUS_PID, getpid());
    put(answer, OCC_STATUS_UPTIME, (double)((occ_monotonic_ns() - s->started_ns) / 1000000000));
    put(answer, OCC_STATUS_CPU, occ_status_cpu_seconds());
    put(answer, OCC_STATUS_MEMORY, occ_status_resident_bytes());
    put_text(answer, OCC_STATUS_CONFIG, s->options->config);
    put(answer, OCC_STATUS_CONFIG_READ, (double)(s->config_read_ns / 1000000000));
    put_text(answer, OCC_STATUS_CONFIG_ERROR, s->reload_error.message);
    put_text(answer, OCC_STATUS_DATABASE, path);
    put_text(answer, OCC_STATUS_SOCKET, s->options->socket_path);
    put(answer, OCC_STATUS_HISTORIES, (double)s->histories.n);
    if (s->histories.node.is_known)
        put(answer, OCC_STATUS_TOTAL, (double)s->histories.node.total_bytes);
    if (s->histories.node.is_known)
        put(answer, OCC_STATUS_TOTAL_QUOTA, (double)s->histories.options->max_total_bytes);
    put(answer, OCC_STATUS_REFUSED, (double)s->refused);
    put_refusals(s, client, answer);
    put(answer, OCC_STATUS_CLIENTS, (double)s->clients.n);
    put_totals(answer, &t);
    put_text(answer, OCC_STATUS_STALLED, t.all.stalled ? "yes" : "no");
}

/* The daemon's own user and root may see every history, other users only their own. */
static struct occ_history *find_history(const struct occ_server *s, struct occ_client *client,
                                        uint64_t number)
{
    struct occ_owner owner;
    struct occ_history *h = s->histories.first;
    if (!occ_client_may_command(&s->clients, client, NULL)) {
        occ_histories_owner(&s->histories, &client->identity, &owner);
        return number == 0 && s->histories.options->split ? occ_histories_find(&s->histories, &owner) : NULL;
    }
    for (; h && number > 0; number--)
        h = h->next;
    return h;
}

void occ_status_answer_history(const struct occ_server *s, struct occ_client *client, uint64_t number,
                               struct occ_answer *answer)
{
    struct occ_history *h = find_history(s, client, number);
    struct occ_totals t = {.store.bytes = 0};
    struct occ_collector_stats stats;
    OCC_ANSWER(answer, "ok\n");
    if (!h)
        return;
    occ_totals_add(&t, h);
    occ_collector_get_stats(h->collector, &stats);
    put_text(answer, OCC_STATUS_OWNER, s->histories.options->split ? h->owner.name : NULL);
    put_text(answer, OCC_STATUS_DATABASE, h->path);
    put_text(answer, OCC_STATUS_STATE, occ_history_state_word(occ_history_state(h)));
    put_text(answer, OCC_STATUS_REASON,
             h->next_reopen_ns ? h->reopen_error.message
             : stats.stalled   ? stats.stall_reason
                               : NULL);
    put_totals(answer, &t);
}

void occ_status_answer_refusals(const struct occ_server *s, struct occ_client *client, uint64_t number,
                                struct occ_answer *answer)
{
    const struct occ_refusals *r = &s->refusals;
    bool sees_all = occ_client_may_command(&s->clients, client, NULL);
    const char *owner = sees_all      ? number < r->n ? r->of[number].owner : NULL
                        : number == 0 ? client->owner.name
                                      : NULL;
    const uint64_t *n = owner ? occ_refusals_by(r, owner) : NULL;
    OCC_ANSWER(answer, "ok\n");
    if (!n)
        return;
    put_text(answer, OCC_STATUS_OWNER, owner);
    put_counts(answer, n);
}
