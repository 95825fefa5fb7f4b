/*
 * What encoder and decoder of a chunk must compute in exactly the same way: predictions of numbers, the number of low
 * bits, the context of symbols, the checksum. Integers wrap; a silly prediction costs bytes, never correctness.
 */
#ifndef OCC_STORE_CHUNK_MODEL_H
#define OCC_STORE_CHUNK_MODEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CHUNK_HEADER_BYTES 16
#define CHUNK_ESCAPE       255u /* in a byte stream: the value is in the varint stream */
#define CHUNK_RANK_DIRECT  224u /* ranks below are one byte */
#define CHUNK_MAX_LOW_BITS 56u

enum chunk_symbol_mode { SYMBOL_CONSTANT = 0, SYMBOL_BYTES = 8, SYMBOL_CONTEXT = 9 };

/* Running mean of a number and of its distance to the prediction, both in sixteenths. */
struct chunk_model {
    int64_t mean16;
    uint64_t scale16;
    uint32_t count;
    uint32_t low_bits;
};

static inline uint32_t chunk_low_bits(uint64_t scale16)
{
    /* Low bits cost their full width, the byte above them is entropy-coded: keep about 3 bits of the typical
     * distance for the byte (finer gains less than 0.02 bits a number, measured on normal and exponential data). */
    uint32_t bits = 64u - (uint32_t)__builtin_clzll(scale16 | 1);
    bits = bits > 7 ? bits - 7 : 0;
    return bits < CHUNK_MAX_LOW_BITS ? bits : CHUNK_MAX_LOW_BITS;
}

static inline void chunk_model_seed(struct chunk_model *m, int64_t mean, uint64_t scale)
{
    m->mean16 = (int64_t)((uint64_t)mean << 4);
    m->scale16 = scale << 4;
    m->count = 0;
    m->low_bits = chunk_low_bits(m->scale16);
}

static inline uint64_t chunk_model_predict(const struct chunk_model *m)
{
    return (uint64_t)(m->mean16 >> 4);
}

/* `d`: the number minus the prediction. Distances count up to eight times the usual one, so that one pause or one
 * outlier does not spoil the next hundred predictions. */
static inline void chunk_model_update(struct chunk_model *m, int64_t d)
{
    int64_t limit = (int64_t)(m->scale16 >> 1 & INT64_MAX >> 1) + 16;
    int64_t c = d > limit ? limit : d < -limit ? -limit : d;
    uint64_t sign = (uint64_t)(c >> 63),
             distance = ((uint64_t)c ^ sign) - sign; /* no branch: half of them are negative */
    if (__builtin_expect(m->count >= 8, 1)) {
        m->mean16 = (int64_t)((uint64_t)m->mean16 + (uint64_t)c);
        m->scale16 += distance - (m->scale16 >> 4);
    } else { /* the first ones count for more */
        static const uint8_t shifts[8] = {0, 1, 2, 2, 3, 3, 3, 3};
        unsigned shift = shifts[m->count++];
        m->mean16 = (int64_t)((uint64_t)m->mean16 + (uint64_t)((int64_t)((uint64_t)c << 4) >> shift));
        m->scale16 += (uint64_t)((int64_t)((distance << 4) - m->scale16) >> shift);
    }
    m->low_bits = chunk_low_bits(m->scale16);
}

/* The first number of its kind: nothing was predicted, a sixteenth of it is the guess for the distance. */
static inline void chunk_model_first(struct chunk_model *m, uint64_t value)
{
    chunk_model_seed(m, (int64_t)value, value >> 4);
    m->count = 1;
}

#define CHUNK_CONTEXT_SLOTS 8192u

/* Which slot remembers what followed the last four ranks; `history` keeps them. */
static inline uint32_t chunk_context_slot(uint64_t history)
{
    return (uint32_t)((history * UINT64_C(0x9e3779b97f4a7c15)) >> 51);
}

static inline uint64_t chunk_context_push(uint64_t history, uint32_t rank)
{
    return (history << 16) ^ (rank & 0xffffu) ^ ((uint64_t)(rank >> 16) << 48);
}

/* Not for security: tells damaged from whole. Four lanes, so that it runs at memory speed. */
static inline uint64_t chunk_checksum(const uint8_t *data, size_t n)
{
    const uint64_t prime = UINT64_C(0x9fb21c651e98df25);
    uint64_t lane[4] = {1, 2, 3, 4}, word;
    size_t at = 0;
    for (; at + 32 <= n; at += 32)
        for (unsigned i = 0; i < 4; i++) {
            memcpy(&word, data + at + 8 * i, 8);
            lane[i] = (lane[i] ^ word) * prime;
            lane[i] ^= lane[i] >> 29;
        }
    uint64_t h = n * prime;
    for (unsigned i = 0; i < 4; i++)
        h = ((h ^ lane[i]) * prime) ^ (h >> 31);
    for (; at < n; at++)
        h = (h ^ data[at]) * prime;
    return h ^ (h >> 32);
}

#endif
