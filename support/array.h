/* Arrays that grow to a limit. No state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Makes room for item n, of `size` bytes, and at least doubles the room where it grows. false: no memory, or
 * n >= max. */
static inline bool occ_grow(void **items, size_t *allocated, size_t n, size_t max, size_t size)
{
    if (n < *allocated)
        return true;
    size_t more = *allocated ? *allocated * 2 : 16;
    more = more > n ? more : n + 1;
    more = more < max ? more : max;
    void *moved = more > n ? realloc(*items, more * size) : NULL;
    if (!moved)
        return false;
    *items = moved;
    *allocated = more;
    return true;
}

/* Halves the allocation while n items need less than an eighth of it. */
static inline void occ_shrink(void **items, size_t *allocated, size_t n, size_t size)
{
    void *moved = n < *allocated / 8 ? realloc(*items, *allocated / 2 * size) : NULL;
    if (!moved)
        return;
    *items = moved;
    *allocated /= 2;
}
