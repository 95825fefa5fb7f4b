/*
 * The device's block scheduler: computes the times of a launch's blocks, given all earlier launches.
 *
 * Launches are placed in the order of their submission. A launch takes the free share of the device
 * (an SM's resources are one pool: a launch with B blocks per SM uses 1/B of an SM for each block),
 * block after block, breadth first over the SMs; other blocks wait for the next wave. Blocks of a
 * launch run in lockstep waves of equal length, so that a launch with the device to itself ends after
 * ceil(blocks / (SMs * B)) block durations; a wave that shares the device takes the share that is free at its
 * start.
 *
 * Invariant: at no time are the shares of all launches together above 1.
 *
 * Not locked: the owner serialises.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_timeline;

struct sim_work {
    uint64_t ready_ns; /* earliest start */
    uint64_t blocks;
    uint64_t wave_blocks; /* blocks that fill the device */
    uint64_t block_ns;
    double imbalance; /* 0: equal blocks; else durations spread evenly over block_ns * (1 +- imbalance) */
    uint64_t seed;    /* seed of the blocks' durations */
    uint64_t ramp_ns; /* over which the first wave's blocks start, one after the other; each slot ends so much
                         later */
};

struct sim_placement {
    uint64_t start_ns, end_ns; /* first block's start, last block's end */
    double block_ns_total;     /* sum of the blocks' durations */
};

/* A period in which a launch's resources are constant. */
struct sim_stretch {
    uint64_t start_ns, end_ns;
    uint64_t wave_ns; /* blocks run in lockstep waves of this length; 0: out of step */
    double blocks;    /* resident; a fraction where unequal blocks end one after the other */
    bool waiting;     /* the launch has blocks that wait for room */
};

/* Returns NULL without memory. */
struct sim_timeline *sim_timeline_new(void);
void sim_timeline_free(struct sim_timeline *timeline);

/* Places one launch. `now_ns`: no later launch is submitted for an earlier time; loads that ended before are
 * removed. Returns false without memory, with *ret untouched. */
bool sim_timeline_place(struct sim_timeline *timeline, uint64_t now_ns, const struct sim_work *work,
                        struct sim_placement *ret);

/* Returns the last launch's placement in the order of time: blocks summed over time equal its block_ns_total
 * (within rounding if blocks are unequal). Valid until the next placement. */
const struct sim_stretch *sim_timeline_stretches(const struct sim_timeline *timeline, size_t *ret_n);

/* Returns the share of the device in use at a time, 0...1. For tests. */
double sim_timeline_share(const struct sim_timeline *timeline, uint64_t at_ns);
