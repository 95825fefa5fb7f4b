/* The connection of commands that talk to a daemon. One thread. */
#pragma once

#include "options.h"

#define OPTION_SOCKET(type)                                                                                  \
    CLI_OPTION(0, "socket", CLI_TEXT, type, socket, "PATH",                                                  \
               "the daemon that listens there (default: the user's own, else the system's service)")

/* The socket that `occtrace` gave to a process ($OCCTRACE_SOCKET there): of the private daemon that it
 * reports to, or of another. malloc'ed; NULL: none, or the process is another user's. */
char *socket_of_process(int32_t pid);

/* `socket`: where it listens; NULL: the user's own daemon, else the system's service. Where none was named,
 * the message has how to start one. */
int connect_daemon(const char *socket, int *ret_fd, struct occ_error *err);
