/* Prints the parts of `occq show` for people. One thread (stdio). */
#pragma once

#include "cli/kernels/show.h"
#include "cli/options.h"

/* occq show --hit-rate. */
extern const struct cli_command cli_show_hit_rate;

/* Prints the answer about a group: names, the cause, the change, its saving and the source of the occupancy,
 * then the launch configurations and the limit. Its first lines fit on a screen of 24 lines. */
int show_answer(const struct show_group *group, struct occ_error *err);
/* Prints everything about each shown launch configuration. */
int show_pages(const struct show_group *group, struct occ_error *err);
/* Prints Nsight Compute's values of each shown launch configuration. */
void show_ncu_pages(const struct show_group *group);
/* Prints the definitions of the terms. */
void show_definitions(void);

/* Prints a name of a recording, sanitised. */
void show_name(const char *indent, const char *name);

/* Fills group->nearest for --with ncu. Sets *found if a report has the kernel. */
int show_find_nearest(struct occ_store *store, struct show_group *group, bool *found, struct occ_error *err);
/* Prints the nearest configuration; nothing without --with ncu, or if a report has the configuration itself.
 */
void show_nearest(const struct show_group *group, size_t i);
