/* Prints the pages of `occq show` for people. One thread (stdio). */
#pragma once

#include "cli/kernels/show.h"

int show_text(const struct show_group *group, struct occ_error *err);

/* Fills group->nearest for --with ncu. Sets *found if a report has the kernel. */
int show_find_nearest(struct occ_store *store, struct show_group *group, bool *found, struct occ_error *err);
/* Prints the nearest configuration; nothing without --with ncu, or if a report has the configuration itself.
 */
void show_nearest(const struct show_group *group, size_t i);
