/* See clients.h. No global state. */
#include "clients.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "control.h"
#include "listen.h"
#include "support/array.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/paths.h"

#define CLOSER_POLL_NS INT64_C(20000000)
#define FDINFO_BYTES   4096
#define YOUNGER_NS     INT64_C(1000000000)

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* ---- users ---- */

static struct occ_user *find_user(const struct occ_clients *clients, uint32_t uid, const char *container)
{
    struct occ_user *user = clients->users;
    while (user && (strcmp(user->container, container) != 0 || (!container[0] && user->uid != uid)))
        user = user->next;
    return user;
}

static struct occ_user *user_of(struct occ_clients *clients, uint32_t peer_uid, const char *container)
{
    struct occ_user *user = find_user(clients, peer_uid, container);
    uint32_t uid = peer_uid;
    if (!user && clients->is_shared && !container[0]) {
        uid = occ_accounts_owner_uid(clients->accounts, peer_uid);
        user = find_user(clients, uid, "");
    }
    if (user || !(user = calloc(1, sizeof *user)))
        return user;
    user->uid = uid;
    (void)snprintf(user->container, sizeof user->container, "%s", container);
    user->queue = (struct occ_queue){.source = {clients->serve_user, user}, .fd = -1};
    user->next = clients->users;
    clients->users = user;
    return user;
}

static bool open_queue(struct occ_user *user, int epoll, int64_t now_ns)
{
    if (user->queue.fd >= 0)
        return true;
    user->queue.fd = epoll_create1(EPOLL_CLOEXEC);
    user->queue.is_waiting = user->queue.fd >= 0;
    (void)occ_queue_resume(&user->queue, epoll, now_ns);
    return user->queue.fd >= 0;
}

/* Frees users without connections. A user's record is kept while its debt is not repaid; otherwise a new
 * connection would reset the debt. */
static void sweep_users(struct occ_clients *clients)
{
    int64_t now_ns = occ_monotonic_ns();
    for (struct occ_user **link = &clients->users, *user; (user = *link);) {
        if (user->n_clients == 0 && user->queue.fd >= 0) {
            (void)close(user->queue.fd);
            user->queue.fd = -1;
            user->queue.is_waiting = false;
        }
        if (user->n_clients > 0 || user->queue.close_thread.n > 0 ||
            user->queue.share.debt_until_ns > now_ns) {
            link = &user->next;
            continue;
        }
        *link = user->next;
        free(user);
    }
}

void occ_queue_charge(struct occ_queue *queue, int epoll, int64_t now_ns, int64_t cost_ns)
{
    occ_share_charge(&queue->share, now_ns, cost_ns);
    if (queue->is_waiting || (queue->close_thread.n == 0 && occ_share_wait_ns(&queue->share, now_ns) == 0))
        return;
    queue->is_waiting = epoll_ctl(epoll, EPOLL_CTL_DEL, queue->fd, NULL) == 0;
}

int64_t occ_queue_resume(struct occ_queue *queue, int epoll, int64_t now_ns)
{
    int64_t wait_ns = queue->is_waiting ? occ_share_wait_ns(&queue->share, now_ns) : 0;
    if (occ_close_thread_is_busy(&queue->close_thread))
        return wait_ns > CLOSER_POLL_NS ? wait_ns : CLOSER_POLL_NS;
    if (queue->is_waiting && wait_ns == 0)
        queue->is_waiting = occ_event_watch(epoll, queue->fd, &queue->source) != 0;
    return wait_ns;
}

/* ---- clients ---- */

struct occ_client *occ_clients_add(struct occ_clients *clients, int fd, const struct occ_peer *peer,
                                   int64_t now_ns)
{
    struct occ_user *user = user_of(clients, peer->uid, "");
    struct occ_client *client =
        user && open_queue(user, clients->epoll, now_ns) ? calloc(1, sizeof *client) : NULL;
    if (!client) {
        (void)close(fd);
        return NULL;
    }
    client->user = user;
    user->n_clients++;
    client->fd = fd;
    client->pidfd = -1;
    client->peer = *peer;
    client->since_ns = now_ns;
    client->next = clients->first;
    clients->first = client;
    clients->n++;
    return client;
}

