/*
 * Curves: the model's results for a launch over the values of one parameter. A value that cannot be launched
 * gives a point with its status and no numbers.
 *
 * Pure like the model: no allocation, no I/O, any thread.
 */
#pragma once

#include "occupancy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, id, text). Minimum, maximum and step: occ_sweep_range(). */
#define OCC_AXES(X)                                                                                          \
    X(BLOCK_SIZE, "block_size", "threads per block")                                                         \
    X(REGISTERS, "registers", "registers per thread")                                                        \
    X(SMEM, "shared_memory", "bytes of shared memory per block")                                             \
    X(BARRIERS, "barriers", "barriers per block")                                                            \
    X(CLUSTER, "cluster", "blocks per cluster")

#define OCC_AXIS_ENUMERATOR(name, id, text) OCC_AXIS_##name,
enum occ_axis { OCC_AXES(OCC_AXIS_ENUMERATOR) OCC_AXIS_COUNT };

struct occ_range {
    uint32_t first, last, step;
};

/* Far above the number of values of any axis of a GPU (shared memory: 1816 on an H100). */
#define OCC_SWEEP_MAX_STEPS 4096u

struct occ_point {
    uint32_t value;
    enum occ_status status; /* not OCC_OK: the rest is 0 */
    uint32_t blocks_per_sm;
    uint32_t warps_per_sm;
    uint32_t limiters;
    double theoretical;
    /* warps of a full wave / all warps of the device: below theoretical where clusters do not fit evenly */
    double full_wave;
};

/* The range of an axis on a device: threads in steps of a warp, registers in steps of 1, shared memory in
 * allocation units from 0 to the opt-in maximum, barriers from 1 to 16, clusters in steps of 1. Where a
 * device has no limit of barriers or no clusters, the only value is 1. At most OCC_SWEEP_MAX_STEPS steps: the
 * limits of an impossible device get a multiple of the step. False: impossible device or axis. */
bool occ_sweep_range(const struct occ_device *device, enum occ_axis axis, struct occ_range *range);

/* The launch's own value on an axis (0 barriers: unknown). */
uint32_t occ_sweep_present(const struct occ_launch *launch, enum occ_axis axis);

/*
 * The points of `range`, ascending. Returns their number and stores the first `max`.
 *   BLOCK_SIZE  one-dimensional; the grid gets at least as many threads, in whole clusters
 *   SMEM        static + dynamic; dynamic is reduced first; opting in is assumed
 *   CLUSTER     along x, the grid rounded up to whole clusters; the driver's number of active clusters holds
 * for the launch's own size only
 */
size_t occ_sweep(const struct occ_device *device, const struct occ_launch *launch, enum occ_axis axis,
                 const struct occ_range *range, struct occ_point *points, size_t max);

const char *occ_axis_word(enum occ_axis axis);
const char *occ_axis_text(enum occ_axis axis);

#ifdef __cplusplus
}
#endif
