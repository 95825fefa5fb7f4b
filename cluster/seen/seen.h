/*
 * The node's histories, and a mark at each history that was sent whole and is unchanged since: the shipper
 * neither opens nor reads a marked history. A history is unchanged while file and write-ahead log keep
 * device, inode, size and time of change. The kernel watches the directories of unchanged histories
 * (inotify), so that the cost of a pass depends on the number of changed histories, not on the number of
 * histories. Without a watch (a network's file system, the kernel's limit, a file with another name
 * elsewhere) each pass looks at both files, and so does the pass after the tree was replaced or the machine's
 * mounts have changed: a watch stays with the directory that it was set on. The state keeps the marks for the
 * next start. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/error.h"
#include "support/map.h"

/* A file's stat(2) data; zeros: no file. */
struct occ_seen_file {
    int64_t device, inode;
    int64_t bytes, changed_ns;
};

struct occ_seen_history {
    struct occ_seen_file file, log;
    int64_t open_minute; /* the oldest minute that the history may still change */
};

/* X(column, member of struct occ_seen_history): columns of the state's table. */
#define OCC_SEEN_COLUMNS(X)                                                                                  \
    X(device, file.device)                                                                                   \
    X(inode, file.inode)                                                                                     \
    X(bytes, file.bytes)                                                                                     \
    X(changed_ns, file.changed_ns)                                                                           \
    X(log_device, log.device)                                                                                \
    X(log_inode, log.inode)                                                                                  \
    X(log_bytes, log.bytes)                                                                                  \
    X(log_changed_ns, log.changed_ns)                                                                        \
    X(open_minute, open_minute)

struct occ_seen_entry {
    char *path;                   /* path of the file, which may not exist */
    struct occ_seen_history sent; /* file and log at the time when the history was sent whole */
    bool is_sent;                 /* the history was sent whole at least once */
    bool is_stored;               /* `sent` is stored in the state */
    bool is_unchanged;            /* its watch has reported no change since `sent` was compared last */
    bool is_found;                /* its directory exists */
    /* the daemon's history or an owner's: it counts as missing if it cannot be read */
    bool is_owners;
    int watch; /* number of the watch of its directory; 0: none */
};

struct occ_seen {
    struct occ_seen_entry *entries; /* sorted by path */
    size_t n, allocated;
    struct occ_seen_file directory; /* parent directory when it was listed; zeros: list it again */
    /* directory that the watches belong to (only device and inode are compared) */
    struct occ_seen_file tree;
    struct occ_map watches; /* watch -> entry; may contain old watches */
    int events;             /* inotify descriptor; -1: no watches */
    int mounts;             /* /proc/self/mountinfo, polled for changes; -1: no watches */
    bool may_watch;         /* the file system reports every change */
    bool is_hidden;         /* the shipper may not list the directory */
    bool is_missing;        /* there is no directory */
    bool has_unstored;      /* the state lacks changes of the entries */
};

/* The state of a history, which decides its treatment by a pass. */
enum occ_seen_state {
    OCC_SEEN_NONE,    /* no such history */
    OCC_SEEN_SENT,    /* sent whole and unchanged since */
    OCC_SEEN_CHANGED, /* must be read */
    /* must be read; written so recently that another write might not change the file's time */
    OCC_SEEN_RECENT
};

void occ_seen_open(struct occ_seen *ret_seen);
void occ_seen_close(struct occ_seen *seen);

/* Adds an entry of the state. Entries out of path order are ignored. */
int occ_seen_load(struct occ_seen *seen, const char *path, const struct occ_seen_history *sent,
                  struct occ_error *err);

/* Call it before a pass: handles events of the watches and lists the histories again if the directory has
 * changed. `path` is the daemon's history of all users; owners' histories lie in directories next to it. A
 * history in an unreadable directory is an entry too. */
int occ_seen_update(struct occ_seen *seen, const char *path, int64_t now_ns, struct occ_error *err);

/* 0, or an error with the remedy: the last update could not list the directory of `path` (OCC_E_DENIED,
 * OCC_E_NOT_FOUND), or `unreadable` histories of the pass could not be read (OCC_E_INVALID). */
int occ_seen_check(const struct occ_seen *seen, const char *path, int64_t unreadable, struct occ_error *err);

/* Compares the history with the state sent last; fills *ret_now with the current state, for OCC_SEEN_SENT
 * with the state sent. */
enum occ_seen_state occ_seen_look(struct occ_seen *seen, size_t index, int64_t now_ns,
                                  struct occ_seen_history *ret_now);
/* The history was sent whole in the state that occ_seen_look() returned. */
void occ_seen_put(struct occ_seen *seen, size_t index, const struct occ_seen_history *sent);

/* Drops entries whose directories are gone and marks the others as stored. */
void occ_seen_stored(struct occ_seen *seen);
