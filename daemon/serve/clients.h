/*
 * The connections of the daemon's socket: programs (after their handshake) and clients with text requests.
 * Each user has an epoll for the events of the user's connections and processes, so that the loop can serve
 * users in turn. One thread.
 *
 * Life: a record is made when a connection is accepted; `fd` is closed when the peer hangs up or is refused.
 * A program's record stays until its producer is freed, since `pidfd` still reports the end of the process.
 * Only occ_clients_sweep() frees records, never while events that refer to them are being handled.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "close_thread.h"
#include "daemon/sampling/counters/competing_profilers.h"
#include "daemon/owners/identity.h"
#include "daemon/collect/producers.h"
#include "daemon/collect/ratelimit.h"
#include "daemon/collect/share.h"

#define OCC_CLIENT_PAYER_BYTES 80

struct occ_client;
struct occ_history;
struct occ_server;

/* Target of an epoll event: its handler, and the client or user concerned (NULL: none). */
struct occ_event_source {
    void (*handle)(struct occ_server *server, void *about);
    void *about;
};

/* A descriptor whose events have a share of the loop's time; while the share is used up, it is removed from
 * epoll. */
struct occ_queue {
    struct occ_event_source source;
    int fd;
    struct occ_share share;
    struct occ_close_thread close_thread; /* closes the descriptors of the last packet */
    bool is_waiting;                      /* waits for its share or for the close thread */
    bool is_drained;                      /* the last turn handled all events */
};

/* A user with connections or programs. A pod or container becomes a user of its own once its first packet
 * identifies it. */
struct occ_user {
    struct occ_user *next;
    /* the user's uid; programs under the user's subordinate uids belong to the user too */
    uint32_t uid;
    /* occ_client_payer() of a pod or container; "": none or not known yet */
    char container[OCC_CLIENT_PAYER_BYTES];
    struct occ_queue queue; /* its descriptor is the epoll of the user's connections and processes */
    size_t n_clients, n_programs;
    bool is_flushing; /* a flush waits in this round */
    struct occ_ratelimit refusals, reports;
};

struct occ_client {
    struct occ_client *next;
    int fd;    /* -1: closed */
    int pidfd; /* -1: none */
    struct occ_peer peer;
    struct occ_user *user;
    struct occ_identity identity; /* filled by occ_client_identify() */
    struct occ_owner owner;       /* owner of the client's launches */
    bool has_identity;
    struct occ_history *history;   /* history of the producer */
    struct occ_producer *producer; /* NULL: no producer, or freed */
    bool was_producer;             /* once the producer is gone the connection is closed */
    bool flush_wanted;
    char session[33];        /* session of the flush */
    uint64_t accepts_before; /* number of accepted connections at the time of the flush request */
    int64_t since_ns;        /* start of the connection, monotonic */
    struct occ_event_source socket_source, process_source;
};

struct occ_clients {
    struct occ_client *first;
    size_t n;
    struct occ_user *users;
    int epoll;      /* the loop's */
    bool is_shared; /* programs of several users report */
    struct occ_accounts *accounts;
    struct occ_owner own; /* owner of the daemon's own process */
    void (*serve_user)(struct occ_server *server, void *user);
};

/* Takes over fd (on failure too). NULL: no memory or descriptors. */
struct occ_client *occ_clients_add(struct occ_clients *clients, int fd, const struct occ_peer *peer,
                                   int64_t now_ns);

/* Closes the connection, which removes it from epoll; the record stays. */
void occ_client_close(struct occ_client *client);

/* Frees records without connection and producer, and users without records. */
void occ_clients_sweep(struct occ_clients *clients);

/* The user that has the connections of the client's uid before they are identified. NULL: none. */
struct occ_user *occ_clients_arrivals(const struct occ_clients *clients, const struct occ_client *client);

/* Closes connections of this user made before `since_ns` that have neither offered a ring nor wait for an
 * answer. */
void occ_clients_close_idle(struct occ_clients *clients, const struct occ_user *user, int64_t since_ns);

/* Reads the peer's identity from the kernel, once. false: the daemon is shared and the owner of the process
 * is unknown, because the process has been reaped, or was ending with cgroup v1. */
bool occ_client_identify(const struct occ_clients *clients, struct occ_client *client);

/* true if the process at the other end of this connection, made at `since_ns` or before (monotonic), runs
 * outside of containers and pods, or in the daemon's own container. false also if the kernel does not tell:
 * the process has ended, or the daemon cannot see its pid or its control groups. */
bool occ_peer_is_outside(const struct occ_clients *clients, int connection, int64_t since_ns);

/* Who pays for an identified client's connections and time: its owner. A user's containers without a control
 * group of their own pay together, apart from the user's other programs. */
void occ_client_payer(const struct occ_client *client, char name[OCC_CLIENT_PAYER_BYTES]);

/* Moves an identified client of a pod or container to that user. 1: moved; 0: no move needed; -1: no memory
 * or descriptors. */
int occ_client_join_container(struct occ_clients *clients, struct occ_client *client, int64_t now_ns);

/* true if the client may command the programs of `target`'s owner or, if NULL, all programs and the daemon:
 * root outside of other containers, and the daemon's user. */
bool occ_client_may_command(const struct occ_clients *clients, const struct occ_client *client,
                            const struct occ_client *target);

/* Fills in the uids whose programs report, sorted and without duplicates. false: no memory. */
bool occ_clients_users(const struct occ_clients *clients, struct occ_profiler_users *users);

/* Closes and frees all clients and users. */
void occ_clients_clear(struct occ_clients *clients);

/* Watches fd for input and reports to `source`. 0, or -1 with errno. */
int occ_event_watch(int epoll, int fd, struct occ_event_source *source);

/* Charges a turn's cost to the queue; if its share is used up, the queue is removed from epoll. */
void occ_queue_charge(struct occ_queue *queue, int epoll, int64_t now_ns, int64_t cost_ns);
/* Adds the queue to epoll again once its share allows. Returns the remaining wait (0: none). */
int64_t occ_queue_resume(struct occ_queue *queue, int epoll, int64_t now_ns);

/* A pidfd for the peer of a connection: SO_PEERPIDFD (kernel 6.5 and newer), which is safe against a reused
 * pid, else by pid. -1 with errno on failure (ESRCH: the peer is dead). */
int occ_peer_open_process(int connection, const struct occ_peer *peer);
