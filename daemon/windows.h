/*
 * Launches between ring and store: into the reorder window (reorder.h) of their program and device, and from there into
 * the store. The options and the store are the collector's. One thread.
 */
#ifndef OCC_DAEMON_WINDOWS_H
#define OCC_DAEMON_WINDOWS_H

#include "collector.h"

struct occ_windows {
    struct occ_store *store;
    const struct occ_collector_options *options;
    uint64_t held_rows; /* in all windows */
    uint64_t launches;  /* appended to the store */
};

/* Puts launches whose configurations are in the producer's tables into its windows. False: no memory. */
bool occ_windows_place(struct occ_windows *windows, struct occ_producer *producer,
                       const struct occ_ring_launch *launches, size_t n);

/* Appends the launches of a producer to the store: as many as `limits` demand, or all (NULL). */
int occ_windows_emit(struct occ_windows *windows, struct occ_producer *producer,
                     const struct occ_reorder_limits *limits, struct occ_error *err);

/* Frees the memory of a producer's windows, which are empty. */
void occ_windows_release(struct occ_producer *producer);

#endif
