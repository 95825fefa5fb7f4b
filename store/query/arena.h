/* Memory that is freed all at once: the strings of an answer. One thread at a time. */
#ifndef OCC_STORE_ARENA_H
#define OCC_STORE_ARENA_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct occ_arena_text {
    struct occ_arena_text *last;
    char text[];
};

struct occ_arena {
    struct occ_arena_text *texts; /* the newest; to be freed with occ_arena_free() */
    bool failed;                  /* some copy could not be made */
};

/* A copy that lives as long as the arena; "?" for NULL, and (failed) without memory. */
static inline const char *occ_arena_copy(struct occ_arena *arena, const char *text)
{
    if (!text)
        return "?";
    size_t n = strlen(text) + 1;
    struct occ_arena_text *copy = malloc(sizeof *copy + n);
    arena->failed |= !copy;
    if (!copy)
        return "?";
    copy->last = arena->texts;
    arena->texts = copy;
    return memcpy(copy->text, text, n);
}

static inline void occ_arena_free(struct occ_arena_text *texts)
{
    while (texts) {
        struct occ_arena_text *last = texts->last;
        free(texts);
        texts = last;
    }
}

#endif
