/* Memory that is freed all at once, such as the strings of an answer. One thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct occ_arena_block {
    struct occ_arena_block *last;
    _Alignas(max_align_t) char bytes[];
};

struct occ_arena {
    struct occ_arena_block *blocks; /* the newest block; free with occ_arena_free() */
    bool failed;                    /* an allocation failed */
    char *text;                     /* position of the next text, in a block for texts */
    size_t text_bytes;              /* bytes left at `text` */
};

/* Bytes of a block for texts. A text longer than an eighth has a block of its own. */
enum { OCC_ARENA_TEXTS = 4096 };

/* Zeroed; NULL (failed): no memory. */
static inline void *occ_arena_get(struct occ_arena *arena, size_t n, size_t size)
{
    struct occ_arena_block *block =
        n < (PTRDIFF_MAX - sizeof *block) / size ? calloc(1, sizeof *block + n * size) : NULL;
    arena->failed |= !block;
    if (!block)
        return NULL;
    block->last = arena->blocks;
    arena->blocks = block;
    return block->bytes;
}

/* `n` zeroed bytes without alignment; NULL (failed): no memory. */
static inline char *occ_arena_bytes(struct occ_arena *arena, size_t n)
{
    if (n > OCC_ARENA_TEXTS / 8)
        return occ_arena_get(arena, n, 1);
    if (n > arena->text_bytes) {
        arena->text = occ_arena_get(arena, OCC_ARENA_TEXTS, 1);
        arena->text_bytes = arena->text ? OCC_ARENA_TEXTS : 0;
    }
    char *bytes = arena->text;
    if (bytes) {
        arena->text += n;
        arena->text_bytes -= n;
    }
    return bytes;
}

/* The first `n` bytes of a text as a text; "?" (failed) without memory. */
static inline const char *occ_arena_part(struct occ_arena *arena, const char *text, size_t n)
{
    char *copy = occ_arena_bytes(arena, n + 1);
    return copy ? memcpy(copy, text, n) : "?";
}

/* A copy that lives as long as the arena; "?" for NULL, and (failed) without memory. */
static inline const char *occ_arena_copy(struct occ_arena *arena, const char *text)
{
    return text ? occ_arena_part(arena, text, strlen(text)) : "?";
}

static inline void occ_arena_free(struct occ_arena_block *blocks)
{
    while (blocks) {
        struct occ_arena_block *last = blocks->last;
        free(blocks);
        blocks = last;
    }
}
