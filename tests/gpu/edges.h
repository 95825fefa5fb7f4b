/*
 * Where a device that is idle or fully active by turns changes, in the time of counter samples, and how far
 * that is from the times of a trace. Pure; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/sampling/counters/source.h"

struct gpu_span {
    int64_t start_ns, end_ns;
};

/* Of a list of differences in ns, in the order of time. NaN with fewer than three. */
struct gpu_offset {
    size_t n;
    double mean_ns, sd_ns, median_ns, least_ns, most_ns;
    double drift_ppm; /* slope of a straight line through them */
};

/* For every kernel the distance of its rising and its falling edge in the samples from what the trace says
 * (sample time - trace time), looked for within `window_ns` around the trace's time. A kernel whose edge is
 * not well inside is left out. `rising` and `falling` have room for `kernels`; *ret_rising and *ret_falling
 * of them are set. */
void gpu_edges_find(const struct occ_sample *samples, size_t n, uint32_t sms, const struct gpu_span *kernels,
                    size_t n_kernels, int64_t window_ns, struct gpu_span *rising, size_t *ret_rising,
                    struct gpu_span *falling, size_t *ret_falling);

/* Differences are end_ns - start_ns of the spans: start_ns is the trace's time, end_ns the samples'. */
void gpu_offset_of(const struct gpu_span *edges, size_t n, struct gpu_offset *ret_offset);
