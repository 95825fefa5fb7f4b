/* Predicts the savings of changes to the launch configurations with the largest losses; see gpu_totals.h. One
 * thread. */
#include <stdlib.h>
#include <string.h>

#include "gpu_totals.h"
#include "occupancy/suggest.h"
#include "support/cleanup.h"

/* ---- choice of configurations ---- */

double occ_lost_s(const struct occ_kernel_totals *kernel)
{
    return occ_positive(kernel->time_s) * (1 - occ_at_most(occ_positive(kernel->used), 1));
}

static int most_loss_first(const void *left, const void *right)
{
    const struct occ_kernel_totals *const *a = left, *const *b = right;
    double x = occ_lost_s(*a), y = occ_lost_s(*b);
    return x != y ? (x < y) - (x > y) : ((*a)->config > (*b)->config) - ((*a)->config < (*b)->config);
}

/* Returns the rows with a known loss, the largest first, without communication; *ret_n is at most
 * OCC_CANDIDATES_CONFIGS. The caller frees the list. NULL: no memory. */
static struct occ_kernel_totals **choose(struct occ_kernel_totals *kernels, size_t n, size_t *ret_n)
{
    struct occ_kernel_totals **list = calloc(n + 1, sizeof *list);
    size_t chosen = 0;
    for (size_t i = 0; list && i < n; i++)
        if (isfinite(kernels[i].used) && !occ_is_communication(&kernels[i]))
            list[chosen++] = &kernels[i];
    if (chosen > 1)
        qsort(list, chosen, sizeof *list, most_loss_first);
    *ret_n = chosen < OCC_CANDIDATES_CONFIGS ? chosen : OCC_CANDIDATES_CONFIGS;
    return list;
}

/* ---- the busiest unit ---- */

static double ncu_mean(const struct occ_ncu_values *values, const char *metric)
{
    for (const struct occ_ncu_value *v = values->first; v; v = v->next)
        if (strcmp(v->metric, metric) == 0)
            return v->mean;
    return NAN;
}

struct occ_hw_utilization occ_ncu_utilization(const struct occ_ncu_values *values)
{
    struct occ_hw_utilization u = {.issue_error = NAN, .throughput_error = NAN};
    for (int i = 0; i < OCC_HW_COUNT; i++)
        u.ratio[i] = NAN;
    u.ratio[OCC_HW_ISSUE] = ncu_mean(values, OCC_NCU_ISSUE) / 100;
    if (isnan(u.ratio[OCC_HW_ISSUE])) /* the same ratio, per scheduler */
        u.ratio[OCC_HW_ISSUE] = ncu_mean(values, "smsp__issue_active.avg.per_cycle_active");
    u.ratio[OCC_HW_DRAM] = ncu_mean(values, OCC_NCU_DRAM) / 100;
    u.ratio[OCC_HW_COMPUTE] = ncu_mean(values, OCC_NCU_COMPUTE) / 100;
    u.ratio[OCC_HW_MEMORY] = ncu_mean(values, OCC_NCU_MEMORY) / 100;
    return u;
}

/* ---- changes to one configuration ---- */

static struct occ_saving saving_of(const struct occ_prediction *p)
{
    bool has_interval = !isnan(p->low);
    double least = 1 - (has_interval ? p->high : p->ratio), most = 1 - (has_interval ? p->low : p->ratio);
    return (struct occ_saving){.median = p->is_promised ? 1 - p->ratio : 0,
                               .low = p->is_promised ? occ_positive(least) : 0,
                               .high = occ_positive(most),
                               .cases = p->published.cases};
}

static struct occ_forecast forecast_of(const struct occ_suggestion *suggestion)
{
    const struct occ_prediction *p = &suggestion->prediction;
    return (struct occ_forecast){.ratio = p->ratio,
                                 .low = p->low,
                                 .high = p->high,
                                 .faster = p->published.faster,
                                 .slower = p->published.slower,
                                 .is_promised = p->is_promised,
                                 .is_unlikely = suggestion->is_unlikely};
}

bool occ_candidates_set(const struct occ_config_row *row, struct occ_kernel_totals *kernel,
                        struct occ_arena *arena)
{
    struct occ_suggestion list[OCC_ADVICE_MAX];
    struct occ_measurement measured;
    const struct occ_kernel_owner owner = kernel->owner ? *kernel->owner : (struct occ_kernel_owner){0};
    occ_measured_means(&row->measured, row->measurable_ns, &measured);
    if (occ_busiest_unit(&measured.utilization) == OCC_HW_COUNT)
        measured.utilization = occ_ncu_utilization(&row->ncu);
    enum occ_bound bound = occ_bound_of(&measured.utilization, &row->result);
    kernel->is_throughput_bound = bound == OCC_BOUND_THROUGHPUT;
    if (kernel->is_throughput_bound)
        return true;
    size_t n = occ_suggest(
        &(struct occ_suggest_input){.device = &row->limits,
                                    .launch = &row->launch,
                                    .result = &row->result,
                                    .bound = occ_work_bound_of(&measured.utilization, bound),
                                    .owner = owner.owner,
                                    .traits = occ_likely_traits(owner.traits, &measured.utilization),
                                    .spill_bytes = -1,
                                    .local_bytes = row->local_bytes_per_thread,
                                    .duration_ns =
                                        row->launches ? (double)row->total_ns / (double)row->launches : 0,
                                    .has_grid = true},
        list);
    struct occ_candidate *candidates = occ_arena_get(arena, n + 1, sizeof *candidates);
    for (size_t i = 0; candidates && i < n; i++)
        candidates[i] = (struct occ_candidate){.kind = list[i].advice.kind,
                                               .now = list[i].advice.now,
                                               .needed = list[i].advice.needed,
                                               .saving = saving_of(&list[i].prediction),
                                               .forecast = forecast_of(&list[i])};
    kernel->candidates = candidates;
    kernel->n_candidates = candidates ? n : 0;
    return candidates != NULL;
}

int occ_candidates_add(struct occ_store *store, const struct occ_filter *filter,
                       const struct occ_candidate_rows *rows, struct occ_error *err)
{
    size_t chosen = 0;
    struct occ_config_total totals[OCC_CANDIDATES_CONFIGS];
    _cleanup_(occ_freep) struct occ_kernel_totals **list = choose(rows->kernels, rows->n, &chosen);
    _cleanup_(occ_config_rows_free) struct occ_config_rows configs = {0};
    if (!list)
        return occ_no_memory(err);
    for (size_t i = 0; i < chosen; i++)
        totals[i] = (struct occ_config_total){list[i]->config, list[i]->launches,
                                              rows->texts[list[i] - rows->kernels].total_ns};
    if (chosen > 0 && occ_store_configs_of(store, filter, totals, chosen, &configs, err) != 0)
        return err->code;
    for (size_t i = 0; i < configs.n; i++)
        for (size_t k = 0; k < chosen && configs.rows[i].analysed; k++)
            if (list[k]->config == configs.rows[i].id &&
                !occ_candidates_set(&configs.rows[i], list[k], rows->arena))
                return occ_no_memory(err);
    return 0;
}
