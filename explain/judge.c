/*
 * Judges one launch configuration of a kernel: its largest cause, and the cheapest change for its owner. No
 * state; any thread.
 */
#include "judge.h"

#include "occupancy/suggest.h"
#include "verdict.h"

static const struct occ_saving unknown_saving = {NAN, NAN, NAN, 0};
const struct occ_forecast occ_no_forecast = {NAN, NAN, NAN, 0, 0, false, false};

double occ_rank_of(const struct occ_saving *saving, double lost)
{
    if (isfinite(saving->median))
        return saving->median;
    if (isfinite(saving->low) && isfinite(saving->high))
        return (saving->low + saving->high) / 2;
    return lost / 2;
}

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

/* Share of busy SMs from which filling the other SMs gains less than the smallest promised gain: the time
 * ratio is the square root of this share (occupancy/predict.c). */
#define SMS_NEARLY_ALL (OCC_PROMISED_RATIO * OCC_PROMISED_RATIO)

static bool leaves_sms_idle(const struct occ_kernel_totals *kernel)
{
    return kernel->grid_per_sm > 0 && kernel->grid_per_sm < SMS_NEARLY_ALL;
}

/* Returns true if the launches take no longer than a launch without work. */
static bool is_as_short_as_empty(const struct occ_kernel_totals *kernel)
{
    return kernel->launches > 0 && kernel->time_s * 1e9 <= OCC_LAUNCH_NS * (double)kernel->launches;
}

static uint32_t low_reasons_of(const struct occ_kernel_totals *kernel, unsigned cause)
{
    uint32_t traits = kernel->owner ? kernel->owner->traits : 0, reasons = 0;
    bool is_resource = cause < OCC_CAUSE_SMALL_GRID;
    if (occ_is_communication(kernel))
        reasons |= OCC_LOW_COMMUNICATION;
    if (traits & OCC_TRAIT_PERSISTENT)
        reasons |= OCC_LOW_PERSISTENT;
    else if (kernel->by_design & OCC_BY_DESIGN_PERSISTENT)
        reasons |= OCC_LOW_MAYBE_PERSISTENT;
    if (traits & OCC_TRAIT_TENSOR_CORES && is_resource && !leaves_sms_idle(kernel))
        reasons |= OCC_LOW_TENSOR_CORES;
    return reasons;
}

/* Returns true if the kernel's name shows that a low occupancy is intended. OCC_LOW_MAYBE_PERSISTENT, a
 * guess from the grid, does not count. */
static bool is_intended(uint32_t low_reasons)
{
    return (low_reasons & (OCC_LOW_COMMUNICATION | OCC_LOW_PERSISTENT | OCC_LOW_TENSOR_CORES)) != 0;
}

/* Savings below the smallest promise are noise if neither change is promised. */
#define SAVINGS_NOISE (1 - OCC_PROMISED_RATIO)

/* Returns true if `a`, and not `b`, divides the parameter's value: a smaller block that divides the present
 * one still fits the kernel's tile. */
static bool is_simpler(const struct occ_candidate *a, const struct occ_candidate *b)
{
    return a->kind == b->kind && a->needed > 0 && a->now % a->needed == 0 && b->needed > 0 &&
           b->now % b->needed != 0;
}

/* Returns true if `a`, which is later in the list, saves more than `b`, or about as much with less effort. */
static bool is_better(const struct occ_candidate *a, const struct occ_candidate *b, enum occ_owner owner)
{
    double saves_a = occ_rank_of(&a->saving, 0), saves_b = occ_rank_of(&b->saving, 0);
    double larger = saves_a > saves_b ? saves_a : saves_b;
    bool is_noise = larger < SAVINGS_NOISE && !a->forecast.is_promised && !b->forecast.is_promised;
    enum occ_effort effort_a = occ_change_effort(occ_change_for(owner, a->kind)),
                    effort_b = occ_change_effort(occ_change_for(owner, b->kind));
    bool is_equal = is_noise || fabs(saves_a - saves_b) <= OCC_SAVINGS_EQUAL * larger;
    if (is_equal && effort_a != effort_b)
        return effort_a < effort_b;
    return is_noise ? is_simpler(a, b) : saves_a > saves_b;
}

