/* Libraries of ours that lie beside libocctrace.so and are opened only when asked for. Thread: the one that
 * initialises CUDA. */
#pragma once

#include <stdint.h>

#include "ring/ring_abi.h"

/* The library's interface, which begins with its u32 `abi`; `self`: the path of our own library. NULL:
 * another abi, or it cannot be opened; the reason is "no WHAT: ...". */
const void *occ_companion_open(const char *self, const char *file, const char *symbol, uint32_t abi,
                               const char *what, char reason[OCC_REASON_BYTES]);
