/* See lean_map.h. */
#include "lean_map.h"

#include <sys/mman.h>
#include <unistd.h>

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
