/* The estimate: weighted least squares over all kept rows, with Gaussian priors. Unknowns are the idle
 * occupancy (while no launch is known to run), the clocks' offset and drift, to which rows are corrected to
 * first order, and the functions of the regressors. Each further counter set has its own system of equations.
 * See state.h. */
#include <string.h>

#include "equations.h"
#include "state.h"

/* Marks the columns that have a sufficient share of a row, and finds the ratios that all rows count. */
static void find_columns(struct occ_attribution *a, struct occ_solution *s)
{
    for (size_t i = 0; i < a->n_regressors; i++)
        memset(a->regressors[i].column_index, 0xff, sizeof a->regressors[i].column_index);
    for (const struct occ_row *row = s->from->first; row; row = row->next) {
        if (!isfinite(row->ratio[s->first_response]))
            continue;
        for (uint32_t k = 0; k < row->n; k++) {
            uint32_t column = row->entries[k].column, function = column % OCC_COLUMNS;
            if (function == 0 || function == OCC_ELASTICITY || fabsf(row->entries[k].share) > PROFILE_FROM)
                *occ_column_index(a, column) = 0;
        }
        for (int r = 0; r < OCC_RATIO_COUNT; r++)
            s->is_unknown[r] &= isfinite(row->ratio[r]) != 0;
        s->rows++;
    }
}

/* Numbers the columns, function by function. False: more means than the rows or MEANS_MAX allow. */
static bool number_columns(struct occ_attribution *a, struct occ_solution *s)
{
    s->n = OCC_SPECIAL;
    for (uint32_t function = 0; function < OCC_COLUMNS; function++) {
        /* other counter sets have few rows: only the mean and the wavelets of two levels */
        bool has_room = s->first_response == OCC_RATIO_WARPS || function < OCC_ELASTICITY;
        double room = function == 0 ? MEANS_MAX : has_room ? a->estimate.profile_columns_max : 0;
        double max = OCC_SPECIAL + fmin(room, s->rows / 2);
        for (size_t i = 0; i < a->n_regressors; i++) {
            uint32_t *column_index = &a->regressors[i].column_index[function];
            if (*column_index == OCC_NONE)
                continue;
            if (function == 0 && s->n >= max)
                return false;
            *column_index = s->n < max ? s->n++ : OCC_NONE;
        }
        if (function == 0) {
            s->means_end = s->parts_end = s->n;
            if (s->first_response == OCC_RATIO_WARPS)
                occ_parts_number(a, s);
        }
    }
    return s->means_end > OCC_SPECIAL;
}

/* False: no memory. */
static bool allocate_equations(struct occ_solution *s)
{
    size_t n = s->n, triangle = n * (n + 1) / 2;
    s->columns = calloc(n, sizeof *s->columns);
    s->inverse = calloc(triangle + (OCC_RATIO_COUNT + 3 * OCC_CLUSTERS + 2) * n, sizeof *s->inverse);
    s->alone = calloc(n, sizeof *s->alone);
    if (!s->columns || !s->inverse || !s->alone)
        return false;
    s->rhs = s->inverse + triangle;
    s->score = s->rhs + OCC_RATIO_COUNT * n;
    s->x = s->score + 2 * OCC_CLUSTERS * n;
    s->prior = s->x + n;
    s->scratch = s->prior + n;
    return true;
}

static double response_of(const struct occ_row *row, const struct occ_observation *p, int response)
{
    return (double)row->ratio[response] - (response == OCC_RATIO_WARPS ? p->clock_shift : 0);
}

static void add_row(struct occ_solution *s, const struct occ_row *row, const struct occ_observation *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        double share = p->share[i] / p->variance;
        for (uint32_t k = 0; k <= i; k++)
            *occ_equations_at(s->inverse, p->column_index[i], p->column_index[k]) += share * p->share[k];
        for (int r = 0; r < OCC_RATIO_COUNT; r++)
            if (s->is_unknown[r])
                s->rhs[p->column_index[i] * OCC_RATIO_COUNT + (size_t)r] += share * response_of(row, p, r);
    }
}

