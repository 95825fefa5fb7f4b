/*
 * The guest: all of what libocctrace.so keeps in a process, and its life.
 *
 *   IDLE ---InitializeInjection---> STARTING ---> RUNNING  (CUPTI delivers, the helper works)
 *                                      |
 *                                      +--------> QUIET    (nothing is recorded; the reason is in the ring)
 *   RUNNING, QUIET ---exit---> CLOSED          any ---fork, in the child---> IDLE
 *
 * Threads and what they touch:
 *   the one that initialises CUDA   everything, until RUNNING or QUIET
 *   any of the program's, CUPTI's   pool (take, complete), wake, foreign_buffer
 *   the helper                      all the rest, while RUNNING
 *   the one that calls exit         closing, wake, finished; everything if QUIET
 * No lock anywhere, so that a fork at any moment leaves none locked (but that of exact.h, which a child makes anew).
 */
#ifndef OCC_INJECTOR_GUEST_H
#define OCC_INJECTOR_GUEST_H

#include <stdatomic.h>
#include <sys/types.h>

#include "buffers.h"
#include "costs.h"
#include "cupti.h"
#include "drain.h"
#include "env.h"
#include "exact.h"
#include "fds.h"
#include "link.h"
#include "ring/ring.h"

enum occ_guest_state {
    OCC_GUEST_IDLE,
    OCC_GUEST_STARTING,
    OCC_GUEST_RUNNING,
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
    struct occ_cupti cupti;
    struct occ_pool pool;
    struct occ_drain drain;
    struct occ_costs costs;
    struct occ_exact exact; /* with pairs: only if $OCCTRACE_EXACT asks for it */
    struct occ_pairs pairs;
    _Atomic uint32_t wake;       /* the helper sleeps on it */
    _Atomic uint32_t closing;    /* 1: the process exits */
    _Atomic uint32_t finished;   /* the exiting thread sleeps on it; not 0 when the helper is done */
    _Atomic bool foreign_buffer; /* CUPTI gave us a buffer that is not ours */
};

/* The one there is. */
struct occ_guest *occ_guest(void);

/* Path of this library's file, "" if it cannot be known. */
const char *occ_guest_path(void);

/* init.c: begins, once a process; what InitializeInjection does. */
void occ_guest_start(void);
/* Makes a ring in which only the reason is said and shows it to the daemon: QUIET. */
void occ_guest_stay_quiet(struct occ_guest *guest, const char *reason);
/* Writes a STATE record and a line of log. */
void occ_guest_say(struct occ_guest *guest, enum occ_level level, const char *reason);

/* fork.c, exit.c: set up once. */
void occ_fork_prepare(void);
void occ_exit_prepare(void);
/* The program ends: what the helper does last is awaited, but not long. Once; later calls do nothing. */
void occ_guest_finish(void);

/* callbacks.c: what CUPTI calls. */
occ_cupti_buffer_requested occ_callback_requested;
occ_cupti_buffer_completed occ_callback_completed;

/* helper.c: the one thread. False: it could not be made. */
bool occ_helper_start(struct occ_guest *guest);
/* Says CLOSED and closes the ring; by the helper, or the exiting thread if QUIET. */
void occ_helper_close_ring(struct occ_guest *guest);

#endif
