/*
 * libocctrace-nvtx.so (occtrace --nvtx): the open NVTX ranges of each thread. The NVTX in the program loads
 * the library through NVTX_INJECTION64_PATH at its first call, possibly before the guest starts; the guest
 * opens the same file. Each change of a thread's ranges passes CUPTI the id of the innermost range's path as
 * external correlation id: CUPTI then writes it next to the launches of that thread.
 *
 * - A path is the names of the open push/pop ranges of a thread, outermost first. Digits become '#', so that
 *   "step 17" and "step 18" are one path; names longer than OCC_NVTX_NAME_BYTES end with an ellipsis, stacks
 *   have OCC_NVTX_DEPTH levels.
 * - At most OCC_NVTX_PATHS paths, registered strings and domains together; further ranges become
 *   OCC_NVTX_OTHER, as do all ranges of further domains, which count as one domain.
 * - Ranges of nvtxRangeStart need not nest and may end in another thread: they are ignored.
 *
 * No locks, no allocation, no waiting: the state stays valid in a child of fork. It is global and never
 * freed. Threads: any. Source: nvtx3/nvtxDetail of the CUDA toolkit (nvtxTypes.h, nvtxInit.h); a test
 * compares.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cupti/functions.h"

/* Both libraries come from one build; different numbers mean a mixture of versions. */
#define OCC_NVTX_ABI 1u

#define OCC_NVTX_PATHS      4096u
#define OCC_NVTX_NAME_BYTES 112u /* with the NUL */
#define OCC_NVTX_DEPTH      64u
#define OCC_NVTX_OTHER      OCC_NVTX_PATHS /* the id of "(other ranges)" */

struct occ_nvtx_library {
    uint32_t abi; /* OCC_NVTX_ABI */
    /* Calls this CUPTI from now on, ignoring results; NULL: no more calls. `cupti` must stay valid for ever.
     * Async-signal-safe. */
    void (*attach)(const struct occ_cupti_external *cupti);
    /* Writes the path of an id: names joined by '/', with a NUL; a long path is shortened to an ellipsis and
     * its end. Returns its length; 0: no such path. */
    size_t (*path)(uint64_t id, char *text, size_t size);
};

/* The library exports this object and InitializeInjectionNvtx2 only. */
extern const struct occ_nvtx_library occ_nvtx_library;

/* ---- inside the library ---- */

/* Returns the id (> 0) of a name below the path `parent` (0: none). `domain`: the domain's name, stored as a
 * prefix ("domain:name"); NULL: the default domain. Registered strings and domains have roots of their own.
 */
enum { OCC_NVTX_STRINGS = 0xffff, OCC_NVTX_DOMAINS = 0xfffe };
uint32_t occ_nvtx_intern(uint32_t parent, const char *domain, const char *name);
const char *occ_nvtx_name(uint64_t id);

/* The functions that NVTX calls; they return the range's level, or -1. `domain`: an id, 0: the default
 * one. */
int occ_nvtx_push(uint32_t domain, const char *name);
int occ_nvtx_pop(uint32_t domain);
