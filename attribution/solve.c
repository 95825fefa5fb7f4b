/*
 * The estimate: weighted least squares over all rows that are kept, with Gaussian priors, solved exactly.
 * Unknowns are the regressors' means and profiles, what runs while no launch is known to, and the clocks'
 * offset and drift, by which rows are corrected to first order. Rows of counter sets without warps are a
 * problem of their own for what only they count. See state.h. One thread.
 */
#include <string.h>

#include "equations.h"
#include "state.h"

#define ROW_MAX (OCC_ENTRIES_MAX + OCC_SPECIAL)

/* A row in columns of the solution. */
struct placed {
    uint32_t n, place[ROW_MAX];
    double share[ROW_MAX], variance, rest; /* rest: of what is counted, that is no unknown */
};

/* ---- columns ---- */

static bool is_used(const struct occ_solution *s, const struct occ_row *row)
{
    return (isfinite(row->response[OCC_RESPONSE_WARPS]) != 0) == s->is_main && isfinite(row->variance);
}

static uint32_t special(const struct occ_solution *s, uint32_t i)
{
    return s->n - OCC_SPECIAL + i;
}

/* Marks the columns that rows have, and finds what the rows count. */
static void scan_rows(const struct occ_attribution *a, struct occ_solution *s)
{
    for (int r = 0; r < OCC_RESPONSE_COUNT; r++)
        s->knows[r] = s->is_main || !a->estimate.knows[r];
    for (size_t i = 0; i < a->rows.n; i++) {
        const struct occ_row *row = &a->rows.rows[i];
        if (!is_used(s, row))
            continue;
        for (uint32_t k = 0; k < row->n; k++)
            s->place[a->rows.entries[row->first + k].column] = 0;
        for (int r = 0; r < OCC_RESPONSE_COUNT; r++)
            s->knows[r] &= isfinite(row->response[r]) != 0;
        s->rows++;
    }
}

static void find_columns(const struct occ_attribution *a, struct occ_solution *s)
{
    size_t n_columns = a->regressors.n * OCC_COLUMNS;
    memset(s->place, 0xff, n_columns * sizeof *s->place);
    scan_rows(a, s);
    for (uint32_t function = 0; function < OCC_COLUMNS; function++) { /* lower degrees first */
        double max = fmin(function == 0 ? MEANS_MAX : PROFILES_MAX, s->rows / 2);
        for (size_t c = function; c < n_columns; c += OCC_COLUMNS) {
            if (s->place[c] == OCC_NONE)
                continue;
            s->place[c] = s->n < max ? s->n++ : OCC_NONE;
            s->has_all_means &= function > 0 || s->place[c] != OCC_NONE;
            if (function == 0 && s->place[c] != OCC_NONE)
                s->regressor[s->n_means++] = (uint32_t)(c / OCC_COLUMNS);
        }
    }
    s->n += OCC_SPECIAL;
}

static void place_special(const struct occ_attribution *a, const struct occ_solution *s,
                          const struct occ_row *row, struct placed *p)
{
    for (uint32_t i = 0; i < OCC_SPECIAL; i++) {
        p->place[i] = special(s, i);
        p->share[i] = (double)row->special[i];
    }
    double gradient = p->share[OCC_SPECIAL_OFFSET];
    p->share[OCC_SPECIAL_DRIFT] = gradient * (double)(row->start_ns - a->estimate.clock_ns) / DRIFT_NS;
    p->rest = gradient * (occ_clock_offset(a, row->start_ns) - (double)row->offset_ns) / 1e3;
    p->n = OCC_SPECIAL;
}

static void place_row(const struct occ_attribution *a, const struct occ_solution *s,
                      const struct occ_row *row, struct placed *p)
{
    p->variance = (double)row->variance * a->estimate.scale;
    place_special(a, s, row, p);
    for (uint32_t k = 0; k < row->n; k++) {
        const struct occ_entry *e = &a->rows.entries[row->first + k];
        const struct occ_regressor *r = &a->regressors.items[e->column / OCC_COLUMNS];
        if (s->place[e->column] != OCC_NONE) {
            p->place[p->n] = s->place[e->column];
            p->share[p->n++] = (double)e->share;
            continue;
        }
        double sd = PRIOR_SD * (double)(e->share * r->bound); /* there was no column for it */
        p->variance += sd * sd;
        p->rest += e->column % OCC_COLUMNS == 0 ? (double)(e->share * r->prior[OCC_RESPONSE_WARPS]) : 0;
    }
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
    for (int r = 0; r < OCC_RESPONSE_COUNT; r++) {
        double counted = weight * ((double)row->response[r] - (r == OCC_RESPONSE_WARPS ? p->rest : 0));
        for (uint32_t i = 0; i < p->n && s->knows[r]; i++)
            s->rhs[(size_t)r * s->n + p->place[i]] += p->share[i] * counted;
    }
}

