/*
 * What observing costs, for the ring's cost counters. Threads: the helper only, but for the two fields that init
 * fills before it exists.
 */
#ifndef OCC_INJECTOR_COSTS_H
#define OCC_INJECTOR_COSTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "drain.h"

/* The name that CUPTI's worker inherits: it is made while the calling thread bears it for a moment. */
#define OCC_COSTS_WORKER_NAME "occtrace-cupti"

struct occ_costs {
    uint64_t init_ns;
    uint32_t looks; /* for CUPTI's worker, so far */
    pid_t worker;   /* 0: not found */
};

void occ_costs_measure(struct occ_costs *costs, const struct occ_drain *drain);

#endif
