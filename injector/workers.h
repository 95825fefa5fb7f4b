/*
 * Threads that CUPTI has in this process because of us. A program whose main thread has ended by
 * pthread_exit(3) ends with its last thread; these are no threads of the program.
 *
 * They are known by their birth: while the guest starts CUPTI, in the thread that starts it, so with that
 * thread's signal mask, in which all signals are blocked. A thread that CUPTI creates later is known once it
 * delivers a buffer (occ_guest.worker_clock; callbacks.c).
 *
 * Threads: begin and end by the one that initialises CUDA, the rest by the helper.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OCC_WORKERS_MAX 8u

struct occ_workers {
    pid_t threads[OCC_WORKERS_MAX];
    uint32_t n;
};

/* Notes the threads of the process. */
void occ_workers_begin(void);
/* Threads that were born since and block what the caller blocks. None if there are too many threads to note.
 */
void occ_workers_end(struct occ_workers *ret_workers);

/* Number of these that run still; `other`: one more thread that may be among them, or 0. Opens no descriptor:
 * its number could be one that the program has just closed and counts on. */
uint32_t occ_workers_alive(const struct occ_workers *workers, pid_t other);
