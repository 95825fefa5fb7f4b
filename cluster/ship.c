/* See ship.h. */
#include "ship.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cluster/seen/changes.h"
#include "metrics.h"
#include "support/clock.h"
#include "support/log.h"

#define SECOND_NS    INT64_C(1000000000)
#define DAY_S        INT64_C(86400)
#define CLOCK_OFF_MS 2000

int occ_ship_open(const struct occ_ship_settings *settings, struct occ_ship *ret_ship, struct occ_error *err)
{
    *ret_ship = (struct occ_ship){.settings = *settings};
    occ_seen_open(&ret_ship->seen);
    int rc = occ_state_open(settings->state, false, &ret_ship->state, err);
    if (rc == 0)
        rc = occ_user_forms_begin(occ_state_sqlite(ret_ship->state), &ret_ship->settings.users, err);
    if (rc == 0)
        rc = occ_state_load_seen(ret_ship->state, &ret_ship->seen, err);
    if (rc == 0)
        rc = occ_state_load_counters(ret_ship->state, &ret_ship->counters, err);
    if (rc == 0)
        rc = occ_warehouse_open(&settings->warehouse, &ret_ship->warehouse, err);
    if (rc != 0)
        occ_ship_close(ret_ship);
    return rc;
}

void occ_ship_close(struct occ_ship *ship)
{
    occ_warehouse_close(ship->warehouse);
    occ_state_close(ship->state);
    occ_map_free(&ship->sent.ids);
    occ_kept_free(&ship->kept);
    occ_erased_free(&ship->erased);
    occ_seen_close(&ship->seen);
    *ship = (struct occ_ship){0};
}

/* ---- all of the node ---- */

static int meet(struct occ_ship *ship, struct occ_error *err)
{
    uint64_t version = 0;
    int64_t today = occ_now_ns() / SECOND_NS / DAY_S, was_off_ms = ship->counters.clock_offset_ms;
    int rc = occ_warehouse_meet(ship->warehouse, err);
    if (rc == 0)
        rc = occ_warehouse_check(ship->warehouse, OCC_FOR_SHIPPING, err);
    if (rc == 0)
        rc = occ_erased_read(ship->warehouse, &ship->erased, err);
    if (rc == 0 && !ship->has_met)
        rc = occ_warehouse_last_version(ship->warehouse, &version, err);
    if (rc != 0)
        return rc;
    if (!ship->has_met && !ship->warehouse->has_erased)
        occ_log(OCC_LOG_WARNING, "erased users are not known, whose rows are sent: occtrace-ship --check");
    ship->has_met = true;
    if ((int64_t)version > ship->counters.version)
        ship->counters.version = (int64_t)version;
    int64_t off_ms = ship->counters.clock_offset_ms = ship->warehouse->clock_offset_ms;
    if (llabs(off_ms) > CLOCK_OFF_MS && llabs(was_off_ms) <= CLOCK_OFF_MS)
        occ_log(OCC_LOG_WARNING,
                "our clock is %+.0f s off the warehouse's: minutes are sent as this node has them",
                (double)off_ms / 1e3);
    if (ship->sent.day != today)
        occ_map_clear(&ship->sent.ids);
    ship->sent.day = today;
    return 0;
}

/* Sends the watermark and the current allocation of GPUs to jobs. */
static int put_watermark(struct occ_ship *ship, int64_t complete_minute, struct occ_error *err)
{
    struct occ_ship_counters *c = &ship->counters;
    int64_t now_s = occ_now_ns() / SECOND_NS, until_s = (now_s - OCC_CHANGES_WAIT_S) / 60 * 60;
    if (c->unreadable > 0)
        return 0; /* the watermark is unknown */
    until_s = complete_minute < until_s / 60 ? complete_minute * 60 : until_s;
    uint64_t version = occ_ship_next_version(ship);
    int rc = occ_warehouse_put_allocations(ship->warehouse, ship->settings.jobs, version, err);
    if (rc == 0)
        rc = occ_warehouse_put_watermark(ship->warehouse, until_s, (uint64_t)c->lost, version, err);
    if (rc == 0)
        c->complete_until_s = until_s;
    return rc;
}

