/*
 * The collector's cycle: see collector.h for what it promises. Reading in order of this file: registry, reading
 * one ring, committing, ending a run, one round.
 *
 * One thread.
 */
#include "collector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "repeat.h"
#include "support/log.h"

#define BATCH_LAUNCHES    1024 /* 40 KiB: stays in the cache between ring and window */
#define FRAMES_PER_POLL   4096 /* a new shape costs some 10 us in the store: bounds a round to tens of ms */
#define QUARANTINE_UUIDS  64
#define EARLY_COMMIT_ROWS 65536 /* commits for lack of memory are never closer than this */
#define RING_HALF_FULL    0.5
#define TABLE_BYTES_MAX   (UINT64_C(64) << 20) /* id tables of all programs: for 5 million shapes */
#define WINDOWS_MAX       8                    /* all windows together hold at most this many full ones */
#define POLL_MIN_NS       INT64_C(10000000)
#define POLL_MAX_NS       INT64_C(100000000)
#define POLL_LAUNCHES     8192 /* aimed at, per ring and poll */

struct occ_collector {
    struct occ_store *store;
    struct occ_collector_options options;
    struct occ_producer *producers;
    size_t n_producers;

    uint64_t held_rows; /* in all windows */
    uint64_t rows_since_commit;
    bool dirty;   /* something waits for a commit */
    bool stalled; /* the store failed: nothing is read before a commit succeeds */
    int fatal;
    int64_t next_commit_ns;
    int64_t poll_ns;

    uint8_t quarantine[QUARANTINE_UUIDS][16];
    size_t n_quarantine; /* ever; the oldest are forgotten */
    uint64_t launches, commits, failures;
    struct occ_repeat store_failed, ring_broken;
    struct occ_ring_launch batch[BATCH_LAUNCHES];
};

/* ---- registry ---- */

int occ_collector_new(struct occ_store *store, const struct occ_collector_options *options,
                      struct occ_collector **ret_collector, struct occ_error *err)
{
    struct occ_collector *c = calloc(1, sizeof *c);
    if (!c)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    c->store = store;
    c->options = *options;
    c->poll_ns = POLL_MAX_NS;
    *ret_collector = c;
    return 0;
}

/* Tells the owner, once, that its producer is freed, or is of no more use to it. */
static void disown(struct occ_collector *c, struct occ_producer *p)
{
    void *owner = p->owner;
    p->owner = NULL;
    if (owner && c->options.gone)
        c->options.gone(owner, c->options.context);
}

/* Frees what is done (or everything). Not called while somebody walks the list. */
static void reap(struct occ_collector *c, bool everything)
{
    struct occ_producer **link = &c->producers;
    while (*link) {
        struct occ_producer *p = *link;
        if (!everything && p->state != OCC_PRODUCER_DONE) {
            link = &p->next;
            continue;
        }
        *link = p->next;
        c->n_producers--;
        disown(c, p);
        occ_producer_free(p);
    }
}

void occ_collector_free(struct occ_collector *collector)
{
    if (!collector)
        return;
    reap(collector, true);
    free(collector);
}

static bool in_quarantine(const struct occ_collector *c, const uint8_t uuid[16])
{
    size_t n = c->n_quarantine < QUARANTINE_UUIDS ? c->n_quarantine : QUARANTINE_UUIDS;
    for (size_t i = 0; i < n; i++)
        if (memcmp(c->quarantine[i], uuid, 16) == 0)
            return true;
    return false;
}

static struct occ_producer *find_uuid(const struct occ_collector *c, const uint8_t uuid[16])
{
    struct occ_producer *p = c->producers;
    while (p && memcmp(p->row.uuid, uuid, 16) != 0)
        p = p->next;
    return p;
}

