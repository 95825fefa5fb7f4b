/* See seen.h. */
#include "seen.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>

#include "support/array.h"
#include "support/cleanup.h"
#include "support/text.h"

/* The clock of a file system has a resolution of some milliseconds; the rest tolerates a clock that is
 * set. */
#define SETTLED_NS   INT64_C(2000000000)
#define ENTRIES_MAX  (1u << 20)
#define EVENTS_BYTES 65536
#define SPARE        64u

#define XFS_MAGIC 0x58465342 /* number in the kernel's fs/xfs; no header of its interface has it */
#define ZFS_MAGIC 0x2fc12fc1 /* number in OpenZFS */
#define CHANGES   (IN_ATTRIB | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MODIFY | IN_MOVE | IN_MOVE_SELF)

void occ_seen_open(struct occ_seen *ret_seen)
{
    *ret_seen = (struct occ_seen){.events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
                                  .mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)};
}

void occ_seen_close(struct occ_seen *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->entries[i].path);
    free(s->entries);
    occ_map_free(&s->watches);
    occ_close_fd(&s->events);
    occ_close_fd(&s->mounts);
    *s = (struct occ_seen){.events = -1, .mounts = -1};
}

/* ---- files ---- */

/* Returns errno of stat(2), or 0. */
static int look_at(const char *path, struct occ_seen_file *file)
{
    struct stat s;
    *file = (struct occ_seen_file){.inode = 0};
    if (stat(path, &s) != 0)
        return errno;
    *file = (struct occ_seen_file){.device = (int64_t)s.st_dev,
                                   .inode = (int64_t)s.st_ino,
                                   .bytes = s.st_size,
                                   .changed_ns = s.st_mtim.tv_sec * INT64_C(1000000000) + s.st_mtim.tv_nsec};
    return 0;
}

/* true if every write to the file is visible in the directory of its path: not a link, and no second name. */
static bool is_only_here(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0 ? S_ISREG(s.st_mode) && s.st_nlink == 1 : errno == ENOENT;
}

static bool is_settled(const struct occ_seen_file *file, int64_t now_ns)
{
    return file->inode == 0 || now_ns - file->changed_ns > SETTLED_NS;
}

static bool is_same(const struct occ_seen_file *a, const struct occ_seen_file *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->changed_ns == b->changed_ns;
}

/* ---- entries ---- */

static bool append(struct occ_seen *s, struct occ_seen_entry entry)
{
    if (!entry.path ||
        !occ_grow((void **)&s->entries, &s->allocated, s->n, ENTRIES_MAX, sizeof *s->entries)) {
        free(entry.path);
        return false;
    }
    s->entries[s->n++] = entry;
    return true;
}

int occ_seen_load(struct occ_seen *s, const char *path, const struct occ_seen_history *sent,
                  struct occ_error *err)
{
    if (s->n > 0 && strcmp(path, s->entries[s->n - 1].path) <= 0)
        return 0;
    const struct occ_seen_entry entry = {
        .path = strdup(path), .sent = *sent, .is_sent = true, .is_stored = true};
    return append(s, entry) ? 0 : occ_no_memory(err);
}

static int compare_entries(const void *a, const void *b)
{
    const struct occ_seen_entry *first = a, *second = b;
    return strcmp(first->path, second->path);
}

static struct occ_seen_entry *find(const struct occ_seen *s, size_t n, char *path)
{
    const struct occ_seen_entry key = {.path = path};
    return n ? bsearch(&key, s->entries, n, sizeof key, compare_entries) : NULL;
}

/* Rebuilds the index after entries have moved. Without memory an entry has no watch, so every pass checks its
 * files. */
static void index_watches(struct occ_seen *s)
{
    occ_map_clear(&s->watches);
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].watch &&
            occ_map_put(&s->watches, (uint64_t)s->entries[i].watch, (uint32_t)i) == OCC_MAP_NONE) {
            s->entries[i].is_unchanged = false;
            s->entries[i].watch = 0;
        }
}

void occ_seen_stored(struct occ_seen *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct occ_seen_entry *entry = &s->entries[i];
        entry->is_stored = entry->is_sent;
        if (entry->is_found)
            s->entries[n++] = *entry;
        else
            free(entry->path);
    }
    bool have_moved = n != s->n;
    s->n = n;
    s->has_unstored = false;
    if (have_moved)
        index_watches(s);
}

/* ---- the list ---- */

