/*
 * See trusted.h. Checks one path component at a time, from the root down: a directory that other users may
 * write is never searched, so that they cannot change a checked component. Nor are their file systems queried
 * (AT_STATX_DONT_SYNC): the kernel's cached attributes already show that a mount point has another owner, or
 * that it lies below a refused directory.
 */
#include "scratch.h"
#include "trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX   40 /* symbolic links in one path, the kernel's limit */
#define OTHERS_MAY  (S_IWGRP | S_IWOTH)
#define STATX_ASKED (STATX_TYPE | STATX_MODE | STATX_UID | STATX_GID | STATX_MNT_ID)

struct walk {
    char done[PATH_MAX]; /* checked, without symbolic links and without a slash at its end */
    char rest[PATH_MAX]; /* components that are not checked yet */
    char next[PATH_MAX], target[PATH_MAX];
    unsigned int links;
    const char *mounts;        /* the list of mounts; NULL: every mount will do */
    unsigned int major, minor; /* of the device of "/" */
    bool is_open;              /* everybody may enter the directories and read the file */
};

/* Moves the first component out of `rest`; "": the path is complete. */
static void take_component(struct walk *w, char component[NAME_MAX + 1])
{
    size_t skip = strspn(w->rest, "/"), n = strcspn(w->rest + skip, "/");
    size_t kept = n <= NAME_MAX ? n : NAME_MAX; /* no file has a longer name */
    memcpy(component, w->rest + skip, kept);
    component[kept] = '\0';
    memmove(w->rest, w->rest + skip + n, strlen(w->rest + skip + n) + 1);
}

/* A group that was made with the user is as good as the user: many systems' umask lets it write. It has the
 * user's number; a group of many users has another one. */
static bool may_others_write(const struct statx *status)
{
    bool is_sticky = S_ISDIR(status->stx_mode) && (status->stx_mode & S_ISVTX) != 0;
    unsigned int mode = status->stx_mode & OTHERS_MAY;
    if (geteuid() != 0 && status->stx_gid == getegid() && status->stx_gid == geteuid())
        mode &= ~(unsigned int)S_IWGRP;
    return mode != 0 && !is_sticky && !S_ISLNK(status->stx_mode);
}

enum mount { MOUNT_UNKNOWN, MOUNT_NOSUID, MOUNT_SUID };

/* A line: ID PARENT MAJOR:MINOR ROOT POINT OPTIONS ... (proc_pid_mountinfo(5)). The kernel escapes spaces,
 * tabs and newlines in a field, and no other control character: only a space separates fields. */
static enum mount find_mount(const char *mounts, uint64_t id)
{
    unsigned long long listed;
    char options[512];
    enum mount found = MOUNT_UNKNOWN;
    FILE *list = fopen(mounts, "re");
    while (list && found == MOUNT_UNKNOWN &&
           fscanf(list, "%llu %*[^ ] %*[^ ] %*[^ ] %*[^ ] %511[^ ]%*[^\n]", &listed, options) == 2)
        if (listed == id)
            found = strstr(options, "nosuid") ? MOUNT_NOSUID : MOUNT_SUID;
    if (list)
        (void)fclose(list);
    return found;
}

/* The status names the mount that it was read through: one that comes later covers a directory of root. */
static bool check_mount(const struct walk *w, const char *path, const struct statx *status, char *reason,
                        size_t size)
{
    if (!w->mounts || (status->stx_dev_major == w->major && status->stx_dev_minor == w->minor))
        return true;
    enum mount mount =
        status->stx_mask & STATX_MNT_ID ? find_mount(w->mounts, status->stx_mnt_id) : MOUNT_UNKNOWN;
    if (mount == MOUNT_SUID)
        return true;
    (void)snprintf(reason, size, "%.150s lies on a mount %s", path,
                   mount == MOUNT_NOSUID ? "with nosuid" : "whose options are not known");
    return false;
}

static bool is_closed(const struct walk *w, const char *path, const struct statx *status, char *reason,
                      size_t size)
{
    unsigned int needed = S_ISDIR(status->stx_mode) ? S_IXOTH : S_ISREG(status->stx_mode) ? S_IROTH : 0;
    if (!w->is_open || (status->stx_mode & needed) == needed)
        return false;
    (void)snprintf(reason, size, "%.150s is closed to others", path);
    return true;
}

