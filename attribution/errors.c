/*
 * From the solution to each regressor's values: mean, standard error, variance inflation, and groups of those
 * that cannot be told apart. The error is the largest of what the equations give and of how the scores of
 * clusters of rows scatter, which sees what the model does not know of (MacKinnon, Nielsen and Webb,
 * Cluster-robust inference, 2023). Clusters are stretches of time, and rows that begin at the same place of
 * the same kernel, whose errors repeat with every replay. See state.h. One thread.
 */
#include <string.h>

#include "equations.h"
#include "state.h"

/* Columns whose mean is reported, weighted by their launches' time; weights add up to 1. */
struct selection {
    uint32_t n, *columns;
    double *weights;
};

static double clamp(double value)
{
    return isfinite(value) ? fmin(fmax(value, 0), 1) : NAN;
}

static struct occ_regressor *regressor_at(const struct occ_attribution *a, const struct occ_solution *s,
                                          uint32_t column)
{
    return &a->regressors.items[s->regressor[column]];
}

/* ---- errors ---- */

/* What the equations give: w' W' W w. */
static double model_variance(const struct occ_solution *s, const struct selection *of)
{
    double variance = 0;
    for (uint32_t i = of->columns[0]; i < s->n; i++) {
        const double *row = occ_equations_row(s->inverse, i);
        double sum = 0;
        for (uint32_t k = 0; k < of->n && of->columns[k] <= i; k++)
            sum += row[of->columns[k]] * of->weights[k];
        variance += sum * sum;
    }
    return variance;
}

/* What OCC_CLUSTERS scores give. Few clusters say less than many: a t distribution's 95 % are wider. */
static double cluster_variance(const struct occ_solution *s, const struct selection *of, const double *score)
{
    double squares = 0, fourths = 1e-300;
    for (uint32_t c = 0; c < OCC_CLUSTERS; c++, score += s->n) {
        double sum = 0;
        for (uint32_t k = 0; k < of->n; k++)
            sum += of->weights[k] * score[of->columns[k]];
        squares += sum * sum;
        fourths += sum * sum * sum * sum;
    }
    double freedom = fmax(squares * squares / fourths, 1);
    double wider = 1 + 1.3 / freedom + 1.2 / (freedom * freedom);
    return squares * wider * wider;
}

static double variance_of(const struct occ_solution *s, const struct selection *of)
{
    double by_time = cluster_variance(s, of, s->score);
    double by_phase = cluster_variance(s, of, s->score + (size_t)OCC_CLUSTERS * s->n);
    return fmax(model_variance(s, of), fmax(by_time, by_phase));
}

double occ_errors_variance(const struct occ_solution *s, uint32_t column)
{
    double weight = 1;
    return variance_of(s, &(struct selection){1, &column, &weight});
}

/* ---- work nobody traced ---- */

/* What is counted while no launch runs may be there beside launches too, or be launches without records: half
 * of it is assumed. Residuals that go on beyond a launch, launches that seem to differ by more than
 * SPREAD_MAX and means above what a configuration allows are others' work too. */
static void find_untraced(struct occ_attribution *a, const struct occ_solution *s)
{
    double above = 0;
    for (uint32_t i = 0; i < s->n_means; i++) {
        double excess = s->x[i] - (double)regressor_at(a, s, i)->bound;
        double sd = sqrt(occ_errors_variance(s, i));
        above = excess > ABOVE * sd ? fmax(above, ABOVE * excess) : above; /* it may be more elsewhere */
    }
    uint32_t idle = s->n - OCC_SPECIAL + OCC_SPECIAL_IDLE;
    double sd = sqrt(occ_errors_variance(s, idle));
    double seen = fmax(s->x[idle] - 2 * sd, 0);
    const struct occ_residuals *r = &s->residuals;
    double varied = fmax(sqrt(a->estimate.scale) - SPREAD_MAX, 0) * r->counted / s->rows;
    double common = COMMON_PART * sqrt(fmax(r->common / fmax(r->common_rows, 1), 0));
    double bursts = sqrt(r->idle_squares / fmax(r->idle_ns, 1));
    a->estimate.untraced = seen / 2;
    a->estimate.untraced_sd = occ_quadrature(occ_quadrature(UNTRACED_SD * seen, above),
                                             occ_quadrature(varied, occ_quadrature(common, bursts)));
}

/* ---- values ---- */

void occ_errors_fill(const struct occ_attribution *a, const struct occ_sums *sums, struct occ_measured *m)
{
    double value[OCC_RESPONSE_COUNT];
    for (int r = 0; r < OCC_RESPONSE_COUNT; r++)
        value[r] = sums->ns[r] > 0 ? sums->sum[r] / sums->ns[r] : NAN;
    double x = value[OCC_RESPONSE_WARPS] = clamp(value[OCC_RESPONSE_WARPS] - a->estimate.untraced);
    double y = value[OCC_RESPONSE_ACTIVE] = clamp(value[OCC_RESPONSE_ACTIVE]);
    bool defined = !m->overlapped && y > 0 && x <= y * (1 + ERROR_MIN);
    m->elapsed = x;
    m->elapsed_se = occ_quadrature(sqrt(sums->variance), occ_quadrature(a->estimate.untraced_sd, ERROR_MIN));
    m->sm_active = m->overlapped ? NAN : y;
    m->achieved = defined ? fmin(x / y, 1) : NAN;
    m->achieved_se =
        defined ? m->elapsed_se * occ_quadrature(1, m->achieved) / y : NAN; /* y is as uncertain */
    m->blocks = defined ? value[OCC_RESPONSE_BLOCKS] / y : NAN;
    for (int i = 0; i < 5; i++)
        m->stall[i] = clamp(value[OCC_RESPONSE_STALLS + i]);
    for (int i = 0; i < OCC_UTILIZATION_COUNT; i++)
        m->utilization[i] = m->utilization_se[i] = NAN; /* utilization.c may know it */
}

