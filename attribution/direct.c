/* Reads the value of a launch that lasts several samples directly from its samples: the counts minus the
 * estimated share of the other launches. A kernel's record arrives when the kernel ends; if the samples were
 * joined before, the value is read from the merged old rows. See state.h. */
#include "state.h"

/* Sums over the rows during a launch. */
struct sums {
    /* sum: the launch's ratios x ns; ns: time of the rows that count the ratio */
    double sum[OCC_RATIO_DIRECT], ns[OCC_RATIO_DIRECT];
    /* n: number of rows; others: standard error of the launch's share beside other launches, x ns */
    double n, others;
    double imbalance, own_ns; /* over rows without another launch: imbalance x ns; ns */
};

/* Divides the sums by their time and fills in the result. `edges`: ns of the launch without data. True: the
 * rows cover enough of the launch. */
static bool fill(const struct occ_attribution *a, struct sums *s, double duration, double edges,
                 struct occ_measured *m)
{
    double ns = s->ns[OCC_RATIO_WARPS], x = s->sum[OCC_RATIO_WARPS] / ns;
    double unseen = a->assumed.spread_max * fmax(1 - ns / duration, 0) + edges / duration;
    double se = occ_quadrature(s->others / ns, unseen * x), noise = NOISE * x;
    for (int r = 0; r < OCC_RATIO_DIRECT; r++)
        s->sum[r] /= s->ns[r]; /* NaN: not counted */
    occ_inference_fill(a, s->sum, se * se + noise * noise / s->n, m);
    m->imbalance = s->imbalance / s->own_ns;
    return ns >= COVERED * duration;
}

/* Adds the launch's part of a row, `ns` long: the mean of its configuration and a share of the unexplained
 * count. */
static void add_row(const struct occ_attribution *a, const struct occ_row *row, const double *mean, double ns,
                    struct sums *s)
{
    double unexplained[OCC_RATIO_DIRECT], length = (double)(row->end_ns - row->start_ns);
    double own = mean[OCC_RATIO_WARPS] * ns / length, variance = occ_design_residual(a, row, unexplained);
    double weight = fmin(own * own / variance, 1);
    /* spread of launches; their values may be withheld */
    double spread = fmax(sqrt(a->estimate.scale), a->assumed.spread_max);
    for (int r = 0; r < OCC_RATIO_DIRECT; r++) {
        double rest = unexplained[r] - row->idle * a->estimate.idle[r];
        s->sum[r] += !isfinite(rest) ? 0 : mean[r] * ns + weight * rest * length;
        s->ns[r] += !isfinite(rest) ? 0 : ns;
    }
    if (!isfinite(unexplained[OCC_RATIO_WARPS]))
        return;
    s->n++;
    s->others += spread * own * sqrt(1 - weight) * length;
    s->imbalance += isfinite(row->imbalance) ? row->imbalance * ns : 0;
    s->own_ns += isfinite(row->imbalance) ? ns : 0;
}

/* Reads the rows in [start_ns, end_ns) and subtracts the estimates of the other launches. The interval may
 * end after the last sample. */
static bool read_rows(const struct occ_attribution *a, const struct occ_regressor *own, int64_t start_ns,
                      int64_t end_ns, struct occ_measured *m)
{
    double duration = (double)(end_ns - start_ns);
    struct sums s = {0};
    for (const struct occ_row *row = a->rows.last; row && row->end_ns > start_ns; row = row->before) {
        double ns =
            fmin((double)(row->end_ns - start_ns), duration) - fmax((double)(row->start_ns - start_ns), 0);
        if (ns > 0)
            add_row(a, row, own->value, ns, &s);
    }
    /* sum[0] is the sum of warps */
    s.sum[0] += own->profile[OCC_ELASTICITY] * occ_shorter(own, duration) * s.ns[0];
    return fill(a, &s, duration, fmax((double)(end_ns - a->joined_ns), 0), m);
}

/* Reads the merged old rows in [start_ns, end_ns). The error comes from other known launches at the time and
 * from the partly covered intervals at both ends. */
static bool read_past(const struct occ_attribution *a, int64_t start_ns, int64_t end_ns,
                      struct occ_measured *m)
{
    int64_t end = end_ns / OCC_PAST_NS, whole = end - (start_ns + OCC_PAST_NS - 1) / OCC_PAST_NS;
    double duration = (double)(end_ns - start_ns);
    struct sums s = {0};
    for (int64_t at = end; --at * OCC_PAST_NS >= start_ns && at + OCC_PAST_COUNT > end;) {
        const struct occ_past *past = &a->past[(uint64_t)at % OCC_PAST_COUNT];
        if (past->number != at || past->late > 1 || past->end_ns > end_ns)
            continue;
        for (int r = 0; r < OCC_RATIO_DIRECT; r++) {
            s.sum[r] += (double)past->sum[r];
            s.ns[r] += (double)past->ns[r];
        }
        s.n++;
        s.others += (double)past->busy_ns;
    }
    double edges = duration - (double)(whole * OCC_PAST_NS);
    return fill(a, &s, duration, a->longest_ns > OCC_PAST_NS ? 2 * a->longest_ns : edges, m);
}

void occ_direct_mark(struct occ_attribution *a, const struct occ_queued_launch *l)
{
    int64_t offset = (int64_t)occ_clock_offset(a, l->end_ns), start_ns = l->start_ns + offset;
    int64_t end_ns = l->end_ns + offset, end = end_ns / OCC_PAST_NS;
    /* rows of earlier intervals end before the launch */
    int64_t first = (start_ns - SAMPLE_NS_MAX) / OCC_PAST_NS - 1;
    occ_design_forget(a, &a->rows, start_ns, end_ns, SIZE_MAX);
    occ_design_forget(a, &a->utilization_rows, start_ns, end_ns, SIZE_MAX);
    for (int64_t at = end; at + OCC_PAST_COUNT > end && at >= first; at--) {
        struct occ_past *past = &a->past[(uint64_t)at % OCC_PAST_COUNT];
        past->late += past->number == at && past->end_ns > start_ns;
    }
}

bool occ_direct_read(struct occ_attribution *a, const struct occ_queued_launch *l, struct occ_measured *m)
{
    const struct occ_regressor *r = &a->regressors[l->regressor];
    int64_t offset = (int64_t)occ_clock_offset(a, l->end_ns);
    int64_t start_ns = l->start_ns + offset, end_ns = l->end_ns + offset;
    double ns = (double)(end_ns - start_ns), usual = l->is_late ? ns : r->launch_ns / r->launches;
    double longest = l->is_late ? fmax(a->longest_ns, (double)OCC_PAST_NS) : a->longest_ns;
    bool is_alone = l->is_late || r->overlapped_ns <= OVERLAPPED * r->launch_ns;
    /* `usual`: an exceptionally long launch of a short kernel says nothing about the kernel */
    if (!is_alone || fmin(ns, usual) < INTERVALS * longest)
        return false;
    struct occ_measured own = {.source = OCC_ATTRIBUTION_DIRECT, .variance_inflation = 1};
    bool is_enough =
        l->is_late ? read_past(a, start_ns, end_ns, &own) : read_rows(a, r, start_ns, end_ns, &own);
    if (is_enough && own.elapsed > 0 && /* 0: other launches explain all counts */
        own.elapsed_se <= DIRECT_ERROR_MAX && a->estimate.untraced_sd <= ERROR_MAX)
        *m = own;
    m->imbalance = own.imbalance;
    return m->source == OCC_ATTRIBUTION_DIRECT;
}
