/* See seen.h. */
#include "seen.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "support/array.h"

/* A file system's clock moves in steps of some milliseconds; the rest allows for one that is set. */
#define SETTLED_NS INT64_C(2000000000)
#define SPARE      64

static bool look_at(const char *path, int64_t now_ns, struct occ_seen_file *file)
{
    struct stat s;
    *file = (struct occ_seen_file){0};
    if (stat(path, &s) != 0)
        return true;
    *file = (struct occ_seen_file){.device = s.st_dev,
                                   .inode = s.st_ino,
                                   .bytes = s.st_size,
                                   .changed_ns = s.st_mtim.tv_sec * INT64_C(1000000000) + s.st_mtim.tv_nsec};
    return now_ns - file->changed_ns > SETTLED_NS;
}

bool occ_seen_look(const char *path, int64_t now_ns, struct occ_seen_history *ret_history)
{
    char log[PATH_MAX];
    *ret_history = (struct occ_seen_history){.open_minute = 0};
    if (snprintf(log, sizeof log, "%s-wal", path) >= (int)sizeof log)
        return false;
    return look_at(path, now_ns, &ret_history->file) && look_at(log, now_ns, &ret_history->log) &&
           ret_history->file.inode != 0;
}

static uint64_t key_of(const char *path)
{
    return XXH3_64bits(path, strlen(path));
}

static bool is_same(const struct occ_seen_file *a, const struct occ_seen_file *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->changed_ns == b->changed_ns;
}

bool occ_seen_is_sent(const struct occ_seen *seen, const char *path, struct occ_seen_history *history)
{
    uint32_t at = occ_map_get(&seen->index, key_of(path));
    const struct occ_seen_history *then = at == OCC_MAP_NONE ? NULL : &seen->histories[at];
    if (!then || !is_same(&then->file, &history->file) || !is_same(&then->log, &history->log))
        return false;
    history->open_minute = then->open_minute;
    return true;
}

void occ_seen_put(struct occ_seen *seen, const char *path, const struct occ_seen_history *history)
{
    if (!occ_grow((void **)&seen->histories, &seen->allocated, seen->n, OCC_MAP_NONE,
                  sizeof *seen->histories))
        return;
    uint32_t at = occ_map_put(&seen->index, key_of(path), (uint32_t)seen->n);
    if (at == OCC_MAP_NONE)
        return;
    seen->n += at == seen->n;
    seen->histories[at] = *history;
}

void occ_seen_trim(struct occ_seen *seen, size_t n_found)
{
    if (seen->n <= 2 * n_found + SPARE)
        return;
    occ_map_clear(&seen->index);
    seen->n = 0;
}

void occ_seen_free(struct occ_seen *seen)
{
    occ_map_free(&seen->index);
    free(seen->histories);
    *seen = (struct occ_seen){.n = 0};
}