/* After a failure the other histories are only counted, unless the failure concerned values of one history
 * (OCC_E_INVALID). */
static int pass_histories(struct occ_ship *ship, struct occ_ship_pass *pass, struct occ_error *err)
{
    int rc = occ_seen_update(&ship->seen, ship->settings.history, pass->began_ns, err);
    for (size_t i = 0; i < ship->seen.n; i++) {
        int code = occ_ship_history(ship, i, pass, rc == 0 ? err : NULL);
        rc = rc != 0 ? rc : code;
        pass->is_offline |= code != 0 && code != OCC_E_INVALID;
    }
    return rc;
}

static int64_t *failures_of(struct occ_ship *ship, int code)
{
    struct occ_ship_counters *c = &ship->counters;
    switch (code) {
    case OCC_E_IO:
        return ship->warehouse->has_no_answer ? &c->failures_network : &c->failures_local;
    case OCC_E_BUSY:
        return &c->failures_server;
    case OCC_E_DENIED:
        return &c->failures_denied;
    case OCC_E_NOT_FOUND:
    case OCC_E_INVALID:
    case OCC_E_VERSION:
        return &c->failures_schema;
    default:
        return &c->failures_local;
    }
}

static int64_t cpu_ns(void)
{
    struct timespec time = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * SECOND_NS + time.tv_nsec;
}

/* Ends the pass's times before the state is stored. */
static void end_pass(struct occ_ship *ship, const struct occ_ship_pass *pass, int rc)
{
    struct occ_ship_counters *c = &ship->counters;
    c->pass_us = (occ_now_ns() - pass->began_ns) / 1000;
    c->pass_cpu_us = (cpu_ns() - pass->began_cpu_ns) / 1000;
    c->oldest_unsent_s = pass->oldest_minute == OCC_SHIP_NO_MINUTE ? 0 : pass->oldest_minute * 60;
    if (rc == 0) {
        c->last_success_s = occ_now_ns() / SECOND_NS;
    } else {
        c->failures++;
        ++*failures_of(ship, rc);
    }
}

static void write_metrics(struct occ_ship *ship)
{
    struct occ_error err = OCC_ERROR_INIT;
    int rc =
        occ_ship_metrics_write(ship->settings.metrics, ship->settings.warehouse.node, &ship->counters, &err);
    if (rc != 0 && !ship->has_no_metrics)
        occ_log(OCC_LOG_WARNING, "%s", err.message);
    ship->has_no_metrics = rc != 0;
}

int occ_ship_pass(struct occ_ship *ship, bool all, struct occ_error *err)
{
    struct occ_ship_pass pass = {.all = all,
                                 .complete_minute = INT64_MAX / 60,
                                 .oldest_minute = OCC_SHIP_NO_MINUTE,
                                 .began_ns = occ_now_ns(),
                                 .began_cpu_ns = cpu_ns()};
    int met = meet(ship, err);
    pass.is_offline = met != 0;
    ship->counters.unreadable = ship->counters.pending = 0;
    int rc = pass_histories(ship, &pass, met == 0 ? err : NULL);
    rc = met != 0 ? met : rc;
    if (rc == 0)
        rc = put_watermark(ship, pass.complete_minute, err);
    end_pass(ship, &pass, rc);
    /* keep the pass's error: storing may fail for the same reason */
    int stored = occ_state_store_seen(ship->state, &ship->seen, rc == 0 ? err : NULL);
    if (stored == 0)
        stored = occ_state_store(ship->state, NULL, &ship->counters, rc == 0 ? "" : err->message,
                                 rc == 0 ? err : NULL);
    write_metrics(ship);
    rc = rc != 0 ? rc : stored;
    return rc == 0 && all
               ? occ_seen_check(&ship->seen, ship->settings.history, ship->counters.unreadable, err)
               : rc;
}
