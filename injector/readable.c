/* See readable.h. */
#include "readable.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE UINT64_C(4096) /* the smallest page size of platforms that CUDA supports */

void occ_readable_forget(struct occ_readable *readable)
{
    memset(readable, 0, sizeof *readable);
}

/* rt_sigprocmask copies the new mask (8 bytes) before it checks `how`, which is invalid: EFAULT means that
 * the bytes are unreadable, EINVAL that they are readable; the mask never changes. */
static bool probe(uintptr_t address)
{
    const int no_such_how = -1;
    long rc = syscall(SYS_rt_sigprocmask, no_such_how, address & ~(PAGE - 1), NULL, (size_t)8);
    return rc == 0 || errno != EFAULT;
}

static bool page_is_readable(struct occ_readable *readable, uintptr_t address)
{
    uintptr_t page = address / PAGE;
    uintptr_t *known = &readable->pages[page % OCC_READABLE_PAGES];
    if (*known == page && page != 0)
        return true;
    if (page == 0 || !probe(address)) /* the kernel treats address 0 as no mask */
        return false;
    *known = page;
    return true;
}

ptrdiff_t occ_readable_length(struct occ_readable *readable, const char *text, size_t max)
{
    size_t length = 0;
    if (!text)
        return -1;
    while (length < max) {
        uintptr_t at = (uintptr_t)text + length;
        if (!page_is_readable(readable, at))
            return -1;
        size_t left = (size_t)(PAGE - at % PAGE);
        if (left > max - length)
            left = max - length;
        size_t n = strnlen(text + length, left);
        length += n;
        if (n < left)
            return (ptrdiff_t)length;
    }
    return (ptrdiff_t)length;
}
