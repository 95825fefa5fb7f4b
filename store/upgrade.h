/* Migrates a history of an older version to this version, without a daemon. No global state; any thread. */
#pragma once

#include <stdbool.h>

#include "support/error.h"

/* Result of occ_store_upgrade(). */
struct occ_upgrade {
    int from, to; /* schema versions; equal: already up to date */
    char *backup; /* path of the copy, malloc'ed, also on failure; NULL: no copy was made */
};
/* Migrates the file to this version's schema, like opening it for writing, but alone: OCC_E_BUSY if another
 * process has the file open. With `backup`, an unchanged copy FILE.schemaN stays beside the file and must not
 * exist before; if the copy fails, the file does not change. */
int occ_store_upgrade(const char *path, bool backup, struct occ_upgrade *ret_upgrade, struct occ_error *err);
