/* Does another profiler work on this program? Then it wins: we do nothing and report the reason. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* True: step aside, with the reason (of `size` bytes). `environment` is environ. */
bool occ_coexist_must_yield(char *const *environment, char *reason, size_t size);
