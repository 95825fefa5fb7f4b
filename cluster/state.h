/*
 * What the shipper knows from one start to the next: how far it came in each history, and counters for
 * --status. A SQLite file of its own; a lost one means that everything is sent again, which the warehouse
 * takes as what it has. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "seen.h"
#include "support/error.h"

/* How far a history's changes (stored_minute_change) are in the warehouse: up to `done`, and after a long
 * outage also (gap_end, newest]; else gap_end is 0 and newest is done. first: the last change when the
 * history was seen first; minutes that were evicted before are not lost. newest_minute: of it and of earlier
 * ones rows may have been sent. lost: minutes of runs that were evicted unsent. inode: the file's, which
 * another copy of it has not. */
#define OCC_POSITION(X) X(identity) X(inode) X(done) X(gap_end) X(newest) X(first) X(newest_minute) X(lost)
struct occ_ship_position {
#define X(name) int64_t name;
    OCC_POSITION(X)
#undef X
};

/* X(name, label, what it is for): whole numbers of --status. */
#define OCC_SHIP_COUNTERS(X)                                                                                 \
    X(version, "last version", COUNT)                                                                        \
    X(batches, "batches", COUNT)                                                                             \
    X(rows, "rows", COUNT)                                                                                   \
    X(wire_bytes, "bytes sent", COUNT)                                                                       \
    X(failures, "failures", COUNT)                                                                           \
    X(failures_network, "  no answer", COUNT)                                                                \
    X(failures_server, "  not taken", COUNT)                                                                 \
    X(failures_denied, "  not allowed", COUNT)                                                               \
    X(failures_schema, "  wrong tables", COUNT)                                                              \
    X(failures_local, "  of this node", COUNT)                                                               \
    X(lost, "minutes evicted unsent", COUNT)                                                                 \
    X(unsent_launches, "single launches unsent", COUNT)                                                      \
    X(unreadable, "histories not readable", COUNT)                                                           \
    X(pending, "changes to be sent", COUNT)                                                                  \
    X(clock_offset_ms, "clock offset (ms)", COUNT)                                                           \
    X(oldest_unsent_s, "oldest unsent minute", TIME)                                                         \
    X(complete_until_s, "complete until", TIME)                                                              \
    X(last_success_s, "last success", TIME)                                                                  \
    X(pass_us, "last pass took (us)", COUNT)                                                                 \
    X(pass_cpu_us, "  CPU time (us)", COUNT)

struct occ_ship_counters {
#define X(name, label, kind) int64_t name;
    OCC_SHIP_COUNTERS(X)
#undef X
};

struct occ_state;

/* Makes the file and its directory where they are missing. */
int occ_state_open(const char *path, bool read_only, struct occ_state **ret_state, struct occ_error *err);
void occ_state_close(struct occ_state *state);

/* Zeros but for the identity: a new one. */
int occ_state_load_position(struct occ_state *state, int64_t identity, struct occ_ship_position *ret_position,
                            struct occ_error *err);
int occ_state_load_counters(struct occ_state *state, struct occ_ship_counters *ret_counters,
                            struct occ_error *err);

/* Durable together when it returns. position NULL: counters alone; failure: the last one's message, "" after
 * a success, NULL: as it was. */
int occ_state_store(struct occ_state *state, const struct occ_ship_position *position,
                    const struct occ_ship_counters *counters, const char *failure, struct occ_error *err);

/* Marks of histories that were sent whole. Load into an empty list; store is durable when it returns. */
int occ_state_load_seen(struct occ_state *state, struct occ_seen *seen, struct occ_error *err);
int occ_state_store_seen(struct occ_state *state, struct occ_seen *seen, struct occ_error *err);

/* --status */
int occ_state_print(struct occ_state *state, FILE *out, struct occ_error *err);
