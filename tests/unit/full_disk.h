/* A disk that becomes full after a given number of SQLite's writes. Include cmocka.h first. */
#pragma once

#include <errno.h>
#include <sqlite3.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#define WITH_ROOM INT64_MAX

static int64_t writes_left = WITH_ROOM;

static inline ssize_t write_with_room(int fd, const void *data, size_t n, off_t offset)
{
    if (writes_left <= 0) {
        errno = ENOSPC;
        return -1;
    }
    writes_left -= writes_left != WITH_ROOM;
    return pwrite(fd, data, n, offset);
}

/* Replaces SQLite's write functions in the whole process; a setup function for a test group. */
static inline int replace_writes(void **state)
{
    (void)state;
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    int replaced = 0;
    for (const char *const *name = (const char *const[]){"pwrite", "pwrite64", NULL}; *name; name++)
        replaced += vfs->xSetSystemCall(vfs, *name, (sqlite3_syscall_ptr)write_with_room) == SQLITE_OK;
    return replaced > 0 ? 0 : -1;
}