static void add_prior(struct occ_solution *s, uint32_t column, double sd)
{
    s->prior[column] = 1 / (sd * sd);
    *occ_equations_at(s->inverse, column, column) += s->prior[column];
}

/* Adds the priors. Before the first estimate the clock columns are fixed to 0, because rows do not have the
 * effect of the clocks yet. */
static void add_priors(const struct occ_attribution *a, struct occ_solution *s)
{
    /* differences of nodes in one part would be taken for an offset */
    double most = s->is_pooled ? CLOCK_POOLED_US : INFINITY;
    double clock = a->estimate.known ? fmin(CLOCK_SD_US, most) : 1e-6;
    add_prior(s, OCC_SPECIAL_IDLE, IDLE_SD);
    add_prior(s, OCC_SPECIAL_OFFSET, clock);
    add_prior(s, OCC_SPECIAL_DRIFT, a->estimate.known ? fmin(a->estimate.drift_sd_us, most) : clock);
    for (uint32_t i = OCC_SPECIAL_SHARED; i < OCC_SPECIAL; i++)
        add_prior(s, i, PROFILE_SD / sqrt((i - OCC_SPECIAL_SHARED) / 2 + 1));
    for (uint32_t c = 0; c < a->n_regressors * OCC_COLUMNS; c++) {
        const struct occ_regressor *regressor = &a->regressors[c / OCC_COLUMNS];
        uint32_t column = *occ_column_index(a, c), function = c % OCC_COLUMNS;
        double bound = s->first_response < OCC_RATIO_UTILIZATION ? regressor->bound : 1;
        if (column == OCC_NONE)
            continue;
        add_prior(s, column, bound * (function ? PROFILE_SD / sqrt(function) : PRIOR_SD));
        s->columns[column].regressor = c / OCC_COLUMNS;
        for (int r = 0; r < OCC_RATIO_COUNT && function == 0; r++)
            s->rhs[column * OCC_RATIO_COUNT + (size_t)r] += regressor->prior[r] * s->prior[column];
    }
}

static void make_normal_equations(const struct occ_attribution *a, struct occ_solution *s)
{
    struct occ_observation p;
    for (const struct occ_row *row = s->from->first; row; row = row->next)
        if (occ_observation_make(a, s, row, &p))
            add_row(s, row, &p);
    add_priors(a, s);
    for (uint32_t i = s->means_end; i < s->parts_end; i++)
        add_prior(s, i, occ_parts_sd(a, &s->columns[i]));
    for (uint32_t i = 0; i < s->n; i++)
        s->columns[i].precision = *occ_equations_at(s->inverse, i, i);
    occ_equations_invert(s->inverse, s->prior, s->n, s->scratch);
}

static bool is_mean(const struct occ_solution *s, uint32_t column)
{
    return column >= OCC_SPECIAL && column < s->means_end;
}

/* True if all launches in the row are of one configuration and no edge of the sample cuts them. */
static bool is_alone(const struct occ_row *row)
{
    for (uint32_t k = 0; k < row->n; k++) {
        uint32_t function = row->entries[k].column % OCC_COLUMNS;
        if (row->entries[k].column / OCC_COLUMNS != row->entries[0].column / OCC_COLUMNS ||
            (function > 0 && function != OCC_ELASTICITY))
            return false;
    }
    return row->n > 0;
}

/* Adds the row's shares to the means, and to the sums over rows with is_alone(). */
static void note_shares(struct occ_solution *s, const struct occ_row *row, const struct occ_observation *p,
                        double residual)
{
    bool alone = is_alone(row);
    for (uint32_t k = 0; k < p->n; k++) {
        double share = p->share[k];
        if (!is_mean(s, p->column_index[k]))
            continue;
        struct occ_alone *at = &s->alone[p->column_index[k]];
        at->all_share += share / p->aged;
        at->score += alone ? share * residual / p->variance : 0;
        at->information += alone ? share * share / p->variance : 0;
        at->share += alone ? share / p->aged : 0;
    }
}

