/*
 * The histories that the daemon writes: one for all programs, or one per owner of programs, each with its own
 * store and collector. A full, locked or damaged history of one owner does not affect other owners' launches.
 *
 * With `split`, an owner's history is DIRECTORY/NAME/FILE where DIRECTORY/FILE is the configured path and
 * NAME is the owner's (identity.h). Root owns directory (0750) and file (0640); an access control list lets
 * the owner and the group occtrace-ship, if it exists, read both. Root's history, u0, is always open: it
 * stores data without an owner (full-rate samples of the GPUs).
 *
 * A history is opened when a program of its owner connects, and closed after a while without programs and
 * uncommitted data. One thread. Logs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/collect/collector.h"
#include "daemon/owners/identity.h"
#include "node_quota.h"
#include "daemon/sampling/sampler.h"
#include "store/store.h"
#include "support/error.h"

/* X(NAME, word): whether a history accepts launches, or the reason why not. */
#define OCC_HISTORY_STATES(X)                                                                                \
    X(OK, "ok")                                                                                              \
    X(FULL, "full") /* the disk is full, or the quota, without rows old enough to delete */                  \
    X(READ_ONLY, "read_only")                                                                                \
    X(LOCKED, "locked")                                                                                      \
    X(REPLACED, "replaced") /* the file was deleted or replaced and its successor cannot be opened */        \
    X(STALLED, "stalled")   /* the store failed for another reason */

#define OCC_HISTORY_STATE(name, word) OCC_HISTORY_##name,
enum occ_history_state { OCC_HISTORY_STATES(OCC_HISTORY_STATE) OCC_HISTORY_STATE_COUNT };

struct occ_history {
    struct occ_history *next;
    void *context;   /* the options' context */
    uint32_t number; /* never used again while the daemon runs */
    struct occ_owner owner;
    char *path; /* path of the file */
    struct occ_store *store;
    struct occ_collector *collector;
    /* monotonic, as all times here; INT64_MAX: no poll before a program connects */
    int64_t next_poll_ns;
    int64_t used_ns;         /* time of the last program or uncommitted data */
    int64_t flushed_ns;      /* time of the last commit for a client's flush */
    int64_t next_results_ns; /* earliest time of a commit for measured values alone */
    /* the collector's number of commits at the last call of occ_histories_commit_results() */
    uint64_t commits_seen;
    int64_t next_reopen_ns;        /* next try after a failed reopening; 0: the last one succeeded */
    struct occ_error reopen_error; /* error of the failed reopening */
    struct occ_store_stats stats;  /* cache of occ_totals_add(), */
    int64_t stats_until_ns;        /* valid until this time */
    int64_t next_upkeep_ns;        /* next step of occ_histories_maintain() */
    bool needs_upkeep;             /* the last step left work */
    size_t lost_runs;              /* runs of a killed daemon whose programs still ran at the last step */
    bool has_unreferenced_names;   /* a program has ended, so names may be unreferenced */
    uint64_t quota_bytes;          /* quota that enforces database.max_total_size; 0: none */
    uint64_t launches_noted;       /* number of launches at the last occ_history_note_use() */
};

struct occ_histories_options {
    /* path of the history; with `split` an absolute path whose directory has the owners' directories */
    const char *path;
    bool split;
    bool waits;        /* true: if the disk is full, retry to open a history later; false: return the error */
    size_t max_open;   /* maximum number of open histories with `split`; 0: 256 */
    int64_t idle_ns;   /* close a history after this time without work; 0: 60 s */
    int64_t upkeep_ns; /* interval of a history's steps of upkeep; 0: 1 min */
    int64_t closed_upkeep_ns; /* interval of upkeep of closed histories with `split`; 0: 10 min */
    int64_t census_ns;        /* interval of the censuses of node_quota.h; 0: 1 min */
    uint64_t max_total_bytes; /* sum of all histories; 0: no limit */
    struct occ_store_options store;
    struct occ_collector_options collector; /* their context is the history */
    struct occ_sampler *sampler;            /* gets every history */
    void *context;
};