static bool check(const char *path, struct statx *status, char *reason, size_t size)
{
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_ASKED,
              status) != 0)
        (void)snprintf(reason, size, "%.150s: %s", path, strerror(errno));
    else if (status->stx_uid != 0 && status->stx_uid != geteuid())
        (void)snprintf(reason, size, "%.150s belongs to another user (%u)", path, status->stx_uid);
    else if (may_others_write(status))
        (void)snprintf(reason, size, "%.150s can be written by others", path);
    else
        return true;
    return false;
}

/* Puts a symbolic link's target before the rest. */
static bool follow(struct walk *w, const char *link)
{
    char *target = w->target;
    ssize_t n = readlink(link, target, sizeof w->target - 1);
    size_t rest = strlen(w->rest);
    if (n <= 0 || (size_t)n + rest >= sizeof w->rest || ++w->links > LINKS_MAX)
        return false;
    memmove(w->rest + n, w->rest, rest + 1);
    memcpy(w->rest, target, (size_t)n);
    if (target[0] == '/')
        w->done[0] = '\0';
    return true;
}

/* Checks one component. */
static bool step(struct walk *w, const char *component, struct statx *status, char *reason, size_t size)
{
    char *next = w->next;
    if (strcmp(component, ".") == 0)
        return true;
    if (strcmp(component, "..") == 0) {
        char *slash = strrchr(w->done, '/');
        if (slash)
            *slash = '\0';
        return true;
    }
    if (snprintf(next, sizeof w->next, "%s/%s", w->done, component) >= (int)sizeof w->next) {
        (void)snprintf(reason, size, "its path is too long");
        return false;
    }
    if (!check(next, status, reason, size) || !check_mount(w, next, status, reason, size) ||
        is_closed(w, next, status, reason, size))
        return false;
    if (S_ISLNK(status->stx_mode)) {
        if (follow(w, next))
            return true;
        (void)snprintf(reason, size, "%.150s cannot be followed", next);
        return false;
    }
    memcpy(w->done, next, strlen(next) + 1);
    return true;
}

static bool walk(struct walk *w, const char *path, char *reason, size_t size)
{
    struct statx status = {0};
    char component[NAME_MAX + 1];
    if (path[0] != '/' || strlen(path) >= sizeof w->rest) {
        (void)snprintf(reason, size, "its path is not absolute, or too long");
        return false;
    }
    memcpy(w->rest, path, strlen(path) + 1);
    if (!check("/", &status, reason, size))
        return false;
    w->major = status.stx_dev_major;
    w->minor = status.stx_dev_minor;
    for (take_component(w, component); component[0]; take_component(w, component))
        if (!step(w, component, &status, reason, size))
            return false;
    if (S_ISREG(status.stx_mode))
        return true;
    (void)snprintf(reason, size, "%.150s is no file", w->done);
    return false;
}

/* `resolved` may be NULL. */
static bool is_trusted(const char *path, const char *mounts, bool is_open, char *resolved, char *reason,
                       size_t size)
{
    struct walk *w = occ_scratch_get(sizeof *w);
    if (!w) {
        (void)snprintf(reason, size, "no memory");
        return false;
    }
    w->mounts = mounts;
    w->is_open = is_open;
    bool is_good = walk(w, path, reason, size);
    if (resolved)
        memcpy(resolved, w->done, strlen(w->done) + 1);
    occ_scratch_put(w, sizeof *w);
    return is_good;
}

bool occ_trusted_file(const char *path, char resolved[PATH_MAX], char *reason, size_t size)
{
    return is_trusted(path, NULL, false, resolved, reason, size);
}

bool occ_trusted_offered(const char *path, const char *mounts, char resolved[PATH_MAX], char *reason,
                         size_t size)
{
    return is_trusted(path, geteuid() == 0 ? mounts : NULL, false, resolved, reason, size);
}

bool occ_trusted_open(const char *path)
{
    char reason[256];
    return is_trusted(path, NULL, true, NULL, reason, sizeof reason);
}
