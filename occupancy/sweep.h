/*
 * Curves: a launch with one of its parameters varied and everything else as it is. The model is run for each
 * value; what cannot be launched is a point with its status and no numbers.
 *
 * Pure like the model: no allocation, no I/O, any thread.
 */
#ifndef OCC_OCCUPANCY_SWEEP_H
#define OCC_OCCUPANCY_SWEEP_H

#include "occupancy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, word, text). Smallest, largest and step of each: occ_sweep_range(). */
#define OCC_AXES(X)                                                                                          \
    X(BLOCK_SIZE, "block_size", "threads per block")                                                         \
    X(REGISTERS, "registers", "registers per thread")                                                        \
    X(SMEM, "shared_memory", "bytes of shared memory per block")                                             \
    X(BARRIERS, "barriers", "barriers per block")                                                            \
    X(CLUSTER, "cluster", "blocks per cluster")

enum occ_axis {
#define X(name, word, text) OCC_AXIS_##name,
    OCC_AXES(X)
#undef X
        OCC_AXIS_COUNT
};

struct occ_range {
    uint32_t first, last, step;
};

struct occ_point {
    uint32_t value;
    enum occ_status status; /* not OCC_OK: the rest is 0 */
    uint32_t blocks_per_sm;
    uint32_t warps_per_sm;
    uint32_t limiters;
    double theoretical;
    /* warps of a full wave / all warps of the device: below theoretical where clusters do not fit evenly */
    double full_wave;
    double expected_elapsed;
};

/* What an axis can take on a device: threads by the warp up to the most, registers by 1 up to the most a thread
 * may have, shared memory by its allocation unit from 0 to the most after opting in, barriers from 1 to 16,
 * clusters by 1. An axis that a device does not have (barriers, clusters) is the one value 1. False: impossible
 * device or axis. */
bool occ_sweep_range(const struct occ_device *device, enum occ_axis axis, struct occ_range *range);

/* The launch's own value on an axis (0 barriers where they are not known). */
uint32_t occ_sweep_present(const struct occ_launch *launch, enum occ_axis axis);

/*
 * The points of `range`, ascending; returns how many there are and writes the first `max`.
 *   BLOCK_SIZE  one-dimensional; the grid is scaled to as many threads
 *   SMEM        static + dynamic, dynamic is changed first; taken as opted in
 *   CLUSTER     along x, the grid rounded up to whole clusters; the driver's number of active clusters counts for
 *               the launch's own size only
 */
size_t occ_sweep(const struct occ_device *device, const struct occ_launch *launch, enum occ_axis axis,
                 const struct occ_range *range, struct occ_point *points, size_t max);

const char *occ_axis_word(enum occ_axis axis);
const char *occ_axis_text(enum occ_axis axis);

#ifdef __cplusplus
}
#endif

#endif
