/*
 * The connections of the daemon's socket: a program's (after its handshake), or a client's with text
 * requests. The events of a user's connections and processes come through an epoll of his own, so that the
 * loop takes turns between users. One thread.
 *
 * Life: made when a connection is accepted; `fd` is closed when the peer hangs up or is refused. A program's
 * record stays until its producer is freed, since `pidfd` still reports when the process ends. Only
 * occ_clients_sweep() frees records, never while events that refer to them are being handled.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "closer.h"
#include "daemon/sampling/counters/competing_profilers.h"
#include "daemon/owners/identity.h"
#include "daemon/collect/producers.h"
#include "daemon/collect/ratelimit.h"
#include "daemon/collect/share.h"

struct occ_client;
struct occ_history;
struct occ_server;

/* What an epoll event points at: its handler, and the client or user that it is about (NULL: none). */
struct occ_event_source {
    void (*handle)(struct occ_server *server, void *about);
    void *about;
};

/* A descriptor whose events have a share of the loop's time; epoll does not report it meanwhile. */
struct occ_queue {
    struct occ_event_source source;
    int fd;
    struct occ_share share;
    struct occ_closer closer; /* of the descriptors that the last packet brought */
    bool is_waiting;          /* for its share, or the closer */
    bool is_drained;          /* its last turn left nothing */
};

/* A user with connections or programs; a pod or container is one of its own as soon as its first packet names
 * who it is. */
struct occ_user {
    struct occ_user *next;
    uint32_t uid;           /* his own, of his programs under subordinate uids too */
    char container[80];     /* as an owner's name; "": none, or not known yet */
    struct occ_queue queue; /* its descriptor is the epoll of his connections and processes */
    size_t n_clients, n_programs;
    bool is_flushing; /* in this round */
    struct occ_ratelimit refusals, reports;
};

struct occ_client {
    struct occ_client *next;
    int fd;    /* -1: closed */
    int pidfd; /* -1: none */
    struct occ_peer peer;
    struct occ_user *user;
    struct occ_identity identity; /* of occ_client_identify() */
    struct occ_owner owner;       /* his launches would be this owner's */
    bool has_identity;
    struct occ_history *history;   /* of the producer */
    struct occ_producer *producer; /* NULL: none (any more) */
    bool was_producer;             /* the connection has no more use without its producer */
    bool flush_wanted;
    char session[33];        /* of the flush, */
    uint64_t accepts_before; /* and how many connections had been accepted then */
    int64_t since_ns;        /* monotonic, of the connection */
    struct occ_event_source socket_source, process_source;
};

struct occ_clients {
    struct occ_client *first;
    size_t n;
    struct occ_user *users;
    int epoll;      /* of the loop */
    bool is_shared; /* by users */
    struct occ_accounts *accounts;
    struct occ_owner own; /* the daemon's own process's */
    void (*serve_user)(struct occ_server *server, void *user);
};

/* Takes fd (on failure too). NULL: out of memory or descriptors. */
struct occ_client *occ_clients_add(struct occ_clients *clients, int fd, const struct occ_peer *peer,
                                   int64_t now_ns);

/* Closes the connection, the record stays. Closing takes it out of epoll. */
void occ_client_close(struct occ_client *client);

/* Frees records that have neither connection nor producer, and users without records. */
void occ_clients_sweep(struct occ_clients *clients);

/* Where connections of the client's uid are before they are identified. NULL: none is there. */
struct occ_user *occ_clients_arrivals(const struct occ_clients *clients, const struct occ_client *client);

/* Closes connections of this user from before `since_ns` that have neither offered a ring nor wait for an
 * answer. */
void occ_clients_close_idle(struct occ_clients *clients, const struct occ_user *user, int64_t since_ns);

/* Who the peer is by the kernel; read once. false: the daemon is shared, and nobody knows any more whose the
 * process was. It was waited for, or it was ending and its control groups are of version 1. */
bool occ_client_identify(const struct occ_clients *clients, struct occ_client *client);

/* Moves a client that is identified, and of a pod or container, to that one's share. 1: it is moved; 0: it is
 * where it belongs; -1: out of memory or descriptors. */
int occ_client_join_container(struct occ_clients *clients, struct occ_client *client, int64_t now_ns);

/* Whether it may command the programs of `target`'s owner, or (NULL) all and the daemon: root outside
 * containers but the daemon's own, and the daemon's user. */
bool occ_client_may_command(const struct occ_clients *clients, const struct occ_client *client,
                            const struct occ_client *target);

/* Fills in the uids whose programs report, each once, in order. False: no memory. */
bool occ_clients_users(const struct occ_clients *clients, struct occ_profiler_users *users);

/* Closes and frees everything. */
void occ_clients_clear(struct occ_clients *clients);

/* Reports to `source` when fd is readable. 0, or -1 with errno. */
int occ_event_watch(int epoll, int fd, struct occ_event_source *source);

/* A turn of the queue took `cost_ns` of its share: the loop leaves it out while more than that is used. */
void occ_queue_charge(struct occ_queue *queue, int epoll, int64_t now_ns, int64_t cost_ns);
/* Reports it again when its share allows; how long until then (0: it is reported). */
int64_t occ_queue_resume(struct occ_queue *queue, int epoll, int64_t now_ns);

/* A pidfd for the peer of a connection, by SO_PEERPIDFD where the kernel has it (6.5): a number may belong to
 * another process by now. -1 with errno if there is none (ESRCH: it is dead already). */
int occ_peer_open_process(int connection, const struct occ_peer *peer);
