/* The measured waterfall; waterfall.h has the formulas and the picture. Threads: any. */
#include "waterfall.h"

#include <math.h>

#include "decide.h"

/* Values outside these bounds are treated as not measured. */
#define RATIO_MAX  2.0    /* twice the possible maximum; noise and rounding stay far below */
#define BLOCKS_MAX 4096.0 /* per SM */
#define NOISE      0.02   /* relative difference between counters of different passes */

static double sane(double value, double max)
{
    return value >= 0 && value <= max ? value : (double)NAN;
}

/* Two of elapsed = achieved * active give the third. */
static void complete(double elapsed, double *achieved, double *active)
{
    if (isnan(*active) && *achieved > 0)
        *active = sane(elapsed / *achieved, RATIO_MAX);
    else if (isnan(*achieved) && *active > 0)
        *achieved = sane(elapsed / *active, RATIO_MAX);
}

#define ROUNDING 1e-12 /* rounding error of the difference of equal levels */

/* Sets a part of the waterfall: the difference between *level and `next`. */
static void step(struct occ_waterfall *w, unsigned part, double *level, double next)
{
    double size = *level - next;
    w->part[part] = fabs(size) < ROUNDING ? 0 : size;
    *level = next;
}

/* The model's cause for the loss by the grid. */
static enum occ_cause grid_cause(const struct occ_result *r)
{
    return r->full_waves == 0 ? OCC_CAUSE_SMALL_GRID : OCC_CAUSE_TAIL;
}

/* Values as defined in waterfall.h; NaN: not measured. */
struct counted {
    double elapsed, achieved, active;
    double resident;     /* active * R * w / W: warps of the resident blocks over the elapsed time */
    double least_active; /* least active SM / most active one */
};

/* Impossible values are treated as not measured: no active SM but some occupancy, or resident blocks with
 * fewer warps than the active warps. More active than elapsed cycles, counted in different passes, are
 * limited to all cycles. */
static struct counted count(const struct occ_result *r, const struct occ_measurement *m)
{
    struct counted c = {.elapsed = m->elapsed,
                        .achieved = sane(m->achieved, RATIO_MAX),
                        .active = sane(m->sm_active, RATIO_MAX),
                        .least_active = 1 - sane(m->imbalance, 1)};
    if (c.active <= 0 && c.elapsed > 0)
        c.active = (double)NAN;
    complete(c.elapsed, &c.achieved, &c.active);
    c.active = isnan(c.active) ? c.active : fmin(c.active, 1);
    double of_blocks = sane(m->resident_blocks, BLOCKS_MAX) * r->warps_per_block / r->max_warps_per_sm;
    bool is_possible = isnan(c.achieved) || of_blocks >= c.achieved - NOISE;
    c.resident = is_possible ? c.active * of_blocks : (double)NAN;
    return c;
}

/* The cause by even or uneven activity of the SMs; OCC_PART_COUNT: unknown. Equal blocks of a packed last
 * wave make SMs uneven, too. */
static unsigned cause_by_sms(const struct occ_result *r, const struct counted *c, double expected)
{
    double spread = occ_decide_least_active(r, expected, false);
    double packed = occ_decide_least_active(r, expected, true);
    return !(spread > 0) ? OCC_PART_COUNT /* no balance expected: the model leaves SMs without a block */
           : c->least_active >= OCC_SMS_EVEN_MIN * spread   ? OCC_PART_BLOCK_START
           : c->least_active <= OCC_SMS_UNEVEN_MAX * packed ? OCC_PART_UNEQUAL_BLOCKS
                                                            : OCC_PART_COUNT;
}

/* Names the cause of idle time. Evenly active SMs without blocks wait for blocks to start; then fewer blocks
 * on active SMs can have any cause. Uneven SMs mean blocks of unequal duration, which explain both parts. */
static void name_cause(unsigned cause, struct occ_waterfall *w)
{
    double *idle = &w->part[OCC_PART_IDLE], *across = &w->part[OCC_PART_IMBALANCE_ACROSS_BLOCKS];
    bool takes_both = cause == OCC_PART_UNEQUAL_BLOCKS && !isnan(*across);
    double lost = *idle + (takes_both ? *across : 0);
    if (cause == OCC_PART_COUNT || !(lost > 0))
        return;
    w->part[cause] = lost;
    *idle = (double)NAN;
    *across = takes_both ? (double)NAN : *across;
}

