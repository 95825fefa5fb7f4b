/*
 * One GPU's track in the sampler: its thread, source and attribution, and the two boxes through which the daemon's loop
 * talks to it. Only sampler.c and gpu_worker.c include this.
 */
#ifndef OCC_SAMPLER_TRACK_H
#define OCC_SAMPLER_TRACK_H

#include <pthread.h>

#include "attribution/attribution.h"
#include "sampler.h"
#include "support/map.h"
#include "store/measured.h"

#define OCC_TRACK_INBOX_MOST  (1u << 18) /* launches: 3 s at 80 k a second */
#define OCC_TRACK_OUTBOX_MOST (1u << 14) /* minute x run x shape */
#define OCC_TRACK_VALUES_MOST (1u << 16) /* launches that were read directly: 6 s at 10 k a second */
#define OCC_TRACK_SAMPLES_MOST                                                                               \
    (1u << 16) /* 6 s of 100 us, or as long until the first launch says whose they are */
#define OCC_TRACK_SECONDS_MOST 1024u
#define OCC_TRACK_FUTURE_NS                                                                                  \
    INT64_C(1000000000) /* that a clock may be ahead: launches and samples are told when over */

/* A shape in a run: what launches are told apart by. */
struct occ_track_pair {
    int64_t run;
    struct occ_attribution_key key;
};

struct occ_track_launch {
    int64_t start_ns, end_ns;
    uint64_t graph_node;
    uint32_t pair, correlation;
};

/* A launch's own value; the shape is its pair's. */
struct occ_track_value {
    uint32_t pair;
    struct occ_launch_value value;
};

struct occ_track_result {
    int64_t minute;
    uint32_t pair;
    struct occ_measured_sums sums;
};

struct occ_track {
    struct occ_gpu_found gpu;
    struct occ_sampler_options options;
    pthread_t thread;

    /* the loop's alone */
    struct occ_map pair_index; /* run << 32 | shape -> index in pairs */
    int64_t device;            /* in the store; 0: no launch came yet */

    pthread_mutex_t mutex; /* guards all that follows */
    pthread_cond_t wake, settled;
    struct occ_track_pair *pairs; /* never moves back: only grows */
    uint32_t n_pairs;
    size_t pairs_allocated;
    struct occ_track_launch *inbox;
    size_t n_inbox, inbox_allocated;
    struct occ_track_result *outbox;
    size_t n_outbox, outbox_allocated;
    struct occ_map outbox_index; /* minute offset x pair -> index */
    struct occ_track_value *values;
    size_t n_values, values_allocated;
    struct occ_device_sample *samples;
    size_t n_samples, samples_allocated;
    struct occ_attribution_second seconds[OCC_TRACK_SECONDS_MOST];
    size_t n_seconds;
    struct occ_sampler_status status;
    int64_t wanted_until_ns; /* CLOCK_MONOTONIC: sample at least until then */
    int64_t paused_until_ns;
    int64_t active_ns;        /* CLOCK_MONOTONIC: when a sample showed activity last */
    bool at_work;             /* the thread has a source or launches that wait */
    bool stop, settle, hurry; /* hurry: what is wanted has changed */
    bool has_tried;           /* to open a source, once at least */
};

/* Starts the thread. */
int occ_track_new(const struct occ_gpu_found *gpu, const struct occ_sampler_options *options,
                  struct occ_track **ret_track, struct occ_error *err);
/* Ends it. */
void occ_track_free(struct occ_track *track);

#endif
