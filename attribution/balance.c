/* Launched blocks of no known launch belong to fills and copies, whose number of blocks no model knows, or to
 * other work. Fills and copies have at least 0 blocks, so other work has at most all the blocks. Where the
 * number of fills and copies varies, least squares separates them from other work. See state.h. */
#include <string.h>

#include "equations.h"
#include "state.h"

#define BUSY OCC_KINDS_MAX /* column of the busy time */

/* Sets the columns of the row's kinds of fills and copies. false: there is no room for all kinds; then none
 * has a column, since equations with a column without data have no solution. */
static bool find_kinds(struct occ_balance *b, const struct occ_row *row,
                       const struct occ_operations *operations, uint32_t *columns)
{
    uint32_t n_kinds = b->n_kinds;
    for (uint32_t n = 0; n < row->n_operations; n++) {
        uint32_t i = 0;
        while (i < n_kinds && b->kinds[i] != operations[n].regressor)
            i++;
        if (i == OCC_KINDS_MAX)
            return false;
        if (i == n_kinds)
            b->kinds[n_kinds++] = operations[n].regressor;
        columns[n] = i;
    }
    b->n_kinds = n_kinds;
    return true;
}

/* Adds the observation in the making to the equations. */
static void close_observation(struct occ_balance *b)
{
    for (uint32_t i = 0; i <= BUSY; i++) {
        b->rhs[i] += b->x[i] * b->y;
        for (uint32_t k = 0; k <= i && b->x[i] != 0; k++)
            *occ_equations_at(b->matrix, i, k) += b->x[i] * b->x[k];
    }
    b->squares += b->y * b->y;
    b->groups += b->x[BUSY] > 0;
    b->y = 0;
    memset(b->x, 0, sizeof b->x);
}

static void add_sums(struct occ_block_sums *sums, const struct occ_row *row)
{
    sums->launched += row->launched;
    sums->others += row->others;
    sums->others_squares += row->others * row->others;
}

void occ_balance_add(struct occ_balance *b, const struct occ_row *row)
{
    const struct occ_operations *operations =
        (const struct occ_operations *)(occ_row_nodes(row) + row->n_nodes);
    uint32_t columns[OCC_KINDS_MAX];
    if (row->idle > OVERLAPPED || !isfinite(row->launched))
        return;
    if (row->has_more_operations || !find_kinds(b, row, operations, columns)) {
        b->is_full = true;
        return;
    }
    if (!isfinite(row->others)) /* launches with an unknown number of blocks */
        return;
    if (row->start_ns / BALANCE_NS != b->number)
        close_observation(b);
    b->number = row->start_ns / BALANCE_NS;
    for (uint32_t i = 0; i < row->n_operations; i++) {
        b->x[columns[i]] += (double)operations[i].count;
        b->operations[columns[i]] += (double)operations[i].count;
    }
    b->x[BUSY] += (1 - row->idle) * (double)(row->end_ns - row->start_ns) * 1e-6;
    b->y += row->others;
    add_sums(&b->all, row);
    if (row->n_operations == 0)
        add_sums(&b->without, row);
}

/* The equations of some columns; the last one is BUSY. */
struct equations {
    uint32_t n, columns[OCC_KINDS_MAX + 1];
    double x[OCC_KINDS_MAX + 1], inverse[OCC_BALANCE_TRIANGLE];
};

static double matrix_at(const struct occ_balance *b, uint32_t i, uint32_t k)
{
    return b->matrix[i > k ? (size_t)i * (i + 1) / 2 + k : (size_t)k * (k + 1) / 2 + i];
}

