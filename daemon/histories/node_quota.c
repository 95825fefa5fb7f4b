/* See node_quota.h. */
#include "node_quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "histories.h"
#include "daemon/owners/owner_directory.h"
#include "support/array.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/log.h"
#include "support/text.h"

#define CENSUS_NS     INT64_C(60000000000)
#define STEP_NS       INT64_C(20000000)
#define OWNERS_A_STEP 64
#define OWNERS_MAX    (1u << 20)

/* ---- the rule ---- */

static int compare_use(const void *a, const void *b)
{
    const struct occ_node_owner *first = a, *second = b;
    if (first->used_ns != second->used_ns)
        return first->used_ns < second->used_ns ? -1 : 1;
    return strcmp(first->owner.name, second->owner.name);
}

/* Reduces the targets of owners above `share`, in order, until `excess` is covered; returns the part not
 * covered. */
static uint64_t take(struct occ_node_owner *owners, size_t n, uint64_t share, uint64_t excess, bool of_spared)
{
    for (size_t i = 0; i < n && excess > 0; i++) {
        struct occ_node_owner *owner = &owners[i];
        if (owner->bytes <= share || owner->is_spared != of_spared)
            continue;
        uint64_t gives = owner->bytes - share < excess ? owner->bytes - share : excess;
        owner->target = owner->bytes - gives;
        excess -= gives;
    }
    return excess;
}

void occ_node_quota_share(struct occ_node_owner *owners, size_t n, uint64_t max_bytes)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        owners[i].target = OCC_NODE_KEEPS;
        total += owners[i].bytes;
    }
    if (n == 0 || total <= max_bytes)
        return;
    qsort(owners, n, sizeof *owners, compare_use);
    uint64_t left = take(owners, n, max_bytes / n, total - max_bytes, false);
    (void)take(owners, n, max_bytes / n, left, true);
}

/* ---- the census ---- */

static int64_t changed_ns(const struct stat *status)
{
    return status->st_mtim.tv_sec * INT64_C(1000000000) + status->st_mtim.tv_nsec;
}

static bool has_limit(const struct occ_histories *all)
{
    return all->options->split && all->options->max_total_bytes > 0;
}

static int64_t census_ns(const struct occ_histories *all)
{
    return all->options->census_ns ? all->options->census_ns : CENSUS_NS;
}

void occ_node_quota_plan(struct occ_histories *all, int64_t now_ns)
{
    struct occ_node_quota *q = &all->node;
    if (q->directory)
        (void)closedir(q->directory);
    q->directory = NULL;
    q->n = q->at = 0;
    q->is_known &= has_limit(all);
    q->next_ns = has_limit(all) ? now_ns : INT64_MAX;
}

void occ_node_quota_free(struct occ_node_quota *q)
{
    if (q->directory)
        (void)closedir(q->directory);
    free(q->owners);
    *q = (struct occ_node_quota){.next_ns = INT64_MAX};
}

/* Reads size and time of last use of the owner's history. false: it does not exist. */
static bool measure(const struct occ_histories *all, struct occ_node_owner *row)
{
    struct stat file, other;
    _cleanup_(occ_freep) char *path = NULL, *log = NULL, *used = NULL;
    if (occ_histories_path(all, &row->owner, &path, NULL) != 0 || lstat(path, &file) != 0 ||
        occ_format_text(&log, NULL, "%s-wal", path) != 0 ||
        occ_format_text(&used, NULL, "%.*s/" OCC_OWNER_USED_FILE, (int)(strrchr(path, '/') - path), path) !=
            0)
        return false;
    row->bytes = (uint64_t)file.st_size;
    row->bytes += lstat(log, &other) == 0 ? (uint64_t)other.st_size : 0;
    row->used_ns = changed_ns(lstat(used, &other) == 0 ? &other : &file);
    return true;
}

static void count_owner(struct occ_histories *all, const char *name)
{
    struct occ_node_quota *q = &all->node;
    struct occ_node_owner row = {.target = OCC_NODE_KEEPS};
    if (!occ_identity_parse_owner(name, &row.owner) ||
        !occ_grow((void **)&q->owners, &q->allocated, q->n, OWNERS_MAX, sizeof *q->owners) ||
        !measure(all, &row))
        return;
    row.is_spared = strcmp(q->stuck.name, name) == 0;
    q->owners[q->n++] = row;
}

