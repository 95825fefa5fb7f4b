/* Sockets of the HTTP server (http.h): its own Unix socket, and what the service manager passes. One thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "support/error.h"

#define OCC_HTTP_PASSED_MAX 3

/* A Unix socket of ours. Zeroed: none. */
struct occ_http_socket {
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    dev_t dev; /* of the path when we made it, which is another file when another daemon replaced it */
    ino_t ino;
};

/* A socket that nobody answers at is replaced. Root may connect, and the group "occtrace", where there is
 * one. */
int occ_http_listen(const char *path, struct occ_http_socket *ret_socket, int *ret_fd, struct occ_error *err);
/* Removes the path, unless another daemon has replaced it. */
void occ_http_unlisten(const struct occ_http_socket *socket);

/* Sockets that the service manager passes to this process, and to no other (sd_listen_fds(3)); tells programs
 * that this one starts of none. Returns their number. */
int occ_http_take_passed(int fds[OCC_HTTP_PASSED_MAX]);
/* Makes a passed socket ready; *ret_is_unix: of AF_UNIX. */
int occ_http_adopt(int fd, bool *ret_is_unix, struct occ_error *err);
