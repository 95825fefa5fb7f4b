/* `occtraced --migrate`: histories of an older version become ones of this version. No state; any thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "support/error.h"

/* `path`: a history, or a directory with histories (history.db) in it and in its owners' directories. Goes on
 * after one that fails, and prints a line for each; the first failure is returned. */
int occ_upgrade_histories(const char *path, bool backup, FILE *out, struct occ_error *err);
