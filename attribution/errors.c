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

#define ERROR_MAX     0.026 /* a mean that is less certain is withheld ... */
#define GROUP_ERROR   0.025 /* ... or reported with those that are as uncertain and move along with it */
#define GROUP_SHARE   1e-3  /* of launch time: shorter ones are not worth a group */
#define CORRELATED    0.3
#define PRIOR_SHARE   0.25 /* of the prior's variance: above, too little was measured */
#define ERROR_MIN     0.001
#define PHASE_MARGIN  1.2 /* columns absorb a part of what depends on the phase */
#define BESIDE_MARGIN 2.0 /* what overlapping kernels take from each other changes while they run */
#define ABOVE         3.0 /* standard errors above what a launch configuration allows: others' work */
#define UNTRACED_SD   0.4 /* of what is seen while nothing runs */

/* A sum of means, each weighted by its launches' time. */
struct mixture {
    double response[OCC_RESPONSE_COUNT], variance, prior_variance, ns, overlapped_ns, launches;
};

/* The variance of a sum of weight x column, over columns [from, to), of which `model` is what the equations
 * give. Few clusters say less than many: a t distribution's 95 % are wider. */
static double variance_of(const struct occ_solution *s, const double *weights, uint32_t from, uint32_t to,
                          double model)
{
    double variance = model;
    for (uint32_t kind = 0; kind < 2; kind++) {
        double squares = 0, fourths = 1e-300;
        for (uint32_t c = kind * OCC_CLUSTERS; c < (kind + 1) * OCC_CLUSTERS; c++) {
            double sum = 0;
            for (uint32_t i = from; i < to; i++)
                sum += (weights ? weights[i] : 1) * s->score[(size_t)c * s->n + i];
            squares += sum * sum;
            fourths += sum * sum * sum * sum;
        }
        double freedom = fmax(squares * squares / fourths, 1);
        double wider = (1 + 1.3 / freedom + 1.2 / (freedom * freedom)) * (kind ? PHASE_MARGIN : 1);
        variance = fmax(variance, squares * wider * wider);
    }
    return variance;
}

static void add_regressor(struct mixture *m, const struct occ_regressor *r, double ns)
{
    for (int i = 0; i < OCC_RESPONSE_COUNT; i++) {
        float value = i == OCC_RESPONSE_WARPS ? fminf(r->value[i], r->bound) : r->value[i];
        m->response[i] += (double)value * ns;
    }
    m->ns += ns;
    m->overlapped_ns += r->overlapped ? ns : 0;
    m->launches += ns * r->launches / fmax(r->launch_ns, 1);
}

static double clamp(double value)
{
    return isfinite(value) ? fmin(fmax(value, 0), 1) : NAN;
}

static void report(const struct occ_attribution *a, struct occ_regressor *r, const struct mixture *m,
                   double vif, enum occ_attribution_source source, uint32_t group)
{
    struct occ_measured *out = &r->measured;
    bool overlapped = m->overlapped_ns > OCC_OVERLAPPED * m->ns;
    double x = clamp(m->response[OCC_RESPONSE_WARPS] / m->ns - a->untraced);
    double y = clamp(m->response[OCC_RESPONSE_ACTIVE] / m->ns);
    double se = sqrt(m->variance) * (overlapped ? BESIDE_MARGIN : 1);
    bool defined = !overlapped && y > 0 && x <= y;
    *out = (struct occ_measured){.source = source, .group = group, .variance_inflation = vif};
    out->overlapped = overlapped;
    out->elapsed = x;
    out->elapsed_se = occ_quadrature(occ_quadrature(se, ERROR_MIN), a->untraced_sd);
    out->sm_active = overlapped ? NAN : y;
    out->achieved = defined ? x / y : NAN;
    out->achieved_se = defined ? out->elapsed_se / y : NAN;
    out->blocks = defined ? m->response[OCC_RESPONSE_BLOCKS] / m->ns / y : NAN;
    out->imbalance = r->imbalance_ns > 0 ? r->imbalance / r->imbalance_ns : NAN;
    for (int i = 0; i < 5; i++)
        out->stall[i] = clamp(m->response[OCC_RESPONSE_STALLS + i] / m->ns);
    out->launches = (uint64_t)m->launches;
    if (!(out->elapsed_se <= ERROR_MAX) || m->variance > PRIOR_SHARE * m->prior_variance)
        *out = OCC_NOT_MEASURED;
}

static struct occ_regressor *regressor_at(const struct occ_attribution *a, const struct occ_solution *s,
                                          uint32_t column)
{
    return &a->regressors.items[s->regressor[column - OCC_SPECIAL]];
}

