/* CUPTI's activity records: which libcupti delivers them, with which attributes, and its functions. Never
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
    const char *note; /* for the run's row: how this version is used otherwise, and why; "": as usual */
    bool is_refused;  /* CUPTI was there and refused, not for another client */
    uint32_t signs;   /* bit n: row n of tracing.c's attributes read as we had set it */
    struct occ_cupti_external external;
    const struct occ_nvtx_library *nvtx; /* NULL: launches do not know their ranges */
    bool records_calls;                  /* for these */
};

/* Opens libocctrace-nvtx.so, whose ranges are from now on recorded whenever kernels are. False, with the
 * reason: there are no ranges. */
bool occ_tracing_add_ranges(struct occ_tracing *tracing, const char *self, char reason[OCC_REASON_BYTES]);

/* True: another client has set an attribute of ours, as Kineto does at the end of a session. */
bool occ_tracing_is_reset(const struct occ_tracing *tracing);

/* Switches records of kernels on or off, and what a version's known leak demands. A result of CUPTI. */
uint32_t occ_tracing_enable(struct occ_tracing *tracing, bool on);

/* Whether calls that launch kernels are recorded, if there are ranges: by nobody else but us, so that off is
 * safe in another client's session, in which their records would go into its buffers. */
void occ_tracing_record_calls(struct occ_tracing *tracing, bool on);

/* Registers again after another client, and enables records. False: CUPTI refuses. */
bool occ_tracing_resume(struct occ_tracing *tracing);

/* Starts records of kernels in the first candidate that delivers them; the callbacks are those of
 * callbacks.c. `configured` is $OCCTRACE_CUPTI or "". *ret_zeroed: we zero the buffers that CUPTI gets.
 * False, with the reason: there are no records. */
bool occ_tracing_start(struct occ_tracing *tracing, const char *configured, bool *ret_zeroed,
                       char reason[OCC_REASON_BYTES]);
