/* Lines of `occtraced --status`: one per owner's history, the worst first. One thread. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "support/error.h"

struct occ_owner_line;

struct occ_owner_lines {
    struct occ_owner_line *lines;
    size_t n, allocated;
};

/* Adds the history of an answer (support/control.h), which is checked as untrusted input. */
int occ_owner_lines_add(struct occ_owner_lines *lines, const char *answer, struct occ_error *err);
/* Prints the lines below a line of headings. Order, worst first: histories that accept no launches, more lost
 * launches, more failed writes, a fuller ring, a fuller quota. An unknown value is "-". */
void occ_owner_lines_print(struct occ_owner_lines *lines, FILE *out);
void occ_owner_lines_free(struct occ_owner_lines *lines);
