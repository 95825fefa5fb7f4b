/*
 * How busy schedulers, caches, memory and tensor cores are while a regressor's launches run. A counter set of
 * its own tells, in few samples: their rows are kept for longer than others, and are a least squares problem
 * for means alone. Clocks and the rows' weights are the main estimate's. See state.h. One thread.
 */
#include <string.h>

#include "equations.h"
#include "state.h"

enum { ACTIVE = OCC_RESPONSE_UTILIZATION_ACTIVE, RESPONSES = OCC_RESPONSE_UTILIZATIONS };

/* ---- rows ---- */

bool occ_utilization_read(const struct occ_sample *sample, double active, double *ret_response)
{
    ret_response[ACTIVE] = active;
    for (int i = 0; i < OCC_UTILIZATION_COUNT; i++) {
        ret_response[i] = sample->value[OCC_COUNTER_UTILIZATION + i] / 100;
        if (ret_response[i] < 0 || ret_response[i] > RATIO_MAX)
            return false;
    }
    return true;
}

/* ---- equations: columns are the means of the regressors, and last that of idle time ---- */

static uint32_t find_columns(const struct occ_attribution *a, struct occ_solution *s)
{
    const struct occ_rows *rows = &a->utilization_rows;
    memset(s->place, 0xff, a->regressors.n * sizeof *s->place);
    for (size_t i = 0; i < rows->n_entries; i++) {
        uint32_t regressor = rows->entries[i].column / OCC_COLUMNS;
        if (s->place[regressor] != OCC_NONE)
            continue;
        s->place[regressor] = s->n_means;
        s->regressor[s->n_means++] = regressor;
    }
    return s->n_means + 1;
}

/* A row's columns and shares of them; returns their number. */
static uint32_t place_row(const struct occ_attribution *a, const struct occ_solution *s,
                          const struct occ_row *row, uint32_t *place, double *share)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < row->n; i++) {
        const struct occ_entry *e = &a->utilization_rows.entries[row->first + i];
        if (e->column % OCC_COLUMNS != 0)
            continue;
        place[n] = s->place[e->column / OCC_COLUMNS];
        share[n++] = (double)e->share;
    }
    place[n] = s->n_means;
    share[n++] = (double)row->special[OCC_SPECIAL_IDLE];
    return n;
}

/* Variance of a row; infinite: it is not used. */
static double variance_of(const struct occ_attribution *a, const struct occ_row *row)
{
    return (double)row->variance * a->estimate.scale;
}

static void build(const struct occ_attribution *a, struct occ_solution *s)
{
    uint32_t place[OCC_PARTS_MAX + 1];
    double share[OCC_PARTS_MAX + 1];
    for (size_t i = 0; i < a->utilization_rows.n; i++) {
        const struct occ_row *row = &a->utilization_rows.rows[i];
        double weight = 1 / variance_of(a, row);
        uint32_t n = weight > 0 ? place_row(a, s, row, place, share) : 0;
        s->rows += n > 0;
        for (uint32_t k = 0; k < n; k++) {
            for (uint32_t j = 0; j <= k; j++) {
                uint32_t high = place[j] > place[k] ? place[j] : place[k], low = place[j] + place[k] - high;
                occ_equations_row(s->inverse, high)[low] += weight * share[k] * share[j];
            }
            for (int r = 0; r < RESPONSES; r++) /* NaN: the whole response is not known */
                s->rhs[(size_t)r * s->n + place[k]] += weight * share[k] * (double)row->response[r];
        }
    }
}

/* Before anything is known all regressors have the mean of all. */
static void add_priors(const struct occ_attribution *a, struct occ_solution *s)
{
    double sums[RESPONSES] = {0}, busy = 0;
    for (size_t i = 0; i < a->utilization_rows.n; i++) {
        const struct occ_row *row = &a->utilization_rows.rows[i];
        busy += 1 - (double)row->special[OCC_SPECIAL_IDLE];
        for (int r = 0; r < RESPONSES; r++)
            sums[r] += (double)row->response[r];
    }
    for (uint32_t i = 0; i < s->n; i++) {
        bool is_idle = i == s->n_means;
        double prior = is_idle ? 1 / (IDLE_SD * IDLE_SD) : 1 / (PRIOR_SD * PRIOR_SD);
        occ_equations_row(s->inverse, i)[i] += prior;
        for (int r = 0; r < RESPONSES && !is_idle && busy > 0; r++)
            s->rhs[(size_t)r * s->n + i] += prior * fmin(sums[r] / busy, 1);
    }
}

/* ---- values ---- */

