/*
 * How a run uses a GPU, from the times of its launches: when at least one of its kernels ran (busy), and the
 * gaps between. Kernels alone are counted: a copy runs in a gap, and so does another process.
 *
 * What a gap is, by its length. In two public PyTorch recordings that have the launch calls too (A100, 8568
 * launches, and V100, 4350; tests/integration/gaps.py counts them) the next kernel was already launched
 * when the gap began in 99 % of the gaps of at most 5 us: the hardware needs that between two kernels. On the
 * A100 97 % of the gaps of 10 to 100 us began before the call of the next launch did: the GPU waited for the
 * CPU. Longer gaps have other causes too: synchronisation, copies, data that are not ready. So a busy
 * stretch ends at a gap above 100 us, and what CUDA graphs may save of it are the gaps above 5 us before
 * launches. A kernel inside a graph is not launched by the CPU: gaps before those do not count.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter.h"
#include "support/error.h"

struct occ_store;

#define OCC_GAP_SHORT_NS  100000 /* at most: inside a busy stretch */
#define OCC_GAP_QUEUED_NS 5000   /* at most: what the hardware needs between two kernels */
/* At least: no recording, where the injector records one second of ten and does not record which (level
 * configs): it does not record for a second or more, and a shorter gap is one between two kernels. */
#define OCC_GAP_SAMPLED_NS 500000000
/* From this part of the busy stretches on, what they are lost to deserves advice. A choice. */
#define OCC_GAP_ADVICE_RATIO 0.1

/* A run on a GPU. Only launches that are kept one by one. */
struct occ_gpu_use {
    int64_t run, device;
    char device_name[96];
    bool simulated;
    uint32_t cc;
    uint64_t launches;
    int64_t first_ns, last_ns; /* first start, last end */
    uint64_t busy_ns;          /* union of the kernels' times */
    uint64_t small_alone_ns;   /* in which one kernel of less than one wave ran, and no other */
    uint64_t gaps, max_ns;     /* number of gaps between first and last; the largest */
    uint64_t p50_ns, p95_ns;   /* of gaps, from a histogram: at most 12.5 % off */
    uint64_t short_ns;         /* sum of gaps inside busy stretches, of which: */
    uint64_t launch_ns;        /* before launches outside of graphs */
    uint64_t queued_ns;        /* too short to be the CPU's */
    uint64_t long_ns;          /* sum of gaps between busy stretches */
    uint64_t unrecorded_ns;    /* holes in which nothing was recorded: no gaps */
};

/* The launches of a configuration; all 0: not known. */
struct occ_config_use {
    int64_t config;
    uint64_t launches;
    uint64_t total_ns, alone_ns; /* sum of durations; in which no other kernel of the run ran */
    uint64_t launch_ns;          /* as above, before its launches */
    bool launch_bound;           /* the run on its GPU */
};

struct occ_gpu_uses {
    struct occ_gpu_use *gpus; /* by run and device */
    struct occ_config_use *configs;
    size_t n_gpus, n_configs, allocated_gpus, allocated_configs;
};

/* From the first start to the last end, without holes: what parts of the time are parts of. */
int64_t occ_gpu_recorded_ns(const struct occ_gpu_use *use);
/* Part of the busy stretches in which the GPU waits for a launch; NaN: there is no time. */
double occ_gpu_launch_ratio(const struct occ_gpu_use *use);
bool occ_gpu_is_launch_bound(const struct occ_gpu_use *use);

/* Of the filter's run and time alone. Reads each launch, by their starts. No launches: no rows. */
int occ_store_gpu_uses(struct occ_store *store, const struct occ_filter *filter,
                       struct occ_gpu_uses *ret_uses, struct occ_error *err);
void occ_gpu_uses_free(struct occ_gpu_uses *uses);
