/*
 * The question of a liveness probe: does the loop of the running daemon turn? It is asked at the Unix socket
 * of /metrics, which no container but the daemon's own mounts: programs that flood the daemon's other sockets
 * cannot keep the answer back. One thread.
 */
#pragma once

#include "support/error.h"

/* GET /livez at this socket, within 8 s. OCC_E_NOT_FOUND: no daemon listens there; OCC_E_BUSY: no answer in
 * time; OCC_E_IO: another answer than 200. */
int occ_alive_ask(const char *socket_path, struct occ_error *err);
