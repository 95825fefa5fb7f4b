/* See changes.h. */
#include "changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "statistics.h"
#include "support/cleanup.h"

#define CANDIDATE_P      0.01 /* loose, since other changes nearby widen the spread; DIFF_CHANGE_P decides */
#define POSSIBLE_SPREADS 4.0  /* distance of a possible change, in deviations of the points before */

struct series {
    const double *logs; /* logarithms of `values` */
    const double *values;
    size_t n;
    bool *candidate; /* a change before this point */
    double min_log;
};

static double mean(const double *logs, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += logs[i];
    return sum / (double)n;
}

/* Student's test of the logarithms, with one variance for both sides: a new level has few points at first. */
static double p_of(const struct series *s, size_t from, size_t at, size_t to, bool in_order)
{
    struct diff_logs a, b;
    diff_logs_of(s->values + from, at - from, in_order, &a);
    diff_logs_of(s->values + at, to - at, in_order, &b);
    double n = (double)a.n, m = (double)b.n, d = fabs(b.mean - a.mean);
    double variance = ((n - 1) * n * a.variance + (m - 1) * m * b.variance) / (n + m - 2);
    double error = sqrt(variance * (1 / n + 1 / m));
    return error > 0 ? 2 * diff_student_cdf(-d / error, n + m - 2) : !(d > 0);
}

/* ---- candidates ---- */

/* Sum of a point's distances from others. */
static double distances(const double *logs, size_t of, size_t from, size_t to)
{
    double sum = 0;
    for (size_t i = from; i < to; i++)
        sum += fabs(logs[i] - logs[of]);
    return sum;
}

/* The change with the largest energy distance of the points before and after, times n m / (n + m); 0: none.
 * Points go from the second part to the first, one by one. */
static size_t find_best(const struct series *s, size_t from, size_t to)
{
    double first = 0, between = 0, second = 0, largest = 0;
    size_t best = 0;
    for (size_t i = from; i < to; i++)
        second += distances(s->logs, i, i + 1, to);
    for (size_t at = from + 1; at < to; at++) {
        double before = distances(s->logs, at - 1, from, at - 1), after = distances(s->logs, at - 1, at, to);
        double a = (double)(at - from), b = (double)(to - at);
        first += before;
        second -= after;
        between += after - before;
        double here = a * b / (a + b) * 2 * (between / (a * b) - first / (a * a) - second / (b * b));
        best = here > largest ? at : best;
        largest = fmax(largest, here);
    }
    return best;
}

static void find_candidates(struct series *s, size_t from, size_t to)
{
    size_t best = find_best(s, from, to);
    while (best && (best < from + DIFF_CHANGE_SEGMENT || best + DIFF_CHANGE_SEGMENT > to)) {
        /* too few points on one side for a change: search the rest */
        from = best < from + DIFF_CHANGE_SEGMENT ? best : from;
        to = best > from ? best : to;
        best = find_best(s, from, to);
    }
    if (best == 0 || !(p_of(s, from, best, to, false) <= CANDIDATE_P))
        return;
    s->candidate[best] = true;
    find_candidates(s, from, best);
    find_candidates(s, best, to);
}

static void search_windows(struct series *s)
{
    for (size_t from = 0; from < s->n; from += DIFF_CHANGE_WINDOW / 2) {
        size_t to = from + DIFF_CHANGE_WINDOW < s->n ? from + DIFF_CHANGE_WINDOW : s->n;
        find_candidates(s, from, to);
        if (to == s->n)
            break;
    }
}

/* ---- decisions ---- */

/* Tests a change on the points up to its neighbours, at most a window. */
static void test_change(const struct series *s, struct diff_change *changes, size_t i, size_t n)
{
    size_t at = changes[i].at, from = i ? changes[i - 1].at : 0;
    size_t to = i + 1 < n ? changes[i + 1].at : s->n;
    from = at - from < DIFF_CHANGE_WINDOW ? from : at - DIFF_CHANGE_WINDOW;
    to = to - at < DIFF_CHANGE_WINDOW ? to : at + DIFF_CHANGE_WINDOW;
    double before = mean(s->logs + from, at - from), after = mean(s->logs + at, to - at);
    bool is_short = at - from < DIFF_CHANGE_SEGMENT || to - at < DIFF_CHANGE_SEGMENT;
    changes[i].before = exp(before);
    changes[i].after = exp(after);
    changes[i].p = is_short || fabs(after - before) < s->min_log ? 1 : p_of(s, from, at, to, true);
}

/* Returns the index of the least certain change; n: all are certain. */
static size_t find_worst(const struct diff_change *changes, size_t n)
{
    size_t worst = n;
    double largest = DIFF_CHANGE_P;
    for (size_t i = 0; i < n; i++) {
        worst = changes[i].p > largest ? i : worst;
        largest = fmax(largest, changes[i].p);
    }
    return worst;
}

static size_t decide(const struct series *s, struct diff_change *changes)
{
    size_t n = 0, worst;
    for (size_t i = 0; i < s->n; i++)
        if (s->candidate[i])
            changes[n++] = (struct diff_change){.at = i};
    for (size_t i = 0; i < n; i++)
        test_change(s, changes, i, n);
    while ((worst = find_worst(changes, n)) < n) {
        n--;
        memmove(changes + worst, changes + worst + 1, (n - worst) * sizeof *changes);
        if (worst > 0)
            test_change(s, changes, worst - 1, n);
        if (worst < n)
            test_change(s, changes, worst, n);
    }
    return n;
}

