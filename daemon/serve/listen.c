/* See listen.h. */
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/control.h"
#include "support/paths.h"

#define LOCK_FILE      "occtraced.lock"
#define LOCK_TRIES     100
#define LOCK_PAUSE_NS  20000000
#define ACCEPT_RETRIES 64 /* maximum number of refused connections per call */

void occ_listen_directory(const char *path, char *directory, size_t size)
{
    const char *slash = strrchr(path, '/');
    int n = slash == path ? 1 : slash ? (int)(slash - path) : 0;
    (void)snprintf(directory, size, "%.*s", n ? n : 1, n ? path : ".");
}

/* Creates a missing directory with the access that clients need to reach the socket. */
static int make_directory(const char *path, const char *directory, uint32_t mode, struct occ_error *err)
{
    struct stat status;
    if (stat(directory, &status) == 0)
        return 0;
    int code = occ_path_make_parents(path, err);
    if (code != 0)
        return code;
    mode_t access = 0700;
    access |= mode & 0060 ? 0050 : 0;
    access |= mode & 0006 ? 0005 : 0;
    if (access != 0700 && chmod(directory, access) != 0)
        return occ_fail_errno(err, errno, "cannot set the mode of %s", directory);
    return 0;
}

static int check_directory(int fd, const char *directory, struct occ_error *err)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return occ_fail_errno(err, errno, "cannot look at %s", directory);
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return occ_fail(err, OCC_E_DENIED, "%s belongs to another user", directory);
    if ((status.st_mode & 0022) && !(status.st_mode & S_ISVTX))
        return occ_fail(err, OCC_E_DENIED, "others may write to %s", directory);
    return 0;
}

/* Opens the file that starting daemons lock: the directory itself if no other user can open it, otherwise a
 * file in it with mode 0600. Returns a descriptor, or an error. */
static int open_lock(int fd, const char *directory, struct occ_error *err)
{
    struct stat status;
    if (fstat(fd, &status) == 0 && (status.st_mode & 0077) == 0) {
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        return copy >= 0 ? copy : occ_fail_errno(err, errno, "cannot lock %s", directory);
    }
    int lock = openat(fd, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock >= 0 && fstat(lock, &status) == 0 && status.st_uid == geteuid() && S_ISREG(status.st_mode))
        return lock;
    int why = lock < 0 ? errno : EACCES;
    occ_close_fd(&lock);
    return occ_fail_errno(err, why, "cannot lock %s/" LOCK_FILE, directory);
}

/* Tries for LOCK_TRIES pauses: a starting daemon holds the lock only for a moment. */
static int take_lock(int fd, const char *directory, struct occ_error *err)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return occ_fail_errno(err, errno, "cannot lock %s", directory);
        const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
        (void)nanosleep(&pause, NULL);
    }
    return occ_fail(err, OCC_E_BUSY, "%s is locked by another process", directory);
}

/* The locks of a start, held until their descriptors are closed. */
struct locks {
    int own, socket; /* -1: none */
};

