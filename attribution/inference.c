/* Makes reported values from the solution: mean, standard error, variance inflation, and groups of kernels
 * whose values cannot be separated. The variance is the larger of two estimates: one from the
 * equations, and half of one from the scatter of the scores of row clusters, which also covers effects
 * outside the model (MacKinnon, Nielsen and Webb, Cluster-robust inference, 2023). A cluster has the rows
 * that begin at the same phase of the same kernel, because their errors repeat. See state.h. */
#include "equations.h"
#include "state.h"

/* Means with one common mean, weighted by the time of their launches; their weights add up to 1. The parts of
 * their graphs follow: a configuration's value is its mean plus the weighted differences of its parts. */
struct selection {
    uint32_t n, all; /* number of means; the same and parts */
    uint32_t columns[(size_t)MEANS_MAX + OCC_PARTS_MAX];
    double weights[(size_t)MEANS_MAX + OCC_PARTS_MAX];
};

static double clamp(double value)
{
    return isfinite(value) ? fmin(fmax(value, 0), 1) : NAN;
}

static struct occ_regressor *regressor_at(const struct occ_attribution *a, const struct occ_solution *s,
                                          uint32_t column)
{
    return &a->regressors[s->columns[column].regressor];
}

/* The variance of the mean by the scatter of cluster scores, after subtracting `part` times the score of
 * active SMs. Widened if only a few clusters contribute. */
static double cluster_variance(const struct occ_solution *s, const struct selection *of, double part)
{
    double squares = 0, fourths = 1e-300;
    for (size_t c = 0; c < OCC_CLUSTERS; c++) {
        double sum = 0;
        for (uint32_t k = 0; k < of->all; k++) {
            size_t at = (size_t)of->columns[k] * OCC_CLUSTERS + c, active = at + OCC_CLUSTERS * (size_t)s->n;
            sum += of->weights[k] * (s->score[at] - part * s->score[active]);
        }
        squares += sum * sum;
        fourths += sum * sum * sum * sum;
    }
    double freedom = fmax(squares * squares / fourths, 1);
    double wider = 1 + 1.3 / freedom + 1.2 / (freedom * freedom);
    return squares * wider * wider;
}

/* By the equations. */
static double modelled_variance(const struct occ_solution *s, const struct selection *of)
{
    double variance = 0;
    for (uint32_t i = 0; i < of->all; i++)
        for (uint32_t k = 0; k < of->all; k++)
            variance += of->weights[i] * of->weights[k] *
                        *occ_equations_at(s->inverse, of->columns[i], of->columns[k]);
    return variance;
}

static double variance_of(const struct occ_attribution *a, struct occ_solution *s, const struct selection *of)
{
    return fmax(modelled_variance(s, of) + occ_parts_variance(a, s, of->columns, of->weights, of->n),
                CLUSTERED * cluster_variance(s, of, 0));
}

/* Selects the parts of the selected means. */
static void select_parts(const struct occ_solution *s, struct selection *of)
{
    of->all = of->n;
    for (uint32_t i = s->means_end; i < s->parts_end; i++)
        for (uint32_t k = 0; k < of->n; k++) {
            if (s->columns[of->columns[k]].regressor != s->columns[i].regressor)
                continue;
            of->columns[of->all] = i;
            of->weights[of->all++] = of->weights[k] * s->columns[i].weight;
        }
}

/* The square of the difference between the mean weighted by time and the estimate. The estimate weights rows
 * by information, and rows in which a kernel runs alone have most information, although the kernel may run
 * differently in a crowd. Without these rows the estimate would be x + change (deletion of a group of
 * observations, Cook and Weisberg, 1982), with a variance of V / (1 - h); chance explains V h / (1 - h) of
 * the squared change. The estimate is the mean of both kinds of rows with the weights h and 1 - h. */
static double unbalanced(const struct occ_alone *alone, double variance)
{
    double h = fmin(variance * alone->information, ALONE_MAX), part = alone->share / alone->all_share;
    if (!(h > 0) || !(part > 0))
        return 0;
    double change = -variance * alone->score / (1 - h), chance = variance * h / (1 - h);
    double weight = (1 - part) - part * (1 - h) / h;
    return weight * weight * fmax(change * change - chance, 0);
}

void occ_inference_variances(const struct occ_attribution *a, struct occ_solution *s)
{
    struct selection one = {.n = 1, .weights = {1}};
    for (uint32_t i = OCC_SPECIAL; i < s->means_end; i++) {
        one.columns[0] = i;
        select_parts(s, &one);
        double variance = modelled_variance(s, &one);
        s->columns[i].clustered = cluster_variance(s, &one, 0);
        s->columns[i].unbalanced = unbalanced(&s->alone[i], variance);
        variance += occ_parts_variance(a, s, one.columns, one.weights, 1);
        s->columns[i].variance = fmax(variance, CLUSTERED * s->columns[i].clustered);
    }
}

