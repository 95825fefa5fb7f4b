/* Dense symmetric positive definite systems, as packed lower triangles: row i begins at i (i + 1) / 2. */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline double *occ_equations_at(double *matrix, uint32_t i, uint32_t k)
{
    return i > k ? matrix + (size_t)i * (i + 1) / 2 + k : matrix + (size_t)k * (k + 1) / 2 + i;
}

/* Inverts the matrix in place. `prior`: a diagonal matrix that is part of the sum `matrix`, so a
 * smaller pivot is a rounding error; `scratch`: n values. */
void occ_equations_invert(double *matrix, const double *prior, uint32_t n, double *scratch);
/* X = A B, both n x m and stored by rows; X and B must not overlap. */
void occ_equations_multiply(const double *matrix, uint32_t n, uint32_t m, const double *b, double *x);
