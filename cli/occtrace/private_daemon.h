/*
 * The daemon of one run, started by occtrace in a separate session (so the terminal's signals do not reach
 * it). It ends by itself when occtrace has closed its end of a socket pair and the last program has ended.
 * The socket is in a new directory that only the user may enter. The daemon's stderr is kept in memory, and
 * shown after a failure.
 *
 * One thread.
 */
#pragma once

#include <sys/types.h>

#include "child.h"
#include "support/error.h"

/* Maximum number of restarts of a daemon that ended unexpectedly. */
#define PRIVATE_DAEMON_RESTARTS 5

struct private_daemon {
    pid_t pid;    /* 0: not running */
    int alive_fd; /* occtrace's end of the socket pair; -1: closed */
    int log_fd;   /* memory file with the daemon's stderr; -1: none */
    int restarts;
    char *directory; /* of the socket */
    char *socket, *db, *program;
    const char *counters; /* --counters; NULL: auto. Must outlive the daemon */
};

#define PRIVATE_DAEMON_INIT                                                                                  \
    {                                                                                                        \
        .alive_fd = -1, .log_fd = -1                                                                         \
    }

/* Starts the daemon. A failure leaves no process and no directory. `db` is an absolute path. */
int private_daemon_start(struct private_daemon *daemon, const struct child_signals *signals,
                         const char *program, const char *db, struct occ_error *err);
/* Waits (at most 5 s) until the daemon listens. A failure leaves no process and no directory; its message
 * ends with the daemon's last line on stderr. */
int private_daemon_await(struct private_daemon *daemon, struct occ_error *err);

/* Starts a daemon that ended unexpectedly again, at the same socket and without waiting. Gives up after
 * PRIVATE_DAEMON_RESTARTS. */
void private_daemon_restart(struct private_daemon *daemon, const struct child_signals *signals);

/* Closes the pair, waits at most `patience_ms` for the daemon's end, then removes the directory. Returns
 * false if the daemon still runs for programs of the run; then it keeps the directory. */
bool private_daemon_release(struct private_daemon *daemon, int patience_ms);

/* Copies the daemon's stderr to occtrace's stderr. */
void private_daemon_show_log(const struct private_daemon *daemon);

void private_daemon_destroy(struct private_daemon *daemon);
