/* Parses JSON numbers exactly, as integers without an intermediate double. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* text x 10^scale, truncated towards zero, from "-12.5e3". false: not a number, or out of range; with scale 0
 * also a fraction. */
bool occ_decimal_parse(const char *text, size_t n, int scale, int64_t *ret_value);
