/*
 * The history: one SQLite file per node. Stores runs, devices, kernels, launch configurations and launches,
 * analyses each new configuration once (through occupancy/), packs launches into chunks, keeps minute and
 * hour rollups, and answers queries. This is the only place where a configuration is analysed, so that what
 * was traced and what was imported cannot differ.
 *
 * Writing: occ_store_open(OCC_STORE_WRITE) ... any number of { put_*, append, ring_position } ... commit.
 * What is put between two commits becomes durable together or not at all. A store handle belongs to one
 * thread. Several processes may write the same file (SQLite's lock, 10 s), each with its own runs.
 *
 * Reading: OCC_STORE_READ never writes, sees a consistent snapshot per call, works while others write.
 *
 * Ids are SQLite row ids (> 0). Ratios are 0...1; NaN in a struct is NULL in SQL is "-" on a terminal.
 * Errors: support/error.h. OCC_E_VERSION: from a newer version; OCC_E_CORRUPT: not a database or damaged;
 * OCC_E_BUSY: locked; OCC_E_READ_ONLY; OCC_E_FULL: disk or quota full (the transaction was rolled back, what
 * was put since the last commit stays in memory and is tried again with the next commit, up to a limit).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter.h"
#include "gaps.h"
#include "measured.h"
#include "occupancy/occupancy.h"
#include "support/error.h"
#include "support/map.h"
#include "top.h"

struct occ_store;
struct sqlite3;

enum occ_store_mode { OCC_STORE_READ, OCC_STORE_WRITE };

/* How long parts of the history are kept, in nanoseconds; 0: no limit. Nothing is kept longer than hours. */
struct occ_store_ages {
    int64_t raw_ns; /* launches, their values, and samples */
    int64_t seconds_ns, minutes_ns, hours_ns;
};

struct occ_store_options {
    enum occ_store_mode mode;
    uint32_t chunk_rows; /* rows of a full chunk; 0: 65536 */
    uint64_t max_bytes;  /* quota of the file: the oldest chunks are evicted first; 0: none */
    struct occ_store_ages ages;
    bool durable_full;        /* synchronous=FULL instead of NORMAL */
    uint32_t busy_timeout_ms; /* how long to wait for another process's lock; 0: 10 s */
    uint32_t cache_kib;       /* pages of the file in memory; 0: what suits the mode */
    struct occ_store *like;   /* open, of the same thread: working memory is shared with it; NULL: is not */
};

/* Opens `path` and migrates it to this version. Write mode creates it (mode 0640) and its directories. */
int occ_store_open(const char *path, const struct occ_store_options *options, struct occ_store **ret_store,
                   struct occ_error *err);
/* The same for writing, where occ_store_open() failed for a reason that passes: every write fails until
 * occ_store_reopen() succeeds. */
int occ_store_open_later(const char *path, const struct occ_store_options *options,
                         struct occ_store **ret_store, struct occ_error *err);
/* An empty history in memory, to be filled by SQL on its storage and then read. */
int occ_store_open_memory(struct occ_store **ret_store, struct occ_error *err);
/* The schema of histories that this version writes. */
int occ_store_newest_version(void);

/* Why the history is to be opened anew, as the end of a sentence about it: the file at the path is not the
 * one that is open, none could be opened, or a bulk transaction has failed. NULL: it is not. */
const char *occ_store_reopen_reason(const struct occ_store *store);
/* Goes on with the file that is at the path now, or a new one, as after occ_store_open(): what is pending is
 * dropped, and no id that was given before is valid. Where that fails, so does every write until a later call
 * succeeds. */
int occ_store_reopen(struct occ_store *store, struct occ_error *err);
/* Drops what is pending: call occ_store_finish() first to keep it. NULL is fine. */
void occ_store_close(struct occ_store *store);

/* ---- writing ---- */

/* Where a run's launches come from; NULL: unknown, or not of an imported recording. */
struct occ_run_source {
    const char *tool; /* "trace", "nsys", "kineto", "ncu"; NULL: trace */
    const char *version, *file, *hash;
    const char
        *time_base; /* "unknown": times do not count from 1970, and no --since finds them; NULL: epoch */
    const char *missing_fields; /* what the source never contains */
};

