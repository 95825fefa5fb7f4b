/* One program: its ring, its identity, its run, and the tables from the ring's ids to the history's ids.
 * Created when the program offers its ring, freed after its run has ended and was committed (collector.h).
 * One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/owners/accounts.h"
#include "daemon/owners/identity.h"
#include "ring/consumer.h"
#include "store/holes.h"
#include "store/measured.h"
#include "store/store.h"
#include "support/error.h"

/* The other end of a connection (SO_PEERCRED). pid 0: the process is in a pid namespace that the daemon
 * cannot see. */
struct occ_peer {
    int32_t pid;
    uint32_t uid;
};

/* A program's handshake. */
struct occ_offer {
    int fd; /* the ring's memfd; the function that takes the offer owns it */
    struct occ_peer peer;
    const struct occ_identity *identity; /* identity of the peer; NULL: unknown */
    uint8_t uuid[16];                    /* uuid of the ring according to the program */
    void *owner;                         /* argument of the collector's gone() */
};

enum occ_producer_state {
    OCC_PRODUCER_LIVE,  /* the ring is read */
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
    uint32_t memory;  /* occ_producer_memory(): the store does not have it; 0: a kernel's configuration */
};

/* Identifies memory operations: OCC_KERNEL_FILL or _COPY, and a size class. */
static inline uint32_t occ_producer_memory(uint32_t flags, uint32_t size_class)
{
    return flags | (size_class & 255) << 8;
}

/* Tables from the ring's ids (index) to the history's ids (0: refused; a kernel below 0: memory operations,
 * the negative flag). */
struct occ_producer_tables {
    struct occ_producer_device *devices;
    int64_t *kernels;
    struct occ_producer_config *configs;
    uint32_t *ranges;
    size_t n_devices, n_kernels, n_configs, n_ranges;
    size_t devices_allocated, kernels_allocated, configs_allocated, ranges_allocated;
};

/* Exact values (--exact) of a group of launches. */
struct occ_producer_measured {
    uint64_t head;   /* ring position after these launches: the values are stored once it was read */
    uint64_t number; /* number of the MEASURED record */
    int64_t minute;
    uint32_t config; /* in the store; 0: another daemon has stored the values */
    struct occ_measured_sums sums;
};

/* Exact values whose launches have not been read yet. */
struct occ_producer_measurements {
    struct occ_producer_measured *rows;
    size_t n, allocated;
    uint64_t read;   /* number of MEASURED records taken from the log */
    uint64_t done;   /* number of the first record not counted yet by this daemon or an earlier one */
    uint64_t stored; /* the same number as last written to the store */
};

/* A period of reduced recording. from_ns 0: no current period. */
struct occ_producer_period {
    int64_t from_ns;
    const char *level;
    char reason[320];
    unsigned int n; /* number of periods since the start of the run */
};

/* How much of a command line, which may hold secrets, goes into the run's row. */
enum occ_command_lines { OCC_COMMAND_LINES_FULL, OCC_COMMAND_LINES_PROGRAM, OCC_COMMAND_LINES_NONE };

struct occ_producer_run {
    enum occ_command_lines command_lines;
    int64_t id;               /* in the store; 0: not yet */
    struct occ_run row;       /* run_texts.h owns its texts except level and level_reason */
    bool row_changed;         /* changed since the last write to the store */
    bool is_name_final;       /* row.user is the user's name, or NULL if there is none */
    bool is_without_counters; /* the guest asked for no hardware counters */
    bool was_scheduled;       /* the scheduler was asked for the run's job */
    bool has_offered;         /* the run's libcupti was offered to the sampler */
    bool is_cut;              /* the program ended before its last records were delivered */
    /* the guest measures its launches exactly (--exact): hardware counters do not sample them */
    bool is_exact;
    char reason[320];           /* reason of the program's level; "": none */
    const char *counters_level; /* level that hardware counters give the run; NULL: none */
    char counters_reason[320];  /* reason why the counters' level is reduced; "": none */
    struct occ_producer_period period;
    struct occ_holes holes; /* periods without recording, or with partial recording */
    bool has_new_holes;     /* `holes` has changed since the collector's last call of leveled() */
    uint64_t closed_ns;     /* time of the CLOSED record; 0: none */
    uint64_t losses_put;    /* sum of the losses last written to the store */
    int64_t costs_due_ns;   /* monotonic time of the next write of costs */
};

/* Signs of life of the program. Times are monotonic except last_heartbeat_ns. */
struct occ_producer_life {
    bool dead;                  /* the process has ended */
    int64_t orphan_since_ns;    /* loss of the connection; 0: connected */
    uint64_t last_heartbeat_ns; /* by the program's clock */
    int64_t heartbeat_seen_ns;  /* monotonic time of its last change */
};

/* Offset: time of day minus time since boot. It changes when the clock is set; a launch may have any offset
 * seen since the offer. */
struct occ_producer_clock {
    int64_t process_start_boot_ns; /* as the kernel reports it; unknown: a day before the offer */
    int64_t offset_ns;             /* in the last round */
    int64_t min_offset_ns, max_offset_ns;
    int64_t uncertain_ns; /* possible error of launch times; 0: the clock was not set */
};

