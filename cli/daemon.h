/* Connects commands to a daemon. One thread. */
#pragma once

#include "options.h"

#define OPTION_SOCKET(type)                                                                                  \
    CLI_OPTION(0, "socket", CLI_TEXT, type, socket, "PATH",                                                  \
               "the daemon that listens there (default: the user's own, else the system's service)")

/* Returns the socket that `occtrace` gave to a process ($OCCTRACE_SOCKET there): the socket of its private
 * daemon or of another daemon. malloc'ed; NULL: none, or another user's process. */
char *socket_of_process(int32_t pid);

/* Connects to a daemon. `socket`: its path; NULL: the user's own daemon, else the system's service. Without a
 * path, a daemon of another user is refused (paths.h), and the message for a missing daemon explains how to
 * start one. */
int connect_daemon(const char *socket, int *ret_fd, struct occ_error *err);
