/*
 * The history: one SQLite file per node. Stores runs, devices, kernels, launch configurations and launches,
 * analyses each new configuration once (through occupancy/), packs launches into chunks, keeps minute and
 * hour rollups, and answers queries. This is the only place where a configuration is analysed, so that
 * traced and imported configurations cannot differ.
 *
 * Writing: occ_store_open(OCC_STORE_WRITE) ... any number of { put_*, append, ring_position } ... commit.
 * Data put between two commits becomes durable together or not at all. A store handle belongs to one
 * thread. Several processes may write the same file (SQLite's lock, 10 s), each with its own runs.
 *
 * Reading: OCC_STORE_READ never writes, sees a consistent snapshot per call, works while others write.
 *
 * Ids are SQLite row ids (> 0). Ratios are 0...1; NaN in a struct is NULL in SQL is "-" on a terminal.
 * Errors: support/error.h. OCC_E_VERSION: from a newer version; OCC_E_CORRUPT: not a database or damaged;
 * OCC_E_BUSY: locked; OCC_E_READ_ONLY; OCC_E_FULL: disk or quota full (the transaction was rolled back;
 * data put since the last commit stays in memory, up to a limit, and the next commit tries again).
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

struct occ_packed_history;

struct occ_store_options {
    enum occ_store_mode mode;
    uint32_t chunk_rows; /* rows of a full chunk; 0: 65536 */
    uint64_t max_bytes;  /* quota of the file: the oldest chunks are evicted first; 0: none */
    struct occ_store_ages ages;
    bool durable_full;        /* true: synchronous=FULL; false: NORMAL */
    uint32_t busy_timeout_ms; /* how long to wait for another process's lock; 0: 10 s */
    uint32_t cache_kib;       /* page cache in memory; 0: the default of the mode */
    struct occ_store *like; /* an open store of the same thread, to share working memory; NULL: no sharing */
    const struct occ_packed_history *empty; /* how a missing file begins (packed_history.h); NULL: by SQL */
};

/* Makes the missing file `path` from the empty history of the options, whole and synchronised. Returns false
 * if the file exists or cannot be made in this way; occ_store_open() then gives the reason. */
bool occ_store_create(const char *path, const struct occ_store_options *options);

/* Opens `path` and migrates it to this version. Write mode creates it (mode 0640) and its directories. */
int occ_store_open(const char *path, const struct occ_store_options *options, struct occ_store **ret_store,
                   struct occ_error *err);
/* The same for writing, after a temporary failure of occ_store_open(): every write fails until
 * occ_store_reopen() succeeds. */
int occ_store_open_later(const char *path, const struct occ_store_options *options,
                         struct occ_store **ret_store, struct occ_error *err);
/* An empty history in memory, to be filled by SQL on its storage and then read. */
int occ_store_open_memory(struct occ_store **ret_store, struct occ_error *err);
/* The schema version of histories that this program writes. */
int occ_store_newest_version(void);

/* The reason to open the history again, as the end of a sentence about the history: the file at the path
 * is another file than the open one, no file could be opened, or a bulk transaction has failed. NULL: no
 * reason. */
const char *occ_store_reopen_reason(const struct occ_store *store);
/* Continues with the file that is at the path now, or with a new file, like occ_store_open(). Pending data is
 * dropped, and earlier ids become invalid. After a failure every write fails until a later call succeeds. */
int occ_store_reopen(struct occ_store *store, struct occ_error *err);
/* Drops pending data: call occ_store_finish() first to keep it. NULL is allowed. */
void occ_store_close(struct occ_store *store);

/* ---- writing ---- */

/* The source of a run's launches; NULL: unknown, or not an imported recording. */
struct occ_run_source {
    const char *tool; /* "trace", "nsys", "kineto", "ncu"; NULL: trace */
    const char *version, *file, *hash;
    const char
        *time_base; /* "unknown": times do not count from 1970, and no --since finds them; NULL: epoch */
    const char *missing_fields; /* fields that the source never contains */
};

/* The libcupti that recorded the run. */
struct occ_run_cupti {
    uint32_t version;        /* 0: unknown */
    const char *path, *note; /* NULL: unknown. note: invalid variables, and unusual use of libcupti */
};

