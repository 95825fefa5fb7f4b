/* See daemon_link.h. */
#include "daemon_link.h"
#include "guest_log.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "ring/handshake.h"

#define SECOND_NS   UINT64_C(1000000000)
#define QUICK_TRIES 60u
#define QUICK_NS    (SECOND_NS * 9 / 10) /* the helper polls once a second */
#define SLOW_NS     (SECOND_NS * 10)
#define STAYED_NS   (SECOND_NS * 10)  /* a shorter connection may mean a refusal */
#define NAP_NS      (SECOND_NS / 500) /* between two tries at the program's end */
#define LOOK_MS     20
#define ANSWERS_MAX 4 /* read at a look: a daemon that sends without end must not hold the program */
#define SOCKET_NAME "/occtraced.sock"

/* Connecting clients wait this long for room in a busy daemon's queue, in order of arrival. */
static const struct timeval queue_wait = {.tv_usec = 100000};
/* The first try is made inside cuInit, which must not wait. */
static const struct timeval first_wait = {.tv_usec = 1000};

static void set_path(char path[static 108], const char *directory, unsigned int uid, const char *rest)
{
    enum { SIZE = sizeof((struct occ_link *)0)->paths[0] };
    int n = directory ? snprintf(path, SIZE, "%s%s", directory, rest)
                      : snprintf(path, SIZE, "/tmp/occtrace-%u%s", uid, rest);
    if (n < 0 || n >= SIZE)
        path[0] = '\0';
}

void occ_link_init(struct occ_link *link, const char *configured, char *(*get)(const char *name))
{
    memset(link, 0, sizeof *link);
    link->socket = OCC_FD_NONE;
    link->spare = OCC_FD_NONE;
    link->is_given = configured[0] == '/';
    const char *runtime = get("XDG_RUNTIME_DIR");
    bool has_runtime = runtime && runtime[0] == '/';
    unsigned int uid = geteuid();
    if (link->is_given) {
        set_path(link->paths[OCC_LINK_OWN], configured, uid, "");
        return;
    }
    if (has_runtime)
        set_path(link->paths[OCC_LINK_OWN], runtime, uid, "/occtrace" SOCKET_NAME);
    else if (uid != 0) /* root's own daemon is the service */
        set_path(link->paths[OCC_LINK_OWN], NULL, uid, SOCKET_NAME);
    set_path(link->paths[OCC_LINK_SERVICE], "/run/occtrace", uid, SOCKET_NAME);
}

/* Any user can create a socket in /tmp, so only daemons of root and of the program's user are trusted. A
 * configured path is not checked: in a container, the host's daemon has a user that does not exist there. */
static bool peer_is_trusted(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

/* Another user's socket, whose queue may be full for ever, must cost no time and must not hide the service.
 * This test saves time only: peer_is_trusted() protects the ring. */
static bool directory_is_trusted(const char *path)
{
    char directory[sizeof((struct occ_link *)0)->paths[0]];
    struct stat status;
    const char *slash = strrchr(path, '/');
    (void)snprintf(directory, sizeof directory, "%.*s", (int)(slash - path), path);
    return stat(directory, &status) == 0 && (status.st_uid == geteuid() || status.st_uid == 0);
}

/* Connects the spare socket and returns it, or -1. The socket of a failed try is kept: a new one would take
 * the lowest free number for a moment, which a thread of the program may rely on (close(0), then open). */
static int connect_spare(struct occ_link *link, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, sizeof link->paths[0]);
    int fd = occ_fd_get(&link->spare);
    if (fd < 0) {
        link->spare = occ_fd_adopt(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        fd = link->spare.fd;
    }
    const struct timeval *wait = link->tries <= 1 ? &first_wait : &queue_wait;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, wait, sizeof *wait);
    bool is_connected = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    link->is_busy = fd >= 0 && !is_connected && errno == EAGAIN;
    if (!is_connected)
        return -1;
    if (link->is_given || peer_is_trusted(fd))
        return fd;
    occ_fd_close(&link->spare);
    return -1;
}

/* Only the path of a daemon that has just ended is tried while its successor may start: a restart of the
 * user's own daemon must not move the program's records to the service. */
static bool is_path_due(const struct occ_link *link, uint32_t i, uint64_t now_ns)
{
    bool is_restarting = link->ended_ns && now_ns - link->ended_ns < OCC_LINK_RESTART_NS;
    return link->paths[i][0] != '\0' && (!is_restarting || i == link->at) &&
           (link->is_given || directory_is_trusted(link->paths[i]));
}

