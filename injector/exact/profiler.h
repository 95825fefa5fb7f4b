/*
 * The range profiler of one context: configures the chip's counters and runs sessions.
 *
 * A session lasts from the profiler's start to its stop in one context. It ends with the first launch after a
 * second, when it holds enough launches, before the launch of a graph (of unknown size), before a capture in
 * its context, when its context is destroyed, and at the program's end; the context's next kernel launch
 * begins a new session. No session begins or ends while a stream is captured, since that could break the
 * capture.
 *
 * Threads: any thread of the program that CUPTI calls back. A thread claims a context before it calls CUPTI
 * for it, and holds no lock of the library meanwhile: CUPTI may hold its own lock while it calls another
 * thread back. A thread that finds a context claimed waits a bounded time and then leaves the context alone.
 * Memory comes from mmap(2).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#include "captures.h"
#include "cupti/host.h"
#include "exact.h"
#include "matching.h"

#define OCC_EXACT_MAX_CONTEXTS 16u
/* A session ends with the first launch after this time. A killed program loses its running sessions only. */
#define OCC_EXACT_SESSION_NS UINT64_C(1000000000)

enum occ_exact_state { OCC_EXACT_FREE, OCC_EXACT_NEW, OCC_EXACT_READY, OCC_EXACT_RUNNING, OCC_EXACT_FAILED };

struct occ_exact_context {
    _Atomic int state;           /* enum occ_exact_state; changed by the thread that claimed it */
    bool is_claimed;             /* a thread prepares it, or ends and begins its sessions */
    bool is_gone;                /* destroyed while a thread had claimed it: the entry stays unused */
    bool is_graph;               /* the session has a graph's launch */
    bool is_crowded;             /* a launch in flight delayed others too long: launches may overlap */
    uint32_t launches;           /* in the session */
    uint32_t in_flight;          /* threads inside a call that launches */
    uint64_t turns;              /* all launches of the context */
    uint64_t until_ns;           /* CLOCK_MONOTONIC: the first launch after this time ends the session */
    uint64_t serial;             /* changes when a session begins or ends */
    uint64_t strays;             /* occ_exact.strays when the session began */
    struct occ_session *session; /* the running session, which records calls */
    void *context, *profiler;
    struct occ_cupti_host host;
    struct occ_cupti_image data; /* counter data of one session */
};

/* Ended sessions for the helper. */
struct occ_exact_queue {
    struct occ_session *first, **last; /* oldest first */
    uint32_t n, max;                   /* further sessions are dropped */
    _Atomic uint64_t dropped;          /* ranges of dropped sessions, not yet reported */
};

struct occ_exact {
    _Atomic bool is_on;             /* false: callbacks return at once */
    const _Atomic bool *is_stopped; /* set by the guest: CUPTI may be torn down */
    _Atomic bool is_over;           /* set by finish(): no more calls of CUPTI, its exit handlers run next */
    pid_t pid; /* of start(): the child of a fork does nothing, its `lock` may be held for ever */
    _Atomic bool is_retired; /* each context is given up at its next launch */
    pthread_mutex_t lock; /* protects contexts, queue, captures and problem; never held in a call of CUPTI */
    pthread_cond_t changed; /* signalled: no launch is in flight, a capture begins, or a claim ends */
    pthread_key_t key;      /* reports the end of each thread that called back */
    bool has_key;
    _Atomic bool is_initialised; /* cuptiProfilerInitialize has succeeded */
    const struct occ_cupti *cupti;
    struct occ_cupti_host_calls host;
    struct occ_cupti_range call;
    void *subscriber;
    struct occ_captures captures; /* streams being captured */
    uint64_t serials;             /* last serial given to a context */
    struct occ_exact_context contexts[OCC_EXACT_MAX_CONTEXTS];
    bool is_full; /* a context had no entry: more than OCC_EXACT_MAX_CONTEXTS */
    struct occ_exact_queue queue;
    bool problem_is_new;
    char problem[OCC_REASON_BYTES]; /* reason for a context without values; "": none */
    _Atomic uint64_t strays;        /* launches that may be a range of any session, since start() */
    _Atomic uint32_t open_strays;   /* the strays that have not returned */
    struct occ_matching matching;   /* used by the helper only */
};

/* The metrics, in the order of struct occ_range_counts; one pass on every chip (a test asks CUPTI). */
extern const struct occ_cupti_metrics occ_exact_metrics;

/* Maximum naps of the helper in one wait, of 1 ms each. */
#define OCC_EXACT_NAPS 50u

uint64_t occ_exact_clock_ns(clockid_t clock);

/* Takes `lock`. A thread of limited patience, the helper, naps while another thread holds it, since a thread
 * of the program may be stopped while it holds the lock: pthread_mutex_timedlock() uses the adjustable clock,
 * and pthread_mutex_clocklock() needs a newer C library. Returns false, without the lock, when its naps are
 * used up. */
bool occ_exact_lock(struct occ_exact *e);
/* Sets the calling thread's naps until the next call. */
void occ_exact_limit_naps(uint32_t naps);
void occ_exact_unlimit_naps(void);
/* Sleeps for 1 ms. Returns false when the thread's naps are used up. */
bool occ_exact_nap(void);

/* Returns the number of sessions that may wait for the helper, at most 64 MiB of memory in pages of this
 * size. */
uint32_t occ_exact_max_waiting(uint64_t page_bytes);

/* True if CUPTI must not be called any more. Checked before each step: the program may end while one of its
 * threads makes many calls. */
static inline bool occ_exact_is_stopped(const struct occ_exact *e)
{
    return atomic_load(&e->is_over) || atomic_load(e->is_stopped);
}

/* Records "no exact values: <what>: <CUPTI's text>" as the problem. Takes `lock`, like the functions below.
 */
void occ_exact_fail(struct occ_exact *e, const char *what, uint32_t result);

/* Configures and enables the profiler: NEW -> READY, or FAILED if CUPTI refuses. */
void occ_exact_prepare(struct occ_exact *e, struct occ_exact_context *c);
/* Disables the profiler and frees its memory, unless CUPTI must not be called any more: CUPTI may still use
 * the memory. The caller sets the state. */
void occ_exact_release(struct occ_exact *e, struct occ_exact_context *c);
/* Releases the context and sets its state to FAILED. */
void occ_exact_give_up(struct occ_exact *e, struct occ_exact_context *c);

/* Begin a session (READY -> RUNNING) and end it (RUNNING -> READY); FAILED if CUPTI refuses. Ending puts the
 * session into the helper's queue. */
void occ_exact_start_session(struct occ_exact *e, struct occ_exact_context *c);
void occ_exact_end_session(struct occ_exact *e, struct occ_exact_context *c);