/* The job or container of a run; NULL: none, or unknown. */
struct occ_run_job {
    const char *slurm_job, *slurm_step;
    /* of slurm_job, from the program's environment */
    const char *slurm_account, *slurm_partition, *slurm_qos, *slurm_array_job, *slurm_array_task;
    const char *k8s_pod, *k8s_namespace, *k8s_pod_uid;
    const char *container; /* id of the container */
    /* source of job, step, pod and namespace: "kernel" (control groups), "scheduler" (its list of jobs on the
     * GPU), "claimed" (only the program's environment) */
    const char *trust;
    const char *claims; /* all job variables of the environment: "NAME=value ..." */
};

struct occ_run {
    uint8_t uuid[16]; /* identity: storing a run again updates its row */
    int32_t pid;
    uint32_t uid;
    int64_t start_ns;
    int64_t end_ns; /* 0: still running (or unknown); stored with its launches, by the commit */
    const char *hostname, *exe, *cmdline, *cwd, *user; /* NULL: unknown */
    const char *label, *session;
    struct occ_run_job job;
    struct occ_run_source source;
    const char *rank;         /* rank in a distributed job; NULL: none, or unknown */
    const char *level;        /* word of enum occ_level (ring_abi.h), "trace" ... */
    const char *level_reason; /* reason for this level: a level without a reason erases the old reason */
    struct occ_run_cupti cupti;
    bool simulated;
    bool uid_unknown;
};
int occ_store_put_run(struct occ_store *store, const struct occ_run *run, int64_t *ret_id,
                      struct occ_error *err);

/* Reads the uid of a run's user. OCC_E_NOT_FOUND: no such run in the history. */
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

/* A period of level "unknown" begins when a daemon ends before a run's program. occ_store_put_run() removes
 * the period: another daemon continues to read the ring, which counts its losses. */
#define OCC_STORE_UNKNOWN      "unknown"
#define OCC_STORE_DAEMON_ENDED "occtraced ended before the program did"
/* Beginning of the reason for a run's level, if the run ended before its last records were delivered: the
 * number of lost launches is unknown. */
#define OCC_STORE_CUT "lost: unknown"

/* Reason of a period of level "nothing" for which another history has the run. */
#define OCC_STORE_ELSEWHERE                                                                                  \
    "another daemon recorded the program, into another history; launches lost before this one began are "    \
    "not counted"

/* The total of a cause or quantity of a run, 0 if the history has none. */
enum occ_run_total { OCC_RUN_LOSS, OCC_RUN_COST };
int occ_store_run_total(struct occ_store *store, enum occ_run_total which, const uint8_t uuid[16],
                        const char *word, uint64_t *ret_total, struct occ_error *err);

/* The last moment for which the history has the run: its end, else the start of its last launch, else its own
 * start; and if it has a period of OCC_STORE_ELSEWHERE. OCC_E_NOT_FOUND, without a message: no such run. */
int occ_store_run_recorded(struct occ_store *store, const uint8_t uuid[16], int64_t *ret_ns,
                           bool *ret_was_elsewhere, struct occ_error *err);

/* A period with reduced recording of a run, identified by its begin (idempotent). A period that ends at its
 * begin is dropped. */
struct occ_period {
    int64_t from_ns, until_ns;  /* since the epoch; until 0: not ended */
    const char *level, *reason; /* the level of recording in the period ("nothing"), and the reason */
};
int occ_store_put_period(struct occ_store *store, int64_t run, const struct occ_period *period,
                         struct occ_error *err);

/*
 * Stores a range of a run once: the names of the open ranges at a launch, outermost first, joined by '/'; of
 * a long path the last OCC_STORE_RANGE_BYTES are kept. `phase`: "forward", "backward"; NULL: unknown.
 * Launches refer to *ret_range, which is > 0; range 0 means unknown. Once a run has OCC_STORE_RANGES_MAX
 * paths, or names have used their share of the quota, further paths are stored as "(other ranges)". The
 * caller replaces step numbers ("step 17": "step #").
 */
