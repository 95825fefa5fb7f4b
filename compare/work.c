/* See work.h. Any thread. */
#include "work.h"

#include <math.h>
#include <stdlib.h>

#include "support/cleanup.h"

#define ROUNDING 1e-12

static int by_ratio(const void *left, const void *right)
{
    const struct diff_vote *a = left, *b = right;
    return (a->ratio > b->ratio) - (a->ratio < b->ratio);
}

static double ratio_of(const struct diff_pair *pair)
{
    return (double)pair->sums[DIFF_B].launches / (double)pair->sums[DIFF_A].launches;
}

/* True if neither ratio is more than DIFF_WORK_TOLERANCE larger. ROUNDING keeps the ends inside. */
static bool agrees(double ratio, double with)
{
    return fabs(log(ratio / with)) <= log1p(DIFF_WORK_TOLERANCE) + ROUNDING;
}

/* The median of the ratios of n > 0 votes, weighted with time. */
static double middle_of(struct diff_vote *votes, size_t n, double ns)
{
    double below = 0;
    size_t i = 0;
    qsort(votes, n, sizeof *votes, by_ratio);
    while (i + 1 < n && (below += votes[i].ns) < ns / 2)
        i++;
    return votes[i].ratio;
}

double diff_common_ratio(struct diff_vote *votes, size_t n, double all_ns, double *ret_error)
{
    double voting = 0, agreeing = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        voting += votes[i].ns;
    *ret_error = 0;
    if (n < DIFF_WORK_PAIRS_MIN || !(voting >= DIFF_WORK_SHARE_MIN * all_ns && voting > 0))
        return NAN;
    double middle = middle_of(votes, n, voting);
    for (size_t i = 0; i < n; i++) {
        double deviation = fabs(log(votes[i].ratio / middle));
        deviation = deviation > DIFF_WORK_DEVIATION_MAX ? 0 : deviation;
        agreeing += agrees(votes[i].ratio, middle) ? votes[i].ns : 0;
        squares += votes[i].ns * deviation * deviation;
    }
    if (!(agreeing >= DIFF_WORK_AGREE_MIN * voting))
        return NAN;
    *ret_error = sqrt(squares / voting);
    return middle;
}

int diff_find_work(struct diff *diff, struct occ_error *err)
{
    _cleanup_(occ_freep) struct diff_vote *votes = calloc((size_t)diff->n_pairs + 1, sizeof *votes);
    double all = (double)diff->total_ns[DIFF_A] + (double)diff->total_ns[DIFF_B];
    size_t n = 0;
    diff->work = NAN;
    diff->work_error = 0;
    if (!votes)
        return occ_no_memory(err);
    for (uint32_t i = 0; i < diff->n_pairs; i++) {
        const struct diff_pair *pair = &diff->pairs[i];
        const struct diff_sums *a = &pair->sums[DIFF_A], *b = &pair->sums[DIFF_B];
        if (pair->level <= DIFF_CONFIG && a->launches > 0 && b->launches > 0)
            votes[n++] = (struct diff_vote){ratio_of(pair), (double)a->total_ns + (double)b->total_ns};
    }
    diff->work = diff_common_ratio(votes, n, all, &diff->work_error);
    return 0;
}

/* Returns the runs of B for each of A. Blocks of minutes are parts of a single run. */
static double runs_ratio(const struct diff *diff)
{
    return diff->by_minutes ? 1 : (double)diff->runs[DIFF_B] / (double)diff->runs[DIFF_A];
}

double diff_work_of(const struct diff *diff)
{
    double launches = (double)diff->launches[DIFF_B] / (double)diff->launches[DIFF_A];
    double runs = runs_ratio(diff);
    if (!isnan(diff->work))
        return diff->work;
    return agrees(launches, runs) ? runs : (double)NAN;
}

double diff_work_factor(const struct diff *diff, const struct diff_pair *pair)
{
    double ratio = ratio_of(pair), work = diff->work;
    if (pair->level <= DIFF_WORK || pair->level == DIFF_ONE_SIDE)
        return 1;
    if (isnan(work)) /* as many launches per run on both sides: assume that a run does the same work */
        return agrees(ratio, runs_ratio(diff)) ? 1 : (double)NAN;
    return agrees(ratio, work) ? 1 : ratio / work;
}

bool diff_depends_on_launches(const struct diff_pair *pair)
{
    return pair->kernels[DIFF_A] != pair->kernels[DIFF_B] || fabs(pair->work_factor - 1) > 0;
}

double diff_work_error(const struct diff *diff, const double launches[DIFF_SIDES])
{
    double a = DIFF_COUNT_ERROR / launches[DIFF_A], b = DIFF_COUNT_ERROR / launches[DIFF_B];
    return sqrt(diff->work_error * diff->work_error + a * a + b * b);
}
