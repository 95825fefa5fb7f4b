/* Random numbers of the attribution's worlds: deterministic from a seed, on every machine. One thread. */
#pragma once

#include <math.h>
#include <stdint.h>

/* splitmix64. */
static inline uint64_t random_bits(uint64_t *state)
{
    uint64_t x = (*state += UINT64_C(0x9e3779b97f4a7c15));
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* [0, 1) */
static inline double random_uniform(uint64_t *state)
{
    return (double)(random_bits(state) >> 11) / 9007199254740992.0;
}

static inline double random_between(uint64_t *state, double low, double high)
{
    return low + (high - low) * random_uniform(state);
}

static inline double random_normal(uint64_t *state)
{
    return sqrt(-2 * log(1 - random_uniform(state))) * cos(6.283185307179586 * random_uniform(state));
}

/* Returns a factor with median 1. */
static inline double random_lognormal(uint64_t *state, double sigma)
{
    return sigma > 0 ? exp(sigma * random_normal(state)) : 1;
}

/* Returns a value with mean 1. */
static inline double random_exponential(uint64_t *state)
{
    return -log(1 - random_uniform(state));
}