#define OCC_STORE_RANGES_MAX  4096
#define OCC_STORE_RANGE_BYTES 1024
int occ_store_put_range(struct occ_store *store, int64_t run, const char *path, const char *phase,
                        uint32_t *ret_range, struct occ_error *err);

struct occ_store_device {
    uint8_t uuid[16]; /* all zero: unknown; then name, limits and number are the identity */
    uint64_t number;  /* index among the GPUs of the recording */
    const char *name;
    struct occ_device limits; /* as reported, 0: unknown; the store completes unknown limits */
    uint32_t clock_khz;
    uint64_t memory_bytes;
    uint32_t driver_version;
    bool simulated;
};
int occ_store_put_device(struct occ_store *store, const struct occ_store_device *device, int64_t *ret_id,
                         struct occ_error *err);

/* Stores a kernel with its demangled and short names. `name_hash`: FNV-1a 64 of the whole mangled name, even
 * if `mangled` is cut. */
int occ_store_put_kernel(struct occ_store *store, const char *mangled, uint64_t name_hash, int64_t *ret_id,
                         struct occ_error *err);

/* Identity: all fields. `launch.grid` and so on as in occupancy.h. A configuration that the model rejects is
 * stored with the reason and NULL results. The row never changes: each version of the model has a row with an
 * id of its own. OCC_E_DENIED: names have their share of the quota, and no version has a row. */
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

/* Reads the model's result for a stored configuration: theoretical, grid_blocks, wave_blocks, warps_per_block
 * and blocks_per_sm of *ret_result. OCC_E_NOT_FOUND: no such configuration, or the model rejects it. */
int occ_store_config_model(struct occ_store *store, int64_t config, struct occ_result *ret_result,
                           struct occ_error *err);

/* A summary of a stored configuration. Texts are cut at their sizes. Numbers are 0 if the model rejects the
 * configuration. */
struct occ_config_summary {
    char kernel[64], device[64]; /* short name; the GPU model's name */
    double warps;                /* maximum of the whole GPU */
    double theoretical, expected_elapsed_low, expected_elapsed_high, cause[OCC_CAUSE_COUNT];
    bool is_refused;       /* by the model: numbers from `theoretical` on mean nothing */
    bool is_communication; /* by the kernel's name */
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
    uint32_t config; /* id from occ_store_put_config() */
    uint32_t stream;
    uint32_t correlation;
    uint32_t context;
    uint32_t range; /* from occ_store_put_range(), for the same run; 0: unknown */
};

/* Appends launches of one run on one device, in any order (best ordered by start). They wait in memory for
 * the commit. On an error no launch is appended. OCC_E_FULL: 48 MB (1 million launches) wait already: commit
 * first. */
int occ_store_append(struct occ_store *store, int64_t run, int64_t device,
                     const struct occ_store_launch *launches, size_t n, struct occ_error *err);

/* The number of launches read from a ring, and of its MEASURED records counted; durable with the next
 * commit. */
enum occ_position { OCC_POSITION_RING, OCC_POSITION_MEASURED };
int occ_store_put_position(struct occ_store *store, enum occ_position which, const uint8_t uuid[16],
                           uint64_t next, struct occ_error *err);
/* 0 and *ret_next = 0 for an unknown ring. */
int occ_store_position(struct occ_store *store, enum occ_position which, const uint8_t uuid[16],
                       uint64_t *ret_next, struct occ_error *err);

/* Makes all data stored so far durable: launches as chunks, rollups of complete minutes and hours, totals. */
int occ_store_commit(struct occ_store *store, struct occ_error *err);

/* All or nothing: data stored and committed from here to occ_store_end_bulk() becomes durable together. The
 * history is locked until then. After a failure none of it is kept and every further write fails; to abandon
 * the transaction, close the store. */
int occ_store_begin_bulk(struct occ_store *store, struct occ_error *err);
int occ_store_end_bulk(struct occ_store *store, struct occ_error *err);

/* Finds the newest run from a recording with this hash. OCC_E_NOT_FOUND: no such run. */
int occ_store_find_import(struct occ_store *store, const char *source_hash, int64_t *ret_run,
                          struct occ_error *err);