/* The share of the counted warps that other work can have: the smaller of two bounds, each the sum of a part
 * for the spread of launches and a part for launched blocks of no known launch. The first bound assumes the
 * most such blocks; the second the least, with a larger factor for the spread unless blocks would show other
 * work. */
static double varied_by_others(const struct occ_attribution_assumptions *assumed, double spread,
                               struct occ_others others)
{
    double above = others.is_counted ? assumed->above_counted : assumed->above;
    return fmin(assumed->above_counted * spread + assumed->blocks_last * others.most,
                above * spread + assumed->blocks_last * others.least);
}

/* Estimates untraced work. The occupancy counted while no launch runs may also be present during launches, or
 * be launches without records: half of it is assumed. Three more signs of other work, which may be larger
 * elsewhere: blocks of no known launch, launches that differ by more than spread_max, and means above the
 * bound of their configuration. */
static void find_untraced_work_sd(struct occ_attribution *a, struct occ_solution *s)
{
    const struct occ_attribution_assumptions *assumed = &a->assumed;
    double above = 0, seen = fmax(s->x[OCC_SPECIAL_IDLE], 0);
    double spread = fmax(sqrt(a->estimate.scale) - assumed->spread_max, 0);
    double varied = varied_by_others(assumed, spread, occ_balance_solve(&s->balance));
    for (uint32_t i = OCC_SPECIAL; i < s->means_end; i++) {
        double excess = regressor_at(a, s, i)->value[OCC_RATIO_WARPS] - regressor_at(a, s, i)->bound;
        above = excess > assumed->above * sqrt(s->columns[i].variance) ? fmax(above, assumed->above * excess)
                                                                       : above;
    }
    a->estimate.untraced = seen / 2;
    a->estimate.untraced_sd =
        occ_quadrature(occ_quadrature(assumed->untraced_sd * seen, above), varied * s->counted / s->rows);
}

void occ_inference_fill(const struct occ_attribution *a, const double *ratio, double variance,
                        struct occ_measured *m)
{
    double x = clamp(ratio[OCC_RATIO_WARPS] - a->estimate.untraced), y = clamp(ratio[OCC_RATIO_ACTIVE]);
    m->elapsed = x;
    m->elapsed_se = occ_quadrature(sqrt(variance), occ_quadrature(a->estimate.untraced_sd, ERROR_MIN));
    /* more warps than active SMs can hold: one of the two is wrong */
    bool defined = !m->overlapped && y > 0 && x <= y + 2 * m->elapsed_se;
    m->sm_active = m->overlapped ? NAN : y;
    m->achieved = defined ? fmin(x / y, 1) : NAN;
    /* y is taken to have the standard error of x */
    m->achieved_se = defined ? m->elapsed_se * occ_quadrature(1, m->achieved) / y : NAN;
    m->blocks =
        defined && ratio[OCC_RATIO_BLOCKS] >= 0 ? fmin(ratio[OCC_RATIO_BLOCKS] / y, OCC_BLOCKS_MAX) : NAN;
    for (int i = 0; i < OCC_STALL_COUNT; i++)
        m->stall[i] = clamp(ratio[OCC_RATIO_STALLS + i]);
}

void occ_inference_fill_utilization(const struct occ_attribution *a, const struct occ_regressor *r,
                                    struct occ_measured *m)
{
    double active = clamp(r->value[OCC_RATIO_ACTIVE]);
    bool is_own = m->source == OCC_ATTRIBUTION_DIRECT || m->source == OCC_ATTRIBUTION_REGRESSED;
    for (int i = 0; i < OCC_UTILIZATION_COUNT; i++) {
        double value = clamp(r->value[OCC_RATIO_UTILIZATION + i]);
        double se = occ_quadrature(r->utilization_se[i], occ_quadrature(a->estimate.untraced_sd, ERROR_MIN));
        if (i == OCC_UTILIZATION_ISSUE) { /* a scheduler counts no cycles while its SM is idle */
            value = m->overlapped ? NAN : fmin(value / active, 1);
            se *= occ_quadrature(1, value) / active; /* active cycles have the same relative error */
        }
        bool is_known = is_own && isfinite(value) && se <= ERROR_MAX; /* infinite if no SM seems active */
        m->utilization[i] = is_known ? value : NAN;
        m->utilization_se[i] = is_known ? se : NAN;
    }
}

