/* See http_sockets.h. */
#include "http_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/acl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/cleanup.h"
#include "support/groups.h"
#include "support/paths.h"
#include "support/text.h"

#define GROUP        "occtrace"
#define FIRST_PASSED 3 /* as defined by sd_listen_fds(3) */

/* Admits the group with an access control list: changing the file's group needs a capability. */
static void admit_group(const char *path)
{
    char text[64];
    uint32_t gid;
    if (!occ_group_is_local(GROUP, &gid))
        return;
    (void)snprintf(text, sizeof text, "u::rw,g::---,g:%u:rw,m::rw,o::---", gid);
    acl_t acl = acl_from_text(text);
    if (!acl)
        return;
    (void)acl_set_file(path, ACL_TYPE_ACCESS, acl); /* on failure the mode stays 0600 */
    (void)acl_free(acl);
}

int occ_http_listen(const char *path, struct occ_http_socket *ret_socket, int *ret_fd, struct occ_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct sockaddr *name = (const struct sockaddr *)&address;
    struct stat status;
    if (strlen(path) >= sizeof address.sun_path)
        return occ_fail(err, OCC_E_INVALID, "the socket's path is too long: %s", path);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    _cleanup_(occ_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return occ_fail_errno(err, errno, "cannot make a socket");
    if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode)) {
        _cleanup_(occ_closep) int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(other, name, sizeof address) == 0 || errno == EAGAIN)
            return occ_fail(err, OCC_E_BUSY, "somebody listens at %s", path);
        (void)unlink(path);
    }
    int status_of_parents = occ_path_make_passable_parents(path, err);
    if (status_of_parents != 0)
        return status_of_parents;
    mode_t old = umask(0177);
    int failed = bind(fd, name, sizeof address);
    int why = errno;
    (void)umask(old);
    if (failed || listen(fd, SOMAXCONN) != 0)
        return occ_fail_errno(err, failed ? why : errno, "cannot listen at %s", path);
    if (lstat(path, &status) != 0)
        return occ_fail_errno(err, errno, "cannot look at %s", path);
    *ret_socket = (struct occ_http_socket){.dev = status.st_dev, .ino = status.st_ino};
    (void)snprintf(ret_socket->path, sizeof ret_socket->path, "%s", path);
    admit_group(path);
    *ret_fd = fd;
    fd = -1;
    return 0;
}

void occ_http_unlisten(const struct occ_http_socket *own)
{
    struct stat status;
    if (own->ino && lstat(own->path, &status) == 0 && status.st_dev == own->dev && status.st_ino == own->ino)
        (void)unlink(own->path);
}

int occ_http_take_passed(int fds[OCC_HTTP_PASSED_MAX])
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    uint64_t whose = 0, n = 0;
    if (!pid || !count || occ_parse_u64(pid, 1, INT32_MAX, &whose, NULL) != 0 ||
        whose != (uint64_t)getpid() || occ_parse_u64(count, 1, OCC_HTTP_PASSED_MAX, &n, NULL) != 0)
        return 0;
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    for (int i = 0; i < (int)n; i++)
        fds[i] = FIRST_PASSED + i;
    return (int)n;
}

int occ_http_adopt(int fd, bool *ret_is_unix, struct occ_error *err)
{
    int domain = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        return occ_fail_errno(err, errno, "descriptor %d of the service manager is not a socket", fd);
    *ret_is_unix = domain == AF_UNIX;
    return 0;
}
