/* Ratios, verdicts and sums; see compare.h. One thread. */
#include "compare.h"

#include <math.h>
#include <stdlib.h>

#include "support/cleanup.h"
#include "work.h"

enum { SPREAD_RUNS_MIN = 5 };
#define SPREADS_OF_FLOOR     3.0
#define ERRORS_OF_95_PERCENT 1.96 /* half-width of a 95 % interval, in standard errors */

double diff_mean(const struct diff_sums *sums, enum diff_value value)
{
    return sums->ns[value] > 0 ? sums->sum[value] / sums->ns[value] : NAN;
}

double diff_share(const struct diff *diff, const struct diff_pair *pair)
{
    double share = 0;
    for (int side = 0; side < DIFF_SIDES; side++)
        if (diff->total_ns[side])
            share = fmax(share, (double)pair->sums[side].total_ns / (double)diff->total_ns[side]);
    return share;
}

static bool is_of_both(const struct diff_pair *pair)
{
    return pair->level != DIFF_ONE_SIDE;
}

static bool is_side_measured(const struct diff_pair *pair, uint32_t side)
{
    return pair->sums[side].ns[DIFF_VALUE_elapsed] > 0;
}

static bool is_measured(const struct diff_pair *pair)
{
    bool measured = true;
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        measured &= pair->n[side] == 0 || is_side_measured(pair, side);
    return measured;
}

static double elapsed_of(const struct diff_pair *pair, uint32_t side)
{
    return diff_mean(&pair->sums[side],
                     is_measured(pair) ? DIFF_VALUE_elapsed : DIFF_VALUE_expected_elapsed_low);
}

double diff_waste(const struct diff_pair *pair, uint32_t side)
{
    return pair->sums[side].warp_ns * 1e-9 * fmax(1 - elapsed_of(pair, side), 0);
}

double diff_part(const struct diff_pair *pair, uint32_t side, unsigned part)
{
    const struct diff_sums *sums = &pair->sums[side];
    return is_measured(pair) ? sums->part_ns[part] / sums->ns[DIFF_VALUE_elapsed]
                             : sums->expected_part_ns[part] / sums->ns[DIFF_VALUE_expected_elapsed_low];
}

/* ---- ratios ---- */

/* Logarithms of the mean duration of a launch in each replicate. */
static void logs_of(const struct diff *diff, uint32_t side, size_t pair, struct diff_logs *ret_logs)
{
    const struct diff_replicate *first = &diff->replicate[side][pair * diff->replicates[side]];
    double values[DIFF_RUNS_MAX];
    double least = diff->by_minutes ? DIFF_BLOCK_LAUNCHES : 1;
    size_t n = 0, enough = diff->by_runs ? DIFF_RUNS_MIN : DIFF_BLOCKS_MIN;
    for (uint32_t i = 0; i < diff->replicates[side]; i++)
        if (first[i].launches >= least)
            values[n++] = first[i].ns / first[i].launches;
    diff_logs_of(values, n < enough ? 0 : n, !diff->by_runs, ret_logs);
}

/* Variance of the logarithm of 1 - elapsed; 0 if counters did not measure the occupancy. */
static double idle_variance(const struct diff_pair *pair, uint32_t side)
{
    const struct diff_sums *sums = &pair->sums[side];
    double error = diff_mean(sums, DIFF_VALUE_elapsed_error) / (1 - elapsed_of(pair, side));
    return is_measured(pair) ? error * error : 0;
}

/* Waste per launch is duration x SMs x warps x (1 - elapsed). */
static struct diff_ratio waste_ratio(const struct diff_pair *pair, const struct diff_logs logs[DIFF_SIDES],
                                     double more_variance)
{
    double idle_a = 1 - elapsed_of(pair, DIFF_A), idle_b = 1 - elapsed_of(pair, DIFF_B);
    struct diff_logs b = logs[DIFF_B];
    b.mean += idle_a > 0 && idle_b > 0 ? log(idle_b / idle_a) : (double)NAN;
    return diff_welch(&logs[DIFF_A], &b,
                      more_variance + idle_variance(pair, DIFF_A) + idle_variance(pair, DIFF_B));
}

/* The ratio with an interval from the standard errors of the measurement: it covers these runs, not the
 * variation from run to run. */
