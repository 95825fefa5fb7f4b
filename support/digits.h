/* Numbers as text without a format: rows of a large table have millions of cells. Pure; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Size of a buffer for any number, with its NUL. */
#define OCC_DIGITS_BYTES 32

/* Writes `value` with at least `digits` digits and without a NUL. Returns the end of the text. */
char *occ_put_number(char *at, uint64_t value, int digits);

const char *occ_integer_digits(int64_t integer, char text[OCC_DIGITS_BYTES]);

/* The fewest digits that read back as the same finite number, in the form of printf's %g; an integer below
 * 1e15 has all its digits, and zero has no sign. */
const char *occ_real_digits(double real, char text[OCC_DIGITS_BYTES]);
