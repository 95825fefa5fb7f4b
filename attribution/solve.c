/*
 * The estimate: weighted least squares over all rows that are kept, with Gaussian priors, solved exactly.
 * Unknowns are the regressors' means and profiles, what runs while no launch is known to, and the clocks'
 * offset and drift, by which rows are corrected to first order. Rows of counter sets without warps are a
 * problem of their own for what only they count. See state.h. One thread.
 */
#include <string.h>

#include "equations.h"
#include "state.h"

#define COLUMNS_MAX   1500
#define PROFILES_MAX  650 /* beyond so many there are no profiles */
#define ROW_MAX       (OCC_ENTRIES_MAX + OCC_SPECIAL)
#define IDLE_SD       0.002 /* of occupancy while nothing is known to run */
#define OFFSET_SD_US  16.0  /* of the clock since the last estimate */
#define DRIFT_SD_US   30.0  /* the same, in ... */
#define DRIFT_NS      1e10  /* ... so much time */
#define COMMON_SD     0.3   /* of the profile that all launches have in common */
#define PRIOR_SD      0.35  /* of a regressor's bound */
#define COMMON_PART   0.5   /* of how residuals vary together: what that does to means */
#define LEVERAGE_MAX  0.75
#define SPREAD_MAX    0.25
#define SQUARE_MAX    100.0 /* of a residual in units of its variance, where changes are looked for */
#define CHANGED       3.0   /* times the usual squared residuals: kernels do something else now ... */
#define CHANGED_NS    INT64_C(400000000) /* ... for so long */
#define SCALE_DIFFERS 1.3                /* variances that differ by more need another pass */
#define PASSES        4
#define COST_MAX      0.01 /* of the time, for estimates, at ... */
#define HURRY_MAX     0.1  /* ... and while residuals are larger than usual, at ... */
#define CUBE_NS       0.3  /* ... so much for an element of the factorisation, ... */
#define SQUARE_NS     0.5  /* ... of the errors, ... */
#define ENTRY_NS      1.0  /* ... and of the equations */
#define DUE_NS_MIN    INT64_C(500000000)

struct work {
    struct occ_solution s;
    void *memory;
    bool is_main; /* rows that count warps */
    bool knows[OCC_RESPONSE_COUNT];
    int64_t from_ns, length_ns; /* of the rows */
    double squares[OCC_CLUSTERS], rows[OCC_CLUSTERS];
    double scale[OCC_LENGTHS], scale_rows[OCC_LENGTHS];
    double idle_squares, idle_rows;            /* residuals of rows without launches */
    double common, common_rows, last, last_ns; /* products of residuals that follow each other */
    double counted;                            /* sum over rows */
};

/* A row in columns of the solution. */
struct placed {
    uint32_t n, place[ROW_MAX];
    double share[ROW_MAX], variance, rest; /* rest: of what is counted, that is no unknown */
};

/* ---- columns ---- */

static bool is_used(const struct work *w, const struct occ_row *row)
{
    return occ_row_has_warps(row) == w->is_main;
}

static void find_columns(const struct occ_attribution *a, struct work *w)
{
    size_t responses[OCC_RESPONSE_COUNT] = {0}, n_columns = a->regressors.n * OCC_COLUMNS;
    struct occ_solution *s = &w->s;
    memset(s->place, 0xff, n_columns * sizeof *s->place);
    for (size_t i = 0; i < a->rows.n; i++) {
        const struct occ_row *row = &a->rows.rows[i];
        if (!is_used(w, row))
            continue;
        for (uint32_t k = 0; k < row->n; k++)
            s->place[a->rows.entries[row->first + k].column] = 0;
        for (int r = 0; r < OCC_RESPONSE_COUNT; r++)
            responses[r] += isfinite(row->response[r]) != 0;
        s->rows++;
    }
    for (int r = 0; r < OCC_RESPONSE_COUNT; r++)
        w->knows[r] = 2 * (double)responses[r] > s->rows;
    double most = fmin(COLUMNS_MAX, OCC_SPECIAL + s->rows / 2); /* more cannot be told apart */
    double profiles_most = a->is_trial ? 0 : fmin(most, PROFILES_MAX);
    s->n = OCC_SPECIAL;
    for (uint32_t function = 0; function < OCC_COLUMNS; function++)
        for (size_t c = function; c < n_columns; c += OCC_COLUMNS) {
            if (s->place[c] == OCC_NONE)
                continue;
            s->place[c] = s->n < (function == 0 ? most : profiles_most) ? s->n++ : OCC_NONE;
            if (function == 0 && s->place[c] != OCC_NONE)
                s->regressor[s->n_means++] = (uint32_t)(c / OCC_COLUMNS);
        }
}

