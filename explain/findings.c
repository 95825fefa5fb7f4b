/*
 * Findings: subjects that lose GPU time, each with its cause and the cheapest change; see verdict.h. A
 * kernel's configurations are judged one by one and joined where the change is the same. No state; any
 * thread.
 */
#include <stdlib.h>

#include "occupancy/suggest.h"
#include "support/cleanup.h"
#include "support/error.h"
#include "verdict.h"

static const struct occ_saving unknown_saving = {NAN, NAN, NAN, 0};
static const struct occ_forecast no_forecast = {NAN, NAN, NAN, 0, 0, false, false};

/* ---- one configuration ---- */

static enum occ_owner owner_of(const struct occ_kernel_totals *kernel)
{
    return kernel->owner ? kernel->owner->owner : OCC_OWNER_UNKNOWN;
}

static bool fills_a_wave(const struct occ_kernel_totals *kernel)
{
    return !(kernel->waves < 1);
}

static bool has_loss(const struct occ_kernel_totals *kernel)
{
    return 1 - occ_positive(kernel->used) >= OCC_LOSS_MIN;
}

static uint32_t design_of(const struct occ_kernel_totals *kernel, unsigned cause)
{
    uint32_t traits = kernel->owner ? kernel->owner->traits : 0, design = 0;
    bool is_resource = cause < OCC_CAUSE_SMALL_GRID;
    if (occ_is_communication(kernel))
        design |= OCC_DESIGN_COMMUNICATION;
    if (traits & OCC_TRAIT_PERSISTENT)
        design |= OCC_DESIGN_PERSISTENT;
    else if (kernel->by_design & OCC_BY_DESIGN_PERSISTENT)
        design |= OCC_DESIGN_MAYBE_PERSISTENT;
    if (traits & OCC_TRAIT_TENSOR_CORES && is_resource)
        design |= OCC_DESIGN_TENSOR_CORES;
    return design;
}

/* Returns true if the name shows that a low occupancy is intended. A guess from the grid does not forbid
 * advice. */
static bool is_intended(uint32_t design)
{
    return (design & (OCC_DESIGN_COMMUNICATION | OCC_DESIGN_PERSISTENT | OCC_DESIGN_TENSOR_CORES)) != 0;
}

/* Returns the sort key of a saving, a share of the same time as `lost`. */
static double rank_of(const struct occ_saving *saving, double lost)
{
    if (isfinite(saving->median))
        return saving->median;
    if (isfinite(saving->low) && isfinite(saving->high))
        return (saving->low + saving->high) / 2;
    return lost / 2;
}

/* Returns true if `a` saves more than `b`, or about as much with less effort. */
static bool is_better(const struct occ_candidate *a, const struct occ_candidate *b, enum occ_owner owner)
{
    double saves_a = rank_of(&a->saving, 0), saves_b = rank_of(&b->saving, 0);
    double larger = saves_a > saves_b ? saves_a : saves_b;
    enum occ_effort effort_a = occ_change_effort(occ_change_for(owner, a->kind)),
                    effort_b = occ_change_effort(occ_change_for(owner, b->kind));
    if (fabs(saves_a - saves_b) <= OCC_SAVINGS_EQUAL * larger && effort_a != effort_b)
        return effort_a < effort_b;
    return saves_a > saves_b;
}

/* Returns true if the owner can make the change, and it is not known to be without effect. */
static bool is_useful(const struct occ_kernel_totals *kernel, const struct occ_candidate *candidate)
{
    bool is_useless = candidate->forecast.is_unlikely ||
                      (occ_advice_is_per_sm(candidate->kind) && !fills_a_wave(kernel)) ||
                      (!has_loss(kernel) && !candidate->forecast.is_promised);
    return !is_useless && occ_change_for(owner_of(kernel), candidate->kind) != OCC_CHANGE_NONE;
}

/* Returns the best useful change; NULL: none. `cause`: of the changes about this cause; OCC_PART_COUNT: of
 * all. */
static const struct occ_candidate *choose(const struct occ_kernel_totals *kernel, unsigned cause)
{
    const struct occ_candidate *best = NULL;
    for (const struct occ_candidate *c = kernel->candidates; c < kernel->candidates + kernel->n_candidates;
         c++) {
        bool is_meant = cause == OCC_PART_COUNT || occ_advice_is_about(c->kind, cause);
        if (is_meant && is_useful(kernel, c) && (!best || is_better(c, best, owner_of(kernel))))
            best = c;
    }
    return best;
}

/* Returns the reason for advice of `kind` if it is not about the largest cause. */
static enum occ_aside aside_of(const struct occ_kernel_totals *kernel, unsigned cause,
                               enum occ_advice_kind kind)
{
    if (kind == OCC_ADVICE_COUNT || occ_advice_is_about(kind, cause))
        return OCC_ASIDE_NONE;
    if (cause == OCC_PART_COUNT)
        return OCC_ASIDE_NO_LOSS;
    if (cause < OCC_CAUSE_SMALL_GRID && !fills_a_wave(kernel))
        return OCC_ASIDE_FEW_BLOCKS;
    return choose(kernel, cause) ? OCC_ASIDE_SAVES_LESS : OCC_ASIDE_NO_CHANGE;
}

/* Returns true if a library's matrix product loads single elements because its operands are aligned to one
 * element. */
static bool is_misaligned(const struct occ_kernel_totals *kernel)
{
    return kernel->owner && kernel->owner->alignment == 1 && kernel->owner->traits & OCC_TRAIT_GEMM &&
           owner_of(kernel) != OCC_OWNER_UNKNOWN && owner_of(kernel) != OCC_OWNER_USER;
}

