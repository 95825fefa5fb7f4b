/*
 * Descriptors that we keep inside somebody else's process. The program may close every descriptor it does not
 * know and open its own under the same number: so ours lie high, close on exec, and are never used or closed
 * before it is certain that they are still ours (device and inode). Any thread that owns the struct.
 */
#ifndef OCC_INJECTOR_FDS_H
#define OCC_INJECTOR_FDS_H

#include <sys/types.h>

struct occ_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

#define OCC_FD_NONE                                                                                          \
    (struct occ_fd)                                                                                          \
    {                                                                                                        \
        -1, 0, 0                                                                                             \
    }

/* Takes over `fd` (moved to a high number if there is one). */
struct occ_fd occ_fd_adopt(int fd);

/* The number, or -1 if it is none or no longer ours. */
int occ_fd_get(const struct occ_fd *fd);

/* Closes it if it is still ours. */
void occ_fd_close(struct occ_fd *fd);

#endif
