/*
 * database.max_total_size: the limit of all owners' histories together.
 *
 * The rule: if the histories exceed the limit, owners above an equal share of the limit give the excess, the
 * owner with the least recent launch first, each down to the equal share. An owner at or below the equal
 * share loses nothing for other owners' sake. The owners above the share hold the whole excess, so the limit
 * can be kept.
 *
 * Once a minute a census in steps (a bounded number of directories each) reads the sizes of all owners' files
 * and the time of each owner's last use, from a file `used` beside the history. The owners that must give are
 * opened one after the other with a smaller quota, and the upkeep (histories.h) shrinks their histories, to 1
 * MiB at least. A history of at most 2 MiB that would have less than 1 MiB is removed, unless its programs
 * report. One thread. Logs.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/owners/identity.h"

struct occ_histories;
struct occ_history;

/* target of an owner who need not shrink */
#define OCC_NODE_KEEPS UINT64_MAX
/* minimum quota that a store accepts */
#define OCC_NODE_LEAST_BYTES (UINT64_C(1) << 20)

/* An owner in a census. */
struct occ_node_owner {
    struct occ_owner owner;
    uint64_t bytes;  /* file and write-ahead log */
    int64_t used_ns; /* last use, since the epoch */
    uint64_t target; /* size to shrink to; OCC_NODE_KEEPS: no need to shrink */
    bool is_begun;   /* its history was opened to shrink */
    bool is_spared;  /* could not shrink in the last round: other owners shrink first */
};

struct occ_node_quota {
    DIR *directory; /* directory of the running census; NULL: none runs */
    struct occ_node_owner *owners;
    size_t n, allocated;
    size_t at;              /* index of the next owner to shrink */
    struct occ_owner stuck; /* owner who could not shrink; "": none */
    bool is_known;          /* a census has finished */
    uint64_t total_bytes;   /* result of the last census */
    int64_t next_ns;        /* next step, monotonic; INT64_MAX: never */
};

/* Sorts the owners by last use, oldest first, and sets their targets. */
void occ_node_quota_share(struct occ_node_owner *owners, size_t n, uint64_t max_bytes);

/* Schedules a census: the first one, or another one after a change of settings. */
void occ_node_quota_plan(struct occ_histories *histories, int64_t now_ns);
/* Does a step if one is due. */
void occ_node_quota_poll(struct occ_histories *histories, int64_t now_ns);
void occ_node_quota_free(struct occ_node_quota *quota);