/* What the residuals of a response add to the clusters of the rows. */
static void find_scores(const struct occ_attribution *a, struct occ_solution *s, int response)
{
    uint32_t place[OCC_PARTS_MAX + 1];
    double share[OCC_PARTS_MAX + 1];
    memset(s->score, 0, 2 * OCC_CLUSTERS * (size_t)s->n * sizeof *s->score);
    for (size_t i = 0; i < a->utilization_rows.n; i++) {
        const struct occ_row *row = &a->utilization_rows.rows[i];
        double variance = variance_of(a, row), residual = (double)row->response[response], leverage = 0;
        uint32_t n = isfinite(variance) ? place_row(a, s, row, place, share) : 0;
        for (uint32_t k = 0; k < n; k++) {
            residual -= share[k] * s->x[place[k]];
            leverage += share[k] * share[k] * s->diagonal[place[k]];
        }
        size_t by_time = i * OCC_CLUSTERS / a->utilization_rows.n;
        size_t by_phase = OCC_CLUSTERS + row->phase % OCC_CLUSTERS;
        residual /= 1 - fmin(leverage / variance, LEVERAGE_MAX);
        for (uint32_t k = 0; k < n; k++) {
            s->score[by_time * s->n + place[k]] += share[k] * residual / variance;
            s->score[by_phase * s->n + place[k]] += share[k] * residual / variance;
        }
    }
    for (size_t c = 0; c < 2 * OCC_CLUSTERS; c++)
        occ_equations_solve(s->inverse, s->n, s->score + c * s->n, s->score + c * s->n, s->scratch);
}

static void forget(struct occ_attribution *a)
{
    for (size_t i = 0; i < a->regressors.n; i++)
        for (int r = 0; r < RESPONSES; r++)
            a->regressors.items[i].utilization_se[r] = NAN;
}

static void take_values(struct occ_attribution *a, struct occ_solution *s)
{
    for (int r = 0; r < RESPONSES; r++) {
        occ_equations_solve(s->inverse, s->n, s->rhs + (size_t)r * s->n, s->x, s->scratch);
        find_scores(a, s, r);
        for (uint32_t i = 0; i < s->n_means; i++) {
            struct occ_regressor *regressor = &a->regressors.items[s->regressor[i]];
            double variance = occ_errors_variance(s, i);
            bool is_told = variance <= PRIOR_SHARE * PRIOR_SD * PRIOR_SD;
            regressor->utilization[r] = (float)(s->x[i] < 0 ? 0 : s->x[i] > 1 ? 1 : s->x[i]);
            regressor->utilization_se[r] = is_told ? (float)sqrt(variance) : NAN;
        }
    }
}

void occ_utilization_fill(const struct occ_attribution *a, const struct occ_regressor *r,
                          struct occ_measured *m)
{
    double active = (double)r->utilization[ACTIVE];
    bool is_own = m->source == OCC_ATTRIBUTION_DIRECT || m->source == OCC_ATTRIBUTION_REGRESSED;
    for (int i = 0; i < OCC_UTILIZATION_COUNT; i++) {
        double value = (double)r->utilization[i], margin = m->overlapped ? sqrt(OVERLAPPED_MARGIN) : 1;
        double se = occ_quadrature((double)r->utilization_se[i] * margin,
                                   occ_quadrature(a->estimate.untraced_sd, ERROR_MIN));
        if (i == OCC_UTILIZATION_ISSUE) { /* schedulers have no cycles while their SM is idle */
            value = m->overlapped ? NAN : fmin(value / active, 1);
            se *= occ_quadrature(1, value) / active; /* active cycles are as uncertain */
        }
        bool is_known = is_own && isfinite(value) && se <= ERROR_MAX;
        m->utilization[i] = is_known ? value : NAN;
        m->utilization_se[i] = is_known ? se : NAN;
    }
}

/* ---- all ---- */

/* Room for the columns first, then for the rest, in one block. */
static bool make_solution(const struct occ_attribution *a, struct occ_solution *s)
{
    s->place = malloc(2 * a->regressors.n * sizeof *s->place + 1);
    if (!s->place)
        return false;
    s->regressor = s->place + a->regressors.n;
    s->n = find_columns(a, s);
    size_t n = s->n, triangle = n * (n + 1) / 2;
    if (s->n_means > fmin(MEANS_MAX, (double)a->utilization_rows.n / 2)) /* rows cannot tell them */
        return true;
    s->inverse = calloc(triangle + (RESPONSES + 2 * OCC_CLUSTERS + 4) * n, sizeof *s->inverse);
    if (!s->inverse)
        return false;
    s->rhs = s->inverse + triangle;
    s->score = s->rhs + RESPONSES * n;
    s->x = s->score + 2 * OCC_CLUSTERS * n;
    s->diagonal = s->x + n;
    s->scratch = s->diagonal + n;
    return true;
}

/* The counter set's turn is over, and half of the rows are new. */
static bool is_due(const struct occ_attribution *a)
{
    const struct occ_rows *rows = &a->utilization_rows;
    const struct occ_row *last = &rows->rows[rows->n - 1];
    return 2 * rows->fresh >= rows->n && last->start_ns + (int64_t)last->length_ns < a->joined_ns;
}

int occ_utilization_solve(struct occ_attribution *a, bool final, struct occ_error *err)
{
    struct occ_rows *rows = &a->utilization_rows;
    struct occ_solution s = {0};
    if (rows->fresh == 0 || rows->n == 0 || !a->estimate.known || (!final && !is_due(a)))
        return 0;
    bool has_memory = make_solution(a, &s);
    forget(a);
    if (s.inverse) {
        build(a, &s);
        add_priors(a, &s);
        occ_equations_factor(s.inverse, s.n);
        occ_equations_diagonal(s.inverse, s.n, s.diagonal);
        take_values(a, &s);
        rows->fresh = 0;
    }
    free(s.place);
    free(s.inverse);
    return has_memory ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
}