/* The libcupti that recorded it. */
struct occ_run_cupti {
    uint32_t version;        /* 0: unknown */
    const char *path, *note; /* NULL: unknown. note: of variables, and how it is used */
};

/* What a run is part of; NULL: nothing of the kind, or unknown. */
struct occ_run_job {
    const char *slurm_job, *slurm_step;
    const char *k8s_pod, *k8s_namespace, *k8s_pod_uid;
    const char *container; /* id */
    const char *trust;     /* of job, step, pod and namespace: "kernel", by control groups; "scheduler", by
                              the jobs that it gives the GPU; "claimed", the
                              program's environment alone says so */
    const char *claims;    /* all that the environment has of a job: "NAME=value ..." */
};

struct occ_run {
    uint8_t uuid[16]; /* identity: putting a run again updates its row */
    int32_t pid;
    uint32_t uid;
    int64_t start_ns;
    int64_t end_ns; /* 0: still going (or unknown); stored with its launches, by the commit */
    const char *hostname, *exe, *cmdline, *cwd, *user; /* NULL: unknown */
    const char *label, *session;
    struct occ_run_job job;
    struct occ_run_source source;
    const char *rank;         /* of a distributed job; NULL: none, or unknown */
    const char *level;        /* word of enum occ_level (ring_abi.h), "trace" ... */
    const char *level_reason; /* of this level: putting a level without one erases the old one's */
    struct occ_run_cupti cupti;
    bool simulated;
    bool uid_unknown;
};
int occ_store_put_run(struct occ_store *store, const struct occ_run *run, int64_t *ret_id,
                      struct occ_error *err);

/* The uid of a run's user. OCC_E_NOT_FOUND: the history has no such run. */
int occ_store_run_user(struct occ_store *store, const uint8_t uuid[16], uint32_t *ret_uid,
                       struct occ_error *err);

/* Totals by cause, absolute (idempotent). `causes` are words ("ring_full"). */
struct occ_loss {
    const char *cause;
    uint64_t count;
};
int occ_store_put_losses(struct occ_store *store, int64_t run, const struct occ_loss *losses, size_t n,
                         struct occ_error *err);
/* Overhead: absolute totals by quantity ("helper_cpu_ns"). */
struct occ_cost_total {
    const char *what;
    uint64_t total;
};
int occ_store_put_costs(struct occ_store *store, int64_t run, const struct occ_cost_total *costs, size_t n,
                        struct occ_error *err);

/* A period of level "unknown" begins where a daemon left a run whose program goes on. occ_store_put_run()
 * drops it: another daemon reads the ring, which counts what it loses. */
#define OCC_STORE_UNKNOWN      "unknown"
#define OCC_STORE_DAEMON_ENDED "occtraced ended before the program did"
/* How the reason of a run's level begins that ended before its last records were delivered: nobody knows what
 * was lost. */
#define OCC_STORE_CUT "lost: unknown"

/* A period in which less of a run was recorded, by its begin (idempotent). One that ends when it begins is
 * dropped. */
struct occ_period {
    int64_t from_ns, until_ns;  /* since the epoch; until 0: it goes on */
    const char *level, *reason; /* what was recorded meanwhile ("nothing"), and why */
};
int occ_store_put_period(struct occ_store *store, int64_t run, const struct occ_period *period,
                         struct occ_error *err);

/*
 * Interns a range of a run: the names of the ranges that were open when something was launched, outermost
 * first, joined by '/'; of a long path the last OCC_STORE_RANGE_BYTES are kept. `phase`: "forward",
 * "backward"; NULL: not known. Launches refer to *ret_range, which is > 0; their range 0 is not known. Each
 * further path of a run with OCC_STORE_RANGES_MAX of them, or of a history whose names have their share of
 * the quota, is "(other ranges)". Replacing the numbers of steps ("step 17": "step #") is up to the caller.
 */
