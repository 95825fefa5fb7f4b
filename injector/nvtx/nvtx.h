/*
 * libocctrace-nvtx.so (occtrace --nvtx): which NVTX ranges a thread has open. The NVTX in the program loads
 * it through NVTX_INJECTION64_PATH at its first call, which may be before the guest is there; the guest opens
 * the same file. Each change of a thread's ranges passes CUPTI one number, that of the innermost range's
 * path, as external correlation id: CUPTI then writes it beside the launches of that thread.
 *
 * - A path is the names of the open push/pop ranges of a thread, outermost first. Digits become '#', so that
 *   "step 17" and "step 18" are one; longer names than OCC_NVTX_NAME_BYTES end with an ellipsis, stacks have
 *   OCC_NVTX_DEPTH levels.
 * - At most OCC_NVTX_PATHS paths, registered strings and domains together; a range beyond is OCC_NVTX_OTHER,
 * and so are all ranges of domains beyond, which count as one domain.
 * - Ranges by nvtxRangeStart need not nest and may end in another thread: they are not taken.
 *
 * No locks, no allocation, no waiting: a child of fork goes on. The state is the process's; nothing is ever
 * freed. Threads: any. Source: nvtx3/nvtxDetail of the CUDA toolkit (nvtxTypes.h, nvtxInit.h); a test
 * compares.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cupti/functions.h"

/* Both libraries come from one build; a number that differs means a mixture. */
#define OCC_NVTX_ABI 1u

#define OCC_NVTX_PATHS      4096u
#define OCC_NVTX_NAME_BYTES 112u /* with the NUL */
#define OCC_NVTX_DEPTH      64u
#define OCC_NVTX_OTHER      OCC_NVTX_PATHS /* the id of "(other ranges)" */

struct occ_nvtx_library {
    uint32_t abi; /* OCC_NVTX_ABI */
    /* From now on this CUPTI is called, whose results do not matter; NULL: no more. Borrowed for good.
     * Async-signal-safe. */
    void (*attach)(const struct occ_cupti_external *cupti);
    /* The path of an id, its names joined by '/', with its NUL; of one that is too long an ellipsis and its
     * end. Its length; 0: there is no such path. */
    size_t (*path)(uint64_t id, char *text, size_t size);
};

/* One of the two symbols of libocctrace-nvtx.so; the other is InitializeInjectionNvtx2. */
extern const struct occ_nvtx_library occ_nvtx_library;

/* ---- inside the library ---- */

/* A name below a path, 0: none; > 0. `domain`: "domain:name"; NULL: the default one. Ids of names that are no
 * path (strings, domains) come from the roots. */
enum { OCC_NVTX_STRINGS = 0xffff, OCC_NVTX_DOMAINS = 0xfffe };
uint32_t occ_nvtx_intern(uint32_t parent, const char *domain, const char *name);
const char *occ_nvtx_name(uint64_t id);

/* What NVTX calls; return the range's level, or -1. `domain`: an id, 0: the default one. */
int occ_nvtx_push(uint32_t domain, const char *name);
int occ_nvtx_pop(uint32_t domain);
