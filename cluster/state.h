/*
 * The shipper's persistent state: its position in each history, and counters for --status. A SQLite file; if
 * it is lost, everything is sent again and replaces the same rows in the warehouse. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cluster/seen/seen.h"
#include "support/error.h"

/* Position in a history's changes (stored_minute_change): all changes up to `done` are in the warehouse, and
 * after a long outage also (gap_end, newest]; otherwise gap_end is 0 and newest equals done. first: the last
 * change when the history was first seen; minutes evicted before it do not count as lost. newest_minute: rows
 * of this and earlier minutes may have been sent. lost: minutes of runs evicted before they were sent. inode:
 * the file's; a copy of the file has another inode. */
#define OCC_POSITION(X) X(identity) X(inode) X(done) X(gap_end) X(newest) X(first) X(newest_minute) X(lost)
struct occ_ship_position {
#define X(name) int64_t name;
    OCC_POSITION(X)
#undef X
};

/* X(name, label, kind): integers of --status. */
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

/* Opens the file; makes it and its directories unless `read_only`, and closes it to other users.
 * OCC_E_NOT_FOUND: it cannot be opened. */
int occ_state_open(const char *path, bool read_only, struct occ_state **ret_state, struct occ_error *err);
void occ_state_close(struct occ_state *state);

/* Returns the open file, for user_forms.h. It belongs to the state. */
struct sqlite3 *occ_state_sqlite(struct occ_state *state);

/* Loads the position in the history with this identity; all 0: unknown. */
int occ_state_load_position(struct occ_state *state, int64_t identity, struct occ_ship_position *ret_position,
                            struct occ_error *err);
int occ_state_load_counters(struct occ_state *state, struct occ_ship_counters *ret_counters,
                            struct occ_error *err);

/* Stores position and counters in one durable transaction. position NULL: counters only; failure: message of
 * the last failure, "" after a success, NULL: unchanged. */
int occ_state_store(struct occ_state *state, const struct occ_ship_position *position,
                    const struct occ_ship_counters *counters, const char *failure, struct occ_error *err);

/* Marks of histories that were sent whole. Load them into an empty list; storing is durable. */
int occ_state_load_seen(struct occ_state *state, struct occ_seen *seen, struct occ_error *err);
int occ_state_store_seen(struct occ_state *state, struct occ_seen *seen, struct occ_error *err);

/* Prints the output of --status. */
int occ_state_print(struct occ_state *state, FILE *out, struct occ_error *err);
