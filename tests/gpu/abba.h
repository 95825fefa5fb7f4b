/*
 * Measures a relative cost from pairs of runs in mirrored order: a block is A B B A, so that a drift linear
 * in time cancels. The effect of a block is the mean of ln B - ln A; blocks are treated as independent, and
 * the interval is Student's over blocks. Stopping once the interval is narrow enough makes it slightly too
 * narrow, so an experiment runs at least GPU_ABBA_LEAST_BLOCKS. Pure; one thread per struct.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { GPU_ABBA_LEAST_BLOCKS = 4 };

struct gpu_abba {
    uint64_t n;
    double mean, squares; /* mean of the blocks' effects, and sum of squared differences from the mean */
};

/* Adds a block with times of the same work. Returns false for a time that is not positive; the block is then
 * not counted. */
bool gpu_abba_add(struct gpu_abba *abba, const double a[2], const double b[2]);

/* B / A - 1 with its 95 % interval; NaN with fewer than two blocks. */
struct gpu_abba_cost {
    double cost, low, high;
};
struct gpu_abba_cost gpu_abba_cost(const struct gpu_abba *abba);
