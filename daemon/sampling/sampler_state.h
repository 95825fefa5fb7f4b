/* The sampler's state, for sampler.c and sampler_results.c only. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "sampler.h"
#include "support/map.h"

enum occ_discovery { OCC_DISCOVERY_NONE, OCC_DISCOVERY_RUNNING, OCC_DISCOVERY_DONE };

struct occ_sampler_gpu {
    struct occ_gpu_worker *worker;
    struct occ_gpu_found found;
    const char *logged;      /* last logged state */
    uint64_t dropped;        /* values that a store had no room for */
    int64_t shared_until_ns; /* programs of several histories used the GPU until shortly before this time */
    bool is_used;            /* launches have used the GPU */
};

/* One history's results of one GPU. */
struct occ_sampler_part {
    int64_t device; /* id in the store; 0: none of its launches has used the GPU yet */
    struct occ_gpu_results results;
};

struct occ_sampler_history {
    uint32_t number;
    uint32_t tag; /* tag of its launches in the workers and of its models; changes with each file */
    struct occ_store *store;
    const struct occ_collector *collector;
    struct occ_sampler_part shares[OCC_GPUS_MAX];
};

/* Result of the discovery thread; the loop reads it once `finished` is set. */
struct occ_sampler_found {
    struct occ_gpu_found gpus[OCC_GPUS_MAX];
    size_t n;
    enum occ_source_state state;
    struct occ_error err;
    atomic_bool finished;
};

/* Cache of the model's values for launch configurations. Values used since the last swap are in
 * recent_models, which becomes older_models when it is full. A configuration in use is computed again only if
 * both caches have no room for all configurations in use. */
struct occ_sampler_models {
    struct occ_map index; /* configuration -> index in keys */
    struct occ_attribution_key *keys;
    size_t n, allocated;
};

struct occ_sampler {
    struct occ_sampler_options options;
    struct occ_profiler_watch *watch;
    struct occ_sampler_gpu gpus[OCC_GPUS_MAX];
    size_t n_gpus;
    struct occ_sampler_history **histories;
    size_t n_histories, histories_allocated;
    uint32_t last_tag;
    int64_t wanted_until_ns, paused_until_ns; /* monotonic, as all times here */
    enum occ_discovery discovery;
    int64_t discovered_ns;
    pthread_t discovery_thread;
    struct occ_sampler_found found;
    struct occ_sampler_models recent_models, older_models;
    char *offered; /* last libcupti path offered; NULL: none */
};

/* ---- sampler_results.c ---- */

/* NULL: no history has this number. */
struct occ_sampler_history *occ_sampler_find_history(const struct occ_sampler *sampler, uint32_t number);
/* Gives each history its part of the results of GPU `gpu`. */
void occ_sampler_share(struct occ_sampler *sampler, size_t gpu, int64_t now_ns);
void occ_sampler_gpu_status(const struct occ_sampler_gpu *gpu, struct occ_gpu_status *ret_status);
