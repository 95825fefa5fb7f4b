/*
 * One block's own measurement of the clocks' offset: a Gauss-Newton step in which the offset is one unknown
 * among the keys' values and profiles. What those could explain as well is taken out of the offset's gradient
 * (least squares by conjugate gradients), so that the offset and the profiles cannot drift away together. See
 * state.h. One thread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

#define ENTRIES_MOST 131072u /* rows beyond it are left out */
#define STEPS        16      /* of conjugate gradients */
#define ENOUGH       0.02    /* of the curvature: a step that takes less is the last */
#define LEAST        1e-4    /* of the curvature that must be left for the offset alone */

/* One of the block's columns. */
struct column {
    uint32_t column;
    double precision, diagonal;
    double target;                        /* X' W gradient */
    double value, rest, direction, image; /* of conjugate gradients */
};

/* A row, and how its prediction changes with the offset, a nanosecond. */
struct row_of_shift {
    double residual, weight, gradient;
};

struct occ_shift_work {
    uint32_t n_rows, n_columns, max_columns;
    uint32_t begin[OCC_BLOCK_SAMPLES + 1]; /* of a row's entries */
    struct row_of_shift rows[OCC_BLOCK_SAMPLES];
    uint32_t place[ENTRIES_MOST]; /* in columns */
    float share[ENTRIES_MOST];
    uint32_t *local; /* column -> place in columns; OCC_NO_COLUMN: not met */
    struct column *columns;
};

struct occ_shift_work *occ_shift_work_new(uint32_t max_columns)
{
    struct occ_shift_work *work = calloc(1, sizeof *work);
    if (!work)
        return NULL;
    work->max_columns = max_columns;
    work->local = malloc(max_columns * sizeof *work->local);
    work->columns = malloc(max_columns * sizeof *work->columns);
    if (!work->local || !work->columns) {
        occ_shift_work_free(work);
        return NULL;
    }
    memset(work->local, 0xff, max_columns * sizeof *work->local);
    return work;
}

void occ_shift_work_free(struct occ_shift_work *work)
{
    if (!work)
        return;
    free(work->local);
    free(work->columns);
    free(work);
}

/* ---- rows ---- */

/* Occupancy at a launch's u. */
static double level_at(const struct occ_attribution *a, uint32_t launch, double u)
{
    const struct occ_key *key = &a->keys.keys[a->launches[launch].key];
    double sum = 0;
    for (uint32_t f = 0; f < key->functions && u >= 0; f++)
        sum +=
            occ_keys_value(&a->keys, key, OCC_RHS_WARPS, f) * occ_overlap_function_at(key->functions, f, u);
    return sum;
}

/* How the prediction changes with the offset: occupancy at the sample's start less that at its end, by its
 * length. */
static double gradient_of(const struct occ_attribution *a, size_t n_parts, double length)
{
    double sum = 0;
    for (size_t i = 0; i < n_parts; i++)
        sum += level_at(a, a->parts[i].launch, a->parts[i].at_start) -
               level_at(a, a->parts[i].launch, a->parts[i].at_end);
    return sum / length;
}

static uint32_t place_of(struct occ_shift_work *work, uint32_t column, double precision)
{
    if (work->local[column] == OCC_NO_COLUMN) {
        work->local[column] = work->n_columns;
        work->columns[work->n_columns++] =
            (struct column){.column = column, .precision = precision, .diagonal = precision};
    }
    return work->local[column];
}

/* The attribution's row as entries; false: no room. */
static bool add_row(struct occ_attribution *a, struct occ_shift_work *work, const struct row_of_shift *row)
{
    uint32_t n = work->begin[work->n_rows];
    for (uint32_t i = 0; i < a->row.n; i++) {
        const struct occ_key *key = &a->keys.keys[a->row.key[i]];
        for (uint32_t f = 0; f < key->functions; f++) {
            double share = a->row.share[i][f];
            if (share == 0)
                continue;
            if (n == ENTRIES_MOST)
                return false;
            uint32_t place = place_of(work, key->column[f], occ_keys_prior_precision(key));
            work->place[n] = place;
            work->share[n++] = (float)share;
        }
    }
    work->rows[work->n_rows++] = *row;
    work->begin[work->n_rows] = n;
    return true;
}

