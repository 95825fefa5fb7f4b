/*
 * The device's block scheduler: when a launch's blocks run, given everything launched before it.
 *
 * Launches are placed in the order in which they are submitted. A launch takes the share of the device that
 * is free (an SM's resources are one pool: a launch with B blocks per SM uses 1/B of it for each block),
 * block after block, breadth first over the SMs; what does not fit waits for the next wave. Blocks of a
 * launch run in lockstep waves of equal length, so that a launch with the device to itself ends after
 * ceil(blocks / (SMs * B)) block durations; a wave that shares the device takes what is free when it starts.
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
    uint64_t ready_ns; /* not before */
    uint64_t blocks;
    uint64_t wave_blocks; /* blocks that fill the device */
    uint64_t block_ns;
    double imbalance; /* 0: equal blocks; else durations spread evenly over block_ns * (1 +- imbalance) */
    uint64_t seed;    /* which block gets which duration */
    uint64_t ramp_ns; /* over which the first wave's blocks start, one after the other; each slot ends so much
                         later */
};

struct sim_placement {
    uint64_t start_ns, end_ns; /* first block's start, last block's end */
    double block_ns_total;     /* sum of the blocks' durations */
};

/* While nothing changes in what a launch holds. */
struct sim_stretch {
    uint64_t start_ns, end_ns;
    uint64_t wave_ns; /* its blocks run in lockstep waves of this length; 0: out of step */
    double blocks;    /* resident; not whole where unequal blocks end one after the other */
    bool waiting;     /* for room: the launch has blocks that could run */
};

/* NULL: no memory. */
struct sim_timeline *sim_timeline_new(void);
void sim_timeline_free(struct sim_timeline *timeline);

/* Places one launch. `now_ns`: nothing will be submitted for an earlier time; what ended before is forgotten.
 * false: no memory, *ret untouched. */
bool sim_timeline_place(struct sim_timeline *timeline, uint64_t now_ns, const struct sim_work *work,
                        struct sim_placement *ret);

/* How the last launch was placed, in the order of time: blocks summed over it are exactly its block_ns_total
 * (to rounding when blocks are unequal). Valid until the next placement. */
const struct sim_stretch *sim_timeline_stretches(const struct sim_timeline *timeline, size_t *ret_n);

/* The share of the device in use at a time, 0...1. For tests. */
double sim_timeline_share(const struct sim_timeline *timeline, uint64_t at_ns);
