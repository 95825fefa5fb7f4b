/* Which launch was made in which NVTX range (--nvtx): the numbers that CUPTI wrote beside launch calls, until
 * the kernel with the call's correlation comes. What comes later than its kernel is not found: that launch
 * has no range. Threads: the helper. */
#pragma once

#include "cupti/activity_abi.h"
#include "nvtx/nvtx.h"
#include "ring/ring.h"

/* Correlations count up: the last so many calls are known. 8 MiB, memory only where it is used. */
#define OCC_RANGES_CALLS (1u << 20)

struct occ_ranges {
    struct occ_ring_producer *ring;
    const struct occ_nvtx_library *library;
    struct occ_ranges_call {
        uint32_t correlation, range;        /* range: the library's number; 0: none */
    } * calls;                              /* by correlation % OCC_RANGES_CALLS; NULL: off */
    uint16_t logged_as[OCC_NVTX_PATHS + 1]; /* 1 + id of the RANGE record; 0: there is none yet */
    uint16_t count;                         /* of RANGE records */
};

/* False: no memory. */
bool occ_ranges_start(struct occ_ranges *ranges, struct occ_ring_producer *ring,
                      const struct occ_nvtx_library *library);
void occ_ranges_add(struct occ_ranges *ranges, const struct occ_cupti_external_record *record);
/* 1 + id of the RANGE record of a launch; 0: it has none, or the log is full. */
uint32_t occ_ranges_of(struct occ_ranges *ranges, uint32_t correlation);
