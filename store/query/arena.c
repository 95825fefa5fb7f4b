/* Blocks of memory in a list. No globals. */
#include "arena.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 65536u

struct occ_arena_block {
    struct occ_arena_block *next;
    char bytes[];
};

static char *allocate(struct occ_arena *arena, size_t n)
{
    if (!arena->blocks || arena->size - arena->used < n) {
        size_t size = n > BLOCK_BYTES ? n : BLOCK_BYTES;
        struct occ_arena_block *block = malloc(sizeof *block + size);
        if (!block)
            return NULL;
        block->next = arena->blocks;
        arena->blocks = block;
        arena->used = 0;
        arena->size = size;
    }
    char *at = arena->blocks->bytes + arena->used;
    arena->used += n;
    return at;
}

const char *occ_arena_copy(struct occ_arena *arena, const char *text)
{
    if (!text)
        return NULL;
    size_t n = strlen(text) + 1;
    char *copy = allocate(arena, n);
    if (copy)
        memcpy(copy, text, n);
    else
        arena->failed = true;
    return copy;
}

void *occ_arena_take(struct occ_arena *arena)
{
    void *blocks = arena->blocks;
    *arena = (struct occ_arena){0};
    return blocks;
}

void occ_arena_free_blocks(void *blocks)
{
    struct occ_arena_block *block = blocks;
    while (block) {
        struct occ_arena_block *next = block->next;
        free(block);
        block = next;
    }
}
