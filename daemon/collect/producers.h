/* One program: its ring, its identity, its run, and the tables from the ring's ids to the history's. Made
 * when the program offers its ring, freed when its run has ended and everything of it is committed
 * (collector.h). One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/owners/accounts.h"
#include "daemon/owners/identity.h"
#include "ring/ring.h"
#include "store/measured.h"
#include "store/store.h"
#include "support/error.h"

/* The other end of a connection (SO_PEERCRED). pid 0: in a pid namespace that we do not see. */
struct occ_peer {
    int32_t pid;
    uint32_t uid;
};

/* A program's handshake. */
struct occ_offer {
    int fd; /* of the ring's memfd; belongs to the function that takes the offer */
    struct occ_peer peer;
    const struct occ_identity *identity; /* of the peer; NULL: unknown */
    uint8_t uuid[16];                    /* of the ring, as the program states it */
    void *owner;                         /* for the collector's gone() */
};

enum occ_producer_state {
    OCC_PRODUCER_LIVE,  /* is read */
    OCC_PRODUCER_ENDED, /* its run has ended and waits for a commit */
    OCC_PRODUCER_DONE,  /* committed */
};

struct occ_producer_device {
    int64_t id; /* in the store */
    uint8_t uuid[16];
    uint32_t sm_count, warps_per_sm; /* 0: unknown */
};

struct occ_producer_config {
    uint32_t id;      /* in the store; 0: refused */
    uint32_t context; /* CUDA context */
    uint32_t device;  /* index of the producer's device */
    uint32_t range;   /* in the store; 0: not known */
};

/* The ring's ids -> the history's (0: refused); an id is an index. */
struct occ_producer_tables {
    struct occ_producer_device *devices;
    int64_t *kernels;
    struct occ_producer_config *configs;
    uint32_t *ranges;
    size_t n_devices, n_kernels, n_configs, n_ranges;
    size_t devices_allocated, kernels_allocated, configs_allocated, ranges_allocated;
};

/* Exact values (--exact) of some launches. */
struct occ_producer_measured {
    uint64_t head;   /* position at which they are due: the launches have been read */
    uint64_t number; /* of the MEASURED record */
    int64_t minute;
    uint32_t config; /* in the store */
    struct occ_measured_sums sums;
};

/* Exact values that wait for their launches. */
struct occ_producer_measurements {
    struct occ_producer_measured *rows;
    size_t n, allocated;
    uint64_t read;   /* MEASURED records taken from the log */
    uint64_t done;   /* of these, counted: by a daemon before, or with the next commit */
    uint64_t stored; /* of these, as the store knows */
};

/* A period in which less is recorded; from_ns 0: there is none at the moment. */
struct occ_producer_period {
    int64_t from_ns;
    const char *level;
    char reason[320];
    unsigned int n; /* periods so far */
};

/* How much of a command line, which may hold secrets, goes into the run's row. */
enum occ_command_lines { OCC_COMMAND_LINES_FULL, OCC_COMMAND_LINES_PROGRAM, OCC_COMMAND_LINES_NONE };

struct occ_producer_run {
    enum occ_command_lines command_lines;
    int64_t id;                 /* in the store; 0: not yet */
    struct occ_run row;         /* texts are of run_texts.h but for level and level_reason */
    bool row_changed;           /* since it was put into the store */
    bool is_name_final;         /* row.user is the user's name, or NULL for a user without one */
    bool is_without_counters;   /* hardware counters do not measure it, by its own wish */
    bool was_scheduled;         /* the scheduler's word on its job was asked for */
    bool has_offered;           /* its libcupti was offered to the sampler */
    bool is_cut;                /* the program ended before its last records were delivered */
    bool is_exact;              /* the program measures its launches itself: they are not sampled */
    char reason[320];           /* of the program's level; "" */
    const char *counters_level; /* that hardware counters give the run; NULL: none */
    char counters_reason[320];  /* why they give no better one; "" */
    struct occ_producer_period period;
    uint64_t closed_ns;   /* by the CLOSED record; 0: none */
    uint64_t losses_put;  /* sum of the losses that the store has */
    int64_t costs_due_ns; /* monotonic; they change all the time */
};

/* Whether the program lives. Times are monotonic but for last_heartbeat_ns. */
struct occ_producer_life {
    bool dead;                  /* the process has ended */
    int64_t orphan_since_ns;    /* 0: it has a connection */
    uint64_t last_heartbeat_ns; /* by the program's clock ... */
    int64_t heartbeat_seen_ns;  /* ... and when it was seen to change */
};

