/*
 * The range profiler of one context: from counters of the chip to sessions.
 *
 * A session lasts from the profiler's start to its stop in one context. It ends with the first launch after
 * a second, when it holds enough of them, before the launch of a graph (of unknown size), before a capture in
 * its context, when that is destroyed, and at the program's end; the next launch of a kernel begins the next
 * one. While a stream is captured none begins or ends, since that could break the capture.
 *
 * Threads: any of the program's that CUPTI calls back. A thread claims a context before it calls CUPTI for
 * it, and holds no lock of ours meanwhile: CUPTI may hold its own while it calls another thread back. Whoever
 * finds a context claimed waits a bounded time and then leaves it alone. Memory comes from mmap(2).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#include "cupti/host.h"
#include "exact.h"
#include "matching.h"

#define OCC_EXACT_MAX_CONTEXTS 16u
/* What a program that is killed leaves unknown is in the session that runs. */
#define OCC_EXACT_SESSION_NS UINT64_C(1000000000)

enum occ_exact_state { OCC_EXACT_FREE, OCC_EXACT_NEW, OCC_EXACT_READY, OCC_EXACT_RUNNING, OCC_EXACT_FAILED };

struct occ_exact_context {
    _Atomic int state;  /* enum occ_exact_state; changed by the thread that claimed it */
    bool is_claimed;    /* a thread prepares it, or ends and begins its sessions */
    bool is_gone;       /* it was destroyed while another thread had it claimed: the place stays empty */
    bool is_graph;      /* the session holds a graph's launch */
    bool is_crowded;    /* a launch that is in flight kept others waiting for too long: they overlap */
    uint32_t launches;  /* in the session */
    uint32_t in_flight; /* threads inside a call that launches */
    uint64_t turns;     /* launches, ever */
    uint64_t until_ns;  /* CLOCK_MONOTONIC: the session ends with the first launch from then on */
    uint64_t serial;    /* changes when a session begins, and when it takes no more calls */
    uint64_t strays;    /* occ_exact.strays when the session began */
    struct occ_session *session; /* that runs: calls are written into it */
    void *context, *profiler;
    struct occ_cupti_host host;
    struct occ_cupti_image data; /* counter data of one session */
};

struct occ_exact {
    _Atomic bool is_on;             /* callbacks do anything */
    const _Atomic bool *is_stopped; /* the guest's: CUPTI may be torn down */
    _Atomic bool is_over;           /* finish() has returned: the exit handlers of CUPTI come next */
    pid_t pid;                      /* the child of a fork does nothing: `lock` may be held there for ever */
    _Atomic bool is_retired;        /* each context is given up when it launches next */
    pthread_mutex_t lock; /* of all members below but strays and `matching`; never held in a call of CUPTI */
    pthread_cond_t changed; /* no launch is in flight, a capture begins, or a context is claimed no more */
    _Atomic bool is_initialised; /* cuptiProfilerInitialize has succeeded */
    const struct occ_cupti *cupti;
    struct occ_cupti_host_calls host;
    struct occ_cupti_range call;
    void *subscriber;
    uint32_t captures; /* streams that are being captured */
    uint64_t serials;  /* given to contexts, ever */
    struct occ_exact_context contexts[OCC_EXACT_MAX_CONTEXTS];
    bool is_full;                      /* a context found no place in them */
    struct occ_session *first, **last; /* ended, for the helper; oldest first */
    uint32_t waiting;                  /* number of these */
    uint64_t unqueued;                 /* ranges of sessions that found no room, not yet counted */
    bool problem_is_new;
    char problem[OCC_REASON_BYTES]; /* why a context has no values; "" */
    _Atomic uint64_t strays;        /* launches that could be a range of any session, ever */
    _Atomic uint32_t open_strays;   /* of these, that have not returned */
    struct occ_matching matching;   /* the helper's alone */
};

/* In the order of struct occ_range_counts; one pass on every chip (a test asks CUPTI). */
extern const struct occ_cupti_metrics occ_exact_metrics;

uint64_t occ_exact_clock_ns(clockid_t clock);

/* True: CUPTI is not called any more. Asked before each step: a thread of the program may be in the midst of
 * many calls when the program ends. */
static inline bool occ_exact_is_stopped(const struct occ_exact *e)
{
    return atomic_load(&e->is_over) || atomic_load(e->is_stopped);
}

/* Records "no exact values: <what>: <CUPTI's text>" as the problem. Takes `lock`, as the functions below may.
 */
void occ_exact_fail(struct occ_exact *e, const char *what, uint32_t result);

/* NEW -> READY: configures and enables the profiler; FAILED if CUPTI refuses. */
void occ_exact_prepare(struct occ_exact *e, struct occ_exact_context *c);
/* Disables the profiler and frees its memory, unless CUPTI is not called any more: it may still have the
 * memory. The state is the caller's. */
void occ_exact_release(struct occ_exact *e, struct occ_exact_context *c);
/* Leaves the context FAILED. */
void occ_exact_give_up(struct occ_exact *e, struct occ_exact_context *c);

/* READY -> RUNNING, RUNNING -> READY; FAILED if CUPTI refuses. Ending puts the session's counts into the
 * queue. */
void occ_exact_start_session(struct occ_exact *e, struct occ_exact_context *c);
void occ_exact_end_session(struct occ_exact *e, struct occ_exact_context *c);
