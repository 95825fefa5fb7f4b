/*
 * Launches that last several samples are read from them: what was counted less what the others had of it;
 * from the past, if they are reported later: a kernel's record comes when it ends. See state.h. One thread.
 */
#include <string.h>

#include "state.h"

/* Sums over the rows of a launch. */
struct sums {
    double sum[OCC_RATIO_DIRECT], ns[OCC_RATIO_DIRECT]; /* of what it had x ns; of rows that count it */
    double others;            /* standard error of what it is taken to have had beside others, x ns */
    double last, squares;     /* of what is unexplained: in the last row; of its changes */
    double n, busy_ns;        /* rows; time of all launches that are in them */
    double imbalance, own_ns; /* of rows that it had alone: x ns; ns */
};

/* Adds what a launch had of a row for `ns`: what is expected of it; and of what is unexplained, by the
 * variances of what is expected. */
static void add_row(const struct occ_attribution *a, const struct occ_row *row, const double *expected,
                    double ns, struct sums *s)
{
    double unexplained[OCC_RATIO_DIRECT], length = (double)(row->end_ns - row->start_ns);
    double own = expected[OCC_RATIO_WARPS] * ns / length, last = s->last;
    double weight = row->variance > 0 ? fmin(own * own / row->variance, 1) : 1;
    occ_join_unexplained(a, row, unexplained);
    for (int r = 0; r < OCC_RATIO_DIRECT; r++) {
        if (isnan(unexplained[r]))
            continue;
        s->sum[r] += expected[r] * ns + weight * unexplained[r] * (row->variance > 0 ? length : ns);
        s->ns[r] += ns;
    }
    if (isnan(unexplained[OCC_RATIO_WARPS]))
        return;
    s->n++;
    s->last = unexplained[OCC_RATIO_WARPS];
    s->squares += s->n > 1 ? (s->last - last) * (s->last - last) / 2 : 0;
    s->others += own * sqrt(1 - weight) * length;
    s->busy_ns += (1 - row->idle) * ns;
    s->imbalance += isfinite(row->imbalance) ? row->imbalance * ns : 0;
    s->own_ns += isfinite(row->imbalance) ? ns : 0;
}

/* Fills in what the rows of [start_ns, end_ns) have. Returns whether that is enough. */
static bool read_rows(struct occ_attribution *a, const struct occ_queued_launch *l, int64_t start_ns,
                      int64_t end_ns, struct occ_measured *m)
{
    const struct occ_regressor *own = &a->regressors[l->regressor];
    double duration = (double)(end_ns - start_ns), expected[OCC_RATIO_DIRECT] = {0};
    struct sums s = {0};
    if (!l->is_late) {
        memcpy(expected, own->value, sizeof expected);
        expected[OCC_RATIO_WARPS] += own->profile[OCC_ELASTICITY] * occ_shorter(own, duration);
    }
    double busy_max =
        l->is_late ? OVERLAPPED * duration : INFINITY; /* else others' values have what it had */
    struct occ_row *row = l->is_late ? a->past.last : a->rows.last;
    for (; row && row->end_ns > start_ns && s.busy_ns <= busy_max; row = row->before) {
        int64_t from_ns = row->start_ns > start_ns ? row->start_ns : start_ns,
                to_ns = row->end_ns < end_ns ? row->end_ns : end_ns;
        bool is_whole = to_ns - from_ns == row->end_ns - row->start_ns;
        if (from_ns >= to_ns || (l->is_late && !is_whole)) /* others that are late are in the past too */
            continue;
        add_row(a, row, expected, l->is_late ? row->counted_ns : (double)(to_ns - from_ns), &s);
        row->idle = l->is_late ? 0 : row->idle;
    }
    double ns = s.ns[OCC_RATIO_WARPS], x = s.sum[OCC_RATIO_WARPS] / ns, unseen = fmax(1 - ns / duration, 0);
    double spread = fmax(sqrt(a->estimate.scale), SPREAD_MAX); /* of values that may be withheld */
    double se = spread * occ_quadrature(s.others / ns, unseen * x);
    for (int r = 0; r < OCC_RATIO_DIRECT; r++)
        s.sum[r] /= s.ns[r]; /* not counted: NaN */
    double noise = l->is_late ? s.squares / s.n : NOISE * NOISE * x * x;
    occ_errors_fill(a, s.sum, se * se + noise / s.n, m);
    m->imbalance = s.imbalance / s.own_ns;
    return ns >= COVERED * duration && s.busy_ns <= busy_max;
}

bool occ_direct_read(struct occ_attribution *a, const struct occ_queued_launch *l, struct occ_measured *m)
{
    int64_t offset = (int64_t)occ_clock_offset(a, l->end_ns), end_ns = l->end_ns + offset;
    const struct occ_regressor *r = &a->regressors[l->regressor];
    double ns = (double)(l->end_ns - l->start_ns), usual = l->is_late ? ns : r->launch_ns / r->launches;
    bool is_alone = l->is_late ? !l->is_beside : r->overlapped_ns <= OVERLAPPED * r->launch_ns;
    double longest = l->is_late ? fmax(a->longest_ns, (double)OCC_PAST_NS) : a->longest_ns;
    if (!is_alone || fmin(ns, usual) < INTERVALS * longest) /* stragglers would stand for all */
        return false;
    if (l->is_late) { /* samples without it say nothing of others */
        occ_join_forget(a, &a->rows, end_ns, SIZE_MAX);
        occ_join_forget(a, &a->utilization_rows, end_ns, SIZE_MAX);
    }
    struct occ_measured own = {.source = OCC_ATTRIBUTION_DIRECT, .variance_inflation = 1};
    if (read_rows(a, l, l->start_ns + offset, end_ns, &own) && own.elapsed > 0 && /* 0: others have it */
        own.elapsed_se <= DIRECT_ERROR_MAX && a->estimate.untraced_sd <= ERROR_MAX)
        *m = own;
    m->imbalance = own.imbalance;
    return m->source == OCC_ATTRIBUTION_DIRECT;
}
