/*
 * The estimate: weighted least squares over all rows that are kept, with Gaussian priors, solved exactly.
 * Unknowns are the regressors' means and profiles, what runs while no launch is known to, and the clocks'
 * offset and drift, by which rows are corrected to first order. What only other counter sets count is a
 * problem of its own, with their rows. See state.h. One thread.
 */
#include <string.h>

#include "equations.h"
#include "state.h"

#define ROW_MAX (OCC_ENTRIES_MAX + OCC_SPECIAL)

/* A row in columns of the solution. */
struct placed {
    uint32_t n, place[ROW_MAX];
    double share[ROW_MAX], variance;
    double aged; /* factor of the variance, by the row's age */
    double rest; /* of what warps counted, that is no unknown */
};

/* ---- columns ---- */

static bool is_used(const struct occ_solution *s, const struct occ_row *row)
{
    return isfinite(row->response[s->lead]) && isfinite(row->variance);
}

static uint32_t special(const struct occ_solution *s, uint32_t i)
{
    return s->n - OCC_SPECIAL + i;
}

/* Marks the columns that rows have, and finds what all of the rows count. */
static void scan_rows(struct occ_solution *s)
{
    for (size_t i = 0; i < s->from->n; i++) {
        const struct occ_row *row = &s->from->rows[i];
        if (!is_used(s, row))
            continue;
        for (uint32_t k = 0; k < row->n; k++)
            s->place[s->from->entries[row->first + k].column] = 0;
        for (int r = 0; r < OCC_RESPONSE_COUNT; r++)
            s->is_unknown[r] &= isfinite(row->response[r]) != 0;
        s->rows++;
    }
}

/* False: there are more means than the rows can tell, or than we can. */
static bool find_columns(const struct occ_attribution *a, struct occ_solution *s)
{
    size_t n_columns = a->regressors.n * OCC_COLUMNS;
    memset(s->place, 0xff, n_columns * sizeof *s->place);
    scan_rows(s);
    for (uint32_t function = 0; function < OCC_COLUMNS; function++) { /* in all, before the next */
        bool has_profiles = s->lead == OCC_RESPONSE_WARPS;            /* other sets' rows are few */
        double max = fmin(function == 0 ? MEANS_MAX : has_profiles ? PROFILES_MAX : 0, s->rows / 2);
        for (size_t c = function; c < n_columns; c += OCC_COLUMNS) {
            if (s->place[c] == OCC_NONE)
                continue;
            s->place[c] = s->n < max ? s->n++ : OCC_NONE;
            if (function == 0 && s->place[c] == OCC_NONE)
                return false;
            if (function == 0)
                s->regressor[s->n_means++] = (uint32_t)(c / OCC_COLUMNS);
        }
    }
    s->n += OCC_SPECIAL;
    return s->n_means > 0;
}

static void place_row(const struct occ_attribution *a, const struct occ_solution *s,
                      const struct occ_row *row, struct placed *p)
{
    double gradient = (double)row->gradient, drift_ns = (double)(row->start_ns - a->estimate.clock_ns);
    const double shares[OCC_SPECIAL] = {(double)row->idle, gradient, gradient * drift_ns / (double)WINDOW_NS};
    double age = (double)(a->joined_ns - row->start_ns) / DRIFT_TIME_NS;
    p->aged = s->lead < OCC_RESPONSE_UTILIZATION ? 1 + age * age : 1; /* those have to be kept for long */
    p->variance = (double)row->variance * a->estimate.scale * p->aged;
    p->rest = gradient * (occ_clock_offset(a, row->start_ns) - (double)row->offset_ns) / 1e3;
    for (p->n = 0; p->n < OCC_SPECIAL; p->n++) {
        p->place[p->n] = special(s, p->n);
        p->share[p->n] = shares[p->n];
    }
    for (uint32_t k = 0; k < row->n; k++) {
        const struct occ_entry *e = &s->from->entries[row->first + k];
        if (s->place[e->column] != OCC_NONE) {
            p->place[p->n] = s->place[e->column];
            p->share[p->n++] = (double)e->share;
            continue;
        }
        double sd = s->lead == OCC_RESPONSE_WARPS ? PRIOR_SD * (double)e->share : 0;
        sd *= (double)a->regressors.items[e->column / OCC_COLUMNS].bound;
        p->variance += sd * sd; /* there was no room for it */
    }
}

