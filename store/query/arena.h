/*
 * Memory that is freed all at once: the strings of an answer. One thread at a time.
 */
#ifndef OCC_STORE_ARENA_H
#define OCC_STORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct occ_arena_block;

struct occ_arena {
    struct occ_arena_block *blocks; /* NULL: empty */
    size_t used, size;              /* of the first block */
    bool failed;                    /* some copy could not be made */
};

/* A copy that lives as long as the arena; NULL for NULL, and (failed) without memory. */
const char *occ_arena_copy(struct occ_arena *arena, const char *text);
/* Hands the memory to whoever frees it with occ_arena_free_blocks(). */
void *occ_arena_take(struct occ_arena *arena);
void occ_arena_free_blocks(void *blocks);

#endif