/* Adds a row's residual, corrected for the row's own leverage, to the scale and to its cluster. */
static void note_residual(struct occ_solution *s, const struct occ_row *row, const struct occ_observation *p,
                          int r, double *score)
{
    double residual = response_of(row, p, r), leverage = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        residual -= p->share[k] * s->x[p->column_index[k]];
        leverage +=
            p->share[k] * p->share[k] * *occ_equations_at(s->inverse, p->column_index[k], p->column_index[k]);
    }
    double left = 1 - fmin(leverage / p->variance, LEVERAGE_MAX);
    if (row->n > 0) {
        s->squares += residual * residual / left / p->variance * p->aged;
        s->busy_rows++;
    }
    s->counted += (double)row->ratio[r];
    for (uint32_t k = 0; k < p->n; k++)
        score[p->column_index[k] * OCC_CLUSTERS] += p->share[k] * residual / left / p->variance;
    if (r != OCC_RATIO_WARPS)
        return;
    note_shares(s, row, p, residual);
    occ_balance_add(&s->balance, row);
}

/* Computes how each cluster of residuals of a ratio changes the solution. */
static void find_cluster_scores(const struct occ_attribution *a, struct occ_solution *s, int r)
{
    struct occ_observation p;
    size_t n = OCC_CLUSTERS * (size_t)s->n;
    memset(s->scratch, 0, n * sizeof *s->scratch);
    s->squares = s->busy_rows = s->counted = 0;
    s->balance = (struct occ_balance){0};
    for (const struct occ_row *row = s->from->first; row; row = row->next)
        if (occ_observation_make(a, s, row, &p))
            note_residual(s, row, &p, r, s->scratch + row->phase % OCC_CLUSTERS);
    occ_equations_multiply(s->inverse, s->n, OCC_CLUSTERS, s->scratch,
                           r == OCC_RATIO_ACTIVE ? s->score + n : s->score);
}

static void take_values(struct occ_attribution *a, const struct occ_solution *s, int r)
{
    a->estimate.idle[r] = s->x[OCC_SPECIAL_IDLE];
    for (size_t i = 0; i < a->n_regressors; i++) {
        struct occ_regressor *regressor = &a->regressors[i];
        const uint32_t *column_index = regressor->column_index;
        regressor->value[r] = column_index[0] != OCC_NONE ? s->x[column_index[0]] : regressor->prior[r];
        for (uint32_t k = 1; k < OCC_COLUMNS && r == OCC_RATIO_WARPS; k++)
            regressor->profile[k] = column_index[k] != OCC_NONE ? s->x[column_index[k]] : 0;
        if (r >= OCC_RATIO_UTILIZATION && column_index[0] != OCC_NONE)
            regressor->utilization_se[r - OCC_RATIO_UTILIZATION] = sqrt(s->columns[column_index[0]].variance);
    }
    for (uint32_t i = s->means_end; i < s->parts_end; i++)
        a->regressors[s->columns[i].regressor].value[r] += s->columns[i].weight * s->x[i];
}

/* Sets the clock, the scale and the reported values from the solution for warps. */
static void report(struct occ_attribution *a, struct occ_solution *s)
{
    double step_us = fmin(fmax(s->x[OCC_SPECIAL_OFFSET], -CLOCK_SD_US), CLOCK_SD_US),
           drift_us = fmin(fmax(s->x[OCC_SPECIAL_DRIFT], -a->estimate.drift_sd_us), a->estimate.drift_sd_us);
    a->estimate.drift += drift_us * 1e3 / (double)WINDOW_NS;
    a->estimate.offset_ns = occ_clock_offset(a, a->joined_ns) + step_us * 1e3;
    a->estimate.clock_ns = a->joined_ns;
    if (s->busy_rows > 0)
        a->estimate.scale = fmax(a->estimate.scale * s->squares / s->busy_rows, SCALE_MIN);
    occ_inference_report(a, s);
    occ_parts_learn(a, s);
    a->estimate.known = true;
}

/* Solves the equations for all ratios that the rows count. Warps come last, since their solution is
 * reported. */
