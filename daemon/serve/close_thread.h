/* Closes descriptors that a client sent in a thread: close(2) of a file in a FUSE file system waits for the
 * process that serves the file, close(2) of a socket with SO_LINGER for the socket's peer, both without a
 * limit. Only memory files close at once. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "packet.h"

/* Zeroed: not busy. Must not move while it is busy. */
struct occ_close_thread {
    pthread_t thread;
    bool has_thread;
    atomic_bool is_done; /* set by the thread at its end */
    size_t n;            /* descriptors that may still be open; 0: not busy */
    int fds[OCC_PACKET_MAX_FDS];
};

/* Closes n descriptors, at most OCC_PACKET_MAX_FDS: memory files at once, others in a thread. The close
 * thread must not be busy. */
void occ_close_thread_start(struct occ_close_thread *close_thread, const int *fds, size_t n);

/* false: all are closed. If no thread could be started (no memory, a limit of processes), the descriptors
 * stay open and each call tries again. */
bool occ_close_thread_is_busy(struct occ_close_thread *close_thread);