/* Priors' standard deviations of the special columns; until an estimate is known, rows do not know what the
 * clocks do to them. */
static void set_special_priors(const struct occ_attribution *a, struct occ_solution *s)
{
    double *prior = s->prior + special(s, 0), clock = a->estimate.known ? CLOCK_SD_US : 1e-6;
    prior[OCC_SPECIAL_IDLE] = 1 / (IDLE_SD * IDLE_SD);
    prior[OCC_SPECIAL_OFFSET] = prior[OCC_SPECIAL_DRIFT] = 1 / (clock * clock);
    for (uint32_t i = OCC_SPECIAL_PROFILE; i < OCC_SPECIAL; i++)
        prior[i] = 1 / (COMMON_SD * COMMON_SD);
}

static void add_priors(const struct occ_attribution *a, struct occ_solution *s)
{
    set_special_priors(a, s);
    for (size_t c = 0; c < a->regressors.n * OCC_COLUMNS; c++) {
        const struct occ_regressor *regressor = &a->regressors.items[c / OCC_COLUMNS];
        uint32_t place = s->place[c], function = (uint32_t)(c % OCC_COLUMNS);
        double sd = (double)regressor->bound * (function ? PROFILE_SD / function : PRIOR_SD);
        if (place == OCC_NONE)
            continue;
        s->prior[place] = 1 / (sd * sd);
        for (int r = 0; r < OCC_RESPONSE_COUNT && function == 0; r++)
            s->rhs[(size_t)r * s->n + place] += s->prior[place] * (double)regressor->prior[r];
    }
    for (uint32_t i = 0; i < s->n; i++)
        s->precision[i] = occ_equations_row(s->inverse, i)[i] += s->prior[i];
}

static void build(const struct occ_attribution *a, struct occ_solution *s, struct placed *p)
{
    for (size_t i = 0; i < a->rows.n; i++) {
        const struct occ_row *row = &a->rows.rows[i];
        if (!is_used(s, row))
            continue;
        place_row(a, s, row, p);
        add_row(s, row, p);
    }
    add_priors(a, s);
}

/* ---- residuals ---- */

/* What goes on for longer than launches do, in residuals of rows that have no launch in common. */
static void note_common(struct occ_residuals *s, const struct occ_row *row, double residual)
{
    if (row->start_ns < s->last_ns)
        return;
    s->common += residual * s->last;
    s->common_rows++;
    s->last = residual;
    s->last_ns = row->start_ns + (int64_t)row->busy_ns;
}

/* What a row's residual, corrected for the row's own pull on it, adds to its clusters. */
static void note_score(struct occ_solution *s, const struct occ_row *row, const struct placed *p,
                       double residual)
{
    size_t cluster = (size_t)((double)(row->start_ns - s->from_ns) * OCC_CLUSTERS / (double)s->length_ns);
    double *by_time = s->score + cluster * s->n;
    double *by_phase = s->score + (OCC_CLUSTERS + row->phase % OCC_CLUSTERS) * s->n;
    for (uint32_t k = 0; k < p->n; k++) {
        double score = p->share[k] * residual / p->variance;
        by_time[p->place[k]] += score;
        by_phase[p->place[k]] += score;
        s->launch_ns[p->place[k]] += p->share[k] * (double)row->length_ns;
    }
}

static void note_residual(struct occ_solution *s, const struct occ_row *row, const struct placed *p)
{
    double residual = (double)row->response[OCC_RESPONSE_WARPS] - p->rest, leverage = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        residual -= p->share[k] * s->x[p->place[k]];
        leverage += p->share[k] * p->share[k] * s->diagonal[p->place[k]];
    }
    double left = 1 - fmin(leverage / p->variance, LEVERAGE_MAX);
    struct occ_residuals *sums = &s->residuals;
    sums->counted += (double)row->response[OCC_RESPONSE_WARPS];
    if (row->n == 0) {
        sums->idle_squares += residual * residual * (double)row->length_ns;
        sums->idle_ns += (double)row->length_ns;
    } else {
        sums->squares += residual * residual / left / p->variance;
        sums->rows++;
    }
    note_common(sums, row, residual);
    note_score(s, row, p, residual / left);
}

static void find_residuals(const struct occ_attribution *a, struct occ_solution *s, struct placed *p)
{
    for (size_t i = 0; i < a->rows.n; i++) {
        const struct occ_row *row = &a->rows.rows[i];
        if (!is_used(s, row))
            continue;
        place_row(a, s, row, p);
        note_residual(s, row, p);
    }
}

/* ---- all ---- */

