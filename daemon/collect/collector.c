/* The collector's cycle; collector.h has its guarantees. In the order of this file: committing, reading one
 * ring, ending a run, one round. One thread. */
#include "collector.h"

#include <stdlib.h>

#include "batch.h"
#include "elsewhere.h"
#include "log_records.h"
#include "ratelimit.h"
#include "registry.h"
#include "share.h"
#include "support/clock.h"
#include "support/log.h"

#define RECORDS_PER_POLL  4096  /* a new configuration costs about 10 us: a poll takes tens of ms at most */
#define EARLY_COMMIT_ROWS 65536 /* minimum number of rows between two commits for lack of memory */
#define RING_HALF_FULL    0.5
#define POLL_MIN_NS       INT64_C(10000000)
#define POLL_MAX_NS       INT64_C(250000000) /* the default ring holds a million launches/s for 250 ms */
#define INVERSE_SHARE     2                  /* reading and committing may use half of the time */

struct occ_collector {
    struct occ_store *store;
    struct occ_collector_options options;
    struct occ_registry registry;

    uint64_t launches, rows_since_commit;
    bool dirty;   /* rows, positions or run rows wait for a commit */
    bool stalled; /* the store failed: no ring is read before a commit succeeds */
    struct occ_error stall_error;
    int64_t clean_ns; /* start of the last poll that found nothing to commit */
    int64_t next_commit_ns;
    int64_t poll_ns;
    int64_t read_until_ns; /* end of this poll's time slice (occ_monotonic_ns); INT64_MAX: none */
    bool is_late;          /* the last poll's time slice ended before all rings were read */
    struct occ_share share;
    uint64_t commits, failures;
    int64_t commit_ns;
    struct occ_ratelimit store_failed;
    struct occ_batch batch;
};

int occ_collector_new(struct occ_store *store, const struct occ_collector_options *options,
                      struct occ_collector **ret_collector, struct occ_error *err)
{
    struct occ_collector *c = calloc(1, sizeof *c);
    if (!c)
        return occ_no_memory(err);
    c->store = store;
    c->options = *options;
    c->registry = (struct occ_registry){.store = store, .options = &c->options};
    c->poll_ns = POLL_MAX_NS;
    c->read_until_ns = INT64_MAX;
    *ret_collector = c;
    return 0;
}

void occ_collector_configure(struct occ_collector *collector, const struct occ_collector_options *options)
{
    struct occ_collector_options old = collector->options;
    collector->options = *options;
    collector->options.gone = old.gone;
    collector->options.appended = old.appended;
    collector->options.leveled = old.leveled;
    collector->options.memory = old.memory;
    collector->options.committing = old.committing;
    collector->options.context = old.context;
    collector->options.accounts = old.accounts;
}

void occ_collector_free(struct occ_collector *collector)
{
    if (!collector)
        return;
    occ_registry_reap(&collector->registry, true);
    free(collector);
}

int occ_collector_offer(struct occ_collector *collector, const struct occ_offer *offer, int64_t now_ns,
                        struct occ_producer **ret_producer, struct occ_error *err)
{
    int status = occ_registry_offer(&collector->registry, offer, now_ns, ret_producer, err);
    collector->dirty |= status == 0;
    return status;
}

void occ_collector_restart(struct occ_collector *collector, int64_t now_ns)
{
    struct occ_collector *c = collector;
    c->batch.n = 0;
    c->rows_since_commit = 0;
    occ_registry_restart(&c->registry, now_ns);
    c->stalled = false;
    c->dirty = c->registry.producers != NULL;
}

void occ_collector_died(struct occ_collector *collector, struct occ_producer *producer)
{
    (void)collector;
    producer->life.dead = true;
}

void occ_collector_orphaned(struct occ_collector *collector, struct occ_producer *producer, int64_t now_ns)
{
    (void)collector;
    producer->life.orphan_since_ns = now_ns;
    producer->life.heartbeat_seen_ns = now_ns;
}

static void stall(struct occ_collector *c, int64_t now_ns, const struct occ_error *err)
{
    c->failures++;
    c->stalled = true;
    c->stall_error = *err;
    c->next_commit_ns = now_ns + c->options.commit_interval_ns;
    occ_ratelimit_log(
        &c->store_failed, now_ns, OCC_LOG_ERROR,
        "the history cannot be written: %s; launches stay in the programs' rings until these are full",
        err->message);
}