static void begin_census(struct occ_histories *all)
{
    struct occ_node_quota *q = &all->node;
    const char *path = all->options->path;
    _cleanup_(occ_freep) char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
    q->n = q->at = 0;
    for (struct occ_history *h = all->first; h; h = h->next) {
        occ_history_note_use(h);
        occ_histories_limit(all, h, 0);
    }
    q->directory = parent ? opendir(parent) : NULL;
}

/* Counts the next OWNERS_A_STEP owners. false: the census is not finished. */
static bool count_some(struct occ_histories *all)
{
    struct occ_node_quota *q = &all->node;
    const struct dirent *entry = NULL;
    for (int i = 0; i < OWNERS_A_STEP && (entry = readdir(q->directory)); i++)
        count_owner(all, entry->d_name);
    if (entry)
        return false;
    (void)closedir(q->directory);
    q->directory = NULL;
    q->total_bytes = 0;
    for (size_t i = 0; i < q->n; i++)
        q->total_bytes += q->owners[i].bytes;
    q->is_known = true;
    occ_node_quota_share(q->owners, q->n, all->options->max_total_bytes);
    q->stuck.name[0] = '\0';
    return true;
}

/* ---- shrinking ---- */

/* Opens the history if necessary and sets its target as its quota. */
static bool begin_to_shrink(struct occ_histories *all, const struct occ_node_owner *row, int64_t now_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_history *h = NULL;
    uint64_t target = row->target > OCC_NODE_LEAST_BYTES ? row->target : OCC_NODE_LEAST_BYTES;
    if (occ_histories_of(all, &row->owner, now_ns, &h, &err) != 0) {
        occ_log(OCC_LOG_WARNING, "%s stays above its part of database.max_total_size: %s", row->owner.name,
                err.message);
        return false;
    }
    occ_histories_limit(all, h, target);
    occ_log(OCC_LOG_INFO,
            "all histories take more than database.max_total_size: that of %s shrinks from %llu to %llu MiB",
            row->owner.name, (unsigned long long)(row->bytes >> 20), (unsigned long long)(target >> 20));
    return true;
}

/* true if the history is unchanged since the census: its owner has not come back. */
static bool is_as_counted(const struct occ_histories *all, const struct occ_node_owner *row)
{
    struct occ_node_owner now = {.owner = row->owner};
    return measure(all, &now) && now.bytes == row->bytes && now.used_ns == row->used_ns;
}

/* One step of shrinking an owner's history. true: continue with the next owner. */
static bool shrink(struct occ_histories *all, struct occ_node_owner *row, int64_t now_ns)
{
    struct occ_node_quota *q = &all->node;
    struct occ_history *h = occ_histories_find(all, &row->owner);
    if (row->target == OCC_NODE_KEEPS || (row->is_begun && !h)) /* idle again and closed */
        return true;
    if (row->target < OCC_NODE_LEAST_BYTES && row->bytes <= 2 * OCC_NODE_LEAST_BYTES) {
        if (!h && is_as_counted(all, row))
            occ_histories_remove(all, &row->owner, "for database.max_total_size");
        return true; /* a history that is open or in use is left to a later census */
    }
    if (!row->is_begun) {
        row->is_begun = begin_to_shrink(all, row, now_ns);
        q->stuck = row->is_begun ? q->stuck : row->owner;
        return !row->is_begun;
    }
    bool is_ok = occ_history_state(h) == OCC_HISTORY_OK; /* maintain() skips histories in other states */
    if (is_ok && (h->next_upkeep_ns == 0 || h->needs_upkeep))
        return false;
    occ_store_get_stats(h->store, &h->stats);
    if (!is_ok || h->stats.bytes > h->quota_bytes)
        q->stuck = row->owner;
    return true;
}

void occ_node_quota_poll(struct occ_histories *all, int64_t now_ns)
{
    struct occ_node_quota *q = &all->node;
    if (now_ns < q->next_ns)
        return;
    q->next_ns = now_ns + STEP_NS;
    if (!q->directory && q->at >= q->n)
        begin_census(all);
    if (q->directory && !count_some(all))
        return;
    while (q->at < q->n && shrink(all, &q->owners[q->at], now_ns)) {
        bool was_target = q->owners[q->at].target != OCC_NODE_KEEPS;
        q->at++;
        if (was_target)
            return;
    }
    if (q->at >= q->n)
        q->next_ns = now_ns + census_ns(all);
}
