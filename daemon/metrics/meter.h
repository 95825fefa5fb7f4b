/*
 * What launches add up to, for /metrics: by GPU, cause, kernel and run. A launch costs one hash lookup; what
 * the model has of its configuration is asked of the store once.
 *
 * Waste is the model's: duration * warps that the GPU holds * (1 - expected_elapsed_low), and the causes of
 * it (occupancy.h). Everything is bounded: 32 GPUs, 20 kernels, `max_runs` runs, 131072 configurations (then
 * all are asked anew). The 20 kernels with the most waste in the last hour are chosen each hour; what a
 * kernel wastes while it is not one of them counts as "(other)", so that each part counts once and no
 * counter falls. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exposition.h"
#include "store/store.h"
#include "support/error.h"

struct occ_meter;

int occ_meter_new(size_t max_runs, struct occ_meter **ret_meter, struct occ_error *err);
void occ_meter_free(struct occ_meter *meter); /* NULL is fine */

/* Launches of a run on one GPU, as they were appended to a history, and the history's number. */
struct occ_meter_launches {
    uint32_t history;
    struct occ_store *store;
    const uint8_t *gpu; /* its uuid */
    const struct occ_run *run;
    const struct occ_store_launch *rows;
    size_t n;
};
void occ_meter_add(struct occ_meter *meter, const struct occ_meter_launches *launches, int64_t now_ns);

/* Asks for every configuration anew: a history's numbers mean others from now on. */
void occ_meter_forget_configs(struct occ_meter *meter);

/* The run with this uuid gets no more launches. Times are monotonic. */
void occ_meter_end_run(struct occ_meter *meter, const uint8_t uuid[16], int64_t now_ns);

/* `ordinal` gives the number of a GPU in `text`, or "". */
void occ_meter_write(struct occ_meter *meter, const struct occ_exposition *exposition, int64_t now_ns,
                     void (*ordinal)(void *context, const uint8_t uuid[16], char text[16]), void *context);
