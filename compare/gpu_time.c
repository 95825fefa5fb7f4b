/* See gpu_time.h. */
#include "gpu_time.h"

#include <math.h>
#include <stdlib.h>

#include "pool.h"
#include "work.h"

#define MAX_Q 0.01 /* chance of a false verdict */
/* Fewer launches of a side are no evidence. */
enum { LAUNCHES_MIN = DIFF_SLICES * DIFF_BLOCK_LAUNCHES };

int diff_uses_init(struct diff_uses *uses, const struct diff *diff, struct occ_error *err)
{
    *uses = (struct diff_uses){.diff = diff};
    for (uint32_t side = 0; side < DIFF_SIDES; side++) {
        uses->ns[side] = calloc((size_t)diff->n_pairs * DIFF_SLICES + 1, sizeof *uses->ns[side]);
        if (!uses->ns[side])
            return occ_no_memory(err);
    }
    return 0;
}

void diff_uses_free(const struct diff_uses *uses)
{
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        free(uses->ns[side]);
}

uint32_t diff_uses_next(struct diff_uses *uses, uint32_t side)
{
    uint64_t launches = uses->diff->launches[side], at = uses->seen[side]++;
    return (uint32_t)(at < launches ? at * DIFF_SLICES / launches : DIFF_SLICES - 1);
}

void diff_uses_add(struct diff_uses *uses, uint32_t side, uint32_t slice, uint32_t pair, double ns)
{
    uses->ns[side][(size_t)pair * DIFF_SLICES + slice] += ns;
}

/* ---- the work of slices ---- */

struct sums {
    double launches, gpu_ns, ns; /* ns: sum of durations */
};

static void add(struct sums *to, struct sums more)
{
    to->launches += more.launches;
    to->gpu_ns += more.gpu_ns;
    to->ns += more.ns;
}

static struct sums slice_of(const struct diff_uses *uses, uint32_t side, uint32_t pair, uint32_t slice)
{
    size_t at = (size_t)pair * DIFF_SLICES + slice;
    const struct diff_slice *s = &uses->diff->slice[side][at];
    return (struct sums){s->launches, uses->ns[side][at], s->ns};
}

/* Adds a pair's time and work to the portions. `busy`: GPU time / sum of durations of all launches, for
 * launches like no other. */
static void add_pair(const struct diff_uses *uses, uint32_t pair, double busy, struct diff_portions *portions)
{
    struct sums all = {0, 0, 0};
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        for (uint32_t i = 0; i < DIFF_SLICES; i++)
            add(&all, slice_of(uses, side, pair, i));
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        for (uint32_t i = 0; i < DIFF_SLICES; i++) {
            struct sums own = slice_of(uses, side, pair, i);
            double others = all.launches - own.launches;
            struct diff_portion *portion = &portions->list[side][i];
            portion->time += own.gpu_ns;
            portion->work += others > 0 ? own.launches * (all.gpu_ns - own.gpu_ns) / others : own.ns * busy;
        }
}

/* A kernel with this many launches of a side, in a number that differs by more than DIFF_WORK_DEVIATION_MAX,
 * is called more often or less often: that is no end of a run. */
#define MANY_LAUNCHES 20.0

/* Returns the logarithm of the ratio of the GPU times that the numbers of launches give, less that of the
 * work. */
static double work_error_of(const struct diff_uses *uses)
{
    double work = diff_work_of(uses->diff), sum[DIFF_SIDES] = {0, 0};
    for (uint32_t pair = 0; pair < uses->diff->n_pairs; pair++) {
        struct sums all = {0, 0, 0}, of[DIFF_SIDES] = {{0, 0, 0}, {0, 0, 0}};
        for (uint32_t side = 0; side < DIFF_SIDES; side++) {
            for (uint32_t i = 0; i < DIFF_SLICES; i++)
                add(&of[side], slice_of(uses, side, pair, i));
            add(&all, of[side]);
        }
        double a = of[DIFF_A].launches, b = of[DIFF_B].launches, deviation = fabs(log(b / a / work));
        if (uses->diff->pairs[pair].level > DIFF_CONFIG || !(a > 0 && b > 0) ||
            (fmin(a, b) >= MANY_LAUNCHES && deviation > DIFF_WORK_DEVIATION_MAX))
            continue;
        sum[DIFF_A] += a * all.gpu_ns / all.launches;
        sum[DIFF_B] += b * all.gpu_ns / all.launches;
    }
    return sum[DIFF_A] > 0 && sum[DIFF_B] > 0 ? log(sum[DIFF_B] / sum[DIFF_A] / work) : 0;
}