/* Reports the selection's mean as the value of all its regressors, if the standard error is small enough. */
static void report(struct occ_attribution *a, struct occ_solution *s, struct selection *of)
{
    select_parts(s, of);
    double ratio[OCC_RATIO_DIRECT] = {0}, variance = variance_of(a, s, of);
    double overlapped = 0, moved = 0, by_clock = 0, by_time = 0;
    for (uint32_t k = 0; k < of->n; k++) {
        const struct occ_regressor *r = regressor_at(a, s, of->columns[k]);
        double weight = of->weights[k];
        for (int i = 0; i < OCC_RATIO_DIRECT; i++)
            ratio[i] += weight * r->value[i];
        overlapped += weight * r->overlapped_ns / r->launch_ns;
        moved += weight * (r->value[OCC_RATIO_WARPS] - r->before);
        by_time += weight * sqrt(s->columns[of->columns[k]].unbalanced);
    }
    for (uint32_t k = 0; k < of->all; k++)
        by_clock += of->weights[k] * *occ_equations_at(s->inverse, OCC_SPECIAL_OFFSET, of->columns[k]);
    by_clock *= CLOCK_ERROR_US / *occ_equations_at(s->inverse, OCC_SPECIAL_OFFSET, OCC_SPECIAL_OFFSET);
    struct occ_measured m = {.overlapped = overlapped > OVERLAPPED, .imbalance = NAN};
    variance = fmax(variance + by_clock * by_clock + by_time * by_time, moved * moved) *
               (m.overlapped ? OVERLAPPED_MARGIN : 1);
    occ_inference_fill(a, ratio, variance, &m);
    m.achieved_se = fmax(m.achieved_se, sqrt(cluster_variance(s, of, m.achieved)) / m.sm_active);
    if (!(m.elapsed_se <= ERROR_MAX)) {
        struct occ_measured *rough = of->n == 1 ? &regressor_at(a, s, of->columns[0])->measured : &m;
        rough->rough = m.elapsed;
        rough->rough_se = m.elapsed_se <= ROUGH_ERROR_MAX ? m.elapsed_se : 0;
        return;
    }
    m.source = of->n > 1 ? OCC_ATTRIBUTION_GROUP : OCC_ATTRIBUTION_REGRESSED;
    for (uint32_t k = 0; k < of->n; k++) {
        uint32_t column = of->columns[k];
        m.rough = regressor_at(a, s, column)->measured.rough;
        m.rough_se = regressor_at(a, s, column)->measured.rough_se;
        regressor_at(a, s, column)->measured = m;
        regressor_at(a, s, column)->measured.variance_inflation =
            *occ_equations_at(s->inverse, column, column) * s->columns[column].precision;
    }
}

/* Selects the column and all columns without a value whose errors are correlated with its error. False: there
 * is no other column. */
static bool select_group(const struct occ_attribution *a, const struct occ_solution *s, uint32_t column,
                         struct selection *ret)
{
    double ns = 0, variance = *occ_equations_at(s->inverse, column, column);
    ret->n = 0;
    for (uint32_t i = OCC_SPECIAL; i < s->means_end; i++) {
        double other = *occ_equations_at(s->inverse, i, i), both = *occ_equations_at(s->inverse, i, column);
        if (regressor_at(a, s, i)->measured.source != OCC_ATTRIBUTION_NONE ||
            regressor_at(a, s, i)->is_memory || fabs(both) <= CORRELATED * sqrt(variance * other))
            continue;
        ret->weights[ret->n] = regressor_at(a, s, i)->launch_ns;
        ns += ret->weights[ret->n];
        ret->columns[ret->n++] = i;
        s->columns[i].in_group = true;
    }
    for (uint32_t k = 0; k < ret->n; k++)
        ret->weights[k] /= ns;
    return ret->n > 1;
}

void occ_inference_report(struct occ_attribution *a, struct occ_solution *s)
{
    struct selection of = {.n = 1, .weights = {1}};
    find_untraced_work_sd(a, s);
    for (of.columns[0] = OCC_SPECIAL; of.columns[0] < s->means_end; of.columns[0]++)
        report(a, s, &of);
    for (uint32_t i = OCC_SPECIAL; i < s->means_end; i++)
        if (!s->columns[i].in_group && !regressor_at(a, s, i)->is_memory &&
            regressor_at(a, s, i)->measured.source == OCC_ATTRIBUTION_NONE && select_group(a, s, i, &of))
            report(a, s, &of);
}
