/* Input and output of a GPU's thread: the queue of launches, and the results not stored yet. Both are
 * bounded; a zeroed struct is empty. No global state; one thread at a time. */
#pragma once

#include "attribution/attribution.h"
#include "energy.h"
#include "store/measured.h"
#include "support/map.h"

/* A queue that removes launches at the front without moving the others: launches of many seconds wait, and
 * some leave 20 times a second. */
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

/* Appends a launch. false: no memory, or the queue holds `max` launches. */
bool occ_launch_queue_add(struct occ_launch_queue *queue, const struct occ_attribution_launch *launch,
                          size_t max);

/* Sorts `more` by start, merges it into `queue`, which is sorted by start, and empties `more`. Of launches
 * with equal starts, those of `queue` come first and do not move. Launches that exceed memory or `max` are
 * dropped, latest first; returns their number. */
size_t occ_launch_queue_merge(struct occ_launch_queue *queue, struct occ_launch_queue *more, size_t max);

/* Passes launches that start before `until_ns` to an attribution. Returns the number that it refused. */
uint64_t occ_launch_queue_release(struct occ_launch_queue *queue, struct occ_attribution *to,
                                  int64_t until_ns);

/* Removes the first n launches. */
void occ_launch_queue_remove(struct occ_launch_queue *queue, size_t n);

/* Key of a launch configuration across the daemon's histories. */
static inline uint64_t occ_gpu_results_config(uint32_t history, uint32_t config)
{
    return (uint64_t)history << 32 | config;
}

/* In place of a history: memory operations, which belong to no configuration of a history. Values of them are
 * not kept. */
#define OCC_GPU_MEMORY UINT32_MAX
static inline bool occ_gpu_results_is_memory(uint64_t config)
{
    return config >> 32 == OCC_GPU_MEMORY;
}

struct occ_gpu_sums {
    int64_t minute, run;
    uint64_t config; /* occ_gpu_results_config() */
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
    struct occ_energy_second *energies;
    size_t n_sums, n_values, n_samples, n_seconds, n_energies;
    size_t sums_allocated, values_allocated, samples_allocated, seconds_allocated, energies_allocated;
    struct occ_map index; /* hash of minute, run and configuration -> index in sums */
    uint64_t dropped;     /* number of values dropped for lack of room */
};

/* The tag of a launch in the attribution. */
static inline uint64_t occ_gpu_results_tag(int64_t run, uint32_t correlation)
{
    return (uint64_t)run << 32 | correlation;
}

/* Adds a settled launch; its tag is an occ_gpu_results_tag(), its shape an occ_gpu_results_config(). */
void occ_gpu_results_add_value(struct occ_gpu_results *results, const struct occ_attribution_value *value);
/* Evidence on launches without a value; see OCC_MEASURED_EVIDENCE. */
struct occ_gpu_rest {
    double shift_ns, error_ns, ns;
};
void occ_gpu_results_add_rest(struct occ_gpu_results *results, int64_t minute, int64_t run, uint64_t config,
                              const struct occ_gpu_rest *rest);
/* false: no room. */
bool occ_gpu_results_add_sample(struct occ_gpu_results *results, const struct occ_attribution_sample *sample);
void occ_gpu_results_add_second(struct occ_gpu_results *results, const struct occ_attribution_second *second);
void occ_gpu_results_add_energy(struct occ_gpu_results *results, const struct occ_energy_second *energy);

/* Adds the results of this history to `into`, with the GPU's seconds and, if `with_samples`, its samples.
 * Results without room count as dropped in `into`. */
void occ_gpu_results_share(const struct occ_gpu_results *from, uint32_t history, bool with_samples,
                           struct occ_gpu_results *into);

bool occ_gpu_results_is_empty(const struct occ_gpu_results *results);

/* Writes all results, which belong to one history, into its store, where the GPU has the id `device`. Values
 * are dropped if the store has no room: the commit that makes room comes later. */
int occ_gpu_results_store(struct occ_gpu_results *results, struct occ_store *store, int64_t device,
                          struct occ_error *err);

void occ_gpu_results_free(struct occ_gpu_results *results);
