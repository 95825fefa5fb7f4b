/*
 * Launches that last several samples are read from them: what was counted less what the others had of it.
 * What joined samples counted that no launch explains is kept for launches that are reported later: a
 * kernel's record comes when it ends. See state.h. One thread.
 */
#include "state.h"

/* ---- launches that wait for their samples ---- */

/* What present values expect of a launch of the regressor in a sample. */
static double expect_part(const struct occ_regressor *r, const struct occ_part *part, int response)
{
    float by_profile = response == OCC_RESPONSE_WARPS ? part->by_profile : 0;
    return (double)(part->time_share * r->value[response] + by_profile);
}

static void expect_row(const struct occ_attribution *a, const struct occ_row *row, double *ret)
{
    for (int r = 0; r < OCC_RESPONSE_DIRECT; r++) {
        ret[r] = (double)row->idle * a->estimate.idle[r];
        for (size_t i = 0; i < a->making.n_parts; i++) {
            const struct occ_part *part = &a->making.parts[i];
            const struct occ_queued_launch *l = &a->queue.launches[part->launch];
            ret[r] += expect_part(&a->regressors.items[l->regressor], part, r);
        }
    }
}

/* A sample is divided by what is expected of its launches; what is counted beyond that, by the variances of
 * what is expected. */
static void read_part(struct occ_attribution *a, struct occ_direct *d, const struct occ_part *part,
                      const struct occ_row *row, const double *expected)
{
    const struct occ_regressor *own = &a->regressors.items[a->queue.launches[part->launch].regressor];
    double length = (double)row->length_ns;
    double warps = (double)(part->time_share * own->value[OCC_RESPONSE_WARPS]);
    double weight = a->making.n_parts == 1 ? 1 : warps * warps / (double)row->variance;
    for (int r = 0; r < OCC_RESPONSE_DIRECT; r++) {
        if (!isfinite(row->response[r]))
            continue;
        d->sums.sum[r] +=
            (expect_part(own, part, r) + weight * ((double)row->response[r] - expected[r])) * length;
        d->sums.ns[r] += (double)part->time_share * length;
    }
    double spread = fmax(sqrt(a->estimate.scale), SPREAD_MAX); /* of values that may be withheld */
    d->shared += warps * sqrt(1 - weight) * spread * length;   /* their errors repeat: no squares */
    d->samples++;
}

/* Adds what no launch explains to the past; nothing, while not a launch's value is known. */
static void push(struct occ_attribution *a, const struct occ_row *row, const double *expected)
{
    int64_t end_ns = row->start_ns + (int64_t)row->length_ns;
    bool is_idle = a->making.n_parts == 0;
    for (int64_t bin = row->start_ns / OCC_PAST_NS; bin * OCC_PAST_NS < end_ns; bin++) {
        struct occ_past *past = &a->past[bin % OCC_PAST_MAX];
        double inside = fmin((double)(end_ns - bin * OCC_PAST_NS), (double)OCC_PAST_NS) -
                        fmax((double)(row->start_ns - bin * OCC_PAST_NS), 0);
        if (past->bin != bin)
            *past = (struct occ_past){.bin = bin};
        past->busy_ns += (float)((1 - (double)row->idle) * inside);
        for (int r = 0; r < OCC_RESPONSE_DIRECT; r++) {
            double counted = (double)row->response[r];
            if (!isfinite(counted) || !(is_idle || a->estimate.known))
                continue;
            past->sum[r] += (float)((counted - (is_idle ? 0 : expected[r])) * inside);
            past->ns[r] += (float)inside;
            past->counted += r == OCC_RESPONSE_WARPS ? (float)(counted * inside) : 0;
        }
    }
}

/* Stragglers, and those that are long in a burst, would stand for all. */
static bool is_long(const struct occ_attribution *a, const struct occ_queued_launch *l)
{
    const struct occ_regressor *r = &a->regressors.items[l->regressor];
    double shortest_ns = fmin((double)(l->end_ns - l->start_ns), r->launch_ns / r->launches);
    return shortest_ns >= INTERVALS * a->longest_ns;
}

void occ_direct_read(struct occ_attribution *a, const struct occ_row *row, double imbalance)
{
    double expected[OCC_RESPONSE_DIRECT];
    expect_row(a, row, expected);
    push(a, row, expected);
    for (size_t i = 0; i < a->making.n_parts; i++) {
        const struct occ_part *part = &a->making.parts[i];
        struct occ_queued_launch *l = &a->queue.launches[part->launch];
        l->covered = true;
        if (!l->direct && is_long(a, l))
            l->direct = calloc(1, sizeof *l->direct); /* without memory it is not read */
        if (!l->direct)
            continue;
        read_part(a, l->direct, part, row, expected);
        if (a->making.n_parts == 1 && part->at_start >= 0 && part->at_end >= 0 && isfinite(imbalance)) {
            l->direct->sums.imbalance += imbalance * (double)row->length_ns;
            l->direct->sums.imbalance_ns += (double)row->length_ns;
        }
    }
}

