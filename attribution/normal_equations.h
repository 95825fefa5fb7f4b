/*
 * Normal equations of weighted least squares with exponential forgetting, for many columns of which few meet
 * in a row.
 *
 * Rows are w (share of each column), weight (1 / variance) and several right-hand sides. Kept are G = sum
 * weight w w^T, as 16 x 16 tiles that exist where columns have met, and h = sum weight w y for every
 * right-hand side. Older rows count less: by half after `half_life` rows.
 *
 * solve() takes columns in blocks of at most OCC_NORMAL_BLOCK: within a block exactly (Cholesky), between
 * blocks by turns (Gauss-Seidel), each with the others' last values. A Gaussian prior (mean, precision) keeps
 * every block regular.
 *
 * Memory: tiles (2 KiB each) are bounded by `max_tiles`. Pure; one thread.
 */
#ifndef OCC_SAMPLER_NORMAL_H
#define OCC_SAMPLER_NORMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

#define OCC_NORMAL_BLOCK 256 /* columns that are solved together */
#define OCC_NORMAL_ROW   512 /* columns in one row, at most */

struct occ_normal;

struct occ_normal_options {
    uint32_t max_columns, max_tiles;
    uint32_t n_rhs;
    double half_life; /* rows */
};

struct occ_normal_entry {
    uint32_t column;
    double share;
};

int occ_normal_new(const struct occ_normal_options *options, struct occ_normal **ret_normal,
                   struct occ_error *err);
void occ_normal_free(struct occ_normal *normal);

/* Adds a row; the entries are put in order of their columns, each of which stands there once. A right-hand
 * side that is NaN is not known in this row, which then does not count for it; all rows that are added must
 * know the same ones. OCC_E_FULL: no more tiles; nothing is added. */
int occ_normal_add(struct occ_normal *normal, struct occ_normal_entry *entries, size_t n, double weight,
                   const double *rhs, struct occ_error *err);

/* Forgets everything. */
void occ_normal_reset(struct occ_normal *normal);

/* Forgets all that is known of a column. */
void occ_normal_clear(struct occ_normal *normal, uint32_t column);

/* The weight of a column's own rows: G's diagonal. */
double occ_normal_diagonal(const struct occ_normal *normal, uint32_t column);

/* Columns to be solved together, and what comes of it; the caller's arrays. */
struct occ_normal_block {
    uint32_t n;
    uint32_t column[OCC_NORMAL_BLOCK];
    double prior_precision[OCC_NORMAL_BLOCK];
    bool quick; /* the first right-hand side only, and no covariance: a fifth of the work */
    double covariance[OCC_NORMAL_BLOCK * OCC_NORMAL_BLOCK]; /* out, n x n: of (G + prior) within the block */
    double scratch[OCC_NORMAL_BLOCK * OCC_NORMAL_BLOCK];
};

/* Solves for a block's columns. solution[r][column] holds the last values of all columns (n_rhs x
 * max_columns) and gets the new ones; prior_mean likewise. */
int occ_normal_solve(struct occ_normal *normal, struct occ_normal_block *block, const double *prior_mean,
                     double *solution, struct occ_error *err);

#endif