/* Solves the equations, scaled to a diagonal of 1. */
static void solve(const struct occ_balance *b, struct equations *e)
{
    double scale[OCC_KINDS_MAX + 1], rhs[OCC_KINDS_MAX + 1], prior[OCC_KINDS_MAX + 1],
        scratch[OCC_KINDS_MAX + 1];
    for (uint32_t i = 0; i < e->n; i++) {
        scale[i] = 1 / sqrt(matrix_at(b, e->columns[i], e->columns[i]));
        rhs[i] = b->rhs[e->columns[i]] * scale[i];
        prior[i] = BALANCE_RIDGE;
        for (uint32_t k = 0; k <= i; k++)
            *occ_equations_at(e->inverse, i, k) =
                matrix_at(b, e->columns[i], e->columns[k]) * scale[i] * scale[k] +
                (i == k ? BALANCE_RIDGE : 0);
    }
    occ_equations_invert(e->inverse, prior, e->n, scratch);
    occ_equations_multiply(e->inverse, e->n, 1, rhs, e->x);
    for (uint32_t i = 0; i < e->n; i++) {
        e->x[i] *= scale[i];
        for (uint32_t k = 0; k <= i; k++)
            *occ_equations_at(e->inverse, i, k) *= scale[i] * scale[k];
    }
}

/* Takes the column with the least blocks out of the equations, if the blocks are less than 0. */
static bool drop_negative(struct equations *e)
{
    uint32_t least = 0;
    for (uint32_t i = 0; i + 1 < e->n; i++)
        least = e->x[i] < e->x[least] ? i : least;
    if (e->n == 1 || !(e->x[least] < 0))
        return false;
    for (uint32_t i = least; i + 1 < e->n; i++)
        e->columns[i] = e->columns[i + 1];
    e->n--;
    return true;
}

static double squares_of(const struct occ_balance *b, const struct equations *e)
{
    double squares = b->squares;
    for (uint32_t i = 0; i < e->n; i++)
        squares -= e->x[i] * b->rhs[e->columns[i]];
    return fmax(squares, 0);
}

/* The error of other work's blocks: the standard error of their rate, and the bias from operations at the
 * edges of observations, which are in phase with the blocks there. */
static double error_of(const struct occ_balance *b, struct equations *e)
{
    double busy = b->matrix[(size_t)BUSY * (BUSY + 3) / 2], biased = 0;
    double variance = squares_of(b, e) / (b->groups - e->n);
    for (uint32_t i = 0; i + 1 < e->n; i++)
        biased += b->operations[e->columns[i]] * *occ_equations_at(e->inverse, i, i);
    double inflation = *occ_equations_at(e->inverse, e->n - 1, e->n - 1) * busy;
    return sqrt(variance) * (sqrt(b->groups * inflation) + BALANCE_EDGE * b->groups * biased);
}

/* Blocks beyond the sampling error, which launches at the edges of rows cause, as a share. */
static double share_of(const struct occ_block_sums *sums)
{
    return fmax(sums->others - sqrt(sums->others_squares), 0) / fmax(sums->launched, 1);
}

/* True if rows without operations are evidence of other work: they have enough of the blocks, and launches at
 * the edges of rows cannot hide it. */
static bool shows_other_work(const struct occ_balance *b)
{
    const struct occ_block_sums *without = &b->without;
    if (b->n_kinds == 0 || !(without->launched > 0))
        return without->launched > 0;
    return without->launched >= BALANCE_PART * b->all.launched &&
           sqrt(without->others_squares) <= BALANCE_ERROR * without->launched;
}

struct occ_others occ_balance_solve(struct occ_balance *b)
{
    struct equations e = {.n = b->n_kinds + 1};
    struct occ_others others = {share_of(&b->without), b->all.launched > 0 ? share_of(&b->all) : INFINITY,
                                shows_other_work(b)};
    close_observation(b);
    if (b->is_full)
        return (struct occ_others){others.least, INFINITY, false};
    if (b->n_kinds == 0 || b->groups <= e.n || !(b->all.launched > 0))
        return others;
    for (uint32_t i = 0; i < e.n; i++)
        e.columns[i] = i + 1 < e.n ? i : BUSY;
    do
        solve(b, &e);
    while (drop_negative(&e));
    double rest = b->all.others, error = error_of(b, &e);
    for (uint32_t i = 0; i + 1 < e.n; i++)
        rest -= e.x[i] * b->operations[e.columns[i]];
    if (!isfinite(rest) || !isfinite(error))
        return others;
    double launched = fmax(b->all.launched - b->all.others + rest, 1);
    others.most = fmin(others.most, fmax(rest + error, 0) / launched);
    others.least = fmax(others.least, fmax(rest - error, 0) / launched);
    return others;
}