static struct diff_ratio achieved_ratio(const struct diff_pair *pair)
{
    const struct diff_sums *a = &pair->sums[DIFF_A], *b = &pair->sums[DIFF_B];
    double mean_a = diff_mean(a, DIFF_VALUE_achieved), mean_b = diff_mean(b, DIFF_VALUE_achieved);
    double error_a = diff_mean(a, DIFF_VALUE_achieved_error) / mean_a;
    double error_b = diff_mean(b, DIFF_VALUE_achieved_error) / mean_b;
    double error = sqrt(error_a * error_a + error_b * error_b);
    double d = mean_a > 0 && mean_b > 0 ? log(mean_b / mean_a) : (double)NAN;
    double half = ERRORS_OF_95_PERCENT * error;
    if (isnan(d + error) || !(error > 0))
        return DIFF_RATIO_UNKNOWN;
    return (struct diff_ratio){exp(d), exp(d - half), exp(d + half), erfc(fabs(d) / error / sqrt(2))};
}

/* The relative standard deviation of A's runs. */
static double spread_of(const struct diff *diff, const struct diff_logs *logs)
{
    return diff->by_runs && logs->n >= SPREAD_RUNS_MIN ? sqrt(logs->variance * (double)logs->n) : (double)NAN;
}

static void fill_ratios(const struct diff *diff, uint32_t index)
{
    struct diff_pair *pair = &diff->pairs[index];
    struct diff_logs logs[DIFF_SIDES];
    for (int i = 0; i < DIFF_METRIC_COUNT; i++)
        pair->ratio[i] = DIFF_RATIO_UNKNOWN;
    pair->run_spread = NAN;
    pair->work_factor = diff_work_factor(diff, pair);
    if (!is_of_both(pair) || pair->kernels[DIFF_A] != pair->kernels[DIFF_B])
        return;
    logs_of(diff, DIFF_A, index, &logs[DIFF_A]);
    logs_of(diff, DIFF_B, index, &logs[DIFF_B]);
    logs[DIFF_B].mean += log(pair->work_factor);
    double launches[] = {(double)pair->sums[DIFF_A].launches, (double)pair->sums[DIFF_B].launches};
    double variance = diff_depends_on_launches(pair) ? pow(diff_work_error(diff, launches), 2) : 0;
    pair->ratio[DIFF_METRIC_TIME] = diff_welch(&logs[DIFF_A], &logs[DIFF_B], variance);
    pair->ratio[DIFF_METRIC_WASTE] = waste_ratio(pair, logs, variance);
    pair->ratio[DIFF_METRIC_ACHIEVED] = achieved_ratio(pair);
    pair->run_spread = spread_of(diff, &logs[DIFF_A]);
}

int diff_conclude(struct diff *diff, struct occ_error *err)
{
    _cleanup_(occ_freep) double *p = calloc(diff->n_pairs + 1, sizeof *p);
    bool done = p != NULL && diff_find_work(diff, err) == 0;
    for (uint32_t i = 0; i < diff->n_pairs && done; i++)
        fill_ratios(diff, i);
    for (int metric = 0; metric < DIFF_METRIC_COUNT && done; metric++) {
        for (uint32_t i = 0; i < diff->n_pairs; i++)
            p[i] = diff->pairs[i].ratio[metric].p;
        done = diff_adjust(p, diff->n_pairs);
        for (uint32_t i = 0; i < diff->n_pairs; i++)
            diff->pairs[i].q[metric] = p[i];
    }
    return done ? 0 : occ_no_memory(err);
}

enum diff_verdict diff_verdict_of(const struct diff *diff, const struct diff_pair *pair,
                                  enum diff_metric metric, double floor, double min_share)
{
    struct diff_ratio ratio = pair->ratio[metric];
    if (!is_of_both(pair))
        return pair->n[DIFF_A] ? DIFF_GONE : DIFF_NEW;
    if (metric == DIFF_METRIC_ACHIEVED) /* less is worse */
        ratio = (struct diff_ratio){1 / ratio.ratio, 1 / ratio.high, 1 / ratio.low, ratio.p};
    floor = fmax(floor, SPREADS_OF_FLOOR * pair->run_spread); /* fmax() ignores NaN: fewer than 5 runs */
    enum diff_verdict verdict = diff_judge(&ratio, pair->q[metric], floor);
    return verdict != DIFF_SAME && diff_share(diff, pair) < min_share ? DIFF_UNDECIDED : verdict;
}

/* ---- sums ---- */