/* Sets the parts from the expected elapsed occupancy `level` down to the measured elapsed occupancy. */
static void lost_parts(const struct occ_result *r, const struct counted *c, double level,
                       struct occ_waterfall *w)
{
    bool has_blocks = !isnan(c->resident);
    double warps = c->active * c->achieved, next = has_blocks ? c->resident : warps;
    if (!isnan(next)) {
        double idle = level * (1 - c->active / occ_decide_active(r, level, c->active)), all = level - next;
        idle = fmin(fmax(idle, fmin(all, 0)), fmax(all, 0));
        step(w, OCC_PART_IDLE, &level, level - idle);
        step(w, has_blocks ? OCC_PART_IMBALANCE_ACROSS_BLOCKS : OCC_PART_NOT_SPLIT, &level, next);
        if (has_blocks && !isnan(warps))
            step(w, OCC_PART_IMBALANCE_WITHIN_BLOCK, &level, warps);
        name_cause(cause_by_sms(r, c, w->expected), w);
    }
    step(w, OCC_PART_UNEXPLAINED, &level, c->elapsed);
}

static void measured_parts(const struct occ_result *r, const struct occ_measurement *m, double level,
                           struct occ_waterfall *w)
{
    const struct counted c = count(r, m);
    w->source = m->source;
    w->used = c.elapsed;
    w->error = OCC_ERRORS_OF_95_PERCENT * sane(m->elapsed_error, RATIO_MAX);
    w->expected = occ_decide_elapsed(r, isnan(c.resident) ? c.elapsed : c.resident, c.least_active);
    double gain = w->expected - r->expected_elapsed_low;
    w->part[grid_cause(r)] -= gain;
    w->uneven_grid = occ_uneven_grid(r) - (r->full_waves == 0 ? gain : 0);
    w->tail_spread = w->small_grid_spread = 0;
    lost_parts(r, &c, level + gain, w);
}

/* The waterfall over active cycles. SMs without a block do not count, so the parts of clusters and of the
 * grid are smaller than over elapsed cycles. */
static void active_parts(const struct occ_result *r, const struct occ_measurement *m, double full_wave,
                         struct occ_waterfall *w)
{
    double level = full_wave + r->cause[OCC_CAUSE_CLUSTER];
    w->is_of_active_cycles = true;
    w->source = m->source;
    w->used = m->achieved;
    w->error = OCC_ERRORS_OF_95_PERCENT * sane(m->achieved_error, RATIO_MAX);
    w->expected = fmin(fmax(w->used, r->expected_achieved_low), r->expected_achieved_high);
    w->uneven_grid = 0; /* defined over elapsed cycles only */
    w->tail_spread = w->small_grid_spread = 0;
    /* A wave of clusters may leave SMs without a block (then the other SMs have one block), or with one block
     * less. */
    double full_sms = r->blocks_per_sm == 1 ? r->theoretical : full_wave;
    step(w, OCC_CAUSE_CLUSTER, &level, fmax(full_sms, w->expected));
    step(w, grid_cause(r), &level, w->expected);
    step(w, OCC_PART_NOT_SPLIT, &level, w->used);
}

void occ_explain(const struct occ_result *result, const struct occ_measurement *measurement,
                 struct occ_waterfall *ret_waterfall)
{
    double spread = result->expected_elapsed_high - result->expected_elapsed_low;
    struct occ_waterfall w = {.used = result->expected_elapsed_low,
                              .expected = result->expected_elapsed_low,
                              .tail_spread = result->full_waves ? spread : 0,
                              .small_grid_spread = result->full_waves ? 0 : spread,
                              .uneven_grid = occ_uneven_grid(result),
                              .error = (double)NAN,
                              .source = OCC_FROM_MODEL};
    double level = 1;
    bool is_measured = measurement && measurement->source != OCC_FROM_MODEL;
    for (int i = 0; i < OCC_PART_COUNT; i++)
        w.part[i] = (double)NAN;
    for (int i = 0; i < OCC_CAUSE_COUNT; i++) {
        if (i == OCC_CAUSE_PARTIAL_WARP)
            continue;
        w.part[i] = result->cause[i];
        level -= result->cause[i];
    }
    if (is_measured && !isnan(sane(measurement->elapsed, RATIO_MAX)))
        measured_parts(result, measurement, level, &w);
    else if (is_measured && !isnan(sane(measurement->achieved, RATIO_MAX)))
        active_parts(result, measurement,
                     level + result->cause[OCC_CAUSE_SMALL_GRID] + result->cause[OCC_CAUSE_TAIL], &w);
    *ret_waterfall = w;
}

