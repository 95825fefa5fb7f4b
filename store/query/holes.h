/* Times of a run without recording, or with partial recording. One thread. */
#pragma once

#include "query.h"

struct occ_hole {
    struct occ_span time;
    uint64_t gap_ns; /* a shorter gap in the hole was recorded; 0: nothing was recorded in the hole */
};

struct occ_holes {
    struct occ_hole *list; /* ordered by time, without overlap */
    size_t n, allocated;
    size_t at; /* index of the first hole that ends after the begin of the last gap */
};

int occ_holes_read(struct occ_store *s, int64_t run, struct occ_holes *ret_holes, struct occ_error *err);
void occ_holes_free(struct occ_holes *holes);

/* True if the gap overlaps a hole: all of it counts as unrecorded. Call for gaps in the order of time. */
bool occ_holes_contain(struct occ_holes *holes, int64_t low, int64_t high);

/* Returns the nanoseconds of holes in the time. is_partial: of holes with partial recording, else of holes
 * without recording. */
uint64_t occ_holes_overlap(const struct occ_holes *holes, struct occ_span time, bool is_partial);
