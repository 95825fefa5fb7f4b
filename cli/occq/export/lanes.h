/* Lanes: viewers drop events that overlap on a track without nesting, as kernels of a stream do (programmatic
 * dependent launch, clocks). Each launch goes into the first lane of its stream that is free at its start.
 * One thread. */
#pragma once

#include "export.h"
#include "support/map.h"

enum { EXPORT_LANES_MAX = 256, EXPORT_STREAMS_MAX = 1 << 20 };

struct export_stream_key {
    int64_t device, run, context, stream;
};
struct export_lane {
    int64_t end_ns;
    uint32_t track;
};
struct export_stream {
    struct export_stream_key key;
    struct export_lane *lanes;
    size_t n_lanes, allocated;
};
struct export_lanes {
    struct export_stream *streams;
    size_t n, allocated, last; /* last: of the launch before */
    struct occ_map index;
};
void export_lanes_free(struct export_lanes *lanes);

/* The lane for a launch, which is taken until its end, and in *ret_number its number in the stream. Launches
 * come in the order of their starts. Its `track` is 0 in a new lane: the caller's to set. NULL: no memory, or
 * all EXPORT_LANES_MAX are taken. */
struct export_lane *export_lanes_take(struct export_lanes *lanes, const struct export_stream_key *key,
                                      int64_t start_ns, int64_t end_ns, unsigned *ret_number);
