/*
 * Paths of the history, of the sockets and of the installation. Strings are malloc'ed; the caller frees them.
 * The environment is read with secure_getenv. Any thread, but the default history (getpwuid) from one at a
 * time.
 */
#pragma once

#include <stddef.h>

#include "error.h"

/* $XDG_STATE_HOME/occtrace/history.db, else .local/state/occtrace/history.db in $HOME, else in the home
 * directory of the user database. Creates nothing. */
int occ_path_default_history(char **ret_path, struct occ_error *err);

/* The same, but of root without $HOME and $XDG_STATE_HOME, as systemd starts the service:
 * /var/lib/occtrace/history.db. */
int occ_path_daemon_history(char **ret_path, struct occ_error *err);

/* The history to ask where none is named: the default one, that of the caller in the system service's
 * directory (/var/lib/occtrace/uUID/history.db), or the one that the running daemon names as the caller's,
 * whichever was written last; the default one if none is there. */
int occ_path_own_history(char **ret_path, struct occ_error *err);

/* Where the system service keeps histories. */
#define OCC_PATH_SERVICE_DIRECTORY "/var/lib/occtrace"

/* Socket of the system service. */
#define OCC_PATH_SYSTEM_SOCKET  "/run/occtrace/occtraced.sock"
#define OCC_PATH_SYSTEM_METRICS "/run/occtrace/metrics.sock"

/* Socket of a daemon: $OCCTRACE_SOCKET, else $XDG_RUNTIME_DIR/occtrace/occtraced.sock, else
 * /run/occtrace/occtraced.sock (root) or /tmp/occtrace-UID/occtraced.sock. Creates nothing. */
int occ_path_default_socket(char **ret_path, struct occ_error *err);

/* Creates the missing parent directories of `file`, mode 0700. */
int occ_path_make_parents(const char *file, struct occ_error *err);
/* The same with mode 0711, so that all users reach what is theirs below them. */
int occ_path_make_passable_parents(const char *file, struct occ_error *err);

/* OCC_E_NOT_FOUND: the directory of `file` is not there. For paths that people type: a mistyped one makes no
 * directories. */
int occ_path_check_parent(const char *file, struct occ_error *err);

/* The directory of the running executable, without a trailing slash. */
int occ_path_of_self(char **ret_directory, struct occ_error *err);

/* Where the service's settings are: PREFIX/etc/occtrace of PREFIX/bin's programs; /etc/occtrace for /usr. */
int occ_path_settings(char **ret_directory, struct occ_error *err);

/* The first `max` bytes of a regular file, and a NUL behind them: a larger file shows by one byte more than
 * it may have. */
int occ_path_read(const char *path, size_t max, char **ret_text, size_t *ret_bytes, struct occ_error *err);