static void add_time(const struct diff_pair *pair, struct diff_summary *s)
{
    const struct diff_sums *a = &pair->sums[DIFF_A], *b = &pair->sums[DIFF_B];
    double n_a = (double)a->launches / s->per_runs[DIFF_A], n_b = (double)b->launches / s->per_runs[DIFF_B];
    double ns_a = (double)a->total_ns / s->per_runs[DIFF_A], ns_b = (double)b->total_ns / s->per_runs[DIFF_B];
    s->time_ns[DIFF_A] += ns_a;
    s->time_ns[DIFF_B] += ns_b;
    if (!is_of_both(pair)) {
        s->time_new += ns_b;
        s->time_gone -= ns_a;
    } else if (n_a > 0 && n_b > 0) {
        s->time_launches += (n_b - n_a) * (ns_a / n_a + ns_b / n_b) / 2;
        s->time_duration += (n_a + n_b) / 2 * (ns_b / n_b - ns_a / n_a);
    }
}

/* Shares are of the time of pairs whose occupancy is known. */
static void add_occupancy(const struct diff_pair *pair, const double known_ns[DIFF_SIDES],
                          struct diff_summary *s)
{
    double w[DIFF_SIDES], o[DIFF_SIDES];
    for (uint32_t side = 0; side < DIFF_SIDES; side++) {
        o[side] = elapsed_of(pair, side);
        w[side] = isnan(o[side]) ? 0 : (double)pair->sums[side].total_ns / known_ns[side];
        s->elapsed[side] += isnan(o[side]) ? 0 : w[side] * o[side];
        s->waste[side] += isnan(o[side]) ? 0 : diff_waste(pair, side) / s->per_runs[side];
    }
    double o_a = isnan(o[DIFF_A]) ? o[DIFF_B] : o[DIFF_A], o_b = isnan(o[DIFF_B]) ? o_a : o[DIFF_B];
    if (isnan(o_a))
        return;
    s->elapsed_mix += (w[DIFF_B] - w[DIFF_A]) * (o_a + o_b) / 2;
    s->elapsed_kernels += (w[DIFF_A] + w[DIFF_B]) / 2 * (o_b - o_a);
}

uint32_t diff_per_runs(const struct diff *diff, uint32_t side)
{
    bool compares = diff->by_minutes || diff->runs[DIFF_A] == diff->runs[DIFF_B] || diff->runs[side] == 0;
    return compares ? 1 : diff->runs[side];
}

static void sum_up(const struct diff *diff, double floor, double min_share, struct diff_summary *ret_summary)
{
    double known_ns[DIFF_SIDES] = {0, 0};
    for (uint32_t i = 0; i < diff->n_pairs; i++)
        for (uint32_t side = 0; side < DIFF_SIDES; side++)
            if (!isnan(elapsed_of(&diff->pairs[i], side)))
                known_ns[side] += (double)diff->pairs[i].sums[side].total_ns;
    for (uint32_t i = 0; i < diff->n_pairs; i++) {
        add_time(&diff->pairs[i], ret_summary);
        add_occupancy(&diff->pairs[i], known_ns, ret_summary);
        for (uint32_t side = 0; side < DIFF_SIDES; side++)
            ret_summary->only_measured[side] +=
                !is_measured(&diff->pairs[i]) && is_side_measured(&diff->pairs[i], side);
        ret_summary->verdicts[diff_verdict_of(diff, &diff->pairs[i], DIFF_METRIC_TIME, floor, min_share)]++;
    }
    double runs = (double)ret_summary->per_runs[DIFF_B] / ret_summary->per_runs[DIFF_A];
    ret_summary->work = diff->work / runs;
    ret_summary->per_work =
        ret_summary->time_ns[DIFF_B] / ret_summary->time_ns[DIFF_A] / ret_summary->work - 1;
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        if (!(known_ns[side] > 0))
            ret_summary->elapsed[side] = ret_summary->elapsed_mix = ret_summary->elapsed_kernels = NAN;
}

void diff_sum_up(const struct diff *diff, double floor, double min_share, struct diff_summary *ret_summary)
{
    *ret_summary = (struct diff_summary){.per_runs = {1, 1}};
    sum_up(diff, floor, min_share, ret_summary);
}

void diff_sum_up_runs(const struct diff *diff, double floor, double min_share,
                      struct diff_summary *ret_summary)
{
    *ret_summary =
        (struct diff_summary){.per_runs = {diff_per_runs(diff, DIFF_A), diff_per_runs(diff, DIFF_B)}};
    sum_up(diff, floor, min_share, ret_summary);
}
