/*
 * Does another profiler work on this program? Then it wins: we do nothing and keep the reason. Pure but for
 * stat(2).
 */
#ifndef OCC_INJECTOR_COEXIST_H
#define OCC_INJECTOR_COEXIST_H

#include <stdbool.h>
#include <stddef.h>

/* True: step aside; `reason` (of `size` bytes) says why. `environment` is environ; `self` the path of this
 * library, or "" if it is not known. */
bool occ_coexist_must_yield(char *const *environment, const char *self, char *reason, size_t size);

/* True if CUDA_INJECTION64_PATH names a library that is not `self`: the driver will load that one, never us.
 */
bool occ_coexist_is_displaced(const char *injection_path, const char *self);

#endif