/* Returns the advice about the cause, for kernels without candidates. */
static enum occ_advice_kind advice_about(const struct occ_kernel_totals *kernel, unsigned cause)
{
    enum occ_advice_kind kind = cause < OCC_PART_COUNT ? occ_part_advice(cause) : OCC_ADVICE_COUNT;
    bool is_useless = kind < OCC_ADVICE_COUNT && occ_advice_is_per_sm(kind) && !fills_a_wave(kernel);
    return is_useless ? OCC_ADVICE_FILL_WAVE : kind;
}

/* Returns false for a change to which the prediction, which is about the same kernel, does not apply. */
static bool is_predicted(enum occ_owner_change change, const struct occ_forecast *forecast)
{
    bool makes_room = change == OCC_CHANGE_USE_REGISTERS || change == OCC_CHANGE_USE_SMEM;
    bool is_other_kernel = change == OCC_CHANGE_ALGORITHM || change == OCC_CHANGE_FUSE;
    return forecast->is_promised || !(makes_room || is_other_kernel);
}

static void set_parameter(struct occ_finding *finding, const struct occ_candidate *candidate)
{
    finding->advice = candidate->kind;
    finding->now = candidate->now;
    finding->needed = candidate->needed;
}

static void set_best(const struct occ_kernel_totals *kernel, const struct occ_candidate *best,
                     struct occ_finding *finding)
{
    finding->change = occ_change_for(owner_of(kernel), best->kind);
    finding->aside = aside_of(kernel, finding->cause, best->kind);
    set_parameter(finding, best);
    finding->saves = best->saving;
    finding->forecast = is_predicted(finding->change, &best->forecast) ? best->forecast : no_forecast;
}

/* Sets the change for the cause. Its parameter is known if the model knows the change, though not as a useful
 * one. */
static void set_unpredicted(const struct occ_kernel_totals *kernel, struct occ_finding *finding)
{
    enum occ_advice_kind kind = advice_about(kernel, finding->cause);
    finding->change = occ_change_for(owner_of(kernel), kind);
    if (finding->change == OCC_CHANGE_NONE)
        return;
    finding->aside = aside_of(kernel, finding->cause, kind);
    for (size_t i = 0; i < kernel->n_candidates; i++)
        if (kernel->candidates[i].kind == kind) {
            set_parameter(finding, &kernel->candidates[i]);
            return;
        }
}

static void set_change(const struct occ_kernel_totals *kernel, struct occ_finding *finding)
{
    const struct occ_candidate *best = choose(kernel, OCC_PART_COUNT);
    finding->by_design = design_of(kernel, finding->cause);
    finding->advice = OCC_ADVICE_COUNT;
    finding->saves = unknown_saving;
    finding->forecast = no_forecast;
    if (is_misaligned(kernel)) {
        finding->change = OCC_CHANGE_PAD;
        finding->aside = OCC_ASIDE_ALIGNMENT;
    } else if (is_intended(finding->by_design)) {
        finding->change = occ_is_communication(kernel) ? OCC_CHANGE_OVERLAP : OCC_CHANGE_LEAVE;
        finding->saves = (struct occ_saving){.median = 0};
    } else if (kernel->is_throughput_bound) {
        finding->change = OCC_CHANGE_BUSY;
        finding->saves = (struct occ_saving){.median = 0};
    } else if (best) {
        set_best(kernel, best, finding);
    } else if (has_loss(kernel)) {
        set_unpredicted(kernel, finding);
    }
}

static enum occ_confidence confidence_of(const struct occ_kernel_totals *kernel)
{
    return kernel->simulated            ? OCC_CONFIDENCE_SIMULATED
           : kernel->measured_ratio > 0 ? OCC_CONFIDENCE_MEASURED
                                        : OCC_CONFIDENCE_MODELLED;
}

/* Converts a saving from a share of the subject's time to a share of the GPU time, within [0, share]. */
static double scale(double saving, double share)
{
    return isfinite(saving) ? occ_at_most(occ_positive(saving), 1) * share : (double)NAN;
}

struct occ_finding occ_judge(const struct occ_totals *totals, size_t at, double share)
{
    const struct occ_kernel_totals *kernel = &totals->kernels[at];
    struct occ_finding finding = {.kind = OCC_FINDING_KERNEL,
                                  .kernel = at,
                                  .share = share,
                                  .lost = share * (1 - occ_at_most(occ_positive(kernel->used), 1)),
                                  .cause = OCC_PART_COUNT,
                                  .measured_ratio = kernel->measured_ratio};
    finding.cause = occ_largest_part(kernel->part, OCC_PART_COUNT);
    set_change(kernel, &finding);
    double predicted = share * (1 - occ_at_most(occ_positive(kernel->rest_ratio), 1));
    finding.saves.median = scale(finding.saves.median, predicted);
    finding.saves.low = scale(finding.saves.low, predicted);
    finding.saves.high = scale(finding.saves.high, share);
    finding.confidence = confidence_of(kernel);
    return finding;
}

/* ---- joining the configurations of a kernel ---- */

/* Adds known savings: a configuration without a prediction saves at least 0. */
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
                                            .forecast = no_forecast,
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
    findings[n - 1].by_design = OCC_DESIGN_COMMUNICATION;
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
    double x = rank_of(&a->saves, a->lost), y = rank_of(&b->saves, b->lost);
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
