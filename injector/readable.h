/* Reading a string at an address that may be stale: CUPTI's kernel names. Older versions are known to leave
 * stale pointers; reading one must not end the program.
 *
 * A system call probes each page before it is read: it reads 8 bytes there and then fails for another reason.
 * (Copying with process_vm_readv(2) costs ten times as much per name, and seccomp filters refuse it.) Results
 * are kept until occ_readable_forget(). The remaining risk is a page that is unmapped between probe and read,
 * within microseconds.
 *
 * Threads: one per struct. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCC_READABLE_PAGES 256u

struct occ_readable {
    uintptr_t pages[OCC_READABLE_PAGES]; /* numbers of pages known to be readable; 0: none */
};

void occ_readable_forget(struct occ_readable *readable);

/* Length of the string at `text` (without its NUL), at most `max`; -1 if it cannot be read. */
ptrdiff_t occ_readable_length(struct occ_readable *readable, const char *text, size_t max);
