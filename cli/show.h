/* The two forms of `occq show`: pages for people, JSON for programs. One thread (stdio). */
#ifndef OCC_CLI_SHOW_H
#define OCC_CLI_SHOW_H

#include <stddef.h>

#include "store/store.h"

/* Shapes of one kernel on one device. */
struct show_group {
    const struct occ_shape_row *const *shapes; /* most time first; at least one */
    size_t n;
    size_t shown; /* the first of them */
};

int show_text(const struct show_group *group, struct occ_error *err);

/* The whole document: all groups. */
void show_json(const struct show_group *groups, size_t n);

/* "432x1x1" */
const char *show_dimensions(const uint32_t dimensions[3], char *buffer, size_t size);

#endif
