/* Times of a run without recording, or with partial recording, and the rule for gaps between its launches.
 * One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

struct occ_span {
    int64_t low, high; /* low <= start < high */
};

struct occ_hole {
    struct occ_span time;       /* high INT64_MAX: the hole has no end yet */
    uint64_t recorded_below_ns; /* shorter gaps in the hole were recorded; 0: nothing was recorded */
};

struct occ_holes {
    struct occ_hole *list; /* ordered by time, without overlap */
    size_t n, allocated;
    size_t at; /* index of the first hole that ends after the begin of the last gap */
};

/* Adds a hole after the others; its part before the end of the last one is dropped. OCC_E_NO_MEMORY. */
int occ_holes_add(struct occ_holes *holes, struct occ_hole hole, struct occ_error *err);
/* Ends the last hole if it has no end yet; removes it if it would end before its begin, or at it. */
void occ_holes_end(struct occ_holes *holes, int64_t end_ns);
void occ_holes_free(struct occ_holes *holes);

/* Returns true if the gap overlaps a hole and is not shorter than its recorded_below_ns: then the whole gap
 * counts as unrecorded. Call for gaps in the order of time; `at` 0 starts again. */
bool occ_holes_hide_gap(struct occ_holes *holes, int64_t low, int64_t high);

/* Returns the nanoseconds of holes in the time. is_partial: of holes with partial recording, else of holes
 * without recording. */
uint64_t occ_holes_overlap(const struct occ_holes *holes, struct occ_span time, bool is_partial);