static double counted_by(const struct occ_row *row, const struct placed *p, int response)
{
    return (double)row->response[response] - (response == OCC_RESPONSE_WARPS ? p->rest : 0);
}

/* ---- equations ---- */

static void add_row(struct occ_solution *s, const struct occ_row *row, const struct placed *p)
{
    double weight = 1 / p->variance;
    for (uint32_t i = 0; i < p->n; i++) {
        double share = p->share[i] * weight;
        for (uint32_t k = 0; k <= i; k++) {
            uint32_t high = p->place[i] > p->place[k] ? p->place[i] : p->place[k];
            uint32_t low = p->place[i] + p->place[k] - high;
            occ_equations_row(s->inverse, high)[low] += share * p->share[k];
        }
    }
    for (int r = 0; r < OCC_RESPONSE_COUNT; r++)
        for (uint32_t i = 0; i < p->n && s->is_unknown[r]; i++)
            s->rhs[(size_t)r * s->n + p->place[i]] += p->share[i] * weight * counted_by(row, p, r);
}

static void add_prior(struct occ_solution *s, uint32_t place, double sd)
{
    s->prior[place] = 1 / (sd * sd);
    occ_equations_row(s->inverse, place)[place] += s->prior[place];
}

/* Until an estimate is known, rows do not know what the clocks do to them. */
static void add_priors(const struct occ_attribution *a, struct occ_solution *s)
{
    double clock = a->estimate.known ? CLOCK_SD_US : 1e-6;
    add_prior(s, special(s, OCC_SPECIAL_IDLE), IDLE_SD);
    add_prior(s, special(s, OCC_SPECIAL_OFFSET), clock);
    add_prior(s, special(s, OCC_SPECIAL_DRIFT), clock);
    for (size_t c = 0; c < a->regressors.n * OCC_COLUMNS; c++) {
        const struct occ_regressor *regressor = &a->regressors.items[c / OCC_COLUMNS];
        uint32_t place = s->place[c], function = (uint32_t)(c % OCC_COLUMNS);
        double bound = s->lead < OCC_RESPONSE_UTILIZATION ? (double)regressor->bound : 1;
        double sd = bound * (function ? PROFILE_SD / sqrt(function) : PRIOR_SD);
        if (place == OCC_NONE)
            continue;
        add_prior(s, place, sd);
        for (int r = 0; r < OCC_RESPONSE_COUNT && function == 0; r++)
            s->rhs[(size_t)r * s->n + place] += (double)regressor->prior[r] / (sd * sd);
    }
    for (uint32_t i = 0; i < s->n; i++)
        s->precision[i] = occ_equations_row(s->inverse, i)[i];
}

static void build(const struct occ_attribution *a, struct occ_solution *s, struct placed *p)
{
    for (size_t i = 0; i < s->from->n; i++) {
        const struct occ_row *row = &s->from->rows[i];
        if (!is_used(s, row))
            continue;
        place_row(a, s, row, p);
        add_row(s, row, p);
    }
    add_priors(a, s);
}

/* ---- residuals ---- */

/* What a row's residual, corrected for the row's own pull on it, adds to the scale and to its cluster. */
static void note_residual(struct occ_solution *s, const struct occ_row *row, const struct placed *p, int r)
{
    double residual = counted_by(row, p, r), leverage = 0;
    double *score = s->score + row->phase % OCC_CLUSTERS * s->n;
    for (uint32_t k = 0; k < p->n; k++) {
        residual -= p->share[k] * s->x[p->place[k]];
        leverage += p->share[k] * p->share[k] * s->diagonal[p->place[k]];
    }
    double left = 1 - fmin(leverage / p->variance, LEVERAGE_MAX);
    if (row->n > 0) {
        s->squares += residual * residual / left / p->variance * p->aged;
        s->busy_rows++;
    }
    s->counted += (double)row->response[r];
    for (uint32_t k = 0; k < p->n; k++) {
        score[p->place[k]] += p->share[k] * residual / left / p->variance;
        s->launch_ns[p->place[k]] += p->share[k] * (double)row->length_ns;
    }
}