/* Time of day minus time since boot changes when the clock is set. Launches may have times by the clock as it
 * was at any time since the offer. */
struct occ_producer_clock {
    int64_t process_start_boot_ns; /* by the kernel; unknown: a day before the offer */
    int64_t offset_ns;             /* at the last look */
    int64_t min_offset_ns, max_offset_ns;
    int64_t uncertain_ns; /* times of launches may be off by this; 0: the clock was not set */
};

struct occ_producer {
    struct occ_producer *next;
    void *owner; /* for the collector's gone(), also while no connection is left; NULL: was called */
    enum occ_producer_state state;
    struct occ_peer peer;
    struct occ_identity identity;
    dev_t ring_dev; /* which memfd the ring is */
    ino_t ring_ino;
    uint64_t ring_bytes;
    struct occ_producer_clock clock;
    uint64_t bad_times;  /* launches that were refused for their times, */
    uint64_t nameless;   /* and those whose kernel or configuration was */
    uint64_t name_bytes; /* what its kernels and configurations take in the history, about */
    struct occ_ring_consumer *consumer;
    const struct occ_log_record *waiting_record; /* the store did not take it: again next time */
    int64_t log_cost_ns;                         /* of the records that were taken, beside their time */
    uint64_t waiting_launches;                   /* in the ring at the last look */
    bool is_drained;                             /* the last look left nothing */
    bool is_broken;                              /* in quarantine: never read again */
    uint64_t position_put;                       /* what the next commit makes durable */
    bool position_in_commit;
    struct occ_producer_life life;
    struct occ_producer_run run;
    struct occ_producer_tables tables;
    struct occ_producer_measurements measured;
};

/* Checks and maps the ring of the offer, to be read from launch `next` on; of the MEASURED records in its log
 * the first `measured` are not counted again. */
int occ_producer_new(const struct occ_offer *offer, uint64_t next, uint64_t measured,
                     struct occ_producer **ret_producer, struct occ_error *err);
/* For a store that knows nothing of it: the log is read from its beginning again, launches from where the
 * last commit ended. A ring in quarantine stays there. */
int occ_producer_restart(struct occ_producer *producer, struct occ_error *err);
/* NULL is fine. */
void occ_producer_free(struct occ_producer *producer);

/* Call it in each round with the time of day and the time since boot. */
void occ_producer_follow_clock(struct occ_producer *producer, int64_t wall_ns, int64_t boot_ns);

/* Memory of the id tables, in bytes. */
size_t occ_producer_table_bytes(const struct occ_producer *producer);

/* Puts the exact values whose launches have been read, and their number. The run's row is in the store. */
int occ_producer_put_measured(struct occ_producer *producer, struct occ_store *store, struct occ_error *err);

/* Fills in the name of the program's user if it is known by now. True: the run's row has changed. */
bool occ_producer_take_name(struct occ_producer *producer, struct occ_accounts *accounts);

/* The level that hardware counters give a traced run (NULL: none), and why it is no better one (""). */
void occ_producer_set_counters(struct occ_producer *producer, const char *level, const char *reason);

/* Puts the run's row if it changed. */
int occ_producer_put_row(struct occ_producer *producer, struct occ_store *store, struct occ_error *err);

/* Puts losses and own costs if they changed and `now_ns` allows it, or if `final`. */
int occ_producer_put_totals(struct occ_producer *producer, struct occ_store *store, int64_t now_ns,
                            bool final, struct occ_error *err);

/* Adds the losses of each cause; returns the CPU time of the recording in seconds. By the program's count. */
double occ_producer_add_totals(const struct occ_producer *producer, double lost[OCC_LOSS_COUNT]);

/* A program's time, now at most, which also keeps it within int64_t. */
int64_t occ_producer_past_ns(uint64_t time_ns);

/* Puts what is left of the run, with its end. `leaves`: the daemon ends; what a program that goes on launches
 * from now on is not known, unless another daemon takes its ring. */
int occ_producer_put_end(struct occ_producer *producer, struct occ_store *store, int64_t now_ns, bool leaves,
                         struct occ_error *err);

/* Whether a program without a connection was silent for longer than `grace_ns`. Call it in each round. */
bool occ_producer_is_lost(struct occ_producer *producer, int64_t now_ns, int64_t grace_ns);
