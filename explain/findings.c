/*
 * Findings: subjects that lose GPU time, each with its cause and the cheapest change; see verdict.h. A
 * kernel's configurations are judged one by one (judge.c) and joined where the change is the same. No state;
 * any thread.
 */
#include <stdlib.h>

#include "judge.h"
#include "support/cleanup.h"
#include "support/error.h"
#include "verdict.h"

/* ---- joining the configurations of a kernel ---- */

/* Adds two savings; NaN, no prediction, counts as 0 beside a known saving. */
static double add_savings(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

static int compare_subjects(const void *left, const void *right, void *totals)
{
    const struct occ_kernel_totals *kernels = ((const struct occ_totals *)totals)->kernels;
    const struct occ_finding *a = left, *b = right;
    int64_t x = kernels[a->kernel].kernel, y = kernels[b->kernel].kernel;
    if (x != y)
        return (x > y) - (x < y);
    return a->change != b->change ? (a->change > b->change) - (a->change < b->change)
                                  : (a->lost < b->lost) - (a->lost > b->lost);
}

static bool is_same_subject(const struct occ_totals *totals, const struct occ_finding *a,
                            const struct occ_finding *b)
{
    return totals->kernels[a->kernel].kernel == totals->kernels[b->kernel].kernel && a->change == b->change;
}

/* Adds `from` to `into`, another configuration of the same kernel with the same change. `into` has the larger
 * loss and keeps its parameters. */
static void join(struct occ_finding *into, const struct occ_finding *from)
{
    double share = into->share + from->share;
    double measured = into->measured_ratio * into->share + from->measured_ratio * from->share;
    into->measured_ratio = share > 0 ? measured / share : 0;
    into->share = share;
    into->lost += from->lost;
    into->saves.median = add_savings(into->saves.median, from->saves.median);
    into->saves.low = add_savings(into->saves.low, from->saves.low);
    into->saves.high = add_savings(into->saves.high, from->saves.high);
    into->saves.cases = into->saves.cases < from->saves.cases ? into->saves.cases : from->saves.cases;
    if (from->confidence == OCC_CONFIDENCE_SIMULATED ||
        (from->confidence == OCC_CONFIDENCE_MEASURED && into->confidence == OCC_CONFIDENCE_MODELLED))
        into->confidence = from->confidence;
}

static size_t join_all(const struct occ_totals *totals, struct occ_finding *findings, size_t n)
{
    size_t kept = 0;
    if (n > 1)
        qsort_r(findings, n, sizeof *findings, compare_subjects, (void *)(uintptr_t)totals);
    for (size_t i = 0; i < n; i++)
        if (kept > 0 && is_same_subject(totals, &findings[kept - 1], &findings[i]))
            join(&findings[kept - 1], &findings[i]);
        else
            findings[kept++] = findings[i];
    return kept;
}

/* ---- other kinds of time ---- */

static void add_time(struct occ_finding *findings, size_t *n, enum occ_finding_kind kind, double share,
                     enum occ_owner_change change)
{
    findings[(*n)++] = (struct occ_finding){.kind = kind,
                                            .kernel = SIZE_MAX,
                                            .share = share,
                                            .lost = share,
                                            .cause = OCC_PART_COUNT,
                                            .change = change,
                                            .advice = OCC_ADVICE_COUNT,
                                            .saves = {NAN, 0, share, 0},
                                            .forecast = occ_no_forecast,
                                            .confidence = OCC_CONFIDENCE_MEASURED,
                                            .measured_ratio = 1};
}

static size_t longest_communication(const struct occ_totals *totals)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < totals->n_kernels; i++)
        if (occ_is_communication(&totals->kernels[i]) &&
            (best == SIZE_MAX || totals->kernels[i].time_s > totals->kernels[best].time_s))
            best = i;
    return best;
}

enum { TIME_KINDS = OCC_FINDING_KERNEL };

