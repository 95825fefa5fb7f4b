/*
 * The histories that the daemon writes: one for all programs, or one for each owner of programs, with a store
 * and a collector of its own. What fills, locks or damages one owner's history keeps nobody else's launches.
 *
 * With `split`, an owner's history is DIRECTORY/NAME/FILE where DIRECTORY/FILE is the configured path and
 * NAME is the owner's (identity.h). Root owns directory (0750) and file (0640); the owner may read both by an
 * access control list, and so may the group occtrace-ship if there is one. Root's own, u0, is always open: it
 * takes what belongs to nobody else (full-rate samples of the GPUs).
 *
 * A history is opened when a program of its owner comes, and closed when nothing was in it for a while. One
 * thread. Logs.
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

/* X(NAME, word): whether a history takes launches, or why not. */
#define OCC_HISTORY_STATES(X)                                                                                \
    X(OK, "ok")                                                                                              \
    X(FULL, "full") /* the disk, or a quota in which nothing is old enough */                                \
    X(READ_ONLY, "read_only")                                                                                \
    X(LOCKED, "locked")                                                                                      \
    X(REPLACED, "replaced") /* and its successor cannot be used */                                           \
    X(STALLED, "stalled")   /* for another reason */

#define OCC_HISTORY_STATE(name, word) OCC_HISTORY_##name,
enum occ_history_state { OCC_HISTORY_STATES(OCC_HISTORY_STATE) OCC_HISTORY_STATE_COUNT };

struct occ_history {
    struct occ_history *next;
    void *context;   /* the options' */
    uint32_t number; /* never used again while the daemon runs */
    struct occ_owner owner;
    char *path; /* of the file */
    struct occ_store *store;
    struct occ_collector *collector;
    int64_t next_poll_ns;          /* monotonic, as all times here; INT64_MAX: not before a program comes */
    int64_t used_ns;               /* when a program or something to commit was there last */
    int64_t flushed_ns;            /* when a client's flush committed last */
    int64_t next_results_ns;       /* not before this is a commit made for measured values alone */
    uint64_t commits_seen;         /* the collector's, at the last look */
    int64_t next_reopen_ns;        /* after one that failed; 0: none did, */
    struct occ_error reopen_error; /* and why */
    struct occ_store_stats stats;  /* of occ_totals_add(), */
    int64_t stats_until_ns;        /* until when they are new enough */
    int64_t next_upkeep_ns;        /* of occ_histories_maintain() */
    bool needs_upkeep;             /* and it has more to do */
    bool has_spare_names;          /* a program has ended: names may be those of nobody now */
    uint64_t quota_bytes;          /* for the sake of database.max_total_size; 0: none of its own */
    uint64_t launches_noted;       /* at the last occ_history_note_use() */
};

struct occ_histories_options {
    const char
        *path; /* of the history; with `split` absolute, and of a file beside the owners' directories */
    bool split;
    bool waits;      /* a history on a full disk is opened when there is room; else to open it is an error */
    size_t max_open; /* with `split`; 0: 256 */
    int64_t idle_ns; /* after which a history without anything to do is closed; 0: 60 s */
    int64_t tour_ns; /* with `split`, between two openings of a closed history for its upkeep; 0: 10 min */
    int64_t census_ns;        /* between two censuses of node_quota.h; 0: a minute */
    uint64_t max_total_bytes; /* of all histories; 0: no limit */
    struct occ_store_options store;
    struct occ_collector_options collector; /* its context is the history */
    struct occ_sampler *sampler;            /* knows every history */
    void *context;
};

/* What a reload may change. */
struct occ_histories_limits {
    struct occ_collector_options collector;
    uint64_t max_bytes;       /* as in struct occ_store_options */
    uint64_t max_total_bytes; /* as in struct occ_histories_options */
    struct occ_store_ages ages;
};

struct occ_histories {
    const struct occ_histories_options *options;
    struct occ_history *first; /* the one for all, or root's; the others follow */
    size_t n;
    uint32_t opened;         /* ever */
    struct occ_owner toured; /* whose closed history was opened for its upkeep last, */
    int64_t next_tour_ns;    /* and when the next one is; INT64_MAX: never */
    struct occ_node_quota node;
};

/* Opens the history for all, or root's. Not split, an owner is anybody. */
int occ_histories_open(struct occ_histories *histories, const struct occ_histories_options *options,
                       struct occ_error *err);
/* Frees everything; commits nothing. */
void occ_histories_close(struct occ_histories *histories);

/* Gives all collectors new options, all stores another quota and other ages, and both to `own`, which is
 * *options of occ_histories_open(); functions and context stay. */
void occ_histories_configure(struct occ_histories *histories, struct occ_histories_options *own,
                             const struct occ_histories_limits *limits);

/* Gives an open history a quota of its own, if that is smaller than the options'; 0: none. */
void occ_histories_limit(struct occ_histories *histories, struct occ_history *history, uint64_t quota_bytes);
/* Removes the files of an owner's history that is not open. `why` follows "is removed" in the log. */
void occ_histories_remove(const struct occ_histories *histories, const struct occ_owner *owner,
                          const char *why);

/* One step of occ_store_maintain() in the history that waits for it longest: each has one a minute, and while
 * it has more to do, as many as keep the loop busy for a tenth of its time. Returns how long until one with
 * more to do wants its next; -1: none does. */
int64_t occ_histories_maintain(struct occ_histories *histories, int64_t now_ns);

/* The owner of the history that takes the launches of such a process. */
void occ_histories_owner(const struct occ_histories *histories, const struct occ_identity *identity,
                         struct occ_owner *ret_owner);

/* The file of this owner's history, whether it is there or not. malloc'ed. */
int occ_histories_path(const struct occ_histories *histories, const struct occ_owner *owner, char **ret_path,
                       struct occ_error *err);

/* The history of this owner; NULL: it is not open. */
struct occ_history *occ_histories_find(const struct occ_histories *histories, const struct occ_owner *owner);
/* The same; opens it where it is not open. OCC_E_FULL: too many are. */
int occ_histories_of(struct occ_histories *histories, const struct occ_owner *owner, int64_t now_ns,
                     struct occ_history **ret_history, struct occ_error *err);

/* Where the file was deleted or replaced beneath the daemon, goes on in the one that is at its path now, or a
 * new one: nothing is lost but what the old file held. true: its numbers mean others now. */
bool occ_histories_follow(struct occ_histories *histories, struct occ_history *history, int64_t now_ns);

/* Measured values come seconds after their launches: commits them where nothing else is committed. */
void occ_histories_commit_results(const struct occ_histories *histories, struct occ_history *history,
                                  int64_t now_ns);

/* If its programs have launched since the last call, it was used now. */
void occ_history_note_use(struct occ_history *history);
enum occ_history_state occ_history_state(const struct occ_history *history);
const char *occ_history_state_word(enum occ_history_state state);

/* A history, but for the first, without programs and without anything to commit for long enough: it is to be
 * given to occ_histories_drop(). NULL: there is none. */
struct occ_history *occ_histories_idle(struct occ_histories *histories, int64_t now_ns);
/* Its file could not be opened yet, and no program waits for it. */
bool occ_history_is_empty(const struct occ_history *history);
/* Finishes and closes one that has no programs; removes an owner's file that ages have left nothing in. */
void occ_histories_drop(struct occ_histories *histories, struct occ_history *history);
