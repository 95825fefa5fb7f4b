/*
 * The GPUs that the driver shows to this process, for the sampler: launches name a GPU by its uuid, counter sources by
 * its CUDA ordinal. cuInit only, no context. Any thread, but one at a time.
 */
#ifndef OCC_SAMPLER_GPUS_H
#define OCC_SAMPLER_GPUS_H

#include <stddef.h>
#include <stdint.h>

#include "source.h"

#define OCC_GPUS_MOST 32

struct occ_gpu_found {
    uint32_t ordinal;
    uint8_t uuid[16]; /* of a MIG slice, if that is what the driver shows */
    uint32_t sm_count, max_warps_per_sm;
    uint32_t cc_major; /* compute capability: 9 is Hopper */
};

/* At most `max` of them. A state other than OK: there is no driver, or it does not answer; `err` has its words. */
enum occ_source_state occ_gpus_find(struct occ_gpu_found *gpus, size_t max, size_t *ret_n,
                                    struct occ_error *err);

#endif
