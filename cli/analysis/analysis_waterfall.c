/* Computes the waterfall of an analysis for text and JSON: the parts to show, and possible changes. Pure. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analysis.h"
#include "occupancy/advice.h"

#define STALLED_OFTEN_RATIO 0.1 /* of the cycles: enough for a remark */
#define STALLED_MORE_FACTOR 1.5

/* True for parts to show: zero parts and unmeasured parts are omitted; a known unexplained part is always
 * shown. */
static bool is_shown(const struct occ_waterfall *w, unsigned part)
{
    return part == OCC_PART_UNEXPLAINED ? !isnan(w->part[part]) : fabs(w->part[part]) > 0;
}

/* Finds the change that may help a part. Advice for the model's own parts has values or is omitted. */
static void find_help(const struct analysis *a, const struct occ_advice *advice, size_t n, unsigned part,
                      struct analysis_part *p)
{
    enum occ_advice_kind kind = occ_part_advice(part);
    if (kind == OCC_ADVICE_COUNT || a->result->by_design || !(p->ratio > 0) || p->is_within_error)
        return;
    for (size_t i = 0; i < n && !p->help[0]; i++)
        if (advice[i].kind == kind)
            (void)snprintf(p->help, sizeof p->help, "%s: %" PRIu64 " -> %" PRIu64, occ_advice_text(kind),
                           advice[i].now, advice[i].needed);
    if (!p->help[0] && part >= OCC_CAUSE_COUNT)
        (void)snprintf(p->help, sizeof p->help, "%s", occ_advice_text(kind));
}

static const char *used_text(const struct analysis *a, const struct occ_waterfall *w)
{
    return w->source == OCC_FROM_MODEL
               ? a->has_grid ? "expected over elapsed cycles" : "active in a full wave"
           : w->is_of_active_cycles ? "achieved over active cycles (elapsed cycles not measured)"
                                    : "achieved over elapsed cycles";
}

void analysis_explain(const struct analysis *a, struct analysis_waterfall *ret_waterfall)
{
    struct occ_advice advice[OCC_ADVICE_MAX];
    struct occ_waterfall w;
    bool has_help = !analysis_needs_no_advice(a);
    size_t n = occ_advise(a->device, a->launch, a->result, advice, OCC_ADVICE_MAX);
    occ_explain(a->result, a->measured, &w);
    *ret_waterfall = (struct analysis_waterfall){.used = w.used,
                                                 .spread = w.tail_spread + w.small_grid_spread,
                                                 .uneven_grid = w.uneven_grid,
                                                 .is_of_active_cycles = w.is_of_active_cycles,
                                                 .source = w.source,
                                                 .used_text = used_text(a, &w)};
    for (unsigned part = 0; part < OCC_PART_COUNT; part++) {
        struct analysis_part *p = &ret_waterfall->parts[part];
        p->ratio = w.part[part];
        p->spread = part == OCC_CAUSE_TAIL         ? w.tail_spread
                    : part == OCC_CAUSE_SMALL_GRID ? w.small_grid_spread
                                                   : 0;
        p->source = part < OCC_CAUSE_COUNT ? OCC_FROM_MODEL : w.source;
        p->is_shown = is_shown(&w, part);
        p->is_within_error = part >= OCC_CAUSE_COUNT && fabs(w.part[part]) <= w.error;
        if (has_help)
            find_help(a, advice, n < OCC_ADVICE_MAX ? n : OCC_ADVICE_MAX, part, p);
    }
}

bool analysis_stall_disagrees(const struct occ_result *result, const struct occ_measurement *measured,
                              enum occ_limit stalled)
{
    double agreed = 0;
    if (stalled >= OCC_LIMIT_COUNT || result->limiters & 1u << stalled)
        return false;
    for (unsigned limit = 0; limit < OCC_LIMIT_COUNT; limit++)
        if (result->limiters & 1u << limit && measured->stall[limit] > agreed)
            agreed = measured->stall[limit];
    return measured->stall[stalled] > STALLED_OFTEN_RATIO &&
           measured->stall[stalled] > STALLED_MORE_FACTOR * agreed;
}
