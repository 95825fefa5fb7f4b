/* The connection to a daemon (ring/handshake.h). While the program runs, a try waits at most 0.1 s, for a
 * place in the queue of a busy daemon; a connect that fails is retried every second for a minute, then every
 * ten. When the daemon ends, the same memfd is offered to the next one. The program's end waits a bounded
 * time until a daemon owns the ring.
 *
 * Threads: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fds.h"
#include "ring/ring.h"

struct occ_link {
    char path[108]; /* sun_path; "" = none */
    bool is_given;  /* the path was configured: whoever listens there is trusted */
    struct occ_fd socket;
    struct occ_fd spare; /* not connected yet, for the next try */
    uint64_t since_ns;   /* CLOCK_MONOTONIC: connected since */
    uint64_t retry_ns;   /* CLOCK_MONOTONIC: not before */
    uint32_t tries;      /* since a daemon last stayed */
    bool is_taken;       /* the daemon at the other end of the socket owns the ring */
    bool is_refused;     /* a daemon closed the last connection without an answer */
    bool is_busy;        /* the last connect found a daemon whose queue is full */
    uint64_t ended_ns;   /* CLOCK_MONOTONIC: when the last daemon's end was seen; 0: never */
};

/* A service manager starts the next daemon within this time. */
#define OCC_LINK_RESTART_NS UINT64_C(2000000000)

/* `configured` is $OCCTRACE_SOCKET or ""; else the rule of the daemon's default: $XDG_RUNTIME_DIR/occtrace/
 * occtraced.sock, else /run/occtrace/occtraced.sock (root) or /tmp/occtrace-UID/occtraced.sock. */
void occ_link_init(struct occ_link *link, const char *configured, char *(*get)(const char *name));

/* Once a second: detects a daemon's end; connects and offers the ring if there is none and it is time. True:
 * connected. */
bool occ_link_poll(struct occ_link *link, const struct occ_ring_producer *ring, const struct occ_fd *memfd,
                   uint64_t now_ns);

/* At the program's end: offers the ring if no daemon has it, and waits until one owns it, until `limit_ns`
 * (CLOCK_MONOTONIC) at most. Returns at once where no daemon listens, unless one that had the ring has ended
 * within OCC_LINK_RESTART_NS, where the daemon refuses, and where the program closed the ring's descriptor.
 * True: a daemon owns the ring. */
bool occ_link_finish(struct occ_link *link, const struct occ_ring_producer *ring, const struct occ_fd *memfd,
                     uint64_t limit_ns);

void occ_link_close(struct occ_link *link);