static bool is_same_file(int a, int b)
{
    struct stat of_a, of_b;
    return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

/* `held`: a lock held already, perhaps of the same directory; -1: none. */
static int lock_in(int fd, const char *directory, int held, int *ret_lock, struct occ_error *err)
{
    int lock = open_lock(fd, directory, err);
    if (lock < 0)
        return lock;
    *ret_lock = lock;
    return is_same_file(lock, held) ? 0 : take_lock(lock, directory, err);
}

/* A daemon holds a lock for a moment, so a process that keeps the lock of the socket's directory is no
 * daemon. Without room for the file of the own lock, the lock of the socket's directory is required. */
static int take_locks(int fd, const char *directory, const char *own_directory, struct locks *locks,
                      struct occ_error *err)
{
    int code = OCC_E_FULL;
    if (own_directory) {
        _cleanup_(occ_closep) int own = open(own_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        code = own < 0 ? occ_fail_errno(err, errno, "cannot open the directory %s", own_directory)
                       : lock_in(own, own_directory, -1, &locks->own, err);
    }
    if (code != 0 && code != OCC_E_FULL)
        return code;
    int other = lock_in(fd, directory, locks->own, &locks->socket, code == 0 ? NULL : err);
    return code == 0 ? 0 : other;
}

/* Removes a socket without a listener. */
static int remove_stale(const char *path, struct occ_error *err)
{
    struct stat status;
    int fd = -1;
    if (lstat(path, &status) != 0)
        return errno == ENOENT ? 0 : occ_fail_errno(err, errno, "cannot look at %s", path);
    if (!S_ISSOCK(status.st_mode))
        return occ_fail(err, OCC_E_BUSY, "%s exists and is not a socket", path);
    int code = occ_control_connect(path, &fd, err);
    if (code == 0) {
        (void)close(fd);
        return occ_fail(err, OCC_E_BUSY, "another daemon listens at %s", path);
    }
    if (code != OCC_E_NOT_FOUND)
        return code;
    if (unlink(path) != 0 && errno != ENOENT)
        return occ_fail_errno(err, errno, "cannot remove %s", path);
    return 0;
}

static int bind_and_listen(struct occ_listener *listener, uint32_t mode, struct occ_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    memcpy(address.sun_path, listener->path, sizeof address.sun_path);
    mode_t old = umask(0177);
    int failed = bind(listener->fd, (const struct sockaddr *)&address, sizeof address);
    int why = errno;
    (void)umask(old);
    if (failed)
        return occ_fail_errno(err, why, "cannot bind to %s", listener->path);
    if (stat(listener->path, &status) != 0 || chmod(listener->path, (mode_t)mode) != 0)
        return occ_fail_errno(err, errno, "cannot set the mode of %s", listener->path);
    listener->dev = status.st_dev;
    listener->ino = status.st_ino;
    if (listen(listener->fd, OCC_LISTEN_BACKLOG) != 0)
        return occ_fail_errno(err, errno, "cannot listen at %s", listener->path);
    return 0;
}

int occ_listen_open(const char *path, uint32_t mode, const char *lock_directory,
                    struct occ_listener *ret_listener, struct occ_error *err)
{
    struct occ_listener listener = {.fd = -1, .spare = -1};
    if (strlen(path) >= sizeof listener.path)
        return occ_fail(err, OCC_E_INVALID, "the socket's path is longer than %zu bytes: %s",
                        sizeof listener.path - 1, path);
    (void)snprintf(listener.path, sizeof listener.path, "%s", path);
    char directory[OCC_LISTEN_PATH_BYTES];
    occ_listen_directory(path, directory, sizeof directory);
    int code = make_directory(path, directory, mode, err);
    if (code != 0)
        return code;
    _cleanup_(occ_closep) int parent = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct locks locks = {-1, -1};
    if (parent < 0)
        return occ_fail_errno(err, errno, "cannot open the directory %s", directory);
    listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    listener.spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (listener.fd < 0)
        code = occ_fail_errno(err, errno, "cannot create a socket");
    if (code == 0)
        code = check_directory(parent, directory, err);
    if (code == 0)
        code = take_locks(parent, directory, lock_directory, &locks, err);
    if (code == 0)
        code = remove_stale(path, err);
    if (code == 0)
        code = bind_and_listen(&listener, mode, err);
    occ_close_fd(&locks.own);
    occ_close_fd(&locks.socket);
    if (code != 0) {
        occ_listen_close(&listener);
        return code;
    }
    *ret_listener = listener;
    return 0;
}

void occ_listen_close(struct occ_listener *listener)
{
    struct stat status;
    if (listener->ino && lstat(listener->path, &status) == 0 && status.st_dev == listener->dev &&
        status.st_ino == listener->ino)
        (void)unlink(listener->path);
    occ_close_fd(&listener->fd);
    occ_close_fd(&listener->spare);
    *listener = (struct occ_listener){.fd = -1, .spare = -1};
}

/* Closes a waiting connection when no descriptor is left, by releasing the spare one; otherwise epoll would
 * report the connection for ever. */
static void refuse_with_spare(struct occ_listener *listener)
{
    (void)close(listener->spare);
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
    occ_close_fd(&fd);
    listener->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool occ_listen_peer(int connection, struct occ_peer *ret_peer)
{
    struct ucred credentials;
    socklen_t size = sizeof credentials;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0 ||
        size != sizeof credentials)
        return false;
    *ret_peer = (struct occ_peer){.pid = credentials.pid, .uid = credentials.uid};
    return true;
}

int occ_listen_accept(struct occ_listener *listener, struct occ_peer *ret_peer, uint64_t *refused)
{
    for (int i = 0; i < ACCEPT_RETRIES; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct occ_peer peer = {0};
        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
            refuse_with_spare(listener);
            ++*refused;
            continue;
        }
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0)
            return -1;
        if (occ_listen_peer(fd, &peer) && (peer.uid == geteuid() || geteuid() == 0)) {
            *ret_peer = peer;
            return fd;
        }
        (void)close(fd);
        ++*refused;
    }
    return -1;
}