/* ---- committing ---- */

static int put_positions(struct occ_collector *c, int64_t now_ns, struct occ_error *err)
{
    for (struct occ_producer *p = c->registry.producers; p; p = p->next) {
        uint64_t position = occ_ring_position(p->consumer);
        int status = occ_producer_put_row(p, c->store, err);
        if (status == 0)
            status = occ_elsewhere_put(p, c->store, err);
        if (status == 0)
            status = occ_producer_put_measured(p, c->store, err);
        if (status == 0)
            status = occ_producer_put_totals(p, c->store, now_ns, false, err);
        if (status == 0 && (position != p->position_put || !p->position_in_commit))
            status = occ_store_put_position(c->store, OCC_POSITION_RING, p->run.row.uuid, position, err);
        if (status != 0)
            return status;
        p->position_put = position;
        p->position_in_commit = true;
    }
    return 0;
}

static void after_commit(struct occ_collector *c, int64_t now_ns)
{
    for (struct occ_producer *p = c->registry.producers; p; p = p->next) {
        if (!p->is_broken)
            occ_ring_release(p->consumer, p->position_put);
        if (p->state == OCC_PRODUCER_ENDED)
            p->state = OCC_PRODUCER_DONE;
    }
    if (c->stalled)
        occ_log(OCC_LOG_WARNING, "the history can be written again");
    c->stalled = false;
    c->store_failed = (struct occ_ratelimit){0};
    c->dirty = false;
    c->commits++;
    c->rows_since_commit = 0;
    c->next_commit_ns = now_ns + c->options.commit_interval_ns;
}

/* Frees no producer: callers iterate over the list. */
static int commit(struct occ_collector *c, int64_t now_ns, struct occ_error *err)
{
    struct occ_error own = OCC_ERROR_INIT;
    int64_t began_ns = occ_monotonic_ns();
    int status = occ_batch_append(&c->batch, c->store, &c->options, &c->launches, &own);
    if (status == 0)
        status = put_positions(c, now_ns, &own);
    if (status == 0 && c->options.committing)
        status = c->options.committing(c->options.context, &own);
    if (status == 0)
        status = occ_store_commit(c->store, &own);
    c->commit_ns = occ_monotonic_ns() - began_ns;
    if (status == 0) {
        after_commit(c, now_ns);
        return 0;
    }
    stall(c, now_ns, &own);
    if (err)
        *err = own;
    return status;
}

static void charge(struct occ_collector *c, int64_t now_ns, int64_t cost_ns)
{
    if (c->options.round_ns)
        occ_share_charge(&c->share, now_ns, cost_ns);
}

int occ_collector_commit(struct occ_collector *collector, int64_t now_ns, struct occ_error *err)
{
    int status = commit(collector, now_ns, err);
    charge(collector, now_ns, INVERSE_SHARE * collector->commit_ns);
    occ_registry_reap(&collector->registry, false);
    return status;
}

/* ---- reading one ring ---- */

/* Commit early if the ring or the store's memory fills up. */
static bool needs_commit(const struct occ_collector *c, const struct occ_producer *p)
{
    return occ_ring_fill(p->consumer) > RING_HALF_FULL ||
           (c->rows_since_commit >= EARLY_COMMIT_ROWS &&
            occ_store_memory_bytes(c->store) > c->options.memory_bytes);
}

/* Reads the program's log. true: the log is read to its end, so launches may be read. */
static bool read_log(struct occ_collector *c, struct occ_producer *p, int64_t now_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    size_t budget = RECORDS_PER_POLL;
    int status = occ_log_records_take(p, c->store, &budget, c->read_until_ns, &err);
    if (status == 0)
        status = occ_producer_put_row(p, c->store, &err);
    charge(c, now_ns, p->log_cost_ns);
    p->log_cost_ns = 0;
    c->dirty |= budget < RECORDS_PER_POLL;
    if (p->run.has_new_holes && c->options.leveled)
        c->options.leveled(p, c->options.context);
    p->run.has_new_holes = false;
    if (status == OCC_LOG_RECORDS_BROKEN)
        occ_registry_quarantine(&c->registry, p, now_ns, err.message);
    else if (status != 0)
        stall(c, now_ns, &err);
    else if (budget < RECORDS_PER_POLL && occ_registry_exceeds_share(&c->registry, p))
        occ_registry_quarantine(&c->registry, p, now_ns,
                                "too many kernels, launch configurations and measured values");
    return status == 0 && budget > 0 && !p->is_broken;
}

