/* See pool.h. Pure; any thread. */
#include "pool.h"

#include <math.h>
#include <stdlib.h>

#include "work.h"

/* The coarsest clock of a recording: microseconds of older Kineto files. */
#define CLOCK_UNIT_MAX_NS 1000.0

#define CONFIDENCE   0.95
#define ERROR_MIN    1e-6   /* minimum error of a mean logarithm: durations are whole nanoseconds */
#define NORMAL_MAD   0.6745 /* median absolute difference of a normal distribution / its deviation */
#define MAD_BIAS     0.8    /* correction for few values: Croux and Rousseeuw, below */
#define MEDIAN_ERROR 1.2533 /* error of the median of a normal distribution / error of its mean */

/* ---- cells ---- */

static uint32_t replicates_of(const struct diff *diff, uint32_t side)
{
    return diff->slice[side] ? DIFF_SLICES : diff->replicates[side];
}

static struct diff_slice slice_of(const struct diff *diff, uint32_t side, uint32_t pair, uint32_t i)
{
    if (diff->slice[side])
        return diff->slice[side][(size_t)pair * DIFF_SLICES + i];
    const struct diff_replicate *r = &diff->replicate[side][(size_t)pair * diff->replicates[side] + i];
    if (!(r->launches > 0 && r->ns > 0))
        return (struct diff_slice){0, 0, 0};
    return (struct diff_slice){r->launches, r->launches * log(r->ns / r->launches), r->ns};
}

/* Returns a slice of the cell. The logarithms of a cell for the same work are linear around the mean, so that
 * their sum over all slices is that of the mean. */
static struct diff_slice value_of(const struct diff *diff, const struct diff_cell *cell, uint32_t side,
                                  uint32_t i)
{
    struct diff_slice slice = slice_of(diff, side, cell->pair, i);
    double mean = cell->mean_ns[side], factor = side == DIFF_B ? cell->factor : 1;
    if (!cell->is_of_work)
        return slice;
    double beyond = slice.ns / mean - slice.launches;
    return (struct diff_slice){.launches = slice.launches / factor,
                               .log_ns = (slice.launches * log(mean * factor) + beyond) / factor,
                               .ns = slice.ns};
}

/* Sets the mean durations of a cell for the same work; NaN without launches. */
static void set_means(const struct diff *diff, struct diff_cell *cell)
{
    for (uint32_t side = 0; side < DIFF_SIDES; side++) {
        double launches = 0, ns = 0;
        for (uint32_t i = 0; i < replicates_of(diff, side); i++) {
            struct diff_slice slice = slice_of(diff, side, cell->pair, i);
            launches += slice.launches;
            ns += slice.ns;
        }
        cell->mean_ns[side] = ns / launches;
    }
}

static bool is_pooled(const struct diff *diff, const struct diff_pair *pair)
{
    return pair->level <= DIFF_WORK ||
           (pair->level != DIFF_ONE_SIDE && diff->work > 0 && pair->work_factor > 0);
}

bool diff_cell_of(const struct diff *diff, uint32_t index, struct diff_cell *ret_cell)
{
    const struct diff_pair *pair = &diff->pairs[index];
    double launches[DIFF_SIDES] = {0, 0}, mean[DIFF_SIDES];
    struct diff_cell cell = {
        .pair = index, .is_of_work = pair->level > DIFF_WORK, .factor = pair->work_factor};
    if (!is_pooled(diff, pair))
        return false;
    cell.depends_on_launches = cell.is_of_work && diff_depends_on_launches(pair);
    if (cell.is_of_work)
        set_means(diff, &cell);
    for (uint32_t side = 0; side < DIFF_SIDES; side++) {
        double log_ns = 0;
        for (uint32_t i = 0; i < replicates_of(diff, side); i++) {
            struct diff_slice value = value_of(diff, &cell, side, i);
            launches[side] += value.launches;
            log_ns += value.log_ns;
        }
        mean[side] = log_ns / launches[side];
    }
    double fewer = fmin(launches[DIFF_A], launches[DIFF_B]);
    if (!(fewer > 0))
        return false;
    cell.change = mean[DIFF_B] - mean[DIFF_A];
    cell.centre = (mean[DIFF_A] + mean[DIFF_B]) / 2;
    cell.launch_ns = exp(cell.centre);
    cell.weight = cell.launch_ns * fewer;
    cell.control_weight = fmin(fewer, DIFF_CONTROL_WEIGHT_MAX);
    *ret_cell = cell;
    return true;
}

/* ---- spreads ---- */

