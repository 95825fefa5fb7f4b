/* A history's changes, sent in batches: see ship.h. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "ship.h"
#include "support/clock.h"
#include "support/log.h"

#define SECOND_NS INT64_C(1000000000)
#define SENT_MAX  (1u << 20)
/* With more than BACKLOG changes to send, the NEWEST ones are sent first. */
#define BACKLOG 4096
#define NEWEST  1024

/* ---- one batch ---- */

uint64_t occ_ship_next_version(struct occ_ship *ship)
{
    int64_t now_ms = occ_now_ns() / 1000000;
    ship->counters.version = now_ms > ship->counters.version ? now_ms : ship->counters.version + 1;
    return (uint64_t)ship->counters.version;
}

/* false: ids that do not fit are sent again with the next batch. */
static bool remember(struct occ_sent *sent, const struct occ_batch *batch)
{
    for (uint32_t i = 0; i < batch->ids.capacity; i++)
        if (batch->ids.values[i] != OCC_MAP_NONE &&
            (sent->ids.used >= SENT_MAX || occ_map_put(&sent->ids, batch->ids.keys[i], 0) == OCC_MAP_NONE))
            return false;
    return true;
}

static int send_batch(struct occ_ship *ship, const struct occ_batch *batch, struct occ_error *err)
{
    uint64_t version = batch->options.version;
    int rc = 0;
    bool some = false;
    for (int i = 0; i < OCC_SHIP_TABLE_COUNT && rc == 0; i++)
        if (batch->rows[i].rows > 0) {
            rc = occ_warehouse_insert(ship->warehouse, (enum occ_ship_table)i, &batch->rows[i], version, err);
            some = true;
        }
    if (rc == 0 && some)
        rc = occ_warehouse_confirm(ship->warehouse, batch->rows, version, err);
    return rc;
}

static void count_batch(struct occ_ship *ship, const struct occ_batch *batch)
{
    for (int i = 0; i < OCC_SHIP_TABLE_COUNT; i++)
        ship->counters.rows += (int64_t)batch->rows[i].rows;
    ship->counters.batches++;
    ship->counters.lost += (int64_t)batch->lost;
    ship->counters.unsent_launches += (int64_t)batch->unsent_launches;
    (void)remember(&ship->sent, batch);
}

/* A history during a pass. */
struct history {
    struct occ_ship *ship;
    struct occ_outbox outbox;
    struct occ_ship_position position;
    struct occ_user_forms users;
    struct occ_seen_history seen;
    bool all;
    bool is_sent; /* sent whole */
};

static int read_batch(struct history *h, bool of_gap, struct occ_batch *ret_batch, struct occ_error *err)
{
    const struct occ_ship_settings *settings = &h->ship->settings;
    const struct occ_ship_position *p = &h->position;
    const struct occ_batch_options options = {.cluster = settings->warehouse.cluster,
                                              .node = settings->warehouse.node,
                                              .version = occ_ship_next_version(h->ship),
                                              .max_configs = settings->max_configs,
                                              .has_evidence = h->ship->warehouse->has_evidence,
                                              .added = h->ship->warehouse->added,
                                              .first_change = p->first,
                                              .newest_minute = p->newest_minute,
                                              .now_s = h->all || of_gap ? 0 : occ_now_ns() / SECOND_NS,
                                              .sent = &h->ship->sent,
                                              .erased = &h->ship->erased,
                                              .users = &h->users,
                                              .kept = &h->ship->kept,
                                              .raw = settings->raw};
    return occ_outbox_read(&h->outbox, of_gap ? p->done : p->newest,
                           of_gap ? p->gap_end : h->outbox.last_change, &options, ret_batch, err);
}

static void move_position(struct occ_ship_position *p, const struct occ_batch *batch, bool of_gap)
{
    if (of_gap)
        p->done = batch->is_full ? batch->last_change : p->gap_end;
    else if (batch->last_change > 0)
        p->newest = batch->last_change;
    if (p->gap_end == 0 || p->done >= p->gap_end) {
        p->done = p->newest;
        p->gap_end = 0;
    }
    p->lost += (int64_t)batch->lost;
}

