/* Reads launches that a cycle-level simulator executed (tests/data/occupancy/cycle_sim.csv): the simulator's
 * counts and the model's answers. For a test and a benchmark. One thread (stdio). */
#pragma once

#include <stddef.h>

#include "occupancy/waterfall.h"

struct simulated_launch {
    char set[24], kernel[12], dist[12];
    double injected_cycles;                /* cost that the simulation adds to a block start */
    double sm_active, sm_active_min_ratio; /* sm_active: of the elapsed cycles; sm_active_min_ratio: least /
                                              most active SM */
    double achieved, elapsed, resident;    /* as in struct occ_measurement */
    double ramp, refill, within; /* losses by the simulator's own state, as ratios of elapsed slots */
    double sim_blocks_per_sm;    /* the simulator's theoretical occupancy */
    struct occ_device device;
    struct occ_launch launch;
    struct occ_result result;
};

/* Sets of counters in a measurement. */
enum simulated_counters { SIMULATED_ALL, SIMULATED_NO_IMBALANCE, SIMULATED_NO_BLOCKS, SIMULATED_NCU };

/* Reads the launches of a file; the caller frees the list. Returns 0 if the file cannot be read or the model
 * refuses a launch. */
size_t simulated_read(const char *path, struct simulated_launch **ret_list);

struct occ_measurement simulated_measurement(const struct simulated_launch *l,
                                             enum simulated_counters counters);

/* Returns the elapsed occupancy that the last wave of equal blocks costs: the loss without ramp, refill and
 * warps that ended early. */
double simulated_tail(const struct simulated_launch *l);

/* True if one part is below -`min` and another one is above `min`. */
bool simulated_has_opposite_parts(const struct occ_waterfall *w, double min);
