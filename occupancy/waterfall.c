/* The measured waterfall; waterfall.h has the formulas and the picture. Threads: any. */
#include "waterfall.h"

#include <math.h>

/* Values outside these bounds are treated as not measured. */
#define RATIO_MAX  2.0    /* twice what is possible; noise and rounding stay far below */
#define BLOCKS_MAX 4096.0 /* per SM */

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

#define ROUNDING 1e-12 /* of the difference of equal levels */

/* The part between *level and `next`. */
static void step(struct occ_waterfall *w, unsigned part, double *level, double next)
{
    double size = *level - next;
    w->part[part] = fabs(size) < ROUNDING ? 0 : size;
    *level = next;
}

/* The expected elapsed and achieved occupancies that the measured ones decide on; waterfall.h has the rule.
 * `density`: warps of the active blocks, if none had ended, over what an active SM holds. */
static double decide(const struct occ_result *r, double elapsed, double density, double active,
                     double *ret_achieved)
{
    double low = r->expected_achieved_low, active_low = r->expected_elapsed_low / low;
    double width = r->expected_achieved_high - low;
    double active_width = r->expected_elapsed_high / r->expected_achieved_high - active_low;
    double along = ((density - low) * width + (active - active_low) * active_width) /
                   (width * width + active_width * active_width);
    along = along > 0 ? fmin(along, 1) : 0; /* NaN, not measured or a point: 0 */
    *ret_achieved = low + along * width;
    double decided = isnan(density) ? elapsed : *ret_achieved * (active_low + along * active_width);
    return fmin(fmax(decided, r->expected_elapsed_low), r->expected_elapsed_high);
}

static void measured_parts(const struct occ_result *result, const struct occ_measurement *m, double level,
                           struct occ_waterfall *w)
{
    double elapsed = m->elapsed, achieved = sane(m->achieved, RATIO_MAX);
    double active = sane(m->sm_active, RATIO_MAX), blocks = sane(m->resident_blocks, BLOCKS_MAX);
    w->source = m->source;
    w->used = elapsed;
    w->error = OCC_ERRORS_OF_95_PERCENT * sane(m->elapsed_error, RATIO_MAX);
    complete(elapsed, &achieved, &active);
    double of_blocks = blocks * result->warps_per_block / result->max_warps_per_sm;
    double expected_achieved;
    w->expected =
        decide(result, elapsed, isnan(of_blocks) ? achieved : of_blocks, active, &expected_achieved);
    double gain = w->expected - result->expected_elapsed_low;
    w->part[OCC_CAUSE_TAIL] -= gain;
    level += gain;
    w->tail_spread = 0;
    if (!isnan(active))
        step(w, OCC_PART_IDLE, &level, active * expected_achieved);
    if (!isnan(active) && !isnan(achieved)) {
        double warps = active * achieved;
        if (isnan(of_blocks)) {
            step(w, OCC_PART_NOT_SPLIT, &level, warps);
        } else {
            step(w, OCC_PART_IMBALANCE_ACROSS_BLOCKS, &level, active * of_blocks);
            step(w, OCC_PART_IMBALANCE_WITHIN_BLOCK, &level, warps);
        }
    }
    step(w, OCC_PART_UNEXPLAINED, &level, elapsed);
}

/* The waterfall over active cycles. SMs without a block do not count, so the parts of clusters and of the
 * grid are smaller than over elapsed cycles. */
static void active_parts(const struct occ_result *r, const struct occ_measurement *m, double full_wave,
                         struct occ_waterfall *w)
{
    enum occ_cause grid = r->full_waves == 0 ? OCC_CAUSE_SMALL_GRID : OCC_CAUSE_TAIL;
    double level = full_wave + r->cause[OCC_CAUSE_CLUSTER];
    w->is_of_active_cycles = true;
    w->source = m->source;
    w->used = m->achieved;
    w->error = OCC_ERRORS_OF_95_PERCENT * sane(m->achieved_error, RATIO_MAX);
    w->expected = fmin(fmax(w->used, r->expected_achieved_low), r->expected_achieved_high);
    w->tail_spread = 0;
    /* One block per SM: a wave of clusters may leave SMs without any. */
    step(w, OCC_CAUSE_CLUSTER, &level, r->blocks_per_sm == 1 ? r->theoretical : full_wave);
    step(w, grid, &level, w->expected);
    step(w, OCC_PART_NOT_SPLIT, &level, w->used);
}

void occ_explain(const struct occ_result *result, const struct occ_measurement *measurement,
                 struct occ_waterfall *ret_waterfall)
{
    struct occ_waterfall w = {.used = result->expected_elapsed_low,
                              .expected = result->expected_elapsed_low,
                              .tail_spread = result->expected_elapsed_high - result->expected_elapsed_low,
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
        [OCC_PART_IMBALANCE_ACROSS_BLOCKS] = OCC_ADVICE_GRID_STRIDE,
        [OCC_PART_IMBALANCE_WITHIN_BLOCK] = OCC_ADVICE_BLOCK_SIZE,
        [OCC_PART_NOT_SPLIT] = OCC_ADVICE_COUNT,
        [OCC_PART_UNEXPLAINED] = OCC_ADVICE_COUNT,
    };
    return part < OCC_PART_COUNT ? of_part[part] : OCC_ADVICE_COUNT;
}
