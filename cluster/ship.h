/*
 * The shipper: what changed in the node's histories goes to the warehouse, and how far it came into the
 * state, in this order, so that it may be killed at any moment: what was sent and not stored is sent again,
 * as the same state. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "outbox.h"
#include "seen.h"
#include "state.h"
#include "insert.h"

struct occ_ship_settings {
    const char *history; /* database.path of the daemon; histories of owners lie in directories beside it */
    const char *state;   /* path */
    const char *metrics; /* path of metrics.h; "": none */
    const char *jobs;    /* directory of support/gpu_jobs.h; "": none */
    int64_t interval_ns; /* 0: by the server's version */
    uint64_t max_configs;
    struct occ_raw_options raw;
    struct occ_warehouse_options warehouse;
};

struct occ_ship {
    struct occ_ship_settings settings;
    struct occ_warehouse *warehouse;
    struct occ_state *state;
    struct occ_ship_counters counters;
    struct occ_sent sent;
    struct occ_kept kept;
    struct occ_seen seen;
    bool has_met;        /* the server, since we started */
    bool has_no_metrics; /* they could not be written */
};

/* The settings' texts must outlive it. */
int occ_ship_open(const struct occ_ship_settings *settings, struct occ_ship *ret_ship, struct occ_error *err);
void occ_ship_close(struct occ_ship *ship);

/* Sends what there is. `all`: also minutes that are just over. */
int occ_ship_pass(struct occ_ship *ship, bool all, struct occ_error *err);

/* Passes at a second of the interval that the node's name gives, and after failures as late as back-off with
 * jitter says. Does not return. */
void occ_ship_run(struct occ_ship *ship);

/* ---- ship_history.c ---- */

/* One over all histories. */
struct occ_ship_pass {
    bool all, is_offline;    /* is_offline: histories are counted, and nothing is sent */
    int64_t complete_minute; /* minutes before it are in */
    int64_t oldest_minute;   /* that is not in though it is over; or OCC_SHIP_NO_MINUTE */
    int64_t began_ns, began_cpu_ns;
};
#define OCC_SHIP_NO_MINUTE INT64_C(153722867)

/* A later batch's rows take the place of an earlier one's, also where the clock was set back or the state was
 * lost. */
uint64_t occ_ship_next_version(struct occ_ship *ship);
/* Sends the changes of the history at this index of ship->seen. A history that cannot be read keeps no other
 * from being sent. */
int occ_ship_history(struct occ_ship *ship, size_t index, struct occ_ship_pass *pass, struct occ_error *err);
