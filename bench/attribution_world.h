/*
 * A world of its own in which the truth about every launch is known: blocks of unequal length are put on SMs
 * one by one, warps of a block end at different times, launches ramp up, and device-wide samples are exact
 * integrals of all that, plus noise. It knows nothing of the attribution's model. One thread; aborts where
 * memory ends.
 */
#ifndef OCC_BENCH_ATTRIBUTION_WORLD_H
#define OCC_BENCH_ATTRIBUTION_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "attribution/attribution.h"

#define WORLD_SMS   132
#define WORLD_WARPS 64

/* What a kernel is like. */
struct world_kernel {
    double duration_ns; /* about */
    uint32_t blocks, blocks_per_sm, warps_per_block;
    double block_spread, warp_spread; /* 0: equal; lengths differ by up to this part */
    double ramp_ns;                   /* until all slots have their first block */
    uint64_t graph_node;
};

struct world_options {
    const struct world_kernel *kernels;
    size_t n_kernels;
    int streams;
    int fixed_order;             /* all kernels in turn, as a graph replays them */
    double gap_ns, graph_gap_ns; /* between launches, between replays; each differs by half of it */
    double interval_ns, seconds;
    double noise, jitter_ns; /* of counters, relative; of launch times */
    double offset_ns, drift; /* sample time = launch time + offset + drift x t */
    uint64_t seed;
};

struct world_launch {
    uint32_t kernel;
    int64_t start_ns, end_ns;         /* as reported */
    double achieved, elapsed, active; /* the truth */
    double duration_ns;
};

struct world {
    struct world_launch *launches; /* by start */
    size_t n_launches;
    struct occ_sample *samples;
    size_t n_samples;
};

struct world *world_make(const struct world_options *options);
void world_free(struct world *world);

#endif
