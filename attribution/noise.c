/*
 * Noise: what residuals tell of the counters, of the times of launches, and of the keys' profiles. See
 * state.h. One thread.
 */
#include <math.h>

#include "state.h"

#define FIRST_ROWS   64     /* of a class; their residuals are not limited */
#define VARIANCE_MIN 1e-8   /* no counter is more precise */
#define NOISE_MEMORY 2000.0 /* rows over which residuals are averaged */

static struct noise_class *class_of(struct occ_attribution *a, const struct occ_sample *sample)
{
    int power = ilogb((double)(sample->end_ns - sample->start_ns));
    return &a->classes[power < OCC_CLASSES ? power : OCC_CLASSES - 1];
}

double occ_noise_variance(struct occ_attribution *a, const struct occ_sample *sample)
{
    return class_of(a, sample)->variance;
}

static void note_noise(struct occ_attribution *a, struct noise_class *class, double warps, double active)
{
    double variance = class->variance, keep = 1 - 1 / fmin(++class->rows, NOISE_MEMORY);
    double square =
        fmin(warps * warps, OCC_HUBER * OCC_HUBER * variance * (class->rows < FIRST_ROWS ? 1e6 : 1));
    class->variance = fmax(keep * variance + (1 - keep) * square, VARIANCE_MIN);
    keep = 1 - 1 / fmin(++a->noise_rows, NOISE_MEMORY);
    double *const what[] = {&a->noise.warps, &a->noise.both, &a->noise.active};
    const double now[] = {warps * warps / variance, warps * active / variance, active * active / variance};
    for (int i = 0; i < 3 && isfinite(active); i++)
        *what[i] = keep * *what[i] + (1 - keep) * fmin(now[i], OCC_HUBER * OCC_HUBER);
}

static void note_misfit(struct occ_attribution *a, double residual, double variance)
{
    for (uint32_t i = 0; i < a->row.n; i++) {
        struct occ_key *key = &a->keys.keys[a->row.key[i]];
        double share = a->row.share[i][0];
        key->evidence += share * share / variance;
        key->misfit += share * share * residual * residual / (variance * variance);
    }
}

/* Residuals that depend on where in a launch a sample starts or ends are not noise: the launch's profile
 * differs from the model's. */
static void note_phases(struct occ_attribution *a, size_t n_parts, double residual, double variance)
{
    double units = fmin(fmax(residual / sqrt(variance * a->noise.warps), -OCC_HUBER), OCC_HUBER);
    for (size_t i = 0; i < n_parts; i++) {
        const struct occ_overlap_part *part = &a->parts[i];
        struct occ_key *key = &a->keys.keys[a->launches[part->launch].key];
        const double at[2] = {part->at_start, part->at_end};
        for (int k = 0; k < 2; k++) {
            if (at[k] < 0)
                continue;
            int phase = k * OCC_PHASES + (int)fmin(at[k] * OCC_PHASES, OCC_PHASES - 1);
            key->phase[phase] += units;
            key->phase_rows[phase]++;
        }
    }
}

void occ_noise_note(struct occ_attribution *a, const struct occ_sample *sample, size_t n_parts,
                    const double *ratio, const double *predicted)
{
    struct noise_class *class = class_of(a, sample);
    double variance = class->variance, residual = ratio[OCC_RHS_WARPS] - predicted[OCC_RHS_WARPS];
    note_noise(a, class, residual, ratio[OCC_RHS_ACTIVE] - predicted[OCC_RHS_ACTIVE]);
    note_misfit(a, residual, variance);
    note_phases(a, n_parts, residual, variance);
}
