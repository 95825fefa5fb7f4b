/*
 * Launches that last several samples are read from them: what was counted less what others had of it. Samples
 * that are joined leave behind what no launch explains, for launches that are reported later: a kernel's
 * record comes when it ends. See state.h. One thread.
 */
#include <math.h>

#include "state.h"

#define DIRECT_INTERVALS 3
#define DIRECT_COVERED   0.9
#define RECALL_COVERED   0.75 /* of a long launch: the other counter sets have had their turns meanwhile */
#define OTHERS_SD        0.3  /* of what others have, from launch to launch */
#define ERROR_MOST       0.03 /* maximum for a value of a launch's own beside others */
#define PAST_NS          1e6  /* maximum length of a merged entry of the history */
#define PRIOR_SD         0.35 /* of what others are thought to have before anything is estimated */

static uint32_t take_direct(struct occ_attribution *a)
{
    uint32_t at = a->free_direct;
    if (at != OCC_NO_DIRECT) {
        a->free_direct = a->direct[at].next_free;
    } else {
        size_t allocated = a->direct_allocated;
        if (!occ_grow((void **)&a->direct, &allocated, a->n_direct, a->options.max_launches,
                      sizeof *a->direct))
            return OCC_NO_DIRECT;
        a->direct_allocated = (uint32_t)allocated;
        at = a->n_direct++;
    }
    a->direct[at] = (struct direct){.next_free = OCC_NO_DIRECT};
    return at;
}

/* Adds one sample to a launch: what was counted, less what the others had of it. */
void occ_direct_read(struct occ_attribution *a, const struct occ_sample *sample, const double *ratio,
                     const double *predicted, const struct occ_overlap_part *part)
{
    struct occ_overlap_launch *l = &a->launches[part->launch];
    double length = (double)(sample->end_ns - sample->start_ns);
    if ((double)(l->end_ns - l->start_ns) < DIRECT_INTERVALS * length)
        return;
    if (l->direct == OCC_NO_DIRECT)
        l->direct = take_direct(a);
    if (l->direct == OCC_NO_DIRECT)
        return;
    struct direct *d = &a->direct[l->direct];
    const struct occ_key *key = &a->keys.keys[l->key];
    double own_warps = 0;
    for (int r = 0; r < OCC_RHS_COUNT; r++) {
        double own = 0;
        for (uint32_t f = 0; f < key->functions; f++)
            own += part->share[f] * occ_keys_value(&a->keys, key, (enum occ_rhs)r, f);
        if (r == OCC_RHS_WARPS)
            own_warps = own;
        if (!isfinite(ratio[r]))
            continue;
        d->sum[r] += (ratio[r] - (predicted[r] - own)) * length;
        d->ns[r] += part->time_share * length;
    }
    if (isfinite(ratio[OCC_RHS_WARPS])) {
        double others = predicted[OCC_RHS_WARPS] - own_warps,
               guess = a->estimated ? 0 : PRIOR_SD * others * length;
        d->others += fabs(others) * length;
        d->error += occ_noise_variance(a, sample) * a->noise.warps * length * length + guess * guess;
    }
    double least = sample->value[OCC_COUNTER_ACTIVE_MIN], most = sample->value[OCC_COUNTER_ACTIVE_MAX];
    if (part->time_share > 0.999 && isfinite(least) && most > 0) {
        d->imbalance += (1 - least / most) * length;
        d->imbalance_ns += length;
    }
    d->samples++;
}

/* Values of `sum` over the `ns` for which each was read. */
static void fill_direct(const double *sum, const double *ns, struct occ_measured *out)
{
    double x = sum[OCC_RHS_WARPS] / ns[OCC_RHS_WARPS];
    double y = ns[OCC_RHS_ACTIVE] > 0 ? sum[OCC_RHS_ACTIVE] / ns[OCC_RHS_ACTIVE] : NAN;
    out->source = OCC_ATTRIBUTION_DIRECT;
    out->variance_inflation = 1;
    out->launches = 1;
    out->elapsed = fmin(fmax(x, 0), 1);
    out->sm_active = fmin(fmax(y, 0), 1);
    bool defined = y > 0 && x <= y * 1.001 && !out->overlapped;
    out->achieved = defined ? fmin(out->elapsed / y, 1) : NAN;
    out->achieved_se = defined ? out->elapsed_se / y : NAN;
    out->blocks = defined && ns[OCC_RHS_BLOCKS] > 0 ? sum[OCC_RHS_BLOCKS] / ns[OCC_RHS_BLOCKS] / y : NAN;
    for (int i = 0; i < 5; i++)
        out->stall[i] = ns[OCC_RHS_STALLS + i] > 0
                            ? fmin(fmax(sum[OCC_RHS_STALLS + i] / ns[OCC_RHS_STALLS + i], 0), 1)
                            : NAN;
}

