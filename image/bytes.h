/* Bounds-checked access to untrusted little-endian bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
    const uint8_t *at;
    size_t size;
};

static inline uint16_t u16_at(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t u32_at(const uint8_t *p)
{
    return (uint32_t)u16_at(p) | (uint32_t)u16_at(p + 2) << 16;
}

static inline uint64_t u64_at(const uint8_t *p)
{
    return (uint64_t)u32_at(p) | (uint64_t)u32_at(p + 4) << 32;
}

/* True if `size` bytes at `offset` are inside. */
static inline bool inside(struct span all, uint64_t offset, uint64_t size)
{
    return offset <= all.size && size <= all.size - offset;
}
