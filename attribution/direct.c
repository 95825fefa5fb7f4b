/*
 * Launches that last several samples are read from them: what was counted less what the others had of it.
 * What joined samples counted that no launch explains is kept for launches that are reported later: a
 * kernel's record comes when it ends. See state.h. One thread.
 */
#include "state.h"

/* What the row counted that neither launches nor idle time explain, by present values. */
static void find_unexplained(const struct occ_attribution *a, const struct occ_row *row, double *ret)
{
    for (int r = 0; r < OCC_RATIO_DIRECT; r++)
        ret[r] = (double)row->ratio[r] - (row->n > 0 ? row->idle * a->estimate.idle[r] : 0);
    for (uint32_t i = 0; i < row->n; i++) {
        const struct occ_entry *e = &row->entries[i];
        const struct occ_regressor *regressor = &a->regressors.items[e->column / OCC_COLUMNS];
        uint32_t function = e->column % OCC_COLUMNS;
        for (int r = 0; r < OCC_RATIO_DIRECT && function == 0; r++)
            ret[r] -= e->share * regressor->value[r];
        ret[OCC_RATIO_WARPS] -= function > 0 ? e->share * regressor->profile[function] : 0;
    }
}

/* Nothing, while not a launch's value is known. */
void occ_direct_note(struct occ_attribution *a, const struct occ_row *row)
{
    double unexplained[OCC_RATIO_DIRECT];
    find_unexplained(a, row, unexplained);
    for (int64_t bin = row->start_ns / OCC_PAST_NS; bin * OCC_PAST_NS < row->end_ns; bin++) {
        struct occ_past *past = &a->past[bin % OCC_PAST_MAX];
        double inside = fmin((double)(row->end_ns - bin * OCC_PAST_NS), (double)OCC_PAST_NS) -
                        fmax((double)(row->start_ns - bin * OCC_PAST_NS), 0);
        if (past->bin != bin)
            *past = (struct occ_past){.bin = bin};
        past->busy_ns += (float)((1 - row->idle) * inside);
        for (int r = 0; r < OCC_RATIO_DIRECT; r++) {
            if (isnan(unexplained[r]) || (row->n > 0 && !a->estimate.known))
                continue;
            past->sum[r] += (float)(unexplained[r] * inside);
            past->ns[r] += (float)inside;
            past->counted += r == OCC_RATIO_WARPS ? row->ratio[r] * (float)inside : 0;
        }
    }
}

size_t occ_direct_sum_past(const struct occ_attribution *a, int64_t first, int64_t end, struct occ_sums *sums)
{
    double last = NAN;
    size_t n = 0;
    for (int64_t bin = first; bin < end; bin++) {
        const struct occ_past *past = &a->past[bin % OCC_PAST_MAX];
        if (past->bin != bin || past->ns[OCC_RATIO_WARPS] == 0)
            continue;
        for (int r = 0; r < OCC_RATIO_DIRECT; r++) {
            sums->sum[r] += (double)past->sum[r];
            sums->ns[r] += (double)past->ns[r];
        }
        sums->busy_ns += (double)past->busy_ns;
        sums->counted += (double)past->counted;
        double value = (double)(past->sum[OCC_RATIO_WARPS] / past->ns[OCC_RATIO_WARPS]);
        sums->variance += n > 0 ? (value - last) * (value - last) / 2 : 0;
        last = value;
        n++;
    }
    sums->variance /= (double)(n * n);
    return n;
}

/* Samples with the launch in them, but not in their rows, say nothing of others. */
static void ignore_rows(const struct occ_rows *rows, int64_t start_ns, int64_t end_ns)
{
    for (struct occ_row *row = rows->first; row; row = row->next)
        if (row->start_ns < end_ns && row->end_ns > start_ns)
            row->variance = INFINITY;
}

/* Adds up what the past has of a launch. Returns whether that is enough. */
static bool read_past(struct occ_attribution *a, int64_t start_ns, int64_t end_ns, struct occ_sums *sums)
{
    int64_t end = end_ns / OCC_PAST_NS, oldest = end > OCC_PAST_MAX ? end - OCC_PAST_MAX : 0,
            first = (start_ns + OCC_PAST_NS - 1) / OCC_PAST_NS;
    first = first > oldest ? first : oldest;
    size_t bins = occ_direct_sum_past(a, first, end, sums);
    double duration = (double)(end_ns - start_ns), ns = sums->ns[OCC_RATIO_WARPS];
    if (bins < INTERVALS || ns < LATE_COVERED * duration - 2 * (double)OCC_PAST_NS)
        return false;
    for (int64_t bin = first; bin < end; bin++)
        if (a->past[bin % OCC_PAST_MAX].bin == bin)
            a->past[bin % OCC_PAST_MAX].busy_ns = OCC_PAST_NS; /* for others that come late too */
    ignore_rows(&a->rows, start_ns, end_ns);
    ignore_rows(&a->utilization_rows, start_ns, end_ns);
    double unseen = SPREAD_MAX * sums->sum[OCC_RATIO_WARPS] / ns * fmax(1 - ns / duration, 0);
    sums->variance += unseen * unseen;
    return true;
}

