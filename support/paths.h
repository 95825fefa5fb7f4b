/*
 * Paths of the history, of the sockets and of the installation. Strings are malloc'ed; the caller frees them.
 * The environment is read with secure_getenv. Any thread, but the default history (getpwuid) from one at a
 * time.
 */
#pragma once

#include <stddef.h>

#include "error.h"

/* $OCCTRACE_DB, which must be an absolute path in an existing directory; else
 * $XDG_STATE_HOME/occtrace/history.db, else .local/state/occtrace/history.db in $HOME, else in the home
 * directory of the user database. Creates nothing. */
int occ_path_default_history(char **ret_path, struct occ_error *err);

/* The same for a daemon. For root without $HOME and $XDG_STATE_HOME, as systemd starts the service:
 * /var/lib/occtrace/history.db. */
int occ_path_daemon_history(char **ret_path, struct occ_error *err);

/* The default history for queries: $OCCTRACE_DB, else the last written of the user's default history, the
 * caller's history in the system service's directory (/var/lib/occtrace/uUID/history.db), and the history
 * that the running daemon names as the caller's. If there is none: the user's default history. */
int occ_path_own_history(char **ret_path, struct occ_error *err);

/* Directory of the system service's histories. */
#define OCC_PATH_SERVICE_DIRECTORY "/var/lib/occtrace"

/* Socket of the system service. */
#define OCC_PATH_SYSTEM_SOCKET "/run/occtrace/occtraced.sock"
/* Containers mount the socket's directory, but none mounts this one. */
#define OCC_PATH_SYSTEM_METRICS "/run/occtrace-metrics/metrics.sock"

/* Socket of a daemon: $OCCTRACE_SOCKET, else $XDG_RUNTIME_DIR/occtrace/occtraced.sock, else
 * /run/occtrace/occtraced.sock (root) or /tmp/occtrace-UID/occtraced.sock. Creates nothing. */
int occ_path_default_socket(char **ret_path, struct occ_error *err);

/* Connects to the socket of a default daemon: the one above or the service's. Any user can make the directory
 * in /tmp, so OCC_E_DENIED as from occ_control_connect_trusted(), unless $OCCTRACE_SOCKET names the path. */
int occ_path_connect(const char *socket, int *ret_fd, struct occ_error *err);

/* Connects to the user's own daemon (above), else to the service. An error is the own daemon's. */
int occ_path_connect_default(int *ret_fd, struct occ_error *err);

/* Creates the missing parent directories of `file`, mode 0700. */
int occ_path_make_parents(const char *file, struct occ_error *err);
/* The same with mode 0711, so that all users reach their own files below. */
int occ_path_make_passable_parents(const char *file, struct occ_error *err);

/* OCC_E_NOT_FOUND: the directory of `file` does not exist. For paths that people type: a mistyped path must
 * not create directories. */
int occ_path_check_parent(const char *file, struct occ_error *err);

/* The directory of the running executable, without a trailing slash. */
int occ_path_of_self(char **ret_directory, struct occ_error *err);

/* Directory of the service's settings: PREFIX/etc/occtrace for programs in PREFIX/bin; /etc/occtrace for
 * /usr. */
int occ_path_settings(char **ret_directory, struct occ_error *err);

/* File of a secret: the service's credential (systemd: LoadCredential=) if there is one, else the file of a
 * setting; *ret_path NULL: neither. The credential comes first, since a unit's user may not be able to read a
 * file that root's calls read with the same settings. */
int occ_path_secret(const char *setting, const char *credential, char **ret_path, struct occ_error *err);

/* Reads up to `max` bytes of a regular file and appends a NUL. One byte more than the caller's limit shows
 * that the file is too large. */
int occ_path_read(const char *path, size_t max, char **ret_text, size_t *ret_bytes, struct occ_error *err);
