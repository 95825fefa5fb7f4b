/*
 * Launches that last several samples are read from them: what was counted less what the others had of it.
 * What joined samples counted that no launch explains is kept for launches that are reported later: a
 * kernel's record comes when it ends. See state.h. One thread.
 */
#include "state.h"

#define INTERVALS    3
#define COVERED      0.9
#define LATE_COVERED 0.75 /* of a long launch: the other counter sets have had their turns meanwhile */
#define ERROR_MAX    0.036
#define ERROR_MIN    0.001
#define EDGE_NS      8000.0 /* by which the clocks may be beside each other still */
#define FULL         0.999f /* of a sample's time */
#define NOISE        0.03   /* of a sample's count, relative */

static uint32_t take_direct(struct occ_attribution *a)
{
    uint32_t at = a->free_direct;
    if (at != OCC_NONE)
        a->free_direct = a->direct[at].next_free;
    else if (occ_grow((void **)&a->direct, &a->direct_allocated, a->n_direct, a->options.max_launches,
                      sizeof *a->direct))
        at = (uint32_t)a->n_direct++;
    if (at != OCC_NONE)
        a->direct[at] = (struct occ_direct){.next_free = OCC_NONE};
    return at;
}

/* What present values expect of the launch in the sample. */
static double expect(const struct occ_attribution *a, const struct occ_regressor *r,
                     const struct occ_part *part, enum occ_response response)
{
    double sum = (double)(part->time_share * r->value[response]);
    for (int i = 0; i < OCC_PROFILE; i++)
        sum += (double)part->profile[i] *
               (a->special[OCC_SPECIAL_PROFILE + i][response] * (double)r->value[OCC_RESPONSE_WARPS] +
                (response == OCC_RESPONSE_WARPS ? (double)r->profile[i] : 0));
    return sum;
}

/* A sample that the launch shares is divided by what is expected of all; what is counted beyond that, by the
 * variances of what is expected. */
static void read_part(struct occ_attribution *a, const struct occ_sample *sample, struct occ_direct *d,
                      const struct occ_part *part, const struct occ_row *row, const double *ratio,
                      const double *predicted)
{
    const struct occ_regressor *own = &a->regressors.items[a->launches[part->launch].regressor];
    double length = (double)row->length_ns;
    double expected = (double)(part->time_share * own->value[OCC_RESPONSE_WARPS]);
    bool is_full = part->time_share > FULL && a->n_parts == 1;
    double weight = is_full ? 1 : expected * expected / (double)row->variance;
    for (int r = 0; r < OCC_RESPONSE_COUNT; r++) {
        double own_part = is_full ? predicted[r] : expect(a, own, part, (enum occ_response)r);
        if (!isfinite(ratio[r]))
            continue;
        d->sum[r] += (own_part + weight * (ratio[r] - predicted[r])) * length;
        d->ns[r] += (double)part->time_share * length;
    }
    d->others_variance +=
        expected * expected * (1 - weight) * length * length * a->scale[occ_length_class(row)] * !is_full;
    double least = sample->value[OCC_COUNTER_ACTIVE_MIN], most = sample->value[OCC_COUNTER_ACTIVE_MAX];
    if (is_full && isfinite(least) && most > 0) {
        d->imbalance += (1 - least / most) * length;
        d->imbalance_ns += length;
    }
    d->samples++;
}

/* Adds what no launch explains to the history. */
static void push(struct occ_attribution *a, const struct occ_row *row, const double *ratio,
                 const double *predicted)
{
    int64_t end_ns = row->start_ns + (int64_t)row->length_ns;
    for (int64_t bin = row->start_ns / OCC_PAST_NS; bin * OCC_PAST_NS < end_ns; bin++) {
        struct occ_past *past = &a->past[bin % OCC_PAST_MAX];
        double inside = fmin((double)(end_ns - bin * OCC_PAST_NS), (double)OCC_PAST_NS) -
                        fmax((double)(row->start_ns - bin * OCC_PAST_NS), 0);
        if (past->bin != bin)
            *past = (struct occ_past){.bin = bin};
        past->busy_ns += (float)((1 - (double)row->special[OCC_SPECIAL_IDLE]) * inside);
        for (int r = 0; r < OCC_RESPONSE_COUNT; r++) {
            double residual = ratio[r] - (a->n_parts > 0 ? predicted[r] : 0);
            past->sum[r] += isfinite(residual) ? (float)(residual * inside) : 0;
            past->ns[r] += isfinite(residual) ? (float)inside : 0;
        }
    }
}

void occ_direct_read(struct occ_attribution *a, const struct occ_sample *sample, const struct occ_row *row,
                     const double *ratio, const double *predicted)
{
    push(a, row, ratio, predicted);
    for (size_t i = 0; i < a->n_parts; i++) {
        struct occ_queued_launch *l = &a->launches[a->parts[i].launch];
        double duration = (double)(l->end_ns - l->start_ns);
        if (duration < INTERVALS * (double)row->length_ns)
            continue;
        if (l->direct == OCC_NONE)
            l->direct = take_direct(a);
        if (l->direct != OCC_NONE)
            read_part(a, sample, &a->direct[l->direct], &a->parts[i], row, ratio, predicted);
    }
}

