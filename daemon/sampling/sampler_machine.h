/* The machine as the sampler sees it: clocks, GPUs, counter sources, /proc. Tests replace it by fakes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/sampling/counters/gpus.h"
#include "daemon/sampling/counters/source.h"
#include "daemon/sampling/energy.h"

/* Kinds of counter sources, best first. */
enum occ_source_slot_number { OCC_SLOT_PM, OCC_SLOT_GPM, OCC_SOURCE_SLOTS };

struct occ_sampler_machine {
    int64_t (*now_ns)(void);       /* since the epoch */
    int64_t (*monotonic_ns)(void); /* CLOCK_MONOTONIC if has_threads */
    const struct occ_source_kind *kinds[OCC_SOURCE_SLOTS];
    enum occ_source_state (*find_gpus)(struct occ_gpu_found *gpus, size_t max, size_t *ret_n,
                                       struct occ_error *err);
    const struct occ_energy_kind *energy; /* NULL: none */
    const char *proc;                     /* "/proc" */
    /* false: no thread is started (tests). GPUs are found in the caller's thread, and occ_gpu_worker_step()
     * does the work of a GPU's thread. */
    bool has_threads;
};

extern const struct occ_sampler_machine occ_sampler_this_machine;
