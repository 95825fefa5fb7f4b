/* See normal_equations.h. G is kept as tiles of its lower triangle. */
#include "normal_equations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/array.h"
#include "support/map.h"

#define SIDE      16u
#define GAIN_MOST 1e9 /* then everything is scaled back */

struct tile {
    uint32_t row, column; /* in tiles; row >= column */
    double g[SIDE][SIDE];
};

struct occ_normal {
    struct occ_normal_options options;
    struct occ_map index; /* row << 32 | column -> tile */
    struct tile *tiles;
    uint32_t n_tiles;
    size_t tiles_allocated;
    double *h; /* n_rhs x max_columns */
    double gain, growth;
    uint32_t *place; /* max_columns and a tile more: in the block that is solved; OCC_MAP_NONE */
};

int occ_normal_new(const struct occ_normal_options *options, struct occ_normal **ret_normal,
                   struct occ_error *err)
{
    struct occ_normal *normal = calloc(1, sizeof *normal);
    if (!normal)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    normal->options = *options;
    normal->gain = 1;
    normal->growth = exp2(1 / options->half_life);
    normal->h = calloc((size_t)options->n_rhs * options->max_columns, sizeof *normal->h);
    normal->place = calloc((size_t)options->max_columns + SIDE, sizeof *normal->place);
    if (!normal->h || !normal->place) {
        occ_normal_free(normal);
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    }
    for (uint32_t i = 0; i < options->max_columns + SIDE; i++)
        normal->place[i] = OCC_MAP_NONE;
    *ret_normal = normal;
    return 0;
}

void occ_normal_free(struct occ_normal *normal)
{
    if (!normal)
        return;
    occ_map_free(&normal->index);
    free(normal->tiles);
    free(normal->h);
    free(normal->place);
    free(normal);
}

/* ---- rows ---- */

static uint64_t tile_key(uint32_t row, uint32_t column)
{
    return (uint64_t)row << 32 | column;
}

/* The tile's index; OCC_MAP_NONE: no room. */
static uint32_t tile_at(struct occ_normal *normal, uint32_t row, uint32_t column)
{
    uint32_t at = occ_map_get(&normal->index, tile_key(row, column));
    if (at != OCC_MAP_NONE)
        return at;
    if (!occ_grow((void **)&normal->tiles, &normal->tiles_allocated, normal->n_tiles,
                  normal->options.max_tiles, sizeof *normal->tiles) ||
        occ_map_put(&normal->index, tile_key(row, column), normal->n_tiles) == OCC_MAP_NONE)
        return OCC_MAP_NONE;
    struct tile *tile = &normal->tiles[normal->n_tiles];
    memset(tile, 0, sizeof *tile);
    tile->row = row;
    tile->column = column;
    return normal->n_tiles++;
}

static int by_column(const void *a, const void *b)
{
    uint32_t x = ((const struct occ_normal_entry *)a)->column,
             y = ((const struct occ_normal_entry *)b)->column;
    return (x > y) - (x < y);
}

static void rescale(struct occ_normal *normal)
{
    for (uint32_t t = 0; t < normal->n_tiles; t++)
        for (uint32_t i = 0; i < SIDE * SIDE; i++)
            normal->tiles[t].g[i / SIDE][i % SIDE] /= normal->gain;
    size_t n = (size_t)normal->options.n_rhs * normal->options.max_columns;
    for (size_t i = 0; i < n; i++)
        normal->h[i] /= normal->gain;
    normal->gain = 1;
}

/* The end of the entries that share a tile row with the one at `from`. */
static size_t strip_end(const struct occ_normal_entry *entries, size_t from, size_t n)
{
    size_t to = from + 1;
    while (to < n && entries[to].column / SIDE == entries[from].column / SIDE)
        to++;
    return to;
}

/* A strip's shares at their places in a tile. */
static void spread(const struct occ_normal_entry *entries, size_t n, double shares[SIDE])
{
    memset(shares, 0, SIDE * sizeof *shares);
    for (size_t i = 0; i < n; i++)
        shares[entries[i].column % SIDE] = entries[i].share;
}

static void add_strip(struct tile *tile, const struct occ_normal_entry *rows, size_t n_rows,
                      const double columns[SIDE], double weight)
{
    for (size_t i = 0; i < n_rows; i++) {
        double *g = tile->g[rows[i].column % SIDE], share = rows[i].share * weight;
        for (size_t k = 0; k < SIDE; k++)
            g[k] += share * columns[k];
    }
}

/* Makes the tiles that a row needs, or none. */
static bool have_tiles(struct occ_normal *normal, const struct occ_normal_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i = strip_end(entries, i, n))
        for (size_t k = 0; k <= i; k = strip_end(entries, k, n))
            if (tile_at(normal, entries[i].column / SIDE, entries[k].column / SIDE) == OCC_MAP_NONE)
                return false;
    return true;
}

