/*
 * The node's cumulative sums for OpenTelemetry: a SQLite file. A pass is one transaction and adds the minutes
 * that the histories have changed, stores how far each history was read, and bounds the number of series. The
 * sums alone decide the numbers of a request, so that a repeated request repeats the same numbers, and a
 * failed pass leaves no trace. If the file is lost, sums begin again at 0 with a later start time. One
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "support/error.h"

struct sqlite3;
struct occ_sums;

/* Limits of the series: jobs, GPUs and kernels with names of their own, by GPU time with a half-life of an
 * hour. All other names are added up under the name "(other)"; launches without a job have the job "(none)".
 * A place is lost to a name with PLACE_MARGIN times the GPU time, or after OCC_SUMS_IDLE_MINUTES without a
 * launch. SERIES: pairs of job and GPU x kernel; a new pair beyond the limit counts for the kernel "(other)".
 */
#define OCC_SUMS_JOBS         16
#define OCC_SUMS_GPUS         32
#define OCC_SUMS_KERNELS      20
#define OCC_SUMS_SERIES       1500
#define OCC_SUMS_IDLE_MINUTES 60
#define OCC_SUMS_OTHER        "(other)"
#define OCC_SUMS_NO_JOB       "(none)"
#define OCC_SUMS_TEXT_BYTES   129 /* the longest name, with its NUL */

/* Age, in minutes before a history's newest counted minute, up to which counted launches are kept, so that
 * late launches add only their difference. An older minute counts only if no later minute of its run has
 * counted; `late` has the number of the other changes. */
#define OCC_SUMS_LATE_MINUTES 15

/* X(name, label, kind): integers of --status. since_minute: earlier minutes never count. PROFILES: not
 * printed before the first request. */
#define OCC_SUMS_COUNTERS(X)                                                                                 \
    X(since_minute, "counted since (minute)", COUNT)                                                         \
    X(minutes, "minutes of runs", COUNT)                                                                     \
    X(late, "  changed too late", COUNT)                                                                     \
    X(evicted, "  evicted before", COUNT)                                                                    \
    X(unreadable, "histories not readable", COUNT)                                                           \
    X(requests, "requests accepted", COUNT)                                                                  \
    X(sent_bytes, "bytes sent", COUNT)                                                                       \
    X(rejected, "points rejected", COUNT)                                                                    \
    X(failures, "failures", COUNT)                                                                           \
    X(last_success_s, "last success", TIME)                                                                  \
    X(profile_requests, "profile requests", PROFILES)                                                        \
    X(profiles_rejected, "  profiles rejected", PROFILES)                                                    \
    X(profiles_refused, "  requests refused", PROFILES)                                                      \
    X(profiles_refused_s, "  GPU time refused (s)", PROFILES)                                                \
    X(profile_failures, "profile failures", PROFILES)
struct occ_sums_counters {
#define X(name, label, kind) int64_t name;
    OCC_SUMS_COUNTERS(X)
#undef X
};

/* Opens the file; makes it and its directories unless `read_only`. OCC_E_NOT_FOUND: it cannot be opened.
 * Later failures of the file are OCC_E_FULL (disk full) and OCC_E_IO. */
int occ_sums_open(const char *path, bool read_only, struct occ_sums **ret_sums, struct occ_error *err);
void occ_sums_close(struct occ_sums *sums);
struct sqlite3 *occ_sums_sqlite(const struct occ_sums *sums);

/* ---- sums_counters.c ---- */

int occ_sums_load_counters(struct occ_sums *sums, struct occ_sums_counters *ret_counters,
                           struct occ_error *err);
/* Stores the counters, in the transaction of a pass or else in a separate one. failure: the message of the
 * last failure, "": none; NULL: unchanged. */
int occ_sums_store_counters(struct occ_sums *sums, const struct occ_sums_counters *counters,
                            const char *failure, struct occ_error *err);
/* Prints the output of --status. */
int occ_sums_print(struct occ_sums *sums, FILE *out, struct occ_error *err);

/* ---- a pass: begin, any number of histories, end ---- */

/* Begins the pass. After a failure close the file: this rolls the pass back. */
int occ_sums_begin(struct occ_sums *sums, struct occ_error *err);
/* A history's part of the transaction, which can be rolled back alone (`keep` false). */
int occ_sums_begin_history(struct occ_sums *sums, struct occ_error *err);
int occ_sums_end_history(struct occ_sums *sums, bool keep, struct occ_error *err);

/* How far a history was read: done: number of the last change; newest_minute: the newest counted minute.
 * Zeros: the history is unknown. */
