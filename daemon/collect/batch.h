/* Launches of one producer on their way from its ring to the store: see collector.h. One thread. */
#pragma once

#include "collector.h"

#define OCC_BATCH_LAUNCHES 1024 /* 40 KiB: stays in the cache between ring and store */

/* Launches that were read from the ring and wait for the store. */
struct occ_batch {
    struct occ_producer *producer;
    size_t n;
    struct occ_ring_launch launches[OCC_BATCH_LAUNCHES];
    struct occ_store_launch rows[OCC_BATCH_LAUNCHES]; /* rows of one device */
};

/* Removes launches that start more than `skew_ns` before their process or end more than `skew_ns` after now
 * (`boot_ns`, time since boot), and counts them, without memory operations, in the producer's bad_times.
 * After the wall clock was set, times by any of its settings since the offer are accepted. */
void occ_batch_drop_impossible(struct occ_batch *batch, int64_t skew_ns, int64_t boot_ns);

/* Appends the launches device by device, calls options->appended() for each device and adds their number to
 * *launches. Memory operations go to options->memory(). Launches whose configuration the store refused are
 * dropped first. On an error the remaining launches stay in the batch. */
int occ_batch_append(struct occ_batch *batch, struct occ_store *store,
                     const struct occ_collector_options *options, uint64_t *launches, struct occ_error *err);
