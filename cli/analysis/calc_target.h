/* The calculator's device, found by name or by compute capability, and messages for refused launches. Pure;
 * any thread. */
#pragma once

#include "occupancy/occupancy.h"
#include "support/error.h"

#define CALC_NAME_BYTES 64

struct calc_target {
    struct occ_device device;    /* complete */
    char name[CALC_NAME_BYTES];  /* "t4"; "cc 7.5" */
    char title[CALC_NAME_BYTES]; /* "Tesla T4"; "compute capability 7.5" */
};

/* Finds a GPU by `name`, from occq calc --list or as printed by nvidia-smi; upper and lower case are equal.
 * OCC_E_INVALID: unknown name, or unknown number of SMs of a variant; the message has the nearest name. */
int calc_target_named(const char *name, struct calc_target *ret_target, struct occ_error *err);

/* Makes a target from "7.5" or "75". OCC_E_INVALID: unknown capability, or number of SMs out of range. */
int calc_target_capability(const char *capability, uint64_t sm_count, struct calc_target *ret_target,
                           struct occ_error *err);

/* Fails with OCC_E_INVALID and a message with the option and the reason; `status` is from occ_analyse(). */
int calc_refuse(enum occ_status status, const struct occ_device *device, const struct occ_launch *launch,
                struct occ_error *err);

/* Returns the number of blocks in a cluster; 1 without clusters. */
uint64_t calc_cluster_blocks(const struct occ_launch *launch);
