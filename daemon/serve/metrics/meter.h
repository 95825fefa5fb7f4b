/*
 * Sums of launches for /metrics: by GPU, cause, kernel and run. A launch costs one hash lookup; the store is
 * asked once for the model's values of a configuration. A job is a Slurm job or a Kubernetes namespace.
 *
 * Waste is the model's: duration * warps that the GPU holds * (1 - expected_elapsed_low), and its causes
 * (occupancy.h). Everything is bounded: 32 GPUs, 20 kernels, 8 jobs, `max_runs` runs, 131072 configurations
 * (when exceeded, all are looked up again). The 20 kernels with the most waste in the last hour are chosen
 * each hour; waste of a kernel that is not shown counts as "(other)", so that each part counts once and no
 * counter falls. GPUs and runs have entries by owner (slots.h); a day without launches ends the series of a
 * GPU that the driver does not list. Launches on a GPU without an entry count for the GPU "(other)".
 *
 * Held time: a run holds a GPU from its first launch to the end of its last launch; a run without an end
 * holds it until now. Runs that hold one GPU share each moment equally (support/held.h). The time is divided
 * into parts as in a bill (docs/cost.md), with the model's occupancy, and in the order in which launches
 * arrive. A gap between launches is unknown if a hole in recording overlaps the gap (store/holes.h). Before
 * the gap's end only holes without recording count as unknown; later idle time makes up for the rest.
 * Time without kernels is unknown, not idle, while the run lost launches. Counters follow 5 s later. Launches
 * arrive after their end: a first launch counts from its start, as far as nobody else held the GPU, and a day
 * at most; a later long one counts as idle time, for which later idle time makes up. After a step of the
 * clock all begins anew. Four models have series, by owner as GPUs; they end an hour after the last program.
 * An owner holds at most as many of 4096 places (runs on GPUs) as are free. GPUs missing from a complete list
 * of the driver hold nothing. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exposition.h"
#include "store/holes.h"
#include "store/store.h"
#include "support/error.h"

struct occ_meter;

/* A GPU reported by a program: in the driver's list, missing from a complete list, or unknown. */
enum occ_meter_standing { OCC_METER_LISTED, OCC_METER_INVENTED, OCC_METER_UNKNOWN };

struct occ_pseudonym;
struct occ_meter_options {
    size_t max_runs;
    const struct occ_pseudonym *users; /* form of the label `user`; NULL: names */
    enum occ_meter_standing (*look_up)(void *context, const uint8_t uuid[16], bool is_simulated);
    void (*name)(void *context, const uint8_t uuid[16], char text[16]); /* the GPU's number, or "" */
    int64_t (*wall_ns)(void); /* since the epoch; NULL: the system's clock */
    void *context;
};

int occ_meter_new(const struct occ_meter_options *options, struct occ_meter **ret_meter,
                  struct occ_error *err);
void occ_meter_free(struct occ_meter *meter); /* NULL is allowed */

/* Launches of a run on one GPU, as appended to a history. Their series count for `owner`. */
struct occ_meter_launches {
    uint32_t history;
    uint64_t owner;
    struct occ_store *store;
    const uint8_t *gpu; /* uuid */
    const struct occ_run *run;
    const struct occ_holes *holes; /* of the run; NULL: all was recorded */
    const struct occ_store_launch *rows;
    size_t n;
    uint64_t lost; /* lost launches of the run since its start */
};
void occ_meter_add(struct occ_meter *meter, const struct occ_meter_launches *launches, int64_t now_ns);

/* The holes of the owner's run with this uuid have changed. Reads them in this call only. */
void occ_meter_set_holes(struct occ_meter *meter, uint64_t owner, const uint8_t uuid[16],
                         const struct occ_holes *holes);

/* Looks up every configuration again: a history's ids have changed. */
void occ_meter_forget_configs(struct occ_meter *meter);

/* The run with this uuid has ended. Times are monotonic. */
void occ_meter_end_run(struct occ_meter *meter, const uint8_t uuid[16], int64_t now_ns);

void occ_meter_write(struct occ_meter *meter, const struct occ_exposition *exposition, int64_t now_ns);
