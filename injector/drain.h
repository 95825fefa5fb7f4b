/*
 * From activity records to the ring: parse, check, intern, push. Threads: the helper only.
 */
#ifndef OCC_INJECTOR_DRAIN_H
#define OCC_INJECTOR_DRAIN_H

#include "buffers.h"
#include "cupti.h"
#include "devices.h"
#include "exact_pairs.h"
#include "intern.h"

struct occ_drain {
    struct occ_ring_producer *ring;
    const struct occ_cupti *cupti;
    struct occ_pool *pool;
    struct occ_pairs *pairs; /* is told of every launch; NULL: nobody asked */
    struct occ_intern intern;
    struct occ_devices devices;
    bool
        by_force; /* the last round: a record without end is lost by the program's end (EXIT), not by CUPTI */
    uint64_t records;   /* parsed, ever */
    uint64_t bad_times; /* of those, ever */
    uint64_t buffers;
    uint64_t no_buffer; /* already counted as lost */
};

/* 0 or -errno. */
int occ_drain_init(struct occ_drain *drain, struct occ_ring_producer *ring, const struct occ_cupti *cupti,
                   struct occ_pool *pool);
void occ_drain_destroy(struct occ_drain *drain);

/* One record of at least occ_cupti_kernel_bytes() bytes. */
void occ_drain_record(struct occ_drain *drain, const struct occ_cupti_kernel *record);

/* Every buffer that was delivered before the call, and what was lost in the discard buffer. */
void occ_drain_all(struct occ_drain *drain);

#endif
