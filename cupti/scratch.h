/* Memory for paths: the guest searches in cuInit, on a stack of the program's that may have 16 KiB. Threads:
 * any. */
#pragma once

#include <stddef.h>
#include <sys/mman.h>

/* Zeroed memory; NULL: none is left. */
static inline void *occ_scratch_get(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static inline void occ_scratch_put(void *memory, size_t bytes)
{
    if (memory)
        (void)munmap(memory, bytes);
}
