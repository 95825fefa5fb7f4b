/* Divides names of kernels and types into pieces, for kernel_names.c. Texts belong to the arena. Any
 * thread. */
#pragma once

#include <string.h>

#include "support/arena.h"
#include "support/cut.h"
#include "kernel_names.h"

enum {
    OCC_NAME_BYTES = 512,
    OCC_NAME_SHORT_ENOUGH = 24, /* longer texts are shortened */
    /* numbers of slots; the last slot of a kind holds all further text */
    ARGUMENTS = 24,
    PARTS = 8,
    FIRST_PART = ARGUMENTS,
    FIRST_PARAMETER = FIRST_PART + PARTS,
    SCOPE = FIRST_PARAMETER + ARGUMENTS,
    SLOTS,
};

/* A name in pieces. */
struct occ_name_pieces {
    const char *key, *head;   /* head, as key (several names may have the same) and as shown */
    const char *alone;        /* the text to show if the head is unique */
    const char *slots[SLOTS]; /* "": there is none */
};

/* A name in the making; text beyond the buffer is left out. */
struct occ_name_line {
    char text[OCC_NAME_BYTES];
    size_t n;
};

static inline void occ_name_put(struct occ_name_line *line, const char *text, size_t n)
{
    if (n >= sizeof line->text - line->n)
        return;
    memcpy(line->text + line->n, text, n);
    line->n += n;
}

static inline void occ_name_put_text(struct occ_name_line *line, const char *text)
{
    occ_name_put(line, text, strlen(text));
}

/* The text without namespaces, and without blanks after commas and between brackets. */
const char *occ_name_simplify(struct occ_arena *arena, const char *text);

void occ_name_cut_type(struct occ_arena *arena, const char *text, struct occ_name_pieces *ret_pieces);
void occ_name_cut_kernel(struct occ_arena *arena, const struct occ_kernel_name *kernel,
                         struct occ_name_pieces *ret_pieces);
