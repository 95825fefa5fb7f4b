/* Lanes: viewers drop events that overlap on a track without nesting. Kernels of a stream can overlap
 * (programmatic dependent launch, clock errors), so each launch goes into the first lane of its stream that
 * is free at its start. One thread. */
#pragma once

#include "layers.h"
#include "support/map.h"

enum { EXPORT_LANES_MAX = 256, EXPORT_STREAMS_MAX = 1 << 20 };

struct export_stream_key {
    int64_t device, run, context, stream;
};
struct export_lane {
    int64_t end_ns;
    uint32_t track;
    struct export_layers *layers; /* NULL: none yet */
};
struct export_stream {
    struct export_stream_key key;
    struct export_lane *lanes;
    size_t n_lanes, allocated;
};
struct export_lanes {
    struct export_stream *streams;
    size_t n, allocated, last; /* last: stream of the last launch */
    struct occ_map index;
};
void export_lanes_free(struct export_lanes *lanes);

/* Takes a lane for a launch until the launch's end; *ret_number is the lane's number in the stream. Launches
 * must be ordered by start. `track` of a new lane is 0, and the caller sets it. Returns NULL without memory,
 * or if there are too many streams or lanes. */
struct export_lane *export_lanes_take(struct export_lanes *lanes, const struct export_stream_key *key,
                                      int64_t start_ns, int64_t end_ns, unsigned *ret_number);
