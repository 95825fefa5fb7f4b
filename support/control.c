/* The client's side of the daemon's text requests. Blocking with a time limit; any thread. */
#include "control.h"
#include "cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_MS     5000 /* time to wait for a place in the queue of a busy daemon */
#define START_MS       100  /* time to wait for a daemon that is about to listen */
#define START_PAUSE_MS 5

static int64_t now_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Connects in one blocking call: the kernel keeps the caller's place while the daemon's queue is full. A
 * caller that tried again and again would lose each place to a flood of others. 0 or an errno. */
static int connect_until(int fd, const struct sockaddr_un *address, int64_t end_ms)
{
    for (int64_t left_ms; (left_ms = end_ms - now_ms()) > 0;) {
        const struct timeval wait = {.tv_sec = left_ms / 1000, .tv_usec = left_ms % 1000 * 1000};
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
        if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0)
            return 0;
        if (errno != EINTR)
            return errno;
    }
    return EAGAIN;
}

/* Connects, with retries: a starting daemon binds its socket a moment before it listens. */
static int connect_patiently(int fd, const struct sockaddr_un *address)
{
    int64_t begin_ms = now_ms();
    int why = connect_until(fd, address, begin_ms + CONNECT_MS);
    while (why == ECONNREFUSED && now_ms() - begin_ms < START_MS) {
        (void)poll(NULL, 0, START_PAUSE_MS);
        why = connect_until(fd, address, begin_ms + CONNECT_MS);
    }
    return why;
}

int occ_control_connect(const char *socket_path, int *ret_fd, struct occ_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(socket_path) >= sizeof address.sun_path)
        return occ_fail(err, OCC_E_INVALID, "the socket's path is too long: %s", socket_path);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path);
    _cleanup_(occ_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return occ_fail_errno(err, errno, "cannot make a socket");
    int why = connect_patiently(fd, &address);
    if (why == ENOENT || why == ECONNREFUSED)
        return occ_fail(err, OCC_E_NOT_FOUND, "no daemon listens at %s", socket_path);
    if (why == EAGAIN)
        return occ_fail(err, OCC_E_BUSY, "the daemon at %s did not accept within %d s", socket_path,
                        CONNECT_MS / 1000);
    if (why != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        return occ_fail_errno(err, why ? why : errno, "cannot connect to %s", socket_path);
    *ret_fd = fd;
    fd = -1;
    return 0;
}

static bool is_trusted(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

/* Another user could replace a directory that he owns, a link to it, or a socket in a directory that he can
 * write, even between the check of the daemon's owner and a later connection. */
static int check_directory(const char *socket_path, struct occ_error *err)
{
    const char *slash = strrchr(socket_path, '/');
    _cleanup_(occ_freep) char *directory =
        slash ? strndup(socket_path, slash == socket_path ? 1 : (size_t)(slash - socket_path)) : strdup(".");
    struct stat link, status;
    if (!directory)
        return occ_no_memory(err);
    if (lstat(directory, &link) != 0 || stat(directory, &status) != 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES
                   ? occ_fail(err, OCC_E_NOT_FOUND, "no daemon listens at %s", socket_path)
                   : occ_fail_errno(err, errno, "cannot look at %s", directory);
    if (!is_trusted(link.st_uid) || !is_trusted(status.st_uid))
        return occ_fail(err, OCC_E_DENIED, "%s belongs to another user; its daemon is not used", directory);
    if (status.st_mode & 0022)
        return occ_fail(err, OCC_E_DENIED, "others may write to %s; its daemon is not used", directory);
    return 0;
}

int occ_control_connect_trusted(const char *socket_path, int *ret_fd, struct occ_error *err)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof peer;
    _cleanup_(occ_closep) int fd = -1;
    int status = check_directory(socket_path, err);
    if (status == 0)
        status = occ_control_connect(socket_path, &fd, err);
    if (status != 0)
        return status;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || !is_trusted(peer.uid))
        return occ_fail(err, OCC_E_DENIED, "the daemon at %s belongs to another user; it is not used",
                        socket_path);
    *ret_fd = fd;
    fd = -1;
    return 0;
}

char *occ_control_value(const char *answer, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = answer; *line;) {
        size_t end = strcspn(line, "\n");
        if (end > length && strncmp(line, key, length) == 0 && line[length] == ' ')
            return strndup(line + length + 1, end - length - 1);
        line += end + (line[end] == '\n');
    }
    return NULL;
}

/* The next packet, with a NUL. *ret_ready is 0 after the timeout. */
static ssize_t receive(int fd, int timeout_ms, char *packet, size_t size, int *ret_ready)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    *ret_ready = poll(&wait, 1, timeout_ms);
    ssize_t n = *ret_ready <= 0 ? -1 : recv(fd, packet, size - 1, 0);
    packet[n > 0 ? n : 0] = '\0';
    return n;
}

/* True for a packet of the handshake (ring/handshake.h), which a traced program's connection receives too. */
static bool is_of_handshake(const char *packet)
{
    return strcmp(packet, "taken") == 0;
}

int occ_control_request(int fd, const char *request, int timeout_ms, char *answer, size_t answer_size,
                        struct occ_error *err)
{
    char packet[OCC_CONTROL_BYTES + 1];
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
        return occ_fail_errno(err, errno, "cannot send to the daemon");
    int ready;
    ssize_t n = receive(fd, timeout_ms, packet, sizeof packet, &ready);
    while (n > 0 && is_of_handshake(packet))
        n = receive(fd, timeout_ms, packet, sizeof packet, &ready);
    if (ready == 0)
        return occ_fail(err, OCC_E_BUSY, "the daemon did not answer within %d ms", timeout_ms);
    if (n <= 0)
        return occ_fail(err, OCC_E_IO, "the daemon closed the connection");
    if (strncmp(packet, "ok", 2) != 0) {
        const char *text = strncmp(packet, "error ", 6) == 0 ? packet + 6 : packet;
        return occ_fail(err, OCC_E_INVALID, "%s", text);
    }
    (void)snprintf(answer, answer_size, "%s",
                   packet[2] == ' ' || packet[2] == '\n' ? packet + 3 : packet + 2);
    return 0;
}
