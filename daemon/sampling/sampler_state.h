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
    const char *logged;      /* the state that was logged last */
    uint64_t dropped;        /* values that a store had no room for */
    int64_t shared_until_ns; /* programs of several histories have used it until shortly before this */
    bool is_used;            /* launches have named it */
};

/* What one history has of one GPU. */
struct occ_sampler_part {
    int64_t device; /* in the store; 0: its launches have not named it yet */
    struct occ_gpu_results results;
};

struct occ_sampler_history {
    uint32_t number;
    uint32_t tag; /* of its launches in the workers, and of their models: another one for each file */
    struct occ_store *store;
    const struct occ_collector *collector;
    struct occ_sampler_part shares[OCC_GPUS_MAX];
};

/* What the discovery thread found; the loop reads it after `finished`. */
struct occ_sampler_found {
    struct occ_gpu_found gpus[OCC_GPUS_MAX];
    size_t n;
    enum occ_source_state state;
    struct occ_error err;
    atomic_bool finished;
};

/* Cached answers of the model for launch configurations. The answers used since the last swap are in
 * recent_models, which becomes older_models when it is full: few configurations in use are asked again while
 * both caches together have room for them. */
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
    char *offered; /* the libcupti that was offered last; NULL: none */
};

/* ---- sampler_results.c ---- */

/* NULL: there is none of this number. */
struct occ_sampler_history *occ_sampler_find_history(const struct occ_sampler *sampler, uint32_t number);
/* Gives each history its share of what the worker of GPU `gpu` has measured. */
void occ_sampler_share(struct occ_sampler *sampler, size_t gpu, int64_t now_ns);
void occ_sampler_gpu_status(const struct occ_sampler_gpu *gpu, struct occ_gpu_status *ret_status);
