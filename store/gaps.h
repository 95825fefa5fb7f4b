/*
 * How a run uses a GPU, from the times of its launches: busy time, in which at least one of its kernels ran,
 * and the gaps between. Only kernels count: copies and other processes run in gaps.
 *
 * The meaning of a gap depends on its length. In two public PyTorch recordings that have the launch calls too
 * (A100, 8568 launches, and V100, 4350; tests/integration/gaps.py counts them) the next kernel was already
 * launched when the gap began in 99 % of the gaps of at most 5 us: the hardware needs this time between two
 * kernels. On the A100 97 % of the gaps of 10 to 100 us began before the call of the next launch did: the GPU
 * waited for the CPU. Longer gaps have other causes too: synchronisation, copies, data that are not ready. So
 * a busy stretch ends at a gap above 100 us, and CUDA graphs can save its gaps above 5 us before launches. A
 * kernel inside a graph is not launched by the CPU: gaps before such kernels do not count.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter.h"
#include "support/error.h"
#include "support/map.h"

struct occ_store;

#define OCC_GAP_SHORT_NS  100000 /* maximum length of a gap inside a busy stretch */
#define OCC_GAP_QUEUED_NS 5000   /* maximum time that the hardware needs between two kernels */
/* Minimum length of a gap without recording at level configs, where the injector records one second of ten at
 * unknown times: recording pauses for a second or more, and a shorter gap is a gap between two kernels. */
#define OCC_GAP_SAMPLED_NS 500000000
/* Share of the busy stretches lost to launch gaps from which advice is given. Chosen, not measured. */
#define OCC_GAP_ADVICE_RATIO 0.1

/* Use of a GPU by a run. Only launches that are stored individually. */
struct occ_gpu_use {
    int64_t run, device;
    char device_name[96];
    bool simulated;
    uint32_t cc;
    uint64_t launches;
    int64_t first_ns, last_ns; /* first start, last end */
    uint64_t busy_ns;          /* union of the kernels' times */
    uint64_t small_alone_ns;   /* time in which a single kernel of less than one wave ran */
    uint64_t gaps, max_ns;     /* number of gaps between first_ns and last_ns; the largest gap */
    uint64_t p50_ns, p95_ns;   /* quantiles of the gaps, from a histogram: at most 12.5 % off */
    uint64_t short_ns;         /* sum of the gaps inside busy stretches; a part of it: */
    uint64_t launch_ns;        /* gaps before launches outside of graphs */
    uint64_t queued_ns;        /* gaps too short to be caused by the CPU */
    uint64_t long_ns;          /* sum of gaps between busy stretches */
    uint64_t unrecorded_ns;    /* gaps in recording, which do not count as gaps */
};

/* Use of a GPU by a configuration; all 0: unknown. */
struct occ_config_use {
    int64_t config;
    uint64_t launches;
    uint64_t total_ns, alone_ns; /* sum of durations; time in which no other kernel of the run ran */
    uint64_t launch_ns;          /* launch_ns of struct occ_gpu_use, for this configuration */
    bool launch_bound;           /* the run is launch-bound on its GPU */
};

struct occ_gpu_uses {
    struct occ_gpu_use *gpus; /* ordered by run and device */
    struct occ_config_use *configs;
    size_t n_gpus, n_configs, allocated_gpus, allocated_configs;
};

/* The recorded time: from the first start to the last end, without gaps in recording. Denominator of all
 * shares. */
int64_t occ_gpu_recorded_ns(const struct occ_gpu_use *use);
/* Share of the busy stretches in which the GPU waits for a launch; NaN: no time. */
double occ_gpu_launch_ratio(const struct occ_gpu_use *use);
bool occ_gpu_is_launch_bound(const struct occ_gpu_use *use);

/* True if the GPU waited for the launch after a gap of this length. */
static inline bool occ_gap_is_launch(uint64_t ns, bool in_graph)
{
    return ns > OCC_GAP_QUEUED_NS && ns <= OCC_GAP_SHORT_NS && !in_graph;
}

/* Uses only the filter's run (0: no rows), GPU and time. Reads every launch, ordered by start. A GPU without
 * launches has no row. */
int occ_store_gpu_uses(struct occ_store *store, const struct occ_filter *filter,
                       struct occ_gpu_uses *ret_uses, struct occ_error *err);
void occ_gpu_uses_free(struct occ_gpu_uses *uses);

/* At most about this many launches are read for an estimate: a few milliseconds. */
#define OCC_GPU_ESTIMATE_LAUNCHES (UINT64_C(1) << 17)

/* Use of a GPU by a run, from all its launches, or from evenly spread chunks of a long run. */
struct occ_gpu_estimate {
    int64_t run, device;
    /* from the first start to the last end in the filter's time, without gaps in recording; in chunks that
     * were not read, gaps at level configs are estimated. Without stored launches: without periods of no
     * recording, and without nine tenths of those at level configs */
    uint64_t recorded_ns;
    uint64_t unrecorded_ns; /* the rest of the time from the first start to the last end */
    uint64_t launches; /* stored individually; launches in chunks of which a part lies in the time count */
    /* of the launches that were read, each cut to the filter's time: */
    uint64_t read;           /* number that start in the time */
    uint64_t duration_ns;    /* sum of durations */
    uint64_t busy_ns;        /* union of their times */
    uint64_t others_busy_ns; /* the same without the launches of the given kernels */
    uint64_t launch_ns;      /* time in which the GPU waited for their launch */
    /* exact, whatever was read: time in the filter's time of launches that start before it, and time after
     * it of launches that start in it */
    uint64_t entering_ns, leaving_ns;
    uint64_t others_entering_ns; /* entering_ns without the launches of the given kernels */
    int64_t first_ns, last_ns;   /* first start and last end in the filter's time */
    uint64_t lost, of_launches;  /* of the run, on all GPUs, at any time: launches lost, launches recorded */
    uint8_t uuid[16];            /* of the device */
    bool has_uuid;               /* false: GPUs of several machines may have this device */
    bool
        is_replay; /* from a report of Nsight Compute, which runs kernels one by one: times have no meaning */
};
struct occ_gpu_estimates {
    struct occ_gpu_estimate *list; /* ordered by run and device */
    size_t n, allocated;
};

/* Uses only the filter's runs and time; a launch that starts before the time counts from its begin. Launches
 * of a replay are never cut. `others_than`: ids of the kernels without which others_busy_ns counts. Runs of
 * which no launch is stored individually have read 0. */
int occ_store_gpu_estimates(struct occ_store *store, const struct occ_filter *filter,
                            const struct occ_map *others_than, struct occ_gpu_estimates *ret_estimates,
                            struct occ_error *err);
/* Sets the unrecorded nanoseconds of a time [low_ns, high_ns] in which the run has no launches: in periods in
 * which one second in ten is recorded, nine tenths. */
int occ_store_unrecorded(struct occ_store *store, int64_t run, int64_t low_ns, int64_t high_ns,
                         uint64_t *ret_ns, struct occ_error *err);
void occ_gpu_estimates_free(struct occ_gpu_estimates *estimates);