struct diff_spread diff_spread_of(const struct diff_weighted *values, size_t n)
{
    double sum = 0, weight = 0, weight_squares = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += values[i].weight * values[i].value;
        weight += values[i].weight;
        weight_squares += values[i].weight * values[i].weight;
    }
    if (!(weight > 0))
        return (struct diff_spread){NAN, NAN, 0};
    double mean = sum / weight, effective = weight * weight / weight_squares;
    for (size_t i = 0; i < n; i++) {
        double error = values[i].weight * (values[i].value - mean);
        squares += error * error;
    }
    return (struct diff_spread){mean, squares / (weight * weight) * effective / (effective - 1), effective};
}

/* The group's mean logarithm in a replicate, relative to the cells' centres, weighted with time. Without
 * launches the weight is 0. */
static struct diff_weighted group_value(const struct diff *diff, const struct diff_cell *const *cells,
                                        size_t n, uint32_t side, uint32_t replicate)
{
    double ns = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        struct diff_slice value = value_of(diff, cells[i], side, replicate);
        ns += cells[i]->launch_ns * value.launches;
        sum += cells[i]->launch_ns * (value.log_ns - value.launches * cells[i]->centre);
    }
    return (struct diff_weighted){ns > 0 ? sum / ns : 0, ns};
}

static struct diff_spread over_replicates(const struct diff *diff, const struct diff_cell *const *cells,
                                          size_t n, uint32_t side)
{
    struct diff_weighted values[DIFF_RUNS_MAX];
    double in_order[DIFF_RUNS_MAX];
    size_t known = 0;
    for (uint32_t i = 0; i < replicates_of(diff, side); i++) {
        values[known] = group_value(diff, cells, n, side, i);
        in_order[known] = values[known].value;
        known += values[known].weight > 0 ? 1 : 0;
    }
    struct diff_spread spread = diff_spread_of(values, known);
    if (!diff->by_runs && known > 0)
        spread.variance *= diff_widening(in_order, known, spread.mean);
    return spread;
}

void diff_set_error(struct diff_change *change, int estimate, struct diff_spread a, struct diff_spread b)
{
    double variance = a.variance + b.variance;
    change->error[estimate] = sqrt(variance);
    change->df[estimate] =
        variance > 0
            ? variance * variance /
                  (a.variance * a.variance / (a.effective - 1) + b.variance * b.variance / (b.effective - 1))
            : a.effective + b.effective - 2;
}

/* Returns the error of the change that the numbers of launches have. An end of a run cuts the launches of all
 * cells at one place. */
static double error_of_work(const struct diff *diff, const struct diff_cell *const *cells, size_t n)
{
    double weight = 0, counted = 0, launches[DIFF_SIDES] = {0, 0};
    for (size_t i = 0; i < n; i++) {
        const struct diff_pair *pair = &diff->pairs[cells[i]->pair];
        weight += cells[i]->weight;
        counted += cells[i]->depends_on_launches ? cells[i]->weight : 0;
        for (uint32_t side = 0; side < DIFF_SIDES; side++)
            launches[side] += cells[i]->depends_on_launches ? (double)pair->sums[side].launches : 0;
    }
    return counted > 0 ? counted / weight * diff_work_error(diff, launches) : 0;
}

/* Returns the variance of the mean logarithm of a duration that the recording's clock adds: both ends of a
 * launch are cut to its unit, so that a duration is a unit too long or too short by chance. Equal durations
 * of few launches are no evidence then. */
static double variance_of_clock(const struct diff *diff, const struct diff_pair *pair, uint32_t side)
{
    const struct diff_sums *sums = &pair->sums[side];
    double unit_ns = fmin((double)diff->unit_ns[side], CLOCK_UNIT_MAX_NS);
    bool has_time = sums->launches > 0 && sums->total_ns > 0;
    double relative = has_time ? unit_ns * (double)sums->launches / (double)sums->total_ns : 0;
    return has_time ? relative * relative / 4 / (double)sums->launches : 0;
}

static double error_of_clock(const struct diff *diff, const struct diff_cell *const *cells, size_t n)
{
    double weight = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        const struct diff_pair *pair = &diff->pairs[cells[i]->pair];
        double variance = variance_of_clock(diff, pair, DIFF_A) + variance_of_clock(diff, pair, DIFF_B);
        weight += cells[i]->weight;
        sum += cells[i]->weight * cells[i]->weight * variance;
    }
    return weight > 0 ? sqrt(sum) / weight : 0;
}

