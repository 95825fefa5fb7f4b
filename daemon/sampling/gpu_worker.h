/*
 * One GPU's thread: reads counters, attributes them to the launches that the daemon's loop feeds, and
 * collects what was measured for the loop to store.
 *
 *   occ_gpu_worker_feed() -> inbox -> (source + attribution) -> results -> occ_gpu_worker_take()
 *
 * Threads: the functions here are the loop's. They share with the worker's thread what its mutex guards,
 * which is held for copying a batch. The thread inherits the caller's signal mask.
 */
#pragma once

#include "attribution/attribution.h"
#include "gpu_queues.h"
#include "source_select.h"

struct occ_gpu_worker;

struct occ_gpu_status {
    uint8_t uuid[16]; /* all zero: the sampler knows no such GPU */
    uint32_t ordinal;
    const char *source;          /* word of the kind; "none" */
    enum occ_source_state state; /* OK: it samples */
    char reason[256];            /* why there is no better source, for people; "": this is the best */
    struct occ_source_stats stats;
    int64_t offset_ns; /* fitted, from the launches' clock to the samples' */
    double drift_ppm, residual_ratio;
    uint64_t launches, dropped; /* fed; without a value for lack of room */
    int64_t active_ns;          /* CLOCK_MONOTONIC: when a sample showed activity last */
    bool is_busy;               /* has a source, or launches without a value */
    bool has_results;           /* for occ_gpu_worker_take() */
    bool has_tried;             /* to open a source */
};

/* `options` with a machine; `watch` outlives the worker. */
int occ_gpu_worker_new(const struct occ_gpu_found *gpu, const struct occ_sampler_options *options,
                       struct occ_profiler_watch *watch, struct occ_gpu_worker **ret_worker,
                       struct occ_error *err);
/* Ends the thread and gives the counters back. NULL is fine. */
void occ_gpu_worker_free(struct occ_gpu_worker *worker);

/* Samples until `wanted_until_ns` at least, but not before `paused_until_ns` (both monotonic). */
void occ_gpu_worker_want(struct occ_gpu_worker *worker, int64_t wanted_until_ns, int64_t paused_until_ns);

/* A libcupti that a program uses: tried where none was found. No memory: nothing. */
void occ_gpu_worker_offer(struct occ_gpu_worker *worker, const char *cupti);

/* Launches in any order, tagged for gpu_queues.h; those of the future or without room count as dropped. */
void occ_gpu_worker_feed(struct occ_gpu_worker *worker, const struct occ_attribution_launch *launches,
                         size_t n);

/* Moves the results since the last call to the caller, who frees them. */
void occ_gpu_worker_take(struct occ_gpu_worker *worker, struct occ_gpu_results *ret_results);

/* No more launches come: attributes all that wait to the samples that are there, and waits for it until
 * `until_ns` (monotonic). */
void occ_gpu_worker_settle(struct occ_gpu_worker *worker, int64_t until_ns);

void occ_gpu_worker_get_status(struct occ_gpu_worker *worker, struct occ_gpu_status *ret_status);

/* Does a round of the thread, on a machine without threads. Returns when the next one is due (monotonic);
 * INT64_MAX: the thread would sleep until the loop wakes it. */
int64_t occ_gpu_worker_step(struct occ_gpu_worker *worker);
