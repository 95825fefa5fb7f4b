/*
 * What the daemon knows of one program: its ring, who it is, and which of the ring's ids are which rows of the
 * history. Made when a program offers its ring, freed when its run has ended and everything of it is committed.
 * The registry (the list, the cycle) is collector.h's. One thread.
 */
#ifndef OCC_DAEMON_PRODUCERS_H
#define OCC_DAEMON_PRODUCERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "reorder.h"
#include "ring/ring.h"
#include "store/measured.h"
#include "store/store.h"
#include "support/error.h"

/* Who is at the other end of a connection, as the kernel says. pid 0: in a pid namespace that we do not see. */
struct occ_peer {
    int32_t pid;
    uint32_t uid;
};

enum occ_producer_state {
    OCC_PRODUCER_LIVE,  /* is read */
    OCC_PRODUCER_ENDED, /* nothing more is read, its run has ended, and all this waits for a commit */
    OCC_PRODUCER_DONE,  /* committed: can be freed */
};

struct occ_producer_device {
    int64_t id; /* in the store */
    uint8_t uuid[16];
    uint32_t sm_count, warps_per_sm; /* 0: unknown */
    struct occ_reorder window;
};

struct occ_producer_shape {
    uint32_t id;      /* in the store */
    uint32_t context; /* CUDA context */
    uint32_t device;  /* index of the producer's device */
};

/* Exact values that wait until the launches that they were counted of have been read. */
struct occ_producer_measured {
    uint64_t head;   /* position at which they are due */
    uint64_t number; /* of the frame */
    int64_t minute;
    uint32_t shape; /* in the store */
    struct occ_measured_sums sums;
};

struct occ_producer {
    struct occ_producer *next;
    void *owner; /* for collector's gone(), also while no connection is left; NULL: has been told */
    enum occ_producer_state state;
    struct occ_ring_consumer *consumer;
    struct occ_peer peer;
    dev_t ring_dev; /* which memfd it is */
    ino_t ring_ino;

    bool dead;               /* the program has ended */
    bool broken;             /* in quarantine: never read again */
    bool drained;            /* the last look found nothing more */
    int64_t orphan_since_ns; /* monotonic; 0: it has a connection */
    uint64_t last_beat_ns;   /* as the program says, and when we saw it change */
    int64_t last_beat_seen_ns;
    uint64_t pressure; /* launches that waited at the last look */

    int64_t run;        /* in the store; 0: not yet */
    struct occ_run row; /* strings are ours, malloc'ed, but for level and level_reason */
    bool row_changed;
    bool is_exact; /* measures its launches itself: samples have no say in it */
    char reason[320];
    const char *counters;                       /* level that hardware counters give the run; NULL: none */
    char counters_reason[320];                  /* why they give no better one; "" */
    uint64_t closed_ns;                         /* what the CLOSED frame says; 0: none */
    const struct occ_log_record *waiting_frame; /* the store did not take it: again next time */
    uint64_t totals_put;                        /* sum of the counters when they were last put */
    int64_t totals_next_ns;                     /* costs change all the time: not before this (monotonic) */
    uint64_t measured_read;                     /* MEASURED frames taken from the log */
    uint64_t measured_done; /* of these, counted: by a daemon before, or with the next commit */
    uint64_t measured_put;  /* of these, as the store knows */
    uint64_t position_put;  /* what the next commit makes durable */
    bool position_in_commit;

    struct occ_producer_device *devices;
    int64_t *kernels;
    struct occ_producer_shape *shapes;
    struct occ_producer_measured *measured;
    size_t n_devices, n_kernels, n_shapes, n_measured;
    size_t devices_allocated, kernels_allocated, shapes_allocated, measured_allocated;
};

/* Checks and maps the ring behind `fd` (taken in every case), to be read from launch `next` on; of the MEASURED frames in
 * its log the first `measured` are not counted again. `uuid` is what the handshake says. */
int occ_producer_new(int fd, const struct occ_peer *peer, const uint8_t uuid[16], uint64_t next,
                     uint64_t measured, struct occ_producer **ret_producer, struct occ_error *err);
/* NULL is fine. Rows that wait in windows are forgotten. */
void occ_producer_free(struct occ_producer *producer);

/* Memory of the id tables, in bytes. */
size_t occ_producer_table_bytes(const struct occ_producer *producer);

/*
 * Takes what the log says into the store and the tables, at most `budget` frames (it counts down), then puts the
 * run's row if it changed. 0: the log is empty for now or the budget is used up; OCC_PRODUCER_BROKEN: the ring is
 * broken or says what cannot be (quarantine; the message says why); else the store's error, and the frame is kept
 * for the next call.
 */
#define OCC_PRODUCER_BROKEN 1
int occ_producer_take_frames(struct occ_producer *producer, struct occ_store *store, size_t *budget,
                             struct occ_error *err);

/* Puts the exact values that are due, all up to the ring's position, and how many were. The run's row is there. */
int occ_producer_put_measured(struct occ_producer *producer, struct occ_store *store, struct occ_error *err);

/* Puts the run's row. */
int occ_producer_put_row(struct occ_producer *producer, struct occ_store *store, struct occ_error *err);

/* Puts losses and own costs if they changed and `now_ns` allows it, or if `final`. */
int occ_producer_put_totals(struct occ_producer *producer, struct occ_store *store, int64_t now_ns,
                            bool final, struct occ_error *err);

/* When the program ended, as well as is known: its own word, its last beat, now (nanoseconds since the epoch). */
int64_t occ_producer_end_ns(const struct occ_producer *producer);

#endif
