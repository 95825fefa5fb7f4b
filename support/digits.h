/* Numbers as text without a format: rows of a large table have millions of cells. Pure; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Room for any number, with its NUL. */
#define OCC_DIGITS_BYTES 32

/* At least `digits` digits; returns the end, where no NUL is written. */
char *occ_put_number(char *at, uint64_t value, int digits);

const char *occ_integer_digits(int64_t integer, char text[OCC_DIGITS_BYTES]);

/* The fewest digits that read back as the same finite number, in the form of printf's %g; an integer below
 * 1e15 has all its digits, and zero no sign. */
const char *occ_real_digits(double real, char text[OCC_DIGITS_BYTES]);
