/*
 * Threads that CUPTI started in this process because of the guest. A program whose main thread has ended by
 * pthread_exit(3) ends with its last thread; CUPTI's threads do not count as the program's.
 *
 * They are recognised by their birth: they are started while the guest starts CUPTI, and inherit the signal
 * mask of the starting thread. This mask blocks all signals but one, which hardly any program uses (the
 * mark): a thread of the program that begins at the same time has another mask, also if it blocks all
 * signals. A thread that CUPTI starts later is recognised when it delivers a buffer (occ_guest.worker_clock;
 * callbacks.c).
 *
 * Threads: begin and end by the one that initialises CUDA, the rest by the helper.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OCC_WORKERS_MAX 8u

struct occ_workers {
    pid_t threads[OCC_WORKERS_MAX];
    uint32_t n;
    uint32_t unborn; /* bit i: thread i had not begun to run, and is CUPTI's or the program's */
    uint64_t mask;   /* of CUPTI's threads; bit n - 1 for signal n */
};

/* The mask for the start of CUPTI. `before`: the caller's. The mark is a signal whose default action is in
 * force and which the caller does not block, so that the unblocked signal changes nothing for the program. If
 * there is none, all signals are blocked and no thread is recognised by its mask. */
sigset_t occ_workers_mask(const sigset_t *before);
/* true: the calling thread has that mask. */
bool occ_workers_has_mask(void);

/* Notes the threads of the process. The caller has the mask. */
void occ_workers_begin(void);
/* Threads started since occ_workers_begin() that have the caller's mask, or that have not begun to run and so
 * have no mask of their own yet. None if there are too many threads to note. */
void occ_workers_end(struct occ_workers *ret_workers);

/* Looks again at the threads that had not begun to run, and removes the program's. Opens descriptors, hence
 * only if no other thread of the program seems to be left. false: there was none. */
bool occ_workers_settle(struct occ_workers *workers);

/* Number of threads in `workers` that still run, and `other` if it is not 0 and not among them. Opens no
 * descriptor: its number could be one that the program has just closed and relies on. */
uint32_t occ_workers_alive(const struct occ_workers *workers, pid_t other);
