/*
 * The connections of the daemon's socket: a program's (after its handshake), or a client's with text
 * requests. One thread.
 *
 * Life: made when a connection is accepted; `fd` is closed when the peer hangs up or is refused. A program's
 * record stays until its producer is freed, since `pidfd` still tells when the process ends. Only
 * occ_clients_sweep() frees records, never while events that refer to them are being handled.
 */
#ifndef OCC_DAEMON_CLIENTS_H
#define OCC_DAEMON_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counters/competing_profilers.h"
#include "identity.h"
#include "producers.h"

struct occ_client;
struct occ_history;
struct occ_server;

/* What an epoll event points at: its handler, and the client that it is about (NULL: none). */
struct occ_event_source {
    void (*handle)(struct occ_server *server, struct occ_client *client);
    struct occ_client *client;
};

struct occ_client {
    struct occ_client *next;
    int fd;    /* -1: closed */
    int pidfd; /* -1: none */
    struct occ_peer peer;
    struct occ_owner owner;        /* of a flush's session */
    struct occ_history *history;   /* of the producer */
    struct occ_producer *producer; /* NULL: none (any more) */
    bool was_producer;             /* the connection has no more use without its producer */
    bool flush_wanted;
    char session[33]; /* of the flush */
    int64_t since_ns; /* monotonic, of the connection */
    struct occ_event_source socket_source, process_source;
};

struct occ_clients {
    struct occ_client *first;
    size_t n;
};

/* Takes fd (on failure too). NULL: out of memory. */
struct occ_client *occ_clients_add(struct occ_clients *clients, int fd, const struct occ_peer *peer,
                                   int64_t now_ns);

/* Closes the connection, the record stays. Closing takes it out of epoll. */
void occ_client_close(struct occ_client *client);
/* Stops watching the process. */
void occ_client_forget_process(struct occ_client *client);

/* Frees records that have neither connection nor producer. */
void occ_clients_sweep(struct occ_clients *clients);

/* Closes connections from before `since_ns` that have neither offered a ring nor wait for an answer. */
void occ_clients_close_idle(struct occ_clients *clients, int64_t since_ns);

/* How many connections and programs of this user there are. */
size_t occ_clients_of(const struct occ_clients *clients, uint32_t uid);

/* The users whose programs report. */
struct occ_profiler_users occ_clients_users(const struct occ_clients *clients);

/* Closes and frees everything. */
void occ_clients_clear(struct occ_clients *clients);

/* Reports to `source` when fd is readable. 0, or -1 with errno. */
int occ_event_watch(int epoll, int fd, struct occ_event_source *source);

/* A pidfd for the peer of a connection, by SO_PEERPIDFD where the kernel has it (6.5): a number may belong to
 * another process by now. -1 with errno if there is none (ESRCH: it is dead already). */
int occ_peer_open_process(int connection, const struct occ_peer *peer);

#endif
