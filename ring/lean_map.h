/* Mappings of the guest in the program's process. After mlockall(MCL_FUTURE), a new mapping gets all its
 * pages at once and counts against RLIMIT_MEMLOCK; the guest's are large and mostly never touched. */
#pragma once

#include <stddef.h>

/* Maps `bytes` of the file, shared, or zeroed private memory if `fd` is -1. Pages are allocated when they are
 * first written, and are not locked. MAP_FAILED with errno. Any thread. */
void *occ_lean_map(int fd, size_t bytes);