/* What clusters of residuals of a response add to its solution. */
static void find_scores(const struct occ_attribution *a, struct occ_solution *s, struct placed *p, int r)
{
    memset(s->score, 0, OCC_CLUSTERS * (size_t)s->n * sizeof *s->score);
    for (size_t i = 0; i < s->from->n; i++) {
        const struct occ_row *row = &s->from->rows[i];
        if (!is_used(s, row))
            continue;
        place_row(a, s, row, p);
        note_residual(s, row, p, r);
    }
    for (uint32_t c = 0; c < OCC_CLUSTERS; c++) {
        double *score = s->score + (size_t)c * s->n;
        occ_equations_solve(s->inverse, s->n, score, score, s->scratch);
    }
}

/* ---- all ---- */

/* False: no memory. Without columns there is nothing to solve, and no room for it. */
static bool make_solution(const struct occ_attribution *a, struct occ_solution *s)
{
    s->place = malloc(a->regressors.n * OCC_COLUMNS * sizeof *s->place + 1);
    s->regressor = malloc(2 * a->regressors.n * sizeof *s->regressor + 1);
    if (!s->place || !s->regressor)
        return false;
    s->selected = s->regressor + a->regressors.n;
    if (!find_columns(a, s))
        return true;
    size_t n = s->n, at = 0;
    const struct {
        double **array;
        size_t n;
    } parts[] = {{&s->inverse, n * (n + 1) / 2},
                 {&s->rhs, OCC_RESPONSE_COUNT * n},
                 {&s->score, OCC_CLUSTERS * n},
                 {&s->x, n},
                 {&s->diagonal, n},
                 {&s->prior, n},
                 {&s->precision, n},
                 {&s->launch_ns, n},
                 {&s->clock, n},
                 {&s->scratch, 2 * n},
                 {&s->weights, n}};
    const size_t n_parts = sizeof parts / sizeof *parts;
    for (size_t i = 0; i < n_parts; i++)
        at += parts[i].n;
    double *memory = calloc(at, sizeof *memory);
    for (size_t i = 0; i < n_parts && memory; memory += parts[i++].n)
        *parts[i].array = memory;
    return memory;
}

static void free_solution(struct occ_solution *s)
{
    free(s->place);
    free(s->regressor);
    free(s->inverse);
}

static void take_values(struct occ_attribution *a, const struct occ_solution *s, int r)
{
    a->estimate.idle[r] = s->x[special(s, OCC_SPECIAL_IDLE)];
    for (size_t i = 0; i < a->regressors.n; i++) {
        struct occ_regressor *regressor = &a->regressors.items[i];
        const uint32_t *place = s->place + i * OCC_COLUMNS;
        if (r == OCC_RESPONSE_WARPS)
            regressor->before = regressor->value[r];
        regressor->value[r] = place[0] != OCC_NONE ? (float)s->x[place[0]] : regressor->prior[r];
        for (uint32_t k = 1; k < OCC_COLUMNS && r == OCC_RESPONSE_WARPS; k++)
            regressor->profile[k] = place[k] != OCC_NONE ? (float)s->x[place[k]] : 0;
    }
}

static void take_utilization_errors(struct occ_attribution *a, const struct occ_solution *s, int r)
{
    int i = r - OCC_RESPONSE_UTILIZATION;
    for (uint32_t k = 0; k < s->n_means; k++)
        a->regressors.items[s->regressor[k]].utilization_se[i] = (float)sqrt(occ_errors_variance(s, k));
}

static void step_clock(struct occ_attribution *a, double step_us, double drift_us)
{
    struct occ_estimate *e = &a->estimate;
    e->drift += fmin(fmax(drift_us, -CLOCK_SD_US), CLOCK_SD_US) * 1e3 / (double)WINDOW_NS;
    e->offset_ns = occ_clock_offset(a, a->joined_ns) + fmin(fmax(step_us, -CLOCK_SD_US), CLOCK_SD_US) * 1e3;
    e->clock_ns = a->joined_ns;
}

