/* Holes of a stored run. One thread. */
#pragma once

#include "query.h"
#include "store/holes.h"

int occ_holes_read(struct occ_store *s, int64_t run, struct occ_holes *ret_holes, struct occ_error *err);
