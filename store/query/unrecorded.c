/* See unrecorded.h. One thread. */
#include "unrecorded.h"

#include <math.h>

#include "store/gaps.h"

/* Unrecorded part of a hole with partial recording: the injector records one second in ten. */
#define UNSAMPLED_RATIO 0.9

uint64_t occ_unrecorded_evicted(const struct occ_holes *holes, struct occ_span time)
{
    return occ_holes_overlap(holes, time, false) +
           (uint64_t)(UNSAMPLED_RATIO * (double)occ_holes_overlap(holes, time, true));
}

/* Returns the unrecorded time of a chunk that was not read, after `since_ns`. */
static uint64_t unread_ns(const struct occ_stored_parts *parts, const struct occ_stored_part *chunk,
                          int64_t since_ns, const struct occ_holes *holes)
{
    struct occ_span time = occ_span_common(chunk->time, parts->time);
    time.low = time.low > since_ns ? time.low : since_ns;
    uint64_t full_ns = occ_holes_overlap(holes, time, false);
    double partial_ns = (double)occ_holes_overlap(holes, time, true);
    double length_ns = (double)time.high - (double)time.low; /* a damaged file may have any times */
    double all_ns = (double)chunk->time.high - (double)chunk->time.low;
    if (partial_ns <= 0 || length_ns < OCC_GAP_SAMPLED_NS)
        return full_ns;
    double launches = (double)chunk->launches * (length_ns / all_ns);
    double rest_ns = isnan(parts->per_launch_ns)
                         ? UNSAMPLED_RATIO * partial_ns
                         : length_ns - (double)full_ns - parts->per_launch_ns * launches;
    rest_ns = rest_ns < partial_ns ? rest_ns : partial_ns;
    return full_ns + (rest_ns > 0 ? (uint64_t)rest_ns : 0);
}

uint64_t occ_unrecorded_beside(const struct occ_stored_parts *parts, struct occ_holes *holes)
{
    uint64_t ns = 0;
    int64_t end_ns = INT64_MIN;
    holes->at = 0;
    for (size_t i = 0; i < parts->n; i++) {
        struct occ_span time = occ_span_common(parts->list[i].time, parts->time);
        if (i > 0 && time.low > end_ns && occ_holes_hide_gap(holes, end_ns, time.low))
            ns += (uint64_t)time.low - (uint64_t)end_ns;
        if (!parts->list[i].is_read)
            ns += unread_ns(parts, &parts->list[i], end_ns, holes);
        end_ns = time.high > end_ns ? time.high : end_ns;
    }
    return ns;
}

int occ_store_unrecorded(struct occ_store *s, int64_t run, int64_t low_ns, int64_t high_ns, uint64_t *ret_ns,
                         struct occ_error *err)
{
    struct occ_holes holes = {0};
    int rc = occ_holes_read(s, run, &holes, err);
    *ret_ns = rc == 0 ? occ_unrecorded_evicted(&holes, (struct occ_span){low_ns, high_ns}) : 0;
    occ_holes_free(&holes);
    return rc;
}
