/* The state of the daemon's loop, for the files of this directory and server.c only. */
#pragma once

#include "arrivals.h"
#include "clients.h"
#include "control.h"
#include "daemon/coverage/coverage.h"
#include "daemon/histories/histories.h"
#include "listen.h"
#include "metrics/http.h"
#include "metrics/meter.h"
#include "packet.h"
#include "refusals.h"
#include "server_options.h"
#include "support/driver_gpus.h"

#define OCC_LOOP_SOURCES 3 /* signals, timer, private */

struct occ_loop {
    int epoll, signals, timer;
    int64_t turn_ns;       /* start of the current turn */
    uint32_t next_history; /* number of the history whose turn is next */
    struct occ_event_source sources[OCC_LOOP_SOURCES];
};

/* State of a private daemon: `occtrace` is at the other end of a socket. */
struct occ_private {
    bool on, is_announced; /* is_announced: the program may start */
    int fd;                /* -1: closed or none */
    int64_t left_ns;       /* monotonic time at which the other end was closed; 0: still open */
};

/* Sums over histories. */
struct occ_totals {
    struct occ_collector_stats all; /* commit_ns, ring_fill: maximum; waiting_since_ns: minimum */
    struct occ_store_stats store;   /* oldest_ns: minimum; 0: no launches */
};

/* Cached list of the driver's GPUs; next_ns: monotonic time after which it may be read again. */
struct occ_driver_list {
    struct occ_driver_gpu gpus[OCC_GPUS_MAX];
    size_t n;
    int64_t next_ns;
};

struct occ_server {
    const struct occ_server_options *options;
    struct occ_histories_options histories_options; /* the given options with functions and context added */
    struct occ_histories histories;
    struct occ_sampler *sampler;
    struct occ_listener listener;
    struct occ_queue arrivals; /* queue of the listening socket */
    /* allowances of accepted connections: of uids, and of owners once the uid has spent its allowance */
    struct occ_arrivals by_uid, by_owner;
    struct occ_clients clients;
    struct occ_profiler_users profiler_users; /* reusable memory */
    struct occ_loop loop;
    struct occ_private private;
    bool stopping, program_ended;
    int64_t started_ns, next_chores_ns, next_notify_ns; /* monotonic, as all times here */
    /* next upkeep of a history; INT64_MAX: none due soon */
    int64_t next_upkeep_ns;
    int64_t watchdog_ns; /* interval of watchdog reports; 0: no watchdog */
    /* number of accepted connections; number of refused connections and handshakes */
    uint64_t accepts, refused;
    struct occ_refusals refusals; /* `refused` by owner, if the owner is known */
    struct occ_http *http;        /* NULL: no HTTP server */
    struct occ_meter *meter;      /* NULL without an HTTP server */
    struct occ_queue http_queue;
    struct occ_coverage *coverage; /* NULL: switched off, or a private daemon */
    struct occ_driver_list driver_list;
    struct occ_totals closed;      /* counters of closed histories */
    int64_t config_read_ns;        /* since the epoch */
    struct occ_error reload_error; /* error of the last reload; code 0: success */
    struct occ_packet packet;      /* the packet being handled */
};

/* ---- connections.c ---- */

/* A turn: accepts connections, or handles events of a user (`about`). */
void occ_connections_accept(struct occ_server *server, void *none);
void occ_connections_serve(struct occ_server *server, void *about);
/* Gives turns again to queues whose share allows it. Returns the wait until the next one (0: none waits). */
int64_t occ_connections_resume(struct occ_server *server, int64_t now_ns);

/* ---- programs.c ---- */

/* Handles a handshake: the client's program offers its ring. */
void occ_program_offer(struct occ_server *server, struct occ_client *client);
/* Ends the connection. Without a pidfd this also counts as the program's end. */
void occ_program_hang_up(struct occ_server *server, struct occ_client *client);
/* Counts the cause, logs `why` and ends the connection. */
void occ_program_refuse(struct occ_server *server, struct occ_client *client, enum occ_refusal cause,
                        const char *why);
/* The collectors' functions; `context` is the history. */
void occ_program_gone(void *owner, void *context);
void occ_program_appended(struct occ_producer *producer, const struct occ_producer_device *device,
                          const struct occ_store_launch *rows, size_t n, void *context);
void occ_program_leveled(struct occ_producer *producer, void *context);
void occ_program_memory(struct occ_producer *producer, const struct occ_producer_device *device,
                        const struct occ_store_launch *rows, size_t n, void *context);

/* ---- requests.c ---- */

/* Handles a text request. */
void occ_requests_take(struct occ_server *server, struct occ_client *client);
bool occ_requests_await_flush(const struct occ_server *server);
/* Handles pending events of users with a waiting flush first. */
void occ_requests_prepare_flushes(struct occ_server *server);
/* Commits the histories of waiting clients, then answers the flushes whose session is settled. The others
 * wait for the next round. */
void occ_requests_serve_flushes(struct occ_server *server, int64_t now_ns);

/* ---- pages.c ---- */

/* Starts the HTTP server if it has a socket to listen at; a failure is logged and the daemon continues
 * without it. */
void occ_pages_open(struct occ_server *server);
void occ_pages_close(struct occ_server *server);
/* Reads the TLS files again. */
void occ_pages_reload(struct occ_server *server);
/* See occ_histories_follow(). */
void occ_pages_follow(struct occ_server *server, struct occ_history *history, int64_t now_ns);
/* Closes the histories found by occ_histories_idle() and keeps their counters. */
void occ_pages_drop_idle(struct occ_server *server, int64_t now_ns);

/* ---- coverage_pages.c ---- */

/* Writes the coverage's series. Starts a scan if one is due. */
void occ_pages_write_coverage(const struct occ_server *server, const struct occ_exposition *exposition);
/* The answer to `coverage`, limited to this client's rights. Starts a scan if one is due. */
void occ_status_answer_coverage(const struct occ_server *server, const struct occ_client *client,
                                uint64_t number, struct occ_answer *answer);

/* ---- status.c ---- */

/* Adds a history's values; file values are at most half a second old. */
void occ_totals_add(struct occ_totals *totals, struct occ_history *history);
/* Sums over all open histories; counters include closed ones. */
struct occ_totals occ_totals_of(const struct occ_server *server);
/* Values of this process. */
double occ_status_cpu_seconds(void);
double occ_status_resident_bytes(void);
/* The answers to status, history and refusals, limited to this client's rights. */
void occ_status_answer(const struct occ_server *server, struct occ_client *client, struct occ_answer *answer);
void occ_status_answer_history(const struct occ_server *server, struct occ_client *client, uint64_t number,
                               struct occ_answer *answer);
void occ_status_answer_refusals(const struct occ_server *server, struct occ_client *client, uint64_t number,
                                struct occ_answer *answer);
