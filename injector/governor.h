/*
 * The governor chooses the level of recording by the cost of recording. Pure; threads: the helper.
 *
 *   share in a window of 10 s               = the guest's CPU time / max(process CPU time, elapsed time)
 *   share above the budget                  -> one step down
 *   share below half the budget for 1 min   -> one step up. If the step up is reverted within a minute, the
 *                                              wait before the next one doubles (at most an hour).
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
    OCC_STEP_SAMPLED,     /* one second in ten is recorded: launch configurations and a sample of launches */
    OCC_STEP_NOTHING,
};

/* Totals since the start of the process. */
struct occ_governor_cost {
    uint64_t now_ns;         /* monotonic */
    uint64_t own_cpu_ns;     /* the helper, CUPTI's worker, and the callbacks */
    uint64_t process_cpu_ns; /* all threads */
};

struct occ_governor {
    double budget; /* 0...1 */
    enum occ_step step;
    double share;                   /* of the last window */
    struct occ_governor_cost begin; /* start of the window */
    uint32_t calm_windows;          /* in a row */
    uint32_t calm_windows_needed;   /* calm windows before a step up */
    uint32_t since_up;              /* windows since the last step up */
};

void occ_governor_init(struct occ_governor *governor, double budget);

/* Starts a new window: the governor did not decide on the recording until now. */
void occ_governor_skip(struct occ_governor *governor, const struct occ_governor_cost *cost);

/* Call it about once a second. True: `step` changed. */
bool occ_governor_round(struct occ_governor *governor, const struct occ_governor_cost *cost);

/* Writes overhead and budget for people, with enough digits to differ. */
void occ_governor_describe(const struct occ_governor *governor, char *text, size_t size);