/* The same memfd of the same program again. Takes fd. */
static int offer_again(struct occ_collector *c, struct occ_producer *p, int fd, const struct occ_peer *peer,
                       void *owner, struct occ_error *err)
{
    struct stat status = {0};
    bool same = fstat(fd, &status) == 0 && status.st_dev == p->ring_dev && status.st_ino == p->ring_ino &&
                peer->pid == p->peer.pid && peer->uid == p->peer.uid;
    (void)close(fd);
    if (!same)
        return occ_fail(err, OCC_E_DENIED, "another program's ring has the same uuid");
    if (p->state != OCC_PRODUCER_LIVE || p->dead)
        return occ_fail(err, OCC_E_BUSY, "the last run of this ring is still being committed");
    disown(c, p);
    p->owner = owner;
    p->orphan_since_ns = 0;
    return 0;
}

/* A new ring of a process whose old ring has lost its connection: the process exec'ed. */
static void supersede(struct occ_collector *c, const struct occ_producer *newer)
{
    for (struct occ_producer *p = c->producers; p; p = p->next)
        if (p != newer && p->orphan_since_ns && newer->peer.pid != 0 && p->peer.pid == newer->peer.pid)
            p->dead = true;
}

static int check_offer(const struct occ_collector *c, int fd, const uint8_t uuid[16], struct occ_error *err)
{
    struct stat status;
    if (in_quarantine(c, uuid))
        return occ_fail(err, OCC_E_DENIED, "the ring is in quarantine");
    if (c->n_producers >= c->options.max_producers)
        return occ_fail(err, OCC_E_FULL, "%zu programs report already", c->n_producers);
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return occ_fail(err, OCC_E_INVALID, "not a memfd");
    if ((uint64_t)status.st_size > c->options.max_ring_bytes)
        return occ_fail(err, OCC_E_INVALID, "the ring has %llu bytes, more than %llu",
                        (unsigned long long)status.st_size, (unsigned long long)c->options.max_ring_bytes);
    return 0;
}

/* A ring that an earlier daemon read goes on, but not as somebody else's. */
static int check_user(const struct occ_collector *c, const struct occ_peer *peer, const uint8_t uuid[16],
                      struct occ_error *err)
{
    struct occ_error none = OCC_ERROR_INIT;
    uint32_t uid = 0;
    int status = occ_store_run_user(c->store, uuid, &uid, &none);
    if (status == OCC_E_NOT_FOUND)
        return 0;
    if (status == 0 && uid != peer->uid)
        return occ_fail(err, OCC_E_DENIED, "another user's run has the same uuid");
    if (status != 0 && err)
        *err = none;
    return status;
}

int occ_collector_offer(struct occ_collector *collector, int fd, const struct occ_peer *peer,
                        const uint8_t uuid[16], void *owner, int64_t now_ns,
                        struct occ_producer **ret_producer, struct occ_error *err)
{
    struct occ_collector *c = collector;
    struct occ_producer *p = find_uuid(c, uuid);
    uint64_t next = 0, measured = 0;
    if (p) {
        int again = offer_again(c, p, fd, peer, owner, err);
        if (again == 0)
            *ret_producer = p;
        return again;
    }
    int status = check_offer(c, fd, uuid, err);
    if (status == 0)
        status = check_user(c, peer, uuid, err);
    if (status == 0)
        status = occ_store_ring_position(c->store, uuid, &next, err);
    if (status == 0)
        status = occ_store_measured_position(c->store, uuid, &measured, err);
    if (status != 0) {
        (void)close(fd);
        return status;
    }
    status = occ_producer_new(fd, peer, uuid, next, measured, &p, err);
    if (status != 0)
        return status;
    p->owner = owner;
    p->last_beat_seen_ns = now_ns;
    p->next = c->producers;
    c->producers = p;
    c->n_producers++;
    c->dirty = true;
    supersede(c, p);
    *ret_producer = p;
    return 0;
}

void occ_collector_died(struct occ_collector *collector, struct occ_producer *producer)
{
    (void)collector;
    producer->dead = true;
}

