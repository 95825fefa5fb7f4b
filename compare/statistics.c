/* Student's t, Welch's interval, Benjamini-Hochberg; see statistics.h. Any thread. */
#include "statistics.h"

#include <math.h>
#include <stdlib.h>

#include "support/cleanup.h"
#include "support/text.h"

#define CONFIDENCE     0.95
#define MAX_Q          0.05
#define CORRELATED_MIN 0.2
#define CORRELATED_MAX 0.9 /* a larger one of few values is noise, and the factor has a pole at 1 */

/* The regularised incomplete beta function for x below (a + 1) / (a + b + 2), where its continued fraction
 * 1 + d1 / (1 + d2 / (1 + ...)) converges fast; by the modified Lentz method. */
static double beta_fraction(double x, double a, double b)
{
    int sign;
    double log_front =
        a * log(x) + b * log1p(-x) + lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign);
    double fraction = 1, c = 1, d = 0, factor = 0;
    for (int j = 1; j < 1000 && fabs(factor - 1) > 1e-15; j++) {
        double m = j / 2;
        double coefficient = j % 2 ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                                   : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / (1 + coefficient * d);
        c = 1 + coefficient / c;
        factor = c * d;
        fraction *= factor;
    }
    return exp(log_front) / (a * fraction);
}

static double incomplete_beta(double x, double a, double b)
{
    if (x <= 0 || x >= 1)
        return x > 0;
    return x < (a + 1) / (a + b + 2) ? beta_fraction(x, a, b) : 1 - beta_fraction(1 - x, b, a);
}

double diff_student_cdf(double t, double df)
{
    double tail = incomplete_beta(df / (df + t * t), df / 2, 0.5) / 2;
    return t > 0 ? 1 - tail : tail;
}

double diff_student_quantile(double p, double df)
{
    double low = -1, high = 1;
    while (diff_student_cdf(low, df) > p)
        low *= 2;
    while (diff_student_cdf(high, df) < p)
        high *= 2;
    for (int i = 0; i < 100 && high - low > 1e-12 * fabs(high + low); i++) {
        double middle = (low + high) / 2;
        *(diff_student_cdf(middle, df) < p ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

static double widening(double products, double squares)
{
    double rho = squares > 0 ? fmin(products / squares, CORRELATED_MAX) : 0;
    return rho > CORRELATED_MIN ? (1 + rho) / (1 - rho) : 1;
}

double diff_widening(const double *values, size_t n, double mean)
{
    double products = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        squares += (values[i] - mean) * (values[i] - mean);
        products += i > 0 ? (values[i - 1] - mean) * (values[i] - mean) : 0;
    }
    return widening(products, squares);
}

void diff_logs_of(const double *values, size_t n, bool in_order, struct diff_logs *ret_logs)
{
    double sum = 0, squares = 0, products = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i] > 0 ? log(values[i]) : NAN;
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        squares += (log(values[i]) - mean) * (log(values[i]) - mean);
        products += i > 0 ? (log(values[i - 1]) - mean) * (log(values[i]) - mean) : 0;
    }
    double variance = n > 1 ? squares / (double)(n - 1) / (double)n : NAN;
    if (in_order)
        variance *= widening(products, squares);
    *ret_logs = (struct diff_logs){.n = n, .mean = mean, .variance = variance};
}

struct diff_ratio diff_welch(const struct diff_logs *a, const struct diff_logs *b, double more_variance)
{
    double d = b->mean - a->mean, variance = a->variance + b->variance;
    if (a->n < 2 || b->n < 2 || isnan(d + variance + more_variance))
        return DIFF_RATIO_UNKNOWN;
    double df = variance > 0 ? variance * variance /
                                   (a->variance * a->variance / (double)(a->n - 1) +
                                    b->variance * b->variance / (double)(b->n - 1))
                             : (double)(a->n + b->n - 2);
    double error = sqrt(variance + more_variance);
    double half = diff_student_quantile(1 - (1 - CONFIDENCE) / 2, df) * error;
    return (struct diff_ratio){
        .ratio = exp(d),
        .low = exp(d - half),
        .high = exp(d + half),
        .p = error > 0 ? 2 * diff_student_cdf(-fabs(d) / error, df) : !(fabs(d) > 0),
    };
}

/* Ascending, NaN last. */
static int by_value(const void *left, const void *right)
{
    double a = **(double *const *)left, b = **(double *const *)right;
    return isnan(a) || isnan(b) ? isnan(a) - isnan(b) : (a > b) - (a < b);
}

bool diff_adjust(double *p, size_t n)
{
    _cleanup_(occ_freep) double **order = calloc(n + 1, sizeof *order);
    size_t known = 0;
    double least = 1;
    if (!order)
        return false;
    for (size_t i = 0; i < n; i++) {
        order[i] = &p[i];
        known += isnan(p[i]) ? 0 : 1;
    }
    qsort(order, n, sizeof *order, by_value);
    for (size_t rank = known; rank > 0; rank--) {
        least = fmin(least, *order[rank - 1] * (double)known / (double)rank);
        *order[rank - 1] = least;
    }
    return true;
}

bool diff_adjust_any(double *p, size_t n)
{
    _cleanup_(occ_freep) double **order = calloc(n + 1, sizeof *order);
    size_t known = 0;
    double most = 0;
    if (!order)
        return false;
    for (size_t i = 0; i < n; i++) {
        order[i] = &p[i];
        known += isnan(p[i]) ? 0 : 1;
    }
    qsort(order, n, sizeof *order, by_value);
    for (size_t rank = 0; rank < known; rank++) {
        most = fmax(most, fmin(*order[rank] * (double)(known - rank), 1));
        *order[rank] = most;
    }
    return true;
}

OCC_WORDS(diff_verdict_word, enum diff_verdict, DIFF_VERDICTS)

enum diff_verdict diff_judge(const struct diff_ratio *ratio, double q, double floor)
{
    if (ratio->low >= 1 / (1 + floor) && ratio->high <= 1 + floor)
        return DIFF_SAME;
    if (!(q <= MAX_Q))
        return DIFF_UNDECIDED;
    return ratio->low > 1 + floor ? DIFF_WORSE : ratio->high < 1 / (1 + floor) ? DIFF_BETTER : DIFF_UNDECIDED;
}

struct diff_share diff_share_of(size_t successes, size_t n)
{
    const double z = 1.959964; /* half-width of a 95 % interval, in standard errors */
    if (n == 0)
        return (struct diff_share){NAN, NAN, NAN};
    double trials = (double)n, share = (double)successes / trials, scale = 1 + z * z / trials;
    double middle = share + z * z / (2 * trials);
    double half = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials));
    return (struct diff_share){share, fmax((middle - half) / scale, 0), fmin((middle + half) / scale, 1)};
}
