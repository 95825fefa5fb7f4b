/* Detects another profiler that works on this program. The other profiler has priority: the guest records
 * nothing and reports the reason. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* true: record nothing; `reason` (of `size` bytes) is filled in. `environment` is environ. */
bool occ_coexist_must_yield(char *const *environment, char *reason, size_t size);