static void solve_all(struct occ_attribution *a, struct occ_solution *s)
{
    make_normal_equations(a, s);
    a->estimate.due_ns += (int64_t)((double)s->n * s->n * s->n * CUBE_NS / COST_MAX);
    occ_equations_multiply(s->inverse, s->n, OCC_RATIO_COUNT, s->rhs, s->scratch);
    memcpy(s->rhs, s->scratch, s->n * OCC_RATIO_COUNT * sizeof *s->rhs);
    for (int r = OCC_RATIO_COUNT; --r >= 0;) {
        if (!s->is_unknown[r])
            continue;
        for (uint32_t i = 0; i < s->n; i++)
            s->x[i] = s->rhs[i * OCC_RATIO_COUNT + (size_t)r];
        if (r <= OCC_RATIO_ACTIVE || r >= OCC_RATIO_UTILIZATION)
            find_cluster_scores(a, s, r);
        if (r == OCC_RATIO_WARPS)
            occ_parts_score(a, s);
        if (r == OCC_RATIO_WARPS || r >= OCC_RATIO_UTILIZATION)
            occ_inference_variances(a, s);
        if (r == OCC_RATIO_WARPS && a->options.inspect)
            a->options.inspect(a->options.context, a, s);
        take_values(a, s, r);
    }
    if (s->is_unknown[OCC_RATIO_WARPS])
        report(a, s);
}

/* Solves for the ratios of the rows that count `first`, except the ratios that are known already. */
static void solve(struct occ_attribution *a, enum occ_ratio first, bool *known)
{
    struct occ_solution s = {.from = first < OCC_RATIO_UTILIZATION ? &a->rows : &a->utilization_rows,
                             .first_response = first};
    for (int r = 0; r < OCC_RATIO_COUNT; r++)
        s.is_unknown[r] = !known[r];
    find_columns(a, &s);
    if (number_columns(a, &s) && allocate_equations(&s)) {
        occ_parts_weigh(a, &s);
        solve_all(a, &s);
        for (int r = 0; r < OCC_RATIO_COUNT; r++)
            known[r] |= s.is_unknown[r];
    }
    free(s.columns);
    free(s.inverse);
    free(s.alone);
    free(s.node_score);
}

/* Discards the values of the last estimate, and lets sums over launches decay by age. True: utilization is
 * kept, because no row with utilization is new and the equations are large. */
static bool forget(struct occ_attribution *a)
{
    double past_ns = a->estimate.known ? (double)(a->joined_ns - a->estimate.made_ns) : 0;
    bool is_kept = a->utilization_rows.fresh == 0 && a->utilization_rows.busy > 0 &&
                   a->estimate.due_ns > a->estimate.made_ns + DEAR_NS;
    a->estimate.made_ns = a->joined_ns;
    a->estimate.due_ns = a->joined_ns + BLOCK_NS;
    a->estimate.decay = exp(-past_ns / (double)WINDOW_NS);
    a->longest_ns *= a->estimate.decay;
    a->shortest_ns /= a->estimate.decay;
    for (size_t i = 0; i < a->n_regressors; i++) {
        struct occ_regressor *r = &a->regressors[i];
        r->measured = OCC_NOT_MEASURED;
        r->before = r->value[OCC_RATIO_WARPS];
        for (int k = 0; k < OCC_UTILIZATION_COUNT && !is_kept; k++)
            r->utilization_se[k] = NAN;
        r->launches *= a->estimate.decay;
        r->launch_ns *= a->estimate.decay;
        r->overlapped_ns *= a->estimate.decay;
    }
    for (size_t i = 0; i < a->nodes.n; i++)
        a->nodes.at[i].launch_ns *= a->estimate.decay;
    return is_kept;
}

void occ_gls_fit(struct occ_attribution *a)
{
    bool known[OCC_RATIO_COUNT] = {false}, is_kept = forget(a);
    for (int r = 0; r < OCC_RATIO_COUNT && a->rows.busy > 0 && (r == 0 || known[OCC_RATIO_WARPS]); r++)
        if (!known[r] && (r < OCC_RATIO_UTILIZATION || !is_kept))
            solve(a, (enum occ_ratio)r, known);
    a->rows.fresh = a->utilization_rows.fresh = 0;
}