static void report_own(struct occ_attribution *a, const struct occ_solution *s, uint32_t column)
{
    double model = s->diagonal[column];
    struct mixture m = {.variance = variance_of(s, NULL, column, column + 1, model),
                        .prior_variance = 1 / s->prior[column]};
    add_regressor(&m, regressor_at(a, s, column), s->launch_ns[column]);
    report(a, regressor_at(a, s, column), &m, model * s->precision[column], OCC_ATTRIBUTION_REGRESSED, 0);
}

/* Reports the mean of a regressor and all that are as uncertain and move along with it. */
static void report_group(struct occ_attribution *a, struct occ_solution *s, uint32_t seed, bool *is_open,
                         double *weights, double *vector)
{
    struct mixture m = {0};
    uint32_t n = 0, from = OCC_SPECIAL, to = OCC_SPECIAL + s->n_means;
    memset(weights, 0, s->n * sizeof *weights);
    weights[seed] = 1;
    occ_equations_solve(s->inverse, s->n, weights, vector, s->scratch);
    for (uint32_t i = from; i < to; i++) {
        bool belongs = is_open[i] && fabs(vector[i]) > CORRELATED * sqrt(s->diagonal[seed] * s->diagonal[i]);
        weights[i] = belongs ? s->launch_ns[i] : 0;
        if (belongs)
            add_regressor(&m, regressor_at(a, s, i), weights[i]);
        n += belongs;
    }
    for (uint32_t i = from; i < to; i++) {
        weights[i] /= m.ns;
        m.prior_variance += weights[i] * weights[i] / s->prior[i];
    }
    occ_equations_solve(s->inverse, s->n, weights, vector, s->scratch);
    for (uint32_t i = from; i < to; i++)
        m.variance += weights[i] * vector[i];
    m.variance = variance_of(s, weights, from, to, m.variance);
    for (uint32_t i = from; n > 1 && i < to; i++)
        if (weights[i] > 0) {
            report(a, regressor_at(a, s, i), &m, regressor_at(a, s, i)->measured.variance_inflation,
                   OCC_ATTRIBUTION_GROUP, s->regressor[seed - OCC_SPECIAL] + 1);
            is_open[i] = false;
        }
}

static void report_groups(struct occ_attribution *a, struct occ_solution *s)
{
    double *weights = calloc((size_t)s->n * 2, sizeof *weights), all_ns = 0;
    bool *is_open = calloc(s->n, sizeof *is_open);
    for (uint32_t i = OCC_SPECIAL; is_open && i < OCC_SPECIAL + s->n_means; i++) {
        all_ns += s->launch_ns[i];
        is_open[i] = !(regressor_at(a, s, i)->measured.elapsed_se <= GROUP_ERROR);
    }
    for (uint32_t i = OCC_SPECIAL; weights && is_open && i < OCC_SPECIAL + s->n_means; i++)
        if (is_open[i] && regressor_at(a, s, i)->measured.source == OCC_ATTRIBUTION_NONE &&
            s->launch_ns[i] > GROUP_SHARE * all_ns)
            report_group(a, s, i, is_open, weights, weights + s->n);
    free(weights);
    free(is_open);
}

/* What is counted while no launch runs may be there beside launches too, or be launches without records: half
 * of it is assumed. More than a configuration allows is others' work too. */
static void find_untraced(struct occ_attribution *a, const struct occ_solution *s)
{
    double above = 0;
    for (uint32_t i = OCC_SPECIAL; i < OCC_SPECIAL + s->n_means; i++) {
        double sd = sqrt(variance_of(s, NULL, i, i + 1, s->diagonal[i]));
        above = fmax(above, s->x[i] - (double)regressor_at(a, s, i)->bound - ABOVE * sd);
    }
    double sd =
        sqrt(variance_of(s, NULL, OCC_SPECIAL_IDLE, OCC_SPECIAL_IDLE + 1, s->diagonal[OCC_SPECIAL_IDLE]));
    double seen = fmax(s->x[OCC_SPECIAL_IDLE] - 2 * sd, 0);
    a->untraced = seen / 2;
    a->untraced_sd = occ_quadrature(occ_quadrature(UNTRACED_SD * seen, above), a->common_sd);
}

void occ_errors_report(struct occ_attribution *a, struct occ_solution *s)
{
    for (uint32_t c = 0; c < 2 * OCC_CLUSTERS; c++) {
        double *score = s->score + (size_t)c * s->n;
        occ_equations_solve(s->inverse, s->n, score, score, s->scratch);
    }
    find_untraced(a, s);
    for (size_t i = 0; i < a->regressors.n; i++)
        a->regressors.items[i].measured = OCC_NOT_MEASURED;
    for (uint32_t i = OCC_SPECIAL; i < OCC_SPECIAL + s->n_means; i++)
        report_own(a, s, i);
    report_groups(a, s);
}