#define OCC_STORE_RANGES_MAX  4096
#define OCC_STORE_RANGE_BYTES 1024
int occ_store_put_range(struct occ_store *store, int64_t run, const char *path, const char *phase,
                        uint32_t *ret_range, struct occ_error *err);

struct occ_store_device {
    uint8_t uuid[16]; /* all zero: unknown; then name, limits and number are the identity */
    uint64_t number;  /* among the GPUs of its recording */
    const char *name;
    struct occ_device limits; /* as reported, 0 = unknown; the store completes them */
    uint32_t clock_khz;
    uint64_t memory_bytes;
    uint32_t driver_version;
    bool simulated;
};
int occ_store_put_device(struct occ_store *store, const struct occ_store_device *device, int64_t *ret_id,
                         struct occ_error *err);

/* Demangles and shortens the name. `name_hash`: FNV-1a 64 of the whole mangled name, also where `mangled` is
 * cut. */
int occ_store_put_kernel(struct occ_store *store, const char *mangled, uint64_t name_hash, int64_t *ret_id,
                         struct occ_error *err);

/* Identity: all fields. `launch.grid` and so on as in occupancy.h. A configuration that the model refuses is
 * stored with its reason and NULL results. */
struct occ_launch_config {
    int64_t kernel;
    int64_t device;
    struct occ_launch launch;
    uint32_t local_bytes_per_thread;
    uint32_t max_cluster_size;
    uint8_t launch_type;
    uint8_t cache_config;
    uint8_t device_launched;
};
int occ_store_put_config(struct occ_store *store, const struct occ_launch_config *config, int64_t *ret_id,
                         struct occ_error *err);

/* The model's result for a stored configuration: theoretical, grid_blocks, wave_blocks, warps_per_block and
 * blocks_per_sm of *ret_result. OCC_E_NOT_FOUND: no such configuration, or the model refuses it. */
int occ_store_config_model(struct occ_store *store, int64_t config, struct occ_result *ret_result,
                           struct occ_error *err);

/* A stored configuration in a few words and numbers. Texts are cut at their sizes. Numbers are 0 where the
 * model refuses it. */
struct occ_config_summary {
    char kernel[64], device[64]; /* short name; the GPU model's name */
    double warps;                /* that the whole GPU can hold */
    double theoretical, expected_elapsed_low, expected_elapsed_high, cause[OCC_CAUSE_COUNT];
};
int occ_store_summarize_config(struct occ_store *store, int64_t config,
                               struct occ_config_summary *ret_summary, struct occ_error *err);

/* Times of a launch: the last day before 2^63 is refused, because ends of minutes and hours are computed from
 * starts. */
#define OCC_STORE_START_MAX_NS (INT64_MAX - INT64_C(86400000000000))
static inline bool occ_store_times_are_valid(int64_t start_ns, uint64_t duration_ns)
{
    return start_ns > 0 && start_ns <= OCC_STORE_START_MAX_NS &&
           duration_ns <= (uint64_t)(INT64_MAX - start_ns);
}

/* A launch on its way into the history, with valid times. */
struct occ_store_launch {
    int64_t start_ns;
    uint64_t duration_ns;
    uint64_t graph_node;
    uint32_t config; /* id from occ_store_put_config */
    uint32_t stream;
    uint32_t correlation;
    uint32_t context;
    uint32_t range; /* from occ_store_put_range, of the same run; 0: not known */
};

/* Launches of one run on one device, any order (best ordered by start). Kept in memory until commit; all of
 * them or, on an error, none. OCC_E_FULL: 48 MB (1 million launches) wait already: commit first. */
int occ_store_append(struct occ_store *store, int64_t run, int64_t device,
                     const struct occ_store_launch *launches, size_t n, struct occ_error *err);

/* How far a ring was read, and how many of its MEASURED records count; durable with the next commit. */
enum occ_position { OCC_POSITION_RING, OCC_POSITION_MEASURED };
int occ_store_put_position(struct occ_store *store, enum occ_position which, const uint8_t uuid[16],
                           uint64_t next, struct occ_error *err);
