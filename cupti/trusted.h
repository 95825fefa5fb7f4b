/*
 * Decides if a library named by another process may be loaded: only if nobody but root and this process's
 * user can have written the file. If the process runs as root, only root counts.
 *
 * Uses libc only, maps memory during a call, waits for no file system. Threads: any.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* True if the path is absolute, the file is regular, and the file, every directory above it and every
 * symbolic link on the way belong to root or the effective user and are not writable by others. `resolved`:
 * the path of the same file without symbolic links; open only this path. False: `reason` gets a line for
 * people. */
bool occ_trusted_file(const char *path, char resolved[PATH_MAX], char *reason, size_t size);

/* As occ_trusted_file(), of a path that any process may have named. For root the way also enters no mount
 * with nosuid: a user may have made it (by fusermount(1), by udisks, by fstab's `user`), and its files belong
 * to whomever he likes. A mount of which this is not known is refused too, other than that of "/". `mounts`:
 * /proc/self/mountinfo. */
bool occ_trusted_offered(const char *path, const char *mounts, char resolved[PATH_MAX], char *reason,
                         size_t size);

/* As occ_trusted_file(), and everybody may enter the directories on the way and read the file. Behind closed
 * directories, stores of container images have files of root that root of a container wrote. */
bool occ_trusted_open(const char *path);