/* A total of the ring when this daemon began, and the run's total in the history then. */
struct occ_elsewhere_total {
    uint64_t ring, kept;
};

/* The part of the run that another daemon recorded, into another history (elsewhere.h); all 0: none. */
struct occ_producer_elsewhere {
    int64_t from_ns, until_ns; /* nothing was recorded here */
    bool is_new;               /* this time is not in the store yet */
    uint64_t low, high;        /* launches low...high-1 were released by the other daemon */
    struct occ_elsewhere_total losses[OCC_LOSS_COUNT], costs[OCC_COST_COUNT];
};

struct occ_producer {
    struct occ_producer *next;
    /* argument of the collector's gone(), also after the connection is lost; NULL: gone() was called */
    void *owner;
    enum occ_producer_state state;
    struct occ_peer peer;
    struct occ_identity identity;
    dev_t ring_dev; /* identifies the ring's memfd */
    ino_t ring_ino;
    uint64_t ring_bytes;
    struct occ_producer_clock clock;
    uint64_t bad_times;      /* launches dropped because of impossible times */
    uint64_t refused_config; /* launches dropped because the store refused their kernel or configuration */
    uint64_t name_bytes;     /* approximate size of its kernels and configurations in the history */
    struct occ_ring_consumer *consumer;
    const struct occ_log_record *waiting_record; /* the store failed to take it; the next poll repeats it */
    int64_t log_cost_ns;       /* surcharge for reading the log: by time, and by bytes of records */
    uint64_t waiting_launches; /* in the ring at the last poll */
    bool is_drained;           /* the last poll read all launches */
    bool is_broken;            /* in quarantine: never read again */
    uint64_t position_put;     /* position that the next commit makes durable */
    bool position_in_commit;
    struct occ_producer_life life;
    struct occ_producer_run run;
    struct occ_producer_tables tables;
    struct occ_producer_measurements measured;
    struct occ_producer_elsewhere elsewhere;
};

/* Checks and maps the ring of the offer and starts reading at launch `next`. The first `measured` MEASURED
 * records in its log were counted before and are skipped. */
int occ_producer_new(const struct occ_offer *offer, uint64_t next, uint64_t measured,
                     struct occ_producer **ret_producer, struct occ_error *err);
/* Restarts with an empty store: reads the log again from its beginning, and launches from the last commit on.
 * A ring in quarantine stays in quarantine. */
int occ_producer_restart(struct occ_producer *producer, struct occ_error *err);
/* NULL is allowed. */
void occ_producer_free(struct occ_producer *producer);

/* Call it in each round with the time of day and the time since boot. Detects steps of the clock. */
void occ_producer_follow_clock(struct occ_producer *producer, int64_t wall_ns, int64_t boot_ns);

/* Memory of the tables of devices, kernels and configurations and of waiting measured values, in bytes. */
size_t occ_producer_table_bytes(const struct occ_producer *producer);

/* Writes the exact values whose launches have been read, and their number. The run's row must be in the
 * store. */
int occ_producer_put_measured(struct occ_producer *producer, struct occ_store *store, struct occ_error *err);

/* Fills in the name of the program's user once it is resolved: the name of the host's user who owns the
 * program, also under a subordinate uid. A program in a pod, or in a container that is no user's own, gets no
 * name, since the uids inside mean nothing outside. true: the run's row has changed. */
bool occ_producer_take_name(struct occ_producer *producer, struct occ_accounts *accounts);

/* The level that hardware counters give a traced run (NULL: none) and the reason if it is reduced (""):
 * none. */
void occ_producer_set_counters(struct occ_producer *producer, const char *level, const char *reason);

/* Asks the program for its memory operations if hardware counters measure its launches at present; else no
 * longer. */
void occ_producer_want_memory(struct occ_producer *producer, bool is_measured);

/* Writes the run's row if it changed. */
int occ_producer_put_row(struct occ_producer *producer, struct occ_store *store, struct occ_error *err);

/* Writes losses if they changed, costs if `now_ns` is past their interval; both if `final`. */
int occ_producer_put_totals(struct occ_producer *producer, struct occ_store *store, int64_t now_ns,
                            bool final, struct occ_error *err);

/* Adds the losses by cause to `lost` and returns the CPU time of recording in seconds, both by the program's
 * counters. */
double occ_producer_add_totals(const struct occ_producer *producer, double lost[OCC_LOSS_COUNT]);

/* Returns the launches that the program and the daemon have lost so far. */
uint64_t occ_producer_lost(const struct occ_producer *producer);

/* A time from the program, limited to now; the limit keeps it within int64_t. */
int64_t occ_producer_past_ns(uint64_t time_ns);

/* Writes the rest of the run with its end. `leaves`: the daemon stops while the program may go on; later
 * launches are unknown unless another daemon takes the ring. */
int occ_producer_put_end(struct occ_producer *producer, struct occ_store *store, int64_t now_ns, bool leaves,
                         struct occ_error *err);

/* true if a program without a connection was silent for longer than `grace_ns`. Call it in each round. */
bool occ_producer_is_lost(struct occ_producer *producer, int64_t now_ns, int64_t grace_ns);
