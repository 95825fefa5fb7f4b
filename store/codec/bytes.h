/* Byte strings: a growing writer and a reader that never goes past its end. Integers are LEB128 varints (7
 * bits a byte, at most 10 bytes); signed ones are zigzagged (0, -1, 1, -2 ... become 0, 1, 2, 3 ...). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct occ_writer {
    uint8_t *data;
    size_t size, capacity;
    bool failed; /* no memory: the written bytes are invalid */
};

struct occ_reader {
    const uint8_t *at, *end;
    bool failed; /* the input was too short: every later read gives 0 */
};

static inline uint64_t occ_zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t occ_unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* Begins new content in the writer's memory, also after a failure. */
static inline void occ_writer_restart(struct occ_writer *w)
{
    w->size = 0;
    w->failed = false;
}

/* Room for `n` more bytes. */
static inline bool occ_writer_reserve(struct occ_writer *w, size_t n)
{
    if (w->failed)
        return false;
    if (w->capacity - w->size >= n)
        return true;
    size_t capacity = (w->size + n) * 2 + 64;
    uint8_t *data = realloc(w->data, capacity);
    if (!data) {
        w->failed = true;
        return false;
    }
    w->data = data;
    w->capacity = capacity;
    return true;
}

static inline uint8_t *occ_varint_put(uint8_t *at, uint64_t v)
{
    while (v >= 0x80) {
        *at++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *at++ = (uint8_t)v;
    return at;
}

static inline void occ_write_varint(struct occ_writer *w, uint64_t v)
{
    if (occ_writer_reserve(w, 10))
        w->size = (size_t)(occ_varint_put(w->data + w->size, v) - w->data);
}

static inline void occ_write_bytes(struct occ_writer *w, const void *bytes, size_t n)
{
    if (n > 0 && occ_writer_reserve(w, n)) {
        memcpy(w->data + w->size, bytes, n);
        w->size += n;
    }
}

static inline void occ_write_u8(struct occ_writer *w, uint8_t v)
{
    occ_write_bytes(w, &v, 1);
}

static inline void occ_write_little_endian(struct occ_writer *w, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        occ_write_u8(w, (uint8_t)(v >> (8 * i)));
}

static inline uint64_t occ_read_varint_slow(struct occ_reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (r->at == r->end)
            break;
        uint8_t byte = *r->at++;
        if (shift == 63 && byte > 1)
            break;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return v;
    }
    r->failed = true;
    r->at = r->end;
    return 0;
}

static inline uint64_t occ_read_varint(struct occ_reader *r)
{
    if (r->at < r->end && *r->at < 0x80)
        return *r->at++;
    return occ_read_varint_slow(r);
}

static inline uint8_t occ_read_u8(struct occ_reader *r)
{
    if (r->at < r->end)
        return *r->at++;
    r->failed = true;
    return 0;
}

static inline uint64_t occ_little_endian(const uint8_t *at, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)at[i] << (8 * i);
    return v;
}

/* The next `n` bytes, or NULL (sets `failed`). */
static inline const uint8_t *occ_read_bytes(struct occ_reader *r, size_t n)
{
    if ((size_t)(r->end - r->at) < n) {
        r->failed = true;
        r->at = r->end;
        return NULL;
    }
    const uint8_t *bytes = r->at;
    r->at += n;
    return bytes;
}

static inline uint64_t occ_read_little_endian(struct occ_reader *r, unsigned bytes)
{
    const uint8_t *at = occ_read_bytes(r, bytes);
    return at ? occ_little_endian(at, bytes) : 0;
}
