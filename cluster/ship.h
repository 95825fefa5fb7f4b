/*
 * The shipper: sends changes of the node's histories to the warehouse, then stores the position in its state.
 * It may be killed at any time: changes that were sent but not stored are sent again and replace the same
 * rows. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "forget.h"
#include "outbox.h"
#include "cluster/seen/seen.h"
#include "state.h"
#include "insert.h"

struct occ_ship_settings {
    const char *history;  /* database.path of the daemon; owners' histories lie in directories next to it */
    const char *state;    /* path of the state file */
    const char *metrics;  /* path of the file of metrics.h; "": none */
    const char *jobs;     /* directory of support/gpu_jobs.h; "": none */
    int64_t interval_ns;  /* time between passes; 0: depends on the server's version */
    uint64_t max_configs; /* see struct occ_batch_options */
    struct occ_raw_options raw;
    struct occ_pseudonym users;
    struct occ_warehouse_options warehouse;
};

struct occ_ship {
    struct occ_ship_settings settings;
    struct occ_warehouse *warehouse;
    struct occ_state *state;
    struct occ_ship_counters counters;
    struct occ_sent sent;
    struct occ_erased erased;
    struct occ_kept kept;
    struct occ_seen seen;
    bool has_met;        /* the server has answered since the start */
    bool has_no_metrics; /* the metrics could not be written */
};

/* Opens the state; sends nothing. The settings' texts must outlive the shipper. After a failure nothing is to
 * be closed. */
int occ_ship_open(const struct occ_ship_settings *settings, struct occ_ship *ret_ship, struct occ_error *err);
void occ_ship_close(struct occ_ship *ship);

/* Sends the changes of all histories, then the watermark, stores the state and writes the metrics. Returns
 * the first failure. An unreadable history is counted and logged. `all`: also minutes that have just ended;
 * then an unreadable history is a failure, after all others were sent. */
int occ_ship_pass(struct occ_ship *ship, bool all, struct occ_error *err);

/* ---- ship_run.c ---- */

/* Work that is repeated for a receiver. */
struct occ_ship_duty {
    const char *again; /* message when it succeeds after failures */
    void *of;
    int (*pass)(void *of, struct occ_error *err);
    int64_t (*interval_ns)(void *of);
    int64_t (*wait_ns)(void *of); /* shortest time until the next pass, after a failure; NULL: none */
    /* set by occ_ship_run(): */
    int64_t next_ns; /* CLOCK_BOOTTIME */
    unsigned int failures;
    char last[OCC_ERROR_MESSAGE_BYTES];
};

/* Does each duty once in its interval, at an offset given by the node's name; after failures with exponential
 * back-off and jitter. A failing duty changes no other duty's times, except for the time that a pass takes.
 * Does not return. */
void occ_ship_run(struct occ_ship_duty *duties, size_t n, const char *node);
struct occ_ship_duty occ_ship_warehouse_duty(struct occ_ship *ship);

/* ---- ship_history.c ---- */

/* A pass over all histories. */
struct occ_ship_pass {
    bool all, is_offline;    /* is_offline: count changes, but send nothing */
    int64_t complete_minute; /* earlier minutes are in the warehouse */
    int64_t oldest_minute;   /* oldest ended minute that is not in the warehouse; or OCC_SHIP_NO_MINUTE */
    int64_t began_ns, began_cpu_ns;
};
#define OCC_SHIP_NO_MINUTE INT64_C(153722867)

/* Returns a version above all versions before, even if the clock was set back or the state was lost: rows of
 * a later batch replace earlier rows. */
uint64_t occ_ship_next_version(struct occ_ship *ship);
/* Sends the changes of the history with this index in ship->seen, unless pass->is_offline, and counts the
 * changes that remain. Returns 0 for an unreadable history, which is logged and counted. */
int occ_ship_history(struct occ_ship *ship, size_t index, struct occ_ship_pass *pass, struct occ_error *err);
