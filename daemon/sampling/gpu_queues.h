/* What goes into a GPU's thread and what comes out: the queue of launches, and the results since they were
 * stored last. Both are bounded; a zeroed struct is empty. No global state; one thread at a time. */
#pragma once

#include "attribution/attribution.h"
#include "store/measured.h"
#include "support/map.h"

/* Launches leave at the front without a move of the rest: launches of many seconds wait, and some leave 20
 * times a second. */
struct occ_launch_queue {
    struct occ_attribution_launch *items;
    size_t first, n, allocated; /* items[first] to items[first + n - 1] */
};

/* Launch i of the queue, 0...n - 1. */
static inline const struct occ_attribution_launch *occ_launch_queue_at(const struct occ_launch_queue *queue,
                                                                       size_t i)
{
    return &queue->items[queue->first + i];
}

/* Appends one. False: no memory, or `max` are there. */
bool occ_launch_queue_add(struct occ_launch_queue *queue, const struct occ_attribution_launch *launch,
                          size_t max);

/* Sorts `more` by start and merges it into `queue`, which is in that order; empties `more`. Returns how many,
 * the latest ones, were dropped for lack of memory or because `max` are there. */
size_t occ_launch_queue_merge(struct occ_launch_queue *queue, struct occ_launch_queue *more, size_t max);

/* Hands those that start before `until_ns` to an attribution. Returns how many it does not take. */
uint64_t occ_launch_queue_release(struct occ_launch_queue *queue, struct occ_attribution *to,
                                  int64_t until_ns);

/* Removes the first n. */
void occ_launch_queue_remove(struct occ_launch_queue *queue, size_t n);

/* A launch configuration of one of the daemon's histories. */
static inline uint64_t occ_gpu_results_config(uint32_t history, uint32_t config)
{
    return (uint64_t)history << 32 | config;
}

struct occ_gpu_sums {
    int64_t minute, run;
    uint64_t config; /* of occ_gpu_results_config() */
    struct occ_measured_sums sums;
};

struct occ_gpu_value {
    int64_t run;
    uint32_t history;
    struct occ_launch_value value;
};

/* Sums by minute, run and configuration; values of single launches; the GPU's samples and seconds. */
struct occ_gpu_results {
    struct occ_gpu_sums *sums;
    struct occ_gpu_value *values;
    struct occ_device_sample *samples;
    struct occ_attribution_second *seconds;
    size_t n_sums, n_values, n_samples, n_seconds;
    size_t sums_allocated, values_allocated, samples_allocated, seconds_allocated;
    struct occ_map index; /* hash of minute, run and configuration -> index in sums */
    uint64_t dropped;     /* values without room */
};

/* A launch's tag in the attribution. */
static inline uint64_t occ_gpu_results_tag(int64_t run, uint32_t correlation)
{
    return (uint64_t)run << 32 | correlation;
}

/* A settled launch; its tag is of occ_gpu_results_tag(), its shape of occ_gpu_results_config(). */
void occ_gpu_results_add_value(struct occ_gpu_results *results, const struct occ_attribution_value *value);
/* Evidence on launches without a value, as in OCC_MEASURED_EVIDENCE. */
struct occ_gpu_rest {
    double shift_ns, error_ns, ns;
};
void occ_gpu_results_add_rest(struct occ_gpu_results *results, int64_t minute, int64_t run, uint64_t config,
                              const struct occ_gpu_rest *rest);
/* False: no room. */
bool occ_gpu_results_add_sample(struct occ_gpu_results *results, const struct occ_attribution_sample *sample);
void occ_gpu_results_add_second(struct occ_gpu_results *results, const struct occ_attribution_second *second);

/* Adds to `into` what belongs to this history, and the samples and seconds of the GPU where it may have them;
 * what has no room counts as dropped there. */
void occ_gpu_results_share(const struct occ_gpu_results *from, uint32_t history, bool with_samples,
                           struct occ_gpu_results *into);

bool occ_gpu_results_is_empty(const struct occ_gpu_results *results);

/* Puts everything, which is of one history, into its store, of whose devices the GPU is `device`; values that
 * the store has no room for are dropped, since the commit that makes room comes afterwards. */
int occ_gpu_results_store(struct occ_gpu_results *results, struct occ_store *store, int64_t device,
                          struct occ_error *err);

void occ_gpu_results_free(struct occ_gpu_results *results);
