/* A history of an older version becomes one of this version, without a daemon. No global state; any thread. */
#pragma once

#include <stdbool.h>

#include "support/error.h"

/* What occ_store_upgrade() did. */
struct occ_upgrade {
    int from, to; /* schema; equal: there was nothing to do */
    char *backup; /* malloc'ed, also on failure; NULL: none was made */
};
/* Brings the file to this version's schema, as opening it for writing does, but alone: OCC_E_BUSY while
 * anybody has it open. With `backup`, a copy as it was is left beside it, FILE.schemaN, which must not be
 * there; a copy that fails changes nothing. */
int occ_store_upgrade(const char *path, bool backup, struct occ_upgrade *ret_upgrade, struct occ_error *err);
