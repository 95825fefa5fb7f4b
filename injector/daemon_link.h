/* The connection to a daemon (ring/handshake.h). While the program runs, a try waits at most 0.1 s for room
 * in the queue of a busy daemon; a failed connect is retried every second for a minute, then every ten
 * seconds. When the daemon ends, the same memfd is offered to the next one. The program's end waits a bounded
 * time until a daemon owns the ring.
 *
 * Threads: one at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fds.h"
#include "ring/producer.h"

enum { OCC_LINK_OWN, OCC_LINK_SERVICE, OCC_LINK_PATHS };

struct occ_link {
    char paths[OCC_LINK_PATHS][108]; /* sun_path; "" = none; the first that has a daemon is used */
    uint32_t at;                     /* index of the path of the last connection */
    bool is_given;                   /* the path was configured: any daemon that listens there is trusted */
    struct occ_fd socket;
    struct occ_fd spare; /* not connected, kept for the next try */
    uint64_t since_ns;   /* start of the connection, CLOCK_MONOTONIC */
    uint64_t retry_ns;   /* earliest next try, CLOCK_MONOTONIC */
    uint32_t tries;      /* tries since the last connection that lasted */
    bool is_taken;       /* the connected daemon owns the ring */
    bool is_refused;     /* a daemon closed the last connection without an answer */
    bool is_busy;        /* at the last try the daemon's queue or the user's allowance was full */
    uint64_t ended_ns;   /* when the last daemon's end was noticed, CLOCK_MONOTONIC; 0: never */
};

/* A service manager starts the next daemon within this time. */
#define OCC_LINK_RESTART_NS UINT64_C(2000000000)

/* `configured` is $OCCTRACE_SOCKET, which excludes all other paths. If "": the user's own daemon, as in the
 * daemon's default ($XDG_RUNTIME_DIR/occtrace/occtraced.sock, else /tmp/occtrace-UID/occtraced.sock), and if
 * none listens there, the service (/run/occtrace/occtraced.sock). A busy daemon is waited for; the ring of a
 * daemon that ended is offered at the other path after OCC_LINK_RESTART_NS. */
void occ_link_init(struct occ_link *link, const char *configured, char *(*get)(const char *name));

/* Call it once a second: notices a daemon's end; if not connected and a try is due, connects and offers the
 * ring. true: connected. */
bool occ_link_poll(struct occ_link *link, const struct occ_ring_producer *ring, const struct occ_fd *memfd,
                   uint64_t now_ns);

/* Call it at the program's end: offers the ring if no daemon has it, and waits until a daemon owns it, at
 * most until `limit_ns` (CLOCK_MONOTONIC). Returns at once if no daemon listens and none that had the ring
 * ended within OCC_LINK_RESTART_NS, if the daemon refuses, or if the program closed the ring's descriptor.
 * true: a daemon owns the ring. */
bool occ_link_finish(struct occ_link *link, const struct occ_ring_producer *ring, const struct occ_fd *memfd,
                     uint64_t limit_ns);

void occ_link_close(struct occ_link *link);
