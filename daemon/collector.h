/*
 * Rings -> launches -> store: the registry of programs under observation, and the cycle that reads them.
 *
 * Each poll takes, per program, first what its log says (devices, kernels, shapes), then the launches that were there
 * when the poll began, through a reorder window per device (reorder.h) into the store. Once per commit interval,
 * and earlier when a ring is half full or memory runs short, everything becomes durable in one transaction: rows,
 * losses, costs, and for each ring the position up to which it was read. Only then the slots go back to the program.
 *
 * Exactly once: a position is a prefix of the ring, rows leave the window by time. So a commit first empties every
 * window: then what was read from a ring and what was appended are the same prefix. A daemon that dies at any
 * moment leaves (rows, position) of its last commit; the next one goes on from there. The price is that order is
 * exact within a commit only; the store does not ask for more.
 *
 * When the store fails (disk full, locked), nothing more is read until a commit has succeeded: so what waits to
 * be committed stays consistent with the positions, memory stays bounded, rings buffer, and their producers count
 * what does not fit.
 *
 * A broken ring goes into quarantine: what was handed out before is kept, the run's row says why, the program's
 * connection is closed and its ring is not taken again.
 *
 * A run ends (and its memory is given back, after the commit) when its program is dead or closed its ring, and
 * the ring is drained. A program whose connection is lost but which lives (it closed all descriptors, it
 * exec'ed) goes on being read while its beat goes on.
 *
 * Times called now_ns are CLOCK_MONOTONIC, so that tests can make them up. One thread. Logs.
 */
#ifndef OCC_DAEMON_COLLECTOR_H
#define OCC_DAEMON_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "producers.h"
#include "store/store.h"
#include "support/error.h"

struct occ_collector;

struct occ_collector_options {
    int64_t commit_interval_ns;
    struct occ_reorder_limits reorder;
    uint64_t memory_bytes; /* commit early above this */
    size_t max_producers;
    uint64_t max_ring_bytes; /* of one ring */
    int64_t orphan_grace_ns; /* silence after which a program without a connection counts as dead */
    /* `owner`, as given to offer, must forget its producer: the run is over, in quarantine, or another owner's.
     * Called once for each offer that was taken, before the producer is freed. May be NULL. */
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
    uint64_t held_bytes; /* launches on their way: windows and store */
    bool stalled;        /* the store takes nothing at the moment */
};

/* `store` is open for writing and stays the caller's. */
int occ_collector_new(struct occ_store *store, const struct occ_collector_options *options,
                      struct occ_collector **ret_collector, struct occ_error *err);
/* Commits nothing. NULL is fine. */
void occ_collector_free(struct occ_collector *collector);

/*
 * A program offers its ring. Takes the offer's descriptor in every case. The same ring from the same program again (its
 * connection was lost): goes on with the new owner. OCC_E_FULL: too many programs; OCC_E_DENIED: in quarantine, or
 * another program's or user's uuid; OCC_E_INVALID: not a sound ring; else the store's error.
 */
int occ_collector_offer(struct occ_collector *collector, const struct occ_offer *offer, int64_t now_ns,
                        struct occ_producer **ret_producer, struct occ_error *err);

/* The program is dead: its ring is drained with the next poll, then its run ends. */
void occ_collector_died(struct occ_collector *collector, struct occ_producer *producer);
/* The connection is lost, the program lives. Its owner stays: it may still call occ_collector_died(). */
void occ_collector_orphaned(struct occ_collector *collector, struct occ_producer *producer, int64_t now_ns);

/* One round. Errors are logged and tried again. */
void occ_collector_poll(struct occ_collector *collector, int64_t now_ns);

/* Makes everything that was read durable now. */
int occ_collector_commit(struct occ_collector *collector, int64_t now_ns, struct occ_error *err);

/* The end: reads every ring until nothing more was there, ends all runs, commits. Programs that live keep what they
 * write afterwards for the next daemon. */
int occ_collector_stop(struct occ_collector *collector, int64_t now_ns, struct occ_error *err);

/* How long until the next poll makes sense; -1: nothing to do before an offer. */
int64_t occ_collector_wait_ns(const struct occ_collector *collector);

/* True if no program of the session (32 hex digits) is dead and not yet committed. */
bool occ_collector_is_settled(const struct occ_collector *collector, const char *session);

void occ_collector_get_stats(const struct occ_collector *collector, struct occ_collector_stats *ret_stats);

/* Not 0: memory ran out between ring and store, or similar: exit without a commit (nothing is lost: what was not
 * committed is still in the rings). */
int occ_collector_fatal(const struct occ_collector *collector);

#endif
