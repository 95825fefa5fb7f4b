/* See packed_history.h. Stateless, any thread. */
#include "packed_history.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "support/cleanup.h"

static bool write_at(int fd, const uint8_t *bytes, size_t n, size_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t written = pwrite(fd, bytes + done, n - done, (off_t)(at + done));
        if (written <= 0)
            return false;
        done += (size_t)written;
    }
    return true;
}

/* True if a log of SQLite for `path` is left from a file that was removed, or may be: SQLite would apply it
 * to the new file, but deletes it next to an empty one. */
static bool has_stale_log(const char *path)
{
    static const char *const suffixes[] = {"-wal", "-journal"};
    char log[PATH_MAX];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        int n = snprintf(log, sizeof log, "%s%s", path, suffixes[i]);
        if (n < 0 || (size_t)n >= sizeof log || access(log, F_OK) == 0 || errno != ENOENT)
            return true;
    }
    return false;
}

/* Creates a file without a name in the directory of `path`; negative: the file system or kernel cannot. */
static int create_unnamed(const char *path)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX] = ".";
    size_t n = slash > path ? (size_t)(slash - path) : 1;
    if (n >= sizeof directory)
        return -1;
    if (slash)
        memcpy(directory, path, n);
    return open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0640);
}

/* Gives the file its name unless another file has it. */
static bool name_file(int fd, const char *path)
{
    char own[32];
    (void)snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

static bool unpack(const struct occ_packed_history *history, int fd)
{
    const uint8_t *packed = history->packed;
    uint8_t identity[OCC_IDENTITY_BYTES];
    if (ftruncate(fd, (off_t)history->bytes) != 0)
        return false;
    for (size_t i = 0; i < history->n_runs; i++) {
        const struct occ_packed_run *run = &history->runs[i];
        if (!write_at(fd, packed, run->bytes, run->at))
            return false;
        packed += run->bytes;
    }
    return getrandom(identity, sizeof identity, 0) == (ssize_t)sizeof identity &&
           write_at(fd, identity, sizeof identity, history->identity_at);
}

bool occ_packed_history_write(const struct occ_packed_history *history, const char *path)
{
    if (has_stale_log(path))
        return false;
    _cleanup_(occ_closep) int fd = create_unnamed(path);
    return fd >= 0 && unpack(history, fd) && fdatasync(fd) == 0 && name_file(fd, path);
}
