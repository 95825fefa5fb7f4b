/* See ranges.h. */
#include "ranges.h"

#include <sys/mman.h>

#include "ring/lean_map.h"

bool occ_ranges_start(struct occ_ranges *ranges, struct occ_ring_producer *ring,
                      const struct occ_nvtx_library *library)
{
    void *map = occ_lean_map(-1, OCC_RANGES_CALLS * sizeof *ranges->calls);
    ranges->ring = ring;
    ranges->library = library;
    ranges->calls = map == MAP_FAILED ? NULL : map;
    return ranges->calls != NULL;
}

void occ_ranges_add(struct occ_ranges *ranges, const struct occ_cupti_external_record *record)
{
    if (record->external_kind != OCC_CUPTI_EXTERNAL_KIND || record->external_id > OCC_NVTX_OTHER)
        return; /* an id of another client */
    ranges->calls[record->correlation % OCC_RANGES_CALLS] =
        (struct occ_ranges_call){record->correlation, (uint32_t)record->external_id};
}

/* 0: no such path, or the log is full. */
static uint16_t log_range(struct occ_ranges *ranges, uint32_t range)
{
    char path[OCC_RANGE_PATH_MAX_BYTES];
    uint32_t bytes = (uint32_t)ranges->library->path(range, path, sizeof path) + 1;
    struct occ_record_range record = {
        .record.type = OCC_RECORD_RANGE, .id = ranges->count, .path_bytes = bytes};
    if (bytes == 1 || !occ_ring_log(ranges->ring, &record.record, sizeof record, path, bytes))
        return 0;
    return ++ranges->count;
}

uint32_t occ_ranges_of(struct occ_ranges *ranges, uint32_t correlation)
{
    const struct occ_ranges_call *call = &ranges->calls[correlation % OCC_RANGES_CALLS];
    if (call->range == 0 || call->correlation != correlation)
        return 0;
    uint16_t *logged_as = &ranges->logged_as[call->range];
    if (*logged_as == 0)
        *logged_as = log_range(ranges, call->range);
    return *logged_as;
}
