/*
 * What something costs, from pairs of runs in mirrored order: a block is A B B A, so that a drift which is
 * linear in time falls out. The effect of a block is the mean of ln B - ln A; blocks are taken as
 * independent, and the interval is Student's over them. Looking after each block and ending when the interval
 * is narrow enough makes it a little too narrow: an experiment begins with LEAST_BLOCKS. Pure; one thread for
 * each struct.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { GPU_ABBA_LEAST_BLOCKS = 4 };

struct gpu_abba {
    uint64_t n;
    double mean, squares; /* of the blocks' effects: the mean, and the sum of squared differences from it */
};

/* Of the same work; false: a time is not positive, and the block is not counted. */
bool gpu_abba_add(struct gpu_abba *abba, const double a[2], const double b[2]);

/* B / A - 1 with its 95 % interval; NaN: fewer than two blocks. */
struct gpu_abba_cost {
    double cost, low, high;
};
struct gpu_abba_cost gpu_abba_cost(const struct gpu_abba *abba);
