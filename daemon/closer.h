/* Closing descriptors that somebody else sent, in a thread of its own: close(2) of a file in a FUSE file
 * system waits for the process that serves it, of a socket with SO_LINGER for its peer, for as long as they
 * want. Only memory files close at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct occ_closer;

/* Closes all of them: memory files here, the others in a thread. NULL: all are closed. */
struct occ_closer *occ_closer_start(const int *fds, size_t n);

/* Whether all are closed; then the closer is freed. */
bool occ_closer_is_done(struct occ_closer *closer);
