/*
 * Does occupancy matter here? More warps hide latency that is not hidden otherwise; if a unit of the device
 * is busy already, or if the grid has no blocks for more warps, they bring nothing. Decided from counter
 * values, ours or Nsight Compute's.
 *
 * Sources of the rule: Nsight Compute's rule "Speed Of Light" (its messages in public reports of 2021 to
 * 2025) names throughputs below 60 % of the peak as a sign of latency, and above 80 % as the point from which
 * work has to move to another unit; its rule "Launch Statistics" names a grid of less than one full wave too
 * small. Its Profiling Guide (section Scheduler Statistics): a scheduler issues at most one instruction in a
 * cycle, and none without an eligible warp. The rule states the possible gain of more warps per SM, not an
 * actual gain: units that are not counted (FP64, special functions, instruction fetch) may be the limit.
 *
 * Pure like the model: no allocation, no I/O, any thread.
 */
#pragma once

#include "occupancy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Throughput as a part of the peak. COMPUTE and MEMORY are Nsight Compute's: each is the busiest of many
 * units. L1 and L2 are the units that move the most data among the units that one pass of sampling counts.
 * X(NAME, id, text) */
#define OCC_HW_UNITS(X)                                                                                      \
    X(ISSUE, "issue_active", "issue active") /* of active cycles; the others: of elapsed ones */             \
    X(DRAM, "dram_throughput", "DRAM")                                                                       \
    X(L2, "l2_throughput", "L2")                                                                             \
    X(L1, "l1_throughput", "L1 and shared memory")                                                           \
    X(TENSOR, "tensor_active", "tensor cores")                                                               \
    X(COMPUTE, "compute_throughput", "compute")                                                              \
    X(MEMORY, "memory_throughput", "memory")

#define OCC_HW_ENUMERATOR(name, id, text) OCC_HW_##name,
enum occ_hw_unit { OCC_HW_UNITS(OCC_HW_ENUMERATOR) OCC_HW_COUNT };

/* Ratios; NaN (or an impossible value: negative, above 2): not measured. */
struct occ_hw_utilization {
    double ratio[OCC_HW_COUNT];
    double issue_error, throughput_error; /* standard errors of ISSUE and of the other units; NaN: unknown */
};

/* X(NAME, id, text) */
#define OCC_BOUNDS(X)                                                                                        \
    X(NOT_MEASURED, "not_measured", "not measured: whether more warps would help is not known")              \
    X(TOO_LITTLE_WORK, "too_little_work",                                                                    \
      "too little work: the grid fills less than one wave, more warps per SM would have no blocks")          \
    X(LATENCY, "latency", "latency-bound: more warps would help, as would more independent work in each")    \
    X(BETWEEN, "between", "between latency- and throughput-bound: more warps may help a little")             \
    X(THROUGHPUT, "throughput", "throughput-bound: more warps would not help")

#define OCC_BOUND_ENUMERATOR(name, id, text) OCC_BOUND_##name,
enum occ_bound { OCC_BOUNDS(OCC_BOUND_ENUMERATOR) OCC_BOUND_COUNT };

#define OCC_BOUND_LATENCY_MAX    0.6 /* limits for the busiest unit; 95 % errors count against each verdict */
#define OCC_BOUND_THROUGHPUT_MIN 0.8

/* The unit with the largest ratio; OCC_HW_COUNT: none was measured. */
enum occ_hw_unit occ_busiest_unit(const struct occ_hw_utilization *utilization);

/* Decides by the busiest unit. If some of our units, or one of Nsight Compute's two, were not counted, the
 * missing unit may be the busiest, and the verdict is neither LATENCY nor BETWEEN. `result` NULL: the grid is
 * unknown. For a grid below one wave, the model alone decides. */
enum occ_bound occ_bound_of(const struct occ_hw_utilization *utilization, const struct occ_result *result);

/* Identifiers and texts. Never NULL. */
const char *occ_hw_unit_word(enum occ_hw_unit unit);
const char *occ_hw_unit_text(enum occ_hw_unit unit);
const char *occ_bound_word(enum occ_bound bound);
const char *occ_bound_text(enum occ_bound bound);

#ifdef __cplusplus
}
#endif
