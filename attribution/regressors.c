/* The table of regressors; see state.h. */
#include <string.h>

#include "state.h"

static uint64_t hash_of(const struct occ_attribution_key *model)
{
    uint64_t h = (model->shape + 1) * UINT64_C(0x9e3779b97f4a7c15) ^
                 (model->graph_node + 1) * UINT64_C(0xc2b2ae3d27d4eb4f);
    h ^= h >> 29;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ h >> 32;
}

/* What the model expects before anything is measured. */
static void set_prior(struct occ_regressor *r, const struct occ_attribution_options *options)
{
    const struct occ_attribution_key *m = &r->model;
    double theoretical = isfinite(m->theoretical) && m->theoretical > 0 ? fmin(m->theoretical, 1) : 1;
    double waves = m->grid_blocks && m->wave_blocks ? (double)m->grid_blocks / (double)m->wave_blocks : 1;
    double bound = fmin(theoretical * fmin(waves, 1) * BOUND_SLACK, 1);
    double warps = PRIOR_PART * fmin(theoretical * waves / ceil(waves), bound);
    r->bound = (float)bound;
    r->prior[OCC_RESPONSE_WARPS] = (float)warps;
    r->prior[OCC_RESPONSE_ACTIVE] =
        m->grid_blocks ? (float)fmin((double)m->grid_blocks / options->sm_count, 1) : 1;
    if (m->warps_per_block)
        r->prior[OCC_RESPONSE_BLOCKS] = (float)(warps * options->max_warps_per_sm / m->warps_per_block);
    for (int i = 0; i < OCC_UTILIZATION_COUNT; i++) {
        r->prior[OCC_RESPONSE_UTILIZATION + i] = 0.5F;
        r->utilization_se[i] = NAN;
    }
    memcpy(r->value, r->prior, sizeof r->value);
}

uint32_t occ_regressors_put(struct occ_attribution *a, const struct occ_attribution_key *model)
{
    struct occ_regressors *all = &a->regressors;
    uint64_t hash = hash_of(model);
    uint32_t at = occ_map_get(&all->index, hash);
    if (at != OCC_MAP_NONE)
        return at;
    if (!occ_grow((void **)&all->items, &all->allocated, all->n, all->max, sizeof *all->items) ||
        occ_map_put(&all->index, hash, (uint32_t)all->n) == OCC_MAP_NONE) {
        all->refused++;
        return OCC_NONE;
    }
    all->items[all->n] = (struct occ_regressor){.model = *model, .measured = OCC_NOT_MEASURED};
    set_prior(&all->items[all->n], &a->options);
    return (uint32_t)all->n++;
}

double occ_regressor_expect(const struct occ_regressor *r, const struct occ_part *part,
                            enum occ_response response)
{
    double sum = (double)(part->time_share * r->value[response]);
    for (int i = 0; i < OCC_PROFILE && response == OCC_RESPONSE_WARPS; i++)
        sum += (double)(part->profile[i] * r->profile[i]);
    return sum;
}
