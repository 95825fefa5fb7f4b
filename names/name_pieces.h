/*
 * Divides names of kernels and types into pieces, for kernel_names.c. Texts belong to the arena, or to the
 * given names, which must outlive the pieces. Without memory, texts are "?" and arena->failed is set. Any
 * thread.
 */
#pragma once

#include <string.h>

#include "support/arena.h"
#include "support/cut.h"
#include "kernel_names.h"

enum {
    OCC_NAME_BYTES = 512,
    OCC_NAME_SHORT_ENOUGH = 24, /* longer texts are shortened */
    /* Slots of a name: template arguments, parts (the text behind arguments and parameters), parameters, and
     * the scope. The last slot of a kind holds all further text. */
    OCC_NAME_ARGUMENTS = 24, /* number of slots for arguments, which are the first, and for parameters */
    OCC_NAME_PARTS = 8,      /* number of slots for parts, the last part first */
    OCC_NAME_FIRST_PART = OCC_NAME_ARGUMENTS, /* indices of slots */
    OCC_NAME_FIRST_PARAMETER = OCC_NAME_FIRST_PART + OCC_NAME_PARTS,
    OCC_NAME_SCOPE = OCC_NAME_FIRST_PARAMETER + OCC_NAME_ARGUMENTS,
    OCC_NAME_SLOTS, /* number of all slots */
};

/* A name in pieces. */
struct occ_name_pieces {
    const char *key, *head;            /* the name without slots: to compare, and to show */
    const char *alone;                 /* text to show if no other name has the key */
    const char *slots[OCC_NAME_SLOTS]; /* "": the name has no text for the slot */
};

/* A name in the making. A text that does not fit whole is left out. */
struct occ_name_line {
    char text[OCC_NAME_BYTES]; /* not terminated */
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

/* Returns the text without namespaces, and without blanks after commas and between brackets. */
const char *occ_name_simplify(struct occ_arena *arena, const char *text);

/* Divides a template argument, a parameter or another text. `alone` is the simplified text if it is short,
 * else the identifier, with "<…>" if more follows. */
void occ_name_cut_type(struct occ_arena *arena, const char *text, struct occ_name_pieces *ret_pieces);
/* Divides a kernel's demangled name; key, head and alone are its short name. */
void occ_name_cut_kernel(struct occ_arena *arena, const struct occ_kernel_name *kernel,
                         struct occ_name_pieces *ret_pieces);
