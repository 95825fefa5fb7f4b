/* See registry.h. */
#include "registry.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elsewhere.h"

#define POLL_LAUNCHES 8192 /* target number of launches per ring and poll */
/* id tables of all programs: room for 3 million configurations of 20 bytes */
#define TABLE_BYTES_MAX (UINT64_C(64) << 20)

/* Calls gone() once: the owner must drop its pointer to the producer. */
static void disown(struct occ_registry *r, struct occ_producer *p)
{
    void *owner = p->owner;
    p->owner = NULL;
    if (owner && r->options->gone)
        r->options->gone(owner, r->options->context);
}

void occ_registry_reap(struct occ_registry *r, bool all)
{
    struct occ_producer **link = &r->producers;
    while (*link) {
        struct occ_producer *p = *link;
        if (!all && p->state != OCC_PRODUCER_DONE) {
            link = &p->next;
            continue;
        }
        *link = p->next;
        r->n_producers--;
        disown(r, p);
        r->ended_cpu_seconds += occ_producer_add_totals(p, r->ended_lost);
        occ_producer_free(p);
    }
}

void occ_registry_quarantine(struct occ_registry *r, struct occ_producer *p, int64_t now_ns, const char *why)
{
    p->is_broken = p->is_drained = true;
    (void)snprintf(p->run.reason, sizeof p->run.reason, "recording stopped, the program's ring is broken: %s",
                   why);
    p->run.row_changed = true;
    memcpy(r->quarantine[r->n_quarantine++ % OCC_REGISTRY_QUARANTINE_MAX], p->run.row.uuid, 16);
    occ_ratelimit_log(&r->ring_broken, now_ns, OCC_LOG_WARNING,
                      "the ring of process %d is broken: %s; it is in quarantine", (int)p->peer.pid, why);
    disown(r, p);
}

void occ_registry_restart(struct occ_registry *r, int64_t now_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    for (struct occ_producer *p = r->producers; p; p = p->next)
        if (p->state != OCC_PRODUCER_DONE &&
            (occ_producer_restart(p, &err) != 0 || occ_elsewhere_restart(p, &err) != 0))
            occ_registry_quarantine(r, p, now_ns, err.message);
}

void occ_registry_begin_with(struct occ_registry *r, struct occ_producer *first)
{
    struct occ_producer *last = r->producers, *before = r->producers;
    if (!first || first == r->producers)
        return;
    while (last->next)
        last = last->next;
    while (before->next != first)
        before = before->next;
    last->next = r->producers;
    before->next = NULL;
    r->producers = first;
}

double occ_registry_pressure(const struct occ_registry *r)
{
    double pressure = 0;
    for (const struct occ_producer *p = r->producers; p; p = p->next) {
        double rows = (double)p->waiting_launches / POLL_LAUNCHES;
        double fill = occ_ring_fill(p->consumer) * 2;
        pressure = rows > pressure ? rows : pressure;
        pressure = fill > pressure ? fill : pressure;
    }
    return pressure;
}

bool occ_registry_uses_gpu(const struct occ_registry *r, const uint8_t uuid[16])
{
    for (const struct occ_producer *p = r->producers; p; p = p->next) {
        const struct occ_producer_tables *t = &p->tables;
        size_t i = 0;
        while (i < t->n_devices && memcmp(t->devices[i].uuid, uuid, 16) != 0)
            i++;
        if (p->state == OCC_PRODUCER_LIVE && (i < t->n_devices || t->n_devices == 0))
            return true;
    }
    return false;
}

bool occ_registry_is_settled(const struct occ_registry *r, const char *session)
{
    for (const struct occ_producer *p = r->producers; p; p = p->next) {
        bool over = p->life.dead || p->state != OCC_PRODUCER_LIVE;
        /* the session is unknown until the PROCESS record has been read: the program may belong to it */
        bool ours = !p->run.row.session || strcmp(p->run.row.session, session) == 0;
        if (over && ours)
            return false;
    }
    return true;
}

static void mark(int64_t id, const int64_t *ids, size_t n, bool *kept)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < n && ids[low] == id)
        kept[low] = true;
}

