/* See holes.h. One thread. */
#include "holes.h"

#include <stdlib.h>

#include "store/gaps.h"
#include "support/array.h"

bool occ_holes_contain(struct occ_holes *holes, int64_t low, int64_t high)
{
    while (holes->at < holes->n && holes->list[holes->at].time.high <= low)
        holes->at++;
    for (size_t i = holes->at; i < holes->n && holes->list[i].time.low < high; i++)
        if ((uint64_t)(high - low) >= holes->list[i].gap_ns)
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
        if ((hole->gap_ns > 0) == is_partial && from_ns < until_ns)
            ns += (uint64_t)until_ns - (uint64_t)from_ns;
    }
    return ns;
}

/* Adds a hole. Periods overlap in a damaged file only; there the first period counts. False: no memory. */
static bool add_hole(struct occ_holes *holes, struct occ_hole hole)
{
    int64_t last_ns = holes->n ? holes->list[holes->n - 1].time.high : INT64_MIN;
    hole.time.low = hole.time.low > last_ns ? hole.time.low : last_ns;
    if (hole.time.low >= hole.time.high)
        return true;
    if (!occ_grow((void **)&holes->list, &holes->allocated, holes->n, SIZE_MAX, sizeof *holes->list))
        return false;
    holes->list[holes->n++] = hole;
    return true;
}

int occ_holes_read(struct occ_store *s, int64_t run, struct occ_holes *ret_holes, struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_query(s, OCC_SQL_HOLES, OCC_INTS(run));
    int rc = 0;
    while (occ_store_next(s, stmt, &rc, err))
        if (!add_hole(ret_holes,
                      (struct occ_hole){{sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1)},
                                        sqlite3_column_int(stmt, 2) ? OCC_GAP_SAMPLED_NS : 0}))
            rc = occ_no_memory(err);
    return rc;
}

void occ_holes_free(struct occ_holes *holes)
{
    free(holes->list);
    *holes = (struct occ_holes){0};
}
