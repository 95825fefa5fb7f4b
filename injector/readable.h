/*
 * Reading a string at an address that somebody else gave us and may have taken back: CUPTI's kernel names.
 * Older versions are known to leave stale pointers; reading one must not end the program.
 *
 * Before a page is read the kernel is asked whether it can be (one system call that reads 8 bytes there and
 * then fails for another reason; always allowed). Answers are remembered until occ_readable_forget(). What
 * remains is a page that vanishes between question and reading, within microseconds.
 *
 * Threads: one for each struct.
 */
#ifndef OCC_INJECTOR_READABLE_H
#define OCC_INJECTOR_READABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCC_READABLE_PAGES 256u

struct occ_readable {
    uintptr_t pages[OCC_READABLE_PAGES]; /* page number, known readable; 0 = none */
};

void occ_readable_forget(struct occ_readable *readable);

/* Length of the string at `text` (without its NUL), at most `most`; -1 if it cannot be read. */
ptrdiff_t occ_readable_length(struct occ_readable *readable, const char *text, size_t most);

#endif
