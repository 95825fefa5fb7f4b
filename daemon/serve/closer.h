/* Closes descriptors that a client sent, in a thread of its own: close(2) of a file in a FUSE file system
 * waits for the process that serves the file, close(2) of a socket with SO_LINGER for the socket's peer, both
 * without a limit. Only memory files close at once. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "packet.h"

/* Zeroed: nothing is being closed. It stays where it is while it is busy. */
struct occ_closer {
    pthread_t thread;
    bool has_thread;
    atomic_bool is_done; /* the thread's last word */
    size_t n;            /* descriptors that are still open, for all that is known; 0: it is not busy */
    int fds[OCC_PACKET_MAX_FDS];
};

/* Closes n descriptors, at most OCC_PACKET_MAX_FDS: memory files here, the others in a thread. The closer is
 * not busy. */
void occ_closer_start(struct occ_closer *closer, const int *fds, size_t n);

/* False: all are closed. Without a thread (no memory, a limit of processes) they stay open, and each call
 * tries to start one. */
bool occ_closer_is_busy(struct occ_closer *closer);
