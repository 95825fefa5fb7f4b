/* The two forms of `occq show`: pages for people, JSON for programs. One thread (stdio). */
#ifndef OCC_CLI_SHOW_H
#define OCC_CLI_SHOW_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/json.h"
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

/* The same as members of the object that is open; `measured` NULL: nothing could have been. */
void show_json_analysis(struct cli_json *json, const struct occ_result *result,
                        const struct occ_measurement *measured, bool has_grid);
void show_json_dimensions(struct cli_json *json, const char *key, const uint32_t dimensions[3]);

/* What counters said (show_measured.c): launches that have values, by source; of the SMs. Nothing if none has. */
void show_measured(const struct occ_shape_row *row, const struct occ_measurement *measured);
bool show_has_stalls(const struct occ_measurement *measured);
/* A line where the launch of warps waited most for something that the formula does not name. */
void show_stall_reason(const struct occ_result *result, const struct occ_measurement *measured);
/* Is there a measured end that the waterfall can lead to? */
bool show_has_waterfall(const struct occ_shape_row *row, const struct occ_measurement *measured);
/* From 100 % down to what was measured: parts with their sources, and what may help. */
int show_waterfall(const struct occ_shape_row *row, const struct occ_measurement *measured,
                   struct occ_error *err);
/* The member "measured" of the object that is open. */
void show_json_measured(struct cli_json *json, const struct occ_shape_row *row,
                        const struct occ_measurement *measured);

/* "432x1x1" */
const char *show_dimensions(const uint32_t dimensions[3], char *buffer, size_t size);

#endif
