/*
 * Compares the values that the attribution reports of a world with the truth. Samples and launches reach it
 * as the daemon's worker hands them on: samples every 50 ms, records when CUPTI's buffers are flushed (once a
 * second), in order of their start, 4 s late; but the last 4 s, which the daemon hands on at once, come in
 * steps, so that the peak of the heap is what a running program needs. A configuration's value, and whether
 * it is withheld, are the history's (occ_measured_means() of store/measured.h), with the totals of seconds
 * that contradict means (daemon/sampling/known_totals.h); the truth is the mean over all its launches, from
 * the first launch. One thread; aborts where memory ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribution_world.h"

#define JUDGE_HALF_WIDTH_MAX 0.10 /* of a 95 % interval; wider counts as withheld */

/* Values against truths; sums over all that have one. */
struct judge_tally {
    uint64_t n, covered, beyond;                   /* beyond: 3 standard errors */
    double weight, covered_weight, squared_weight; /* weight: launch time */
    double error;                                  /* times weight */
    double worst;
};

struct judge_result {
    struct judge_tally elapsed, achieved; /* of configurations */
    struct judge_tally direct;            /* elapsed of single launches that were read directly */
    struct judge_tally
        utilization;               /* of configurations: ISSUE of active cycles, the others of elapsed ones */
    struct judge_tally history;    /* elapsed of configurations, with the history's errors */
    struct judge_tally measured;   /* elapsed of configurations; truth: the launches with a value only */
    double history_half_width;     /* sum */
    double utilization_half_width; /* sum */
    double *half_widths;           /* of elapsed; n_half_widths */
    size_t n_half_widths, half_widths_room;
    /* launch time: all; of configurations with a value; withheld since it is a group's, since launches or
     * known totals differ; with too wide an interval */
    double launch_ns, own_ns, grouped_ns, unlike_ns, wide_ns;
    double measured_ns; /* of launches with a value of their own */
    double cpu_ns;
    uint64_t samples, launches, configs, runs;
    size_t heap_bytes; /* peak */
};

struct judge_options {
    double seconds;
    /* NULL, or called with each solution (occ_attribution_options) */
    void (*inspect)(void *context, const struct occ_attribution *attribution,
                    const struct occ_solution *solution);
};

/* Adds a run to *result. */
void judge_run(const struct judge_options *options, const struct world *world, struct judge_result *result);
/* Adds what `from` has to *result, except what belongs to one world: configurations, heap. */
void judge_pool(struct judge_result *result, const struct judge_result *from);
void judge_free(struct judge_result *result);
