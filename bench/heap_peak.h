/* Measures the heap use of a part of the program. The linker wraps malloc and related functions
 * (attribution.cmake). One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Sets count and peak to 0 bytes. */
void heap_peak_reset(void);
/* Switches counting of calls on or off. */
void heap_peak_count(bool on);
size_t heap_peak_bytes(void);
