/*
 * The daemon's loop. One round:
 *
 *   wait for events, handle them (connections, packets, ended processes, signals)
 *   -> poll histories that are due or lost a program -> serve waiting flushes -> chores -> sweep
 *   -> set the timer
 *
 * In the service, each part of a round takes about round_ns at most and continues in the next round: a user's
 * events (connections.c), the histories one after the other, and each history's reading (collector.h). Users
 * and histories that exceed their share of the time wait (share.h). Only a commit, which writes the launches
 * that one history read in a second, may take longer.
 *
 * The timer is armed for due work only (polls, upkeep, the watchdog): a daemon without such work sleeps.
 *
 * Flush: handle waiting events of its user, then poll and commit, until no dead program of the session is
 * left; then send the answer.
 *
 * Private mode (the descriptor is one end of a socketpair of `occtrace`): a byte tells the starter that the
 * daemon listens; after the other end is closed, the daemon ends as soon as no program reports. SIGINT is
 * ignored: Ctrl-C is meant for the program, and the daemon ends after it.
 *
 * One thread; the sampler (sampler.h), the lookup of names (name_service.h), the scan for coverage
 * (coverage.h) and the closing of descriptors (close_thread.h) have threads. Logs.
 */
#include "server.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "notify.h"
#include "daemon/serve/server_state.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/control.h"
#include "support/log.h"
#include "daemon/histories/closed_upkeep.h"

#define EVENTS_PER_WAIT 16                  /* events of the loop's epoll are mostly users' queues */
#define BACKLOG_NS      INT64_C(1000000000) /* time limit for pending events at the end */
#define CHORES_NS       INT64_C(100000000)
#define IDLE_POLL_NS    INT64_C(30000000000) /* interval of the search for idle histories */
#define NOTIFY_NS       INT64_C(10000000000)
#define AWAIT_NS        INT64_C(3000000000) /* wait for counters before the program starts */
#define SETTLE_NS       INT64_C(4000000000) /* wait for measured values of the last launches */
#define SOON_NS         INT64_C(2000000)    /* until the next round while a flush waits */
#define TICK_NS         INT64_C(10000000)   /* shorter intervals are not aligned to multiples of themselves */

/* ---- events ---- */