void diff_uses_portions(const struct diff_uses *uses, struct diff_portions *ret_portions)
{
    const struct diff *diff = uses->diff;
    struct sums all = {0, 0, 0};
    *ret_portions = (struct diff_portions){.n = {0}};
    if (!diff->slice[DIFF_A] || !diff->slice[DIFF_B] || diff->sliced[DIFF_A] < LAUNCHES_MIN ||
        diff->sliced[DIFF_B] < LAUNCHES_MIN)
        return;
    for (uint32_t side = 0; side < DIFF_SIDES; side++) {
        ret_portions->n[side] = DIFF_SLICES;
        for (size_t at = 0; at < (size_t)diff->n_pairs * DIFF_SLICES; at++) {
            all.gpu_ns += uses->ns[side][at];
            all.ns += diff->slice[side][at].ns;
        }
    }
    for (uint32_t pair = 0; pair < diff->n_pairs; pair++)
        add_pair(uses, pair, all.ns > 0 ? all.gpu_ns / all.ns : 1, ret_portions);
    ret_portions->work_error = work_error_of(uses);
}

/* ---- the change ---- */

/* Returns the largest change of the logarithm of time / work if one portion is left out. */
static double largest_influence(const struct diff_portion *list, uint32_t count, double time, double work)
{
    double largest = 0;
    for (uint32_t i = 0; i < count; i++)
        if (list[i].work > 0 && list[i].work < work)
            largest = fmax(largest, fabs(log((time - list[i].time) / (work - list[i].work) * (work / time))));
    return largest;
}

/* The spread of time / work over the portions, relative to its mean. A portion with most of the time makes a
 * small spread for its change: the standard error of a mean is below the mean. So the error is at least the
 * change that one portion makes. */
static struct diff_spread spread_of(const struct diff *diff, const struct diff_portion *list, uint32_t count)
{
    struct diff_weighted values[DIFF_RUNS_MAX];
    double in_order[DIFF_RUNS_MAX], time = 0, work = 0;
    size_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        time += list[i].time;
        work += list[i].work;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct diff_portion *portion = &list[i];
        if (!(portion->work > 0))
            continue;
        in_order[n] = portion->time / portion->work * (work / time);
        values[n] = (struct diff_weighted){in_order[n], portion->work};
        n++;
    }
    if (n == 0)
        return (struct diff_spread){NAN, NAN, 0};
    struct diff_spread spread = diff_spread_of(values, n);
    if (!diff->by_runs)
        spread.variance *= diff_widening(in_order, n, spread.mean);
    spread.variance = fmax(spread.variance, pow(largest_influence(list, count, time, work), 2));
    return spread;
}

struct diff_gpu_change diff_gpu_time_change(const struct diff *diff, double ratio,
                                            const struct diff_portions *portions)
{
    struct diff_change change = {.change = 0};
    struct diff_spread a = spread_of(diff, portions->list[DIFF_A], portions->n[DIFF_A]);
    struct diff_spread b = spread_of(diff, portions->list[DIFF_B], portions->n[DIFF_B]);
    double launches[] = {(double)diff->launches[DIFF_A], (double)diff->launches[DIFF_B]};
    double least = diff->by_runs ? DIFF_RUNS_EFFECTIVE_MIN : DIFF_EFFECTIVE_MIN;
    if (!(fmin(a.effective, b.effective) >= least))
        return (struct diff_gpu_change){.change = log(ratio)};
    diff_set_error(&change, DIFF_OVER_REPLICATES, a, b);
    double of_spread = change.error[DIFF_OVER_REPLICATES], of_work = diff_work_error(diff, launches);
    double error = sqrt(of_spread * of_spread + of_work * of_work + pow(portions->work_error, 2));
    return (struct diff_gpu_change){log(ratio), error, change.df[DIFF_OVER_REPLICATES]};
}

struct diff_gpu_time_verdict diff_judge_gpu_time(const struct diff_gpu_change *change, double floor)
{
    const struct diff_change judged = {.change = change->change,
                                       .error = {[DIFF_OVER_REPLICATES] = change->error},
                                       .df = {[DIFF_OVER_REPLICATES] = change->df}};
    struct diff_gpu_time_verdict v = {DIFF_UNDECIDED, diff_change_ratio(&judged, floor)};
    if (isnan(v.ratio.ratio))
        v.ratio.ratio = exp(change->change);
    if (v.ratio.low >= 1 / (1 + floor) && v.ratio.high <= 1 + floor)
        v.verdict = DIFF_SAME;
    else if (v.ratio.p <= MAX_Q)
        v.verdict = change->change > 0 ? DIFF_WORSE : DIFF_BETTER;
    return v;
}
