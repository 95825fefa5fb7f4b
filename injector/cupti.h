/*
 * libcupti, opened at run time. Order of the search:
 *
 *   1. one that the program has mapped already (a second copy in one process is not what CUPTI was made for)
 *   2. $OCCTRACE_CUPTI; when given, nothing after it is tried
 *   3. libcupti.so.13, libcupti.so.12 where the loader finds them (LD_LIBRARY_PATH, ld.so.conf)
 *   4. $CUDA_HOME, $CUDA_PATH, /usr/local/cuda: extras/CUPTI/lib64, lib64, lib
 *
 * Accepted: 12.2 and newer but for 13.0 GA (crashes and hangs that its update 1 mended). A newer major version
 * than we know is accepted: its records begin as we know them. Never closed again (NODELETE; several versions crash in
 * dlclose), never cuptiFinalize.
 *
 * Threads: search and start by the thread that initialises CUDA, the functions as CUPTI allows.
 */
#ifndef OCC_INJECTOR_CUPTI_H
#define OCC_INJECTOR_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti_abi.h"

#define OCC_REASON_BYTES 240 /* as in a STATE record */

struct occ_cupti {
    void *handle; /* NULL: none */
    uint32_t version;
#define X(slot, symbol, need, parameters) uint32_t(*slot) parameters;
#include "cupti_table.def"
#undef X
};

struct occ_cupti_search {
    const char *configured; /* $OCCTRACE_CUPTI or "" */
    unsigned int next;      /* candidate to try */
};

/* Opens the next candidate that is a libcupti we can use. False: there is none (more); `reason` then says what was
 * wrong with the best one seen, if one was. */
bool occ_cupti_find(struct occ_cupti_search *search, struct occ_cupti *cupti, char reason[OCC_REASON_BYTES]);

/* The gate on cuptiGetVersion() alone; NULL or what is wrong. */
const char *occ_cupti_version_problem(uint32_t version);

/* Attributes, callbacks, kernel records on. 0, or CUPTI's code with `reason` set. */
uint32_t occ_cupti_start(struct occ_cupti *cupti, occ_cupti_buffer_requested *requested,
                         occ_cupti_buffer_completed *completed, bool *ret_zeroed,
                         char reason[OCC_REASON_BYTES]);

/* True for codes that another version of libcupti may not have. */
bool occ_cupti_is_version_trouble(uint32_t result);

#endif