/* A busy daemon ends the search, so a try waits once at most. */
static int connect_first(struct occ_link *link, uint64_t now_ns)
{
    int fd = -1;
    link->is_busy = false;
    for (uint32_t i = 0; i < OCC_LINK_PATHS && fd < 0 && !link->is_busy; i++) {
        fd = is_path_due(link, i, now_ns) ? connect_spare(link, link->paths[i]) : -1;
        if (fd >= 0)
            link->at = i;
    }
    return fd;
}

static bool offer(struct occ_link *link, const struct occ_ring_producer *ring, const struct occ_fd *memfd,
                  uint64_t now_ns)
{
    int ring_fd = occ_fd_get(memfd);
    int fd = ring_fd >= 0 ? connect_first(link, now_ns) : -1;
    if (fd < 0)
        return false;
    const struct occ_hello hello = occ_hello_of(ring);
    if (!occ_hello_send(fd, &hello, ring_fd)) {
        link->is_busy = true; /* the daemon closed the connection at once: the user's allowance is spent */
        occ_fd_close(&link->spare);
        return false;
    }
    link->socket = link->spare;
    link->spare = OCC_FD_NONE;
    link->is_taken = link->is_refused = false;
    occ_guest_log("daemon: connected at %s", link->paths[link->at]);
    return true;
}

/* Reads the daemon's answer, or notices its end. */
static void look(struct occ_link *link, uint64_t now_ns)
{
    int fd = occ_fd_get(&link->socket);
    enum occ_hello_answer answer = OCC_HELLO_BROKEN;
    for (int i = 0; fd >= 0 && i < ANSWERS_MAX && (answer = occ_hello_receive(fd)) == OCC_HELLO_OWNED; i++)
        link->is_taken = true;
    if (answer == OCC_HELLO_WAITS || answer == OCC_HELLO_OWNED)
        return;
    occ_fd_close(&link->socket);
    link->is_refused = answer == OCC_HELLO_ENDED && !link->is_taken;
    link->is_taken = false;
    link->ended_ns = now_ns;
    if (now_ns - link->since_ns >= STAYED_NS) /* try the next daemon at once */
        link->tries = 0;
    occ_guest_log("daemon: disconnected");
}

bool occ_link_poll(struct occ_link *link, const struct occ_ring_producer *ring, const struct occ_fd *memfd,
                   uint64_t now_ns)
{
    if (link->socket.fd >= 0)
        look(link, now_ns);
    if (link->socket.fd >= 0)
        return true;
    if (now_ns < link->retry_ns)
        return false;
    link->retry_ns = now_ns + (link->tries++ < QUICK_TRIES ? QUICK_NS : SLOW_NS);
    occ_ring_reset_requests(ring);
    if (!offer(link, ring, memfd, now_ns))
        return false;
    link->since_ns = now_ns;
    return true;
}

/* true if another try may succeed: the ring's descriptor is still open, and a daemon is busy or being
 * restarted. */
static bool is_daemon_expected(const struct occ_link *link, const struct occ_fd *memfd, uint64_t now_ns)
{
    return occ_fd_get(memfd) >= 0 &&
           (link->is_busy || (link->ended_ns && now_ns - link->ended_ns < OCC_LINK_RESTART_NS));
}

/* Waits for the daemon's answer or end. The limit covers a program that closed the descriptor. */
static void await_answer(const struct occ_link *link)
{
    struct pollfd answer = {.fd = occ_fd_get(&link->socket), .events = POLLIN};
    (void)poll(&answer, 1, LOOK_MS);
}

bool occ_link_finish(struct occ_link *link, const struct occ_ring_producer *ring, const struct occ_fd *memfd,
                     uint64_t limit_ns)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    uint64_t now_ns = occ_clock_ns(CLOCK_MONOTONIC);
    link->is_refused = false; /* from long ago: the last try may succeed */
    do {
        if (link->socket.fd >= 0)
            look(link, now_ns);
        link->retry_ns = 0;
        if (link->is_taken || link->is_refused)
            break;
        if (occ_link_poll(link, ring, memfd, now_ns))
            await_answer(link);
        else if (is_daemon_expected(link, memfd, now_ns))
            (void)nanosleep(&nap, NULL);
        else
            break;
    } while ((now_ns = occ_clock_ns(CLOCK_MONOTONIC)) < limit_ns);
    return link->is_taken;
}

void occ_link_close(struct occ_link *link)
{
    occ_fd_close(&link->socket);
    occ_fd_close(&link->spare);
}