/* What follows from the solution of rows that count warps. */
static void report(struct occ_attribution *a, struct occ_solution *s)
{
    struct occ_estimate *e = &a->estimate;
    step_clock(a, s->x[special(s, OCC_SPECIAL_OFFSET)], s->x[special(s, OCC_SPECIAL_DRIFT)]);
    if (s->busy_rows > 0)
        e->scale = fmax(e->scale * s->squares / s->busy_rows, SCALE_MIN);
    occ_errors_report(a, s);
    e->due_ns = a->joined_ns + (int64_t)((double)s->n * s->n * s->n * CUBE_NS / COST_MAX);
    e->known = true;
}

/* Solves the equations for all that the rows count; warps last: their solution stays. */
static void solve_all(struct occ_attribution *a, struct occ_solution *s, struct placed *p)
{
    build(a, s, p);
    occ_equations_factor(s->inverse, s->prior, s->n);
    occ_equations_diagonal(s->inverse, s->n, s->diagonal);
    for (int r = OCC_RESPONSE_COUNT; --r >= 0;) {
        if (!s->is_unknown[r])
            continue;
        occ_equations_solve(s->inverse, s->n, s->rhs + (size_t)r * s->n, s->x, s->scratch);
        take_values(a, s, r);
        if (r == OCC_RESPONSE_WARPS || r >= OCC_RESPONSE_UTILIZATION)
            find_scores(a, s, p, r);
        if (r >= OCC_RESPONSE_UTILIZATION)
            take_utilization_errors(a, s, r);
    }
    if (s->is_unknown[OCC_RESPONSE_WARPS])
        report(a, s);
}

/* Solves for what rows count that count `lead`, but for what is known already. False: no memory. */
static bool solve(struct occ_attribution *a, enum occ_response lead, bool *known, struct placed *p)
{
    struct occ_solution s = {.from = lead < OCC_RESPONSE_UTILIZATION ? &a->rows : &a->utilization_rows,
                             .lead = lead};
    for (int r = 0; r < OCC_RESPONSE_COUNT; r++)
        s.is_unknown[r] = !known[r];
    bool has_memory = s.from->n == 0 || make_solution(a, &s);
    if (s.inverse)
        solve_all(a, &s, p);
    for (int r = 0; r < OCC_RESPONSE_COUNT; r++)
        known[r] |= s.inverse && s.is_unknown[r];
    free_solution(&s);
    return has_memory;
}

/* What is not estimated anew is not known any more. What sums say of launches is of the last while. */
static void forget(struct occ_attribution *a)
{
    double past_ns = a->estimate.known ? (double)(a->joined_ns - a->estimate.made_ns) : 0;
    a->estimate.made_ns = a->joined_ns;
    a->estimate.faded = exp(-past_ns / (double)WINDOW_NS);
    for (size_t i = 0; i < a->regressors.n; i++) {
        struct occ_regressor *r = &a->regressors.items[i];
        r->measured = OCC_NOT_MEASURED;
        for (int k = 0; k < OCC_UTILIZATION_COUNT; k++)
            r->utilization_se[k] = NAN;
        r->launches *= a->estimate.faded;
        r->launch_ns *= a->estimate.faded;
        r->overlapped_ns *= a->estimate.faded;
        r->untold *= a->estimate.faded;
    }
}

int occ_solve(struct occ_attribution *a, struct occ_error *err)
{
    bool known[OCC_RESPONSE_COUNT] = {false};
    forget(a);
    a->rows.fresh = 0;
    if (a->rows.n_entries == 0) { /* nothing ran */
        step_clock(a, 0, 0);
        return 0;
    }
    struct placed *p = malloc(sizeof *p);
    bool has_memory = p;
    for (int r = 0; r < OCC_RESPONSE_COUNT && has_memory && (r == 0 || known[OCC_RESPONSE_WARPS]); r++)
        has_memory = known[r] || solve(a, (enum occ_response)r, known, p);
    free(p);
    return has_memory ? 0 : occ_no_memory(err);
}