static void place_row(const struct occ_attribution *a, const struct work *w, const struct occ_row *row,
                      struct placed *p)
{
    p->variance = occ_row_variance(a, row);
    p->n = OCC_SPECIAL;
    for (uint32_t i = 0; i < OCC_SPECIAL; i++) {
        p->place[i] = i;
        p->share[i] = (double)row->special[i];
    }
    double gradient = p->share[OCC_SPECIAL_OFFSET];
    p->share[OCC_SPECIAL_DRIFT] = gradient * (double)(row->start_ns - a->clock_ns) / DRIFT_NS;
    p->rest = gradient * (occ_clock_offset(a, row->start_ns) - (double)row->offset_ns) / 1e3;
    for (uint32_t k = 0; k < row->n; k++) {
        const struct occ_entry *e = &a->rows.entries[row->first + k];
        const struct occ_regressor *r = &a->regressors.items[e->column / OCC_COLUMNS];
        if (w->s.place[e->column] != OCC_NONE) {
            p->place[p->n] = w->s.place[e->column];
            p->share[p->n++] = (double)e->share;
            continue;
        }
        double sd = PRIOR_SD * (double)(e->share * r->bound); /* there was no column for it */
        p->variance += sd * sd;
        p->rest += e->column % OCC_COLUMNS == 0 ? (double)(e->share * r->prior[OCC_RESPONSE_WARPS]) : 0;
    }
}

/* ---- equations ---- */

static void add_row(const struct occ_attribution *a, struct work *w, const struct occ_row *row,
                    const struct placed *p)
{
    double weight = 1 / p->variance;
    for (uint32_t i = 0; i < p->n; i++) {
        double share = p->share[i] * weight;
        for (uint32_t k = 0; k <= i; k++) {
            uint32_t high = p->place[i] > p->place[k] ? p->place[i] : p->place[k];
            uint32_t low = p->place[i] + p->place[k] - high;
            occ_equations_row(w->s.inverse, high)[low] += share * p->share[k];
        }
    }
    for (int r = 0; r < OCC_RESPONSE_COUNT; r++) {
        double counted = (double)row->response[r], *rhs = w->s.rhs + (size_t)r * w->s.n;
        if (!w->knows[r])
            continue;
        if (!isfinite(counted))
            counted = occ_join_predict(a, row, a->rows.entries + row->first, (enum occ_response)r);
        counted = weight * (counted - (r == OCC_RESPONSE_WARPS ? p->rest : 0));
        for (uint32_t i = 0; i < p->n; i++)
            rhs[p->place[i]] += p->share[i] * counted;
    }
}

static void add_priors(const struct occ_attribution *a, struct work *w)
{
    struct occ_solution *s = &w->s;
    s->prior[OCC_SPECIAL_OFFSET] = s->prior[OCC_SPECIAL_DRIFT] = 1e12;
    for (uint32_t i = OCC_SPECIAL_PROFILE; i < OCC_SPECIAL; i++)
        s->prior[i] = 1 / (COMMON_SD * COMMON_SD);
    s->prior[OCC_SPECIAL_IDLE] = 1 / (IDLE_SD * IDLE_SD);
    if (a->estimated) { /* else nothing is known of what the offset does to rows */
        s->prior[OCC_SPECIAL_OFFSET] = 1 / (OFFSET_SD_US * OFFSET_SD_US);
        s->prior[OCC_SPECIAL_DRIFT] = 1 / (DRIFT_SD_US * DRIFT_SD_US);
    }
    for (size_t c = 0; c < a->regressors.n * OCC_COLUMNS; c++) {
        const struct occ_regressor *regressor = &a->regressors.items[c / OCC_COLUMNS];
        uint32_t place = s->place[c];
        double sd = PRIOR_SD * (double)regressor->bound;
        if (place == OCC_NONE)
            continue;
        s->prior[place] = 1 / (sd * sd);
        for (int r = 0; r < OCC_RESPONSE_COUNT && c % OCC_COLUMNS == 0; r++)
            s->rhs[(size_t)r * s->n + place] += s->prior[place] * (double)regressor->prior[r];
    }
    for (uint32_t i = 0; i < s->n; i++)
        s->precision[i] = occ_equations_row(s->inverse, i)[i] += s->prior[i];
}

