/*
 * A daemon for one run: started by occtrace, in a session of its own (the terminal's signals do not reach
 * it), ends by itself when occtrace has closed its end of a socket pair and the last program has ended. Its
 * socket lies in a fresh directory that only the user may enter. Its stderr is kept in memory and shown when
 * it matters.
 *
 * One thread.
 */
#pragma once

#include <sys/types.h>

#include "child.h"
#include "support/error.h"

/* How often a daemon that died is started again. */
#define PRIVATE_DAEMON_RESTARTS 5

struct private_daemon {
    pid_t pid;    /* 0: none runs */
    int alive_fd; /* our end of the pair; -1 */
    int log_fd;   /* memory file with its stderr; -1 */
    int restarts;
    char *directory; /* of the socket */
    char *socket, *db, *program;
    const char *counters; /* --counters; NULL: auto. Outlives it */
};

#define PRIVATE_DAEMON_INIT                                                                                  \
    {                                                                                                        \
        .alive_fd = -1, .log_fd = -1                                                                         \
    }

/* Starts it and waits (5 s at most) until it listens. On failure everything is undone; the message ends with
 * its last line on stderr. `db` is an absolute path. */
int private_daemon_start(struct private_daemon *daemon, const struct child_signals *signals,
                         const char *program, const char *db, struct occ_error *err);

/* It died: starts it again at the same socket, without waiting. Gives up after PRIVATE_DAEMON_RESTARTS. */
void private_daemon_restart(struct private_daemon *daemon, const struct child_signals *signals);

/* Closes the pair and waits at most `patience_ms` for its end, then removes the directory. False: it still
 * runs (programs of the run do); the directory is then left to it. */
bool private_daemon_release(struct private_daemon *daemon, int patience_ms);

/* Writes its stderr to ours. */
void private_daemon_show_log(const struct private_daemon *daemon);

void private_daemon_destroy(struct private_daemon *daemon);
