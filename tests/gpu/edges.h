/*
 * Finds the times at which a device changes between idle and fully active, by counter samples, and their
 * distance from the times of a trace. Pure; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/sampling/counters/source.h"

struct gpu_span {
    int64_t start_ns, end_ns;
};

/* Statistics of differences in ns, in the order of time. NaN with fewer than three. */
struct gpu_offset {
    size_t n;
    double mean_ns, sd_ns, median_ns, least_ns, most_ns;
    double drift_ppm; /* slope of a fitted straight line */
};

/* Finds for every kernel the rising and the falling edge in the samples within `window_ns` of the trace's
 * times (offset: sample time - trace time). Leaves out kernels without a clear edge. `rising` and `falling`
 * have room for `n_kernels`; *ret_rising and *ret_falling are the numbers of edges. */
void gpu_edges_find(const struct occ_sample *samples, size_t n, uint32_t sms, const struct gpu_span *kernels,
                    size_t n_kernels, int64_t window_ns, struct gpu_span *rising, size_t *ret_rising,
                    struct gpu_span *falling, size_t *ret_falling);

/* Computes the statistics of end_ns - start_ns: start_ns is the trace's time, end_ns the samples'. */
void gpu_offset_of(const struct gpu_span *edges, size_t n, struct gpu_offset *ret_offset);
