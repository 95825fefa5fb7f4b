/*
 * A world with a known truth about every launch: a timeline (attribution_timeline.h) of launches that occupy
 * a GPU block by block (attribution_physics.h), each differently; samples of the whole GPU's counters as from
 * PM sampling, and records of the launches as from CUPTI. Independent of the estimation of occupancy. One
 * thread; aborts without memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribution/attribution.h"
#include "attribution_counters.h"
#include "attribution_timeline.h"

#define WORLD_EPOCH_NS COUNTERS_EPOCH_NS

/* Differences between launches of a configuration. */
struct world_variation {
    double spread;     /* maximum sigma of the logarithm of occupancy; each configuration draws its own */
    double stragglers; /* part of the launches that last longer, mostly at a lower occupancy */
    double drift; /* relative amplitude of slow changes of a configuration's occupancy, over about a minute */
    double context;  /* sigma of a factor that depends on the previous launch, as with cache contents */
    double steps;    /* sigma of a factor that all launches within 50 ms share */
    double change_s; /* time at which the occupancy of a third of the configurations doubles; 0: never */
    double phase_s;  /* length of phases; in every other phase a third has half its occupancy */
    /* Factors of lower occupancy for some launches of a configuration (0: none): */
    double sticky;  /* half of the launches, about STICKY_LAUNCHES in a row */
    double bimodal; /* a part BIMODAL_PART of the launches, at random */
    double alone;   /* launches that run alone (timeline_options.alone) */
    double nodes;   /* sigma of a factor that each node of a graph has, as by other inputs */
};

enum world_neighbour { WORLD_ALONE, WORLD_SLICES, WORLD_MPS };

/* Other work on the GPU, and losses of records. */
struct world_others {
    double constant, bursty;        /* occupancy of untraced work; bursts of some ms */
    enum world_neighbour neighbour; /* streams 1 and more: the same process's, or another's */
    bool untraced;                  /* true: the neighbour is untraced */
    double lost;                    /* part of the records that are lost */
    /* one in so many configurations is a fill or copy of its own size, not a kernel; 0: none */
    uint32_t memory;
    bool memory_untraced; /* true: fills and copies have no records */
};

struct world_options {
    struct timeline_options timeline;
    struct world_variation variation;
    struct world_others others;
    struct counters_options sampling;
};

struct world_launch {
    uint32_t config, node; /* node: of a graph; 0: none */
    bool reported, overlapped, is_memory;
    int64_t start_ns, end_ns;            /* as reported */
    double elapsed, active, duration_ns; /* the truth; achieved = elapsed / active */
    double busy[PHYSICS_UNITS];          /* parts of the units' peaks, over the launch's time */
};

struct world {
    struct timeline timeline; /* only its configurations; no events */
    struct world_launch *launches;
    size_t n_launches; /* sorted by reported start */
    struct occ_sample *samples;
    size_t n_samples;
};

/* Returns NULL if the recording cannot be read. */
struct world *world_make(const struct world_options *options, uint64_t seed);
void world_free(struct world *world);