static void on_private(struct occ_server *s, void *none)
{
    (void)none;
    char byte;
    ssize_t n = recv(s->private.fd, &byte, 1, MSG_DONTWAIT);
    if (s->private.fd < 0 || n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    (void)close(s->private.fd);
    s->private.fd = -1;
    s->private.left_ns = occ_monotonic_ns();
    s->program_ended = true; /* start the next round at once */
    s->histories.first->next_poll_ns = 0;
}

/* An invalid file changes no setting. */
static void reload(struct occ_server *s)
{
    struct occ_histories_limits limits;
    occ_pages_reload(s);
    if (!s->options->reload)
        return;
    occ_notify_reloading();
    s->reload_error = (struct occ_error)OCC_ERROR_INIT;
    if (s->options->reload(s->options->context, &limits, &s->reload_error) != 0) {
        occ_log(OCC_LOG_ERROR, "the settings stay as they were: %s", s->reload_error.message);
    } else {
        occ_histories_configure(&s->histories, &s->histories_options, &limits);
        occ_node_quota_plan(&s->histories, occ_monotonic_ns());
        s->config_read_ns = occ_now_ns();
    }
    s->next_chores_ns = 0;
    occ_notify("READY=1");
}

static void on_signal(struct occ_server *s, void *none)
{
    (void)none;
    struct signalfd_siginfo info;
    if (read(s->loop.signals, &info, sizeof info) != sizeof info ||
        (s->private.on && info.ssi_signo == SIGINT))
        return;
    if (info.ssi_signo == SIGHUP) {
        reload(s);
        return;
    }
    occ_log(OCC_LOG_INFO, "%s: draining all rings, then ending", strsignal((int)info.ssi_signo));
    s->stopping = true;
}

static void on_timer(struct occ_server *s, void *none)
{
    (void)none;
    uint64_t expirations;
    ssize_t n = read(s->loop.timer, &expirations, sizeof expirations);
    (void)n; /* read so that epoll does not report it again; the clock decides which work is due */
}

/* Returns the number of events. Clients and users that events refer to are freed by the next sweep only. */
static int handle_events(struct occ_server *s, int timeout_ms)
{
    struct epoll_event events[EVENTS_PER_WAIT];
    int n = epoll_wait(s->loop.epoll, events, EVENTS_PER_WAIT, timeout_ms);
    for (int i = 0; i < n; i++) {
        const struct occ_event_source *source = events[i].data.ptr;
        source->handle(s, source->about);
    }
    return n < 0 ? 0 : n;
}

/* Handles all pending events. */
static void handle_backlog(struct occ_server *s)
{
    int64_t until_ns = occ_monotonic_ns() + BACKLOG_NS;
    while (handle_events(s, 0) > 0 && occ_monotonic_ns() < until_ns)
        occ_clients_sweep(&s->clients);
}

/* ---- one round ---- */

/* Earliest time of the scheduled chores; INT64_MAX: none. */
static int64_t next_chore_ns(const struct occ_server *s)
{
    const int64_t times_ns[] = {s->histories.next_closed_upkeep_ns, s->histories.node.next_ns};
    int64_t next_ns = s->next_upkeep_ns;
    for (size_t i = 0; i < sizeof times_ns / sizeof *times_ns; i++)
        next_ns = times_ns[i] < next_ns ? times_ns[i] : next_ns;
    return next_ns;
}

/* Earliest time of any scheduled work; INT64_MAX: none. */
static int64_t next_ns_of(const struct occ_server *s, int64_t now_ns, int64_t queues_ns)
{
    int64_t idle_ns = s->histories.n > 1 ? now_ns + IDLE_POLL_NS : INT64_MAX;
    int64_t chore_ns = next_chore_ns(s), next_ns = chore_ns < idle_ns ? chore_ns : idle_ns;
    const int64_t waits_ns[] = {queues_ns, occ_requests_await_flush(s) ? SOON_NS : 0, s->watchdog_ns,
                                occ_sampler_is_busy(s->sampler) ? OCC_SAMPLER_POLL_NS : 0};
    for (size_t i = 0; i < sizeof waits_ns / sizeof *waits_ns; i++)
        if (waits_ns[i] && now_ns + waits_ns[i] < next_ns)
            next_ns = now_ns + waits_ns[i];
    for (const struct occ_history *h = s->histories.first; h; h = h->next)
        next_ns = h->next_poll_ns < next_ns ? h->next_poll_ns : next_ns;
    return next_ns;
}

/* Call it at the end of a round: flushes also use turns of queues. false: work is due already. */
static bool set_timer(struct occ_server *s)
{
    int64_t now_ns = occ_monotonic_ns(), queues_ns = occ_connections_resume(s, now_ns);
    int64_t next_ns = next_ns_of(s, now_ns, queues_ns), wait_ns = next_ns - now_ns;
    struct itimerspec when = {0}; /* all zero: disarmed */
    if (wait_ns <= 0)
        return false;
    if (next_ns != INT64_MAX)
        when.it_value = (struct timespec){.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
    (void)timerfd_settime(s->loop.timer, 0, &when, NULL);
    return true;
}

static bool private_is_over(const struct occ_server *s)
{
    struct occ_collector_stats stats;
    if (!s->private.left_ns)
        return false;
    occ_collector_get_stats(s->histories.first->collector, &stats); /* a private daemon has one history */
    return stats.producers == 0 ||
           (stats.stalled &&
            occ_monotonic_ns() - s->private.left_ns > OCC_CONTROL_PRIVATE_PATIENCE_S * INT64_C(1000000000));
}

/* Aligns intervals so that equal intervals end together and many histories with few launches share rounds. */
static void poll_history(struct occ_server *s, struct occ_history *h)
{
    int64_t now_ns = occ_monotonic_ns();
    occ_pages_follow(s, h, now_ns);
    occ_collector_poll(h->collector, now_ns);
    int64_t wait_ns = occ_collector_wait_ns(h->collector, now_ns);
    now_ns = occ_monotonic_ns();
    h->next_poll_ns = wait_ns < 0         ? INT64_MAX
                      : wait_ns < TICK_NS ? now_ns + wait_ns
                                          : (now_ns / wait_ns + 1) * wait_ns;
}

/* Polls the histories that are due, in turn, for about round_ns. */
static void poll_histories(struct occ_server *s, int64_t now_ns)
{
    int64_t round_ns = s->histories_options.collector.round_ns;
    int64_t until_ns = round_ns ? now_ns + round_ns : INT64_MAX;
    uint32_t first = s->loop.next_history;
    for (int pass = 0; pass < 2; pass++)
        for (struct occ_history *h = s->histories.first; h; h = h->next) {
            if ((h->number < first) != (pass == 1) || h->next_poll_ns > now_ns)
                continue;
            poll_history(s, h);
            s->loop.next_history = h->number + 1;
            if (occ_monotonic_ns() >= until_ns)
                return;
        }
}

/* Reports to the service manager: watchdog and status. */
static void notify_state(struct occ_server *s, int64_t now_ns)
{
    char text[96];
    if (now_ns < s->next_notify_ns)
        return;
    s->next_notify_ns = now_ns + (s->watchdog_ns ? s->watchdog_ns : NOTIFY_NS);
    (void)snprintf(text, sizeof text, "WATCHDOG=1\nSTATUS=%zu connections, %zu histories open", s->clients.n,
                   s->histories.n);
    occ_notify(text);
}

/* Does periodic work. */
static void do_chores(struct occ_server *s, int64_t now_ns)
{
    bool has_programs = false;
    if (now_ns < s->next_chores_ns && now_ns < next_chore_ns(s))
        return;
    s->next_chores_ns = now_ns + CHORES_NS;
    for (struct occ_history *h = s->histories.first; h; h = h->next)
        if (h->next_poll_ns == INT64_MAX) /* polls check the other histories */
            occ_pages_follow(s, h, now_ns);
    for (const struct occ_user *user = s->clients.users; user; user = user->next)
        has_programs |= user->n_programs > 0;
    if (occ_clients_users(&s->clients, &s->profiler_users))
        occ_sampler_swap_users(s->sampler, &s->profiler_users);
    occ_sampler_poll(s->sampler, has_programs);
    for (struct occ_history *h = s->histories.first; h; h = h->next)
        occ_histories_commit_results(&s->histories, h, now_ns);
    occ_pages_drop_idle(s, now_ns);
    occ_closed_upkeep_poll(&s->histories, now_ns);
    occ_node_quota_poll(&s->histories, now_ns);
    int64_t upkeep_ns = occ_histories_maintain(&s->histories, now_ns);
    s->next_upkeep_ns = upkeep_ns < 0 ? INT64_MAX : now_ns + upkeep_ns;
    notify_state(s, now_ns);
}

/* true: wait for an event before the next round. */
static bool round_of_work(struct occ_server *s)
{
    if (s->private.left_ns)
        handle_backlog(s);
    bool flush = occ_requests_await_flush(s), last_one = s->private.left_ns && s->program_ended;
    int64_t now_ns = occ_monotonic_ns();
    s->program_ended = false;
    if (flush)
        occ_requests_prepare_flushes(s);
    poll_histories(s, now_ns);
    if (flush || last_one)
        occ_requests_serve_flushes(s, now_ns);
    do_chores(s, now_ns);
    occ_clients_sweep(&s->clients);
    return set_timer(s);
}

static void serve(struct occ_server *s)
{
    for (bool wait = true; !s->stopping && !private_is_over(s); wait = round_of_work(s))
        (void)handle_events(s, wait ? -1 : 0);
}

/* ---- start and end ---- */

static int open_descriptors(struct occ_server *s, struct occ_error *err)
{
    struct occ_identity own;
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGUSR1); /* SIGUSR1 and SIGUSR2 end the daemon too, but after draining the rings */
    (void)sigaddset(&set, SIGUSR2);
    (void)signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return occ_fail_errno(err, errno, "cannot block signals");
    struct occ_loop *l = &s->loop;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (l->epoll < 0 || l->signals < 0 || l->timer < 0)
        return occ_fail_errno(err, errno, "cannot create the event loop's descriptors");
    s->clients.epoll = l->epoll;
    s->clients.is_shared = s->histories_options.split || s->histories_options.collector.round_ns;
    occ_identity_read(s->clients.accounts, getpid(), geteuid(), &own);
    occ_identity_owner(&own, &s->clients.own);
    s->clients.serve_user = occ_connections_serve;
    s->arrivals = (struct occ_queue){.source = {occ_connections_accept, NULL}, .fd = s->listener.fd};
    if (occ_event_watch(l->epoll, s->listener.fd, &s->arrivals.source) != 0)
        return occ_fail_errno(err, errno, "cannot watch the listening socket");
    const int fds[OCC_LOOP_SOURCES] = {l->signals, l->timer, s->private.fd};
    void (*const handlers[OCC_LOOP_SOURCES])(struct occ_server *, void *) = {on_signal, on_timer, on_private};
    for (size_t i = 0; i < OCC_LOOP_SOURCES; i++) {
        l->sources[i].handle = handlers[i];
        if (fds[i] >= 0 && occ_event_watch(l->epoll, fds[i], &l->sources[i]) != 0)
            return occ_fail_errno(err, errno, "cannot watch the event loop's descriptors");
    }
    return 0;
}

static int about_to_commit(void *context, struct occ_error *err)
{
    struct occ_history *h = context;
    struct occ_server *s = h->context;
    const char *reason = occ_store_reopen_reason(h->store);
    if (reason)
        return occ_fail(err, OCC_E_IO, "%s %s", h->path, reason);
    occ_sampler_poll(s->sampler, false);
    return occ_sampler_store(s->sampler, h->number, err);
}

/* The driver starts in parallel and may take longer. A private daemon's program is about to start, so its
 * GPUs are needed at once. */
static int start_sampler(struct occ_server *s, struct occ_error *err)
{
    int status = occ_sampler_new(&s->options->sampler, &s->sampler, err);
    if (status != 0)
        return status;
    occ_sampler_discover(s->sampler);
    if (s->private.on)
        occ_sampler_wake(s->sampler);
    return 0;
}

/* Without memory the daemon records without it. */
static void open_coverage(struct occ_server *s)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_coverage_options options = {.root = s->options->root,
                                                 .socket = s->options->socket_path,
                                                 .nvml_path = s->options->nvml_path,
                                                 .interval_ns = s->options->coverage_interval_ns};
    if (s->options->is_covering && !s->private.on && occ_coverage_new(&options, &s->coverage, &err) != 0)
        occ_log(OCC_LOG_ERROR, "no coverage: %s", err.message);
}