/* Sends a batch of the next changes, of the gap or the newest. */
static int ship_batch(struct history *h, bool of_gap, bool *ret_more, struct occ_error *err)
{
    struct occ_ship *ship = h->ship;
    struct occ_batch batch;
    uint64_t before = occ_http_sent_bytes(ship->warehouse->http);
    int rc = read_batch(h, of_gap, &batch, err);
    bool some = rc == 0 && batch.last_change > 0;
    if (some && batch.newest_minute > h->position.newest_minute)
        h->position.newest_minute = batch.newest_minute;
    if (some) /* the version is used and these minutes may be in the warehouse even if sending fails */
        rc = occ_state_store(ship->state, &h->position, &ship->counters, NULL, err);
    if (some && rc == 0)
        rc = send_batch(ship, &batch, err);
    ship->counters.wire_bytes += (int64_t)(occ_http_sent_bytes(ship->warehouse->http) - before);
    if (rc == 0) {
        move_position(&h->position, &batch, of_gap);
        if (some)
            count_batch(ship, &batch);
        if (some || of_gap)
            rc = occ_state_store(ship->state, &h->position, &ship->counters, NULL, err);
    }
    *ret_more = rc == 0 && batch.is_full;
    occ_batch_free(&batch);
    return rc;
}

/* ---- one history ---- */

static int load_position(struct history *h, const char *path, bool is_offline, struct occ_error *err)
{
    struct occ_ship_position *p = &h->position;
    struct stat status = {0};
    int rc = occ_state_load_position(h->ship->state, h->outbox.identity, p, err);
    h->users = (struct occ_user_forms){.pseudonym = &h->ship->settings.users,
                                       .db = occ_state_sqlite(h->ship->state),
                                       .identity = h->outbox.identity};
    bool is_known = p->newest > 0 || p->gap_end > 0 || p->newest_minute > 0;
    if (rc == 0)
        rc = occ_user_forms_read(&h->users, is_known, p->newest_minute, err);
    if (rc == 0 && stat(path, &status) != 0)
        rc = occ_fail_errno(err, errno, "%s", path);
    if (rc == 0 && p->newest > 0 &&
        (p->inode != (int64_t)status.st_ino || p->newest > h->outbox.last_change)) {
        occ_log(is_offline ? OCC_LOG_DEBUG : OCC_LOG_WARNING,
                "%s is another copy than the one that was sent: all of it is sent again", path);
        p->done = p->gap_end = p->newest = 0;
    }
    if (rc == 0 && h->users.has_changed) /* all rows again, with the other texts of users */
        p->done = p->gap_end = p->newest = 0;
    if (rc == 0 && p->newest == 0)
        p->first = h->outbox.last_change;
    p->inode = (int64_t)status.st_ino;
    return rc;
}

/* After a loss of the state, all minutes may be in the warehouse with other rows than now. */
static int find_sent_minutes(struct history *h, struct occ_error *err)
{
    bool knows = false;
    if (h->position.newest_minute > 0)
        return 0;
    int rc = occ_warehouse_knows(h->ship->warehouse, h->outbox.identity, &knows, err);
    return rc == 0 && knows
               ? occ_outbox_number(&h->outbox, "SELECT coalesce(max(minute), 0) FROM stored_minute_change",
                                   NULL, 0, &h->position.newest_minute, err)
               : rc;
}

/* After a long outage the newest changes are sent first; the gap before them is sent afterwards and may
 * repeat some. */
static int open_gap(struct history *h, struct occ_error *err)
{
    struct occ_ship_position *p = &h->position;
    int64_t n = 0;
    int rc = occ_outbox_number(&h->outbox, "SELECT count(*) FROM stored_minute_change WHERE change > ?",
                               &p->newest, 1, &n, err);
    if (rc != 0 || n <= BACKLOG)
        return rc;
    rc = occ_outbox_number(&h->outbox,
                           "SELECT change FROM stored_minute_change ORDER BY change DESC LIMIT 1 OFFSET ?",
                           (const int64_t[]){NEWEST}, 1, &p->gap_end, err);
    p->newest = p->gap_end;
    return rc;
}

#define UNSENT "(change > ?1 OR (change > ?2 AND change <= ?3))"
static const char unsent_minute[] =
    "SELECT coalesce(min(minute), 153722867) FROM stored_minute_change LEFT JOIN stored_run r USING(run_id) "
    "WHERE minute >= 0 AND " UNSENT " AND r.source_hash IS NULL";
static const char open_minute[] =
    "SELECT coalesce(min(max(rolled_ns, first_start_ns)) / 60000000000, 153722867) FROM stored_run "
    "WHERE source_hash IS NULL AND last_start_ns >= rolled_ns";
static const char unsent_changes[] = "SELECT count(*) FROM stored_minute_change WHERE " UNSENT;

