/* See lean_map.h. */
#include "lean_map.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux 5.14 and newer. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define KERNEL_MASK_BYTES 8 /* size of a signal mask in the kernel */

static void *map(int fd, size_t bytes)
{
    int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
}

/* Grows an unlocked page: mremap(2) asks if the mapping is locked, not if new mappings are to be. */
void *occ_lean_map(int fd, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *first = map(fd, page), *grown = MAP_FAILED;
    if (first == MAP_FAILED)
        return first;
    if (munlock(first, page) == 0)
        grown = mremap(first, page, bytes, MREMAP_MAYMOVE);
    if (grown != MAP_FAILED)
        return grown;
    (void)munmap(first, page); /* a filter refuses a call */
    return map(fd, bytes);
}

/* The kernel writes to the page for us (the thread's signal mask): where the program would get SIGBUS, it
 * answers EFAULT. */
static bool touch(void *page)
{
    if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, page, KERNEL_MASK_BYTES) != 0)
        return errno != EFAULT;
    memset(page, 0, KERNEL_MASK_BYTES);
    return true;
}

bool occ_lean_populate(void *memory, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)memory & ~(uintptr_t)(page - 1), end = (uintptr_t)memory + bytes;
    if (madvise((void *)begin, end - begin, MADV_POPULATE_WRITE) == 0)
        return true;
    if (errno != EINVAL && errno != EPERM && errno != ENOSYS)
        return false;
    for (uintptr_t at = (uintptr_t)memory; at < end; at = (at & ~(uintptr_t)(page - 1)) + page)
        if (!touch((void *)at))
            return false;
    return true;
}
