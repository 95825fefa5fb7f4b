/*
 * What launches add up to, for /metrics: by GPU, cause, kernel and run. A launch costs one hash lookup; what
 * the model has of its configuration is asked of the store once.
 *
 * Waste is the model's: duration * warps that the GPU holds * (1 - expected_elapsed_low), and the causes of
 * it (occupancy.h). Everything is bounded: 32 GPUs, 20 kernels, `max_runs` runs, 131072 configurations (then
 * all are asked anew). The 20 kernels with the most waste in the last hour are chosen each hour; what a
 * kernel wastes while it is not one of them counts as "(other)", so that each part counts once and no
 * counter falls. GPUs and runs have places by owner (places.h); a day without launches ends the series of a
 * GPU that the driver does not list. Launches on a GPU without a place count as those of the GPU "(other)".
 * One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exposition.h"
#include "store/store.h"
#include "support/error.h"

struct occ_meter;

/* Of a GPU that a program names: one of the driver's list, none of a list that is complete, or unknown. */
enum occ_meter_standing { OCC_METER_LISTED, OCC_METER_INVENTED, OCC_METER_UNKNOWN };

struct occ_meter_options {
    size_t max_runs;
    enum occ_meter_standing (*look_up)(void *context, const uint8_t uuid[16], bool is_simulated);
    void (*name)(void *context, const uint8_t uuid[16], char text[16]); /* the GPU's number, or "" */
    void *context;
};

int occ_meter_new(const struct occ_meter_options *options, struct occ_meter **ret_meter,
                  struct occ_error *err);
void occ_meter_free(struct occ_meter *meter); /* NULL is fine */

/* Launches of a run on one GPU, as they were appended to a history; the history's number, and who has a share
 * of the series. */
struct occ_meter_launches {
    uint32_t history;
    uint64_t owner;
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

void occ_meter_write(struct occ_meter *meter, const struct occ_exposition *exposition, int64_t now_ns);
