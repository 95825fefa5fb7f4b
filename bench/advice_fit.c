/*
 * See advice_fit.h. A repository's weight is the square root of its number of rows: a compromise between
 * equal weights of rows and equal weights of repositories.
 *
 * An exponent changes only to one of a few multiples of the published table's value, and only if the mean
 * error falls by more than REFIT_GAIN, so that a few rows of one repository do not change it. Threads: one.
 */
#include "advice_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REFIT_GAIN    0.02
#define QUANTILE_LOW  0.05 /* of residuals; meant for 80 % of an unseen repository's rows */
#define QUANTILE_HIGH 0.95

struct occ_prediction fit_predict(const struct occ_prediction_table *table, const struct corpus_row *row)
{
    return occ_predict_sides(table, &row->side[0], &row->side[1], row->bound, row->owner);
}

static bool counts(const struct corpus_row *row, const char *left_out)
{
    return !row->skipped && !(left_out && strcmp(row->source, left_out) == 0);
}

static double weight_of(const struct corpus *corpus, const struct corpus_row *row)
{
    size_t n = 0;
    for (size_t i = 0; i < corpus->n; i++)
        n += !corpus->rows[i].skipped && strcmp(corpus->rows[i].source, row->source) == 0;
    return 1 / sqrt((double)(n ? n : 1));
}

struct weighted {
    double value, weight;
    const struct corpus_row *row;
};

static int compare(const void *a, const void *b)
{
    double x = ((const struct weighted *)a)->value, y = ((const struct weighted *)b)->value;
    return (x > y) - (x < y);
}

/* Returns the weighted quantile; `values` are sorted. */
static double quantile(const struct weighted *values, size_t n, double q)
{
    double all = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        all += values[i].weight;
    for (size_t i = 0; i < n; i++) {
        sum += values[i].weight;
        if (sum >= q * all)
            return values[i].value;
    }
    return n ? values[n - 1].value : 0;
}

static double error_of(const struct occ_prediction_table *table, const struct weighted *rows, size_t n)
{
    double sum = 0, weights = 0;
    for (size_t i = 0; i < n; i++) {
        sum += rows[i].weight * fabs(log(rows[i].row->ratio / fit_predict(table, rows[i].row).ratio));
        weights += rows[i].weight;
    }
    return weights > 0 ? sum / weights : 0;
}

static void fit_exponents(struct occ_prediction_table *table, const struct weighted *rows, size_t n)
{
    static const double fractions[] = {0, 0.5, 1.5, 2};
    for (int term = 0; term < OCC_TERM_NONE; term++) {
        double published = table->term[term].exponent;
        double best = error_of(table, rows, n) * (1 - REFIT_GAIN), best_exponent = published;
        for (size_t i = 0; i < sizeof fractions / sizeof *fractions; i++) {
            table->term[term].exponent = fractions[i] * published;
            double error = error_of(table, rows, n);
            if (error < best) {
                best = error;
                best_exponent = table->term[term].exponent;
            }
        }
        table->term[term].exponent = best_exponent;
    }
}

struct occ_prediction_table fit_table(const struct corpus *corpus, const char *left_out)
{
    struct occ_prediction_table table = occ_published_cases;
    struct weighted *rows = calloc(corpus->n + 1, sizeof *rows);
    size_t n = 0;
    if (!rows)
        abort();
    for (size_t i = 0; i < corpus->n; i++)
        if (counts(&corpus->rows[i], left_out))
            rows[n++] = (struct weighted){0, weight_of(corpus, &corpus->rows[i]), &corpus->rows[i]};
    fit_exponents(&table, rows, n);
    for (size_t i = 0; i < n; i++) {
        const struct corpus_row *row = rows[i].row;
        struct occ_prediction p = fit_predict(&table, row);
        rows[i].value =
            log(row->ratio / p.ratio) / occ_prediction_width(&table, &p, &row->side[0], &row->side[1]);
    }
    qsort(rows, n, sizeof *rows, compare);
    table.low = fmin(quantile(rows, n, QUANTILE_LOW), 0);
    table.high = fmax(quantile(rows, n, QUANTILE_HIGH), 0);
    free(rows);
    return table;
}