int occ_normal_add(struct occ_normal *normal, struct occ_normal_entry *entries, size_t n, double weight,
                   const double *rhs, struct occ_error *err)
{
    qsort(entries, n, sizeof *entries, by_column);
    if (!have_tiles(normal, entries, n))
        return occ_fail(err, OCC_E_FULL, "too many kernels ran beside each other");
    normal->gain *= normal->growth;
    if (normal->gain > GAIN_MOST)
        rescale(normal);
    weight *= normal->gain;
    for (size_t i = 0, i_end; i < n; i = i_end) {
        i_end = strip_end(entries, i, n);
        for (size_t k = 0, k_end; k <= i; k = k_end) {
            double columns[SIDE];
            k_end = strip_end(entries, k, n);
            spread(entries + k, k_end - k, columns);
            uint32_t at = tile_at(normal, entries[i].column / SIDE, entries[k].column / SIDE);
            add_strip(&normal->tiles[at], entries + i, i_end - i, columns, weight);
        }
    }
    for (uint32_t r = 0; r < normal->options.n_rhs; r++) {
        double *h = normal->h + (size_t)r * normal->options.max_columns;
        for (size_t i = 0; i < n && isfinite(rhs[r]); i++)
            h[entries[i].column] += weight * entries[i].share * rhs[r];
    }
    return 0;
}

void occ_normal_reset(struct occ_normal *normal)
{
    normal->n_tiles = 0;
    occ_map_clear(&normal->index);
    memset(normal->h, 0, (size_t)normal->options.n_rhs * normal->options.max_columns * sizeof *normal->h);
    normal->gain = 1;
}

void occ_normal_clear(struct occ_normal *normal, uint32_t column)
{
    for (uint32_t t = 0; t < normal->n_tiles; t++) {
        struct tile *tile = &normal->tiles[t];
        if (tile->row == column / SIDE)
            memset(tile->g[column % SIDE], 0, sizeof tile->g[0]);
        for (uint32_t i = 0; i < SIDE && tile->column == column / SIDE; i++)
            tile->g[i][column % SIDE] = 0;
    }
    for (uint32_t r = 0; r < normal->options.n_rhs; r++)
        normal->h[(size_t)r * normal->options.max_columns + column] = 0;
}

double occ_normal_diagonal(const struct occ_normal *normal, uint32_t column)
{
    uint32_t at = occ_map_get(&normal->index, tile_key(column / SIDE, column / SIDE));
    return at == OCC_MAP_NONE ? 0 : normal->tiles[at].g[column % SIDE][column % SIDE] / normal->gain;
}

/* ---- solving ---- */

/* The places of a tile's columns in the block; OCC_MAP_NONE outside. */
struct strip {
    bool any;
    const uint32_t *place;
};

static struct strip find_places(const struct occ_normal *normal, uint32_t tile)
{
    struct strip strip = {.place = normal->place + (size_t)tile * SIDE};
    for (uint32_t i = 0; i < SIDE; i++)
        strip.any |= strip.place[i] != OCC_MAP_NONE;
    return strip;
}

static void set_places(struct occ_normal *normal, const struct occ_normal_block *block, bool inside)
{
    for (uint32_t i = 0; i < block->n; i++)
        normal->place[block->column[i]] = inside ? i : OCC_MAP_NONE;
}

/* One element of G, seen from its row: within the block it is part of the matrix, else its column's last
 * value moves to the right-hand sides. */
static void put_element(const struct occ_normal *normal, const struct occ_normal_block *block, uint32_t place,
                        uint32_t other_place, uint32_t other_column, double g, const double *solution,
                        double *matrix, double *rhs)
{
    if (other_place != OCC_MAP_NONE) {
        matrix[(size_t)place * block->n + other_place] = g;
        return;
    }
    for (uint32_t r = 0; r < normal->options.n_rhs; r++)
        rhs[(size_t)r * block->n + place] -=
            g * solution[(size_t)r * normal->options.max_columns + other_column];
}

static void put_tile(const struct occ_normal *normal, const struct occ_normal_block *block,
                     const struct tile *tile, const double *solution, double *matrix, double *rhs)
{
    const struct strip rows = find_places(normal, tile->row), columns = find_places(normal, tile->column);
    if (!rows.any && !columns.any)
        return;
    for (uint32_t i = 0; i < SIDE; i++)
        for (uint32_t k = 0; k < SIDE; k++) {
            double g = tile->g[i][k] / normal->gain;
            if (g == 0)
                continue;
            if (rows.place[i] != OCC_MAP_NONE)
                put_element(normal, block, rows.place[i], columns.place[k], tile->column * SIDE + k, g,
                            solution, matrix, rhs);
            if (tile->row != tile->column && columns.place[k] != OCC_MAP_NONE)
                put_element(normal, block, columns.place[k], rows.place[i], tile->row * SIDE + i, g, solution,
                            matrix, rhs);
        }
}