/* Tells the starter of a private daemon that the program may start. */
static int announce(struct occ_server *s, struct occ_error *err)
{
    if (!s->private.on || s->private.is_announced)
        return 0;
    occ_sampler_await(s->sampler, AWAIT_NS);
    if (send(s->private.fd, "l", 1, MSG_NOSIGNAL) != 1)
        return occ_fail_errno(err, errno, "cannot write to the starter");
    s->private.is_announced = true;
    return 0;
}

/* Opens the history, then listens. A file that a private daemon has just made is one that it can open, so its
 * program may start while SQLite reads the schema; the connection waits in the listener's queue meanwhile. */
static int open_history_and_listener(struct occ_server *s, struct occ_error *err)
{
    const struct occ_histories_options *h = &s->histories_options;
    bool is_new = s->private.on && occ_store_create(h->path, &h->store);
    int status = is_new ? 0 : occ_histories_open(&s->histories, h, err);
    char directory[PATH_MAX];
    occ_listen_directory(h->path, directory, sizeof directory);
    if (status == 0)
        status = occ_listen_open(s->options->socket_path, s->options->socket_mode,
                                 s->private.on ? NULL : directory, &s->listener, err);
    if (status == 0 && is_new)
        status = announce(s, err);
    return status == 0 && is_new ? occ_histories_open(&s->histories, h, err) : status;
}

