/*
 * The daemon's door: a Unix SOCK_SEQPACKET socket at a path.
 *
 * - The directory is made if missing (0700, or with the access that the socket's mode needs). One that belongs to
 *   somebody else than us or root, or that others may write to (but for sticky ones), is refused: whoever owns it
 *   could put another socket in our place.
 * - A socket that is there already is replaced only if nobody answers behind it. Two daemons that start at once are
 *   kept apart by a lock (flock) on the directory.
 * - Closing removes the path only if it is still our socket.
 * - The peer of a connection is who the kernel says (SO_PEERCRED). Only our own uid is let in, unless we are root.
 *
 * One thread: the umask is changed while the socket is made.
 */
#ifndef OCC_DAEMON_LISTEN_H
#define OCC_DAEMON_LISTEN_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "producers.h"
#include "support/error.h"

#define OCC_LISTEN_PATH_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)

struct occ_listener {
    int fd; /* non-blocking, close-on-exec; -1: closed */
    int spare; /* a descriptor in reserve, so that a connection can be taken and refused when there is none left */
    dev_t dev; /* of the path */
    ino_t ino;
    char path[OCC_LISTEN_PATH_BYTES];
};

/* The directory of a socket's path. */
void occ_listen_directory(const char *path, char directory[OCC_LISTEN_PATH_BYTES]);

/* OCC_E_BUSY: a daemon listens there. `mode` of the socket, 0600 ... 0666. */
int occ_listen_open(const char *path, uint32_t mode, struct occ_listener *ret_listener,
                    struct occ_error *err);
void occ_listen_close(struct occ_listener *listener);

/* The next connection (non-blocking, close-on-exec) and its peer; -1: none waits now. Connections of other users are
 * closed and counted in *refused. */
int occ_listen_accept(struct occ_listener *listener, struct occ_peer *ret_peer, uint64_t *refused);

#endif