static void add_mean(struct occ_sums *sums, const struct occ_regressor *r, double weight)
{
    for (int i = 0; i < OCC_RESPONSE_COUNT; i++) {
        float value = i == OCC_RESPONSE_WARPS ? fminf(r->value[i], r->bound) : r->value[i];
        sums->sum[i] += (double)value * weight;
        sums->ns[i] += weight;
    }
}

/* The variance that the mean has if only other regressors' means are unknown, over that if none is. */
static double variance_inflation(const struct occ_solution *s, uint32_t column)
{
    double variance = 0;
    for (uint32_t i = column; i < s->n_means; i++) {
        double element = occ_equations_row(s->inverse, i)[column];
        variance += element * element;
    }
    return variance * s->precision[column];
}

/* Reports the selection's mean as the value of all in it, if it is certain enough. */
static void report(struct occ_attribution *a, const struct occ_solution *s, const struct selection *of)
{
    struct occ_sums sums = {.variance = variance_of(s, of)};
    double prior_variance = 0, overlapped = 0, launches = 0, shortest_ns = INFINITY;
    double clock_ns = 1e3 * sqrt(s->diagonal[s->n - OCC_SPECIAL + OCC_SPECIAL_OFFSET]);
    for (uint32_t k = 0; k < of->n; k++) {
        const struct occ_regressor *r = regressor_at(a, s, of->columns[k]);
        add_mean(&sums, r, of->weights[k]);
        prior_variance += of->weights[k] * of->weights[k] / s->prior[of->columns[k]];
        overlapped += r->overlapped ? of->weights[k] : 0;
        double moved = of->weights[k] * (double)(r->value[0] - r->before);
        sums.variance = fmax(sums.variance, moved * moved);
        shortest_ns = fmin(shortest_ns, r->launch_ns / r->launches);
        launches += s->launch_ns[of->columns[k]] * r->launches / fmax(r->launch_ns, 1);
    }
    struct occ_measured m = {.overlapped = overlapped > OVERLAPPED, .launches = (uint64_t)launches};
    bool has_told = sums.variance > 0 && sums.variance <= PRIOR_SHARE * prior_variance &&
                    clock_ns < shortest_ns; /* else it may have run in another sample */
    sums.variance *= m.overlapped ? OVERLAPPED_MARGIN : 1;
    occ_errors_fill(a, &sums, &m);
    if (!has_told || !(m.elapsed_se <= ERROR_MAX))
        return;
    m.source = of->n > 1 ? OCC_ATTRIBUTION_GROUP : OCC_ATTRIBUTION_REGRESSED;
    m.group = of->n > 1 ? s->regressor[of->columns[0]] + 1 : 0;
    for (uint32_t k = 0; k < of->n; k++) {
        struct occ_regressor *r = regressor_at(a, s, of->columns[k]);
        r->measured = m;
        r->measured.variance_inflation = variance_inflation(s, of->columns[k]);
        r->measured.imbalance = r->imbalance_ns > 0 ? r->imbalance / r->imbalance_ns : NAN;
    }
}

/* Selects the column and, of those without a value, all whose error goes along with its. */
static void select_group(const struct occ_attribution *a, struct occ_solution *s, uint32_t column,
                         struct selection *ret)
{
    double *covariance = s->scratch + s->n, ns = 0;
    memset(covariance, 0, s->n * sizeof *covariance);
    covariance[column] = 1;
    occ_equations_solve(s->inverse, s->n, covariance, covariance, s->scratch);
    ret->n = 0;
    for (uint32_t i = 0; i < s->n_means; i++)
        if (regressor_at(a, s, i)->measured.source == OCC_ATTRIBUTION_NONE &&
            fabs(covariance[i]) > CORRELATED * sqrt(s->diagonal[column] * s->diagonal[i]))
            ret->columns[ret->n++] = i;
    for (uint32_t k = 0; k < ret->n; k++)
        ns += s->launch_ns[ret->columns[k]];
    for (uint32_t k = 0; k < ret->n; k++)
        ret->weights[k] = s->launch_ns[ret->columns[k]] / ns;
}

void occ_errors_report(struct occ_attribution *a, struct occ_solution *s)
{
    struct selection group = {.columns = s->selected, .weights = s->weights};
    double weight = 1, all_ns = 0;
    for (uint32_t c = 0; c < 2 * OCC_CLUSTERS; c++) {
        double *score = s->score + (size_t)c * s->n;
        occ_equations_solve(s->inverse, s->n, score, score, s->scratch);
    }
    find_untraced(a, s);
    for (size_t i = 0; i < a->regressors.n; i++)
        a->regressors.items[i].measured = OCC_NOT_MEASURED;
    for (uint32_t i = 0; i < s->n_means && s->has_all_means; i++) {
        report(a, s, &(struct selection){1, &i, &weight});
        all_ns += s->launch_ns[i];
    }
    for (uint32_t i = 0; i < s->n_means && s->has_all_means; i++)
        if (regressor_at(a, s, i)->measured.source == OCC_ATTRIBUTION_NONE &&
            s->launch_ns[i] > GROUP_SHARE * all_ns) { /* shorter ones are not worth it */
            select_group(a, s, i, &group);
            if (group.n > 1)
                report(a, s, &group);
        }
}
