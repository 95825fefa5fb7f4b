/* Appends numbers and texts to the line of a launch. The caller guarantees the room. All functions return the
 * new end. */
#pragma once

#include <math.h>
#include <string.h>

#include "export.h"

/* Appends decimal digits, with leading zeros up to `width`. */
static inline char *export_put_digits(char *at, uint64_t number, unsigned width)
{
    char digits[20];
    unsigned n = 0;
    do {
        digits[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number || n < width);
    while (n)
        *at++ = digits[--n];
    return at;
}

static inline char *export_put_text(char *at, const char *text)
{
    size_t n = strlen(text);
    return (char *)memcpy(at, text, n) + n;
}

/* Appends a ratio with five decimals, the precision of a history. */
static inline char *export_put_ratio(char *at, double ratio)
{
    uint64_t steps = (uint64_t)llround(fmin(fmax(ratio, 0), 1e6) * 1e5);
    at = export_put_digits(at, steps / 100000, 1);
    *at++ = '.';
    return export_put_digits(at, steps % 100000, 5);
}
