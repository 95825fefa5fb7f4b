/* Dense symmetric positive definite systems, as packed lower triangles: row i begins at i (i + 1) / 2. */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline double *occ_equations_at(double *matrix, uint32_t i, uint32_t k)
{
    return i > k ? matrix + (size_t)i * (i + 1) / 2 + k : matrix + (size_t)k * (k + 1) / 2 + i;
}

/* Inverts it. `prior`: a diagonal that it has a part of, no pivot is lower but by rounding; `scratch`: n. */
void occ_equations_invert(double *matrix, const double *prior, uint32_t n, double *scratch);
/* X = A B, both n x m by rows; X is not B. */
void occ_equations_multiply(const double *matrix, uint32_t n, uint32_t m, const double *b, double *x);