struct occ_sums_position {
    int64_t identity, done, newest_minute;
};
int occ_sums_load_position(struct occ_sums *sums, int64_t identity, struct occ_sums_position *ret_position,
                           struct occ_error *err);
/* Ends the history's part. Also forgets counted launches of minutes that are too old for late launches. */
int occ_sums_store_position(struct occ_sums *sums, const struct occ_sums_position *position,
                            struct occ_error *err);

/* Loads the newest minute of a run that earlier passes have counted; -1: none. */
int occ_sums_load_run(struct occ_sums *sums, int64_t identity, int64_t run, int64_t *ret_minute,
                      struct occ_error *err);
int occ_sums_store_run(struct occ_sums *sums, int64_t identity, int64_t run, int64_t minute,
                       struct occ_error *err);

/* Description of a job: attributes of a resource. "": unknown. */
struct occ_sums_job {
    const char *job, *slurm_job, *k8s_namespace, *k8s_pod, *k8s_pod_uid, *container, *trust;
};
int occ_sums_put_job(struct occ_sums *sums, const struct occ_sums_job *job, struct occ_error *err);
/* Stores a GPU's model and memory; memory_bytes 0: unknown. */
int occ_sums_put_gpu(struct occ_sums *sums, const char *gpu, const char *model, int64_t memory_bytes,
                     struct occ_error *err);

/* A minute of a launch configuration in a run. NaN: unknown. */
struct occ_sums_minute {
    int64_t identity, minute, run, config;
    const char *job, *gpu, *kernel;
    int64_t launches, total_ns;
    double warps;                      /* maximum warps of the whole GPU */
    double theoretical, low, high;     /* the model's ratios; low, high: expected achieved occupancy */
    double expected_elapsed_low;       /* the model's low end of elapsed occupancy */
    double achieved_sum, achieved_ns;  /* sum of value x ns, over achieved_ns */
    double error_sum, error_ns;        /* the same for the standard error */
    double grid_blocks, block_threads; /* sizes of the launch */
};
/* Adds the part of the minute that was not counted before. *ret_ns: its GPU time. */
int occ_sums_add(struct occ_sums *sums, const struct occ_sums_minute *minute, int64_t *ret_ns,
                 struct occ_error *err);

/* ---- sums_fold.c ---- */

/* Names the series, adds the pass's part to the sums, and commits. minute: the first minute after the counted
 * minutes. */
int occ_sums_end(struct occ_sums *sums, int64_t minute, struct occ_error *err);
/* Forgets the means, which a server has accepted. */
int occ_sums_clear_means(struct occ_sums *sums, struct occ_error *err);

/* ---- internal ---- */

/* Columns of a series. TOTALS: cumulative; capacity, wasted: warp-seconds of launches that the model
 * analyses. MEANS: of the minutes since the last accepted request, weighted with nanoseconds. NULL: no launch
 * has the value. X(column) */
#define OCC_SUMS_TOTALS(X) X(launches) X(ns) X(capacity) X(wasted)
#define OCC_SUMS_MEANS(X)                                                                                    \
    X(theoretical)                                                                                           \
    X(theoretical_ns) X(low) X(high) X(expected_ns) X(achieved) X(achieved_ns) X(error) X(error_ns)
/* A sum over two rows, followed by a comma: unknown only if both are unknown. */
#define OCC_SUMS_ADD(column)                                                                                 \
#column " = coalesce(" #column " + excluded." #column ", " #column ", excluded." #column "),"

/* Runs statements without parameters and results. */
int occ_sums_run(struct occ_sums *sums, const char *sql, struct occ_error *err);
int occ_sums_fail(struct occ_sums *sums, struct occ_error *err);

/* Upper ends of the buckets of the sizes of launches; the last bucket has no end. Sizes are in blocks (grid)
 * and threads (block). */
#define OCC_SUMS_GRID_BOUNDS                                                                                 \
    {                                                                                                        \
        1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576                                         \
    }
#define OCC_SUMS_BLOCK_BOUNDS                                                                                \
    {                                                                                                        \
        32, 64, 96, 128, 192, 256, 384, 512, 768, 1024                                                       \
    }
enum occ_sums_size { OCC_SUMS_GRID, OCC_SUMS_BLOCK, OCC_SUMS_SIZE_COUNT };
#define OCC_SUMS_BOUNDS_MAX 11
struct occ_sums_bounds {
    size_t n;
    double ends[OCC_SUMS_BOUNDS_MAX];
};
extern const struct occ_sums_bounds occ_sums_bounds[OCC_SUMS_SIZE_COUNT];