void occ_collector_orphaned(struct occ_collector *collector, struct occ_producer *producer, int64_t now_ns)
{
    (void)collector;
    producer->orphan_since_ns = now_ns;
    producer->last_beat_seen_ns = now_ns;
}

/* ---- when the store or a ring fails ---- */

static void stall(struct occ_collector *c, int64_t now_ns, const struct occ_error *err)
{
    c->failures++;
    c->stalled = true;
    c->next_commit_ns = now_ns + c->options.commit_interval_ns;
    occ_repeat_log(&c->store_failed, now_ns, OCC_LOG_ERROR,
                   "the history takes nothing: %s; programs keep their launches as far as their rings reach",
                   err->message);
}

static void quarantine(struct occ_collector *c, struct occ_producer *p, int64_t now_ns, const char *why)
{
    p->broken = true;
    p->drained = true;
    (void)snprintf(p->reason, sizeof p->reason, "recording stopped, the program's ring is broken: %s", why);
    p->row_changed = true;
    memcpy(c->quarantine[c->n_quarantine++ % QUARANTINE_UUIDS], p->row.uuid, 16);
    occ_repeat_log(&c->ring_broken, now_ns, OCC_LOG_WARNING,
                   "the ring of process %d is broken: %s; it is not read any more", (int)p->peer.pid, why);
    disown(c, p);
}

/* ---- reading one ring ---- */

struct append_context {
    struct occ_collector *collector;
    struct occ_producer *producer;
    const struct occ_producer_device *device;
};

static int append(void *context, const struct occ_store_launch *rows, size_t n, struct occ_error *err)
{
    const struct append_context *to = context;
    struct occ_collector *c = to->collector;
    int status = occ_store_append(c->store, to->producer->run, to->device->id, rows, n, err);
    if (status != 0)
        return status;
    c->held_rows -= n;
    c->launches += n;
    if (c->options.appended)
        c->options.appended(to->producer, to->device, rows, n, c->options.context);
    return 0;
}

/* Lets rows leave the windows of a program: what the limits say, or everything. */
static int emit(struct occ_collector *c, struct occ_producer *p, const struct occ_reorder_limits *limits,
                struct occ_error *err)
{
    for (size_t i = 0; i < p->n_devices; i++) {
        struct append_context to = {.collector = c, .producer = p, .device = &p->devices[i]};
        int status = occ_reorder_emit(&p->devices[i].window, limits, append, &to, err);
        if (status != 0)
            return status;
    }
    return 0;
}

/* Empties every window and gives their memory back: many programs each with a little. */
static int shrink_windows(struct occ_collector *c, struct occ_error *err)
{
    for (struct occ_producer *p = c->producers; p; p = p->next) {
        int status = emit(c, p, NULL, err);
        if (status != 0)
            return status;
        for (size_t i = 0; i < p->n_devices; i++)
            occ_reorder_release(&p->devices[i].window);
    }
    return 0;
}

/* Launches of one device, one after the other in the ring, into its window. */
static bool place_run(struct occ_collector *c, struct occ_producer *p, uint32_t device,
                      const struct occ_ring_launch *launches, size_t n)
{
    struct occ_reorder *window = &p->devices[device].window;
    struct occ_store_launch *rows = occ_reorder_reserve(window, n);
    if (!rows)
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct occ_ring_launch *l = &launches[i];
        const struct occ_producer_shape *shape = &p->shapes[l->shape];
        rows[i] = (struct occ_store_launch){.start_ns = (int64_t)l->start_ns,
                                            .duration_ns = l->duration_ns,
                                            .graph_node = l->graph_node,
                                            .shape = shape->id,
                                            .stream = l->stream,
                                            .correlation = l->correlation,
                                            .context = shape->context};
    }
    occ_reorder_added(window, n);
    c->held_rows += n;
    return true;
}

