/* CUPTI's activity records: the libcupti that delivers them, its attributes and functions. Never calls
 * cuptiFinalize. Threads: start by the one that initialises CUDA, the functions as CUPTI allows. */
#pragma once

#include "cupti/functions.h"
#include "cupti/library.h"
#include "nvtx/nvtx.h"
#include "ring/ring_abi.h"

static_assert(OCC_CUPTI_REASON_BYTES == OCC_REASON_BYTES, "reasons fit a STATE record");

struct occ_tracing {
    struct occ_cupti cupti;
    struct occ_cupti_activity call;
    const char *note; /* for the run's row: special treatment of this version and its reason; "": none */
    bool is_refused;  /* CUPTI was found and refused, but not because of another client */
    uint32_t signs;   /* bit n: row n of tracing.c's attributes was read back as set */
    struct occ_cupti_external external;
    const struct occ_nvtx_library *nvtx; /* NULL: no ranges are recorded */
    bool records_calls;                  /* launch calls are recorded for the ranges */
};

/* Opens libocctrace-nvtx.so; its ranges are recorded from now on whenever kernels are. false: no ranges;
 * `reason` says why. */
bool occ_tracing_add_ranges(struct occ_tracing *tracing, const char *self, char reason[OCC_REASON_BYTES]);

/* true: another client has changed an attribute set by the guest, as Kineto does at the end of a session. */
bool occ_tracing_is_reset(const struct occ_tracing *tracing);

/* Switches records of kernels on or off, and records needed against a known leak of the version. Returns a
 * CUPTI result. */
uint32_t occ_tracing_enable(struct occ_tracing *tracing, bool on);

/* Records calls that launch kernels, if there are ranges. Only the guest records these calls, so switching
 * them off is safe during another client's session, whose buffers would otherwise receive their records. */
void occ_tracing_record_calls(struct occ_tracing *tracing, bool on);

/* Registers again after another client's session and enables records. false: CUPTI refuses. */
bool occ_tracing_resume(struct occ_tracing *tracing);

/* Starts records of kernels in the first candidate that delivers them, with the callbacks of callbacks.c.
 * `configured` is $OCCTRACE_CUPTI or "". *ret_zeroed: the guest zeroes the buffers that CUPTI gets. false: no
 * records; `reason` says why. */
bool occ_tracing_start(struct occ_tracing *tracing, const char *configured, bool *ret_zeroed,
                       char reason[OCC_REASON_BYTES]);
