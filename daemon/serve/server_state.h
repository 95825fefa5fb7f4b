/* The state of the daemon's loop, for server.c, connections.c, pages.c, programs.c and requests.c only. */
#pragma once

#include "arrivals.h"
#include "clients.h"
#include "control.h"
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
    int64_t turn_ns;       /* when the turn began that goes on */
    uint32_t next_history; /* its number: the first whose turn it is */
    struct occ_event_source sources[OCC_LOOP_SOURCES];
};

/* A daemon of one `occtrace`, which is at the other end of a socket. */
struct occ_private {
    bool on;
    int fd;          /* -1: none (any more) */
    int64_t left_ns; /* monotonic: when the other end was closed; 0: it has not been */
};

/* Of several histories. */
struct occ_totals {
    struct occ_collector_stats all; /* commit_ns, ring_fill: the largest; waiting_since_ns: the earliest */
    struct occ_store_stats store;   /* oldest_ns: the oldest; 0: there is none */
};

/* As it was read last; next_ns: when it may be read again, monotonic. */
struct occ_driver_list {
    struct occ_driver_gpu gpus[OCC_GPUS_MAX];
    size_t n;
    int64_t next_ns;
};

struct occ_server {
    const struct occ_server_options *options;
    struct occ_histories_options histories_options; /* the given ones, completed */
    struct occ_histories histories;
    struct occ_sampler *sampler;
    struct occ_listener listener;
    struct occ_queue arrivals;  /* of connections */
    struct occ_arrivals by_uid; /* of connections that were accepted */
    struct occ_clients clients;
    struct occ_profiler_users profiler_users; /* memory for the next ones */
    struct occ_loop loop;
    struct occ_private private;
    bool stopping, program_ended;
    int64_t started_ns, next_chores_ns, next_notify_ns; /* monotonic, as all times here */
    int64_t next_upkeep_ns;                             /* of a history; INT64_MAX: none needs it soon */
    int64_t watchdog_ns;          /* between two signs of life; 0: nobody waits for them */
    uint64_t accepts, refused;    /* connections; and handshakes */
    struct occ_refusals refusals; /* of `refused`, as far as their user is known */
    struct occ_http *http;        /* NULL: nobody is to be answered, */
    struct occ_meter *meter;      /* and this is NULL too */
    struct occ_queue http_queue;
    struct occ_driver_list driver_list;
    struct occ_totals closed;      /* counters of histories that were closed */
    int64_t config_read_ns;        /* since the epoch */
    struct occ_error reload_error; /* of the last reload; code 0: it succeeded */
    struct occ_packet packet;      /* the one being handled */
};

/* ---- connections.c ---- */

/* A turn: accepts connections; handles events of a user (`about`). */
void occ_connections_accept(struct occ_server *server, void *none);
void occ_connections_serve(struct occ_server *server, void *about);
/* Whose share allows it has turns again; how long until the next one's does (0: nobody waits). */
int64_t occ_connections_resume(struct occ_server *server, int64_t now_ns);

/* ---- programs.c ---- */

/* The packet is a handshake: the client's program offers its ring. */
void occ_program_offer(struct occ_server *server, struct occ_client *client);
/* The connection's end, whoever ends it: also the program's, if there is no pidfd to report that. */
void occ_program_hang_up(struct occ_server *server, struct occ_client *client);
/* Hangs up; the cause is counted, and `why` is logged. */
void occ_program_refuse(struct occ_server *server, struct occ_client *client, enum occ_refusal cause,
                        const char *why);
/* The collectors' functions; `context` is the history. */
void occ_program_gone(void *owner, void *context);
void occ_program_appended(struct occ_producer *producer, const struct occ_producer_device *device,
                          const struct occ_store_launch *rows, size_t n, void *context);

/* ---- requests.c ---- */

/* The packet is a text request. */
void occ_requests_take(struct occ_server *server, struct occ_client *client);
bool occ_requests_await_flush(const struct occ_server *server);
/* Gives a turn to those who may have something to add to what is flushed. */
void occ_requests_prepare_flushes(struct occ_server *server);
/* Commits the histories of those who wait; then answers the flushes whose session is settled. The others wait
 * for the next round. */
void occ_requests_serve_flushes(struct occ_server *server, int64_t now_ns);

/* ---- pages.c ---- */

/* Starts to answer HTTP where somebody is to be answered; without it the daemon goes on. */
void occ_pages_open(struct occ_server *server);
void occ_pages_close(struct occ_server *server);
/* Reads the files of TLS anew. */
void occ_pages_reload(struct occ_server *server);
/* As occ_histories_follow(). */
void occ_pages_follow(struct occ_server *server, struct occ_history *history, int64_t now_ns);
/* Closes the histories that occ_histories_idle() finds; they leave their counters. */
void occ_pages_drop_idle(struct occ_server *server, int64_t now_ns);

/* ---- status.c ---- */

/* Adds a history's; those of its file are half a second old at most. */
void occ_totals_add(struct occ_totals *totals, struct occ_history *history);
/* Of all histories, those that were closed too where it is a counter. */
struct occ_totals occ_totals_of(const struct occ_server *server);
/* Of this process. */
double occ_status_cpu_seconds(void);
double occ_status_resident_bytes(void);
/* The answers to status and history, as this client may see them. */
void occ_status_answer(const struct occ_server *server, struct occ_client *client, struct occ_answer *answer);
void occ_status_answer_history(const struct occ_server *server, struct occ_client *client, uint64_t number,
                               struct occ_answer *answer);
