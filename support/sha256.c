/* See sha256.h. The names are the standard's. */
#include "sha256.h"

#include <string.h>

#define BLOCK  64
#define ROUNDS 64

struct sha256 {
    uint32_t h[8];
    uint8_t block[BLOCK];
    uint64_t bytes; /* of all data so far */
};

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t k[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void schedule(const uint8_t block[BLOCK], uint32_t w[ROUNDS])
{
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < ROUNDS; t++) {
        uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3,
                 s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
}

static void compress(struct sha256 *s)
{
    enum { A, B, C, D, E, F, G, H };
    uint32_t w[ROUNDS], v[8];
    schedule(s->block, w);
    memcpy(v, s->h, sizeof v);
    for (int t = 0; t < ROUNDS; t++) {
        uint32_t sum1 = rotate(v[E], 6) ^ rotate(v[E], 11) ^ rotate(v[E], 25),
                 choice = (v[E] & v[F]) ^ (~v[E] & v[G]), t1 = v[H] + sum1 + choice + k[t] + w[t],
                 sum0 = rotate(v[A], 2) ^ rotate(v[A], 13) ^ rotate(v[A], 22),
                 majority = (v[A] & v[B]) ^ (v[A] & v[C]) ^ (v[B] & v[C]);
        memmove(v + 1, v, 7 * sizeof *v);
        v[E] += t1;
        v[A] = t1 + sum0 + majority;
    }
    for (int i = 0; i < 8; i++)
        s->h[i] += v[i];
}

static void begin(struct sha256 *s)
{
    /* the first 32 bits of the fractions of the square roots of the first 8 primes */
    *s = (struct sha256){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                               0x1f83d9ab, 0x5be0cd19}};
}

static void add(struct sha256 *s, const void *data, size_t n)
{
    const uint8_t *at = data;
    for (size_t i = 0; i < n; i++) {
        s->block[s->bytes++ % BLOCK] = at[i];
        if (s->bytes % BLOCK == 0)
            compress(s);
    }
}

static void end(struct sha256 *s, uint8_t hash[OCC_SHA256_BYTES])
{
    static const uint8_t one = 0x80, zero = 0;
    uint64_t bits = s->bytes * 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    add(s, &one, 1);
    while (s->bytes % BLOCK != BLOCK - sizeof length)
        add(s, &zero, 1);
    add(s, length, sizeof length);
    for (int i = 0; i < OCC_SHA256_BYTES; i++)
        hash[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void occ_sha256(const void *data, size_t n, uint8_t ret_hash[OCC_SHA256_BYTES])
{
    struct sha256 s;
    begin(&s);
    add(&s, data, n);
    end(&s, ret_hash);
}

void occ_hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t n,
                     uint8_t ret_hash[OCC_SHA256_BYTES])
{
    uint8_t inner[BLOCK] = {0}, outer[BLOCK];
    struct sha256 s;
    if (key_bytes > BLOCK)
        occ_sha256(key, key_bytes, inner);
    else if (key_bytes > 0)
        memcpy(inner, key, key_bytes);
    for (int i = 0; i < BLOCK; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    begin(&s);
    add(&s, inner, sizeof inner);
    add(&s, data, n);
    end(&s, ret_hash);
    begin(&s);
    add(&s, outer, sizeof outer);
    add(&s, ret_hash, OCC_SHA256_BYTES);
    end(&s, ret_hash);
}