static bool report(const struct occ_attribution *a, const struct occ_sums *sums, bool overlapped,
                   struct occ_measured *m)
{
    *m = (struct occ_measured){
        .source = OCC_ATTRIBUTION_DIRECT, .variance_inflation = 1, .overlapped = overlapped};
    occ_errors_fill(a, sums, m);
    return m->elapsed_se <= DIRECT_ERROR_MAX;
}

bool occ_direct_report(struct occ_attribution *a, struct occ_queued_launch *l, struct occ_measured *m)
{
    if (!l->direct)
        return false;
    struct occ_direct d = *l->direct;
    free(l->direct);
    double duration = (double)(l->end_ns - l->start_ns), ns = d.sums.ns[OCC_RESPONSE_WARPS];
    if (!a->estimate.known || (double)l->overlapped_ns > OVERLAPPED * duration || ns < COVERED * duration ||
        d.samples < INTERVALS)
        return false;
    double x = d.sums.sum[OCC_RESPONSE_WARPS] / ns;
    d.sums.variance = d.shared * d.shared / (ns * ns) + NOISE * NOISE * x * x / d.samples;
    struct occ_regressor *r = &a->regressors.items[l->regressor];
    r->imbalance += d.sums.imbalance;
    r->imbalance_ns += d.sums.imbalance_ns;
    return report(a, &d.sums, false, m);
}

/* ---- launches that are reported late ---- */

/* Samples with the launch in them, but not in their rows, say nothing of others. */
static void ignore_rows(struct occ_attribution *a, double start_ns, double end_ns)
{
    struct occ_rows *const all[] = {&a->rows, &a->utilization_rows};
    for (size_t i = 0; i < all[0]->n + all[1]->n; i++) {
        struct occ_row *row = i < all[0]->n ? &all[0]->rows[i] : &all[1]->rows[i - all[0]->n];
        if ((double)row->start_ns < end_ns && (double)row->start_ns + (double)row->length_ns > start_ns)
            row->variance = INFINITY;
    }
}

size_t occ_direct_sum_past(const struct occ_attribution *a, int64_t first, int64_t end, struct occ_sums *sums)
{
    double last = NAN;
    size_t n = 0;
    for (int64_t bin = first; bin < end; bin++) {
        const struct occ_past *past = &a->past[bin % OCC_PAST_MAX];
        if (past->bin != bin || past->ns[OCC_RESPONSE_WARPS] == 0)
            continue;
        for (int r = 0; r < OCC_RESPONSE_DIRECT; r++) {
            sums->sum[r] += (double)past->sum[r];
            sums->ns[r] += (double)past->ns[r];
        }
        sums->busy_ns += (double)past->busy_ns;
        sums->counted += (double)past->counted;
        double value = (double)(past->sum[OCC_RESPONSE_WARPS] / past->ns[OCC_RESPONSE_WARPS]);
        sums->variance += n > 0 ? (value - last) * (value - last) / 2 : 0;
        last = value;
        n++;
    }
    sums->variance /= (double)(n * n);
    return n;
}

bool occ_direct_lookup(struct occ_attribution *a, const struct occ_queued_launch *launch,
                       struct occ_measured *m)
{
    double offset = occ_clock_offset(a, launch->end_ns);
    double start_ns = (double)launch->start_ns + offset, end_ns = (double)launch->end_ns + offset;
    int64_t end = (int64_t)floor(end_ns / (double)OCC_PAST_NS),
            oldest = end > OCC_PAST_MAX ? end - OCC_PAST_MAX : 0,
            first = (int64_t)fmax(ceil(start_ns / (double)OCC_PAST_NS), (double)oldest);
    struct occ_sums sums = {0};
    size_t bins = occ_direct_sum_past(a, first, end, &sums);
    double duration = end_ns - start_ns, ns = sums.ns[OCC_RESPONSE_WARPS];
    if (bins < INTERVALS || ns < LATE_COVERED * duration - 2 * (double)OCC_PAST_NS)
        return false;
    for (int64_t bin = first; bin < end; bin++)
        if (a->past[bin % OCC_PAST_MAX].bin == bin)
            a->past[bin % OCC_PAST_MAX].busy_ns = (float)OCC_PAST_NS; /* for others that come late too */
    ignore_rows(a, start_ns, end_ns);
    double unseen = SPREAD_MAX * sums.sum[OCC_RESPONSE_WARPS] / ns * fmax(1 - ns / duration, 0);
    sums.variance += unseen * unseen;
    return report(a, &sums, sums.busy_ns > OVERLAPPED * duration, m);
}
