/* Descriptors that we keep inside somebody else's process. The program may close every descriptor it does not
 * know and open its own under the same number. So ours have high numbers, close on exec, and are used or
 * closed only after their device and inode proved them ours. Any thread that owns the struct. */
#pragma once

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

/* Takes ownership of `fd` and moves it to a high number if one is free. */
struct occ_fd occ_fd_adopt(int fd);

/* The number, or -1 if there is none or it is no longer ours. */
int occ_fd_get(const struct occ_fd *fd);

/* Closes it if it is still ours. */
void occ_fd_close(struct occ_fd *fd);
