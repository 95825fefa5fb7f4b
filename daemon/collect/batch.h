/* Launches of one producer on their way from its ring to the store: see collector.h. One thread. */
#pragma once

#include "collector.h"

#define OCC_BATCH_LAUNCHES 1024 /* 40 KiB: stays in the cache between ring and store */

/* What was read and is not in the store yet. */
struct occ_batch {
    struct occ_producer *producer;
    size_t n;
    struct occ_ring_launch launches[OCC_BATCH_LAUNCHES];
    struct occ_store_launch rows[OCC_BATCH_LAUNCHES]; /* those of one device */
};

/* Removes launches that start more than `skew_ns` before their process or end more than that after now
 * (`boot_ns`, time since boot), and counts them as the producer's. Where the clock was set since the offer,
 * times by any of its settings are possible. */
void occ_batch_drop_impossible(struct occ_batch *batch, int64_t skew_ns, int64_t boot_ns);

/* Appends all to the store, but for launches of configurations that it refused, one device after the other,
 * and calls options->appended(); *launches counts them. On an error the rest waits in the batch. */
int occ_batch_append(struct occ_batch *batch, struct occ_store *store,
                     const struct occ_collector_options *options, uint64_t *launches, struct occ_error *err);
