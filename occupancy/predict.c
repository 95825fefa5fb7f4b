/* See predict.h. Threads: any. */
#include "predict.h"

#include <math.h>

#include "model.h"

/* log(4): a change of the work by more than a factor of four widens the interval no further. */
#define WORK_LOG_MAX 1.4

/* ---- one side ---- */

static double lanes_of(const struct occ_device *device, uint32_t threads)
{
    return (double)threads / occ_round_up(threads, device->warp_size);
}

static bool is_free(const struct occ_result *result)
{
    return result->limiters & (1u << OCC_LIMIT_WARPS | 1u << OCC_LIMIT_BLOCKS);
}

struct occ_side occ_side_of(const struct occ_device *device, const struct occ_launch *launch,
                            const struct occ_result *result, bool has_grid)
{
    uint32_t threads = occ_model_threads(launch);
    double on_each = (double)result->grid_blocks / device->sm_count;
    double resident = has_grid ? fmin(fmax(on_each, 1), result->blocks_per_sm) : result->blocks_per_sm;
    return (struct occ_side){
        .busy_sms = has_grid ? fmin(on_each, 1) : 1,
        .warps = resident * result->warps_per_block,
        .lanes = lanes_of(device, threads),
        .waves = has_grid ? result->waves : 0,
        .blocks = has_grid ? (double)result->grid_blocks : 0,
        .threads = has_grid ? (double)result->grid_blocks * threads : 0,
        .block_threads = threads,
        .blocks_per_sm = result->blocks_per_sm,
        .smem_bytes = launch->static_smem_bytes + launch->dynamic_smem_bytes,
        .is_free = is_free(result),
        .spill_bytes = -1,
    };
}

/* ---- terms: functions of one side, whose difference counts ---- */

static double log_of(double value)
{
    return value > 0 ? log(value) : 0;
}

/* Whole waves per wave of work: a partial wave takes the time of a whole one. */
static double tail_of(const struct occ_side *side)
{
    return side->waves > 1 ? ceil(side->waves) / side->waves : 1;
}

static double crowded(const struct occ_side *side)
{
    return side->smem_bytes > 0 && side->block_threads >= OCC_CROWDED_THREADS && side->blocks_per_sm > 0 &&
           side->blocks_per_sm <= OCC_CROWDED_BLOCKS;
}

/* Halvings of the block below OCC_SMALL_BLOCK, 0 to 1. Below one wave all blocks start at once, so their size
 * does not matter. */
static double halvings(const struct occ_side *side)
{
    bool is_below_a_wave = side->waves > 0 && side->waves < 1;
    return side->is_free && side->block_threads > 0 && !is_below_a_wave
               ? fmin(fmax(log2(OCC_SMALL_BLOCK / side->block_threads), 0), 1)
               : 0;
}

static double spills(const struct occ_side *before, const struct occ_side *after)
{
    if (before->spill_bytes < 0 || after->spill_bytes < 0)
        return 0;
    return (after->spill_bytes > before->spill_bytes) - (after->spill_bytes < before->spill_bytes);
}

static void measure_terms(const struct occ_prediction_table *table, const struct occ_side *before,
                          const struct occ_side *after, double term[OCC_TERM_COUNT])
{
    term[OCC_TERM_SMS] = log_of(before->busy_sms) - log_of(after->busy_sms);
    term[OCC_TERM_WARPS] =
        log_of(fmin(before->warps, table->warps_enough)) - log_of(fmin(after->warps, table->warps_enough));
    term[OCC_TERM_LANES] = log_of(before->lanes) - log_of(after->lanes);
    term[OCC_TERM_SPILL] = spills(before, after);
    bool is_same_grid = fabs(after->blocks - before->blocks) < 0.5;
    term[OCC_TERM_TAIL] = is_same_grid ? 0 : log(tail_of(after)) - log(tail_of(before));
    term[OCC_TERM_CROWDED] = crowded(after) - crowded(before);
    term[OCC_TERM_SMALL_BLOCK] = halvings(after) - halvings(before);
    term[OCC_TERM_NONE] = 0;
}

