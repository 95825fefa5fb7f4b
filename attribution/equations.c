/* See equations.h. */
#include "equations.h"

#include <math.h>
#include <string.h>

static void add_scaled(double *restrict y, const double *restrict x, double scale, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] += scale * x[i];
}

/* The sweep operator on each column (Goodnight, A tutorial on the SWEEP operator, 1979): -A^-1. */
void occ_equations_invert(double *matrix, const double *prior, uint32_t n, double *column)
{
    for (uint32_t k = 0; k < n; k++) {
        /* a smaller pivot is a rounding error */
        double pivot = fmax(*occ_equations_at(matrix, k, k), prior[k]);
        for (uint32_t i = 0; i < n; i++)
            column[i] = *occ_equations_at(matrix, i, k);
        for (uint32_t i = 0; i < n; i++)
            add_scaled(occ_equations_at(matrix, i, 0), column, -column[i] / pivot, i + 1);
        for (uint32_t i = 0; i < n; i++)
            *occ_equations_at(matrix, i, k) = column[i] / pivot;
        *occ_equations_at(matrix, k, k) = -1 / pivot;
    }
    for (size_t i = 0; i < (size_t)n * (n + 1) / 2; i++)
        matrix[i] = -matrix[i];
}

void occ_equations_multiply(const double *matrix, uint32_t n, uint32_t m, const double *b, double *x)
{
    memset(x, 0, (size_t)n * m * sizeof *x);
    for (uint32_t i = 0; i < n; matrix += ++i) {
        double *own = x + (size_t)i * m;
        for (uint32_t k = 0; k < i; k++) {
            add_scaled(own, b + (size_t)k * m, matrix[k], m);
            add_scaled(x + (size_t)k * m, b + (size_t)i * m, matrix[k], m);
        }
        add_scaled(own, b + (size_t)i * m, matrix[i], m);
    }
}