/* A batch that was read: the ring's consumer has checked that every shape is one of the log's. */
static bool place(struct occ_collector *c, struct occ_producer *p, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        uint32_t device = p->shapes[c->batch[i].shape].device;
        for (end = i + 1; end < n && p->shapes[c->batch[end].shape].device == device; end++)
            ;
        if (!place_run(c, p, device, c->batch + i, end - i))
            return false;
    }
    c->rows_since_commit += n;
    c->dirty = true;
    return true;
}

static uint64_t held_bytes(const struct occ_collector *c)
{
    return c->held_rows * sizeof(struct occ_store_launch) + occ_store_memory_bytes(c->store);
}

static int commit(struct occ_collector *c, int64_t now_ns, struct occ_error *err);

/* After a batch: windows that are full let go, and a commit if ring or memory ask for one. */
static int make_room(struct occ_collector *c, struct occ_producer *p, int64_t now_ns, struct occ_error *err)
{
    int status = emit(c, p, &c->options.reorder, err);
    if (status == 0 && c->held_rows > WINDOWS_MAX * c->options.reorder.rows)
        status = shrink_windows(c, err);
    bool memory_short = c->rows_since_commit >= EARLY_COMMIT_ROWS && held_bytes(c) > c->options.memory_bytes;
    if (status == 0 && (memory_short || occ_ring_fill(p->consumer) > RING_HALF_FULL))
        status = commit(c, now_ns, err);
    return status;
}

/* The tables are too large, and this program has more than its share of them: never one with a few shapes for another's many. */
static bool has_too_much(const struct occ_collector *c, const struct occ_producer *producer)
{
    uint64_t bytes = 0;
    for (const struct occ_producer *p = c->producers; p; p = p->next)
        bytes += occ_producer_table_bytes(p);
    return bytes > TABLE_BYTES_MAX && occ_producer_table_bytes(producer) > TABLE_BYTES_MAX / c->n_producers;
}

/* The log. True: it is read to its end, launches may be read. */
static bool read_log(struct occ_collector *c, struct occ_producer *p, int64_t now_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    size_t budget = FRAMES_PER_POLL;
    int status = occ_producer_take_frames(p, c->store, &budget, &err);
    if (budget < FRAMES_PER_POLL)
        c->dirty = true;
    if (status == OCC_PRODUCER_BROKEN)
        quarantine(c, p, now_ns, err.message);
    else if (status != 0)
        stall(c, now_ns, &err);
    else if (budget < FRAMES_PER_POLL && has_too_much(c, p))
        quarantine(c, p, now_ns, "too many kernels, shapes and measured values");
    return status == 0 && budget > 0;
}

/* Everything that was in the ring when this began. */
static void read_ring(struct occ_collector *c, struct occ_producer *p, int64_t now_ns)
{
    /* before the log: then every shape of these launches is in it */
    uint64_t waiting = occ_ring_pending(p->consumer);
    struct occ_error err = OCC_ERROR_INIT;
    int status = 0;
    p->drained = false;
    p->pressure = waiting;
    if (!read_log(c, p, now_ns))
        return;
    while (waiting > 0 && status == 0) {
        size_t n = 0;
        enum occ_ring_status ring =
            occ_ring_read(p->consumer, c->batch, waiting < BATCH_LAUNCHES ? waiting : BATCH_LAUNCHES, &n);
        if (ring == OCC_RING_BROKEN) {
            quarantine(c, p, now_ns, occ_ring_broken_reason(p->consumer));
            return;
        }
        if (ring == OCC_RING_EMPTY)
            break;
        if (!place(c, p, n)) {
            c->fatal = OCC_E_NO_MEMORY;
            return;
        }
        waiting -= n;
        status = make_room(c, p, now_ns, &err);
    }
    p->drained = waiting == 0;
    if (status != 0 && !c->stalled)
        stall(c, now_ns, &err);
}

/* ---- committing ---- */