/* Replaces the label of a run that no daemon writes any more. *ret_changed: false if the run has it already.
 */
int occ_store_label_run(struct occ_store *store, int64_t run, const char *label, bool *ret_changed,
                        struct occ_error *err);

/* The achieved occupancy that a recording itself reports for a configuration; neither measured nor modelled
 * by us. */
struct occ_reported_occupancy {
    uint64_t launches;     /* launches with a reported value; 0: none */
    double mean, min, max; /* 0...1 */
};
int occ_store_put_reported(struct occ_store *store, int64_t run, int64_t config,
                           const struct occ_reported_occupancy *reported, struct occ_error *err);

/* The run gets no more launches: the next commit packs its level-0 chunks and writes its open minutes and
 * hours. */
int occ_store_end_run(struct occ_store *store, int64_t run, struct occ_error *err);

/* Ends the runs of this host (and session; NULL: all sessions) whose process is gone and whose daemon was
 * killed; runs that this handle writes are left out. Each ends with its last launch, a period of level
 * unknown begins there, and its last minutes are written. `is_alive` gets the process's pid (0: unknown) and
 * the run's start. *ret_open (may be NULL): the number of other runs of this host that stay open, since their
 * processes live. */
int occ_store_end_lost_runs(struct occ_store *store, const char *hostname, const char *session,
                            bool (*is_alive)(int64_t pid, int64_t start_ns), size_t *ret_open,
                            struct occ_error *err);

/* Chooses runs inside the transaction that removes them, so that no run changes in between. An error ends the
 * transaction, and no run is removed. The chooser owns the list of numbers. */
struct occ_run_chooser {
    int (*choose)(void *context, struct occ_store *store, const int64_t **ret_runs, size_t *ret_n,
                  struct occ_error *err);
    void *context;
};

/* Removes ended runs with all their data, in one transaction, and shrinks the file. Kernels and launch
 * configurations stay, and so do the keys that the shipper needs to empty these runs' rows in the warehouse.
 * No daemon may write to these runs any more. */
int occ_store_remove_runs(struct occ_store *store, const struct occ_run_chooser *chooser, int64_t now_ns,
                          struct occ_error *err);

/* True if the file is useless: retention has left only names and runs older than the oldest age, none
 * imported, and the shipper has no minute to send. Change numbers of runs do not count: a run keeps its
 * number as long as its row. */
bool occ_store_is_spent(struct occ_store *store, int64_t now_ns);

/* Ends every run of this handle, commits, and empties the write-ahead log. */
int occ_store_finish(struct occ_store *store, struct occ_error *err);

/* Sets another quota and other ages; occ_store_maintain() then shrinks a file that is too large. */
int occ_store_set_limits(struct occ_store *store, uint64_t max_bytes, const struct occ_store_ages *ages,
                         struct occ_error *err);

/* Does one step of maintenance, some milliseconds long: writes the minutes of inactive runs, deletes data
 * that is too old at `now_ns` (since the epoch; imported recordings have no age), and shrinks a file above
 * its quota. *ret_more: more steps are needed. */
int occ_store_maintain(struct occ_store *store, int64_t now_ns, bool *ret_more, struct occ_error *err);

/* Memory of pending launches, in bytes. */
uint64_t occ_store_memory_bytes(const struct occ_store *store);

/* The file of a writing handle, without its log. */
struct occ_store_stats {
    uint64_t bytes, quota_bytes; /* quota 0: none */
    uint64_t evicted_chunks;     /* chunks of launches and samples that this handle evicted for the quota */
    int64_t oldest_ns;           /* last start in the oldest chunk of launches; 0: no chunk */
};
void occ_store_get_stats(struct occ_store *store, struct occ_store_stats *ret_stats);

/* ---- queries ---- */

/* Number of launches in one bin of durations. */
struct occ_duration_bin {
    uint64_t from_ns, until_ns, launches; /* from <= duration < until */
};
struct occ_duration_bins {
    const struct occ_duration_bin *list; /* non-empty bins, ascending; eight bins make an octave */
    size_t n;
};

/* The same as the members of struct occ_top_row. */
struct occ_waste {
    double warp_seconds, measured_ratio;
};

