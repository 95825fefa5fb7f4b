/*
 * The daemon's listening socket: a Unix SOCK_SEQPACKET socket at a path.
 *
 * - A missing directory is created (0700, or with the access that the socket's mode needs). One that another
 * user than root owns, or that others may write to (but for sticky ones), is refused: they could replace the
 * socket.
 * - An existing socket is replaced only if nobody answers at it. Locks (flock) keep apart two daemons that
 * start at once. Containers mount the socket's directory, so their root can take a lock there and keep it:
 * the lock that a daemon needs lies in a directory of the caller's choice. It also tries for the lock in the
 * socket's directory, by which it excludes daemons with other histories and of older versions.
 * - Closing removes the path only if it is still our socket.
 * - The peer of a connection is known from SO_PEERCRED. Other users' connections are accepted by root's
 * daemon only.
 *
 * One thread: the umask is changed while the socket is created.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "daemon/collect/producers.h"
#include "support/error.h"

/* Connections that wait to be accepted. A flood keeps the queue full, and a new client waits for the whole
 * queue, so the queue is short. Clients block in connect(2), where the kernel keeps their order. */
#define OCC_LISTEN_BACKLOG    16
#define OCC_LISTEN_PATH_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)

struct occ_listener {
    int fd;    /* non-blocking, close-on-exec; -1: closed */
    int spare; /* a reserved descriptor, to accept and refuse a connection when no other is left */
    dev_t dev; /* of the path */
    ino_t ino;
    char path[OCC_LISTEN_PATH_BYTES];
};

/* The directory of a file's path. */
void occ_listen_directory(const char *path, char *directory, size_t size);

/* `mode` of the socket: 0600 ... 0666. `lock_directory`: an existing directory that no container mounts, such
 * as the histories'; NULL: the socket's directory is the daemon's alone. OCC_E_BUSY: a daemon listens there.
 */
int occ_listen_open(const char *path, uint32_t mode, const char *lock_directory,
                    struct occ_listener *ret_listener, struct occ_error *err);
void occ_listen_close(struct occ_listener *listener);

/* The process that connected (SO_PEERCRED). false: the kernel does not tell. */
bool occ_listen_peer(int connection, struct occ_peer *ret_peer);

/* The next connection (non-blocking, close-on-exec) and its peer; -1: none waits. Those of other users are
 * closed and counted in *refused. */
int occ_listen_accept(struct occ_listener *listener, struct occ_peer *ret_peer, uint64_t *refused);
