/* Devices of this process: CUDA's ordinal -> id in the ring's log. The first activity record of a device
 * writes its DEVICE record, as reported by the driver (the libcuda that the program loaded; the guest loads
 * none). Unknown values are 0.
 *
 * Threads: the helper only. */
#pragma once

#include <stdint.h>

#include "ring/producer.h"

#define OCC_DEVICES_FULL UINT32_MAX

struct occ_devices {
    uint32_t count;
    uint32_t id_plus_1[OCC_LOG_MAX_DEVICES]; /* index: ordinal */
};

/* The id, or OCC_DEVICES_FULL if the ordinal is too large or the log is full. */
uint32_t occ_devices_id(struct occ_devices *devices, struct occ_ring_producer *ring, uint32_t ordinal);
