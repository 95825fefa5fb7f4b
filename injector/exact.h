/*
 * --exact ($OCCTRACE_EXACT): CUPTI's range profiler around every kernel launch, in one pass, so that nothing is replayed. Kernels
 * then run one after the other. Values go to the helper session by session (exact_pairs.h).
 *
 * A session is from the profiler's start to its stop in one context. It ends when it holds enough launches, before and after
 * the launch of a graph (of unknown size), when its context goes, and at the program's end; the next launch begins
 * the next one. While a stream is captured none begins or ends, since that could break the capture.
 *
 * Here the guest does what it does nowhere else: it subscribes to callbacks, works in the program's threads, and makes
 * them wait for each other. Whatever fails leaves the context without values, the profiler off, and a reason.
 *
 * Threads: occ_exact_start() the one that initialises CUDA; callbacks any of the program's, one at a time under `lock`;
 * occ_exact_take() and occ_exact_finish() the helper.
 */
#ifndef OCC_INJECTOR_EXACT_H
#define OCC_INJECTOR_EXACT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cupti.h"
#include "exact_pairs.h"
#include "profiler_abi.h"

#define OCC_EXACT_MOST_CONTEXTS 16u

struct occ_exact_functions {
#define X(slot, symbol, parameters) uint32_t(*slot) parameters;
#include "profiler_table.def"
#undef X
};

enum occ_exact_state { OCC_EXACT_FREE, OCC_EXACT_READY, OCC_EXACT_RUNNING, OCC_EXACT_FAILED };

struct occ_exact_context {
    enum occ_exact_state state;
    bool is_graph;      /* the session holds a graph's launch */
    bool is_ending;     /* the session waits for launches that have begun */
    uint32_t id;        /* as activity records have it */
    uint32_t launches;  /* of the session */
    uint32_t in_flight; /* threads inside a call that launches */
    uint64_t began_ns;
    uint64_t lost; /* when the session began */
    void *context, *profiler, *host;
    uint8_t *config, *image;
    size_t config_bytes, image_bytes;
};

struct occ_exact {
    _Atomic bool
        is_on; /* callbacks are looked at; never in the child of a fork, where `lock` may be locked for ever */
    _Atomic bool is_retired; /* each context is given up when it launches next */
    pthread_mutex_t lock;
    pthread_cond_t quiet; /* no launch is in flight, or a session has ended */
    const struct occ_cupti *cupti;
    struct occ_exact_functions call;
    void *subscriber;
    uint32_t captures; /* streams that are being captured */
    struct occ_exact_context contexts[OCC_EXACT_MOST_CONTEXTS];
    bool is_full;                      /* a context found no place in them */
    _Atomic uint64_t lost;             /* by the helper: what a session begins with (exact_pairs.h) */
    struct occ_session *first, **last; /* ended, for the helper */
    uint32_t waiting;                  /* of these */
    char problem[OCC_REASON_BYTES];    /* why a context has no values; "" */
    bool problem_is_new;
};

/* The counters of a pass, in the order of struct occ_range_counts. For the test that they are one pass. */
#define OCC_EXACT_METRICS 4
extern const char *const occ_exact_metrics[OCC_EXACT_METRICS];

/* False, with the reason: there will be no exact values. */
bool occ_exact_start(struct occ_exact *exact, const struct occ_cupti *cupti, char reason[OCC_REASON_BYTES]);

/* What follows waits for the lock 50 ms at most, and does nothing if it cannot be had. */

/* Sessions that have ended, oldest first, each to be freed by occ_pairs_settle(); NULL: none. */
struct occ_session *occ_exact_take(struct occ_exact *exact);
/* True once for each new reason why there are no values; `reason` is the last one. */
bool occ_exact_problem(struct occ_exact *exact, char reason[OCC_REASON_BYTES]);
/* Ends every session. No values after this. */
void occ_exact_finish(struct occ_exact *exact);
/* The same at a time when nobody launches, and gives the subscriber back. */
void occ_exact_stop(struct occ_exact *exact);

/* No session begins any more. Those that run end in the threads that launch next, so that the caller need not go near CUPTI. Waits for
 * nothing. */
void occ_exact_retire(struct occ_exact *exact);

#endif
