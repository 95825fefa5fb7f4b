/* Text requests (support/control.h) and their answers: see server_state.h. One thread. Logs. */
#include "server_state.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "support/cleanup.h"
#include "support/log.h"

#define SETTLE_NS INT64_C(4000000000) /* limit of the wait for measured values of the last launches */
#define FLUSH_NS  INT64_C(100000000)

/* An answer: text, or the message of an error. */
struct answer {
    char text[OCC_CONTROL_BYTES];
    struct occ_error err;
};

static void send_answer(struct occ_server *s, struct occ_client *client, int status, struct answer *answer)
{
    char text[OCC_ERROR_MESSAGE_BYTES + 16];
    (void)snprintf(text, sizeof text, "error %s", answer->err.message);
    const char *packet = status == 0 ? answer->text : text;
    if (client->fd >= 0 && send(client->fd, packet, strlen(packet), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        occ_program_hang_up(s, client);
}

/* 0 seconds: ends the pause. */
static int pause_sampler(struct occ_server *s, const struct occ_client *client, unsigned long long seconds,
                         struct answer *answer)
{
    const struct occ_peer *peer = &client->peer;
    if (!occ_client_may_command(&s->clients, client, NULL))
        return occ_fail(&answer->err, OCC_E_DENIED,
                        "only root and the daemon's own user may pause and resume hardware counters");
    occ_sampler_pause(s->sampler, (int64_t)seconds * 1000000000);
    if (seconds) {
        (void)snprintf(answer->text, sizeof answer->text, "ok %llu", seconds);
        occ_log(OCC_LOG_WARNING, "hardware counters are paused for %llu s by process %d of uid %u", seconds,
                (int)peer->pid, peer->uid);
    } else {
        (void)snprintf(answer->text, sizeof answer->text, "ok");
        occ_log(OCC_LOG_WARNING, "hardware counters are resumed by process %d of uid %u", (int)peer->pid,
                peer->uid);
    }
    return 0;
}

static bool is_program(const struct occ_client *client, int32_t pid)
{
    return client->producer && client->peer.pid == pid;
}

/* Only root and the program's owner may pause, and only programs whose guest supports the request. */
static int check_pause(struct occ_server *s, const struct occ_client *asker, const struct occ_client *program,
                       bool pause, struct occ_error *err)
{
    const struct occ_producer *producer = program->producer;
    int pid = program->peer.pid;
    if (!occ_client_may_command(&s->clients, asker, program))
        return occ_fail(err, OCC_E_DENIED, "only root and its owner may %s recording of process %d",
                        pause ? "pause" : "resume", pid);
    if (producer->run.is_exact || !occ_ring_can_pause(producer->consumer))
        return occ_fail(err, OCC_E_INVALID, "process %d cannot be paused (%s)", pid,
                        producer->run.is_exact ? "occtrace --exact" : "an older occtrace");
    return 0;
}

/* Pauses all programs with this process id or none; a process that exec'ed has two. */
static int pause_run(struct occ_server *s, const struct occ_client *asker, int32_t pid, bool pause,
                     struct answer *answer)
{
    unsigned int n = 0;
    int status = 0;
    for (const struct occ_client *client = s->clients.first; client && status == 0; client = client->next)
        if (is_program(client, pid)) {
            status = check_pause(s, asker, client, pause, &answer->err);
            n++;
        }
    if (status != 0)
        return status;
    if (n == 0)
        return occ_fail(&answer->err, OCC_E_NOT_FOUND, "no process %d reports to this daemon", pid);
    for (const struct occ_client *client = s->clients.first; client; client = client->next)
        if (is_program(client, pid))
            occ_ring_pause(client->producer->consumer, pause);
    (void)snprintf(answer->text, sizeof answer->text, "ok %u", n);
    occ_log(OCC_LOG_INFO, "recording of process %d is %s by process %d of uid %u", pid,
            pause ? "paused" : "resumed", (int)asker->peer.pid, asker->peer.uid);
    return 0;
}

void occ_requests_take(struct occ_server *s, struct occ_client *client)
{
    struct answer answer = {.text = ""};
    struct occ_answer lines = {.text = answer.text, .size = sizeof answer.text};
    struct occ_request request = {.kind = OCC_REQUEST_PING};
    const char *wrong = occ_packet_check_text(&s->packet);
    int status = wrong ? occ_fail(&answer.err, OCC_E_INVALID, "%s", wrong)
                       : occ_request_parse(s->packet.bytes, &request, &answer.err);
    /* after an error the kind is OCC_REQUEST_PING; the error is sent, not its answer */
    switch (request.kind) {
    case OCC_REQUEST_PING:
        (void)snprintf(answer.text, sizeof answer.text, "ok " OCC_VERSION);
        break;
    case OCC_REQUEST_STATUS:
        occ_status_answer(s, client, &lines);
        break;
    case OCC_REQUEST_HISTORY:
        occ_status_answer_history(s, client, request.number, &lines);
        break;
    case OCC_REQUEST_REFUSALS:
        occ_status_answer_refusals(s, client, request.number, &lines);
        break;
    case OCC_REQUEST_COVERAGE:
        occ_status_answer_coverage(s, client, request.number, &lines);
        break;
    case OCC_REQUEST_SAMPLER:
        occ_control_sampler(s->sampler, request.number, answer.text, sizeof answer.text);
        break;
    case OCC_REQUEST_PAUSE:
    case OCC_REQUEST_RESUME:
        status = pause_sampler(s, client, request.number, &answer);
        break;
    case OCC_REQUEST_PAUSE_RUN:
    case OCC_REQUEST_RESUME_RUN:
        status =
            pause_run(s, client, (int32_t)request.number, request.kind == OCC_REQUEST_PAUSE_RUN, &answer);
        break;
    case OCC_REQUEST_FLUSH:
        client->accepts_before = s->accepts;
        memcpy(client->session, request.session, sizeof client->session);
        client->flush_wanted = true;
        return;
    }
    send_answer(s, client, status, &answer);
}

/* ---- flush ---- */

bool occ_requests_await_flush(const struct occ_server *s)
{
    const struct occ_client *client = s->clients.first;
    while (client && !client->flush_wanted)
        client = client->next;
    return client != NULL;
}

/* Commits the launches that a history has read. The service does so at most once per FLUSH_NS, for all
 * waiting clients together. OCC_E_BUSY: too early. */
static int commit_now(struct occ_server *s, struct occ_history *h, const char *session, int64_t now_ns,
                      struct occ_error *err)
{
    struct occ_collector_stats stats;
    occ_collector_get_stats(h->collector, &stats);
    if (!s->private.on && now_ns == h->flushed_ns && !stats.stalled)
        return 0; /* committed for another client in this round */
    if (!s->private.on && now_ns - h->flushed_ns < FLUSH_NS)
        return OCC_E_BUSY;
    h->flushed_ns = now_ns;
    int status = occ_collector_commit(h->collector, now_ns, err);
    if (status == 0 && s->private.on && occ_collector_is_settled(h->collector, session)) {
        occ_sampler_settle(s->sampler, SETTLE_NS); /* no more launches will arrive */
        status = occ_collector_commit(h->collector, now_ns, err);
    }
    return status;
}

/* The history of the client's owner; NULL: no history was ever written. */
static struct occ_history *history_of(struct occ_server *s, struct occ_client *client, int64_t now_ns)
{
    _cleanup_(occ_freep) char *path = NULL;
    struct occ_owner owner;
    occ_histories_owner(&s->histories, &client->identity, &owner);
    struct occ_history *h = occ_histories_find(&s->histories, &owner);
    if (!h && occ_histories_path(&s->histories, &owner, &path, NULL) == 0 && access(path, F_OK) == 0)
        (void)occ_histories_of(&s->histories, &owner, now_ns, &h, NULL);
    return h;
}

/* true if all connections and events before the request have been handled. */
static bool has_seen_earlier_events(const struct occ_server *s, const struct occ_client *client)
{
    bool accepted = s->arrivals.is_drained || s->accepts - client->accepts_before > OCC_LISTEN_BACKLOG;
    const struct occ_user *arrivals = occ_clients_arrivals(&s->clients, client);
    return accepted && client->user->queue.is_drained && (!arrivals || arrivals->queue.is_drained);
}

/* Answers the client unless programs of its session are not settled yet; then the client keeps waiting. */
static void serve_flush(struct occ_server *s, struct occ_client *client, int64_t now_ns)
{
    struct answer answer = {.text = ""};
    if (!has_seen_earlier_events(s, client))
        return;
    struct occ_history *h = history_of(s, client, now_ns);
    uint64_t launches = 0;
    int status = h ? commit_now(s, h, client->session, now_ns, &answer.err) : 0;
    if (status == OCC_E_BUSY && !answer.err.message[0])
        return;
    if (status == 0 && h && !occ_collector_is_settled(h->collector, client->session))
        return;
    client->flush_wanted = false;
    if (status == 0 && h)
        status = occ_store_session_launches(h->store, client->session, &launches, &answer.err);
    (void)snprintf(answer.text, sizeof answer.text, "ok %llu", (unsigned long long)launches);
    send_answer(s, client, status, &answer);
}

/* Handles waiting events first: a short program may have connected, offered its ring and ended in the
 * meantime. */
static void drain(struct occ_server *s, struct occ_queue *queue)
{
    queue->is_drained = false;
    if (!queue->is_waiting)
        queue->source.handle(s, queue->source.about);
}

void occ_requests_prepare_flushes(struct occ_server *s)
{
    struct occ_owner owner;
    drain(s, &s->arrivals);
    for (struct occ_client *client = s->clients.first; client; client = client->next) {
        if (!client->flush_wanted)
            continue;
        struct occ_user *arrivals = occ_clients_arrivals(&s->clients, client);
        client->user->is_flushing = true;
        if (arrivals)
            arrivals->is_flushing = true;
        occ_histories_owner(&s->histories, &client->identity, &owner);
        struct occ_history *h = occ_histories_find(&s->histories, &owner);
        if (h)
            h->next_poll_ns = 0;
    }
    /* first users, then containers: identified arrivals move from users to containers */
    for (int containers = 0; containers < 2; containers++)
        for (struct occ_user *user = s->clients.users; user; user = user->next) {
            if ((user->container[0] != '\0') != (containers == 1) || !user->is_flushing)
                continue;
            drain(s, &user->queue);
            user->is_flushing = false;
        }
}

void occ_requests_serve_flushes(struct occ_server *s, int64_t now_ns)
{
    if (!occ_requests_await_flush(s)) /* the last program of a private daemon has ended */
        (void)occ_collector_commit(s->histories.first->collector, now_ns, NULL);
    for (struct occ_client *client = s->clients.first; client; client = client->next)
        if (client->flush_wanted)
            serve_flush(s, client, now_ns);
}