static void build(const struct occ_attribution *a, struct work *w, struct placed *p)
{
    for (size_t i = 0; i < a->rows.n; i++) {
        const struct occ_row *row = &a->rows.rows[i];
        if (!is_used(w, row))
            continue;
        place_row(a, w, row, p);
        add_row(a, w, row, p);
    }
    add_priors(a, w);
}

/* ---- residuals ---- */

static uint32_t time_cluster(const struct work *w, const struct occ_row *row)
{
    return (uint32_t)((double)(row->start_ns - w->from_ns) * OCC_CLUSTERS / ((double)w->length_ns + 1));
}

/* What goes on for longer than launches do, in residuals of rows that have no launch in common. */
static void note_common(struct work *w, const struct occ_row *row, double residual)
{
    double start_ns = (double)(row->start_ns - w->from_ns);
    if (start_ns < w->last_ns)
        return;
    w->common += residual * w->last;
    w->common_rows++;
    w->last = residual;
    w->last_ns = start_ns + (double)row->busy_ns;
}

static void note_residual(struct work *w, const struct occ_row *row, const struct placed *p)
{
    double residual = (double)row->response[OCC_RESPONSE_WARPS] - p->rest, leverage = 0;
    uint32_t cluster = time_cluster(w, row), phase = OCC_CLUSTERS + row->phase % OCC_CLUSTERS;
    for (uint32_t k = 0; k < p->n; k++) {
        residual -= p->share[k] * w->s.x[p->place[k]];
        leverage += p->share[k] * p->share[k] * w->s.diagonal[p->place[k]];
        w->s.launch_ns[p->place[k]] += p->share[k] * (double)row->length_ns;
    }
    w->counted += (double)row->response[OCC_RESPONSE_WARPS];
    double left = 1 - fmin(leverage / p->variance, LEVERAGE_MAX);
    double square = residual * residual / left / p->variance;
    if (row->n == 0) {
        w->idle_squares += residual * residual;
        w->idle_rows++;
    } else {
        w->squares[cluster] += fmin(square, SQUARE_MAX);
        w->rows[cluster]++;
        w->scale[occ_length_class(row)] += square;
        w->scale_rows[occ_length_class(row)]++;
    }
    note_common(w, row, residual);
    for (uint32_t k = 0; k < p->n; k++) {
        double score = p->share[k] * residual / left / p->variance;
        w->s.score[(size_t)cluster * w->s.n + p->place[k]] += score;
        w->s.score[(size_t)phase * w->s.n + p->place[k]] += score;
    }
}

static void find_residuals(const struct occ_attribution *a, struct work *w, struct placed *p)
{
    for (size_t i = 0; i < a->rows.n; i++) {
        const struct occ_row *row = &a->rows.rows[i];
        if (!is_used(w, row))
            continue;
        place_row(a, w, row, p);
        note_residual(w, row, p);
    }
}

/* Adapts the variances to the residuals. False: they differ too much for the solution to stand. */
static bool update_scales(struct occ_attribution *a, const struct work *w)
{
    bool stands = true;
    for (int i = 0; i < OCC_LENGTHS; i++) {
        double factor = w->scale_rows[i] > 0 ? fmax(w->scale[i] / w->scale_rows[i], 1e-3) : 1;
        a->scale[i] *= factor;
        stands &= factor < SCALE_DIFFERS && factor > 1 / SCALE_DIFFERS;
    }
    return stands;
}

/* The first row of those in which kernels do what they do now, if residuals before and after it differ; 0:
 * they do not. */