static void collect(struct occ_attribution *a, struct occ_shift_work *work, size_t n, double beside_ns)
{
    struct occ_overlap walk;
    struct occ_offset_row seen;
    for (uint32_t i = 0; i < work->n_columns; i++)
        work->local[work->columns[i].column] = OCC_NO_COLUMN;
    work->n_rows = work->n_columns = 0;
    occ_join_begin(a, &walk);
    for (size_t i = 0; i < n && work->n_rows < OCC_BLOCK_SAMPLES; i++) {
        const struct occ_sample *s = &a->samples[i];
        if (!occ_join_residual(a, &walk, s, occ_clock_fit_offset(&a->clock, s->start_ns) + beside_ns, &seen))
            continue;
        const struct row_of_shift row = {.residual = seen.residual,
                                         .weight = seen.weight,
                                         .gradient =
                                             gradient_of(a, seen.n_parts, (double)(s->end_ns - s->start_ns))};
        if (!add_row(a, work, &row))
            return;
    }
}

/* ---- the gradient, less what the columns explain of it ---- */

/* What the columns' `direction` makes of a row. */
static double row_times(const struct occ_shift_work *work, uint32_t row)
{
    double sum = 0;
    for (uint32_t k = work->begin[row]; k < work->begin[row + 1]; k++)
        sum += (double)work->share[k] * work->columns[work->place[k]].direction;
    return sum;
}

/* image = (X' W X + P) direction; direction . image */
static double apply(struct occ_shift_work *work)
{
    double product = 0;
    for (uint32_t i = 0; i < work->n_columns; i++)
        work->columns[i].image = work->columns[i].precision * work->columns[i].direction;
    for (uint32_t row = 0; row < work->n_rows; row++) {
        double weighted = work->rows[row].weight * row_times(work, row);
        for (uint32_t k = work->begin[row]; k < work->begin[row + 1]; k++)
            work->columns[work->place[k]].image += (double)work->share[k] * weighted;
    }
    for (uint32_t i = 0; i < work->n_columns; i++)
        product += work->columns[i].direction * work->columns[i].image;
    return product;
}

/* The curvature of all rows, with targets and diagonals. */
static double prepare(struct occ_shift_work *work)
{
    double curvature = 0;
    for (uint32_t row = 0; row < work->n_rows; row++) {
        const struct row_of_shift *r = &work->rows[row];
        curvature += r->weight * r->gradient * r->gradient;
        for (uint32_t k = work->begin[row]; k < work->begin[row + 1]; k++) {
            double share = (double)work->share[k];
            struct column *c = &work->columns[work->place[k]];
            c->target += share * r->weight * r->gradient;
            c->diagonal += share * share * r->weight;
        }
    }
    for (uint32_t i = 0; i < work->n_columns; i++)
        work->columns[i].rest = work->columns[i].target;
    return curvature;
}

/* rest . rest, scaled by the diagonal */
static double scaled_rest(const struct occ_shift_work *work)
{
    double sum = 0;
    for (uint32_t i = 0; i < work->n_columns; i++)
        sum += work->columns[i].rest * work->columns[i].rest / work->columns[i].diagonal;
    return sum;
}

/* Finds the columns' values that explain most of the gradient; the curvature that is left. */
static double project(struct occ_shift_work *work, double curvature)
{
    double rest = scaled_rest(work), momentum = 0;
    for (int step = 0; step < STEPS && rest > 0; step++) {
        for (uint32_t i = 0; i < work->n_columns; i++) {
            struct column *c = &work->columns[i];
            c->direction = c->rest / c->diagonal + momentum * c->direction;
        }
        double product = apply(work);
        if (!(product > 0))
            break;
        double length = rest / product;
        for (uint32_t i = 0; i < work->n_columns; i++) {
            struct column *c = &work->columns[i];
            c->value += length * c->direction;
            c->rest -= length * c->image;
        }
        double taken = length * rest, left = scaled_rest(work);
        curvature -= taken;
        if (taken < ENOUGH * curvature)
            break;
        momentum = left / rest;
        rest = left;
    }
    return curvature;
}

struct occ_shift occ_shift_measure(struct occ_attribution *a, size_t n, double beside_ns)
{
    struct occ_shift_work *work = a->shift_work;
    collect(a, work, n, beside_ns);
    struct occ_shift shift = {.variance = INFINITY, .rows = work->n_rows};
    double all = prepare(work), curvature = project(work, all), slope = 0;
    for (uint32_t i = 0; i < work->n_columns; i++)
        work->columns[i].direction = work->columns[i].value;
    for (uint32_t row = 0; row < work->n_rows; row++) {
        const struct row_of_shift *r = &work->rows[row];
        slope += r->weight * r->residual * (r->gradient - row_times(work, row));
        shift.squares += r->weight * r->residual * r->residual;
    }
    if (curvature > LEAST * all) {
        shift.ns = slope / curvature;
        shift.variance = fmax(shift.squares / shift.rows, 1) / curvature;
    }
    return shift;
}
