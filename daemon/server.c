/*
 * The daemon's loop. One round:
 *
 *   wait for events, handle them (connections, packets, processes that ended, signals)
 *   -> collector's poll if its time has come or a program ended -> flushes that wait -> sweep -> set the timer
 *
 * With no program under observation there is no timer: an idle daemon sleeps.
 *
 * Flush: events that wait are handled first (a short program may have connected, offered its ring and died before
 * we looked), then a poll and a commit, until no dead program of the session is left; only then the answer.
 *
 * Private mode (the descriptor is one end of a socketpair of `occtrace`): a byte says that we listen; when the
 * other end is closed, we end as soon as no program reports any more. SIGINT is ignored there: Ctrl-C is for the program,
 * whose end is ours.
 *
 * One thread; the sampler has threads of its own (sampler/sampler.h). Logs.
 */
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "clients.h"
#include "control.h"
#include "listen.h"
#include "notify.h"
#include "packet.h"
#include "repeat.h"
#include "support/clock.h"
#include "support/log.h"

#define EVENTS_PER_WAIT   64
#define PACKETS_PER_EVENT 16
#define PUMP_ROUNDS       256 /* events handled before a flush or the end: more than any real backlog */
#define CLIENTS_BESIDE    64  /* connections beside those of the programs */
#define IDLE_CLIENT_NS    INT64_C(10000000000)
#define AWAIT_NS          INT64_C(3000000000) /* for counters before a program starts */
#define SETTLE_NS         INT64_C(4000000000) /* for measured values of what was just launched */
#define SOON_NS           INT64_C(2000000)    /* until the next look when somebody waits for it */
#define PRIVATE_PATIENCE_NS                                                                                  \
    INT64_C(                                                                                                 \
        30000000000) /* how long a private daemon tries a history that takes nothing after its starter left */

struct server {
    struct occ_store *store;
    const struct occ_server_options *options;
    struct occ_collector *collector;
    struct occ_sampler *sampler;
    struct occ_listener listener;
    struct occ_clients clients;
    int epoll, signals, timer;
    struct occ_event_source listener_source, signals_source, timer_source, private_source;
    int private_fd;
    bool private_mode, stopping, program_ended;
    int64_t started_ns, next_poll_ns;
    int64_t tend_next_ns;  /* monotonic: not before this are measured values committed for their own sake */
    uint64_t commits_seen; /* the collector's, at the last look */
    int64_t left_ns;       /* when the private peer left; 0: it has not */
    uint64_t refused;
    struct occ_repeat refusals;
    struct occ_packet packet;
};

static int watch(struct server *s, int fd, struct occ_event_source *source, enum occ_event_kind kind)
{
    source->kind = kind;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event);
}

/* ---- programs ---- */

/* The client's producer is about to be freed, or is another's. */
static void producer_gone(void *owner, void *context)
{
    (void)context;
    struct occ_client *client = owner;
    client->producer = NULL;
    occ_client_close(client);
}

/* Does the counter source of a program's GPU give its run a better level? The last word counts. */
static void note_level(struct occ_producer *p, const struct occ_gpu_status *status)
{
    const char *level = p->counters;
    char reason[sizeof p->counters_reason] = "";
    if (status->state == OCC_SOURCE_OK) {
        level = strcmp(status->source, "pm") == 0 ? "full" : "gpm";
        if (status->reason[0])
            (void)snprintf(reason, sizeof reason,
                           "means of 100 ms, since finer counters are not to be had: %s", status->reason);
    } else {
        (void)snprintf(reason, sizeof reason, "achieved occupancy is %s measured: %s",
                       level ? "no longer" : "not", status->reason);
    }
    if (level == p->counters && strcmp(reason, p->counters_reason) == 0)
        return;
    p->counters = level;
    memcpy(p->counters_reason, reason, sizeof reason);
    p->row_changed = true;
}

static void launches_appended(struct occ_producer *producer, const struct occ_producer_device *device,
                              const struct occ_store_launch *rows, size_t n, void *context)
{
    struct server *s = context;
    struct occ_gpu_status status;
    if (producer->is_exact) /* a yardstick is not mixed with what it is to measure */
        return;
    occ_sampler_feed(s->sampler, device->uuid, device->id, producer->run, rows, n);
    (void)occ_sampler_find_status(s->sampler, device->uuid, &status);
    note_level(producer, &status);
}

static int about_to_commit(void *context, struct occ_error *err)
{
    struct server *s = context;
    return occ_sampler_store(s->sampler, err);
}

