/*
 * Devices of this process: CUDA's number -> id in the ring's log. The first record of a device makes its
 * DEVICE record, from what the driver says (the libcuda that the program loaded; we load none). What cannot
 * be had is 0.
 *
 * Threads: the helper only.
 */
#ifndef OCC_INJECTOR_DEVICES_H
#define OCC_INJECTOR_DEVICES_H

#include <stdint.h>

#include "ring/ring.h"

#define OCC_DEVICES_FULL UINT32_MAX

struct occ_devices {
    uint32_t count;
    uint32_t id_plus_1[OCC_LOG_MAX_DEVICES]; /* by ordinal */
};

/* The id, or OCC_DEVICES_FULL if the ordinal is beyond reason or the log is full. */
uint32_t occ_devices_id(struct occ_devices *devices, struct occ_ring_producer *ring, uint32_t ordinal);

#endif
