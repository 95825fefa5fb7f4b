/*
 * Generates launches with the statistics of real nodes, reproducibly for the same settings: configurations by
 * Zipf's law (1.05) or a training step that repeats with few changes; durations normal around a mean per
 * configuration (log-normal around 40 us, 1-8 % spread); gaps exponential (1.5 us); 10 % on a second stream;
 * correlation ids that grow by 1-4. A GPU's launches come in blocks that start at the wanted rate. One
 * thread.
 */
#pragma once

#include <stdint.h>

#include "store/store.h"

#define GENERATE_BLOCK 2048u

struct generate_settings {
    uint64_t seed;
    int64_t start_ns;
    uint32_t gpus, shapes;   /* launch configurations of each GPU */
    uint32_t launches_per_s; /* sum over all GPUs */
    uint32_t tick_ns;        /* times are multiples of tick_ns; 0: 1 */
    bool step;               /* a step of 1500 launches; 2 % of the launches change each time */
};

struct generator;

struct generator *generate_new(const struct generate_settings *settings); /* returns NULL without memory */
void generate_free(struct generator *g);

/* Generates a GPU's next GENERATE_BLOCK launches, sorted by start. `shape` counts from 0 to shapes - 1. */
void generate_block(struct generator *g, uint32_t gpu, struct occ_store_launch *launches);
