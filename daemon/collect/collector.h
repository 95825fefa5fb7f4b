/*
 * The cycle that takes launches from rings into the store.
 *
 * A poll reads, per program, first the log (devices, kernels, launch configurations), then the launches that
 * were in the ring when the poll began, and appends them to the store. Once per commit interval, and earlier
 * when a ring is half full or memory runs short, one transaction makes everything durable: rows, losses,
 * costs, and the position of each ring. Only then are the slots released to the program.
 *
 * Exactly once: a ring's position is the number of launches read from it, and a commit starts by appending
 * all of them. A daemon that dies leaves the rows and positions of its last commit; the next daemon continues
 * from there.
 *
 * When the store fails (disk full, locked), no ring is read until a commit has succeeded: memory stays
 * bounded, rings buffer, and their producers count the launches that do not fit.
 *
 * A broken ring goes into quarantine: launches already read are kept, the run's row has the reason, the
 * program's connection is closed and its ring is not accepted again.
 *
 * A run ends when its program is dead or closed its ring, and the ring is drained; its memory is freed after
 * the commit. A program that lives without a connection (it closed all descriptors, it exec'ed) is read while
 * its heartbeat advances.
 *
 * Times called now_ns are CLOCK_MONOTONIC; the caller passes them so that tests can set them. One thread.
 * Logs.
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
    uint64_t max_ring_bytes; /* per ring */
    /* CPU time that recording may use, in ppm of the program's; 0: the guest's default */
    uint64_t budget_ppm;
    size_t max_user_producers;    /* per uid; 0: no limit per uid */
    uint64_t max_user_ring_bytes; /* sum of all rings of one uid; 0: no limit */
    /* Time slice of one poll; the next poll continues with the next program. All polls together use at most
     * half of the time, and reading logs (kernels, configurations) at most a quarter. 0: no limits. */
    int64_t round_ns;
    /* Tolerance: launches may start this long before their process and end this long after now; 0: no
     * check. */
    int64_t skew_ns;
    enum occ_command_lines command_lines;
    struct occ_accounts *accounts; /* resolves names of users; NULL: runs have no user name */
    int64_t stop_ns;               /* time limit at the end for further passes over the rings; 0: no limit */
    int64_t orphan_grace_ns;       /* silence after which a program without a connection counts as dead */
    /* Called once for each accepted offer, before the producer is freed: `owner` must drop its pointer to the
     * producer. The run is over, its ring is in quarantine, or another connection offered the ring. May be
     * NULL. */
    void (*gone)(void *owner, void *context);
    /* Called after launches of a program on one of its devices were appended. May be NULL. */
    void (*appended)(struct occ_producer *producer, const struct occ_producer_device *device,
                     const struct occ_store_launch *rows, size_t n, void *context);
    /* Called after a program's holes (run.holes) changed. The log is ahead of the launches: launches from
     * before the change may be appended later. May be NULL. */
    void (*leveled)(struct occ_producer *producer, void *context);
    /* Called with a program's memory operations on one of its devices; `config` is an occ_producer_memory().
     * They are not stored. May be NULL. */
    void (*memory)(struct occ_producer *producer, const struct occ_producer_device *device,
                   const struct occ_store_launch *rows, size_t n, void *context);
    /* Called just before a commit: the callback may add rows to the transaction. May be NULL. */
    int (*committing)(void *context, struct occ_error *err);
    void *context; /* argument of the five functions above */
};

struct occ_collector_stats {
    size_t producers;
    uint64_t launches; /* appended since the start */
    uint64_t commits;
    uint64_t failures; /* failed writes to the store */
    uint64_t quarantined;
    uint64_t held_bytes; /* memory of the store for launches that are not committed */
    int64_t commit_ns;   /* how long the last commit took */
    bool stalled;        /* the store failed and no ring is read */
    int stall_code;      /* code (support/error.h) of the failure */
    const char *stall_reason;
    int64_t waiting_since_ns; /* no launch read before this time is uncommitted; 0: all are committed */
    double ring_fill;         /* fill level of the fullest ring, 0...1 */
    /* All programs since the start, by their own counters: lost launches by cause, CPU time of recording. */
    double lost[OCC_LOSS_COUNT], cpu_seconds;
};

/* `store` is open for writing and remains the caller's. */
int occ_collector_new(struct occ_store *store, const struct occ_collector_options *options,
                      struct occ_collector **ret_collector, struct occ_error *err);
/* Does not commit. NULL is allowed. */
void occ_collector_free(struct occ_collector *collector);

/* Applies other options; the functions, their context and the accounts stay. */
void occ_collector_configure(struct occ_collector *collector, const struct occ_collector_options *options);

/*
 * A program offers its ring. Takes over the offer's descriptor in every case. The same ring offered again by
 * the same program (its connection was lost) continues with the new owner. OCC_E_FULL: too many programs;
 * OCC_E_DENIED: ring in quarantine, or the uuid belongs to another program or user; OCC_E_INVALID: not a
 * valid ring; otherwise the store's error.
 */
int occ_collector_offer(struct occ_collector *collector, const struct occ_offer *offer, int64_t now_ns,
                        struct occ_producer **ret_producer, struct occ_error *err);

/* Call it after the store was reopened with another file: writes the rows of runs, devices, kernels and
 * configurations again, and reads launches again from the last commit on. */
void occ_collector_restart(struct occ_collector *collector, int64_t now_ns);

/* The program is dead: the next poll drains its ring and ends its run. */
void occ_collector_died(struct occ_collector *collector, struct occ_producer *producer);
/* The connection is lost but the program lives. The producer keeps its `owner`, which may still call
 * occ_collector_died(). */
void occ_collector_orphaned(struct occ_collector *collector, struct occ_producer *producer, int64_t now_ns);

/* One round. Errors are logged and the work is repeated in the next round. */
void occ_collector_poll(struct occ_collector *collector, int64_t now_ns);

/* Commits everything read until now. */
int occ_collector_commit(struct occ_collector *collector, int64_t now_ns, struct occ_error *err);

/* Final round: reads every ring until it is empty, ends all runs, commits. Programs that still run keep their
 * further launches in the ring for the next daemon. */
int occ_collector_stop(struct occ_collector *collector, int64_t now_ns, struct occ_error *err);

/* Time until the next useful poll; -1: none before the next offer. */
int64_t occ_collector_wait_ns(const struct occ_collector *collector, int64_t now_ns);

/* True if no program of the session (32 hex digits) is dead and not yet committed. */
bool occ_collector_is_settled(const struct occ_collector *collector, const char *session);

/* true if a living program has reported the GPU with this uuid, or has not reported any GPU yet. */
bool occ_collector_uses_gpu(const struct occ_collector *collector, const uint8_t uuid[16]);

/* occ_store_collect_names() for the service; keeps the names in the tables of living programs. */
int occ_collector_collect_names(struct occ_collector *collector, bool *ret_more, struct occ_error *err);

void occ_collector_get_stats(const struct occ_collector *collector, struct occ_collector_stats *ret_stats);
