/* `occtraced --migrate`: upgrades histories of an older version to this version's schema. No state; any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "support/error.h"

/* `path`: a history, or a directory with histories (history.db) in it and in its owners' directories. Prints
 * a line for each history and continues after a failure; returns the first failure. */
int occ_upgrade_histories(const char *path, bool backup, FILE *out, struct occ_error *err);
