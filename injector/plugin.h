/* Optional libraries next to libocctrace.so, opened only on request. Thread: the one that initialises
 * CUDA. */
#pragma once

#include <stdint.h>

#include "ring/ring_abi.h"

/* The library's interface, which begins with its u32 `abi`; `self`: path of libocctrace.so. NULL: another
 * abi, or the file cannot be opened; the reason is "no WHAT: ...". */
const void *occ_plugin_open(const char *self, const char *file, const char *symbol, uint32_t abi,
                            const char *what, char reason[OCC_REASON_BYTES]);