static size_t add_times(const struct occ_totals *totals, const struct occ_gpu_time *time,
                        struct occ_finding *findings)
{
    size_t n = 0;
    add_time(findings, &n, OCC_FINDING_LAUNCH_WAIT, time->launch_wait, OCC_CHANGE_CUDA_GRAPHS);
    add_time(findings, &n, OCC_FINDING_PAUSE, time->pause, OCC_CHANGE_FIND_WAIT);
    add_time(findings, &n, OCC_FINDING_COPIES, time->copies, OCC_CHANGE_OVERLAP);
    add_time(findings, &n, OCC_FINDING_COMMUNICATION, time->communication, OCC_CHANGE_OVERLAP);
    findings[n - 1].kernel = longest_communication(totals);
    findings[n - 1].low_reasons = OCC_LOW_COMMUNICATION;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < totals->n_kernels; k++)
            if (totals->kernels[k].simulated)
                findings[i].confidence = OCC_CONFIDENCE_SIMULATED;
    return n;
}

/* ---- all ---- */

static int compare_findings(const void *left, const void *right)
{
    const struct occ_finding *a = left, *b = right;
    double x = occ_rank_of(&a->saves, a->lost), y = occ_rank_of(&b->saves, b->lost);
    if (x < y || x > y)
        return x < y ? 1 : -1;
    if (a->lost < b->lost || a->lost > b->lost)
        return a->lost < b->lost ? 1 : -1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->kernel > b->kernel) - (a->kernel < b->kernel);
}

int occ_share_kernels(const struct occ_totals *totals, double *shares)
{
    struct occ_totals one = *totals;
    double window = 0;
    _cleanup_(occ_freep) double *sums = calloc(totals->n_gpus + 1, sizeof *sums);
    _cleanup_(occ_freep) double *kernels = calloc(totals->n_gpus + 1, sizeof *kernels);
    _cleanup_(occ_freep) struct occ_gpu_totals *gpus = calloc(totals->n_gpus + 1, sizeof *gpus);
    _cleanup_(occ_freep) struct occ_gpu_time *rows = NULL;
    size_t n = 0;
    if (!sums || !kernels || !gpus)
        return OCC_E_NO_MEMORY;
    for (size_t i = 0; i < totals->n_gpus; i++) {
        gpus[i] = totals->gpus[i];
        gpus[i].gpu = (int64_t)i; /* unique keys: one row per item */
    }
    one.gpus = gpus;
    if (occ_gpu_times(&one, OCC_TIME_BY_GPU, &rows, &n) != 0)
        return OCC_E_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        kernels[i] = rows[i].kernels * rows[i].window_s;
        window += rows[i].window_s;
    }
    for (size_t i = 0; i < totals->n_gpus; i++)
        sums[i] = occ_positive(totals->gpus[i].unlisted_s);
    for (size_t i = 0; i < totals->n_kernels; i++)
        if (!occ_is_communication(&totals->kernels[i]))
            sums[totals->kernels[i].gpu] += occ_positive(totals->kernels[i].time_s);
    for (size_t i = 0; i < totals->n_kernels; i++) {
        size_t gpu = totals->kernels[i].gpu;
        bool counts = !occ_is_communication(&totals->kernels[i]) && sums[gpu] > 0 && window > 0;
        shares[i] =
            counts ? kernels[gpu] / window * (occ_positive(totals->kernels[i].time_s) / sums[gpu]) : 0;
    }
    return 0;
}

int occ_find(const struct occ_totals *totals, struct occ_finding **ret_findings, size_t *ret_n)
{
    _cleanup_(occ_freep) struct occ_finding *findings =
        calloc(totals->n_kernels + TIME_KINDS, sizeof *findings);
    _cleanup_(occ_freep) double *shares = calloc(totals->n_kernels + 1, sizeof *shares);
    _cleanup_(occ_freep) struct occ_gpu_time *all = NULL;
    size_t n = 0, rows = 0, kept = 0;
    if (!findings || !shares || occ_share_kernels(totals, shares) != 0 ||
        occ_gpu_times(totals, OCC_TIME_BY_ALL, &all, &rows) != 0)
        return OCC_E_NO_MEMORY;
    for (size_t i = 0; i < totals->n_kernels; i++)
        if (shares[i] > 0 && isfinite(totals->kernels[i].used))
            findings[n++] = occ_judge(totals, i, shares[i]);
    n = join_all(totals, findings, n);
    n += rows > 0 ? add_times(totals, all, findings + n) : 0;
    for (size_t i = 0; i < n; i++)
        if (findings[i].lost >= OCC_FINDING_MIN)
            findings[kept++] = findings[i];
    if (kept > 1)
        qsort(findings, kept, sizeof *findings, compare_findings);
    *ret_findings = occ_take(findings);
    *ret_n = kept;
    return 0;
}