/* 0 and *ret_next = 0 for a ring never seen. */
int occ_store_position(struct occ_store *store, enum occ_position which, const uint8_t uuid[16],
                       uint64_t *ret_next, struct occ_error *err);

/* Makes everything put so far durable: launches as chunks, rollups of minutes and hours that are over,
 * totals. */
int occ_store_commit(struct occ_store *store, struct occ_error *err);

/* All or nothing: what is put and committed from here to occ_store_end_bulk() becomes durable together. The
 * history's lock is held meanwhile. After a failure nothing of it is kept and every further write fails; to
 * give up, close the store. */
int occ_store_begin_bulk(struct occ_store *store, struct occ_error *err);
int occ_store_end_bulk(struct occ_store *store, struct occ_error *err);

/* The newest run that came from a recording with this hash. OCC_E_NOT_FOUND: none did. */
int occ_store_find_import(struct occ_store *store, const char *source_hash, int64_t *ret_run,
                          struct occ_error *err);

/* The achieved occupancy that a recording itself reports for a configuration; neither measured nor modelled
 * here. */
struct occ_reported_occupancy {
    uint64_t launches;     /* with a reported value; 0: none */
    double mean, min, max; /* 0...1 */
};
int occ_store_put_reported(struct occ_store *store, int64_t run, int64_t config,
                           const struct occ_reported_occupancy *reported, struct occ_error *err);

/* The run gets no more launches: the next commit packs its level-0 chunks and writes its open minutes and
 * hours. */
int occ_store_end_run(struct occ_store *store, int64_t run, struct occ_error *err);

/* Before anything is recorded: runs of this host (and session, NULL: of all) whose process is no longer there
 * (by `is_alive`, which takes its pid, 0 if that is unknown, and the run's start) end with their last launch,
 * from which on a period of level unknown begins, and their last minutes are written: their daemon was
 * killed. */
int occ_store_end_lost_runs(struct occ_store *store, const char *hostname, const char *session,
                            bool (*is_alive)(int64_t pid, int64_t start_ns), struct occ_error *err);

/* Chooses runs in the transaction that removes them, so that no run changes in between: an error ends it, and
 * nothing is removed. The numbers stay the chooser's. */
struct occ_run_chooser {
    int (*choose)(void *context, struct occ_store *store, const int64_t **ret_runs, size_t *ret_n,
                  struct occ_error *err);
    void *context;
};

/* Removes ended runs with everything that belongs to them, in one transaction, and makes the file smaller.
 * Kernels and launch configurations stay, and so do the keys by which the shipper empties these runs' rows in
 * the warehouse. No daemon may write to these runs any more. */
int occ_store_remove_runs(struct occ_store *store, const struct occ_run_chooser *chooser, int64_t now_ns,
                          struct occ_error *err);

/* Whether its ages have left nothing but names and runs that are older than the oldest age, none imported,
 * and the shipper has no minute to send: the file is of no use. Numbers of changed runs count for nothing: a
 * run keeps one as long as its row. */
bool occ_store_is_spent(struct occ_store *store, int64_t now_ns);

/* Ends every run of this handle, commits, and empties the write-ahead log. */
int occ_store_finish(struct occ_store *store, struct occ_error *err);

/* Another quota and other ages from now on; occ_store_maintain() makes a file that is too large smaller. */
int occ_store_set_limits(struct occ_store *store, uint64_t max_bytes, const struct occ_store_ages *ages,
                         struct occ_error *err);

/* One step of some milliseconds: writes the minutes of runs that launch nothing more, deletes what is too old
 * at `now_ns` (since the epoch; imported recordings have no age), and makes a file above its quota smaller.
 * *ret_more: there is more to do. */
int occ_store_maintain(struct occ_store *store, int64_t now_ns, bool *ret_more, struct occ_error *err);

/* Memory of the launches that wait for a commit, in bytes. */
uint64_t occ_store_memory_bytes(const struct occ_store *store);

