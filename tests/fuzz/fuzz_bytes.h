/* Reads a fuzzer's input as a sequence of choices. After its end every choice is 0. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct fuzz_bytes {
    const uint8_t *data;
    size_t n;
};

static inline uint8_t fuzz_byte(struct fuzz_bytes *b)
{
    if (b->n == 0)
        return 0;
    b->n--;
    return *b->data++;
}

/* Returns 0 ... n - 1. */
static inline size_t fuzz_choice(struct fuzz_bytes *b, size_t n)
{
    return fuzz_byte(b) % n;
}

/* Returns the bytes before the next zero byte and skips that byte. */
static inline struct fuzz_bytes fuzz_part(struct fuzz_bytes *b)
{
    const uint8_t *end = b->n > 0 ? memchr(b->data, 0, b->n) : NULL;
    struct fuzz_bytes part = {b->data, end ? (size_t)(end - b->data) : b->n};
    size_t skipped = part.n + (end != NULL);
    if (skipped > 0)
        *b = (struct fuzz_bytes){b->data + skipped, b->n - skipped};
    return part;
}
