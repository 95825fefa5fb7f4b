/*
 * The guest: the state of libocctrace.so in a process, and its life.
 *
 *   IDLE ---InitializeInjection---> STARTING ---> RUNNING           (CUPTI delivers, the helper works)
 *                                      |
 *                                      +--------> QUIET             (no recording; the ring has the reason)
 *                                      +---> ASKING ---> QUIET      (CUPTI refused: a thread asks the driver)
 *   RUNNING, ASKING, QUIET ---exit---> CLOSED
 *   any ---fork, in the child---> IDLE
 *
 * Threads and the members that they use:
 *   the one that initialises CUDA   all, until RUNNING or QUIET
 *   any of the program's, CUPTI's   pool (take, complete), wake, foreign_buffer
 *   the helper                      all others, while RUNNING
 *   the one that asks (ask.h)       ring, link, while ASKING
 *   the one that calls exit         closing, wake, finished, settled, leave_ns; all if QUIET
 * No locks, so fork() is safe at any time (the lock of libocctrace-exact.so is never taken in a child).
 */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "buffers.h"
#include "drain.h"
#include "env.h"
#include "fds.h"
#include "daemon_link.h"
#include "recording.h"
#include "ring/producer.h"
#include "tracing.h"
#include "workers.h"

enum occ_guest_state {
    OCC_GUEST_IDLE,
    OCC_GUEST_STARTING,
    OCC_GUEST_RUNNING,
    OCC_GUEST_ASKING,
    OCC_GUEST_QUIET,
    OCC_GUEST_CLOSED
};

struct occ_guest {
    _Atomic int state;
    pid_t pid; /* the process that started the guest: a raw clone(2) runs no fork handler */
    struct occ_env env;
    struct occ_ring_producer ring;
    struct occ_fd memfd; /* the ring's */
    struct occ_link link;
    struct occ_tracing tracing;
    struct occ_workers workers; /* CUPTI's threads started during the guest's start */
    struct occ_pool pool;
    struct occ_drain drain;
    struct occ_exact_client exact;
    struct occ_recording recording;
    _Atomic uint32_t wake;     /* the helper sleeps on it */
    _Atomic uint32_t closing;  /* 1: the process exits */
    _Atomic uint32_t finished; /* not 0: the ring is complete; the exiting thread sleeps on it */
    /* not 0: no more waiting for a daemon; the exiting thread sleeps on it next */
    _Atomic uint32_t settled;
    _Atomic uint64_t leave_ns;   /* limit for waiting at the end, CLOCK_MONOTONIC; 0: no thread exits */
    _Atomic int helper_clock;    /* clockid_t of the helper's CPU time; 0: the helper has not begun */
    _Atomic int worker_clock;    /* clockid_t of CUPTI's worker; 0: unknown */
    _Atomic bool foreign_buffer; /* CUPTI completed a buffer that is not the pool's */
    _Atomic bool has_context;    /* CUPTI asked for a buffer */
    _Atomic bool asks;           /* a thread asks or has asked the driver (ask.h) */
};

/* The only instance. */
struct occ_guest *occ_guest(void);

/* Path of this library's file; "" if unknown. */
const char *occ_guest_path(void);

/* Writes a STATE record and a log line. `from_ns` (CLOCK_REALTIME): start of the state. */
void occ_guest_report(struct occ_guest *guest, enum occ_level level, uint64_t from_ns, const char *reason);

/* Writes CLOSED and closes the ring; called by the helper, or by the exiting thread if QUIET. */
void occ_guest_close_ring(struct occ_guest *guest);

/* callbacks.c: CUPTI requests a buffer inside a launch, and completes one in its worker or inside the guest's
 * flush. Neither callback allocates (except for one exit handler, with the first buffer), logs, waits or
 * changes errno. */
occ_cupti_buffer_requested occ_callback_requested;
occ_cupti_buffer_completed occ_callback_completed;

/* init.c: InitializeInjection, once per process. */
void occ_guest_start(void);

/* preflight.c: NULL, or why the guest stays out of this process (static text). Preserves errno. */
const char *occ_preflight_refusal(void);

/* fork.c: call it once. */
void occ_fork_prepare(void);
/* exit.c: call it each time libcupti may have registered an exit handler of its own. Any thread. */
void occ_exit_prepare(void);
/* exit.c: limit for waiting at the program's end (CLOCK_MONOTONIC), counted from the first call. Any
 * thread. */
uint64_t occ_exit_limit_ns(struct occ_guest *guest);

/* helper.c: starts the helper. false: the system allows no further thread. */
bool occ_helper_start(struct occ_guest *guest);
