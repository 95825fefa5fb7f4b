/* Shortest digits of a number; see digits.h. Pure; any thread. */
#include "digits.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXPONENT_MIN = -9,      /* 10^(17 - 1 + 9) is exact in a long double of 64 bits */
    FIXED_EXPONENT_MIN = -4 /* %g writes smaller numbers with an exponent */
};

/* `count` digits without a trailing zero, and the exponent of the first one. */
struct decimal {
    uint64_t digits;
    int count, exponent;
};

char *occ_put_number(char *at, uint64_t value, int digits)
{
    char reversed[OCC_DIGITS_BYTES];
    int n = 0;
    do
        reversed[n++] = (char)('0' + value % 10);
    while ((value /= 10) != 0 || n < digits);
    while (n > 0)
        *at++ = reversed[--n];
    return at;
}

const char *occ_integer_digits(int64_t integer, char text[OCC_DIGITS_BYTES])
{
    uint64_t size = integer < 0 ? -(uint64_t)integer : (uint64_t)integer;
    text[0] = '-';
    *occ_put_number(text + (integer < 0), size, 1) = '\0';
    return text;
}

/* Powers of ten, EXPONENT_MIN first; the positive powers are exact. */
static const long double powers[] = {1e-9L, 1e-8L, 1e-7L, 1e-6L, 1e-5L, 1e-4L, 1e-3L, 1e-2L, 1e-1L,
                                     1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,
                                     1e9L,  1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L,
                                     1e18L, 1e19L, 1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L};

static long double power_of_ten(int exponent)
{
    return powers[exponent - EXPONENT_MIN];
}

enum verdict { DIFFERS, IS_SAME, IS_UNSURE };

/* Rounds `real` to `count` digits and tests if the result reads back as `real`. The product has a relative
 * error of 2^-64: returns IS_UNSURE if that error could change the result. */
static enum verdict round_to(double real, int count, int exponent, struct decimal *ret_decimal)
{
    long double scale = power_of_ten(count - 1 - exponent), scaled = real * scale;
    long double rounded = rintl(scaled), off = fabsl(rounded - scaled), margin = scaled * 0x1p-62L;
    long double half = ((long double)nextafter(real, INFINITY) - real) / 2 * scale;
    bool has_count = rounded >= power_of_ten(count - 1) && rounded < power_of_ten(count);
    if (!has_count || fabsl(off - 0.5L) <= margin || fabsl(off - half) <= margin)
        return IS_UNSURE;
    *ret_decimal = (struct decimal){(uint64_t)rounded, count, exponent};
    return off < half ? IS_SAME : DIFFERS;
}

/* Returns false if the result is unsure; then printf decides. */
static bool find_shortest(double real, struct decimal *ret_decimal)
{
    int binary = 0, exponent = EXPONENT_MIN;
    /* the next smaller double is closer than the next larger one */
    bool is_power = frexp(real, &binary) == 0.5;
    if (is_power || real < 1e-9 || real >= 1e15 || LDBL_MANT_DIG < 64)
        return false;
    while (real >= power_of_ten(exponent + 1))
        exponent++;
    enum verdict verdict = DIFFERS;
    for (int count = DBL_DIG; count <= DBL_DECIMAL_DIG && verdict == DIFFERS; count++)
        verdict = round_to(real, count, exponent, ret_decimal);
    while (verdict == IS_SAME && ret_decimal->digits % 10 == 0) {
        ret_decimal->digits /= 10;
        ret_decimal->count--;
    }
    return verdict == IS_SAME;
}

/* Writes `count` digits with a point after the first `whole` digits. */
static char *put_point(char *at, const char *digits, int count, int whole)
{
    at = mempcpy(at, digits, (size_t)whole);
    if (count == whole)
        return at;
    *at++ = '.';
    return mempcpy(at, digits + whole, (size_t)(count - whole));
}

static void put_decimal(char *at, const struct decimal *d)
{
    char digits[OCC_DIGITS_BYTES];
    (void)occ_put_number(digits, d->digits, 1);
    if (d->exponent >= 0) {
        at = put_point(at, digits, d->count, d->exponent + 1);
    } else if (d->exponent >= FIXED_EXPONENT_MIN) {
        at = mempcpy(at, "0.000", (size_t)(1 - d->exponent)); /* -1: "0." */
        at = mempcpy(at, digits, (size_t)d->count);
    } else {
        at = stpcpy(put_point(at, digits, d->count, 1), "e-");
        at = occ_put_number(at, (uint64_t)-d->exponent, 2);
    }
    *at = '\0';
}

/* The shortest text by printf(); below DBL_MIN doubles have fewer digits than DBL_DIG. */
static void print_shortest(double real, char *at, size_t size)
{
    int count = fabs(real) < DBL_MIN ? 6 : DBL_DIG;
    do
        (void)snprintf(at, size, "%.*g", count, real);
    while (strtod(at, NULL) != real && count++ < DBL_DECIMAL_DIG);
}

const char *occ_real_digits(double real, char text[OCC_DIGITS_BYTES])
{
    struct decimal decimal;
    double size = fabs(real);
    char *at = text;
    if (real < 0)
        *at++ = '-';
    if (size < 1e15 && floor(size) == size)
        *occ_put_number(at, (uint64_t)size, 1) = '\0';
    else if (find_shortest(size, &decimal))
        put_decimal(at, &decimal);
    else
        print_shortest(size, at, (size_t)(text + OCC_DIGITS_BYTES - at));
    return text;
}