/* true for the directory of an owner, by its name; false for others, like lost+found. */
static bool is_of_owner(const char *name)
{
    static const char *const names[] = {"pod-", "container-", "ns-"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return name[0] == 'u' && name[1] >= '0' && name[1] <= '9';
}

/* Searches the first `n` entries, which are sorted, and appends a new one. Takes over `path`. */
static int add_path(struct occ_seen *s, size_t n, char *path, bool is_owners, struct occ_error *err)
{
    struct occ_seen_entry *known = path ? find(s, n, path) : NULL;
    if (!known)
        return append(s, (struct occ_seen_entry){.path = path, .is_found = true, .is_owners = is_owners})
                   ? 0
                   : occ_no_memory(err);
    known->is_found = true;
    known->is_owners = is_owners;
    free(path);
    return 0;
}

static bool may_be_directory(const struct dirent *entry)
{
    return entry->d_name[0] != '.' &&
           (entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN);
}

static int list_owners(struct occ_seen *s, DIR *directory, const char *path, struct occ_error *err)
{
    const char *name = strrchr(path, '/');
    size_t n = s->n;
    int rc = 0;
    errno = 0;
    for (const struct dirent *entry; rc == 0 && (entry = readdir(directory)); errno = 0) {
        char *file = NULL;
        if (!may_be_directory(entry))
            continue;
        rc = occ_format_text(&file, err, "%.*s/%s%s", (int)(name - path), path, entry->d_name, name);
        if (rc == 0)
            rc = add_path(s, n, file, is_of_owner(entry->d_name), err);
    }
    return rc == 0 && errno ? occ_fail_errno(err, errno, "cannot list the histories beside %s", path) : rc;
}

/* true if the file system reports every write, including writes by other machines or through other mounts. */
static bool reports_all_changes(const char *directory)
{
    static const long kinds[] = {EXT4_SUPER_MAGIC, XFS_MAGIC,        BTRFS_SUPER_MAGIC,
                                 TMPFS_MAGIC,      F2FS_SUPER_MAGIC, ZFS_MAGIC};
    struct statfs status;
    if (statfs(directory, &status) != 0)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((long)status.f_type == kinds[i])
            return true;
    return false;
}

/* Without the right to list the directory, histories may be missed: the history of all users then counts as
 * unreadable. */
static int open_parent(struct occ_seen *s, const char *parent, DIR **ret_directory, struct occ_error *err)
{
    *ret_directory = opendir(parent);
    s->is_hidden = !*ret_directory && errno == EACCES;
    s->is_missing = !*ret_directory && errno == ENOENT;
    if (*ret_directory || errno == EACCES || errno == ENOENT)
        return 0;
    return occ_fail_errno(err, errno, "cannot list %s", parent);
}

static void sort(struct occ_seen *s)
{
    if (s->n > 1)
        qsort(s->entries, s->n, sizeof *s->entries, compare_entries);
}

/* Lists the histories again. The state drops entries without a directory when it is stored. */
static int list(struct occ_seen *s, const char *parent, const char *path, struct occ_error *err)
{
    DIR *directory = NULL;
    for (size_t i = 0; i < s->n; i++)
        s->entries[i].is_found = false;
    int rc = add_path(s, s->n, strdup(path), true, err);
    sort(s);
    if (rc == 0)
        rc = open_parent(s, parent, &directory, err);
    if (directory) {
        rc = list_owners(s, directory, path, err);
        (void)closedir(directory);
    }
    sort(s);
    for (size_t i = 0; rc == 0 && i < s->n; i++)
        s->has_unstored |= !s->entries[i].is_found;
    s->may_watch = reports_all_changes(parent);
    index_watches(s);
    return rc;
}

/* ---- watches ---- */

static void forget_watches(struct occ_seen *s)
{
    for (size_t i = 0; i < s->n; i++) {
        s->entries[i].is_unchanged = false;
        s->entries[i].watch = 0;
    }
    occ_map_clear(&s->watches);
}

/* Drops the watches if the directories may have been replaced at their paths: a watch follows the old
 * directory. */
static void check_places(struct occ_seen *s, const struct occ_seen_file *tree)
{
    struct pollfd mounts = {.fd = s->mounts, .events = POLLPRI};
    bool is_same_tree = tree->device == s->tree.device && tree->inode == s->tree.inode;
    if (!is_same_tree || (s->mounts >= 0 && poll(&mounts, 1, 0) > 0))
        forget_watches(s);
    s->tree = *tree;
}

static void take_event(struct occ_seen *s, const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW)
        forget_watches(s);
    uint32_t at = occ_map_get(&s->watches, (uint64_t)event->wd);
    if (at == OCC_MAP_NONE || s->entries[at].watch != event->wd)
        return;
    s->entries[at].is_unchanged = false;
    s->entries[at].watch = 0; /* a watch reports once (IN_ONESHOT) */
}

static void take_events(struct occ_seen *s)
{
    _Alignas(struct inotify_event) char bytes[EVENTS_BYTES];
    for (ssize_t n; s->events >= 0 && (n = read(s->events, bytes, sizeof bytes)) > 0;)
        for (const char *at = bytes; at < bytes + n;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            take_event(s, event);
            at += sizeof *event + event->len;
        }
    if (s->watches.used > 2 * s->n + SPARE)
        index_watches(s);
}

