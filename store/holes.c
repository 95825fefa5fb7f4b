/* See holes.h. */
#include "holes.h"

#include <stdlib.h>

#include "support/array.h"

int occ_holes_add(struct occ_holes *holes, struct occ_hole hole, struct occ_error *err)
{
    int64_t last_ns = holes->n ? holes->list[holes->n - 1].time.high : INT64_MIN;
    hole.time.low = hole.time.low > last_ns ? hole.time.low : last_ns;
    if (hole.time.low >= hole.time.high)
        return 0;
    if (!occ_grow((void **)&holes->list, &holes->allocated, holes->n, SIZE_MAX, sizeof *holes->list))
        return occ_no_memory(err);
    holes->list[holes->n++] = hole;
    return 0;
}

void occ_holes_end(struct occ_holes *holes, int64_t end_ns)
{
    struct occ_hole *last = holes->n ? &holes->list[holes->n - 1] : NULL;
    if (!last || last->time.high != INT64_MAX)
        return;
    last->time.high = end_ns;
    holes->n -= last->time.high <= last->time.low;
}

void occ_holes_free(struct occ_holes *holes)
{
    free(holes->list);
    *holes = (struct occ_holes){0};
}

bool occ_holes_hide_gap(struct occ_holes *holes, int64_t low, int64_t high)
{
    while (holes->at < holes->n && holes->list[holes->at].time.high <= low)
        holes->at++;
    for (size_t i = holes->at; i < holes->n && holes->list[i].time.low < high; i++)
        if ((uint64_t)(high - low) >= holes->list[i].recorded_below_ns)
            return true;
    return false;
}

uint64_t occ_holes_overlap(const struct occ_holes *holes, struct occ_span time, bool is_partial)
{
    uint64_t ns = 0;
    size_t low = 0, high = holes->n;
    while (low < high) { /* the first hole that ends after the begin of the time */
        size_t middle = low + (high - low) / 2;
        if (holes->list[middle].time.high <= time.low)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < holes->n && holes->list[i].time.low < time.high; i++) {
        const struct occ_hole *hole = &holes->list[i];
        int64_t from_ns = hole->time.low > time.low ? hole->time.low : time.low;
        int64_t until_ns = hole->time.high < time.high ? hole->time.high : time.high;
        if ((hole->recorded_below_ns > 0) == is_partial && from_ns < until_ns)
            ns += (uint64_t)until_ns - (uint64_t)from_ns;
    }
    return ns;
}
