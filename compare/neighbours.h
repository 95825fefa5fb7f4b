/*
 * Places of kernels without a pair: between launches of which two pairs do they stand? Kernels of both sides
 * with the same place replace each other, also several kernels and one that does the work of all
 * (DIFF_PLACE).
 *
 * Pure apart from malloc; any thread.
 */
#pragma once

#include "compare.h"
#include "support/map.h"

/* Different items without a pair that are remembered until the next launch with a pair; more are ignored. */
enum { DIFF_WAITING_MAX = 16 };

/* The items without a pair since the last launch with a pair, on a stream. */
struct diff_waiting {
    uint32_t before, n, items[DIFF_WAITING_MAX];
};

/* Launches of one side. Start with {.diff = diff}. */
struct diff_neighbours {
    struct diff *diff;
    struct occ_map streams; /* stream -> index in `all` */
    struct diff_waiting *all;
    size_t n, allocated;
};

/* Takes the side's next launch. `stream`: unique over devices. Returns 0 or OCC_E_NO_MEMORY. */
int diff_neighbours_add(struct diff_neighbours *neighbours, uint64_t stream, uint32_t item);
void diff_neighbours_free(struct diff_neighbours *neighbours);