static int put_positions(struct occ_collector *c, int64_t now_ns, struct occ_error *err)
{
    for (struct occ_producer *p = c->producers; p; p = p->next) {
        uint64_t position = occ_ring_position(p->consumer);
        int status = p->row_changed ? occ_producer_put_row(p, c->store, err) : 0;
        if (status == 0)
            status = occ_producer_put_measured(p, c->store, err);
        if (status == 0)
            status = occ_producer_put_totals(p, c->store, now_ns, false, err);
        if (status == 0 && (position != p->position_put || !p->position_in_commit))
            status = occ_store_put_ring_position(c->store, p->row.uuid, position, err);
        if (status != 0)
            return status;
        p->position_put = position;
        p->position_in_commit = true;
    }
    return 0;
}

static int flush_windows(struct occ_collector *c, struct occ_error *err)
{
    for (struct occ_producer *p = c->producers; p; p = p->next) {
        int status = emit(c, p, NULL, err);
        if (status != 0)
            return status;
    }
    return 0;
}

static void after_commit(struct occ_collector *c, int64_t now_ns)
{
    for (struct occ_producer *p = c->producers; p; p = p->next) {
        if (!p->broken)
            occ_ring_release(p->consumer, p->position_put);
        if (p->state == OCC_PRODUCER_ENDED)
            p->state = OCC_PRODUCER_DONE;
    }
    if (c->stalled)
        occ_log(OCC_LOG_WARNING, "the history takes launches again");
    c->stalled = false;
    c->store_failed = (struct occ_repeat){0};
    c->dirty = false;
    c->commits++;
    c->rows_since_commit = 0;
    c->next_commit_ns = now_ns + c->options.commit_interval_ns;
}

/* Does not free anything: safe while the list is walked. */
static int commit(struct occ_collector *c, int64_t now_ns, struct occ_error *err)
{
    struct occ_error own = OCC_ERROR_INIT;
    int status = c->fatal ? occ_fail(&own, c->fatal, "out of memory") : flush_windows(c, &own);
    if (status == 0)
        status = put_positions(c, now_ns, &own);
    if (status == 0 && c->options.committing)
        status = c->options.committing(c->options.context, &own);
    if (status == 0)
        status = occ_store_commit(c->store, &own);
    if (status == 0) {
        after_commit(c, now_ns);
        return 0;
    }
    stall(c, now_ns, &own);
    if (err)
        *err = own;
    return status;
}

int occ_collector_commit(struct occ_collector *collector, int64_t now_ns, struct occ_error *err)
{
    int status = commit(collector, now_ns, err);
    reap(collector, false);
    return status;
}

/* ---- ending a run ---- */

/* Everything of the run but the commit. Each step may be done again. */
static int end_run(struct occ_collector *c, struct occ_producer *p, int64_t now_ns, struct occ_error *err)
{
    p->row.end_ns = occ_producer_end_ns(p);
    int status = occ_producer_put_row(p, c->store, err);
    if (status == 0)
        status = emit(c, p, NULL, err);
    if (status == 0)
        status = occ_producer_put_totals(p, c->store, now_ns, true, err);
    if (status == 0)
        status = occ_store_end_run(c->store, p->run, err);
    if (status != 0)
        return status;
    p->state = OCC_PRODUCER_ENDED;
    c->dirty = true;
    for (size_t i = 0; i < p->n_devices; i++)
        occ_reorder_release(&p->devices[i].window);
    return 0;
}

/* A program without a connection that has not shown a sign of life for long enough. */
static bool is_silent_orphan(const struct occ_collector *c, struct occ_producer *p, int64_t now_ns)
{
    uint64_t beat = occ_ring_heartbeat_ns(p->consumer);
    if (beat != p->last_beat_ns || p->pressure > 0) {
        p->last_beat_ns = beat;
        p->last_beat_seen_ns = now_ns;
    }
    return p->orphan_since_ns && now_ns - p->last_beat_seen_ns > c->options.orphan_grace_ns;
}

/* ---- one round ---- */

