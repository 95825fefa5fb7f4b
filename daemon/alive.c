/* See alive.h. */
#include "alive.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "support/cleanup.h"

#define WAIT_S 8 /* also limits connect() */

static int connect_to(int fd, const char *path, struct occ_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval wait = {.tv_sec = WAIT_S};
    if (strlen(path) >= sizeof address.sun_path)
        return occ_fail(err, OCC_E_INVALID, "the socket's path is too long: %s", path);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) != 0)
        return occ_fail_errno(err, errno, "cannot make a socket");
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return 0;
    return errno == ENOENT || errno == ECONNREFUSED
               ? occ_fail(err, OCC_E_NOT_FOUND, "no daemon serves metrics at %s", path)
               : occ_fail_errno(err, errno, "cannot connect to %s", path);
}

int occ_alive_ask(const char *socket_path, struct occ_error *err)
{
    static const char request[] = "GET /livez HTTP/1.0\r\n\r\n", good[] = "HTTP/1.", status[] = " 200 ";
    char answer[16] = "";
    size_t n = 0;
    _cleanup_(occ_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int code = connect_to(fd, socket_path, err);
    if (code != 0)
        return code;
    if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) != sizeof request - 1)
        return occ_fail_errno(err, errno, "cannot ask at %s", socket_path);
    for (ssize_t got = 1; got > 0 && n<sizeof answer - 1; n += got> 0 ? (size_t)got : 0)
        if ((got = recv(fd, answer + n, sizeof answer - 1 - n, 0)) < 0)
            return errno == EAGAIN
                       ? occ_fail(err, OCC_E_BUSY, "no answer at %s within %d s", socket_path, WAIT_S)
                       : occ_fail_errno(err, errno, "no answer at %s", socket_path);
    return strncmp(answer, good, sizeof good - 1) == 0 && strstr(answer, status)
               ? 0
               : occ_fail(err, OCC_E_IO, "the daemon at %s gives another answer than 200", socket_path);
}
