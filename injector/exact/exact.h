/*
 * --exact ($OCCTRACE_EXACT): the interface between the guest and libocctrace-exact.so, which the guest opens
 * for --exact only.
 *
 * The library runs CUPTI's range profiler around every kernel launch, in one pass, so that nothing is
 * replayed; kernels then run one after the other. It subscribes to callbacks, works in the program's threads
 * and makes them wait for each other, which the guest itself never does. Any failure leaves a context without
 * values, with a reason.
 *
 * Threads: start() and stop() by the thread that initialises CUDA, the others by the helper. The child of a
 * fork does nothing. poll() and finish() wait at most 50 ms for a thread of the program, and then do
 * without.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cupti/library.h"
#include "ring/ring_abi.h"

/* Both libraries come from one build; a number that differs means a mixture. */
#define OCC_EXACT_ABI 4u

struct occ_exact; /* one run of the profiler in this process */

struct occ_exact_launch {
    struct occ_ring_launch launch; /* config: OCC_EXACT_NO_CONFIG: the ring did not take it */
    bool is_timed;                 /* else both times are 0, and the ring has not had it yet */
    enum occ_loss_cause cause;     /* of its loss if no time is found for it */
};
#define OCC_EXACT_NO_CONFIG UINT32_MAX

struct occ_exact_report {
    uint64_t measured, launches; /* launches with a value, and launches seen; ever */
    bool is_new;                 /* the reason changed since the last poll */
    bool has_failed;             /* no launch was measured, and no context can be: finish() */
    char reason[OCC_REASON_BYTES];
};

/* Where results go. */
struct occ_exact_sink {
    void *context;
    /* Writes one record into the ring's log and sets its `head`. 1: written; 0: invalid, dropped; -1: no
     * room. */
    int (*measured)(void *context, struct occ_record_measured *record);
    /* A launch whose times were found. False: the ring did not take it, and counted the loss. */
    bool (*launch)(void *context, struct occ_ring_launch *launch);
    /* n launches whose times are unknown. */
    void (*lost)(void *context, enum occ_loss_cause cause, uint64_t n);
};

struct occ_exact_library {
    uint32_t abi; /* OCC_EXACT_ABI */

    /* NULL, with the reason: there will be no exact values. Both pointers are borrowed for good. is_stopped:
     * set by the exiting thread, at any time: CUPTI may be torn down, and is not called any more. */
    struct occ_exact *(*start)(const struct occ_cupti *cupti, const _Atomic bool *is_stopped,
                               char reason[OCC_REASON_BYTES]);
    /* Ends all sessions and unsubscribes, at a time when nobody launches. */
    void (*stop)(struct occ_exact *exact);
    /* False: a graph's kernel, which has no range of its own. A launch without times is kept until they are
     * found or given up. */
    bool (*add_launch)(struct occ_exact *exact, const struct occ_exact_launch *launch);
    /* Once a round: matches measured ranges with launches and writes sums. is_last: no launch will follow;
     * keeps none, writes all, and the reason is the run's summary. */
    void (*poll)(struct occ_exact *exact, bool is_last, const struct occ_exact_sink *sink,
                 struct occ_exact_report *ret_report);
    /* No session begins any more; running ones end in the threads that launch next. Waits for nothing. */
    void (*retire)(struct occ_exact *exact);
    /* Ends every session, unless CUPTI may not be called. No values after this, and no call of CUPTI. */
    void (*finish)(struct occ_exact *exact, bool may_call);
};

/* The one symbol of libocctrace-exact.so. */
extern const struct occ_exact_library occ_exact_library;
