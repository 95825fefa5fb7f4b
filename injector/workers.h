/*
 * Threads that CUPTI started in this process because of the guest. A program whose main thread has ended by
 * pthread_exit(3) ends with its last thread; CUPTI's threads do not count as the program's.
 *
 * They are recognised by their birth: they are started while the guest starts CUPTI, with the signal mask of
 * the starting thread, in which all signals are blocked. A thread that CUPTI starts later is recognised when
 * it delivers a buffer (occ_guest.worker_clock; callbacks.c).
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
/* Threads started since occ_workers_begin() that block the caller's signals. None if there are too many
 * threads to note. */
void occ_workers_end(struct occ_workers *ret_workers);

/* Number of threads in `workers` that still run, and `other` if it is not 0 and not among them. Opens no
 * descriptor: its number could be one that the program has just closed and relies on. */
uint32_t occ_workers_alive(const struct occ_workers *workers, pid_t other);
