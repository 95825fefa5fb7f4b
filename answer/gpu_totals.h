/* Steps of an overview. Internal to answer/. One thread. */
#pragma once

#include "answer.h"
#include "support/arena.h"

/* Launches of an overview's kernels on a device. */
struct occ_device_sums {
    int64_t device;
    double duration_ns; /* sum of durations */
    uint64_t launches;
};

/* Fills the rows of GPUs in `overview` with recorded and busy time; `sums`: one for each row of
 * overview->totals.gpus, whose `gpu` is set. */
void occ_gpu_totals_fill(const struct occ_gpu_estimates *estimates, const struct occ_device_sums *sums,
                         struct occ_gpu_totals *gpus, size_t n, struct occ_overview *overview);

/* Adds changes to the configurations that lose most; at most OCC_CANDIDATES_CONFIGS get changes. */
#define OCC_CANDIDATES_CONFIGS 32
int occ_candidates_add(struct occ_store *store, const struct occ_filter *filter,
                       struct occ_overview *overview, struct occ_kernel_totals *kernels, size_t n,
                       struct occ_arena *arena, struct occ_error *err);
