/* Unrecorded time of runs whose launches were read in part, or are no longer stored. Pure; any thread. */
#pragma once

#include "holes.h"

/* A chunk of launches. */
struct occ_stored_part {
    int64_t id;
    size_t estimate; /* index of the estimate of its run and device */
    uint64_t launches;
    struct occ_span time; /* first start, last end */
    bool is_read;         /* its unrecorded time is known from its launches */
};

/* Chunks of a run on a GPU, ordered by first start. */
struct occ_stored_parts {
    const struct occ_stored_part *list;
    size_t n;
    struct occ_span time; /* only this time counts */
    double per_launch_ns; /* recorded time of the chunks that were read / their launches; NaN: unknown */
};

/* Returns the time in both spans; it is empty (low >= high) if they have none in common. */
static inline struct occ_span occ_span_common(struct occ_span a, struct occ_span b)
{
    return (struct occ_span){a.low > b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}

/* Returns the unrecorded nanoseconds of a time without stored launches: the holes; a hole with partial
 * recording counts with the part that the injector does not record. */
uint64_t occ_unrecorded_evicted(const struct occ_holes *holes, struct occ_span time);

/* Returns the unrecorded nanoseconds between chunks, by the rule of gaps between launches
 * (occ_holes_hide_gap()), and in the chunks that were not read: there each launch takes per_launch_ns, and
 * the rest of a hole with partial recording is unrecorded. Sets holes->at. */
uint64_t occ_unrecorded_beside(const struct occ_stored_parts *parts, struct occ_holes *holes);
