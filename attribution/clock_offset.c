/*
 * The offset between the clocks of launches and samples: found once by trying, then followed. See state.h.
 * One thread.
 */
#include <math.h>

#include "state.h"

#define FIRST_STEP_NS 8000.0 /* of the first search */
#define SEARCHED_KEYS 200
#define ALIKE         16.0 /* rows that say as much as one: errors of profiles repeat */
#define LEAST_SQUARE  1e-3
#define FIRST_SD_NS   30000.0 /* what two processes' clocks differ by, before anything is measured */
#define FAULT         0.01 /* of a sample's length: error of a measurement because profiles are approximations */
#define MOSTLY        0.3 /* of what was counted of late */
#define JUMPED        3.0 /* times the usual residuals: look for another offset */

struct fit {
    double squares, rows; /* of residuals in units of their class; rows that have launches */
};

/* Residuals of the samples [0, n) if the offset differed by `shift_ns` from the filter's. */
static struct fit fit_at(struct occ_attribution *a, size_t n, double shift_ns)
{
    struct fit fit = {0};
    struct occ_overlap walk;
    struct occ_offset_row row;
    occ_join_begin(a, &walk);
    for (size_t i = 0; i < n; i++) {
        const struct occ_sample *s = &a->samples[i];
        if (!occ_join_residual(a, &walk, s, occ_clock_fit_offset(&a->clock, s->start_ns) + shift_ns, &row))
            continue;
        fit.squares += row.residual * row.residual * row.weight;
        fit.rows++;
    }
    return fit;
}

/* Regresses on these samples alone, at one offset. */
static int regress_at(struct occ_attribution *a, size_t n, double shift_ns, struct occ_error *err)
{
    struct occ_normal_entry entries[OCC_NORMAL_ROW];
    struct occ_overlap walk;
    occ_keys_forget(&a->keys);
    occ_join_begin(a, &walk);
    for (size_t i = 0; i < n; i++) {
        double ratio[OCC_RHS_COUNT];
        size_t n_parts = occ_join_row(a, &walk, &a->samples[i], shift_ns);
        occ_join_ratios(a, &a->samples[i], ratio);
        if (n_parts == 0 || !isfinite(ratio[OCC_RHS_WARPS]))
            continue;
        size_t n_entries = occ_join_entries(a, entries);
        int status = n_entries ? occ_normal_add(a->keys.normal[OCC_SYSTEM_WARPS], entries, n_entries,
                                                1 / occ_noise_variance(a, &a->samples[i]), ratio, err)
                               : 0;
        if (status != 0 && status != OCC_E_FULL)
            return status;
    }
    return occ_keys_solve(&a->keys, &a->noise, err);
}

/* Rows that follow each other err alike: they count half. */
static double variance_of(const struct occ_attribution *a, size_t n, const struct occ_shift *step)
{
    double fault = FAULT * (double)(a->samples[n / 2].end_ns - a->samples[n / 2].start_ns);
    return 2 * step->variance + fault * fault;
}

/* Moves the offset downhill from where it is. */
static void refine(struct occ_attribution *a, size_t n, double *shift_ns, double *ret_variance)
{
    for (int round = 0; round < 3; round++) {
        struct occ_shift step = occ_shift_measure(a, n, *shift_ns);
        *shift_ns += fmin(fmax(step.ns, -FIRST_STEP_NS), FIRST_STEP_NS);
        *ret_variance = variance_of(a, n, &step);
    }
}

size_t occ_offset_rows(struct occ_attribution *a, size_t n)
{
    return (size_t)fit_at(a, n, 0).rows;
}

/* The first offset: the likeliest, by what a regression on these samples alone leaves there and by its size.
 * Where there are many keys, what the model expects of them has to do. */
int occ_offset_find(struct occ_attribution *a, size_t n, struct occ_error *err)
{
    double best = 0, least = INFINITY, variance = FIRST_SD_NS * FIRST_SD_NS;
    int steps = (int)((double)OCC_OFFSET_MAX_NS / FIRST_STEP_NS), status = 0;
    uint32_t columns = 0;
    occ_clock_fit_begin(&a->clock);
    for (int i = -steps; i <= steps && status == 0; i++) {
        double shift = i * FIRST_STEP_NS;
        if (a->keys.n <= SEARCHED_KEYS)
            status = regress_at(a, n, shift, err);
        struct fit fit = fit_at(a, n, shift);
        double unlikely = fit.rows / ALIKE * log(fit.squares / fit.rows + LEAST_SQUARE) +
                          shift * shift / (FIRST_SD_NS * FIRST_SD_NS);
        if (unlikely < least) {
            least = unlikely;
            best = shift;
        }
    }
    for (int round = 0; round < (a->keys.n <= SEARCHED_KEYS ? 2 : 1) && status == 0; round++) {
        status = regress_at(a, n, best, err);
        refine(a, n, &best, &variance);
    }
    if (status == 0) /* of all counters, for the first rows to be compared with */
        status = occ_keys_estimate(&a->keys, &a->noise, &columns, err);
    if (status == 0) {
        occ_clock_fit_update(&a->clock, a->samples[n / 2].start_ns, 0, FIRST_SD_NS * FIRST_SD_NS);
        occ_clock_fit_update(&a->clock, a->samples[n / 2].start_ns, best, variance);
    }
    occ_keys_forget(&a->keys); /* the solution stays, to begin with */
    occ_keys_invalidate(&a->keys);
    return status;
}

/* Another offset at which the keys' present values explain these samples as well as they use to; 0: there is
 * none. */
static double find_discontinuity(struct occ_attribution *a, size_t n)
{
    double shift = 0, least = JUMPED * a->noise.warps;
    for (double at = -(double)OCC_OFFSET_MAX_NS; at <= (double)OCC_OFFSET_MAX_NS; at += FIRST_STEP_NS) {
        struct fit fit = fit_at(a, n, at);
        if (fit.squares < least * fit.rows) {
            least = fit.squares / fit.rows;
            shift = at;
        }
    }
    return shift;
}

/* Follows the offset; where it has jumped, looks for it anew. */
void occ_offset_follow(struct occ_attribution *a, size_t n)
{
    double jump = 0;
    if (fabs(a->unexplained) > MOSTLY * a->counted)
        return; /* launches that are not known yet, or other programs': no clock explains them */
    int64_t at_ns = a->samples[n / 2].start_ns;
    struct occ_shift step = occ_shift_measure(a, n, 0);
    if (step.rows >= OCC_BEGIN_ROWS && step.squares > JUMPED * a->noise.warps * step.rows)
        jump = find_discontinuity(a, n);
    if (jump != 0)
        step = occ_shift_measure(a, n, jump);
    if (isinf(step.variance))
        return;
    double offset = occ_clock_fit_offset(&a->clock, at_ns) + jump + step.ns;
    if (jump != 0)
        occ_clock_fit_begin(&a->clock); /* another offset, not a drift */
    occ_clock_fit_update(&a->clock, at_ns, offset, variance_of(a, n, &step));
}