static int start(struct occ_server *s, struct occ_error *err)
{
    s->histories_options = s->options->histories;
    s->histories_options.collector.gone = occ_program_gone;
    s->histories_options.collector.appended = occ_program_appended;
    s->histories_options.collector.leveled = occ_program_leveled;
    s->histories_options.collector.memory = occ_program_memory;
    s->histories_options.collector.committing = about_to_commit;
    s->histories_options.context = s;
    int status = occ_accounts_new(s->options->root ? s->options->root : "", &s->clients.accounts, err);
    s->histories_options.collector.accounts = s->clients.accounts;
    if (status == 0)
        status = start_sampler(s, err);
    s->histories_options.sampler = s->sampler;
    if (status == 0)
        status = open_history_and_listener(s, err);
    if (status == 0)
        status = open_descriptors(s, err);
    if (status != 0)
        return status;
    occ_closed_upkeep_plan(&s->histories, occ_monotonic_ns());
    occ_node_quota_plan(&s->histories, occ_monotonic_ns());
    open_coverage(s);
    occ_pages_open(s);
    if (announce(s, err) != 0)
        return err->code;
    occ_notify("READY=1");
    occ_log(OCC_LOG_INFO, "listens at %s, writes %s", s->options->socket_path, s->histories.first->path);
    return 0;
}

