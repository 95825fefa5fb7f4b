/*
 * Dense symmetric positive definite systems, as packed lower triangles: row i begins at i (i + 1) / 2. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline double *occ_equations_row(double *matrix, uint32_t i)
{
    return matrix + (size_t)i * (i + 1) / 2;
}

/* Replaces the matrix A by the inverse of its Cholesky factor, W with A^-1 = W' W. `prior`: a diagonal that
 * A has a part of, below which no pivot falls but by rounding. */
void occ_equations_factor(double *matrix, const double *prior, uint32_t n);
/* x = A^-1 b; `scratch`: n. x may be b. */
void occ_equations_solve(const double *inverse, uint32_t n, const double *b, double *x, double *scratch);
/* The diagonal of A^-1. */
void occ_equations_diagonal(const double *inverse, uint32_t n, double *ret_diagonal);
