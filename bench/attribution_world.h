/*
 * A world in which the truth about every launch is known: a timeline (attribution_timeline.h), whose launches
 * occupy a GPU block by block (attribution_physics.h), each differently; samples of the whole GPU's counters
 * as PM sampling makes them, and records of the launches as CUPTI does. It knows nothing of how occupancy is
 * estimated. One thread; aborts where memory ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribution/attribution.h"
#include "attribution_counters.h"
#include "attribution_timeline.h"

#define WORLD_EPOCH_NS COUNTERS_EPOCH_NS

/* How launches of a configuration differ. */
struct world_variation {
    double spread;     /* sigma of the logarithm of their occupancy: up to this, by configuration */
    double stragglers; /* part of the launches that last longer, most at a lower occupancy */
    double drift;      /* a configuration's occupancy goes up and down by this, within a minute or so */
    double context;    /* sigma of a factor that depends on the launch before: what it left in the caches */
    double steps;      /* sigma of a factor that all launches of some 50 ms share */
    double change_s;   /* when the occupancy of a third of the configurations doubles; 0: never */
    double phase_s;    /* a third of the configurations has half its occupancy in every other phase */
    /* Launches of a configuration that have a lower occupancy, by a factor (0: none): */
    double sticky;  /* half of them, some STICKY_LAUNCHES in a row */
    double bimodal; /* BIMODAL_PART of them, at random */
    double alone;   /* launches that run alone (timeline_options.alone) */
};

enum world_neighbour { WORLD_ALONE, WORLD_SLICES, WORLD_MPS };

/* What else is on the GPU, and what is known of it. */
struct world_others {
    double constant, bursty;        /* occupancy of work that nobody traces; bursts of some ms */
    enum world_neighbour neighbour; /* what streams 1 and more are: the same process's, or another's */
    bool untraced;                  /* the neighbour is */
    double lost;                    /* part of the records that never come */
};

struct world_options {
    struct timeline_options timeline;
    struct world_variation variation;
    struct world_others others;
    struct counters_options sampling;
};

struct world_launch {
    uint32_t config;
    bool reported, overlapped;
    int64_t start_ns, end_ns;            /* as reported */
    double elapsed, active, duration_ns; /* the truth; achieved = elapsed / active */
    double busy[PHYSICS_UNITS];          /* of the peak, over its time */
};

struct world {
    struct timeline timeline; /* its configurations; no events */
    bool graph;               /* the launches are a graph's, one node a configuration */
    struct world_launch *launches;
    size_t n_launches; /* by reported start */
    struct occ_sample *samples;
    size_t n_samples;
};

/* NULL: the recording cannot be read. */
struct world *world_make(const struct world_options *options, uint64_t seed);
void world_free(struct world *world);