/* Accepts no more programs; reads and commits all rings of every history, even if one of them fails. */
static int finish(struct occ_server *s, struct occ_error *err)
{
    struct occ_error own = OCC_ERROR_INIT;
    int status = 0;
    occ_notify("STOPPING=1");
    handle_backlog(s);
    occ_pages_close(s); /* before the listener: a daemon that starts next needs both sockets */
    occ_listen_close(&s->listener);
    for (struct occ_history *h = s->histories.first; h; h = h->next) {
        occ_pages_follow(s, h, occ_monotonic_ns());
        if (!occ_history_is_empty(h) && occ_collector_stop(h->collector, occ_monotonic_ns(), &own) != 0)
            status = occ_fail(err, OCC_E_IO, "%s: %s", h->path, own.message);
    }
    occ_sampler_settle(s->sampler, SETTLE_NS);
    for (struct occ_history *h = s->histories.first; h; h = h->next)
        if (!occ_history_is_empty(h) &&
            (occ_sampler_store(s->sampler, h->number, &own) != 0 || occ_store_finish(h->store, &own) != 0))
            status = occ_fail(err, OCC_E_IO, "%s: %s", h->path, own.message);
    return status;
}

static void close_all(struct occ_server *s)
{
    occ_pages_close(s);
    occ_coverage_free(s->coverage);
    occ_listen_close(&s->listener);
    /* The directory was made for this socket. A living starter removes the directory itself, later: while the
     * program knows the path, no other user may make a directory there. */
    if (s->private.on && s->private.fd < 0) {
        char directory[OCC_LISTEN_PATH_BYTES];
        occ_listen_directory(s->options->socket_path, directory, sizeof directory);
        (void)rmdir(directory);
    }
    occ_histories_close(&s->histories);
    occ_node_quota_free(&s->histories.node);
    occ_sampler_free(s->sampler);
    occ_clients_clear(&s->clients);
    occ_accounts_free(s->clients.accounts);
    free(s->profiler_users.uids);
    occ_close_fd(&s->loop.epoll); /* the private socket stays open until exit, after the last log line */
    occ_close_fd(&s->loop.signals);
    occ_close_fd(&s->loop.timer);
}

int occ_server_run(const struct occ_server_options *options, struct occ_error *err)
{
    struct occ_server s = {.options = options,
                           .listener = {.fd = -1, .spare = -1},
                           .loop = {.epoll = -1, .signals = -1, .timer = -1},
                           .private = {.on = options->private_fd >= 0, .fd = options->private_fd},
                           .watchdog_ns = occ_notify_watchdog_ns(),
                           .started_ns = occ_monotonic_ns(),
                           .config_read_ns = occ_now_ns()};
    int status = start(&s, err);
    if (status == 0) {
        serve(&s);
        status = finish(&s, err);
    }
    close_all(&s);
    return status;
}
