/* See clients.h. No global state. */
#include "clients.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

struct occ_client *occ_clients_add(struct occ_clients *clients, int fd, const struct occ_peer *peer,
                                   int64_t now_ns)
{
    struct occ_client *client = calloc(1, sizeof *client);
    if (!client) {
        (void)close(fd);
        return NULL;
    }
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
    if (client->fd >= 0)
        (void)close(client->fd);
    client->fd = -1;
    client->flush_wanted = false;
}

void occ_client_forget_process(struct occ_client *client)
{
    if (client->pidfd >= 0)
        (void)close(client->pidfd);
    client->pidfd = -1;
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
        occ_client_close(client);
        occ_client_forget_process(client);
        free(client);
    }
}

void occ_clients_close_idle(struct occ_clients *clients, int64_t since_ns)
{
    for (struct occ_client *client = clients->first; client; client = client->next)
        if (!client->was_producer && !client->flush_wanted && client->since_ns < since_ns)
            occ_client_close(client);
}

size_t occ_clients_of(const struct occ_clients *clients, uint32_t uid)
{
    size_t n = 0;
    for (const struct occ_client *client = clients->first; client; client = client->next)
        n += client->peer.uid == uid;
    return n;
}

struct occ_profiler_users occ_clients_users(const struct occ_clients *clients)
{
    struct occ_profiler_users users = {0};
    for (const struct occ_client *c = clients->first; c && users.n < OCC_PROFILER_USERS_MAX; c = c->next) {
        size_t i = 0;
        while (i < users.n && users.uids[i] != c->peer.uid)
            i++;
        if (c->producer && i == users.n)
            users.uids[users.n++] = c->peer.uid;
    }
    return users;
}

void occ_clients_clear(struct occ_clients *clients)
{
    for (struct occ_client *client = clients->first; client; client = client->next) {
        client->producer = NULL;
        occ_client_close(client);
    }
    occ_clients_sweep(clients);
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
        errno = EINVAL; /* in a pid namespace that we do not see */
        return -1;
    }
    if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0)
        return pidfd;
    return (int)syscall(SYS_pidfd_open, (pid_t)peer->pid, 0u);
}