/* Marks the ids that the tables of the programs contain. */
static void keep(const void *context, enum occ_name name, const int64_t *ids, size_t n, bool *kept)
{
    const struct occ_registry *r = context;
    for (const struct occ_producer *p = r->producers; p; p = p->next) {
        const struct occ_producer_tables *t = &p->tables;
        if (name == OCC_NAME_RUN)
            mark(p->run.id, ids, n, kept);
        for (size_t i = 0; name == OCC_NAME_CONFIG && i < t->n_configs; i++)
            mark(t->configs[i].id, ids, n, kept);
        for (size_t i = 0; name == OCC_NAME_KERNEL && i < t->n_kernels; i++)
            mark(t->kernels[i], ids, n, kept);
    }
}

int occ_registry_collect_names(const struct occ_registry *r, bool *ret_more, struct occ_error *err)
{
    const struct occ_name_keeper keeper = {.keep = keep, .context = r};
    bool is_only_writer = r->options->round_ns != 0;
    return is_only_writer ? occ_store_collect_names(r->store, &keeper, ret_more, err) : 0;
}

void occ_registry_add_totals(const struct occ_registry *r, struct occ_collector_stats *stats)
{
    stats->cpu_seconds = r->ended_cpu_seconds;
    memcpy(stats->lost, r->ended_lost, sizeof stats->lost);
    for (const struct occ_producer *p = r->producers; p; p = p->next) {
        double fill = p->is_broken ? 0 : occ_ring_fill(p->consumer);
        stats->ring_fill = fill > stats->ring_fill ? fill : stats->ring_fill;
        stats->cpu_seconds += occ_producer_add_totals(p, stats->lost);
    }
}

bool occ_registry_exceeds_share(const struct occ_registry *r, const struct occ_producer *producer)
{
    uint64_t bytes = 0;
    for (const struct occ_producer *p = r->producers; p; p = p->next)
        bytes += occ_producer_table_bytes(p);
    return bytes > TABLE_BYTES_MAX && occ_producer_table_bytes(producer) > TABLE_BYTES_MAX / r->n_producers;
}

/* ---- offers ---- */

static bool in_quarantine(const struct occ_registry *r, const uint8_t uuid[16])
{
    for (size_t i = 0; i < r->n_quarantine && i < OCC_REGISTRY_QUARANTINE_MAX; i++)
        if (memcmp(r->quarantine[i], uuid, 16) == 0)
            return true;
    return false;
}

static struct occ_producer *find_uuid(const struct occ_registry *r, const uint8_t uuid[16])
{
    struct occ_producer *p = r->producers;
    while (p && memcmp(p->run.row.uuid, uuid, 16) != 0)
        p = p->next;
    return p;
}

/* The same memfd offered again by the same program. */
static int offer_again(struct occ_registry *r, struct occ_producer *p, const struct occ_offer *offer,
                       struct occ_error *err)
{
    struct stat status = {0};
    bool same = fstat(offer->fd, &status) == 0 && status.st_dev == p->ring_dev &&
                status.st_ino == p->ring_ino && offer->peer.pid == p->peer.pid &&
                offer->peer.uid == p->peer.uid;
    (void)close(offer->fd);
    if (!same)
        return occ_fail(err, OCC_E_DENIED, "another program's ring has the same uuid");
    if (p->state != OCC_PRODUCER_LIVE || p->life.dead)
        return occ_fail(err, OCC_E_BUSY, "the last run of this ring is still being committed");
    disown(r, p);
    p->owner = offer->owner;
    p->life.orphan_since_ns = 0;
    return 0;
}

/* Ends the old ring of a process that offers a new one: the process exec'ed, and its old ring lost the
 * connection. */
static void supersede(struct occ_registry *r, const struct occ_producer *newer)
{
    for (struct occ_producer *p = r->producers; p; p = p->next)
        if (p != newer && p->life.orphan_since_ns && newer->peer.pid != 0 && p->peer.pid == newer->peer.pid)
            p->life.dead = true;
}