static size_t find_change(const struct occ_attribution *a, const struct work *w)
{
    double after = 0, after_rows = 0, before = 0, before_rows = 0, most = CHANGED;
    uint32_t changed = 0;
    size_t row = 0;
    for (uint32_t c = 0; c < OCC_CLUSTERS; c++) {
        before += w->squares[c];
        before_rows += w->rows[c];
    }
    for (uint32_t c = OCC_CLUSTERS; --c > 0;) {
        after += w->squares[c];
        after_rows += w->rows[c];
        before -= w->squares[c];
        before_rows -= w->rows[c];
        double ratio = after * before_rows / (after_rows * before);
        if (after_rows > before_rows && w->from_ns - a->changed_ns < CHANGED_NS) /* what is left of it */
            ratio = fmax(ratio, 1 / ratio);
        if (ratio > most && (OCC_CLUSTERS - c) * (w->length_ns / OCC_CLUSTERS) >= CHANGED_NS) {
            most = ratio;
            changed = c;
        }
    }
    while (changed > 0 && row < a->rows.n && time_cluster(w, &a->rows.rows[row]) < changed)
        row++;
    return row;
}

/* ---- all ---- */

static bool make_work(const struct occ_attribution *a, struct work *w)
{
    struct occ_solution *s = &w->s;
    size_t columns = a->regressors.n * OCC_COLUMNS;
    s->place = malloc(columns * sizeof *s->place);
    s->regressor = malloc(a->regressors.n * sizeof *s->regressor);
    if (!s->place || !s->regressor)
        return false;
    find_columns(a, w);
    size_t n = s->n,
           sizes[] = {n * (n + 1) / 2, OCC_RESPONSE_COUNT * n, 2 * OCC_CLUSTERS * n, n, n, n, n, n, n};
    double **const arrays[] = {&s->inverse, &s->rhs,     &s->score, &s->diagonal, &s->precision,
                               &s->x,       &s->scratch, &s->prior, &s->launch_ns};
    size_t all = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        all += sizes[i];
    double *memory = w->memory = calloc(all, sizeof *memory);
    for (size_t i = 0; memory && i < sizeof sizes / sizeof *sizes; memory += sizes[i++])
        *arrays[i] = memory;
    w->from_ns = a->rows.rows[0].start_ns;
    w->length_ns = a->rows.rows[a->rows.n - 1].start_ns - w->from_ns;
    return memory;
}

static void free_work(struct work *w)
{
    free(w->s.place);
    free(w->s.regressor);
    free(w->memory);
    *w = (struct work){.is_main = w->is_main};
}

/* Solves the rows' equations for all that they count. */
static void take_values(struct occ_attribution *a, struct work *w)
{
    struct occ_solution *s = &w->s;
    for (int r = OCC_RESPONSE_COUNT; --r >= 0;) { /* warps last: their solution stays */
        if (!w->knows[r])
            continue;
        occ_equations_solve(s->inverse, s->n, s->rhs + (size_t)r * s->n, s->x, s->scratch);
        for (int i = 0; i < OCC_SPECIAL && w->is_main; i++)
            a->special[i][r] = i == OCC_SPECIAL_OFFSET || i == OCC_SPECIAL_DRIFT ? 0 : s->x[i];
        for (size_t c = 0; c < a->regressors.n * OCC_COLUMNS; c++) {
            struct occ_regressor *regressor = &a->regressors.items[c / OCC_COLUMNS];
            uint32_t function = (uint32_t)(c % OCC_COLUMNS), place = s->place[c];
            if (function == 0)
                regressor->value[r] = place != OCC_NONE ? (float)s->x[place] : regressor->prior[r];
            else if (r == OCC_RESPONSE_WARPS)
                regressor->profile[function - 1] = place != OCC_NONE ? (float)s->x[place] : 0;
        }
    }
}

static void take_clock(struct occ_attribution *a, const struct occ_solution *s)
{
    double step_us = fmin(fmax(s->x[OCC_SPECIAL_OFFSET], -OFFSET_SD_US), OFFSET_SD_US);
    double drift_us = fmin(fmax(s->x[OCC_SPECIAL_DRIFT], -DRIFT_SD_US), DRIFT_SD_US);
    a->drift += drift_us * 1e3 / DRIFT_NS;
    a->offset_ns = occ_clock_offset(a, a->joined_ns) + step_us * 1e3;
    a->clock_ns = a->joined_ns;
}

