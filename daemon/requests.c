/* Text requests (support/control.h) and their answers: see server_state.h. One thread. Logs. */
#include "server_state.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "support/clock.h"
#include "support/log.h"

#define SETTLE_NS INT64_C(4000000000) /* for measured values of the last launches */

/* An answer: text, or an error's message instead. */
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

static void answer_status(struct occ_server *s, struct answer *answer)
{
    struct occ_collector_stats stats;
    occ_collector_get_stats(s->collector, &stats);
    (void)snprintf(
        answer->text, sizeof answer->text,
        "ok\nversion %s\npid %ld\nuptime_s %lld\ndatabase %s\nsocket %s\nclients %zu\nprograms %zu\n"
        "launches %llu\ncommits %llu\nstore_failures %llu\nquarantined %llu\nrefused %llu\n"
        "held_bytes %llu\nstalled %s\n",
        OCC_VERSION, (long)getpid(), (long long)((occ_monotonic_ns() - s->started_ns) / 1000000000),
        s->options->database, s->options->socket_path, s->clients.n, stats.producers,
        (unsigned long long)stats.launches, (unsigned long long)stats.commits,
        (unsigned long long)stats.failures, (unsigned long long)stats.quarantined,
        (unsigned long long)s->refused, (unsigned long long)stats.held_bytes, stats.stalled ? "yes" : "no");
}

/* 0 seconds: resumes. */
static int pause_sampler(struct occ_server *s, const struct occ_peer *peer, unsigned long long seconds,
                         struct answer *answer)
{
    if (!occ_control_may_command(peer->uid, geteuid()))
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

/* Of all programs with that process id: one that exec'ed has two. Only their owner and root may. */
static int pause_run(struct occ_server *s, const struct occ_peer *peer, int32_t pid, bool pause,
                     struct answer *answer)
{
    unsigned int n = 0;
    for (const struct occ_client *client = s->clients.first; client; client = client->next) {
        if (!client->producer || client->peer.pid != pid)
            continue;
        if (!occ_control_may_command(peer->uid, client->peer.uid))
            return occ_fail(&answer->err, OCC_E_DENIED,
                            "only root and its owner may %s recording of process %d",
                            pause ? "pause" : "resume", pid);
        if (client->producer->run.is_exact || !occ_ring_pause(client->producer->consumer, pause))
            return occ_fail(&answer->err, OCC_E_INVALID, "process %d cannot be paused (%s)", pid,
                            client->producer->run.is_exact ? "occtrace --exact" : "an older occtrace");
        n++;
    }
    if (n == 0)
        return occ_fail(&answer->err, OCC_E_NOT_FOUND, "no process %d reports to this daemon", pid);
    (void)snprintf(answer->text, sizeof answer->text, "ok %u", n);
    occ_log(OCC_LOG_INFO, "recording of process %d is %s by process %d of uid %u", pid,
            pause ? "paused" : "resumed", (int)peer->pid, peer->uid);
    return 0;
}

void occ_requests_take(struct occ_server *s, struct occ_client *client)
{
    struct answer answer = {.text = ""};
    struct occ_request request = {.kind = OCC_REQUEST_PING};
    const char *wrong = occ_packet_check_text(&s->packet);
    occ_packet_close(&s->packet, false);
    int status = wrong ? occ_fail(&answer.err, OCC_E_INVALID, "%s", wrong)
                       : occ_request_parse(s->packet.bytes, &request, &answer.err);
    switch (request.kind) { /* of an error: OCC_REQUEST_PING, whose answer is not sent */
    case OCC_REQUEST_PING:
        (void)snprintf(answer.text, sizeof answer.text, "ok " OCC_VERSION);
        break;
    case OCC_REQUEST_STATUS:
        answer_status(s, &answer);
        break;
    case OCC_REQUEST_SAMPLER:
        occ_control_sampler(s->sampler, request.number, answer.text, sizeof answer.text);
        break;
    case OCC_REQUEST_PAUSE:
    case OCC_REQUEST_RESUME:
        status = pause_sampler(s, &client->peer, request.number, &answer);
        break;
    case OCC_REQUEST_PAUSE_RUN:
    case OCC_REQUEST_RESUME_RUN:
        status = pause_run(s, &client->peer, (int32_t)request.number, request.kind == OCC_REQUEST_PAUSE_RUN,
                           &answer);
        break;
    case OCC_REQUEST_FLUSH:
        client->flush_wanted = true;
        memcpy(client->session, request.session, sizeof client->session);
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

/* A session that is waited for is settled: all its launches have been read. */
static bool flush_is_due(const struct occ_server *s)
{
    for (const struct occ_client *client = s->clients.first; client; client = client->next)
        if (client->flush_wanted && occ_collector_is_settled(s->collector, client->session))
            return true;
    return false;
}

void occ_requests_serve_flushes(struct occ_server *s, int64_t now_ns)
{
    struct answer answer = {.text = ""};
    int committed = occ_collector_commit(s->collector, now_ns, &answer.err);
    if (committed == 0 && s->private.on && flush_is_due(s)) { /* no launches are still to come */
        occ_sampler_settle(s->sampler, SETTLE_NS);
        committed = occ_collector_commit(s->collector, now_ns, &answer.err);
    }
    for (struct occ_client *client = s->clients.first; client; client = client->next) {
        uint64_t launches = 0;
        if (!client->flush_wanted ||
            (committed == 0 && !occ_collector_is_settled(s->collector, client->session)))
            continue;
        client->flush_wanted = false;
        int status = committed;
        if (status == 0)
            status = occ_store_session_launches(s->store, client->session, &launches, &answer.err);
        (void)snprintf(answer.text, sizeof answer.text, "ok %llu", (unsigned long long)launches);
        send_answer(s, client, status, &answer);
    }
}
