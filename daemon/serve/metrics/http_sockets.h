/* Sockets of the HTTP server (http.h): its own Unix socket, and sockets passed by the service manager. One
 * thread. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "support/error.h"

#define OCC_HTTP_PASSED_MAX 3

/* The daemon's own Unix socket. Zeroed: none. */
struct occ_http_socket {
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    dev_t dev; /* identifies the socket; another daemon that replaced it has another inode */
    ino_t ino;
};

/* Replaces a socket without a listener. Root may connect, and the group "occtrace" if it exists. */
int occ_http_listen(const char *path, struct occ_http_socket *ret_socket, int *ret_fd, struct occ_error *err);
/* Removes the path unless another daemon has replaced it. */
void occ_http_unlisten(const struct occ_http_socket *socket);

/* Sockets passed by the service manager to this process (sd_listen_fds(3)); removes the variables from the
 * environment so that child processes do not use them. Returns the number of sockets. */
int occ_http_take_passed(int fds[OCC_HTTP_PASSED_MAX]);
/* Prepares a passed socket; *ret_is_unix: its family is AF_UNIX. */
int occ_http_adopt(int fd, bool *ret_is_unix, struct occ_error *err);
