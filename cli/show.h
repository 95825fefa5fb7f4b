/* The two forms of `occq show`: pages for people, JSON for programs. One thread (stdio). */
#ifndef OCC_CLI_SHOW_H
#define OCC_CLI_SHOW_H

#include <stdbool.h>
#include <stddef.h>

#include "json.h"
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

/* What the model says about a launch: marks, limits, waves, occupancies, causes. Of `row`: launch, limits, result and
 * launches (0: none could have been measured). `has_grid` false: nobody said how many blocks there are, so nothing
 * about waves; the result is then one full wave's. */
int show_analysis(const struct occ_shape_row *row, bool has_grid, struct occ_error *err);

/* The same as members of the object that is open. */
void show_json_analysis(struct cli_json *json, const struct occ_result *result, bool has_grid);
void show_json_dimensions(struct cli_json *json, const char *key, const uint32_t dimensions[3]);

/* "432x1x1" */
const char *show_dimensions(const uint32_t dimensions[3], char *buffer, size_t size);

#endif