/* Settings that a reload may change. */
struct occ_histories_limits {
    struct occ_collector_options collector;
    uint64_t max_bytes;       /* as in struct occ_store_options */
    uint64_t max_total_bytes; /* as in struct occ_histories_options */
    struct occ_store_ages ages;
};

struct occ_histories {
    const struct occ_histories_options *options;
    struct occ_history *first; /* the only history, or root's; the other owners' follow */
    size_t n;
    uint32_t opened;                  /* number of histories opened since the start */
    struct occ_owner maintained_last; /* owner of the last closed history that was opened for upkeep */
    int64_t next_closed_upkeep_ns;    /* time of the next upkeep of a closed history; INT64_MAX: never */
    struct occ_node_quota node;
};

/* Opens the single history, or root's. Without `split` every owner has the same history. */
int occ_histories_open(struct occ_histories *histories, const struct occ_histories_options *options,
                       struct occ_error *err);
/* Does not commit. */
void occ_histories_close(struct occ_histories *histories);

/* Applies other options to all collectors, another quota and ages to all stores, and both to `own`, the
 * *options passed to occ_histories_open(). Functions and context stay. */
void occ_histories_configure(struct occ_histories *histories, struct occ_histories_options *own,
                             const struct occ_histories_limits *limits);

/* Sets a quota for an open history; the smaller of it and the options' quota applies. 0: none. */
void occ_histories_limit(struct occ_histories *histories, struct occ_history *history, uint64_t quota_bytes);
/* Removes the files of an owner's closed history. `why` completes the log line "... is removed". */
void occ_histories_remove(const struct occ_histories *histories, const struct occ_owner *owner,
                          const char *why);

/* Does one step of occ_store_maintain() in the history whose step is due longest. Each history has one step a
 * minute; while it has more to do, as many as take a tenth of the time. Returns the time until the next step
 * of a history with more to do, or with runs of a killed daemon, which end with their programs; -1: none has.
 */
int64_t occ_histories_maintain(struct occ_histories *histories, int64_t now_ns);

/* The owner of the history that stores the launches of a process with this identity. */
void occ_histories_owner(const struct occ_histories *histories, const struct occ_identity *identity,
                         struct occ_owner *ret_owner);

/* Path of this owner's history, whether the file exists or not. malloc'ed. */
int occ_histories_path(const struct occ_histories *histories, const struct occ_owner *owner, char **ret_path,
                       struct occ_error *err);

/* The open history of this owner; NULL: it is not open. */
struct occ_history *occ_histories_find(const struct occ_histories *histories, const struct occ_owner *owner);
/* Finds or opens the history of this owner. OCC_E_FULL: too many histories are open. */
int occ_histories_of(struct occ_histories *histories, const struct occ_owner *owner, int64_t now_ns,
                     struct occ_history **ret_history, struct occ_error *err);

/* If the file was deleted or replaced while open, opens the file that is now at its path or creates one; only
 * the old file's contents are lost. true: reopened, ids of the old file are invalid. */
bool occ_histories_follow(struct occ_histories *histories, struct occ_history *history, int64_t now_ns);

/* Commits measured values, which arrive seconds after their launches, if no other data causes a commit. */
void occ_histories_commit_results(const struct occ_histories *histories, struct occ_history *history,
                                  int64_t now_ns);

/* Updates the time of last use if its programs have launched since the last call. */
void occ_history_note_use(struct occ_history *history);
enum occ_history_state occ_history_state(const struct occ_history *history);
const char *occ_history_state_word(enum occ_history_state state);

/* A history other than the first without programs and uncommitted data for idle_ns, to be passed to
 * occ_histories_drop(). NULL: none. */
struct occ_history *occ_histories_idle(struct occ_histories *histories, int64_t now_ns);
/* true if its file could not be opened yet and no program waits for it. */
bool occ_history_is_empty(const struct occ_history *history);
/* Finishes and closes a history without programs; removes an owner's file if retention left no rows in it. */
void occ_histories_drop(struct occ_histories *histories, struct occ_history *history);
