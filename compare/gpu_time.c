/* See gpu_time.h. */
#include "gpu_time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "support/cleanup.h"
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

/* ---- the work of sides ---- */

static int by_config(const void *left, const void *right)
{
    const struct diff_item *a = *(const struct diff_item *const *)left,
                           *b = *(const struct diff_item *const *)right;
    int order = strcmp(a->row->mangled, b->row->mangled);
    return order ? order : memcmp(a->row->launch, b->row->launch, sizeof a->row->launch);
}

/* Returns the items sorted by configuration, which the caller frees; NULL: no memory. */
static const struct diff_item **sort_items(const struct diff *diff)
{
    const struct diff_item **items = calloc((size_t)diff->n_items + 1, sizeof *items);
    for (size_t i = 0; items && i < diff->n_items; i++)
        items[i] = &diff->items[i];
    if (items && diff->n_items > 1)
        qsort(items, diff->n_items, sizeof *items, by_config);
    return items;
}

/* Returns the end of the items with the configuration of items[first]. */
static size_t end_of_config(const struct diff *diff, const struct diff_item **items, size_t first)
{
    size_t end = first;
    while (end < diff->n_items && by_config(&items[first], &items[end]) == 0)
        end++;
    return end;
}

/* Makes a vote of each configuration on both sides. Returns their number. */
static size_t make_votes(const struct diff *diff, const struct diff_item **items, struct diff_vote *votes)
{
    size_t n = 0;
    for (size_t first = 0, end; first < diff->n_items; first = end) {
        double launches[DIFF_SIDES] = {0, 0}, ns = 0;
        end = end_of_config(diff, items, first);
        for (size_t i = first; i < end; i++) {
            launches[items[i]->side] += (double)items[i]->sums.launches;
            ns += (double)items[i]->sums.total_ns;
        }
        if (launches[DIFF_A] > 0 && launches[DIFF_B] > 0)
            votes[n++] = (struct diff_vote){launches[DIFF_B] / launches[DIFF_A], ns};
    }
    return n;
}

int diff_find_gpu_work(const struct diff *diff, double *ret_work, struct occ_error *err)
{
    _cleanup_(occ_freep) struct diff_vote *votes = calloc((size_t)diff->n_items + 1, sizeof *votes);
    _cleanup_(occ_freep) const struct diff_item **items = sort_items(diff);
    double all_ns = (double)diff->total_ns[DIFF_A] + (double)diff->total_ns[DIFF_B], error;
    if (!votes || !items)
        return occ_no_memory(err);
    *ret_work = diff_common_ratio(votes, make_votes(diff, items, votes), all_ns, &error);
    if (isnan(*ret_work))
        *ret_work = diff_work_of(diff);
    return 0;
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

/* Returns the mean GPU time of the pair's launches on both sides; 0: not known. */
static double mean_gpu_ns(const struct diff_uses *uses, uint32_t pair)
{
    struct sums all = {0, 0, 0};
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        for (uint32_t i = 0; i < DIFF_SLICES; i++)
            add(&all, slice_of(uses, side, pair, i));
    return all.launches > 0 ? all.gpu_ns / all.launches : 0;
}

/* Returns the logarithm of the ratio of the GPU times that the numbers of launches give, less that of the
 * work. Over all ranges, as the work. */
static double work_error_of(const struct diff_uses *uses, const struct diff_item **items, double work)
{
    const struct diff *diff = uses->diff;
    double sum[DIFF_SIDES] = {0, 0};
    for (size_t first = 0, end; first < diff->n_items; first = end) {
        double launches[DIFF_SIDES] = {0, 0}, ns = 0;
        end = end_of_config(diff, items, first);
        for (size_t i = first; i < end; i++) {
            launches[items[i]->side] += (double)items[i]->sums.launches;
            ns += (double)items[i]->sums.launches * mean_gpu_ns(uses, items[i]->pair);
        }
        double a = launches[DIFF_A], b = launches[DIFF_B], deviation = fabs(log(b / a / work));
        if (!(a > 0 && b > 0) || (fmin(a, b) >= MANY_LAUNCHES && deviation > DIFF_WORK_DEVIATION_MAX))
            continue;
        sum[DIFF_A] += a * ns / (a + b);
        sum[DIFF_B] += b * ns / (a + b);
    }
    return sum[DIFF_A] > 0 && sum[DIFF_B] > 0 ? log(sum[DIFF_B] / sum[DIFF_A] / work) : 0;
}

int diff_uses_portions(const struct diff_uses *uses, double work, struct diff_portions *ret_portions,
                       struct occ_error *err)
{
    const struct diff *diff = uses->diff;
    _cleanup_(occ_freep) const struct diff_item **items = sort_items(diff);
    struct sums all = {0, 0, 0};
    if (!items)
        return occ_no_memory(err);
    *ret_portions = (struct diff_portions){.n = {0}};
    if (!diff->slice[DIFF_A] || !diff->slice[DIFF_B] || diff->sliced[DIFF_A] < LAUNCHES_MIN ||
        diff->sliced[DIFF_B] < LAUNCHES_MIN)
        return 0;
    for (uint32_t side = 0; side < DIFF_SIDES; side++) {
        ret_portions->n[side] = DIFF_SLICES;
        for (size_t at = 0; at < (size_t)diff->n_pairs * DIFF_SLICES; at++) {
            all.gpu_ns += uses->ns[side][at];
            all.ns += diff->slice[side][at].ns;
        }
    }
    for (uint32_t pair = 0; pair < diff->n_pairs; pair++)
        add_pair(uses, pair, all.ns > 0 ? all.gpu_ns / all.ns : 1, ret_portions);
    ret_portions->work_error = work_error_of(uses, items, work);
    return 0;
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
