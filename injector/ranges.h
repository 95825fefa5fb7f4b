/* The NVTX range of each launch (--nvtx): stores the ids that CUPTI wrote next to launch calls until the
 * kernel with the call's correlation arrives. A kernel that arrives before its call's record has no range.
 * Threads: the helper. */
#pragma once

#include "cupti/activity_abi.h"
#include "nvtx/nvtx.h"
#include "ring/producer.h"

/* Correlations count up: the table holds the latest calls. 8 MiB, used as needed. */
#define OCC_RANGES_CALLS (1u << 20)

struct occ_ranges {
    struct occ_ring_producer *ring;
    const struct occ_nvtx_library *library;
    struct occ_ranges_call {
        uint32_t correlation, range;        /* range: the library's id; 0: none */
    } * calls;                              /* index: correlation % OCC_RANGES_CALLS; NULL: off */
    uint16_t logged_as[OCC_NVTX_PATHS + 1]; /* 1 + id of the RANGE record; 0: not written yet */
    uint16_t count;                         /* number of RANGE records */
};

/* false: no memory. */
bool occ_ranges_start(struct occ_ranges *ranges, struct occ_ring_producer *ring,
                      const struct occ_nvtx_library *library);
void occ_ranges_add(struct occ_ranges *ranges, const struct occ_cupti_external_record *record);
/* 1 + id of the RANGE record of a launch; 0: no range, or the log is full. */
uint32_t occ_ranges_of(struct occ_ranges *ranges, uint32_t correlation);
