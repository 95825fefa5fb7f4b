/*
 * The guest: everything that libocctrace.so keeps in a process, and its life.
 *
 *   IDLE ---InitializeInjection---> STARTING ---> RUNNING  (CUPTI delivers, the helper works)
 *                                      |
 *                                      +--------> QUIET    (nothing is recorded; the reason is in the ring)
 *                                      +---> ASKING ---> QUIET   (CUPTI refused: a thread asks the driver
 * why) RUNNING, ASKING, QUIET ---exit---> CLOSED          any ---fork, in the child---> IDLE
 *
 * Threads and what they touch:
 *   the one that initialises CUDA   everything, until RUNNING or QUIET
 *   any of the program's, CUPTI's   pool (take, complete), wake, foreign_buffer
 *   the helper                      all the rest, while RUNNING
 *   the one that asks (ask.h)       ring, link, while ASKING
 *   the one that calls exit         closing, wake, finished, settled, leave_ns; everything if QUIET
 * No locks, so fork() is safe at any time (that of libocctrace-exact.so is never taken in a child).
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
#include "ring/ring.h"
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
    pid_t pid; /* of the process that started it: a raw clone(2) has no fork handler */
    struct occ_env env;
    struct occ_ring_producer ring;
    struct occ_fd memfd; /* the ring's */
    struct occ_link link;
    struct occ_tracing tracing;
    struct occ_workers workers; /* CUPTI's threads that it started at once */
    struct occ_pool pool;
    struct occ_drain drain;
    struct occ_exact_client exact;
    struct occ_recording recording;
    _Atomic uint32_t wake;       /* the helper sleeps on it */
    _Atomic uint32_t closing;    /* 1: the process exits */
    _Atomic uint32_t finished;   /* the exiting thread sleeps on it; not 0 when the ring is complete, */
    _Atomic uint32_t settled;    /* and then on this; not 0 when no daemon is waited for */
    _Atomic uint64_t leave_ns;   /* CLOCK_MONOTONIC: the end waits no longer; 0: no thread exits */
    _Atomic int helper_clock;    /* the clockid_t of the helper's CPU time; 0: it has not begun */
    _Atomic int worker_clock;    /* of CUPTI's worker; 0: it is not known */
    _Atomic bool foreign_buffer; /* CUPTI completed a buffer that is not ours */
    _Atomic bool has_context;    /* CUPTI asked for a buffer */
    _Atomic bool asks;           /* a thread asks the driver, or has (ask.h) */
};

/* The only one. */
struct occ_guest *occ_guest(void);

/* Path of this library's file, "" if it cannot be known. */
const char *occ_guest_path(void);

/* Writes a STATE record and a line of log. `from_ns` (CLOCK_REALTIME): since when it has been so. */
void occ_guest_report(struct occ_guest *guest, enum occ_level level, uint64_t from_ns, const char *reason);

/* Writes CLOSED and closes the ring; by the helper, or by the exiting thread if QUIET. */
void occ_guest_close_ring(struct occ_guest *guest);

/* callbacks.c: what CUPTI calls, for a buffer inside a launch, with a completed one in its worker or inside
 * our own flush. Neither allocates (but for one exit handler, with the first buffer), logs, waits or changes
 * errno. */
occ_cupti_buffer_requested occ_callback_requested;
occ_cupti_buffer_completed occ_callback_completed;

/* init.c: what InitializeInjection does, once a process. */
void occ_guest_start(void);

/* preflight.c: NULL, or why the guest stays out of this process (static text). Preserves errno. */
const char *occ_preflight_refusal(void);

/* fork.c: once. */
void occ_fork_prepare(void);
/* exit.c: each time that libcupti may have registered an exit handler of its own. Any thread. */
void occ_exit_prepare(void);
/* exit.c: until when the program's end waits (CLOCK_MONOTONIC), from the first call on. Any thread. */
uint64_t occ_exit_limit_ns(struct occ_guest *guest);

/* helper.c: starts the one thread. False: the system allows no further thread. */
bool occ_helper_start(struct occ_guest *guest);