static void count_open(struct occ_ship_pass *pass, int64_t minute)
{
    pass->complete_minute = minute < pass->complete_minute ? minute : pass->complete_minute;
}

/* Counts unsent changes. A changed or open minute is not in the warehouse; a minute stays open until the
 * daemon writes it, even if its run launches nothing. */
static int count_unsent(struct history *h, struct occ_ship_pass *pass, struct occ_error *err)
{
    const struct occ_ship_position *p = &h->position;
    const int64_t values[] = {p->newest, p->done, p->gap_end};
    int64_t changed = OCC_SHIP_NO_MINUTE, open = OCC_SHIP_NO_MINUTE, pending = 0;
    int rc = occ_outbox_number(&h->outbox, unsent_minute, values, 3, &changed, err);
    if (rc == 0)
        rc = occ_outbox_number(&h->outbox, open_minute, NULL, 0, &open, err);
    if (rc == 0)
        rc = occ_outbox_number(&h->outbox, unsent_changes, values, 3, &pending, err);
    h->ship->counters.pending += pending;
    h->seen.open_minute = open;
    h->is_sent = rc == 0 && pending == 0;
    pass->oldest_minute = changed < pass->oldest_minute ? changed : pass->oldest_minute;
    pass->complete_minute = changed < pass->complete_minute ? changed : pass->complete_minute;
    count_open(pass, open);
    return rc;
}

static int send_changes(struct history *h, struct occ_error *err)
{
    bool more = true;
    int rc = find_sent_minutes(h, err);
    if (rc == 0)
        rc = open_gap(h, err);
    while (rc == 0 && more) {
        rc = ship_batch(h, false, &more, err);
        if (rc == 0 && !more && h->position.gap_end > 0)
            rc = ship_batch(h, true, &more, err);
        more |= h->position.gap_end > 0;
    }
    return rc;
}

/* The position first: the forms without it would not send the history again. */
static int store_forms(struct history *h, struct occ_error *err)
{
    struct occ_ship *ship = h->ship;
    int rc = occ_state_store(ship->state, &h->position, &ship->counters, NULL, err);
    return rc == 0 ? occ_user_forms_store(&h->users, err) : rc;
}

static int ship_open_history(struct history *h, const char *path, struct occ_ship_pass *pass,
                             struct occ_error *err)
{
    int rc = load_position(h, path, pass->is_offline, err);
    if (rc == 0 && !pass->is_offline && h->users.has_changed)
        rc = store_forms(h, err);
    if (rc == 0 && !pass->is_offline)
        rc = send_changes(h, err);
    int counted = count_unsent(h, pass, rc == 0 ? err : NULL);
    return rc != 0 ? rc : counted;
}

/* The history of all users, which the list always has, stands for the histories that a closed directory may
 * hide (seen/seen.h): the directory is the fault then. */
static void log_unreadable(const struct occ_ship *ship, const char *path, const struct occ_error *why)
{
    struct occ_error closed = OCC_ERROR_INIT;
    bool is_closed = strcmp(path, ship->settings.history) == 0 && ship->seen.is_hidden;
    if (is_closed)
        (void)occ_seen_check(&ship->seen, path, 0, &closed);
    occ_log(OCC_LOG_WARNING, "%s", is_closed ? closed.message : why->message);
}

int occ_ship_history(struct occ_ship *ship, size_t index, struct occ_ship_pass *pass, struct occ_error *err)
{
    struct history h = {.ship = ship, .all = pass->all};
    struct occ_error why = OCC_ERROR_INIT;
    const char *path = ship->seen.entries[index].path;
    enum occ_seen_state state = occ_seen_look(&ship->seen, index, pass->began_ns, &h.seen);
    if (state == OCC_SEEN_SENT)
        count_open(pass, h.seen.open_minute);
    if (state == OCC_SEEN_SENT || state == OCC_SEEN_NONE)
        return 0;
    bool is_open = occ_outbox_open(path, &h.outbox, &why) == 0;
    int rc = is_open ? ship_open_history(&h, path, pass, &why) : OCC_E_CORRUPT;
    occ_outbox_close(&h.outbox);
    if (rc == 0 && state == OCC_SEEN_CHANGED && h.is_sent)
        occ_seen_put(&ship->seen, index, &h.seen);
    if (rc == OCC_E_CORRUPT) {
        log_unreadable(ship, path, &why);
        ship->counters.unreadable++;
        return 0;
    }
    if (rc == OCC_E_INVALID)
        (void)occ_error_prefix(&why, "%s", path);
    if (rc != 0 && err)
        *err = why;
    return rc;
}