/* Call it before looking at the files. If two entries lead to the same directory, the kernel has one watch,
 * which stays with the first. */
static void watch(struct occ_seen *s, size_t index)
{
    struct occ_seen_entry *entry = &s->entries[index];
    _cleanup_(occ_freep) char *directory =
        s->events >= 0 && s->mounts >= 0 && s->may_watch && !entry->watch
            ? strndup(entry->path, (size_t)(strrchr(entry->path, '/') - entry->path))
            : NULL;
    if (!directory)
        return;
    int number = inotify_add_watch(s->events, directory, CHANGES | IN_ONESHOT | IN_ONLYDIR | IN_DONT_FOLLOW);
    uint32_t at = number > 0 ? occ_map_get(&s->watches, (uint64_t)number) : OCC_MAP_NONE;
    bool is_others = at != OCC_MAP_NONE && at != index && s->entries[at].watch == number;
    if (number <= 0 || is_others)
        return;
    uint32_t *old = occ_map_find(&s->watches, (uint64_t)number);
    if (old)
        *old = (uint32_t)index;
    else if (occ_map_put(&s->watches, (uint64_t)number, (uint32_t)index) == OCC_MAP_NONE)
        return;
    entry->watch = number;
}

/* ---- passes ---- */

int occ_seen_update(struct occ_seen *s, const char *path, int64_t now_ns, struct occ_error *err)
{
    struct occ_seen_file now;
    _cleanup_(occ_freep) char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
    if (!parent)
        return occ_no_memory(err);
    take_events(s);
    (void)look_at(parent, &now);
    check_places(s, &now);
    if (now.inode != 0 && is_same(&now, &s->directory))
        return 0;
    int rc = list(s, parent, path, err);
    s->directory =
        rc == 0 && !s->is_hidden && is_settled(&now, now_ns) ? now : (struct occ_seen_file){.inode = 0};
    return rc;
}

int occ_seen_check(const struct occ_seen *s, const char *path, int64_t unreadable, struct occ_error *err)
{
    if (s->is_hidden)
        return occ_fail(err, OCC_E_DENIED,
                        "cannot list the directory of %s: %s; its histories are not sent: let the group of "
                        "occtrace-ship list it (occtraced does so when it starts, for /var/lib/occtrace)",
                        path, strerror(EACCES));
    if (s->is_missing)
        return occ_fail(err, OCC_E_NOT_FOUND,
                        "cannot list the directory of %s: %s; set database.path as occtraced's, and start "
                        "occtraced first",
                        path, strerror(ENOENT));
    return unreadable == 0
               ? 0
               : occ_fail(err, OCC_E_INVALID,
                          "%lld of the histories beside %s could not be read and are not sent: the "
                          "warnings before have the reasons",
                          (long long)unreadable, path);
}

enum occ_seen_state occ_seen_look(struct occ_seen *s, size_t index, int64_t now_ns,
                                  struct occ_seen_history *ret_now)
{
    struct occ_seen_entry *entry = &s->entries[index];
    _cleanup_(occ_freep) char *log = NULL;
    *ret_now = entry->sent;
    if (!entry->is_found)
        return OCC_SEEN_NONE;
    if (entry->is_unchanged)
        return OCC_SEEN_SENT;
    watch(s, index);
    *ret_now = (struct occ_seen_history){.open_minute = 0};
    int file = look_at(entry->path, &ret_now->file);
    if (!(s->is_hidden && entry->is_owners) &&
        (file == ENOENT || file == ENOTDIR || (file == EACCES && !entry->is_owners)))
        return OCC_SEEN_NONE;
    int code = occ_format_text(&log, NULL, "%s-wal", entry->path);
    code = code == 0 ? look_at(log, &ret_now->log) : code;
    if (ret_now->log.bytes == 0) /* a reader leaves an empty log behind: no change */
        ret_now->log = (struct occ_seen_file){.inode = 0};
    if (file != 0 || (code != 0 && code != ENOENT) || !is_settled(&ret_now->file, now_ns) ||
        !is_settled(&ret_now->log, now_ns))
        return OCC_SEEN_RECENT;
    if (!entry->is_sent || !is_same(&entry->sent.file, &ret_now->file) ||
        !is_same(&entry->sent.log, &ret_now->log))
        return OCC_SEEN_CHANGED;
    entry->is_unchanged = entry->watch && ret_now->file.device == s->directory.device &&
                          is_only_here(entry->path) && is_only_here(log);
    *ret_now = entry->sent;
    return OCC_SEEN_SENT;
}

void occ_seen_put(struct occ_seen *s, size_t index, const struct occ_seen_history *sent)
{
    struct occ_seen_entry *entry = &s->entries[index];
    entry->sent = *sent;
    entry->is_sent = true;
    entry->is_stored = false;
    s->has_unstored = true;
}
