/*
 * Whether a library may be loaded that somebody else has named: only root or this process's user can have
 * written it. For root that is root alone.
 *
 * Uses libc only, waits for no file system. Threads: any.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The file at an absolute path is regular, and it, every directory above it and every symbolic link on the
 * way belong to root or to the effective user, and nobody else may write them. `resolved`: the same file by a
 * path without symbolic links, which is the one to open. False: `reason` gets a line for people. */
bool occ_trusted_file(const char *path, char resolved[PATH_MAX], char *reason, size_t size);

/* As occ_trusted_file(), of a path that any process may have named. For root the way also enters no mount
 * with nosuid: a user may have made it (by fusermount(1), by udisks, by fstab's `user`), and its files belong
 * to whomever he likes. A mount of which this is not known is refused too, other than that of "/". `mounts`:
 * /proc/self/mountinfo. */
bool occ_trusted_offered(const char *path, const char *mounts, char resolved[PATH_MAX], char *reason,
                         size_t size);