bool occ_direct_report(struct occ_attribution *a, const struct occ_overlap_launch *l,
                       struct occ_measured *ret_measured)
{
    double duration = (double)(l->end_ns - l->start_ns);
    bool beside = (double)l->beside_ns > OCC_OVERLAPPED * duration;
    if (l->direct == OCC_NO_DIRECT)
        return false;
    const struct direct *d = &a->direct[l->direct];
    if (d->ns[OCC_RHS_WARPS] < DIRECT_COVERED * duration || d->samples < DIRECT_INTERVALS)
        return false;
    /* others' shares are known by their means; beside others that is what the error is made of */
    double doubt = beside ? OTHERS_SD * d->others : 0, error = sqrt(d->error + doubt * doubt) / duration;
    if (beside && error > ERROR_MOST)
        return false;
    *ret_measured = (struct occ_measured){.samples = d->samples, .elapsed_se = error, .overlapped = beside};
    ret_measured->imbalance = d->imbalance_ns > 0 ? d->imbalance / d->imbalance_ns : NAN;
    fill_direct(d->sum, d->ns, ret_measured);
    struct occ_key *key = &a->keys.keys[l->key];
    key->imbalance += d->imbalance;
    key->imbalance_ns += d->imbalance_ns;
    return true;
}

void occ_direct_release(struct occ_attribution *a, uint32_t direct)
{
    if (direct == OCC_NO_DIRECT)
        return;
    a->direct[direct].next_free = a->free_direct;
    a->free_direct = direct;
}

/* ---- launches that are reported late ---- */

/* Adds what follows at once and counted the same to what is remembered, until that is PAST_NS long: bursts of
 * short samples would push long kernels' samples out. */
static bool joins(struct past *last, const struct past *now)
{
    double a = (double)(last->end_ns - last->start_ns), b = (double)(now->end_ns - now->start_ns);
    bool alike = last->end_ns == now->start_ns && a + b <= PAST_NS;
    for (int r = 0; r < OCC_RHS_COUNT && alike; r++)
        alike = isfinite(last->unexplained[r]) == isfinite(now->unexplained[r]);
    if (!alike)
        return false;
    for (int r = 0; r < OCC_RHS_COUNT; r++)
        last->unexplained[r] = (float)((last->unexplained[r] * a + now->unexplained[r] * b) / (a + b));
    last->busy = (float)((last->busy * a + now->busy * b) / (a + b));
    last->end_ns = now->end_ns;
    return true;
}

void occ_direct_push(struct occ_attribution *a, const struct occ_sample *sample, const double *ratio,
                     const double *predicted, size_t n_parts)
{
    struct past now = {.start_ns = sample->start_ns, .end_ns = sample->end_ns};
    for (size_t i = 0; i < n_parts; i++)
        now.busy += (float)a->parts[i].time_share;
    for (int r = 0; r < OCC_RHS_COUNT; r++)
        now.unexplained[r] = (float)(ratio[r] - (n_parts ? predicted[r] : 0));
    if (a->n_past == 0 || !joins(&a->past[(a->n_past - 1) % OCC_HISTORY_MAX], &now))
        a->past[a->n_past++ % OCC_HISTORY_MAX] = now;
}

/* The first remembered sample that ends after `at_ns`. */
static uint64_t first_past(const struct occ_attribution *a, double at_ns)
{
    uint64_t low = a->n_past > OCC_HISTORY_MAX ? a->n_past - OCC_HISTORY_MAX : 0, high = a->n_past;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if ((double)a->past[middle % OCC_HISTORY_MAX].end_ns <= at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool occ_direct_lookup(struct occ_attribution *a, const struct occ_attribution_launch *launch,
                       struct occ_measured *ret_measured)
{
    double offset = occ_clock_fit_offset(&a->clock, launch->end_ns),
           duration = (double)(launch->end_ns - launch->start_ns);
    double start = (double)launch->start_ns + offset, end = (double)launch->end_ns + offset, busy = 0;
    struct direct d = {0};
    for (uint64_t i = first_past(a, start); i < a->n_past; i++) {
        struct past *past = &a->past[i % OCC_HISTORY_MAX];
        double length = (double)(past->end_ns - past->start_ns);
        double inside = fmin((double)past->end_ns, end) - fmax((double)past->start_ns, start);
        if (inside <= 0)
            break;
        for (int r = 0; r < OCC_RHS_COUNT; r++) {
            if (!isfinite(past->unexplained[r]))
                continue;
            d.sum[r] += (double)past->unexplained[r] * inside;
            d.ns[r] += inside;
        }
        const struct occ_sample sample = {.start_ns = past->start_ns, .end_ns = past->end_ns};
        d.error += occ_noise_variance(a, &sample) * a->noise.warps * inside * inside;
        d.samples += inside > length / 2;
        busy += (double)past->busy * inside;
        past->busy += (float)(inside / length); /* for others that come late too */
    }
    if (d.samples < DIRECT_INTERVALS || d.ns[OCC_RHS_WARPS] < RECALL_COVERED * duration)
        return false;
    *ret_measured = (struct occ_measured){.samples = d.samples,
                                          .elapsed_se = sqrt(d.error) / d.ns[OCC_RHS_WARPS],
                                          .imbalance = NAN,
                                          .overlapped = busy > OCC_OVERLAPPED * duration};
    fill_direct(d.sum, d.ns, ret_measured);
    return true;
}
