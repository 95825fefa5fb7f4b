/* Arrays that grow to a limit. No state. */
#ifndef OCC_SAMPLER_GROW_H
#define OCC_SAMPLER_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Grows an array of items of `size` bytes so that the one after n fits; false: no memory, or `most` are there. */
static inline bool occ_grow(void **items, size_t *allocated, size_t n, size_t most, size_t size)
{
    if (n < *allocated)
        return true;
    size_t more = *allocated ? *allocated * 2 : 256;
    more = more < most ? more : most;
    void *moved = more > n ? realloc(*items, more * size) : NULL;
    if (!moved)
        return false;
    *items = moved;
    *allocated = more;
    return true;
}

#endif