/* ---- the newest points ---- */

static bool leaves(const struct series *s, size_t from, size_t at, struct diff_change *ret_change)
{
    size_t n = at - from;
    double before = mean(s->logs + from, n), squares = 0, least = INFINITY;
    double after = mean(s->logs + at, s->n - at), sign = after > before ? 1 : -1;
    for (size_t i = from; i < at; i++)
        squares += (s->logs[i] - before) * (s->logs[i] - before);
    double far = fmax(s->min_log, POSSIBLE_SPREADS * sqrt(squares / (double)(n - 1)));
    for (size_t i = at; i < s->n; i++)
        least = fmin(least, sign * (s->logs[i] - before));
    *ret_change = (struct diff_change){at, exp(before), exp(after), NAN, true, false};
    return least > far;
}

/* A possible change in the last points that are fewer than a segment; false: there is none. */
static bool find_possible(const struct series *s, size_t from, struct diff_change *ret_change)
{
    for (size_t n = DIFF_CHANGE_SEGMENT - 1; n > 0; n--)
        if (s->n >= from + n + DIFF_CHANGE_SEGMENT && leaves(s, from, s->n - n, ret_change))
            return true;
    return false;
}

/* ---- all ---- */

/* Keeps positive values only. index[i]: index in `values` of the i-th kept value. */
static size_t take_values(const double *values, size_t n, double *kept, double *logs, size_t *index)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (values[i] > 0 && isfinite(values[i])) {
            index[m] = i;
            kept[m] = values[i];
            logs[m++] = log(values[i]);
        }
    return m;
}

int diff_find_changes(const double *values, size_t n, double min_change, struct diff_change **ret_changes,
                      size_t *ret_n, struct occ_error *err)
{
    _cleanup_(occ_freep) double *kept = calloc(2 * n + 1, sizeof *kept);
    _cleanup_(occ_freep) size_t *index = calloc(n + 1, sizeof *index);
    _cleanup_(occ_freep) bool *candidate = calloc(n + 1, sizeof *candidate);
    struct diff_change *changes = calloc(n + 2, sizeof *changes);
    if (!kept || !index || !candidate || !changes) {
        free(changes);
        return occ_no_memory(err);
    }
    struct series s = {
        .logs = kept + n, .values = kept, .candidate = candidate, .min_log = log1p(min_change)};
    s.n = take_values(values, n, kept, kept + n, index);
    search_windows(&s);
    size_t found = decide(&s, changes);
    found += find_possible(&s, found ? changes[found - 1].at : 0, &changes[found]);
    for (size_t i = 0; i < found; i++)
        changes[i].at = index[changes[i].at];
    *ret_changes = changes;
    *ret_n = found;
    return 0;
}

/* ---- drifts ---- */

/* The least-squares line of m logarithms over their index; leaves the residuals' exponentials in `kept`. */
static void fit_line(const double *logs, size_t m, double *kept, double *ret_slope, double *ret_squares)
{
    double middle = (double)(m - 1) / 2, level = mean(logs, m), products = 0, squares = 0;
    for (size_t i = 0; i < m; i++) {
        products += ((double)i - middle) * (logs[i] - level);
        squares += ((double)i - middle) * ((double)i - middle);
    }
    *ret_slope = products / squares;
    *ret_squares = squares;
    for (size_t i = 0; i < m; i++)
        kept[i] = exp(logs[i] - level - *ret_slope * ((double)i - middle));
}

static bool has_steps(const double *values, size_t n, double min_change)
{
    _cleanup_(occ_freep) struct diff_change *steps = NULL;
    size_t found = 0;
    return diff_find_changes(values, n, min_change, &steps, &found, NULL) != 0 ||
           (found && !steps[0].possible);
}

bool diff_find_drift(const double *values, size_t n, double min_change, struct diff_change *ret_drift)
{
    _cleanup_(occ_freep) double *kept = calloc(2 * n + 1, sizeof *kept);
    _cleanup_(occ_freep) size_t *index = calloc(n + 1, sizeof *index);
    double slope, squares;
    struct diff_logs residuals;
    size_t m = kept && index ? take_values(values, n, kept, kept + n, index) : 0;
    if (m < DIFF_DRIFT_POINTS)
        return false;
    const double *logs = kept + n;
    fit_line(logs, m, kept, &slope, &squares);
    diff_logs_of(kept, m, true, &residuals);
    double error = sqrt(residuals.variance * (double)m / squares), half = slope * (double)(m - 1) / 2;
    double p = error > 0 ? 2 * diff_student_cdf(-fabs(slope) / error, (double)m - 2) : 1;
    *ret_drift = (struct diff_change){index[0], exp(mean(logs, m) - half), exp(mean(logs, m) + half), p,
                                      .is_drift = true};
    return p <= DIFF_CHANGE_P && 2 * fabs(half) >= log1p(min_change) &&
           !has_steps(values, n, expm1(fabs(half)));
}
