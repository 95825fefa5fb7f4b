/* Finds the offset and drift between the clocks of launches and samples in the first block of samples, where
 * corrections to first order fail: a kernel may be shorter than the offset. Each candidate's rows are made
 * anew; the misfit is the minimum of the weighted squares of residuals plus the squares of all functions'
 * distances from their priors, by conjugate gradients. All functions have columns, since their effect at the
 * edges of samples would otherwise be taken for an offset. Then the best candidate on a grid is refined.
 * Offset before drift: where only the begin of work tells, the drift stays 0. See state.h. */
#include <string.h>

#include "state.h"

#define ITERATIONS 30
#define CONVERGED  1e-9 /* part of the first squared gradient: a later step would be rounding */
#define COMMON_SD  0.5  /* prior standard deviation of a factor that all means of a program share */

/* Columns: regressor x OCC_COLUMNS + function as in occ_entry, then the differences of nodes, the idle
 * occupancy and the common factor of the means' priors. */
struct search {
    struct occ_attribution *a;
    size_t samples;
    uint32_t n, nodes;                                         /* nodes: column of the first node */
    double *prior, *diagonal, *gradient, *direction, *product; /* by column; prior: 1 / variance */
    double *weight, *value, *common; /* by row; value: residual, then X x direction */
};

struct candidate {
    double offset_us, drift_ppm; /* offset_us: in the middle of the block */
};

static bool allocate(struct search *s)
{
    size_t columns = 5 * (size_t)s->n, rows = 3 * s->samples;
    s->prior = calloc(columns + rows, sizeof *s->prior);
    if (!s->prior)
        return false;
    s->diagonal = s->prior + s->n;
    s->gradient = s->diagonal + s->n;
    s->direction = s->gradient + s->n;
    s->product = s->direction + s->n;
    s->weight = s->product + s->n;
    s->value = s->weight + s->samples;
    s->common = s->value + s->samples;
    return true;
}

static double precision(double sd)
{
    return 1 / (sd * sd);
}

static void set_priors(struct search *s)
{
    for (uint32_t c = s->nodes; c < s->n - 2; c++) {
        uint32_t regressor = s->a->nodes.at[c - s->nodes].regressor;
        s->prior[c] = precision(PARTS_SD * (regressor != OCC_NONE ? s->a->regressors[regressor].bound : 1));
    }
    for (uint32_t c = 0; c < s->nodes; c++) {
        double bound = s->a->regressors[c / OCC_COLUMNS].bound, function = c % OCC_COLUMNS;
        s->prior[c] = precision(bound * (function > 0 ? PROFILE_SD / sqrt(function) : PRIOR_SD));
    }
    s->prior[s->n - 2] = precision(IDLE_SD);
    s->prior[s->n - 1] = precision(COMMON_SD);
}

static bool is_usable(const struct search *s, const struct occ_row *row, size_t i)
{
    return row->n > 0 && i < s->samples && isfinite(row->ratio[OCC_RATIO_WARPS]);
}

/* Sets the rows' weights and their residuals by the priors; returns the sum of weighted squares. */
static double read_rows(struct search *s)
{
    const struct occ_attribution *a = s->a;
    double squares = 0;
    size_t i = 0;
    memcpy(s->diagonal, s->prior, s->n * sizeof *s->prior);
    for (const struct occ_row *row = a->rows.first; row; row = row->next) {
        if (!is_usable(s, row, i))
            continue;
        double y = (double)row->ratio[OCC_RATIO_WARPS], noise = NOISE / a->assumed.spread_max * y, common = 0;
        double lost = PRIOR_SD * row->idle; /* launches without records may run in idle time */
        double weight = 1 / (a->estimate.scale * (row->variance + noise * noise) + lost * lost);
        for (uint32_t k = 0; k < row->n; k++) {
            double share = (double)row->entries[k].share;
            uint32_t column = row->entries[k].column;
            common += column % OCC_COLUMNS ? 0 : share * a->regressors[column / OCC_COLUMNS].prior[0];
            s->diagonal[column] += share * share * weight;
        }
        for (uint32_t k = 0; k < row->n_nodes; k++) {
            double share = (double)occ_row_nodes(row)[k].share;
            s->diagonal[s->nodes + occ_row_nodes(row)[k].column] += share * share * weight;
        }
        s->diagonal[s->n - 2] += row->idle * row->idle * weight;
        s->diagonal[s->n - 1] += common * common * weight;
        s->weight[i] = weight;
        s->common[i] = common;
        s->value[i] = y - common;
        squares += s->value[i] * s->value[i] * weight;
        i++;
    }
    return squares;
}

/* value = X direction */
static void multiply(struct search *s)
{
    const double *d = s->direction;
    size_t i = 0;
    for (const struct occ_row *row = s->a->rows.first; row; row = row->next) {
        if (!is_usable(s, row, i))
            continue;
        double sum = row->idle * d[s->n - 2] + s->common[i] * d[s->n - 1];
        for (uint32_t k = 0; k < row->n; k++)
            sum += (double)row->entries[k].share * d[row->entries[k].column];
        for (uint32_t k = 0; k < row->n_nodes; k++)
            sum += (double)occ_row_nodes(row)[k].share * d[s->nodes + occ_row_nodes(row)[k].column];
        s->value[i++] = sum;
    }
}

