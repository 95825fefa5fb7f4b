/* See equations.h. */
#include "equations.h"

#include <math.h>
#include <string.h>

static double dot(const double *a, const double *b, uint32_t n)
{
    double sums[4] = {0};
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4) /* four sums: one would wait for each addition */
        for (uint32_t k = 0; k < 4; k++)
            sums[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* y += scale x */
static void add_scaled(double *restrict y, const double *restrict x, double scale, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] += scale * x[i];
}

static void factor(double *matrix, const double *prior, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        double *row = occ_equations_row(matrix, i);
        for (uint32_t k = 0; k < i; k++) {
            const double *other = occ_equations_row(matrix, k);
            row[k] = (row[k] - dot(row, other, k)) / other[k];
        }
        row[i] = sqrt(fmax(row[i] - dot(row, row, i), prior[i])); /* less is a rounding error */
    }
}

void occ_equations_factor(double *matrix, const double *prior, uint32_t n)
{
    factor(matrix, prior, n);
    for (uint32_t i = 0; i < n; i++) { /* row i of W = (e_i - sum of L_ik x row k of W) / L_ii */
        double *row = occ_equations_row(matrix, i), pivot = row[i];
        for (uint32_t k = 0; k < i; k++) {
            double scale = -row[k];
            row[k] = 0;
            add_scaled(row, occ_equations_row(matrix, k), scale, k + 1);
        }
        for (uint32_t k = 0; k < i; k++)
            row[k] /= pivot;
        row[i] = 1 / pivot;
    }
}

void occ_equations_solve(const double *inverse, uint32_t n, const double *b, double *x, double *scratch)
{
    const double *row = inverse;
    for (uint32_t i = 0; i < n; row += ++i)
        scratch[i] = dot(row, b, i + 1);
    memset(x, 0, n * sizeof *x);
    row = inverse;
    for (uint32_t i = 0; i < n; row += ++i)
        add_scaled(x, row, scratch[i], i + 1);
}

void occ_equations_diagonal(const double *inverse, uint32_t n, double *ret_diagonal)
{
    memset(ret_diagonal, 0, n * sizeof *ret_diagonal);
    for (uint32_t i = 0; i < n; inverse += ++i)
        for (uint32_t k = 0; k <= i; k++)
            ret_diagonal[k] += inverse[k] * inverse[k];
}
