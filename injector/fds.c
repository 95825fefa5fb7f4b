/* See fds.h. */
#include "fds.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Preferred lowest numbers, in this order: below the common limits of 1024 and 256 descriptors. */
static const int high_numbers[] = {900, 200, 3};

static int raise_number(int fd)
{
    for (size_t i = 0; i < sizeof high_numbers / sizeof high_numbers[0]; i++) {
        int high = fcntl(fd, F_DUPFD_CLOEXEC, high_numbers[i]);
        if (high >= 0) {
            (void)close(fd);
            return high;
        }
    }
    return fd;
}

struct occ_fd occ_fd_adopt(int fd)
{
    struct stat st;
    struct occ_fd owned = OCC_FD_NONE;
    if (fd < 0)
        return owned;
    owned.fd = raise_number(fd);
    if (fstat(owned.fd, &st) == 0) {
        owned.device = st.st_dev;
        owned.inode = st.st_ino;
    }
    return owned;
}

int occ_fd_get(const struct occ_fd *fd)
{
    struct stat st;
    if (fd->fd < 0 || fstat(fd->fd, &st) != 0 || st.st_dev != fd->device || st.st_ino != fd->inode)
        return -1;
    return fd->fd;
}

void occ_fd_close(struct occ_fd *fd)
{
    int mine = occ_fd_get(fd);
    if (mine >= 0)
        (void)close(mine);
    *fd = OCC_FD_NONE;
}
