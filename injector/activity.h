/* A kernel record of CUPTI, parsed. Pure: reads the record, follows no pointer in it. Any thread. */
#pragma once

#include <stdbool.h>

#include "cupti/activity_abi.h"
#include "ring/ring_abi.h"

struct occ_activity {
    const char *name;                /* as returned by CUPTI; check before reading (readable.h) */
    uint32_t ordinal;                /* CUDA's device number */
    bool times_are_valid;            /* false: launch.start_ns and duration_ns are 0 */
    bool has_no_end;                 /* the kernel was still running in a forced flush */
    struct occ_record_config config; /* without record, id, kernel and device; not validated */
    struct occ_ring_launch launch;   /* without config and check */
};

/* `version` is cuptiGetVersion()'s; `record` has occ_cupti_kernel_bytes(version) bytes. */
void occ_activity_parse(const struct occ_cupti_kernel *record, uint32_t version,
                        struct occ_activity *ret_record);
