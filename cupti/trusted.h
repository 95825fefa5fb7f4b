/*
 * Whether a library may be loaded that somebody else has named: only root or this process's user can have
 * written it. For root that is root alone.
 *
 * Uses libc only, allocates nothing, waits for no file system. Threads: any.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The file at an absolute path is regular, and it, every directory above it and every symbolic link on the
 * way belong to root or to the effective user, and nobody else may write them. `resolved`: the same file by a
 * path without symbolic links, which is the one to open. False: `reason` gets a line for people. */
bool occ_trusted_file(const char *path, char resolved[PATH_MAX], char *reason, size_t size);