static void program_died(struct server *s, struct occ_client *client)
{
    occ_client_forget_process(client);
    if (client->producer)
        occ_collector_died(s->collector, client->producer);
    s->program_ended = true;
}

/* A connection's end, whoever ends it: also the program's, if nothing better tells its end; else it lives on without one. */
static void hang_up(struct server *s, struct occ_client *client)
{
    occ_client_close(client);
    if (!client->producer)
        return;
    if (client->pidfd < 0)
        program_died(s, client);
    else
        occ_collector_orphaned(s->collector, client->producer, occ_monotonic_ns());
}

static void refuse(struct server *s, struct occ_client *client, const char *why)
{
    s->refused++;
    occ_repeat_log(&s->refusals, occ_monotonic_ns(), OCC_LOG_WARNING, "process %d is refused: %s",
                   (int)client->peer.pid, why);
    hang_up(s, client);
}

static void watch_process(struct server *s, struct occ_client *client)
{
    client->pidfd = occ_peer_open_process(&client->peer);
    if (client->pidfd < 0 && errno == ESRCH)
        program_died(s, client); /* between its packet and now: its ring is drained all the same */
    if (client->pidfd >= 0 && watch(s, client->pidfd, &client->process_source, OCC_EVENT_PROCESS) != 0)
        occ_client_forget_process(client); /* then the connection's end counts as the program's */
}

static void take_hello(struct server *s, struct occ_client *client)
{
    struct occ_error err = OCC_ERROR_INIT;
    uint8_t uuid[16];
    const char *wrong = client->was_producer ? "a second ring on one connection" : NULL;
    wrong = wrong ? wrong : occ_packet_check_hello(&s->packet, uuid);
    occ_packet_close(&s->packet, wrong == NULL);
    if (wrong) {
        refuse(s, client, wrong);
        return;
    }
    if (occ_collector_offer(s->collector, s->packet.fds[0], &client->peer, uuid, client, occ_monotonic_ns(),
                            &client->producer, &err) != 0) {
        client->producer = NULL;
        refuse(s, client, err.message);
        return;
    }
    client->was_producer = true;
    occ_sampler_wake(s->sampler);
    watch_process(s, client);
    occ_log(OCC_LOG_INFO, "process %d of uid %u reports", (int)client->peer.pid, client->peer.uid);
}

/* ---- requests ---- */