/* The file of a handle that writes, without its log. */
struct occ_store_stats {
    uint64_t bytes, quota_bytes; /* quota 0: none */
    uint64_t evicted_chunks;     /* by this handle: of launches, and of samples */
    int64_t oldest_ns;           /* the last start in the oldest chunk of launches; 0: there is none */
};
void occ_store_get_stats(struct occ_store *store, struct occ_store_stats *ret_stats);

/* ---- queries ---- */

/* Launches by duration: of one bin of the histogram. */
struct occ_duration_bin {
    uint64_t from_ns, until_ns, launches; /* from <= duration < until */
};
struct occ_duration_bins {
    const struct occ_duration_bin *list; /* those with launches, ascending; eight make an octave */
    size_t n;
};

/* As occ_top_row's. */
struct occ_waste {
    double warp_seconds, measured_ratio;
};

/* Everything about a launch configuration: identity, limits, analysis, totals of its launches, measured
 * values. */
struct occ_config_row {
    int64_t id;
    struct occ_row_kernel kernel;
    struct occ_launch launch;
    uint32_t local_bytes_per_thread;
    struct occ_device limits;
    uint32_t
        model_version; /* of `result` and `refused`: the OCC_MODEL_VERSION of the program that analysed it */
    bool analysed;     /* else `result` is zero, */
    const char *refused; /* and this is why */
    struct occ_result result;
    uint64_t launches, total_ns, min_ns, max_ns;
    uint64_t p50_ns, p95_ns, p99_ns; /* from the histogram, at most 12.5 % off */
    struct occ_duration_bins durations;
    int64_t first_ns, last_ns; /* first and last start */
    struct occ_waste waste;
    struct occ_measured_sums measured;      /* by whole minutes */
    double measurable_ns;                   /* time of all launches that `measured` could be of */
    struct occ_reported_occupancy reported; /* by the recordings among the filter's runs */
    const char
        *missing_fields; /* what the recordings of its runs never contain; NULL: nothing, or none imported */
    const char *source;  /* the recordings' tool; NULL: none of the runs is imported */
    /* of the newest report with this kernel in this configuration on a GPU with as many SMs of the same
     * compute capability; the filter's run goes first */
    struct occ_ncu_values ncu;
    struct occ_config_use use; /* not known until occ_store_add_uses() */
};
struct occ_config_rows {
    struct occ_config_row *rows; /* by kernel, then device; of these by total_ns, descending */
    size_t n;
    void *memory;
};
/* Numbers of the kernels that the filter's kernel, kernel_regex and exclude_regex choose: keys of the map. */
int occ_store_choose_kernels(struct occ_store *store, const struct occ_filter *filter,
                             struct occ_map *ret_kernels, struct occ_error *err);
/* The same of the ranges that a text chooses, a filter's range_regex: keys are occ_range_key(). */
int occ_store_choose_ranges(struct occ_store *store, const char *text, struct occ_map *ret_ranges,
                            struct occ_error *err);
static inline uint64_t occ_range_key(int64_t run, uint64_t range)
{
    return (uint64_t)run << 32 | (uint32_t)range;
}

int occ_store_configs(struct occ_store *store, const struct occ_filter *filter,
                      struct occ_config_rows *ret_configs, struct occ_error *err);
void occ_config_rows_free(struct occ_config_rows *configs);
/* Adds how the configurations used their GPUs in the last seconds of the filter's run, else the newest run of
 * the first row. */
int occ_store_add_uses(struct occ_store *store, const struct occ_filter *filter,
                       struct occ_config_rows *configs, struct occ_error *err);

/* Runs whose times do not count from 1970: a filter with since or until leaves them out. */
int occ_store_count_unknown_time_base(struct occ_store *store, uint64_t *ret_runs, struct occ_error *err);

/* Launches recorded of all runs of a session. */
int occ_store_session_launches(struct occ_store *store, const char *session, uint64_t *ret_launches,
                               struct occ_error *err);

/* The connection, with the virtual tables `launch` and `device_sample`: for `sql` and `launches`. */
struct sqlite3 *occ_store_sqlite(struct occ_store *store);

/* Registers the virtual tables on any connection, as the loadable extension does. SQLite's result code. */
int occ_store_register(struct sqlite3 *db);
