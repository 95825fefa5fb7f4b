/* The table of regressors; see state.h. */
#include "state.h"

static uint64_t hash_of(const struct occ_attribution_key *model, bool overlapped)
{
    uint64_t h =
        (model->shape + 1) * UINT64_C(0x9e3779b97f4a7c15) ^
        ((model->graph_node << 1 | model->graph_node >> 63) + overlapped + 1) * UINT64_C(0xc2b2ae3d27d4eb4f);
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
    for (int i = 0; i < OCC_RESPONSE_COUNT; i++)
        r->value[i] = r->prior[i];
}

/* Gives up regressors that no launch, and no row from `oldest_ns` on, refers to. */
static void sweep(struct occ_regressors *all, int64_t oldest_ns)
{
    all->swept_ns = oldest_ns;
    occ_map_clear(&all->index); /* it cannot forget single ones */
    for (uint32_t i = 0; i < all->n; i++) {
        struct occ_regressor *r = &all->items[i];
        r->taken = r->taken && (r->waiting > 0 || r->used_ns >= oldest_ns);
        all->n_free += !r->taken;
        if (r->taken)
            (void)occ_map_put(&all->index, hash_of(&r->model, r->overlapped), i);
    }
}

static uint32_t find_place(struct occ_regressors *all, int64_t oldest_ns)
{
    if (all->n < all->max)
        return occ_grow((void **)&all->items, &all->allocated, all->n, all->max, sizeof *all->items)
                   ? (uint32_t)all->n++
                   : OCC_NONE;
    if (all->n_free == 0 && oldest_ns >= all->swept_ns + SWEEP_NS)
        sweep(all, oldest_ns);
    for (uint32_t i = 0; all->n_free > 0 && i < all->n; i++)
        if (!all->items[i].taken) {
            all->n_free--;
            return i;
        }
    return OCC_NONE;
}

uint32_t occ_regressors_put(struct occ_regressors *all, const struct occ_attribution_options *options,
                            const struct occ_attribution_key *model, bool overlapped, int64_t oldest_ns)
{
    uint64_t hash = hash_of(model, overlapped);
    uint32_t at = occ_map_get(&all->index, hash);
    if (at != OCC_MAP_NONE)
        return at;
    at = find_place(all, oldest_ns);
    if (at == OCC_NONE || occ_map_put(&all->index, hash, at) == OCC_MAP_NONE) {
        all->refused++;
        return OCC_NONE;
    }
    all->items[at] = (struct occ_regressor){
        .model = *model, .overlapped = overlapped, .taken = true, .measured = OCC_NOT_MEASURED};
    for (int i = 0; i < OCC_RESPONSE_UTILIZATIONS; i++)
        all->items[at].utilization[i] = all->items[at].utilization_se[i] = NAN;
    set_prior(&all->items[at], options);
    return at;
}

double occ_regressor_expect(const struct occ_regressor *r, const struct occ_estimate *estimate,
                            const struct occ_part *part, enum occ_response response)
{
    double sum = (double)(part->time_share * r->value[response]);
    for (int i = 0; i < OCC_PROFILE; i++) {
        double common = estimate->special[OCC_SPECIAL_PROFILE + i][response];
        double own = response == OCC_RESPONSE_WARPS ? (double)r->profile[i] : 0;
        sum += (double)part->profile[i] * (common * (double)r->value[OCC_RESPONSE_WARPS] + own);
    }
    return sum;
}
