/* Columns with the limits of a device, for `occq calc --list` and the head of `occq calc`. Pure; any thread.
 */
#pragma once

#include "cli/values.h"
#include "occupancy/occupancy.h"

struct calc_device_row {
    const char *gpu, *name, *slice_of; /* the caller owns the texts */
    char compute_capability[16];
    struct occ_device device;
    uint32_t max_warps_per_sm;
    double max_barriers_per_sm; /* NaN: the model ignores barriers */
};

/* `help` of number columns is the complete definition. */
extern const struct cli_column calc_device_columns[];

void calc_device_fill(struct calc_device_row *row, const struct occ_device *device);