/* Cholesky in place, lower triangle. A pivot lost to rounding counts as a column of which nothing is known.
 */
static void factor(double *a, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        double *row = a + (size_t)i * n;
        for (uint32_t k = 0; k <= i; k++) {
            const double *other = a + (size_t)k * n;
            double sum = row[k];
            for (uint32_t j = 0; j < k; j++)
                sum -= row[j] * other[j];
            if (k < i) {
                row[k] = sum / other[k];
                continue;
            }
            row[i] = sqrt(sum > row[i] * 1e-9 ? sum : row[i] * 1e-9 + 1e-300);
        }
    }
}

static void substitute(const double *l, uint32_t n, double *b)
{
    for (uint32_t i = 0; i < n; i++) {
        double sum = b[i];
        for (uint32_t k = 0; k < i; k++)
            sum -= l[(size_t)i * n + k] * b[k];
        b[i] = sum / l[(size_t)i * n + i];
    }
    for (uint32_t i = n; i-- > 0;) {
        b[i] /= l[(size_t)i * n + i];
        for (uint32_t k = 0; k < i; k++)
            b[k] -= l[(size_t)i * n + k] * b[i];
    }
}

/* The inverse of L L^T, both triangles. */
static void invert(const double *l, uint32_t n, double *ret_inverse)
{
    /* rows of ret_inverse become the columns of L^-1 */
    for (uint32_t c = 0; c < n; c++) {
        double *column = ret_inverse + (size_t)c * n;
        memset(column, 0, c * sizeof *column);
        column[c] = 1 / l[(size_t)c * n + c];
        for (uint32_t i = c + 1; i < n; i++) {
            double sum = 0;
            for (uint32_t k = c; k < i; k++)
                sum -= l[(size_t)i * n + k] * column[k];
            column[i] = sum / l[(size_t)i * n + i];
        }
    }
    /* (L L^T)^-1 [i][k] = sum over j >= max(i, k) of L^-1[j][i] L^-1[j][k]; row i is not needed after its
     * turn */
    for (uint32_t i = 0; i < n; i++) {
        double *row = ret_inverse + (size_t)i * n;
        for (uint32_t k = i; k < n; k++) {
            const double *other = ret_inverse + (size_t)k * n;
            double sum = 0;
            for (uint32_t j = k; j < n; j++)
                sum += row[j] * other[j];
            row[k] = sum;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            ret_inverse[(size_t)i * n + k] = ret_inverse[(size_t)k * n + i];
}

int occ_normal_solve(struct occ_normal *normal, struct occ_normal_block *block, const double *prior_mean,
                     double *solution, struct occ_error *err)
{
    uint32_t n = block->n, stride = normal->options.max_columns;
    double *matrix = block->covariance;
    double *rhs = calloc((size_t)normal->options.n_rhs * n + 1, sizeof *rhs);
    if (!rhs)
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    memset(matrix, 0, (size_t)n * n * sizeof *matrix);
    for (uint32_t r = 0; r < normal->options.n_rhs; r++)
        for (uint32_t i = 0; i < n; i++)
            rhs[(size_t)r * n + i] =
                normal->h[(size_t)r * stride + block->column[i]] / normal->gain +
                block->prior_precision[i] * prior_mean[(size_t)r * stride + block->column[i]];
    set_places(normal, block, true);
    for (uint32_t t = 0; t < normal->n_tiles; t++)
        put_tile(normal, block, &normal->tiles[t], solution, matrix, rhs);
    set_places(normal, block, false);
    for (uint32_t i = 0; i < n; i++)
        matrix[(size_t)i * n + i] += block->prior_precision[i];
    memcpy(block->scratch, matrix, (size_t)n * n * sizeof *matrix);
    factor(block->scratch, n);
    if (!block->quick)
        invert(block->scratch, n, block->covariance);
    for (uint32_t r = 0; r < (block->quick ? 1 : normal->options.n_rhs); r++) {
        double *x = rhs + (size_t)r * n;
        substitute(block->scratch, n, x);
        for (uint32_t i = 0; i < n; i++) { /* what overflowed must not be in the next solution */
            size_t at = (size_t)r * stride + block->column[i];
            solution[at] = isfinite(x[i]) ? x[i] : prior_mean[at];
        }
    }
    free(rhs);
    return 0;
}