/* Reads the launches that were in the ring at the start of this call. */
static void read_ring(struct occ_collector *c, struct occ_producer *p, int64_t now_ns)
{
    /* Read the position before the log: the log then has the configuration of each of these launches. */
    uint64_t waiting = occ_ring_pending(p->consumer);
    struct occ_error err = OCC_ERROR_INIT;
    int status = 0;
    p->is_drained = false;
    p->waiting_launches = waiting;
    if (!read_log(c, p, now_ns))
        return;
    while (waiting > 0 && status == 0 && occ_monotonic_ns() < c->read_until_ns) {
        size_t n = 0, max = waiting < OCC_BATCH_LAUNCHES ? waiting : OCC_BATCH_LAUNCHES;
        enum occ_ring_status ring = occ_ring_read(p->consumer, c->batch.launches, max, &n);
        if (ring == OCC_RING_BROKEN) {
            occ_registry_quarantine(&c->registry, p, now_ns, occ_ring_broken_reason(p->consumer));
            return;
        }
        if (ring == OCC_RING_EMPTY)
            break;
        c->batch.producer = p;
        c->batch.n = n;
        if (c->options.skew_ns)
            occ_batch_drop_impossible(&c->batch, c->options.skew_ns, occ_boot_ns());
        c->rows_since_commit += n;
        c->dirty = true;
        waiting -= n;
        status = occ_batch_append(&c->batch, c->store, &c->options, &c->launches, &err);
        if (status == 0 && needs_commit(c, p))
            status = commit(c, now_ns, &err);
    }
    p->is_drained = waiting == 0;
    if (status != 0 && !c->stalled)
        stall(c, now_ns, &err);
}

/* ---- ending a run ---- */

/* Writes everything about the end of the run but does not commit. May be repeated after an error. */
static int end_run(struct occ_collector *c, struct occ_producer *p, int64_t now_ns, bool leaves,
                   struct occ_error *err)
{
    int status = occ_producer_put_end(p, c->store, now_ns, leaves, err);
    if (status != 0)
        return status;
    p->state = OCC_PRODUCER_ENDED;
    c->dirty = true;
    return 0;
}

/* ---- one round ---- */

static void serve_producer(struct occ_collector *c, struct occ_producer *p, int64_t now_ns)
{
    if (p->state != OCC_PRODUCER_LIVE)
        return;
    occ_producer_follow_clock(p, occ_now_ns(), occ_boot_ns());
    c->dirty |= occ_producer_take_name(p, c->options.accounts);
    /* Look before reading: the ring then holds every launch pushed before it was closed. */
    bool closed = occ_ring_is_closed(p->consumer);
    if (!p->is_broken)
        read_ring(c, p, now_ns);
    bool over =
        p->is_broken || p->life.dead || closed || occ_producer_is_lost(p, now_ns, c->options.orphan_grace_ns);
    if (!over || !p->is_drained || c->stalled)
        return;
    struct occ_error err = OCC_ERROR_INIT;
    if (end_run(c, p, now_ns, false, &err) != 0)
        stall(c, now_ns, &err);
}

/* Serves programs until the time slice ends. The next poll starts with the first program not served. */
static void serve_producers(struct occ_collector *c, int64_t now_ns)
{
    struct occ_producer *p = c->registry.producers;
    if (c->options.round_ns)
        c->read_until_ns = occ_monotonic_ns() + c->options.round_ns;
    for (; p && !c->stalled && occ_monotonic_ns() < c->read_until_ns; p = p->next)
        serve_producer(c, p, now_ns);
    c->is_late = occ_monotonic_ns() >= c->read_until_ns;
    occ_registry_begin_with(&c->registry, p);
    c->read_until_ns = INT64_MAX;
}

/* Halves the interval of polls while rings fill quickly, doubles it while few launches arrive. */
static void adapt_interval(struct occ_collector *c)
{
    double pressure = occ_registry_pressure(&c->registry);
    if (pressure > 1)
        c->poll_ns = c->poll_ns / 2 > POLL_MIN_NS ? c->poll_ns / 2 : POLL_MIN_NS;
    else if (pressure < 0.25)
        c->poll_ns = c->poll_ns * 2 < POLL_MAX_NS ? c->poll_ns * 2 : POLL_MAX_NS;
}

