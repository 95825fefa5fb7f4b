/*
 * The cycle that takes launches from rings into the store.
 *
 * A poll reads, per program, first the log (devices, kernels, launch configurations), then the launches that
 * were in the ring when the poll began, and appends them to the store. Once per commit interval, and earlier
 * when a ring is half full or memory runs short, everything becomes durable in one transaction: rows, losses,
 * costs, and the position of each ring. Only then are the slots released to the program.
 *
 * Exactly once: a ring's position is the number of launches read from it, and a commit starts by appending
 * all of these. A daemon that dies leaves the rows and positions of its last commit; the next one continues
 * from there.
 *
 * When the store fails (disk full, locked), nothing more is read until a commit has succeeded: memory stays
 * bounded, rings buffer, and their producers count what does not fit.
 *
 * A broken ring goes into quarantine: what was read before is kept, the run's row has the reason, the
 * program's connection is closed and its ring is not taken again.
 *
 * A run ends when its program is dead or closed its ring, and the ring is drained; its memory is freed after
 * the commit. A program that lives without a connection (it closed all descriptors, it exec'ed) is read while
 * its heartbeat goes on.
 *
 * Times called now_ns are CLOCK_MONOTONIC, given by the caller for the sake of tests. One thread. Logs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "producers.h"
#include "store/store.h"
#include "support/error.h"

struct occ_collector;

struct occ_collector_options {
    int64_t commit_interval_ns;
    uint64_t memory_bytes; /* commit early above this */
    size_t max_producers;
    uint64_t max_ring_bytes;      /* of one ring */
    uint64_t budget_ppm;          /* what recording may cost a program; 0: its own default */
    size_t max_user_producers;    /* of one uid; 0: no limit of its own */
    uint64_t max_user_ring_bytes; /* all rings of one uid; 0: no limit */
    /* A poll reads for about this long, and goes on from there with the next; all polls together have a half
     * of the time, and those that put kernels and configurations a quarter. 0: no limits. */
    int64_t round_ns;
    /* Launches may start this long before their process and end this long after now; 0: no limit. */
    int64_t skew_ns;
    enum occ_command_lines command_lines;
    struct occ_accounts *accounts; /* for the names of users; NULL: runs have none */
    int64_t stop_ns;               /* for more than one look at each ring at the end; 0: no limit */
    int64_t orphan_grace_ns;       /* silence after which a program without a connection counts as dead */
    /* `owner`, as given to offer, must forget its producer: the run is over, in quarantine, or another
     * owner's. Called once for each offer that was taken, before the producer is freed. May be NULL. */
    void (*gone)(void *owner, void *context);
    /* Launches of a program on one of its devices were appended. May be NULL. */
    void (*appended)(struct occ_producer *producer, const struct occ_producer_device *device,
                     const struct occ_store_launch *rows, size_t n, void *context);
    /* A commit is about to happen: the last moment to put something into it. May be NULL. */
    int (*committing)(void *context, struct occ_error *err);
    void *context; /* of these three */
};

struct occ_collector_stats {
    size_t producers;
    uint64_t launches; /* appended since the start */
    uint64_t commits;
    uint64_t failures; /* of the store */
    uint64_t quarantined;
    uint64_t held_bytes; /* launches in the store's memory */
    int64_t commit_ns;   /* how long the last commit took */
    bool stalled;        /* the store takes nothing at the moment, */
    int stall_code;      /* for this reason (support/error.h) */
    const char *stall_reason;
    int64_t waiting_since_ns; /* what was read last of what is not committed; 0: all is */
    double ring_fill;         /* of the fullest ring, 0...1 */
    /* Of all programs so far, as they count: launches by cause, and CPU time of the recording. */
    double lost[OCC_LOSS_COUNT], cpu_seconds;
};

/* `store` is open for writing and stays the caller's. */
int occ_collector_new(struct occ_store *store, const struct occ_collector_options *options,
                      struct occ_collector **ret_collector, struct occ_error *err);
/* Commits nothing. NULL is fine. */
void occ_collector_free(struct occ_collector *collector);

/* Other options from now on; functions and context stay. */
void occ_collector_configure(struct occ_collector *collector, const struct occ_collector_options *options);

/*
 * A program offers its ring. Takes the offer's descriptor in every case. The same ring from the same program
 * again (its connection was lost): goes on with the new owner. OCC_E_FULL: too many programs; OCC_E_DENIED:
 * in quarantine, or another program's or user's uuid; OCC_E_INVALID: not a valid ring; else the store's
 * error.
 */
int occ_collector_offer(struct occ_collector *collector, const struct occ_offer *offer, int64_t now_ns,
                        struct occ_producer **ret_producer, struct occ_error *err);

/* The store has another file: its rows of runs, devices, kernels and configurations are put again, and what
 * was read since the last commit is read again. */
void occ_collector_restart(struct occ_collector *collector, int64_t now_ns);

/* The program is dead: its ring is drained with the next poll, then its run ends. */
void occ_collector_died(struct occ_collector *collector, struct occ_producer *producer);
/* The connection is lost, the program lives. Its owner stays: it may still call occ_collector_died(). */
void occ_collector_orphaned(struct occ_collector *collector, struct occ_producer *producer, int64_t now_ns);

/* One round. Errors are logged and tried again. */
void occ_collector_poll(struct occ_collector *collector, int64_t now_ns);

/* Makes everything that was read durable now. */
int occ_collector_commit(struct occ_collector *collector, int64_t now_ns, struct occ_error *err);

/* The end: reads every ring until nothing more was there, ends all runs, commits. Programs that live keep
 * what they write afterwards for the next daemon. */
int occ_collector_stop(struct occ_collector *collector, int64_t now_ns, struct occ_error *err);

/* How long until the next poll makes sense; -1: nothing to do before an offer. */
int64_t occ_collector_wait_ns(const struct occ_collector *collector, int64_t now_ns);

/* True if no program of the session (32 hex digits) is dead and not yet committed. */
bool occ_collector_is_settled(const struct occ_collector *collector, const char *session);

/* True if a program that is alive has named the GPU with this uuid, or none yet. */
bool occ_collector_uses_gpu(const struct occ_collector *collector, const uint8_t uuid[16]);

/* In the service: as occ_store_collect_names(), but for what programs may still use. */
int occ_collector_collect_names(struct occ_collector *collector, bool *ret_more, struct occ_error *err);

void occ_collector_get_stats(const struct occ_collector *collector, struct occ_collector_stats *ret_stats);
