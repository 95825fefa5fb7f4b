/*
 * Latency hiding: the warps that an SM needs to issue an instruction in every cycle, beside its resident
 * warps. By Little's law, for a scheduler that issues at most one instruction in a cycle:
 *
 *   instructions in flight = latency in cycles x 1 instruction per cycle
 *   needed warps per SM    = schedulers per SM x latency / independent instructions of a warp
 *
 * More warps matter only below the needed number; independent instructions in each warp have the same effect.
 * Needed warps are no prediction of time: they assume that more warps do not increase the latency, which
 * queues of a busy unit do.
 *
 * The latency is one of two:
 *   MEASURED  between two instructions of a warp, all waits included: resident warps per scheduler /
 *             instructions that the scheduler issues in a cycle, both of active cycles. Independent
 *             instructions shorten it, so the formula above has 1 for them.
 *   ASSUMED   from an arithmetic instruction to an instruction that needs its result, as NVIDIA documents it
 *             for the architecture. Memory takes hundreds of cycles and needs more.
 *
 * Pure like the model: no allocation, no I/O, any thread.
 */
#pragma once

#include "waterfall.h"

#ifdef __cplusplus
extern "C" {
#endif

enum occ_latency_source { OCC_LATENCY_UNKNOWN, OCC_LATENCY_ASSUMED, OCC_LATENCY_MEASURED };

struct occ_latency {
    enum occ_latency_source source; /* UNKNOWN: all numbers are NaN */
    double cycles;
    double resident_warps;             /* per active SM; MEASURED: the mean over time */
    double needed_warps, needed_error; /* per SM; the standard error is NaN if it is unknown */
    /* Independent instructions per warp that hide the latency with the resident warps; MEASURED: a factor of
     * the present ones, whose number is not known. At least 1. */
    double independent;
};

/* Cycles of dependent arithmetic, documented for a compute capability; NaN: NVIDIA documents none. */
double occ_arithmetic_latency(uint32_t cc);

/* `resident_warps`: per SM, by the model. `independent`: independent instructions of a warp; not above 1, or
 * NaN: 1. `measured` NULL, or without issue rate or achieved occupancy: the latency is assumed. */
struct occ_latency occ_latency_of(const struct occ_device *device, double resident_warps, double independent,
                                  const struct occ_measurement *measured);

/* True if the resident warps, with `independent` instructions each, hide the latency. False: UNKNOWN. */
bool occ_latency_is_hidden(const struct occ_latency *latency);

#ifdef __cplusplus
}
#endif