/* Returns true if the owner can make the change, and it is not known to be without effect. */
static bool is_useful(const struct occ_kernel_totals *kernel, const struct occ_candidate *candidate)
{
    bool is_useless = candidate->forecast.is_unlikely ||
                      (occ_advice_is_per_sm(candidate->kind) && !fills_a_wave(kernel)) ||
                      (!has_loss(kernel) && !candidate->forecast.is_promised);
    return !is_useless && occ_change_for(owner_of(kernel), candidate->kind) != OCC_CHANGE_NONE;
}

/* Returns the best useful change; NULL: none. `cause`: among the changes for this cause; OCC_PART_COUNT:
 * among all. */
static const struct occ_candidate *choose_change(const struct occ_kernel_totals *kernel, unsigned cause)
{
    const struct occ_candidate *best = NULL;
    for (size_t i = 0; i < kernel->n_candidates; i++) {
        const struct occ_candidate *c = &kernel->candidates[i];
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
    return choose_change(kernel, cause) ? OCC_ASIDE_SAVES_LESS : OCC_ASIDE_NO_CHANGE;
}

/* Returns true if a library's matrix product loads single elements because its operands are aligned to one
 * element. */
static bool is_misaligned(const struct occ_kernel_totals *kernel)
{
    return kernel->owner && kernel->owner->alignment == 1 && kernel->owner->traits & OCC_TRAIT_GEMM &&
           owner_of(kernel) != OCC_OWNER_UNKNOWN && owner_of(kernel) != OCC_OWNER_USER;
}

/* Returns the advice about the cause, for kernels without candidates. Like the list of advice, it has none
 * about the tail of many waves. */
static enum occ_advice_kind advice_about(const struct occ_kernel_totals *kernel, unsigned cause)
{
    if (cause == OCC_CAUSE_TAIL && kernel->waves > OCC_TAIL_WAVES)
        return OCC_ADVICE_COUNT;
    enum occ_advice_kind kind = cause < OCC_PART_COUNT ? occ_part_advice(cause) : OCC_ADVICE_COUNT;
    bool is_useless = kind < OCC_ADVICE_COUNT && occ_advice_is_per_sm(kind) && !fills_a_wave(kernel);
    return is_useless ? OCC_ADVICE_FILL_WAVE : kind;
}

/* Returns true for a change that makes another kernel, to which a prediction of this one does not apply. */
static bool is_other_kernel(enum occ_owner_change change)
{
    return change == OCC_CHANGE_ALGORITHM || change == OCC_CHANGE_FUSE;
}

static bool makes_room(enum occ_owner_change change)
{
    return change == OCC_CHANGE_USE_REGISTERS || change == OCC_CHANGE_USE_SMEM;
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
    enum occ_owner_change change = occ_change_for(owner_of(kernel), best->kind);
    bool is_other = is_other_kernel(change) && !best->forecast.is_promised;
    bool is_predicted = !is_other && (best->forecast.is_promised || !makes_room(change));
    finding->change = change;
    finding->aside = aside_of(kernel, finding->cause, best->kind);
    set_parameter(finding, best);
    finding->saves = is_other ? unknown_saving : best->saving;
    finding->forecast = is_predicted ? best->forecast : occ_no_forecast;
}

/* Sets a change for the cause without a prediction, with its parameter if the model has a candidate of this
 * kind. */
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
    const struct occ_candidate *best = choose_change(kernel, OCC_PART_COUNT);
    finding->low_reasons = low_reasons_of(kernel, finding->cause);
    finding->advice = OCC_ADVICE_COUNT;
    finding->saves = unknown_saving;
    finding->forecast = occ_no_forecast;
    if (is_as_short_as_empty(kernel) && has_loss(kernel) && !occ_is_communication(kernel)) {
        finding->change = OCC_CHANGE_FUSE;
        finding->aside = OCC_ASIDE_LAUNCH_TIME;
    } else if (is_misaligned(kernel)) {
        finding->change = OCC_CHANGE_PAD;
        finding->aside = OCC_ASIDE_ALIGNMENT;
    } else if (is_intended(finding->low_reasons)) {
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
