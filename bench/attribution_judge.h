/*
 * Compares the values that the attribution reports in a world with the truth. Samples and launches arrive as
 * from the daemon's worker: samples every 50 ms; records when CUPTI's buffers are flushed (once a second), in
 * the order of their starts, 4 s late. The daemon passes the last 4 s at once; here they come in steps, so
 * that the heap's peak is a running program's. A configuration's value, and the decision to withhold it, are
 * the history's (occ_measured_means() of store/measured.h), with the totals of seconds that contradict means
 * (daemon/sampling/known_totals.h). The truth is the mean over all launches of the configuration, from the
 * first launch. One thread; aborts without memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribution_world.h"

#define JUDGE_HALF_WIDTH_MAX 0.10 /* half-width of a 95 % interval; wider intervals count as withheld */

/* Compares values with truths; sums over all values with a truth. */
struct judge_tally {
    uint64_t n, covered, beyond;                   /* beyond: errors of more than 3 standard errors */
    double weight, covered_weight, squared_weight; /* weight: launch time, ns */
    double error;                                  /* sum of error x weight */
    double worst;
};

struct judge_result {
    struct judge_tally elapsed, achieved; /* of configurations */
    struct judge_tally direct;            /* elapsed occupancy of single launches with a direct measurement */
    struct judge_tally
        utilization;             /* of configurations: ISSUE over active cycles, others over elapsed cycles */
    struct judge_tally history;  /* elapsed occupancy of configurations, with the history's errors */
    struct judge_tally measured; /* elapsed occupancy of configurations; truth: only launches with a value */
    double utilization_half_width; /* sum */
    /* half-widths of elapsed occupancy; n_half_widths values: by the errors of launches with a value; the
     * history's */
    double *half_widths, *history_half_widths;
    size_t n_half_widths, half_widths_room;
    /* Launch time in ns: of all launches; of configurations with a value; of values that are withheld because
     * they are a group's, because launches or known totals differ, because their interval is too wide. */
    double launch_ns, own_ns, grouped_ns, unlike_ns, wide_ns;
    double measured_ns; /* launch time of launches with a value of their own */
    double cpu_ns;
    uint64_t samples, launches, configs, runs;
    size_t heap_bytes; /* peak */
};

struct judge_options {
    double seconds;
    /* NULL, or a callback for each solution (occ_attribution_options) */
    void (*inspect)(void *context, const struct occ_attribution *attribution,
                    const struct occ_solution *solution);
    const struct occ_attribution_assumptions *assumptions; /* NULL: the usual values */
};

/* Adds a run to *result. */
void judge_run(const struct judge_options *options, const struct world *world, struct judge_result *result);
/* Adds the sums of `from` to *result, except the number of configurations and the heap peak, which belong to
 * one world. */
void judge_pool(struct judge_result *result, const struct judge_result *from);
void judge_free(struct judge_result *result);
