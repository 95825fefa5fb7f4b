/*
 * The offset between the clocks of launches and samples: found once by trying, then followed. See state.h. One thread.
 */
#include <math.h>

#include "state.h"

#define FIRST_STEP_NS 8000.0 /* of the first search */
#define SEARCHED_KEYS 200
#define JUMPED        3.0 /* times the usual residuals: look for another offset */

/* Occupancy at a launch's u. */
static double level_at(const struct occ_attribution *a, uint32_t launch, double u)
{
    const struct occ_key *key = &a->keys.keys[a->launches[launch].key];
    double sum = 0;
    for (uint32_t f = 0; f < key->course.n && u >= 0; f++)
        sum += occ_keys_value(&a->keys, key, OCC_RHS_WARPS, f) * occ_overlap_course_at(&key->course, f, u);
    return sum;
}

/* How the prediction changes with the offset: occupancy at the sample's start less that at its end, by its length. */
static double gradient_of(const struct occ_attribution *a, size_t n_parts, double length)
{
    double sum = 0;
    for (size_t i = 0; i < n_parts; i++)
        sum += level_at(a, a->parts[i].launch, a->parts[i].at_start) -
               level_at(a, a->parts[i].launch, a->parts[i].at_end);
    return sum / length;
}

struct fit {
    double squares, rows;    /* of residuals in units of their class; rows that have launches */
    double slope, curvature; /* of the offset's effect */
};

/* Residuals of the samples [0, n) if the offset differed by `shift_ns` from the filter's. */
static struct fit fit_at(struct occ_attribution *a, size_t n, double shift_ns)
{
    struct fit fit = {0};
    struct occ_overlap walk;
    occ_join_begin(a, &walk);
    for (size_t i = 0; i < n; i++) {
        const struct occ_sample *s = &a->samples[i];
        double ratio[OCC_RHS_COUNT], offset = occ_clock_fit_offset(&a->clock, s->start_ns) + shift_ns;
        size_t n_parts = occ_join_row(a, &walk, s, offset);
        occ_join_ratios(a, s, ratio);
        if (n_parts == 0 || !isfinite(ratio[OCC_RHS_WARPS]))
            continue;
        double residual = ratio[OCC_RHS_WARPS] - occ_join_predict(a, OCC_RHS_WARPS);
        double gradient = gradient_of(a, n_parts, (double)(s->end_ns - s->start_ns));
        double weight = 1 / occ_join_class(a, s)->variance;
        double robust = fmin(1, OCC_HUBER / (fabs(residual) * sqrt(weight) + 1e-12));
        fit.squares += residual * residual * weight * robust;
        fit.slope += residual * gradient * weight * robust;
        fit.curvature += gradient * gradient * weight * robust;
        fit.rows++;
    }
    return fit;
}

/* Regresses on these samples alone, at one offset, the first `functions` of each course. */
static int regress_at(struct occ_attribution *a, size_t n, double shift_ns, uint32_t functions,
                      struct occ_error *err)
{
    struct occ_normal_entry entries[OCC_NORMAL_ROW];
    struct occ_overlap walk;
    uint32_t columns = 0;
    occ_keys_forget(&a->keys);
    occ_join_begin(a, &walk);
    for (size_t i = 0; i < n; i++) {
        double ratio[OCC_RHS_COUNT];
        size_t n_parts = occ_join_row(a, &walk, &a->samples[i], shift_ns);
        occ_join_ratios(a, &a->samples[i], ratio);
        if (n_parts == 0 || !isfinite(ratio[OCC_RHS_WARPS]))
            continue;
        size_t n_entries =
            occ_join_entries(a, entries, functions, (double)(a->samples[i].end_ns - a->samples[i].start_ns));
        int status = n_entries ? occ_normal_add(a->keys.normal[OCC_SYSTEM_WARPS], entries, n_entries,
                                                1 / occ_join_class(a, &a->samples[i])->variance, ratio, err)
                               : 0;
        if (status != 0 && status != OCC_E_FULL)
            return status;
    }
    return occ_keys_estimate(&a->keys, &a->noise, &columns, err);
}

/* Moves the offset downhill from where it is. */
static void refine(struct occ_attribution *a, size_t n, double *shift_ns, double *ret_variance)
{
    for (int round = 0; round < 3; round++) {
        struct fit fit = fit_at(a, n, *shift_ns);
        if (!(fit.curvature > 0))
            return;
        double step = fit.slope / fit.curvature, most = FIRST_STEP_NS;
        *shift_ns += fmin(fmax(step, -most), most);
        *ret_variance = fmax(fit.squares / fmax(fit.rows, 1), 1) / fit.curvature;
    }
}

size_t occ_offset_rows(struct occ_attribution *a, size_t n)
{
    return (size_t)fit_at(a, n, 0).rows;
}

/* The first offset: the one at which a regression on these samples alone leaves least. Where there are many keys, what
 * the model expects of them has to do. */
int occ_offset_find(struct occ_attribution *a, size_t n, struct occ_error *err)
{
    double best = 0, least = INFINITY, variance = INFINITY;
    int steps = (int)((double)OCC_OFFSET_MOST_NS / FIRST_STEP_NS), status = 0;
    occ_clock_fit_begin(&a->clock);
    for (int i = -steps; i <= steps && status == 0; i++) {
        double shift = i * FIRST_STEP_NS;
        if (a->keys.n <= SEARCHED_KEYS)
            status = regress_at(a, n, shift, 1, err);
        double squares = fit_at(a, n, shift).squares;
        if (squares < least) {
            least = squares;
            best = shift;
        }
    }
    for (int round = 0; round < (a->keys.n <= SEARCHED_KEYS ? 2 : 1) && status == 0; round++) {
        status = regress_at(a, n, best, OCC_COURSES, err);
        refine(a, n, &best, &variance);
    }
    if (status == 0)
        occ_clock_fit_update(&a->clock, a->samples[n / 2].start_ns, best, fmax(variance, 1e4));
    occ_keys_forget(&a->keys); /* the values stay, to begin with */
    return status;
}

/* Follows the offset; where it has jumped, looks for it anew. */
void occ_offset_follow(struct occ_attribution *a, size_t n)
{
    double shift = 0;
    struct fit fit = fit_at(a, n, 0);
    if (fit.rows < OCC_BEGIN_ROWS)
        return;
    if (fit.squares / fit.rows > JUMPED * a->noise.warps) {
        double least = fit.squares;
        for (double at = -(double)OCC_OFFSET_MOST_NS; at <= (double)OCC_OFFSET_MOST_NS; at += FIRST_STEP_NS) {
            double squares = fit_at(a, n, at).squares;
            if (squares < least) {
                least = squares;
                shift = at;
            }
        }
    }
    if (shift != 0)
        fit = fit_at(a, n, shift);
    if (!(fit.curvature > 0))
        return;
    shift += fmin(fmax(fit.slope / fit.curvature, -FIRST_STEP_NS), FIRST_STEP_NS);
    double variance = fmax(fit.squares / fit.rows, 1) / fit.curvature;
    if (fabs(shift) > FIRST_STEP_NS)
        occ_clock_fit_begin(&a->clock); /* another offset, not a drift */
    else
        shift += occ_clock_fit_offset(&a->clock, a->samples[n / 2].start_ns);
    occ_clock_fit_update(&a->clock, a->samples[n / 2].start_ns, shift, variance * 2 + 1e4);
}
