/*
 * Simulates the hardware counters of a whole GPU as PM sampling reads them: intervals with jittering edges, a
 * clock of their own, noise, lost samples and samples of another counter set. One thread; aborts without
 * memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/sampling/counters/sample.h"
#include "attribution_physics.h"

#define COUNTERS_EPOCH_NS INT64_C(1700000000000000000)
#define COUNTERS_REASONS  5 /* reasons of launch stalls */

struct counters_options {
    double interval_ns, burst_at_s;   /* a burst of 2 s with intervals of 50 us; 0: never */
    double noise, edge_jitter_ns;     /* relative noise of counters; jitter of the samples' edges */
    double missing;                   /* share of lost samples */
    bool rotated;                     /* 0.5 s of every 5.5 s belong to other counter sets */
    double offset_ns, ppm, wander_ns; /* sample time = launch time x (1 + ppm) + offset + wander */
    double record_jitter_ns, tick_ns; /* jitter and clock tick of launch records */
    double jump_ns;                   /* jump of the samples' clock after 40 % of the time */
    double frequency_drop;            /* share by which the SM clock is lower now and then */
};

struct counters_sums; /* sums of one sample */

struct counters {
    const struct counters_options *options;
    double end_ns, sms, warps_per_sm;
    double background_warp_ns;    /* warp time of one background block; 0: not drawn yet */
    uint64_t *random, own_random; /* own_random: draws that must not change any other draw */
    double *edges;                /* n + 1, ns since the epoch */
    size_t n, last;
    struct counters_sums *sums;
};

/* A part of a launch: the launch's time from u_from to u_to, at [from_ns, to_ns). */
struct counters_piece {
    double from_ns, to_ns, u_from, u_to;
    const struct physics_profile *profile;
    double level;        /* factor of the profile's warps */
    const double *stall; /* COUNTERS_REASONS values, shares of active cycles */
    const struct physics_busy *busy;
    double busy_level; /* factor of `busy` */
    double blocks;     /* blocks of the whole launch */
};

/* Starts the counters. The caller sets options, end_ns, sms, warps_per_sm and random. */
void counters_open(struct counters *counters);
void counters_close(struct counters *counters);

void counters_add(struct counters *counters, const struct counters_piece *piece);
/* Subtracts active time that two concurrent launches both counted: an SM that runs both is active once. */
void counters_share(struct counters *counters, double from_ns, double to_ns, double active);
/* Adds work of untraced programs; call after the last launch. */
void counters_add_background(struct counters *counters, double from_ns, double to_ns, double level);
/* Returns the delivered samples; the caller frees them. */
struct occ_sample *counters_read(struct counters *counters, size_t *ret_n);
