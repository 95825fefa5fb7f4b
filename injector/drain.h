/* From activity records to the ring: parse, check, intern, push. Threads: the helper only; the exiting thread
 * reads `steps` and sets `is_stopped`. */
#pragma once

#include "buffers.h"
#include "devices.h"
#include "exact/exact.h"
#include "intern.h"
#include "ranges.h"
#include "tracing.h"

/* --exact: libocctrace-exact.so, opened only if $OCCTRACE_EXACT is set. */
struct occ_exact_client {
    const struct occ_exact_library *call; /* valid while `run` is or was set; NULL: without --exact */
    struct occ_exact *run;                /* NULL: no measurement */
};

#define OCC_DRAIN_PAUSES 8u

struct occ_drain {
    struct occ_ring_producer *ring;
    const struct occ_tracing *tracing;
    struct occ_pool *pool;
    const struct occ_exact_client *exact; /* gets every launch while it measures */
    struct occ_intern intern;
    struct occ_devices devices;
    struct occ_ranges ranges;
    struct occ_drain_ahead {
        int index;
        uint8_t *buffer;
        size_t valid_bytes;
    } ahead[OCC_POOL_MAX_BUFFERS]; /* buffers whose ranges were read: n_ahead, the next is at_ahead */
    uint32_t n_ahead, at_ahead;
    struct occ_pause {
        uint64_t since_ns, until_ns; /* CLOCK_REALTIME; UINT64_MAX: the pause has not ended */
    } pauses[OCC_DRAIN_PAUSES];      /* the last pauses: a buffer may arrive long after its launches */
    uint32_t pause;                  /* index of the newest pause */
    uint64_t max_launches;           /* 0: no limit; further launches are ignored, not lost */
    uint64_t beyond_ns;              /* start of the first launch beyond max_launches; 0: none */
    bool by_force;      /* the last round: a record without end is lost by the program's end, not by CUPTI */
    uint64_t records;   /* parsed since the start */
    uint64_t memory;    /* memory operations pushed since the start: not launches */
    uint64_t bad_times; /* records without valid times since the start; without --exact */
    uint64_t buffers;   /* drained since the start */
    uint64_t no_buffer; /* records in the discard buffer already counted as lost */
    uint64_t reread_records, reread_ns; /* when names were last read again */
    _Atomic uint64_t steps;             /* grows with each call of CUPTI and each buffer */
    _Atomic bool is_stopped;            /* set by the exiting thread: CUPTI must not be called any more */
};

static inline bool occ_drain_is_stopped(const struct occ_drain *drain)
{
    return atomic_load_explicit(&drain->is_stopped, memory_order_acquire);
}

static inline void occ_drain_step(struct occ_drain *drain)
{
    (void)atomic_fetch_add_explicit(&drain->steps, 1, memory_order_relaxed);
}

/* 0 or -errno. */
int occ_drain_init(struct occ_drain *drain, struct occ_ring_producer *ring, const struct occ_tracing *tracing,
                   struct occ_pool *pool, const struct occ_exact_client *exact);

/* Both are called again in each round. No pause is in the future, although the clock may be set back: an open
 * pause begins earlier then, and ended pauses are cut. */

/* Ignores launches that start from `now_ns` on. false: a pause has begun already. */
bool occ_drain_pause(struct occ_drain *drain, uint64_t now_ns);
/* Ends the pause at `now_ns`: launches that started in it stay ignored, whenever their records arrive. */
void occ_drain_resume(struct occ_drain *drain, uint64_t now_ns);

/* Handles one record of at least occ_cupti_kernel_bytes() bytes. */
void occ_drain_record(struct occ_drain *drain, const struct occ_cupti_kernel *record);

/* Drains every buffer that was delivered before the call and counts losses in the discard buffer. */
void occ_drain_all(struct occ_drain *drain);

/* Pushes a launch whose missing times --exact has found. false: the ring was full and counted the loss. */
bool occ_drain_found(struct occ_drain *drain, struct occ_ring_launch *launch);
