/* Mappings of the guest in the program's process. After mlockall(MCL_FUTURE), a new mapping gets all its
 * pages at once and counts against RLIMIT_MEMLOCK; the guest's are large and mostly never touched. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Maps `bytes` of the file, shared, or zeroed private memory if `fd` is -1. Pages are allocated when they are
 * first written, and are not locked. MAP_FAILED with errno. Any thread. */
void *occ_lean_map(int fd, size_t bytes);

/* Allocates the pages that hold these bytes, whose contents are zero and which no other thread uses. false:
 * the system has no memory for them; a write would end the program by SIGBUS, which happens for a memory file
 * if the system does not overcommit (vm.overcommit_memory = 2). Any thread. */
bool occ_lean_populate(void *memory, size_t bytes);