/* All data about a launch configuration: identity, limits, analysis, totals of its launches, measured
 * values. */
struct occ_config_row {
    int64_t id;
    struct occ_row_kernel kernel;
    struct occ_launch launch;
    uint32_t local_bytes_per_thread;
    struct occ_device limits;
    uint32_t model_version; /* OCC_MODEL_VERSION of the program that made `result` and `refused` */
    bool analysed;          /* false: `result` is zero, */
    const char *refused;    /* and this is the reason */
    struct occ_result result;
    uint64_t launches, total_ns, min_ns, max_ns;
    uint64_t p50_ns, p95_ns, p99_ns; /* from the histogram, at most 12.5 % off */
    struct occ_duration_bins durations;
    int64_t first_ns, last_ns; /* first and last start */
    struct occ_waste waste;
    struct occ_measured_sums measured;      /* sums over whole minutes */
    double measurable_ns;                   /* time of all launches in the minutes of `measured` */
    struct occ_reported_occupancy reported; /* reported by recordings among the filter's runs */
    const char
        /* fields that the recordings of its runs never contain; NULL: none, or no imported run */
        *missing_fields;
    const char *source; /* tool that made the recordings; NULL: no run is imported */
    /* from the newest report that has this kernel in this configuration on a GPU with the same compute
     * capability and number of SMs; reports of the filter's run come first */
    struct occ_ncu_values ncu;
    struct occ_config_use use; /* unknown until occ_store_add_uses() */
};
struct occ_config_rows {
    struct occ_config_row *rows; /* ordered by kernel, then device, then total_ns descending */
    size_t n;
    void *memory;
};
/* Ids of the kernels that match the filter's kernel, kernel_regex and exclude_regex: keys of the map. */
int occ_store_choose_kernels(struct occ_store *store, const struct occ_filter *filter,
                             struct occ_map *ret_kernels, struct occ_error *err);
/* The same for ranges that match a text, such as a filter's range_regex: keys are occ_range_key(). */
int occ_store_choose_ranges(struct occ_store *store, const char *text, struct occ_map *ret_ranges,
                            struct occ_error *err);
static inline uint64_t occ_range_key(int64_t run, uint64_t range)
{
    return (uint64_t)run << 32 | (uint32_t)range;
}

int occ_store_configs(struct occ_store *store, const struct occ_filter *filter,
                      struct occ_config_rows *ret_configs, struct occ_error *err);
/* The same for given configurations without reading launches: the caller knows their totals. The rows lack
 * durations and first and last start. */
struct occ_config_total {
    int64_t config;
    uint64_t launches, total_ns;
};
int occ_store_configs_of(struct occ_store *store, const struct occ_filter *filter,
                         const struct occ_config_total *totals, size_t n, struct occ_config_rows *ret_configs,
                         struct occ_error *err);
/* Reads one configuration: identity, limits and analysis, without data of its launches. No row: no such
 * configuration. */
int occ_store_read_config(struct occ_store *store, int64_t config, struct occ_config_rows *ret_config,
                          struct occ_error *err);
void occ_config_rows_free(struct occ_config_rows *configs);
/* Adds the configurations' use of their GPUs in the seconds before the first row's last launch, in the
 * filter's run; 0: in the newest run of the first row. */
int occ_store_add_uses(struct occ_store *store, const struct occ_filter *filter,
                       struct occ_config_rows *configs, struct occ_error *err);

/* Counts runs whose times do not count from 1970: a filter with since or until excludes them. */
int occ_store_count_unknown_time_base(struct occ_store *store, uint64_t *ret_runs, struct occ_error *err);

/* Number of recorded launches, over all runs of a session; 0 for an unknown session. */
int occ_store_session_launches(struct occ_store *store, const char *session, uint64_t *ret_launches,
                               struct occ_error *err);

/* The connection, with the virtual tables `launch` and `device_sample`: for `sql` and `launches`. */
struct sqlite3 *occ_store_sqlite(struct occ_store *store);

/* Registers the virtual tables on any connection, like the loadable extension. SQLite's result code. */
int occ_store_register(struct sqlite3 *db);
