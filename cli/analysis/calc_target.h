/* The calculator's device, by name or by compute capability, and messages for launches that it refuses. Pure;
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

/* `name` of occq gpus, or as nvidia-smi prints it, in any case. OCC_E_INVALID: unknown, or a variant whose
 * SMs are not known; the message suggests the nearest name. */
int calc_target_named(const char *name, struct calc_target *ret_target, struct occ_error *err);

/* "7.5" or "75". OCC_E_INVALID: not one that exists, or SMs out of range. */
int calc_target_capability(const char *capability, uint64_t sm_count, struct calc_target *ret_target,
                           struct occ_error *err);

/* Sets an OCC_E_INVALID that names the option and what is wrong with it; `status` is occ_analyse()'s. */
int calc_refuse(enum occ_status status, const struct occ_device *device, const struct occ_launch *launch,
                struct occ_error *err);

/* Blocks of a cluster; 1: none. */
uint64_t calc_cluster_blocks(const struct occ_launch *launch);
