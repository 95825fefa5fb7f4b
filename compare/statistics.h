/*
 * The statistics of occq diff: ratios of means of positive values, by Welch's test on logarithms, and the
 * Benjamini-Hochberg procedure. Closed forms, no random numbers: the same values on every machine.
 *
 * Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Distribution function and quantile of Student's t. `df` > 0, real; 0 < p < 1. The distribution function is
 * 1 - I_x(df/2, 1/2) / 2 for t > 0, x = df / (df + t^2), with the incomplete beta function as a continued
 * fraction (DLMF 8.17.22). */
double diff_student_cdf(double t, double df);
double diff_student_quantile(double p, double df);

/* Mean and variance of logarithms. */
struct diff_logs {
    size_t n;
    double mean;
    double variance; /* variance of the mean */
};
/* Values that are not positive make the mean NaN. `in_order`: the values follow each other in time. A
 * correlation rho > 0.2 of neighbours then widens the variance of the mean by (1 + rho) / (1 - rho). */
void diff_logs_of(const double *values, size_t n, bool in_order, struct diff_logs *ret_logs);

/* The factor of the variance of a mean whose neighbouring values correlate: (1 + rho) / (1 - rho) for rho >
 * 0.2, with a larger rho than 0.9 taken as 0.9; 1: they do not. */
double diff_widening(const double *values, size_t n, double mean);

/* The ratio b / a with its 95 % confidence interval; NaN: unknown. p: of the hypothesis that it is 1. */
struct diff_ratio {
    double ratio, low, high, p;
};
#define DIFF_RATIO_UNKNOWN                                                                                   \
    (struct diff_ratio)                                                                                      \
    {                                                                                                        \
        .ratio = NAN, .low = NAN, .high = NAN, .p = NAN                                                      \
    }
/* Welch, with the degrees of freedom of Satterthwaite. `more_variance`: of the logarithm of the ratio, known
 * exactly. Unknown with fewer than two values on a side. */
struct diff_ratio diff_welch(const struct diff_logs *a, const struct diff_logs *b, double more_variance);

/* The share of successes in `n` trials, with Wilson's 95 % interval; NaN without trials. */
struct diff_share {
    double share, low, high;
};
struct diff_share diff_share_of(size_t successes, size_t n);

/* Replaces p values by the smallest false discovery rate at which each is accepted (Benjamini and Hochberg
 * 1995). NaN stays and does not count. false: no memory. */
bool diff_adjust(double *p, size_t n);
/* The same by Holm 1979: the smallest chance of any false rejection at which each is rejected. */
bool diff_adjust_any(double *p, size_t n);

/* X(NAME, word) */
#define DIFF_VERDICTS(X)                                                                                     \
    X(UNDECIDED, "undecided")                                                                                \
    X(WORSE, "worse")                                                                                        \
    X(BETTER, "better")                                                                                      \
    X(SAME, "same")                                                                                          \
    X(NEW, "new")                                                                                            \
    X(GONE, "gone")
#define DIFF_VERDICT_ENUMERATOR(name, word) DIFF_##name,
enum diff_verdict { DIFF_VERDICTS(DIFF_VERDICT_ENUMERATOR) DIFF_VERDICT_COUNT };
const char *diff_verdict_word(enum diff_verdict verdict);

/* The verdict on a quantity that grows when a kernel gets worse. Same: the interval lies in [1 / (1 + floor),
 * 1 + floor]; worse or better: it lies beyond, and the false discovery rate q is at most 5 %. */
enum diff_verdict diff_judge(const struct diff_ratio *ratio, double q, double floor);