static void answer(struct server *s, struct occ_client *client, const char *text)
{
    if (client->fd >= 0 && send(client->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        hang_up(s, client);
}

static void answer_error(struct server *s, struct occ_client *client, const struct occ_error *err)
{
    char text[OCC_ERROR_MESSAGE_BYTES + 16];
    (void)snprintf(text, sizeof text, "error %s", err->message);
    answer(s, client, text);
}

static void answer_status(struct server *s, struct occ_client *client)
{
    char text[OCC_CONTROL_BYTES];
    const struct occ_control_facts facts = {.database = s->options->database,
                                            .socket = s->options->socket_path,
                                            .uptime_ns = occ_monotonic_ns() - s->started_ns,
                                            .refused = s->refused,
                                            .clients = s->clients.n};
    occ_control_status(s->collector, &facts, text, sizeof text);
    answer(s, client, text);
}

static void answer_sampler(struct server *s, struct occ_client *client, uint64_t gpu)
{
    char text[OCC_CONTROL_BYTES];
    occ_control_sampler(s->sampler, gpu, text, sizeof text);
    answer(s, client, text);
}

static bool may_command(struct server *s, struct occ_client *client)
{
    struct occ_error err = OCC_ERROR_INIT;
    if (occ_control_may_command(client->peer.uid, geteuid()))
        return true;
    (void)occ_fail(&err, OCC_E_DENIED,
                   "only root and the daemon's own user may pause and resume hardware counters");
    answer_error(s, client, &err);
    return false;
}

static void pause_sampler(struct server *s, struct occ_client *client, uint64_t seconds)
{
    char text[64];
    if (!may_command(s, client))
        return;
    occ_sampler_pause(s->sampler, (int64_t)seconds * 1000000000);
    occ_log(OCC_LOG_WARNING, "hardware counters are paused for %llu s: process %d of uid %u asked for it",
            (unsigned long long)seconds, (int)client->peer.pid, client->peer.uid);
    (void)snprintf(text, sizeof text, "ok %llu", (unsigned long long)seconds);
    answer(s, client, text);
}

static void resume_sampler(struct server *s, struct occ_client *client)
{
    if (!may_command(s, client))
        return;
    occ_sampler_pause(s->sampler, 0);
    occ_log(OCC_LOG_WARNING, "hardware counters are no longer paused: process %d of uid %u asked for it",
            (int)client->peer.pid, client->peer.uid);
    answer(s, client, "ok");
}

static void take_request(struct server *s, struct occ_client *client)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_request request;
    const char *wrong = occ_packet_check_text(&s->packet);
    occ_packet_close(&s->packet, false);
    if (wrong)
        (void)occ_fail(&err, OCC_E_INVALID, "%s", wrong);
    if (wrong || occ_request_parse(s->packet.bytes, &request, &err) != 0) {
        answer_error(s, client, &err);
        return;
    }
    switch (request.kind) {
    case OCC_REQUEST_PING:
        answer(s, client, "ok " OCC_VERSION);
        break;
    case OCC_REQUEST_STATUS:
        answer_status(s, client);
        break;
    case OCC_REQUEST_SAMPLER:
        answer_sampler(s, client, request.number);
        break;
    case OCC_REQUEST_PAUSE:
        pause_sampler(s, client, request.number);
        break;
    case OCC_REQUEST_RESUME:
        resume_sampler(s, client);
        break;
    case OCC_REQUEST_FLUSH:
        client->flush_wanted = true;
        memcpy(client->session, request.session, sizeof client->session);
        break;
    }
}

static void answer_flush(struct server *s, struct occ_client *client)
{
    struct occ_error err = OCC_ERROR_INIT;
    uint64_t launches = 0;
    char text[64];
    client->flush_wanted = false;
    if (occ_control_count(s->store, client->session, &launches, &err) != 0) {
        answer_error(s, client, &err);
        return;
    }
    (void)snprintf(text, sizeof text, "ok %llu", (unsigned long long)launches);
    answer(s, client, text);
}

static bool flush_is_wanted(const struct server *s)
{
    const struct occ_client *client = s->clients.first;
    while (client && !client->flush_wanted)
        client = client->next;
    return client != NULL;
}

/* The session of one who waits is settled: all its launches have been read. */
static bool flush_is_due(const struct server *s)
{
    for (const struct occ_client *client = s->clients.first; client; client = client->next)
        if (client->flush_wanted && occ_collector_is_settled(s->collector, client->session))
            return true;
    return false;
}

/* Commits; then answers those whose session is settled. The others wait for the next round. */
static void serve_flushes(struct server *s, int64_t now_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    int status = occ_collector_commit(s->collector, now_ns, &err);
    if (status == 0 && s->private_mode && flush_is_due(s)) { /* nobody's launches are still to come */
        occ_sampler_settle(s->sampler, SETTLE_NS);
        status = occ_collector_commit(s->collector, now_ns, &err);
    }
    for (struct occ_client *client = s->clients.first; client; client = client->next) {
        if (!client->flush_wanted)
            continue;
        if (status != 0) {
            client->flush_wanted = false;
            answer_error(s, client, &err);
        } else if (occ_collector_is_settled(s->collector, client->session)) {
            answer_flush(s, client);
        }
    }
}

/* ---- events ---- */

static void on_connections(struct server *s)
{
    struct occ_peer peer;
    size_t most = s->options->collector.max_producers + CLIENTS_BESIDE;
    for (int fd; (fd = occ_listen_accept(&s->listener, &peer, &s->refused)) >= 0;) {
        int64_t now_ns = occ_monotonic_ns();
        if (s->clients.n >= most)
            occ_clients_close_idle(&s->clients, now_ns - IDLE_CLIENT_NS);
        struct occ_client *client = occ_clients_add(&s->clients, fd, &peer, now_ns);
        if (!client)
            continue;
        if (s->clients.n > most || watch(s, fd, &client->socket_source, OCC_EVENT_CLIENT) != 0)
            refuse(s, client, "too many connections");
    }
}

static void on_client(struct server *s, struct occ_client *client)
{
    for (int i = 0; i < PACKETS_PER_EVENT && client->fd >= 0; i++) {
        enum occ_packet_status status = occ_packet_receive(client->fd, &s->packet);
        if (status == OCC_PACKET_NONE)
            return;
        if (status == OCC_PACKET_END)
            hang_up(s, client);
        else if (occ_packet_is_hello(&s->packet))
            take_hello(s, client);
        else
            take_request(s, client);
    }
}

static void on_private(struct server *s)
{
    char byte;
    ssize_t n = recv(s->private_fd, &byte, 1, MSG_DONTWAIT);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    (void)close(s->private_fd);
    s->private_fd = -1;
    s->left_ns = occ_monotonic_ns();
    s->program_ended = true; /* look at once */
}

static void on_signal(struct server *s)
{
    struct signalfd_siginfo info;
    if (read(s->signals, &info, sizeof info) != sizeof info)
        return;
    if (s->private_mode && info.ssi_signo == SIGINT)
        return;
    occ_log(OCC_LOG_INFO, "%s: draining and leaving", strsignal((int)info.ssi_signo));
    s->stopping = true;
}

static void on_timer(struct server *s)
{
    uint64_t expirations;
    ssize_t n = read(s->timer, &expirations, sizeof expirations);
    (void)n; /* only makes it quiet; the time itself decides */
}

static void on_event(struct server *s, const struct occ_event_source *source)
{
    switch (source->kind) {
    case OCC_EVENT_LISTENER:
        on_connections(s);
        break;
    case OCC_EVENT_SIGNALS:
        on_signal(s);
        break;
    case OCC_EVENT_TIMER:
        on_timer(s);
        break;
    case OCC_EVENT_PRIVATE:
        if (s->private_fd >= 0)
            on_private(s);
        break;
    case OCC_EVENT_CLIENT:
        if (source->client->fd >= 0)
            on_client(s, source->client);
        break;
    case OCC_EVENT_PROCESS:
        if (source->client->pidfd >= 0)
            program_died(s, source->client);
        break;
    }
}

/* How many events there were. Records that they name live until the next sweep. */
static int handle_events(struct server *s, int timeout_ms)
{
    struct epoll_event events[EVENTS_PER_WAIT];
    int n = epoll_wait(s->epoll, events, EVENTS_PER_WAIT, timeout_ms);
    for (int i = 0; i < n; i++)
        on_event(s, events[i].data.ptr);
    return n < 0 ? 0 : n;
}

/* Everything that has happened so far. */
static void pump(struct server *s)
{
    for (int i = 0; i < PUMP_ROUNDS && handle_events(s, 0) > 0; i++)
        occ_clients_sweep(&s->clients);
}

/* ---- one round ---- */

static void set_timer(struct server *s, bool soon)
{
    int64_t wait_ns = occ_collector_wait_ns(s->collector);
    if (occ_sampler_is_busy(s->sampler) && (wait_ns < 0 || wait_ns > OCC_SAMPLER_POLL_NS))
        wait_ns = OCC_SAMPLER_POLL_NS;
    if (soon)
        wait_ns = SOON_NS;
    int64_t now_ns = occ_monotonic_ns();
    s->next_poll_ns = wait_ns < 0 ? INT64_MAX : now_ns + wait_ns;
    struct itimerspec when = {0}; /* all zero: disarmed */
    if (wait_ns >= 0)
        when.it_value = (struct timespec){.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
    (void)timerfd_settime(s->timer, 0, &when, NULL);
}

static bool private_is_over(const struct server *s)
{
    struct occ_collector_stats stats;
    if (!s->left_ns)
        return false;
    occ_collector_get_stats(s->collector, &stats);
    return stats.producers == 0 || (stats.stalled && occ_monotonic_ns() - s->left_ns > PRIVATE_PATIENCE_NS);
}

/* What is measured comes seconds after its launches: where nothing else is committed, that is. */
static void tend_sampler(struct server *s, int64_t now_ns)
{
    struct occ_collector_stats stats;
    struct occ_error err = OCC_ERROR_INIT;
    occ_collector_get_stats(s->collector, &stats);
    bool results = occ_sampler_poll(s->sampler, stats.producers > 0);
    if (stats.commits != s->commits_seen) {
        s->commits_seen = stats.commits;
        s->tend_next_ns = now_ns + s->options->collector.commit_interval_ns;
    }
    if (!results || stats.stalled || now_ns < s->tend_next_ns)
        return;
    s->tend_next_ns = now_ns + s->options->collector.commit_interval_ns;
    (void)occ_collector_commit(s->collector, now_ns,
                               &err); /* a failure is the collector's to tell, and tried again */
}

static void round_of_work(struct server *s)
{
    if (flush_is_wanted(s) || s->left_ns)
        pump(s);
    bool flush = flush_is_wanted(s);
    bool last_one = s->left_ns && s->program_ended;
    int64_t now_ns = occ_monotonic_ns();
    if (s->program_ended || flush || now_ns >= s->next_poll_ns || s->next_poll_ns == INT64_MAX) {
        s->program_ended = false;
        occ_collector_poll(s->collector, now_ns);
        tend_sampler(s, now_ns);
        if (flush || last_one)
            serve_flushes(s, now_ns);
        occ_clients_sweep(&s->clients);
        set_timer(s, flush_is_wanted(s));
    }
    occ_clients_sweep(&s->clients);
    s->stopping |= occ_collector_fatal(s->collector) != 0;
}

static void serve(struct server *s)
{
    while (!s->stopping && !private_is_over(s)) {
        (void)handle_events(s, -1);
        round_of_work(s);
    }
}

/* ---- start and end ---- */

static int open_descriptors(struct server *s, struct occ_error *err)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return occ_fail_errno(err, errno, "cannot block signals");
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (s->epoll < 0 || s->signals < 0 || s->timer < 0)
        return occ_fail_errno(err, errno, "cannot make the event loop's descriptors");
    if (watch(s, s->listener.fd, &s->listener_source, OCC_EVENT_LISTENER) != 0 ||
        watch(s, s->signals, &s->signals_source, OCC_EVENT_SIGNALS) != 0 ||
        watch(s, s->timer, &s->timer_source, OCC_EVENT_TIMER) != 0 ||
        (s->private_mode && watch(s, s->private_fd, &s->private_source, OCC_EVENT_PRIVATE) != 0))
        return occ_fail_errno(err, errno, "cannot watch the event loop's descriptors");
    return 0;
}

static int start(struct server *s, struct occ_error *err)
{
    struct occ_collector_options collector = s->options->collector;
    collector.gone = producer_gone;
    collector.appended = launches_appended;
    collector.committing = about_to_commit;
    collector.context = s;
    int status = occ_sampler_new(&s->options->sampler, s->store, &s->sampler, err);
    if (status == 0)
        status = occ_collector_new(s->store, &collector, &s->collector, err);
    if (status == 0)
        status = occ_listen_open(s->options->socket_path, s->options->socket_mode, &s->listener, err);
    if (status == 0)
        status = open_descriptors(s, err);
    if (status != 0)
        return status;
    occ_sampler_discover(s->sampler);
    if (s->private_mode) { /* the program is about to start */
        occ_sampler_wake(s->sampler);
        occ_sampler_await(s->sampler, AWAIT_NS);
    }
    if (s->private_mode && send(s->private_fd, "l", 1, MSG_NOSIGNAL) != 1)
        return occ_fail_errno(err, errno, "cannot tell the starter that we listen");
    occ_notify("READY=1");
    occ_log(OCC_LOG_INFO, "listens at %s, writes %s", s->options->socket_path, s->options->database);
    return 0;
}

/* Nobody new comes in; what rings hold now is read and committed. */
static int finish(struct server *s, struct occ_error *err)
{
    occ_notify("STOPPING=1");
    pump(s);
    occ_listen_close(&s->listener);
    int status = occ_collector_fatal(s->collector);
    if (status != 0)
        return occ_fail(err, status, "out of memory; what is not committed stays in the programs' rings");
    status = occ_collector_stop(s->collector, occ_monotonic_ns(), err);
    if (status == 0) {
        occ_sampler_settle(s->sampler, SETTLE_NS);
        status = occ_sampler_store(s->sampler, err);
    }
    return status == 0 ? occ_store_finish(s->store, err) : status;
}

/* A private daemon's socket lies alone in a directory that its starter made: who of the two ends last removes it. */
static void remove_private_directory(const char *socket_path)
{
    char directory[sizeof(((struct sockaddr_un *)0)->sun_path)];
    (void)snprintf(directory, sizeof directory, "%s", socket_path);
    char *slash = strrchr(directory, '/');
    if (!slash || slash == directory)
        return;
    *slash = '\0';
    (void)rmdir(directory); /* not if anything else is in it */
}

static void close_all(struct server *s)
{
    occ_listen_close(&s->listener);
    if (s->private_mode)
        remove_private_directory(s->options->socket_path);
    occ_collector_free(s->collector);
    occ_sampler_free(s->sampler);
    occ_clients_clear(&s->clients);
    int fds[] = {s->epoll, s->signals, s->timer, s->private_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

int occ_server_run(struct occ_store *store, const struct occ_server_options *options, struct occ_error *err)
{
    struct server s = {.store = store,
                       .options = options,
                       .listener = {.fd = -1, .spare = -1},
                       .epoll = -1,
                       .signals = -1,
                       .timer = -1,
                       .private_fd = options->private_fd,
                       .private_mode = options->private_fd >= 0,
                       .started_ns = occ_monotonic_ns(),
                       .next_poll_ns = INT64_MAX};
    int status = start(&s, err);
    if (status == 0) {
        serve(&s);
        status = finish(&s, err);
    }
    close_all(&s);
    return status;
}
