/*
 * Held time: the time in which programs hold a GPU, divided between them. A program pays an equal part of
 * each moment that it shares, so that a GPU's time is counted once. Bills (answer/bill.h) and metrics
 * (daemon/serve/metrics) use this one rule. Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The time from first_ns to last_ns in which a run holds a GPU. */
struct occ_holder {
    int64_t gpu, first_ns, last_ns;
    bool is_alone; /* the times of other runs are not comparable: the whole time counts */
    double held_s; /* the run's part of the time */
};
/* Sets held_s: holders of one GPU share each moment equally. Returns 0 or OCC_E_NO_MEMORY. */
int occ_held_divide(struct occ_holder *holders, size_t n);
