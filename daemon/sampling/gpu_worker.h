/*
 * One GPU's thread: reads counters, attributes them to the launches that the daemon's loop feeds, and
 * collects the results for the loop to store.
 *
 *   occ_gpu_worker_feed() -> inbox -> (source + attribution) -> results -> occ_gpu_worker_take()
 *
 * Threads: the loop calls the functions here. The mutex guards the members shared with the worker's thread
 * and is held for copying one batch. The thread inherits the caller's signal mask.
 */
#pragma once

#include "attribution/attribution.h"
#include "gpu_queues.h"
#include "source_select.h"

struct occ_gpu_worker;

struct occ_gpu_status {
    uint8_t uuid[16]; /* all zero: the sampler does not know this GPU */
    uint32_t ordinal;
    const char *source;          /* the source kind's word; "none" */
    enum occ_source_state state; /* OK: the source delivers samples */
    char reason[256];            /* text for people: why no better source is used; "": this is the best */
    struct occ_source_stats stats;
    int64_t offset_ns; /* fitted offset from the launches' clock to the samples' clock */
    double drift_ppm, residual_ratio;
    uint64_t launches, dropped; /* number fed; number without a value for lack of room */
    int64_t active_ns;          /* CLOCK_MONOTONIC of the last sample with activity */
    double energy_j;            /* since the daemon's first reading of the GPU's energy; NaN: unknown */
    bool is_busy;               /* has a source, or launches that wait for their values */
    bool has_results;           /* occ_gpu_worker_take() has results to return */
    bool has_tried;             /* tried to open a source at least once */
};

/* `options` must have a machine; `watch` must outlive the worker. */
int occ_gpu_worker_new(const struct occ_gpu_found *gpu, const struct occ_sampler_options *options,
                       struct occ_profiler_watch *watch, struct occ_gpu_worker **ret_worker,
                       struct occ_error *err);
/* Ends the thread and releases the counters. NULL is allowed. */
void occ_gpu_worker_free(struct occ_gpu_worker *worker);

/* Samples at least until `wanted_until_ns`, and not before `paused_until_ns` (both monotonic). */
void occ_gpu_worker_want(struct occ_gpu_worker *worker, int64_t wanted_until_ns, int64_t paused_until_ns);

/* A libcupti that a program uses: the worker tries it if it found none. Without memory the call has no
 * effect. */
void occ_gpu_worker_offer(struct occ_gpu_worker *worker, const char *cupti);

/* Launches in any order, tagged as in gpu_queues.h; launches in the future or without room count as
 * dropped. */
void occ_gpu_worker_feed(struct occ_gpu_worker *worker, const struct occ_attribution_launch *launches,
                         size_t n);

/* Moves the results since the last call to the caller, who frees them. */
void occ_gpu_worker_take(struct occ_gpu_worker *worker, struct occ_gpu_results *ret_results);

/* Call it after the last launch: attributes all waiting launches to the samples read until now, and waits for
 * that until `until_ns` (monotonic). */
void occ_gpu_worker_settle(struct occ_gpu_worker *worker, int64_t until_ns);

void occ_gpu_worker_get_status(struct occ_gpu_worker *worker, struct occ_gpu_status *ret_status);

/* Does a round of the thread on a machine without threads. Returns the monotonic time of the next round;
 * INT64_MAX: the thread would sleep until the loop wakes it. */
int64_t occ_gpu_worker_step(struct occ_gpu_worker *worker);
