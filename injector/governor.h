/*
 * The governor: from what recording costs the program to how much is recorded. Pure; threads: the helper.
 *
 *   share of a window of 10 s   = our CPU time / the larger of the process's CPU time and the elapsed time
 *   above the budget            -> one step down
 *   below half of it in windows of a minute -> one step up; a step up that has to be taken back within its
 *                                  minute doubles the minutes before the next one (at most an hour)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCC_GOVERNOR_WINDOW_NS UINT64_C(10000000000)
#define OCC_GOVERNOR_BUDGET    0.01 /* default: DESIGN's 1 % */

enum occ_step {
    OCC_STEP_FULL,
    OCC_STEP_NO_COUNTERS, /* the daemon does not measure these launches */
    OCC_STEP_SAMPLED,     /* a second in ten is recorded: launch configurations and a sample of launches */
    OCC_STEP_NOTHING,
};

/* Totals since the process began. */
struct occ_governor_cost {
    uint64_t now_ns;         /* monotonic */
    uint64_t own_cpu_ns;     /* of our thread, CUPTI's worker, and our callbacks */
    uint64_t process_cpu_ns; /* of all, ours included */
};

struct occ_governor {
    double budget; /* 0...1 */
    enum occ_step step;
    double share;                   /* of the last window */
    struct occ_governor_cost begin; /* of the window */
    uint32_t calm_windows;          /* in a row */
    uint32_t patience;              /* calm windows before a step up */
    uint32_t since_up;              /* windows since the last step up */
};

void occ_governor_init(struct occ_governor *governor, double budget);

/* Begins a new window: what was recorded before was not the governor's choice. */
void occ_governor_skip(struct occ_governor *governor, const struct occ_governor_cost *cost);

/* Call it about once a second. True: `step` changed. */
bool occ_governor_round(struct occ_governor *governor, const struct occ_governor_cost *cost);

/* For people: the overhead and the budget, with so many digits that they differ. */
void occ_governor_describe(const struct occ_governor *governor, char *text, size_t size);