struct diff_change diff_pool(const struct diff *diff, const struct diff_cell *const *cells, size_t n,
                             struct diff_weighted *scratch)
{
    for (size_t i = 0; i < n; i++)
        scratch[i] = (struct diff_weighted){cells[i]->change, cells[i]->weight};
    struct diff_spread over_cells = diff_spread_of(scratch, n);
    struct diff_change change = {.change = over_cells.mean};
    struct diff_spread a = over_replicates(diff, cells, n, DIFF_A),
                       b = over_replicates(diff, cells, n, DIFF_B);
    if (fmin(a.effective, b.effective) >= (diff->by_runs ? DIFF_RUNS_EFFECTIVE_MIN : DIFF_EFFECTIVE_MIN))
        diff_set_error(&change, DIFF_OVER_REPLICATES, a, b);
    /* cells of one step vary together: the differences between cells alone give no error */
    if (!(change.df[DIFF_OVER_REPLICATES] > 0))
        return change;
    if (!diff->by_runs && over_cells.effective >= DIFF_EFFECTIVE_MIN) {
        change.error[DIFF_OVER_CELLS] = sqrt(over_cells.variance);
        change.df[DIFF_OVER_CELLS] = over_cells.effective - 1;
    }
    double of_work = error_of_work(diff, cells, n), of_clock = error_of_clock(diff, cells, n);
    for (int i = 0; i < DIFF_ESTIMATES; i++)
        change.error[i] = sqrt(change.error[i] * change.error[i] + of_work * of_work + of_clock * of_clock);
    return change;
}

/* ---- control ---- */

static int by_value(const void *left, const void *right)
{
    const struct diff_weighted *a = left, *b = right;
    return (a->value > b->value) - (a->value < b->value);
}

/* The weighted median; sorts the values. If half of the weight ends between two values, their mean. */
static double median_of(struct diff_weighted *values, size_t n, double weight)
{
    double below = 0;
    size_t i = 0;
    qsort(values, n, sizeof *values, by_value);
    while (i + 1 < n && (below += values[i].weight) < weight / 2)
        i++;
    bool is_between = i + 1 < n && !(below > weight / 2);
    return is_between ? (values[i].value + values[i + 1].value) / 2 : values[i].value;
}

bool diff_control(struct diff_weighted *changes, size_t n, struct diff_change *ret_control)
{
    double weight = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        weight += changes[i].weight;
        squares += changes[i].weight * changes[i].weight;
    }
    if (!(weight > 0 && weight * weight / squares >= DIFF_CONTROL_MIN))
        return false;
    double effective = weight * weight / squares, median = median_of(changes, n, weight);
    for (size_t i = 0; i < n; i++)
        changes[i].value = fabs(changes[i].value - median);
    /* the median absolute difference of few values is too small (Croux and Rousseeuw 1992) */
    double deviation = median_of(changes, n, weight) / NORMAL_MAD * effective / (effective - MAD_BIAS);
    *ret_control =
        (struct diff_change){.change = median,
                             .error = {[DIFF_OVER_CELLS] = MEDIAN_ERROR * deviation / sqrt(effective)},
                             .df = {[DIFF_OVER_CELLS] = effective - 1}};
    return true;
}

struct diff_change diff_less_control(const struct diff_change *change, const struct diff_change *control)
{
    struct diff_change less = *change;
    less.change -= control->change;
    for (int i = 0; i < DIFF_ESTIMATES; i++) {
        double a = change->error[i] * change->error[i], b = pow(control->error[DIFF_OVER_CELLS], 2);
        less.error[i] = sqrt(a + b);
        if (change->df[i] > 0 && b > 0) /* Satterthwaite */
            less.df[i] = (a + b) * (a + b) / (a * a / change->df[i] + b * b / control->df[DIFF_OVER_CELLS]);
    }
    return less;
}

/* ---- ratios ---- */

struct diff_ratio diff_change_ratio(const struct diff_change *change, double floor)
{
    double half = NAN, p = NAN, beyond = fabs(change->change) - log1p(floor);
    for (int i = 0; i < DIFF_ESTIMATES; i++) {
        double error = fmax(change->error[i], ERROR_MIN);
        if (!(change->df[i] > 0))
            continue;
        half = fmax(half, error * diff_student_quantile(1 - (1 - CONFIDENCE) / 2, change->df[i]));
        p = fmax(p, diff_student_cdf(-beyond / error, change->df[i]));
    }
    if (isnan(half) || isnan(change->change))
        return DIFF_RATIO_UNKNOWN;
    return (struct diff_ratio){.ratio = exp(change->change),
                               .low = exp(change->change - half),
                               .high = exp(change->change + half),
                               .p = p};
}
