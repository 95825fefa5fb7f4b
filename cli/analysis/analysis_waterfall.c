/* Computes the waterfall of an analysis for text and JSON: the parts to show, and possible changes. Pure. */
#include <math.h>
#include <stdio.h>

#include "analysis.h"
#include "explain/verdict.h"

#define STALLED_OFTEN_RATIO 0.1 /* of the cycles: enough for a remark */
#define STALLED_MORE_FACTOR 1.5

/* True for parts to show: zero parts and unmeasured parts are omitted; a known unexplained part is always
 * shown. */
static bool is_shown(const struct occ_waterfall *w, unsigned part)
{
    return part == OCC_PART_UNEXPLAINED ? !isnan(w->part[part]) : fabs(w->part[part]) > 0;
}

static bool helps(const struct analysis_advice *item, enum occ_advice_kind kind)
{
    bool is_whole_waves = kind == OCC_ADVICE_GRID_UP && item->change.kind == OCC_ADVICE_GRID_DOWN;
    return !item->is_unlikely && (item->change.kind == kind || is_whole_waves);
}

/* Finds the change that may help a part: of the list of advice, or for a measured part by its kind. */
static void find_help(const struct analysis *a, const struct analysis_advice *advice, size_t n, unsigned part,
                      struct analysis_part *p)
{
    enum occ_advice_kind kind = occ_part_advice(part);
    enum occ_owner owner = analysis_owner(a).owner;
    if (kind == OCC_ADVICE_COUNT || !(p->ratio > 0) || p->is_within_error)
        return;
    for (size_t i = 0; i < n && !p->help[0]; i++)
        if (helps(&advice[i], kind) && advice[i].is_indirect)
            (void)snprintf(p->help, sizeof p->help, "%s", advice[i].knob);
        else if (helps(&advice[i], kind))
            (void)analysis_advice_change(&advice[i].change, p->help, sizeof p->help);
    if (!p->help[0] && part >= OCC_CAUSE_COUNT && !a->result->by_design &&
        occ_change_for(owner, kind) != OCC_CHANGE_NONE)
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
    struct analysis_advice advice[OCC_ADVICE_MAX];
    struct occ_waterfall w;
    bool has_help = !analysis_needs_no_advice(a);
    size_t n = analysis_advise(a, advice);
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
            find_help(a, advice, n, part, p);
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