/* Adds what a launch of `duration` had of a row from `from` to `to`: what is expected of it; and of what is
 * unexplained, by the variances of what is expected. */
static void read_row(const struct occ_attribution *a, const struct occ_regressor *own,
                     const struct occ_row *row, const double *span, struct occ_sums *sums)
{
    double unexplained[OCC_RATIO_DIRECT], length = (double)(row->end_ns - row->start_ns), before[2];
    double from = span[0], to = span[1], duration = span[2], ns = to - from;
    double warps = ns / length * own->value[OCC_RATIO_WARPS];
    double weight = fmin(warps * warps / row->variance, 1);
    double elastic = own->profile[OCC_ELASTICITY] * occ_shorter(own, duration);
    (void)occ_join_profile(own, from / duration, &before[0]);
    (void)occ_join_profile(own, to / duration, &before[1]);
    find_unexplained(a, row, unexplained);
    for (int r = 0; r < OCC_RATIO_DIRECT; r++) {
        if (isnan(unexplained[r]))
            continue;
        double profile = r == OCC_RATIO_WARPS ? (before[1] - before[0]) * duration + elastic * ns : 0;
        sums->sum[r] += own->value[r] * ns + profile + weight * unexplained[r] * length;
        sums->ns[r] += ns;
    }
    double spread = fmax(sqrt(a->estimate.scale), SPREAD_MAX); /* of values that may be withheld */
    sums->shared += warps * sqrt(1 - weight) * spread * length;
    if (isfinite(row->imbalance)) {
        sums->imbalance += row->imbalance * length;
        sums->imbalance_ns += length;
    }
}

/* Adds up what rows have of a launch. Returns whether that is enough. */
static bool read_rows(const struct occ_attribution *a, const struct occ_regressor *own, int64_t start_ns,
                      int64_t end_ns, struct occ_sums *sums)
{
    size_t n = 0;
    double duration = (double)(end_ns - start_ns);
    for (const struct occ_row *row = a->rows.last; row && row->end_ns > start_ns; row = row->before) {
        double from = fmax((double)(row->start_ns - start_ns), 0),
               to = fmin((double)(row->end_ns - start_ns), duration);
        if (from >= to)
            continue;
        read_row(a, own, row, (double[]){from, to, duration}, sums);
        n++;
    }
    double ns = sums->ns[OCC_RATIO_WARPS], x = sums->sum[OCC_RATIO_WARPS] / ns;
    sums->variance = sums->shared * sums->shared / (ns * ns) + NOISE * NOISE * x * x / (double)n;
    return n >= INTERVALS && ns >= COVERED * duration;
}

bool occ_direct_read(struct occ_attribution *a, const struct occ_queued_launch *l, struct occ_measured *m)
{
    int64_t offset = (int64_t)occ_clock_offset(a, l->end_ns);
    struct occ_regressor *r = &a->regressors.items[l->regressor];
    struct occ_sums sums = {0};
    double duration = (double)(l->end_ns - l->start_ns);
    if (l->is_late ? !read_past(a, l->start_ns + offset, l->end_ns + offset, &sums)
                   : !a->estimate.known || r->overlapped_ns > OVERLAPPED * r->launch_ns ||
                         fmin(duration, r->launch_ns / r->launches) < INTERVALS * a->longest_ns ||
                         !read_rows(a, r, l->start_ns + offset, l->end_ns + offset, &sums))
        return false; /* the shorter of both: stragglers would stand for all */
    r->imbalance += sums.imbalance;
    r->imbalance_ns += sums.imbalance_ns;
    *m = (struct occ_measured){.source = OCC_ATTRIBUTION_DIRECT,
                               .variance_inflation = 1,
                               .overlapped = sums.busy_ns > OVERLAPPED * duration};
    occ_errors_fill(a, &sums, m);
    return m->elapsed > 0 && m->elapsed_se <= DIRECT_ERROR_MAX; /* 0: others have what it had */
}
