/* Values that a daemon reports of itself and its histories: one table for the answers to `status` and
 * `history` (support/control.h) and for the output of `occtraced --status`. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "ring/ring_abi.h"
#include "support/error.h"
#include "support/refusals.h"

/* X(ID, key, kind, label), in the order of output. An answer omits values that do not apply or are unknown.
 * Kinds: TEXT; COUNT; LOSS, a count printed only if it is not 0; BYTES; SECONDS, a duration; TIME, seconds
 * since the epoch; RATIO, 0...1. */
#define OCC_STATUS(X)                                                                                        \
    X(VERSION, "version", TEXT, "version")                                                                   \
    X(PID, "pid", COUNT, "process")                                                                          \
    X(UPTIME, "uptime_s", SECONDS, "running for")                                                            \
    X(CPU, "cpu_s", SECONDS, "CPU time")                                                                     \
    X(MEMORY, "memory_bytes", BYTES, "memory")                                                               \
    X(CONFIG, "config", TEXT, "settings")                                                                    \
    X(CONFIG_READ, "config_read_s", TIME, "settings read")                                                   \
    X(CONFIG_ERROR, "config_error", TEXT, "last reload failed")                                              \
    X(SOCKET, "socket", TEXT, "socket")                                                                      \
    X(OWNER, "owner", TEXT, "owner")                                                                         \
    X(DATABASE, "database", TEXT, "history")                                                                 \
    X(HISTORIES, "histories", COUNT, "open histories")                                                       \
    X(TOTAL, "total_bytes", BYTES, "all histories")                                                          \
    X(TOTAL_QUOTA, "total_quota_bytes", BYTES, "their quota")                                                \
    X(STATE, "state", TEXT, "state")                                                                         \
    X(REASON, "reason", TEXT, "reason")                                                                      \
    X(STALLED, "stalled", TEXT, "any stalled")                                                               \
    X(CLIENTS, "clients", COUNT, "connections")                                                              \
    X(PROGRAMS, "programs", COUNT, "programs")                                                               \
    X(REFUSED, "refused", COUNT, "refused")                                                                  \
    OCC_REFUSALS(OCC_STATUS_REFUSAL)                                                                         \
    X(QUARANTINED, "quarantined", COUNT, "quarantined")                                                      \
    X(LAUNCHES, "launches", COUNT, "launches")                                                               \
    OCC_LOSS_CAUSES(OCC_STATUS_LOSS)                                                                         \
    X(LAG, "lag_s", SECONDS, "behind by")                                                                    \
    X(RING_FILL, "ring_fill", RATIO, "fullest ring")                                                         \
    X(HELD, "held_bytes", BYTES, "not committed yet")                                                        \
    X(COMMITS, "commits", COUNT, "commits")                                                                  \
    X(COMMIT, "commit_s", SECONDS, "last commit took")                                                       \
    X(FAILURES, "store_failures", COUNT, "failed writes")                                                    \
    X(BYTES, "bytes", BYTES, "size")                                                                         \
    X(QUOTA, "quota_bytes", BYTES, "quota")                                                                  \
    X(QUOTA_FILL, "quota_fill", RATIO, "quota used")                                                         \
    X(OLDEST, "oldest_launch_s", TIME, "oldest launch")                                                      \
    X(EVICTED, "evicted_chunks", COUNT, "evicted chunks")

/* Rows of the loss and refusal causes: the file that uses the table defines OCC_STATUS_ROW, equal to its
 * X. */
#define OCC_STATUS_LOSS(name, word, text) OCC_STATUS_ROW(LOST_##name, "lost_" word, LOSS, "lost: " word)

#define OCC_STATUS_REFUSAL(name, word, text)                                                                 \
    OCC_STATUS_ROW(REFUSED_##name, "refused_" word, LOSS, "refused: " word)

#define OCC_STATUS_ROW(id, key, kind, label) OCC_STATUS_##id,
enum occ_status_value { OCC_STATUS(OCC_STATUS_ROW) OCC_STATUS_COUNT };
#undef OCC_STATUS_ROW

enum occ_status_kind {
    OCC_STATUS_AS_TEXT,
    OCC_STATUS_AS_COUNT,
    OCC_STATUS_AS_LOSS,
    OCC_STATUS_AS_BYTES,
    OCC_STATUS_AS_SECONDS,
    OCC_STATUS_AS_TIME,
    OCC_STATUS_AS_RATIO
};

struct occ_status_row {
    const char *key; /* key of the value's line in an answer */
    enum occ_status_kind kind;
    const char *label;
};
extern const struct occ_status_row occ_status_rows[OCC_STATUS_COUNT];

/* Formats a number for people: "1.5 MiB", "20 ms", "12.0 %". */
#define OCC_STATUS_TEXT_BYTES 64
const char *occ_status_format(enum occ_status_kind kind, double number, char text[OCC_STATUS_TEXT_BYTES]);

enum occ_status_form { OCC_STATUS_LINES /* one line per history */, OCC_STATUS_ALL, OCC_STATUS_JSON };

/* Asks the daemon at the other end of `fd` and prints its answers. */
int occ_status_print(int fd, enum occ_status_form form, FILE *out, struct occ_error *err);
