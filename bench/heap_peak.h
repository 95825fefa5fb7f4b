/* The heap that a part of the program takes: malloc and its like are wrapped by the linker
 * (attribution.cmake), which counts while it is told to. One thread. */
#ifndef OCC_BENCH_HEAP_PEAK_H
#define OCC_BENCH_HEAP_PEAK_H

#include <stdbool.h>
#include <stddef.h>

/* Starts at 0 bytes. */
void heap_peak_reset(void);
void heap_peak_count(bool on);
size_t heap_peak_bytes(void);

#endif