/* What goes on while nothing is known to run, and beside launches. Launches of a configuration hardly differ
 * by more than SPREAD_MAX: there is other work if they seem to. */
static void take_untraced(struct occ_attribution *a, const struct work *w)
{
    double variance = 0, rows = 1e-9;
    for (int i = 0; i < OCC_LENGTHS; i++) {
        variance += w->scale_rows[i] * a->scale[i];
        rows += w->scale_rows[i];
    }
    a->spread = variance / rows;
    double excess = fmax(sqrt(a->spread) - SPREAD_MAX, 0) * w->counted / w->s.rows;
    a->idle_square = w->idle_rows > 0 ? w->idle_squares / w->idle_rows : 0;
    a->common_sd = occ_quadrature(excess, COMMON_PART * sqrt(fmax(w->common / fmax(w->common_rows, 1), 0)));
}

/* Due when that costs no more than COST_MAX of a core, but whenever rows are twice as many. */
static void set_due(struct occ_attribution *a, const struct work *w)
{
    double n = w->s.n, entries = (double)a->rows.n_entries + OCC_SPECIAL * (double)a->rows.n;
    double cost_ns = n * n * n * CUBE_NS + 2 * n * n * OCC_CLUSTERS * SQUARE_NS +
                     entries * (entries / (double)a->rows.n + 10) * ENTRY_NS;
    double due_ns = fmin(cost_ns / COST_MAX, (double)w->length_ns);
    a->due_ns = a->joined_ns + (int64_t)fmax(due_ns, (double)DUE_NS_MIN);
    a->hurry_ns = a->joined_ns + (int64_t)fmin(cost_ns / HURRY_MAX, due_ns);
}

/* One pass over the rows that count warps. 1: rows were dropped, or variances changed: again. */
static int solve_main(struct occ_attribution *a, struct work *w, struct placed *p)
{
    struct occ_solution *s = &w->s;
    build(a, w, p);
    occ_equations_factor(s->inverse, s->n);
    occ_equations_diagonal(s->inverse, s->n, s->diagonal);
    occ_equations_solve(s->inverse, s->n, s->rhs, s->x, s->scratch);
    find_residuals(a, w, p);
    size_t changed = find_change(a, w);
    if (changed > 0) {
        occ_join_drop(&a->rows, changed);
        a->changed_ns = a->rows.rows[0].start_ns;
        return 1;
    }
    return !update_scales(a, w);
}

/* Rows of other counter sets: values only. */
static bool solve_others(struct occ_attribution *a, struct placed *p)
{
    struct work w = {.is_main = false};
    bool has_memory = make_work(a, &w);
    for (int r = 0; r < OCC_RESPONSE_COUNT; r++)
        w.knows[r] = w.knows[r] && !a->knows[r];
    if (has_memory && w.s.rows > 0) {
        build(a, &w, p);
        occ_equations_factor(w.s.inverse, w.s.n);
        take_values(a, &w);
    }
    free_work(&w);
    return has_memory;
}

int occ_solve(struct occ_attribution *a, struct occ_error *err)
{
    struct work w = {.is_main = true};
    if (a->rows.n == 0)
        return 0;
    struct placed *p = malloc(sizeof *p);
    bool has_memory = p != NULL;
    int again = 1;
    for (int pass = 0; pass < PASSES && again == 1 && has_memory; pass++) {
        free_work(&w);
        has_memory = make_work(a, &w);
        again = has_memory && solve_main(a, &w, p);
    }
    if (has_memory && w.memory) {
        take_values(a, &w);
        take_clock(a, &w.s);
        take_untraced(a, &w);
        memcpy(a->knows, w.knows, sizeof a->knows);
        occ_errors_report(a, &w.s);
        a->estimated = true;
        set_due(a, &w);
        free_work(&w);
        has_memory = solve_others(a, p);
    }
    free_work(&w);
    free(p);
    return has_memory ? 0 : occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
}
