/* The connection to a daemon (ring/handshake.h). Waits at most 0.1 s, for a place in the queue of a
 * busy daemon; a connect that fails is retried every second for a minute, then every ten. When the daemon
 * ends, the same memfd is offered to the next one.
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
};

/* `configured` is $OCCTRACE_SOCKET or ""; else the rule of the daemon's default: $XDG_RUNTIME_DIR/occtrace/
 * occtraced.sock, else /run/occtrace/occtraced.sock (root) or /tmp/occtrace-UID/occtraced.sock. */
void occ_link_init(struct occ_link *link, const char *configured, char *(*get)(const char *name));

/* Once a second: detects a daemon's end; connects and offers the ring if there is none and it is time. True:
 * connected. */
bool occ_link_poll(struct occ_link *link, const struct occ_ring_producer *ring, const struct occ_fd *memfd,
                   uint64_t now_ns);

void occ_link_close(struct occ_link *link);