/* ---- their sum ---- */

#define LEAST_PART       0.01 /* minimum part of the term that names a prediction */
#define SPILLS_LESS_PART 0.5  /* removed spills gain half of what added ones cost: predict_table.c */

/* Returns the term that names the prediction: the largest part with the sum's sign, since published cases of
 * a gain are no evidence for a loss. */
static enum occ_term largest(const double part[OCC_TERM_COUNT], double sum)
{
    enum occ_term best = OCC_TERM_NONE;
    double sign = sum < 0 ? -1 : 1;
    for (int i = 0; i < OCC_TERM_NONE; i++)
        if (sign * part[i] > fmax(sign * part[best], LEAST_PART))
            best = (enum occ_term)i;
    return best;
}

double occ_prediction_width(const struct occ_prediction_table *table, const struct occ_prediction *prediction,
                            const struct occ_side *before, const struct occ_side *after)
{
    double work = before->threads > 0 && after->threads > 0 ? log(after->threads / before->threads) : 0;
    double width = 1 + table->work_width * fmin(fabs(work), WORK_LOG_MAX);
    for (int i = 0; i < OCC_TERM_COUNT; i++)
        width += fabs(prediction->part[i]);
    return width;
}

/* True if users may be shown the predicted gain. Not for communication, whose time is waiting. Not with added
 * spills, slower in most published cases. A gain by whole waves came true in one of two cases, so the rest
 * must suffice without it. Not if SMs lose their work: more warps on the other SMs do not make up for it. */
static bool may_be_promised(const struct occ_prediction *p, enum occ_owner owner)
{
    double without_tail = p->ratio / exp(fmin(p->part[OCC_TERM_TAIL], 0));
    return without_tail <= OCC_PROMISED_RATIO && p->term != OCC_TERM_TAIL && p->published.cases > 0 &&
           p->part[OCC_TERM_SPILL] <= 0 && p->part[OCC_TERM_SMS] <= LEAST_PART &&
           owner != OCC_OWNER_COMMUNICATION;
}

struct occ_prediction occ_predict_sides(const struct occ_prediction_table *table,
                                        const struct occ_side *before, const struct occ_side *after,
                                        enum occ_work_bound bound, enum occ_owner owner)
{
    struct occ_prediction p = {.ratio = 1};
    double sum = 0;
    measure_terms(table, before, after, p.part);
    if (bound == OCC_WORK_COMPUTE && before->busy_sms >= 1 && !(before->waves > 0 && before->waves < 1))
        p.part[OCC_TERM_WARPS] = 0;
    if (p.part[OCC_TERM_SPILL] < 0)
        p.part[OCC_TERM_SPILL] *= SPILLS_LESS_PART;
    for (int i = 0; i < OCC_TERM_COUNT; i++) {
        p.part[i] *= table->term[i].exponent;
        sum += p.part[i];
    }
    double width = occ_prediction_width(table, &p, before, after);
    p.ratio = exp(sum);
    p.low = exp(sum + table->low * width);
    p.high = exp(sum + table->high * width);
    p.term = largest(p.part, sum);
    p.published = table->term[p.term];
    p.is_promised = may_be_promised(&p, owner);
    return p;
}

bool occ_predict(const struct occ_device *device, const struct occ_launch_change *change,
                 struct occ_prediction *ret_prediction)
{
    struct occ_result then;
    if (occ_analyse(device, change->after, &then) != OCC_OK)
        return false;
    struct occ_side before = occ_side_of(device, change->before, change->result, change->has_grid);
    struct occ_side after = occ_side_of(device, change->after, &then, change->has_grid);
    before.spill_bytes = change->spill_before;
    after.spill_bytes = change->spill_after;
    *ret_prediction = occ_predict_sides(&occ_published_cases, &before, &after, change->bound, change->owner);
    return true;
}