/* Limits of one user: number of programs and memory of their rings, including programs under the user's
 * subordinate uids. */
static int check_share(const struct occ_registry *r, const struct occ_offer *offer, uint64_t bytes,
                       struct occ_error *err)
{
    const struct occ_collector_options *o = r->options;
    uint32_t owner_uid = offer->identity ? offer->identity->owner_uid : offer->peer.uid;
    size_t n = 0;
    for (const struct occ_producer *p = r->producers; p; p = p->next) {
        if (p->identity.owner_uid != owner_uid)
            continue;
        n++;
        bytes += p->ring_bytes;
    }
    if (o->max_user_producers && n >= o->max_user_producers)
        return occ_fail(err, OCC_E_FULL, "%zu programs of uid %u report already", n, offer->peer.uid);
    if (o->max_user_ring_bytes && bytes > o->max_user_ring_bytes)
        return occ_fail(err, OCC_E_FULL, "the rings of uid %u would have %llu bytes, more than %llu",
                        offer->peer.uid, (unsigned long long)bytes,
                        (unsigned long long)o->max_user_ring_bytes);
    return 0;
}

static int check_offer(const struct occ_registry *r, const struct occ_offer *offer, struct occ_error *err)
{
    struct stat status;
    if (in_quarantine(r, offer->uuid))
        return occ_fail(err, OCC_E_DENIED, "the ring is in quarantine");
    if (r->n_producers >= r->options->max_producers)
        return occ_fail(err, OCC_E_FULL, "%zu programs report already", r->n_producers);
    if (fstat(offer->fd, &status) != 0 || !S_ISREG(status.st_mode))
        return occ_fail(err, OCC_E_INVALID, "not a memfd");
    if ((uint64_t)status.st_size > r->options->max_ring_bytes)
        return occ_fail(err, OCC_E_INVALID, "the ring has %llu bytes, more than %llu",
                        (unsigned long long)status.st_size, (unsigned long long)r->options->max_ring_bytes);
    return check_share(r, offer, (uint64_t)status.st_size, err);
}

/* A ring that an earlier daemon read may continue, but only for the same user. */
static int check_user(const struct occ_registry *r, const struct occ_offer *offer, struct occ_error *err)
{
    struct occ_error why = OCC_ERROR_INIT;
    uint32_t uid = 0;
    int status = occ_store_run_user(r->store, offer->uuid, &uid, &why);
    if (status == OCC_E_NOT_FOUND)
        return 0;
    if (status == 0 && uid != offer->peer.uid)
        return occ_fail(err, OCC_E_DENIED, "another user's run has the same uuid");
    return status == 0 ? 0 : occ_fail(err, status, "%s", why.message);
}

int occ_registry_offer(struct occ_registry *r, const struct occ_offer *offer, int64_t now_ns,
                       struct occ_producer **ret_producer, struct occ_error *err)
{
    struct occ_producer *p = find_uuid(r, offer->uuid);
    uint64_t next = 0, measured = 0;
    if (p) {
        int again = offer_again(r, p, offer, err);
        if (again == 0)
            *ret_producer = p;
        return again;
    }
    int status = check_offer(r, offer, err);
    if (status == 0)
        status = check_user(r, offer, err);
    if (status == 0)
        status = occ_store_position(r->store, OCC_POSITION_RING, offer->uuid, &next, err);
    if (status == 0)
        status = occ_store_position(r->store, OCC_POSITION_MEASURED, offer->uuid, &measured, err);
    if (status != 0) {
        (void)close(offer->fd);
        return status;
    }
    status = occ_producer_new(offer, next, measured, &p, err);
    if (status == 0)
        status = occ_elsewhere_begin(p, r->store, next, err);
    if (status != 0) {
        occ_producer_free(p);
        return status;
    }
    p->life.heartbeat_seen_ns = now_ns;
    p->run.command_lines = r->options->command_lines;
    occ_ring_set_budget(p->consumer, (uint32_t)r->options->budget_ppm);
    p->next = r->producers;
    r->producers = p;
    r->n_producers++;
    supersede(r, p);
    *ret_producer = p;
    return 0;
}
