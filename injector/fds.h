/* The guest's descriptors inside the program's process. The program may close every descriptor that it does
 * not know and open its own with the same number. Therefore the guest's descriptors have high numbers, are
 * closed on exec, and are used or closed only after device and inode have identified them. Any thread that
 * owns the struct. */
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

/* The number, or -1 if there is none or the program has replaced it. */
int occ_fd_get(const struct occ_fd *fd);

/* Closes the descriptor unless the program has replaced it. */
void occ_fd_close(struct occ_fd *fd);