static bool make_solution(const struct occ_attribution *a, struct occ_solution *s)
{
    s->place = malloc(a->regressors.n * OCC_COLUMNS * sizeof *s->place + 1);
    s->regressor = malloc(2 * a->regressors.n * sizeof *s->regressor + 1);
    if (!s->place || !s->regressor)
        return false;
    s->selected = s->regressor + a->regressors.n;
    find_columns(a, s);
    size_t n = s->n, at = 0;
    const struct {
        double **array;
        size_t n;
    } parts[] = {{&s->inverse, n * (n + 1) / 2},
                 {&s->rhs, OCC_RESPONSE_COUNT * n},
                 {&s->score, 2 * OCC_CLUSTERS * n},
                 {&s->x, n},
                 {&s->diagonal, n},
                 {&s->prior, n},
                 {&s->precision, n},
                 {&s->launch_ns, n},
                 {&s->scratch, 2 * n},
                 {&s->weights, n}};
    const size_t n_parts = sizeof parts / sizeof *parts;
    for (size_t i = 0; i < n_parts; i++)
        at += parts[i].n;
    double *memory = calloc(at, sizeof *memory);
    for (size_t i = 0; i < n_parts && memory; memory += parts[i++].n)
        *parts[i].array = memory;
    s->from_ns = s->residuals.last_ns = a->rows.rows[0].start_ns;
    s->length_ns = a->rows.rows[a->rows.n - 1].start_ns - s->from_ns + 1;
    return memory;
}

static void free_solution(struct occ_solution *s)
{
    free(s->place);
    free(s->regressor);
    free(s->inverse);
}

/* Solves the equations for all that the rows count. */
static void take_values(struct occ_attribution *a, struct occ_solution *s)
{
    for (int r = OCC_RESPONSE_COUNT; --r >= 0;) { /* warps last: their solution stays */
        if (!s->knows[r])
            continue;
        occ_equations_solve(s->inverse, s->n, s->rhs + (size_t)r * s->n, s->x, s->scratch);
        for (uint32_t i = 0; i < OCC_SPECIAL && s->is_main; i++)
            a->estimate.special[i][r] =
                i == OCC_SPECIAL_OFFSET || i == OCC_SPECIAL_DRIFT ? 0 : s->x[special(s, i)];
        for (size_t c = 0; c < a->regressors.n * OCC_COLUMNS; c++) {
            struct occ_regressor *regressor = &a->regressors.items[c / OCC_COLUMNS];
            uint32_t function = (uint32_t)(c % OCC_COLUMNS), place = s->place[c];
            if (function == 0 && r == 0)
                regressor->before = regressor->value[0];
            if (function == 0)
                regressor->value[r] = place != OCC_NONE ? (float)s->x[place] : regressor->prior[r];
            else if (r == OCC_RESPONSE_WARPS)
                regressor->profile[function - 1] = place != OCC_NONE ? (float)s->x[place] : 0;
        }
    }
}

static void take_clock(struct occ_attribution *a, const struct occ_solution *s)
{
    struct occ_estimate *e = &a->estimate;
    double step_us = s->x[special(s, OCC_SPECIAL_OFFSET)], drift_us = s->x[special(s, OCC_SPECIAL_DRIFT)];
    e->drift += fmin(fmax(drift_us, -CLOCK_SD_US), CLOCK_SD_US) * 1e3 / DRIFT_NS;
    e->offset_ns = occ_clock_offset(a, a->joined_ns) + fmin(fmax(step_us, -CLOCK_SD_US), CLOCK_SD_US) * 1e3;
    e->clock_ns = a->joined_ns;
}

/* What follows from the solution of rows that count warps. */
static void report(struct occ_attribution *a, struct occ_solution *s, struct placed *p)
{
    struct occ_estimate *e = &a->estimate;
    occ_equations_diagonal(s->inverse, s->n, s->diagonal);
    find_residuals(a, s, p);
    take_clock(a, s);
    if (s->residuals.rows > 0)
        e->scale = fmax(e->scale * s->residuals.squares / s->residuals.rows, SCALE_MIN);
    memcpy(e->knows, s->knows, sizeof e->knows);
    occ_errors_report(a, s);
    e->due_ns = a->joined_ns + (int64_t)((double)s->n * s->n * s->n * CUBE_NS / COST_MAX);
    a->rows.fresh = 0;
    e->known = true;
}

static bool solve(struct occ_attribution *a, bool is_main, struct placed *p)
{
    struct occ_solution s = {.is_main = is_main, .has_all_means = true};
    bool has_memory = make_solution(a, &s);
    if (has_memory && s.rows > 0) {
        build(a, &s, p);
        occ_equations_factor(s.inverse, s.n);
        take_values(a, &s);
        if (is_main)
            report(a, &s, p);
    }
    free_solution(&s);
    return has_memory;
}

int occ_solve(struct occ_attribution *a, struct occ_error *err)
{
    if (a->rows.n == 0)
        return 0;
    struct placed *p = malloc(sizeof *p);
    bool has_memory = p && solve(a, true, p) && solve(a, false, p);
    free(p);
    return has_memory ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
}
