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
