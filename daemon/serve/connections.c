/* Events of the socket: see server_state.h. The loop accepts connections and handles packets in turns: the
 * listening socket has one, and each user. A turn takes at most a round's time. A user's turns together may
 * use a sixteenth of the time; a user who sends more delays only the user's own packets. The listening socket
 * has a turn in each pass of the loop, since the peer of a connection is known only after accept.
 *
 * Most containers run as root, so a uid may belong to many owners. A connection counts for its uid until the
 * first packet identifies it. Once a uid has spent its allowance (arrivals.h), or has UNIDENTIFIED_MAX such
 * connections, each further connection of the uid is identified at once and counts for its owner: a
 * container, a pod or the user. One thread. */
#include "server_state.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "support/clock.h"

#define INVERSE_SHARE           16 /* a user's packets may use 1/16 of the time */
#define ACCEPTS_AT_ONCE         64 /* connections accepted per turn, within their allowance */
#define EVENTS_AT_ONCE          16
#define PACKETS_AT_ONCE         16
#define CONTROL_CONNECTIONS_MAX 64 /* connections in addition to one per program, in total and per user */
#define UNIDENTIFIED_MAX        32
#define IDLE_CLIENT_NS          INT64_C(10000000000)

/* A turn has no time limit in a daemon of one user, but ends if the close thread is busy. */
static bool is_turn_over(const struct occ_server *s, const struct occ_queue *queue)
{
    int64_t round_ns = s->histories_options.collector.round_ns;
    return queue->close_thread.n > 0 || (round_ns && occ_monotonic_ns() - s->loop.turn_ns >= round_ns);
}

/* Charges CPU time: on a busy machine the elapsed time includes waiting for a processor. */
static void end_turn(struct occ_server *s, struct occ_queue *queue, int64_t began_cpu_ns)
{
    int64_t cost_ns = INVERSE_SHARE * (occ_thread_cpu_ns() - began_cpu_ns);
    occ_queue_charge(queue, s->loop.epoll, occ_monotonic_ns(),
                     s->histories_options.collector.round_ns ? cost_ns : 0);
}

/* Limit in total, and per user if programs are limited per user. */
static bool has_too_many(const struct occ_server *s, const struct occ_user *user)
{
    const struct occ_collector_options *options = &s->histories_options.collector;
    size_t share = options->max_user_producers ? options->max_user_producers : options->max_producers;
    return s->clients.n > options->max_producers + CONTROL_CONNECTIONS_MAX ||
           user->n_clients > share + CONTROL_CONNECTIONS_MAX;
}

static bool join_owner(struct occ_server *s, struct occ_client *client)
{
    int moved = occ_client_join_container(&s->clients, client, s->loop.turn_ns);
    return moved == 0 || (moved > 0 && !has_too_many(s, client->user));
}

/* Handles all packets of a connection before the next connection's: a program may have sent packets, closed
 * the connection and connected again. */
static void on_client(struct occ_server *s, void *about)
{
    struct occ_client *client = about;
    struct occ_queue *queue = &client->user->queue;
    for (int i = 0; i < PACKETS_AT_ONCE && client->fd >= 0 && (i == 0 || !is_turn_over(s, queue)); i++) {
        enum occ_packet_status status = occ_packet_receive(client->fd, &s->packet);
        if (status == OCC_PACKET_NONE)
            return;
        if (status == OCC_PACKET_END)
            occ_program_hang_up(s, client);
        else if (!occ_client_identify(&s->clients, client))
            occ_program_refuse(s, client, OCC_REFUSED_ENDED, "it has ended");
        else if (!join_owner(s, client))
            occ_program_refuse(s, client, OCC_REFUSED_FULL, "too many connections");
        else if (occ_packet_is_hello(&s->packet))
            occ_program_offer(s, client);
        else
            occ_requests_take(s, client);
        occ_close_thread_start(&queue->close_thread, s->packet.fds, s->packet.n_fds);
    }
}

/* Gives the connection its place: at its owner, if the owner is known. false: there is none. */
static bool find_place(struct occ_server *s, struct occ_client *client)
{
    int moved = client->has_identity ? occ_client_join_container(&s->clients, client, s->loop.turn_ns) : 0;
    if (has_too_many(s, client->user))
        occ_clients_close_idle(&s->clients, client->user, s->loop.turn_ns - IDLE_CLIENT_NS);
    if (moved < 0 || has_too_many(s, client->user))
        return false;
    return moved > 0 || occ_event_watch(client->user->queue.fd, client->fd, &client->socket_source) == 0;
}