void occ_client_close(struct occ_client *client)
{
    occ_close_fd(&client->fd);
    client->flush_wanted = false;
}

void occ_clients_sweep(struct occ_clients *clients)
{
    struct occ_client **link = &clients->first;
    while (*link) {
        struct occ_client *client = *link;
        if (client->producer || (client->fd >= 0 && !client->was_producer)) {
            link = &client->next;
            continue;
        }
        *link = client->next;
        clients->n--;
        client->user->n_clients--;
        occ_client_close(client);
        occ_close_fd(&client->pidfd);
        free(client);
    }
    sweep_users(clients);
}

void occ_clients_close_idle(struct occ_clients *clients, const struct occ_user *user, int64_t since_ns)
{
    for (struct occ_client *client = clients->first; client; client = client->next)
        if (client->user == user && !client->was_producer && !client->flush_wanted &&
            client->since_ns < since_ns)
            occ_client_close(client);
}

static int by_uid(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

bool occ_clients_users(const struct occ_clients *clients, struct occ_profiler_users *users)
{
    size_t distinct = 0;
    users->n = 0;
    for (const struct occ_client *c = clients->first; c; c = c->next) {
        if (!c->producer)
            continue;
        if (!occ_grow((void **)&users->uids, &users->allocated, users->n, SIZE_MAX, sizeof *users->uids))
            return false;
        users->uids[users->n++] = c->peer.uid;
    }
    if (users->n > 1)
        qsort(users->uids, users->n, sizeof *users->uids, by_uid);
    for (size_t i = 0; i < users->n; i++)
        if (distinct == 0 || users->uids[distinct - 1] != users->uids[i])
            users->uids[distinct++] = users->uids[i];
    users->n = distinct;
    return true;
}

void occ_clients_clear(struct occ_clients *clients)
{
    for (struct occ_client *client = clients->first; client; client = client->next) {
        client->producer = NULL;
        occ_client_close(client);
    }
    for (struct occ_user *user = clients->users; user; user = user->next)
        user->queue.share = (struct occ_share){0};
    occ_clients_sweep(clients);
}

/* true if the process of the pidfd still has this pid: it lives or is a zombie. Signal 0 would tell the same,
 * but the service may not signal other users' processes, and a filter of system calls returns the same error
 * as the kernel for a missing process. */
static bool has_number(int pidfd, int32_t pid)
{
    char path[64];
    _cleanup_(occ_freep) char *text = NULL;
    size_t n = 0;
    int number = -1;
    (void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    if (occ_path_read(path, FDINFO_BYTES, &text, &n, NULL) != 0)
        return false;
    const char *line = strstr(text, "\nPid:");
    return line && sscanf(line, "\nPid: %d", &number) == 1 && number == pid;
}

/* true if the process began after the connection, and a second more. Kernels before 6.5 have no pidfd of the
 * peer: there a process that keeps a connection of an ended parent could wait for another one with its pid.
 */
static bool is_younger(const struct occ_identity *identity, int64_t since_ns)
{
    int64_t connected_ns = occ_monotonic_ns() - since_ns;
    return identity->start_boot_ns >= 0 &&
           occ_boot_ns() - identity->start_boot_ns + YOUNGER_NS < connected_ns;
}

/* true if the identity read by pid is the peer's: the pid was not reused since. */
static bool is_peers(const struct occ_identity *identity, int connection, const struct occ_peer *peer,
                     int64_t since_ns)
{
    if (peer->pid <= 0)
        return true; /* in a pid namespace that the daemon cannot see: only its uid is known */
    if (identity->is_uncertain || is_younger(identity, since_ns))
        return false;
    _cleanup_(occ_closep) int pidfd = occ_peer_open_process(connection, peer);
    return pidfd >= 0 && has_number(pidfd, peer->pid);
}

bool occ_client_identify(const struct occ_clients *clients, struct occ_client *client)
{
    if (client->has_identity)
        return true;
    occ_identity_read(clients->accounts, client->peer.pid, client->peer.uid, &client->identity);
    occ_identity_owner(&client->identity, &client->owner);
    client->has_identity = true;
    bool is_known =
        !clients->is_shared || is_peers(&client->identity, client->fd, &client->peer, client->since_ns);
    if (!is_known) /* the identity may belong to another process */
        client->owner = (struct occ_owner){.uid = -1};
    return is_known;
}

/* In a shared daemon a process with unknown control groups may be a container's root. A container without a
 * control group of its own has a pid namespace at least. */
static bool is_outside(const struct occ_clients *clients, const struct occ_identity *identity,
                       const struct occ_owner *owner)
{
    bool is_on_host = identity->has_control_groups && !identity->is_nested;
    return (is_on_host || !clients->is_shared) &&
           (owner->uid >= 0 || strcmp(owner->name, clients->own.name) == 0);
}

bool occ_peer_is_outside(const struct occ_clients *clients, int connection, int64_t since_ns)
{
    struct occ_peer peer;
    struct occ_identity identity;
    struct occ_owner owner;
    if (!occ_listen_peer(connection, &peer) || peer.pid <= 0)
        return false;
    occ_identity_read(clients->accounts, peer.pid, peer.uid, &identity);
    occ_identity_owner(&identity, &owner);
    return is_peers(&identity, connection, &peer, since_ns) && is_outside(clients, &identity, &owner);
}

void occ_client_payer(const struct occ_client *client, char name[OCC_CLIENT_PAYER_BYTES])
{
    bool is_unnamed = client->identity.is_nested && client->owner.uid >= 0;
    (void)snprintf(name, OCC_CLIENT_PAYER_BYTES, "%s%s", client->owner.name,
                   is_unnamed ? "-in-containers" : "");
}

int occ_client_join_container(struct occ_clients *clients, struct occ_client *client, int64_t now_ns)
{
    struct occ_user *from = client->user, *to;
    char name[OCC_CLIENT_PAYER_BYTES];
    occ_client_payer(client, name);
    if (!clients->is_shared || from->container[0] || (client->owner.uid >= 0 && !client->identity.is_nested))
        return 0;
    to = user_of(clients, from->uid, name);
    if (!to || !open_queue(to, clients->epoll, now_ns) ||
        occ_event_watch(to->queue.fd, client->fd, &client->socket_source) != 0)
        return -1;
    (void)epoll_ctl(from->queue.fd, EPOLL_CTL_DEL, client->fd, NULL);
    from->n_clients--;
    to->n_clients++;
    client->user = to;
    return 1;
}

struct occ_user *occ_clients_arrivals(const struct occ_clients *clients, const struct occ_client *client)
{
    return find_user(clients, client->user->uid, "");
}

bool occ_client_may_command(const struct occ_clients *clients, const struct occ_client *client,
                            const struct occ_client *target)
{
    bool is_its_owner = target && strcmp(client->owner.name, target->owner.name) == 0;
    return is_its_owner || (is_outside(clients, &client->identity, &client->owner) &&
                            occ_control_may_command(client->peer.uid, geteuid()));
}

int occ_event_watch(int epoll, int fd, struct occ_event_source *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

int occ_peer_open_process(int connection, const struct occ_peer *peer)
{
    int pidfd = -1;
    socklen_t size = sizeof pidfd;
    if (peer->pid <= 0) {
        errno = EINVAL; /* in a pid namespace that the daemon cannot see */
        return -1;
    }
    if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0)
        return pidfd;
    if (errno != ENOPROTOOPT) { /* the pid may have been reused */
        errno = errno == EMFILE || errno == ENFILE ? errno : ESRCH;
        return -1;
    }
    return (int)syscall(SYS_pidfd_open, (pid_t)peer->pid, 0u);
}
