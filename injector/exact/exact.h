/*
 * --exact ($OCCTRACE_EXACT): the interface between the guest and libocctrace-exact.so, which the guest opens
 * for --exact only.
 *
 * The library runs CUPTI's range profiler around every kernel launch, in one pass, so that no kernel is
 * replayed; kernels then run one after the other. It subscribes to callbacks, works in the program's threads
 * and makes them wait for each other, which the guest itself never does. After a failure a context has no
 * values; the reason is reported.
 *
 * Threads: the thread that initialises CUDA calls start(), and stop() if no helper starts; the helper calls
 * the other functions, and stop(). The child of a fork does nothing. poll() naps at most 50 times 1 ms while
 * another thread holds the lock; finish() and stop() at most 100 times, for the lock and for threads inside
 * CUPTI, and then continue without them.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cupti/library.h"
#include "ring/ring_abi.h"

/* Changes with this interface: different numbers mean that guest and library are from different builds. */
#define OCC_EXACT_ABI 4u

struct occ_exact; /* one run of the profiler in this process */

struct occ_exact_launch {
    struct occ_ring_launch launch; /* config: OCC_EXACT_NO_CONFIG: not in the ring */
    bool is_timed;                 /* false: both times are 0, and the ring does not have the launch yet */
    enum occ_loss_cause cause;     /* reported loss if no time is found */
};
#define OCC_EXACT_NO_CONFIG UINT32_MAX

struct occ_exact_report {
    uint64_t measured, launches; /* launches with a value, and all launches, since start() */
    bool is_new;                 /* the reason changed since the last poll */
    bool has_failed;             /* no launch was measured and CUPTI refused all contexts: call stop() */
    char reason[OCC_REASON_BYTES];
};

/* Receives the results. */
struct occ_exact_sink {
    void *context;
    /* Writes one record into the ring's log and sets its `head`. Returns 1 if written, 0 if the record is
     * invalid and dropped, -1 if the log is full. */
    int (*measured)(void *context, struct occ_record_measured *record);
    /* Adds a launch with times to the ring. Returns false if the ring refused the launch and counted the
     * loss. */
    bool (*launch)(void *context, struct occ_ring_launch *launch);
    /* Counts n lost launches with unknown times. */
    void (*lost)(void *context, enum occ_loss_cause cause, uint64_t n);
};

struct occ_exact_library {
    uint32_t abi; /* OCC_EXACT_ABI */

    /* Starts measuring. Returns NULL if exact values are impossible; `reason` has the reason, or on success a
     * note for the user. The library keeps both pointers for the life of the process. *is_stopped: set by the
     * exiting thread at any time; the library then stops calling CUPTI, which may be torn down. */
    struct occ_exact *(*start)(const struct occ_cupti *cupti, const _Atomic bool *is_stopped,
                               char reason[OCC_REASON_BYTES]);
    /* Ends all sessions and unsubscribes, so that other profilers can subscribe. No session begins
     * afterwards. */
    void (*stop)(struct occ_exact *exact);
    /* Stores a launch for matching. Returns false for a kernel of a graph, which has no range of its own. A
     * launch without times is kept until its times are found or its loss is reported. */
    bool (*add_launch)(struct occ_exact *exact, const struct occ_exact_launch *launch);
    /* Matches measured ranges with launches and writes sums; called once a round. is_last: no launch follows;
     * settles or gives up all launches, writes all sums, and reports the run's summary as the reason. */
    void (*poll)(struct occ_exact *exact, bool is_last, const struct occ_exact_sink *sink,
                 struct occ_exact_report *ret_report);
    /* Stops new sessions. Each running session ends in the thread that next launches in its context. Does not
     * wait. */
    void (*retire)(struct occ_exact *exact);
    /* Ends every session if `may_call` (CUPTI may be called); no call of CUPTI follows. The next poll() still
     * writes the values of the ended sessions. */
    void (*finish)(struct occ_exact *exact, bool may_call);
};

/* The only exported symbol of libocctrace-exact.so. */
extern const struct occ_exact_library occ_exact_library;
