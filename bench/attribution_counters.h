/*
 * The hardware counters of a whole GPU, sampled as PM sampling does: in intervals whose edges jitter, on a
 * clock of its own, with noise, now and then lost or of another counter set. One thread; aborts where memory
 * ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/sampling/counters/sample.h"
#include "attribution_physics.h"

#define COUNTERS_EPOCH_NS INT64_C(1700000000000000000)
#define COUNTERS_REASONS  5 /* of stalls */

struct counters_options {
    double interval_ns, burst_at_s;   /* 2 s of 50 us; 0: never */
    double noise, edge_jitter_ns;     /* of counters, relative; of the samples' edges */
    double missing;                   /* part of the samples */
    bool rotated;                     /* 0.5 s of every 5.5 s are the other counter sets' */
    double offset_ns, ppm, wander_ns; /* sample time = launch time x (1 + ppm) + offset + wander */
    double record_jitter_ns, tick_ns; /* of the launches' records */
    double jump_ns;                   /* of the samples' clock, after 40 % of the time */
    double frequency_drop;            /* part by which the SMs' clock is lower now and then */
};

struct counters_sums; /* of a sample */

struct counters {
    const struct counters_options *options;
    double end_ns, sms, warps_per_sm;
    double background_warp_ns;    /* of one of its blocks; 0: not drawn yet */
    uint64_t *random, own_random; /* own: of what all other draws do not depend on */
    double *edges;                /* n + 1, ns since the epoch */
    size_t n, last;
    struct counters_sums *sums;
};

/* A part of a launch: its time runs from u_from to u_to within [from_ns, to_ns). */
struct counters_piece {
    double from_ns, to_ns, u_from, u_to;
    const struct physics_profile *profile;
    double level;        /* of the profile's warps */
    const double *stall; /* COUNTERS_REASONS, parts of active cycles */
    const struct physics_busy *busy;
    double busy_level; /* of it */
    double blocks;     /* of the launch */
};

/* Takes options, end_ns, sms, warps_per_sm and random; makes the rest. */
void counters_open(struct counters *counters);
void counters_close(struct counters *counters);

void counters_add(struct counters *counters, const struct counters_piece *piece);
/* SMs that two launches had at the same time were active once: takes away what they shared. */
void counters_share(struct counters *counters, double from_ns, double to_ns, double active);
/* Work that nobody traces, after all launches. */
void counters_add_background(struct counters *counters, double from_ns, double to_ns, double level);
/* The samples that were delivered; the caller frees them. */
struct occ_sample *counters_read(struct counters *counters, size_t *ret_n);
