/* Rows of a bill: merging, amounts that add up, order; see bill_state.h. One thread. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bill_state.h"
#include "support/array.h"
#include "support/cleanup.h"

/* ---- texts ---- */

/* FNV-1a. Paths of ranges come from programs: equal hashes of different texts cost memory, nothing else. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

const char *occ_bill_intern(struct occ_bill_work *w, const char *text)
{
    uint32_t at = occ_map_put(&w->texts, hash_of(text), (uint32_t)w->n_known);
    if (at == OCC_MAP_NONE)
        return NULL;
    if (at < w->n_known && strcmp(w->known[at], text) == 0)
        return w->known[at];
    const char *copy = occ_arena_copy(&w->arena, text);
    if (w->arena.failed)
        return NULL;
    if (at < w->n_known)
        return copy;
    if (!occ_grow((void **)&w->known, &w->allocated_known, w->n_known, UINT32_MAX, sizeof *w->known))
        return NULL;
    w->known[w->n_known++] = copy;
    return copy;
}

/* ---- rows ---- */

static int compare_texts(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int by_key(const void *left, const void *right)
{
    const struct occ_bill_row *a = left, *b = right;
    int order = compare_texts(a->key, b->key);
    return order != 0 ? order : compare_texts(a->model, b->model);
}

void occ_bill_add_row(struct occ_bill_row *sum, const struct occ_bill_row *row)
{
    sum->held_s += row->held_s;
    for (size_t i = 0; i < OCC_BILL_PART_COUNT; i++) {
        sum->part_s[i] += row->part_s[i];
        sum->part_j[i] += row->part_j[i];
    }
    sum->lost_low_s += row->lost_low_s;
    sum->metered_s += row->metered_s;
    sum->is_estimate = sum->is_estimate || row->is_estimate;
    sum->simulated = sum->simulated || row->simulated;
}

static void merge(struct occ_bill_work *w)
{
    size_t kept = 0;
    if (w->n_rows > 1)
        qsort(w->rows, w->n_rows, sizeof *w->rows, by_key);
    for (size_t i = 0; i < w->n_rows; i++) {
        if (kept > 0 && by_key(&w->rows[kept - 1], &w->rows[i]) == 0)
            occ_bill_add_row(&w->rows[kept - 1], &w->rows[i]);
        else
            w->rows[kept++] = w->rows[i];
    }
    w->n_rows = w->merged = kept;
}

/* Merges first if many rows came since the last merge, so that memory grows with the answer. */
int occ_bill_put_row(struct occ_bill_work *w, const struct occ_bill_row *row)
{
    enum { UNMERGED_MIN = 4096 };
    if (w->n_rows > 2 * w->merged + UNMERGED_MIN)
        merge(w);
    if (!occ_grow((void **)&w->rows, &w->allocated, w->n_rows, UINT32_MAX, sizeof *w->rows))
        return occ_no_memory(w->err);
    w->rows[w->n_rows++] = *row;
    return 0;
}

/* ---- amounts ---- */

/* Returns the exact amount in the currency's unit. */
static double amount_of(const struct occ_bill_row *row)
{
    return row->held_s / 3600 * (double)row->price->millionths * 1e-6;
}

/* Sets the amounts of rows in the currency as integers, of which `per_unit` are a unit of the currency:
 * shares of the rounded sum. `weights` and `shares` have room for all rows; other rows have the weight 0.
 * Returns 0 or OCC_E_NO_MEMORY. */
static int share_currency(const struct occ_bill_work *w, const char *currency, double per_unit,
                          double *weights, int64_t *shares)
{
    double sum = 0;
    for (size_t i = 0; i < w->n_rows; i++) {
        const struct occ_bill_row *row = &w->rows[i];
        weights[i] = row->price && strcmp(row->price->currency, currency) == 0 ? amount_of(row) : 0;
        sum += weights[i];
    }
    return occ_share_out(llround(fmin(sum * per_unit, 1e18)), weights, w->n_rows, shares);
}

/* Sets the amounts of the rows in the currency. Room as in share_currency(). */
static int set_currency(const struct occ_bill_work *w, const char *currency, double *weights, int64_t *shares)
{
    int rc = share_currency(w, currency, 1e2, weights, shares);
    for (size_t i = 0; i < w->n_rows && rc == 0; i++)
        if (weights[i] > 0)
            w->rows[i].cents = shares[i];
    if (rc == 0)
        rc = share_currency(w, currency, 1e6, weights, shares);
    for (size_t i = 0; i < w->n_rows && rc == 0; i++)
        if (weights[i] > 0)
            rc = occ_share_out(shares[i], w->rows[i].part_s, OCC_BILL_PART_COUNT, w->rows[i].part_millionths);
    return rc;
}

static int set_parts(struct occ_bill_row *row)
{
    double lost_s = row->part_s[OCC_BILL_LOST];
    int rc = occ_share_out(row->cents, row->part_s, OCC_BILL_PART_COUNT, row->part_cents);
    row->lost_low_cents =
        lost_s > 0 ? (int64_t)((double)row->part_cents[OCC_BILL_LOST] * (row->lost_low_s / lost_s)) : 0;
    return rc;
}

static double joules_of(const struct occ_bill_row *row)
{
    double sum = 0;
    for (size_t i = 0; i < OCC_BILL_PART_COUNT; i++)
        sum += row->part_j[i];
    return sum;
}

/* Sets the energies, which add up to the rounded sum of all rows. Room as in share_currency(). */
static int set_energies(const struct occ_bill_work *w, double *weights, int64_t *shares)
{
    double sum = 0;
    for (size_t i = 0; i < w->n_rows; i++)
        sum += weights[i] = joules_of(&w->rows[i]);
    int rc = occ_share_out(llround(fmin(sum * 1e3, 1e18)), weights, w->n_rows, shares);
    for (size_t i = 0; i < w->n_rows && rc == 0; i++) {
        w->rows[i].mj = shares[i];
        rc = occ_share_out(shares[i], w->rows[i].part_j, OCC_BILL_PART_COUNT, w->rows[i].part_mj);
    }
    return rc;
}

static int set_amounts(struct occ_bill_work *w)
{
    const struct occ_prices *prices = w->question->prices;
    _cleanup_(occ_freep) double *weights = calloc(w->n_rows + 1, sizeof *weights);
    _cleanup_(occ_freep) int64_t *shares = calloc(w->n_rows + 1, sizeof *shares);
    int rc = weights && shares ? 0 : OCC_E_NO_MEMORY;
    for (size_t i = 0; i < w->n_rows; i++)
        w->rows[i].price = occ_price_of(prices, w->rows[i].model);
    for (size_t i = 0; i < prices->n && rc == 0; i++)
        rc = set_currency(w, prices->list[i].currency, weights, shares);
    for (size_t i = 0; i < w->n_rows && rc == 0; i++)
        rc = set_parts(&w->rows[i]);
    if (rc == 0)
        rc = set_energies(w, weights, shares);
    return rc == 0 ? 0 : occ_no_memory(w->err);
}

static int largest_first(const void *left, const void *right)
{
    const struct occ_bill_row *a = left, *b = right;
    if (a->cents != b->cents)
        return (a->cents < b->cents) - (a->cents > b->cents);
    return a->held_s != b->held_s ? (a->held_s < b->held_s) - (a->held_s > b->held_s) : by_key(a, b);
}

int occ_bill_conclude(struct occ_bill_work *w)
{
    merge(w);
    int rc = set_amounts(w);
    if (rc == 0 && w->n_rows > 1)
        qsort(w->rows, w->n_rows, sizeof *w->rows, largest_first);
    return rc;
}
