/* The pages of `occq show` for people. One thread (stdio). */
#pragma once

#include "cli/kernels/show.h"

int show_text(const struct show_group *group, struct occ_error *err);

/* For --with ncu: group->nearest; *found becomes true if a report has the kernel. */
int show_find_nearest(struct occ_store *store, struct show_group *group, bool *found, struct occ_error *err);
/* Prints nothing if it was not looked for, or the configuration itself was found. */
void show_nearest(const struct show_group *group, size_t i);
