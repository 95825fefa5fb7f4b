/* See heap_peak.h. */
#include "heap_peak.h"

#include <malloc.h>
#include <stdint.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);

static bool counting;
static int64_t now, peak;

static void add(int64_t bytes)
{
    now += bytes;
    peak = now > peak ? now : peak;
}

static int64_t size_of(void *memory)
{
    return counting && memory ? (int64_t)malloc_usable_size(memory) : 0;
}

void *__wrap_malloc(size_t size)
{
    void *memory = __real_malloc(size);
    add(size_of(memory));
    return memory;
}

void *__wrap_calloc(size_t n, size_t size)
{
    void *memory = __real_calloc(n, size);
    add(size_of(memory));
    return memory;
}

void *__wrap_realloc(void *memory, size_t size)
{
    int64_t before = size_of(memory);
    void *moved = __real_realloc(memory, size);
    if (moved)
        add(size_of(moved) - before);
    return moved;
}

void __wrap_free(void *memory)
{
    add(-size_of(memory));
    __real_free(memory);
}

void heap_peak_reset(void)
{
    now = peak = 0;
}

void heap_peak_count(bool on)
{
    counting = on;
}

size_t heap_peak_bytes(void)
{
    return (size_t)peak;
}