static void attend(struct occ_collector *c, struct occ_producer *p, int64_t now_ns)
{
    if (p->state != OCC_PRODUCER_LIVE)
        return;
    /* before the look: whatever was pushed before the ring was closed is then found */
    bool closed = occ_ring_is_closed(p->consumer);
    if (!p->broken)
        read_ring(c, p, now_ns);
    bool over = p->broken || p->dead || closed || is_silent_orphan(c, p, now_ns);
    if (!over || !p->drained || c->stalled || c->fatal)
        return;
    struct occ_error err = OCC_ERROR_INIT;
    if (end_run(c, p, now_ns, &err) != 0)
        stall(c, now_ns, &err);
}

/* Shorter while rings fill quickly, longer while little comes: between 10 and 100 ms. */
static void adapt(struct occ_collector *c)
{
    double pressure = 0;
    for (const struct occ_producer *p = c->producers; p; p = p->next) {
        double rows = (double)p->pressure / POLL_LAUNCHES;
        double fill = occ_ring_fill(p->consumer) * 2;
        double most = rows > fill ? rows : fill;
        pressure = most > pressure ? most : pressure;
    }
    if (pressure > 1 && c->poll_ns > POLL_MIN_NS)
        c->poll_ns /= 2;
    else if (pressure < 0.25 && c->poll_ns < POLL_MAX_NS)
        c->poll_ns *= 2;
    c->poll_ns = c->poll_ns < POLL_MIN_NS ? POLL_MIN_NS : c->poll_ns;
    c->poll_ns = c->poll_ns > POLL_MAX_NS ? POLL_MAX_NS : c->poll_ns;
}

void occ_collector_poll(struct occ_collector *collector, int64_t now_ns)
{
    struct occ_collector *c = collector;
    for (struct occ_producer *p = c->producers; p && !c->stalled && !c->fatal; p = p->next)
        attend(c, p, now_ns);
    adapt(c);
    if ((c->dirty || c->stalled) && now_ns >= c->next_commit_ns && !c->fatal)
        (void)commit(c, now_ns, NULL);
    reap(c, false);
}

int occ_collector_stop(struct occ_collector *collector, int64_t now_ns, struct occ_error *err)
{
    struct occ_collector *c = collector;
    int status = c->stalled ? commit(c, now_ns, err) : 0;
    for (struct occ_producer *p = c->producers; p && status == 0; p = p->next) {
        if (p->state != OCC_PRODUCER_LIVE)
            continue;
        p->drained = p->broken;
        for (uint64_t rounds = 0; !p->drained && !c->stalled && !c->fatal && rounds < UINT16_MAX; rounds++)
            read_ring(c, p, now_ns);
        if (!c->stalled && !c->fatal)
            status = end_run(c, p, now_ns, err);
    }
    if (status == 0)
        status = commit(c, now_ns, err);
    reap(c, false);
    return status;
}

/* ---- asking ---- */

int64_t occ_collector_wait_ns(const struct occ_collector *collector)
{
    return collector->producers || collector->dirty ? collector->poll_ns : -1;
}

bool occ_collector_is_settled(const struct occ_collector *collector, const char *session)
{
    for (const struct occ_producer *p = collector->producers; p; p = p->next) {
        bool over = p->dead || p->state != OCC_PRODUCER_LIVE;
        /* whose log is not read so far may be of any session */
        bool ours = !p->row.session || strcmp(p->row.session, session) == 0;
        if (over && ours)
            return false;
    }
    return true;
}

void occ_collector_get_stats(const struct occ_collector *collector, struct occ_collector_stats *ret_stats)
{
    *ret_stats = (struct occ_collector_stats){
        .producers = collector->n_producers,
        .launches = collector->launches,
        .commits = collector->commits,
        .failures = collector->failures,
        .quarantined = collector->n_quarantine,
        .held_bytes = held_bytes(collector),
        .stalled = collector->stalled,
    };
}

int occ_collector_fatal(const struct occ_collector *collector)
{
    return collector->fatal;
}
