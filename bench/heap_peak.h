/* The heap that a part of the program takes. The linker wraps malloc and its like (attribution.cmake). One
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Starts at 0 bytes. */
void heap_peak_reset(void);
/* Calls count while on. */
void heap_peak_count(bool on);
size_t heap_peak_bytes(void);
