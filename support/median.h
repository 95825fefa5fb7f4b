/* The median of numbers. No state. */
#pragma once

#include <stddef.h>

/* Sorts the values and returns their median: of an even number, the mean of the two in the middle. NaN for
 * none. */
double occ_median(double *values, size_t n);
