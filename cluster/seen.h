/*
 * Histories that were sent whole: while a history's file and write-ahead log are as they were then, the
 * shipper neither opens nor reads the history. Kept in memory: a shipper that starts reads every history
 * once. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "support/map.h"

/* A file as stat(2) shows it; zeros: none. */
struct occ_seen_file {
    uint64_t device, inode;
    int64_t bytes, changed_ns;
};

struct occ_seen_history {
    struct occ_seen_file file, log;
    int64_t open_minute; /* the oldest that the history may still add to */
};

struct occ_seen {
    struct occ_map index; /* by a hash of the path */
    struct occ_seen_history *histories;
    size_t n, allocated;
};

/* How the history at `path` is now. false: there is none, or it was written so lately that a further write
 * might not show. */
bool occ_seen_look(const char *path, int64_t now_ns, struct occ_seen_history *ret_history);
/* Whether it was sent whole as it is now; then ret_history->open_minute is that of then. */
bool occ_seen_is_sent(const struct occ_seen *seen, const char *path, struct occ_seen_history *ret_history);
/* Remembers it; without memory it is read again. */
void occ_seen_put(struct occ_seen *seen, const char *path, const struct occ_seen_history *history);
/* Forgets all where most are of histories that are gone: a pass has found `n_found`. */
void occ_seen_trim(struct occ_seen *seen, size_t n_found);
void occ_seen_free(struct occ_seen *seen);