/* ret = X' (weight x value) */
static void multiply_back(const struct search *s, double *ret)
{
    size_t i = 0;
    memset(ret, 0, s->n * sizeof *ret);
    for (const struct occ_row *row = s->a->rows.first; row; row = row->next) {
        if (!is_usable(s, row, i))
            continue;
        double weighted = s->value[i] * s->weight[i];
        for (uint32_t k = 0; k < row->n; k++)
            ret[row->entries[k].column] += (double)row->entries[k].share * weighted;
        for (uint32_t k = 0; k < row->n_nodes; k++)
            ret[s->nodes + occ_row_nodes(row)[k].column] += (double)occ_row_nodes(row)[k].share * weighted;
        ret[s->n - 2] += row->idle * weighted;
        ret[s->n - 1] += s->common[i++] * weighted;
    }
}

/* Conjugate gradients, preconditioned by the diagonal: each step lowers the objective by step x |gradient|^2.
 */
static double minimise(struct search *s)
{
    double misfit = read_rows(s), last = 0, first = 0;
    multiply_back(s, s->gradient);
    for (int i = 0; i <= ITERATIONS; i++) {
        double square = 0, curvature = 0;
        for (uint32_t c = 0; c < s->n; c++)
            square += s->gradient[c] * s->gradient[c] / s->diagonal[c];
        first = i == 0 ? square : first;
        if (!(square > CONVERGED * first))
            break;
        for (uint32_t c = 0; c < s->n; c++)
            s->direction[c] = s->gradient[c] / s->diagonal[c] + (i > 0 ? square / last * s->direction[c] : 0);
        multiply(s);
        multiply_back(s, s->product);
        for (uint32_t c = 0; c < s->n; c++) {
            s->product[c] += s->prior[c] * s->direction[c];
            curvature += s->direction[c] * s->product[c];
        }
        double step = square / curvature;
        for (uint32_t c = 0; c < s->n; c++)
            s->gradient[c] -= step * s->product[c];
        misfit -= step * square;
        last = square;
    }
    return misfit;
}

static void set_clock(struct search *s, const struct candidate *clock)
{
    const struct occ_attribution_sample *samples = s->a->samples;
    double half_ns = (double)(samples[s->samples - 1].end_ns - samples[0].start_ns) / 2;
    s->a->estimate.drift = clock->drift_ppm * 1e-6;
    s->a->estimate.offset_ns = clock->offset_us * 1e3 - s->a->estimate.drift * half_ns;
}

/* Makes the rows of the candidate; a clock without effect stays at 0 by its prior. */
static double misfit_of(struct search *s, const struct candidate *clock)
{
    double offset = clock->offset_us / SEARCH_US, drift = clock->drift_ppm / SEARCH_PPM;
    set_clock(s, clock);
    for (size_t i = 0; i < s->samples; i++)
        occ_design_add(s->a, &s->a->samples[i]);
    double misfit = s->a->rows.busy > 0 ? minimise(s) + offset * offset + drift * drift : INFINITY;
    occ_design_undo(s->a, s->a->samples[0].start_ns);
    return misfit;
}

/* Looks at `range` around the best candidate in steps of SEARCH_STEP, then in smaller ones. */
static void look_around(struct search *s, struct candidate *best, double *misfit, double range, bool of_drift)
{
    for (double step = SEARCH_STEP; step >= SEARCH_STEP / 4; range = step /= 2) {
        const struct candidate center = *best;
        for (double x = -range; x <= range; x += step) {
            struct candidate next = center;
            *(of_drift ? &next.drift_ppm : &next.offset_us) += x;
            double own = x != 0 ? misfit_of(s, &next) : *misfit;
            if (own < *misfit) {
                *best = next;
                *misfit = own;
            }
        }
    }
}

void occ_clock_search(struct occ_attribution *a, size_t samples)
{
    uint32_t nodes = (uint32_t)a->n_regressors * OCC_COLUMNS,
             n_nodes = a->nodes.n_shared > 0 ? (uint32_t)a->nodes.n : 0; /* rows have no others */
    struct search s = {.a = a, .samples = samples, .n = nodes + n_nodes + 2, .nodes = nodes};
    struct candidate best = {0, 0};
    if (a->rows.busy > 0 || (double)a->n_regressors > MEANS_MAX || !allocate(&s))
        return;
    set_priors(&s);
    a->rejoin_from_ns = a->samples[0].start_ns;
    double misfit = misfit_of(&s, &best);
    look_around(&s, &best, &misfit, SEARCH_US, false);
    look_around(&s, &best, &misfit, SEARCH_PPM, true);
    set_clock(&s, &best);
    free(s.prior);
}
