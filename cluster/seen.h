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

/* A file as stat(2) shows it; zeros: none. */
struct occ_seen_file {
    int64_t device, inode;
    int64_t bytes, changed_ns;
};

struct occ_seen_history {
    struct occ_seen_file file, log;
    int64_t open_minute; /* the oldest that the history may still add to */
};

/* X(column, member of struct occ_seen_history) of the state's table. */
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
    char *path;                   /* of the file, which need not be there */
    struct occ_seen_history sent; /* as it was when it was sent whole, */
    bool is_sent;                 /* if it ever was */
    bool is_stored;               /* `sent` is in the state */
    bool is_unchanged;            /* since, by its watch */
    bool is_found;                /* its directory is there, */
    bool is_owners;               /* and the daemon's: a history that may not be read is missed */
    int watch;                    /* of its directory; 0: none */
};

struct occ_seen {
    struct occ_seen_entry *entries; /* by path */
    size_t n, allocated;
    struct occ_seen_file directory; /* above the entries', when it was listed; zeros: list it again */
    struct occ_seen_file tree;      /* of which only device and inode count: the watches are of this one */
    struct occ_map watches;         /* to entries; may have old ones */
    int events;                     /* descriptor; -1: nothing is watched */
    int mounts;                     /* the list of mounts, which can be polled for changes; -1: likewise */
    bool may_watch;                 /* the file system tells of every change */
    bool is_hidden;                 /* we may not list the directory */
    bool has_unstored;              /* entries to be stored, or deleted there */
};

/* How a pass treats a history. */
enum occ_seen_state {
    OCC_SEEN_NONE,    /* there is none */
    OCC_SEEN_SENT,    /* whole, and unchanged since */
    OCC_SEEN_CHANGED, /* read it */
    OCC_SEEN_RECENT   /* so too; it was written so lately that a further write might not show */
};

void occ_seen_open(struct occ_seen *ret_seen);
void occ_seen_close(struct occ_seen *seen);

/* Adds an entry of the state; they come in the order of paths, others are left out. */
int occ_seen_load(struct occ_seen *seen, const char *path, const struct occ_seen_history *sent,
                  struct occ_error *err);

/* Before a pass: lists the histories if the directory has changed, and takes the watches' events. `path` is
 * the daemon's history for all users; owners' histories lie in directories beside it. A history in a
 * directory that we may not read is an entry too. */
int occ_seen_update(struct occ_seen *seen, const char *path, int64_t now_ns, struct occ_error *err);

/* How the history is now. OCC_SEEN_SENT: with the open minute of then. */
enum occ_seen_state occ_seen_look(struct occ_seen *seen, size_t index, int64_t now_ns,
                                  struct occ_seen_history *ret_now);
/* It was sent whole as it was at occ_seen_look(). */
void occ_seen_put(struct occ_seen *seen, size_t index, const struct occ_seen_history *sent);

/* Drops entries of directories that are gone, and takes all others for stored. */
void occ_seen_stored(struct occ_seen *seen);