static bool is_crowded(const struct occ_server *s, const struct occ_user *user)
{
    return s->clients.is_shared && user->n_clients > user->n_programs + UNIDENTIFIED_MAX;
}

/* `arrival`: descriptor and peer, and the identity if it was read. */
static void admit(struct occ_server *s, const struct occ_client *arrival)
{
    struct occ_client *client = occ_clients_add(&s->clients, arrival->fd, &arrival->peer, s->loop.turn_ns);
    if (!client)
        return;
    client->socket_source = (struct occ_event_source){on_client, client};
    if (arrival->has_identity) {
        client->identity = arrival->identity;
        client->owner = arrival->owner;
        client->has_identity = true;
    } else if (is_crowded(s, client->user) && !occ_client_identify(&s->clients, client)) {
        occ_program_refuse(s, client, OCC_REFUSED_ENDED, "it has ended");
        return;
    }
    if (!find_place(s, client))
        occ_program_refuse(s, client, OCC_REFUSED_FULL, "too many connections");
}

/* Name of the user who answers for a connection: the subordinate uids of a user are that user's. */
static void name_user(const struct occ_server *s, const struct occ_peer *peer,
                      char name[OCC_ARRIVALS_NAME_BYTES])
{
    uint32_t uid = s->clients.is_shared ? occ_accounts_owner_uid(s->clients.accounts, peer->uid) : peer->uid;
    (void)snprintf(name, OCC_ARRIVALS_NAME_BYTES, "u%u", uid);
}

/* Takes over the arrival's descriptor. true: it was within the allowance of its uid or of its owner. A daemon
 * of one user has no allowances. */
static bool take_arrival(struct occ_server *s, struct occ_client *arrival)
{
    char user[OCC_ARRIVALS_NAME_BYTES], payer[OCC_CLIENT_PAYER_BYTES];
    name_user(s, &arrival->peer, user);
    bool is_within =
        !s->histories_options.collector.round_ns || occ_arrivals_admit(&s->by_uid, user, occ_monotonic_ns());
    if (!is_within && s->clients.is_shared && occ_client_identify(&s->clients, arrival)) {
        occ_client_payer(arrival, payer);
        is_within = occ_arrivals_admit(&s->by_owner, payer, occ_monotonic_ns());
    }
    if (is_within) {
        admit(s, arrival);
        return true;
    }
    s->refused++;
    occ_refusals_count(&s->refusals, arrival->owner.name[0] ? arrival->owner.name : user, OCC_REFUSED_FULL);
    (void)close(arrival->fd);
    return false;
}

void occ_connections_accept(struct occ_server *s, void *none)
{
    (void)none;
    int fd = 0, admitted = 0;
    s->loop.turn_ns = occ_monotonic_ns();
    do {
        struct occ_client arrival = {.pidfd = -1};
        fd = occ_listen_accept(&s->listener, &arrival.peer, &s->refused);
        if (fd < 0)
            break;
        arrival.fd = fd;
        arrival.since_ns = s->loop.turn_ns;
        s->accepts++;
        admitted += take_arrival(s, &arrival);
    } while (admitted < ACCEPTS_AT_ONCE && !is_turn_over(s, &s->arrivals));
    s->arrivals.is_drained = fd < 0;
}

void occ_connections_serve(struct occ_server *s, void *about)
{
    struct occ_user *user = about;
    struct epoll_event events[EVENTS_AT_ONCE];
    int n;
    int64_t began_cpu_ns = occ_thread_cpu_ns();
    s->loop.turn_ns = occ_monotonic_ns();
    do { /* epoll reports the remaining events again in the next turn */
        n = epoll_wait(user->queue.fd, events, EVENTS_AT_ONCE, 0);
        for (int i = 0; i < n && (i == 0 || !is_turn_over(s, &user->queue)); i++) {
            const struct occ_event_source *source = events[i].data.ptr;
            source->handle(s, source->about);
        }
    } while (n > 0 && !is_turn_over(s, &user->queue));
    user->queue.is_drained = n <= 0;
    end_turn(s, &user->queue, began_cpu_ns);
}

static int64_t least_wait_ns(int64_t a_ns, int64_t b_ns)
{
    return a_ns == 0 || (b_ns > 0 && b_ns < a_ns) ? b_ns : a_ns;
}

int64_t occ_connections_resume(struct occ_server *s, int64_t now_ns)
{
    int64_t least_ns = occ_queue_resume(&s->http_queue, s->loop.epoll, now_ns);
    for (struct occ_user *user = s->clients.users; user; user = user->next)
        least_ns = least_wait_ns(least_ns, occ_queue_resume(&user->queue, s->loop.epoll, now_ns));
    return least_ns;
}