/* Values of `sum` over the `ns` for which each was read; `variance`: of elapsed. */
static bool fill(const struct occ_attribution *a, const double *sum, const double *ns, double variance,
                 struct occ_measured *out)
{
    double untraced = a->untraced_sd * a->untraced_sd + a->idle_square;
    double x = sum[OCC_RESPONSE_WARPS] / ns[OCC_RESPONSE_WARPS] - a->untraced;
    double y = ns[OCC_RESPONSE_ACTIVE] > 0 ? sum[OCC_RESPONSE_ACTIVE] / ns[OCC_RESPONSE_ACTIVE] : NAN;
    out->elapsed_se = sqrt(variance + untraced + ERROR_MIN * ERROR_MIN);
    if (!(out->elapsed_se <= ERROR_MAX))
        return false;
    out->source = OCC_ATTRIBUTION_DIRECT;
    out->variance_inflation = 1;
    out->launches = 1;
    out->elapsed = fmin(fmax(x, 0), 1);
    out->sm_active = fmin(fmax(y, 0), 1);
    bool defined = y > 0 && x <= y * 1.001 && !out->overlapped;
    out->achieved = defined ? fmin(out->elapsed / y, 1) : NAN;
    out->achieved_se = defined ? out->elapsed_se / y : NAN;
    out->blocks =
        defined && ns[OCC_RESPONSE_BLOCKS] > 0 ? sum[OCC_RESPONSE_BLOCKS] / ns[OCC_RESPONSE_BLOCKS] / y : NAN;
    for (int i = 0; i < 5; i++) {
        double stalled = sum[OCC_RESPONSE_STALLS + i] / ns[OCC_RESPONSE_STALLS + i];
        out->stall[i] = isfinite(stalled) ? fmin(fmax(stalled, 0), 1) : NAN;
    }
    return true;
}

static bool report(struct occ_attribution *a, const struct occ_queued_launch *l, const struct occ_direct *d,
                   struct occ_measured *ret_measured)
{
    double duration = (double)(l->end_ns - l->start_ns), ns = d->ns[OCC_RESPONSE_WARPS];
    if ((double)l->beside_ns > OCC_OVERLAPPED * duration || ns < COVERED * duration || d->samples < INTERVALS)
        return false;
    double x = d->sum[OCC_RESPONSE_WARPS] / ns, edge = EDGE_NS * x / duration;
    *ret_measured = (struct occ_measured){.samples = d->samples};
    ret_measured->imbalance = d->imbalance_ns > 0 ? d->imbalance / d->imbalance_ns : NAN;
    return fill(a, d->sum, d->ns,
                NOISE * NOISE * x * x / d->samples + d->others_variance / (ns * ns) + 2 * edge * edge,
                ret_measured);
}

bool occ_direct_report(struct occ_attribution *a, const struct occ_queued_launch *l,
                       struct occ_measured *ret_measured)
{
    if (l->direct == OCC_NONE)
        return false;
    struct occ_direct *d = &a->direct[l->direct];
    bool has_value = report(a, l, d, ret_measured);
    struct occ_regressor *r = &a->regressors.items[l->regressor];
    r->imbalance += has_value ? d->imbalance : 0;
    r->imbalance_ns += has_value ? d->imbalance_ns : 0;
    d->next_free = a->free_direct;
    a->free_direct = l->direct;
    return has_value;
}

/* ---- launches that are reported late ---- */

/* Samples with the launch in them, but not in their rows, say nothing of others. */
static void drop_rows(struct occ_attribution *a, double start_ns, double end_ns)
{
    for (size_t i = 0; i < a->rows.n; i++) {
        struct occ_row *row = &a->rows.rows[i];
        if ((double)row->start_ns < end_ns && (double)row->start_ns + (double)row->length_ns > start_ns)
            row->response[OCC_RESPONSE_WARPS] = NAN;
    }
}

bool occ_direct_lookup(struct occ_attribution *a, const struct occ_attribution_launch *launch,
                       struct occ_measured *ret_measured)
{
    double offset = occ_clock_offset(a, launch->end_ns), busy = 0, squares = 0, bins = 0;
    int64_t first = (int64_t)ceil(((double)launch->start_ns + offset) / (double)OCC_PAST_NS);
    int64_t end = (int64_t)floor(((double)launch->end_ns + offset) / (double)OCC_PAST_NS);
    double sum[OCC_RESPONSE_COUNT] = {0}, ns[OCC_RESPONSE_COUNT] = {0}, last = NAN;
    first = first > end - OCC_PAST_MAX ? first : end - OCC_PAST_MAX;
    for (int64_t bin = first; bin < end; bin++) {
        struct occ_past *past = &a->past[bin % OCC_PAST_MAX];
        if (past->bin != bin || past->ns[OCC_RESPONSE_WARPS] == 0)
            continue;
        for (int r = 0; r < OCC_RESPONSE_COUNT; r++) {
            sum[r] += (double)past->sum[r];
            ns[r] += (double)past->ns[r];
        }
        double value = (double)(past->sum[OCC_RESPONSE_WARPS] / past->ns[OCC_RESPONSE_WARPS]);
        squares += isfinite(last) ? (value - last) * (value - last) / 2 : 0;
        last = value;
        busy += (double)past->busy_ns;
        past->busy_ns = (float)OCC_PAST_NS; /* for others that come late too */
        bins++;
    }
    double duration = (double)(launch->end_ns - launch->start_ns);
    if (bins < INTERVALS || ns[OCC_RESPONSE_WARPS] < (LATE_COVERED * duration - 2 * (double)OCC_PAST_NS))
        return false;
    drop_rows(a, (double)launch->start_ns + offset, (double)launch->end_ns + offset);
    *ret_measured = (struct occ_measured){
        .samples = (uint64_t)bins, .imbalance = NAN, .overlapped = busy > OCC_OVERLAPPED * duration};
    double edge = sum[OCC_RESPONSE_WARPS] / ns[OCC_RESPONSE_WARPS] * (double)OCC_PAST_NS / duration;
    return fill(a, sum, ns, squares / bins / bins + edge * edge, ret_measured);
}
