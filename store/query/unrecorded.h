/* Unrecorded time of runs whose launches were read in part, or are no longer stored. Pure. */
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
    double per_launch_ns; /* mean recorded time per launch; NaN: unknown */
};

static inline struct occ_span occ_span_common(struct occ_span a, struct occ_span b)
{
    return (struct occ_span){a.low > b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}

/* Returns the unrecorded nanoseconds of a time without stored launches: holes, of those with partial
 * recording the part that the injector does not record. */
uint64_t occ_unrecorded_evicted(const struct occ_holes *holes, struct occ_span time);

/* Returns the unrecorded nanoseconds between chunks, by the rule of gaps between launches, and in the chunks
 * that were not read: there the launches take their mean recorded time, and holes are the rest. */
uint64_t occ_unrecorded_beside(const struct occ_stored_parts *parts, struct occ_holes *holes);
