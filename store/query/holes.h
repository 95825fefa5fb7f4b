/* Holes of a stored run. One thread. */
#pragma once

#include "query.h"
#include "store/holes.h"

/* Reads the run's holes into *ret_holes, which is zeroed. Free it with occ_holes_free(), also after a
 * failure; then it is zeroed again. */
int occ_holes_read(struct occ_store *s, int64_t run, struct occ_holes *ret_holes, struct occ_error *err);