void occ_explain_partly(const struct occ_result *result, const struct occ_measurement *measurement,
                        double share, struct occ_waterfall *ret_waterfall)
{
    struct occ_waterfall *w = ret_waterfall, others;
    bool is_measured = share > 0 && !isnan(sane(measurement->elapsed, RATIO_MAX));
    occ_explain(result, is_measured ? measurement : NULL, w);
    if (w->source == OCC_FROM_MODEL || share >= 1)
        return;
    occ_explain(result, NULL, &others);
    w->used = share * w->used + (1 - share) * others.used;
    w->expected = share * w->expected + (1 - share) * others.expected;
    w->tail_spread = (1 - share) * others.tail_spread;
    w->small_grid_spread = (1 - share) * others.small_grid_spread;
    w->uneven_grid = share * w->uneven_grid + (1 - share) * others.uneven_grid;
    w->error *= share;
    for (int i = 0; i < OCC_PART_COUNT; i++)
        w->part[i] = share * w->part[i] + (isnan(others.part[i]) ? 0 : (1 - share) * others.part[i]);
}

unsigned occ_largest_part(const double part[], unsigned n)
{
    unsigned found = n;
    double largest = 1e-9; /* the model's accuracy */
    for (unsigned i = 0; i < n; i++)
        if (i != OCC_CAUSE_PARTIAL_WARP && part[i] > largest) {
            largest = part[i];
            found = i;
        }
    return found;
}

enum occ_limit occ_most_stalled(const struct occ_measurement *measurement)
{
    double max = OCC_STALL_MIN;
    enum occ_limit found = OCC_LIMIT_COUNT;
    for (unsigned i = 0; i < OCC_LIMIT_COUNT; i++)
        if (measurement->stall[i] > max) {
            max = measurement->stall[i];
            found = (enum occ_limit)i;
        }
    return found;
}

enum occ_advice_kind occ_part_advice(unsigned part)
{
    static const enum occ_advice_kind of_part[OCC_PART_COUNT] = {
        [OCC_CAUSE_REGISTERS] = OCC_ADVICE_REGISTERS,
        [OCC_CAUSE_SMEM] = OCC_ADVICE_SMEM,
        [OCC_CAUSE_CARVEOUT] = OCC_ADVICE_CARVEOUT,
        [OCC_CAUSE_BARRIERS] = OCC_ADVICE_BARRIERS,
        [OCC_CAUSE_CLUSTER] = OCC_ADVICE_CLUSTER,
        [OCC_CAUSE_BLOCKS] = OCC_ADVICE_BLOCK_SIZE,
        [OCC_CAUSE_BLOCK_SIZE] = OCC_ADVICE_BLOCK_SIZE,
        [OCC_CAUSE_PARTIAL_WARP] = OCC_ADVICE_BLOCK_SIZE,
        [OCC_CAUSE_SMALL_GRID] = OCC_ADVICE_FILL_WAVE,
        [OCC_CAUSE_TAIL] = OCC_ADVICE_GRID_UP,
        [OCC_PART_IDLE] = OCC_ADVICE_COUNT,
        [OCC_PART_BLOCK_START] = OCC_ADVICE_GRID_STRIDE,
        [OCC_PART_UNEQUAL_BLOCKS] = OCC_ADVICE_GRID_STRIDE,
        [OCC_PART_IMBALANCE_ACROSS_BLOCKS] = OCC_ADVICE_GRID_STRIDE,
        [OCC_PART_IMBALANCE_WITHIN_BLOCK] = OCC_ADVICE_BLOCK_SIZE,
        [OCC_PART_NOT_SPLIT] = OCC_ADVICE_COUNT,
        [OCC_PART_UNEXPLAINED] = OCC_ADVICE_COUNT,
    };
    return part < OCC_PART_COUNT ? of_part[part] : OCC_ADVICE_COUNT;
}