void occ_collector_poll(struct occ_collector *collector, int64_t now_ns)
{
    struct occ_collector *c = collector;
    int64_t began_ns = occ_monotonic_ns();
    if (!c->dirty && !c->stalled)
        c->clean_ns = now_ns;
    if (occ_share_wait_ns(&c->share, now_ns) == 0)
        serve_producers(c, now_ns);
    adapt_interval(c);
    /* the timer may be late by a few ms */
    if ((c->dirty || c->stalled) && now_ns + POLL_MIN_NS > c->next_commit_ns)
        (void)commit(c, now_ns, NULL);
    occ_registry_reap(&c->registry, false);
    charge(c, now_ns, INVERSE_SHARE * (occ_monotonic_ns() - began_ns));
}

/* Reads each ring that is not drained. true: launches may be left. */
static bool drain_once(struct occ_collector *c, int64_t now_ns)
{
    bool has_more = false;
    for (struct occ_producer *p = c->registry.producers; p && !c->stalled; p = p->next) {
        if (p->state != OCC_PRODUCER_LIVE || p->is_drained)
            continue;
        read_ring(c, p, now_ns);
        has_more |= !p->is_drained;
    }
    return has_more && !c->stalled;
}

/* Reads all rings in turn, so that a program with a long log delays no other program. After the first pass
 * the launches of all other programs are committed. */
static void drain_all(struct occ_collector *c, int64_t now_ns)
{
    int64_t until_ns = c->options.stop_ns ? occ_monotonic_ns() + c->options.stop_ns : INT64_MAX;
    for (struct occ_producer *p = c->registry.producers; p; p = p->next)
        p->is_drained = p->is_broken;
    bool has_more = drain_once(c, now_ns);
    if (has_more)
        (void)commit(c, now_ns, NULL);
    while (has_more && occ_monotonic_ns() < until_ns)
        has_more = drain_once(c, now_ns);
}

int occ_collector_stop(struct occ_collector *collector, int64_t now_ns, struct occ_error *err)
{
    struct occ_collector *c = collector;
    int status = c->stalled ? commit(c, now_ns, err) : 0;
    if (status == 0)
        drain_all(c, now_ns);
    for (struct occ_producer *p = c->registry.producers; p && status == 0 && !c->stalled; p = p->next)
        if (p->state == OCC_PRODUCER_LIVE)
            status = end_run(c, p, now_ns, true, err);
    if (status == 0)
        status = commit(c, now_ns, err);
    occ_registry_reap(&c->registry, false);
    return status;
}

int64_t occ_collector_wait_ns(const struct occ_collector *collector, int64_t now_ns)
{
    int64_t share_ns = occ_share_wait_ns(&collector->share, now_ns);
    if (collector->is_late && !collector->stalled)
        return share_ns;
    return collector->registry.producers || collector->dirty ? collector->poll_ns : -1;
}

bool occ_collector_is_settled(const struct occ_collector *collector, const char *session)
{
    return occ_registry_is_settled(&collector->registry, session);
}

bool occ_collector_uses_gpu(const struct occ_collector *collector, const uint8_t uuid[16])
{
    return occ_registry_uses_gpu(&collector->registry, uuid);
}

int occ_collector_collect_names(struct occ_collector *collector, bool *ret_more, struct occ_error *err)
{
    return occ_registry_collect_names(&collector->registry, ret_more, err);
}

void occ_collector_get_stats(const struct occ_collector *collector, struct occ_collector_stats *ret_stats)
{
    *ret_stats = (struct occ_collector_stats){
        .producers = collector->registry.n_producers,
        .launches = collector->launches,
        .commits = collector->commits,
        .failures = collector->failures,
        .quarantined = collector->registry.n_quarantine,
        .held_bytes = occ_store_memory_bytes(collector->store),
        .commit_ns = collector->commit_ns,
        .stalled = collector->stalled,
        .stall_code = collector->stall_error.code,
        .stall_reason = collector->stall_error.message,
        .waiting_since_ns = collector->dirty || collector->stalled ? collector->clean_ns : 0,
    };
    occ_registry_add_totals(&collector->registry, ret_stats);
}
