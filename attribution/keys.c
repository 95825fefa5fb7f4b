/* The table of keys and their columns; see keys.h. Estimates are made in estimate.c. */
#include "keys.h"

#include <math.h>
#include <stdlib.h>

#define TILES_MOST   65536u /* 128 MiB a system, where thousands of kernels mix */
#define UNUSED_LIVES 4      /* half-lives after which a key may give its place away */
#define SWEEP_EVERY  1024   /* rows */
#define BOUND_SLACK  1.02
#define PRIOR_PART   0.9 /* of the bound: most kernels come near it */

static uint64_t hash(uint64_t shape, uint64_t graph_node, uint32_t company)
{
    uint64_t h = (shape + 1) * UINT64_C(0x9e3779b97f4a7c15) ^
                 ((graph_node << 9 | graph_node >> 55) + company + 1) * UINT64_C(0xc2b2ae3d27d4eb4f);
    h ^= h >> 29;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ h >> 32;
}

static int open_system(struct occ_keys *keys, int system, struct occ_error *err)
{
    const struct occ_normal_options options = {.max_columns = keys->max_columns,
                                               .max_tiles = TILES_MOST,
                                               .n_rhs = OCC_RHS_COUNT,
                                               .half_life = keys->options.half_life_samples};
    keys->solution[system] = calloc((size_t)OCC_RHS_COUNT * keys->max_columns, sizeof(double));
    if (!keys->solution[system])
        return occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    return occ_normal_new(&options, &keys->normal[system], err);
}

int occ_keys_open(struct occ_keys *keys, const struct occ_attribution_options *options, struct occ_error *err)
{
    *keys = (struct occ_keys){.options = *options, .max_columns = (uint32_t)options->max_keys * 2};
    keys->keys = calloc(options->max_keys, sizeof *keys->keys);
    keys->free_columns = calloc(keys->max_columns, sizeof *keys->free_columns);
    keys->prior = calloc((size_t)OCC_RHS_COUNT * keys->max_columns, sizeof *keys->prior);
    keys->block = calloc(1, sizeof *keys->block);
    int status = keys->keys && keys->free_columns && keys->prior && keys->block
                     ? 0
                     : occ_fail(err, OCC_E_NO_MEMORY, "out of memory");
    for (int i = 0; i < OCC_SYSTEM_COUNT && status == 0; i++)
        status = open_system(keys, i, err);
    if (status != 0)
        occ_keys_close(keys);
    return status;
}

void occ_keys_close(struct occ_keys *keys)
{
    for (int i = 0; i < OCC_SYSTEM_COUNT; i++) {
        occ_normal_free(keys->normal[i]);
        free(keys->solution[i]);
    }
    occ_map_free(&keys->index);
    free(keys->keys);
    free(keys->free_columns);
    free(keys->prior);
    free(keys->block);
    *keys = (struct occ_keys){0};
}

/* ---- columns ---- */

static uint32_t take_column(struct occ_keys *keys)
{
    if (keys->n_free_columns > 0)
        return keys->free_columns[--keys->n_free_columns];
    return keys->n_columns < keys->max_columns ? keys->n_columns++ : OCC_NO_COLUMN;
}

static void put_prior(struct occ_keys *keys, const struct occ_key *key, uint32_t column, bool is_mean)
{
    for (uint32_t r = 0; r < OCC_RHS_COUNT; r++) {
        size_t at = (size_t)r * keys->max_columns + column;
        keys->prior[at] = is_mean ? key->prior[r] : 0;
        for (int s = 0; s < OCC_SYSTEM_COUNT; s++)
            keys->solution[s][at] = keys->prior[at];
    }
}

static void give_columns_back(struct occ_keys *keys, struct occ_key *key, uint32_t from)
{
    for (uint32_t i = from; i < key->functions; i++) {
        for (int s = 0; s < OCC_SYSTEM_COUNT; s++)
            occ_normal_clear(keys->normal[s], key->column[i]);
        keys->free_columns[keys->n_free_columns++] = key->column[i];
    }
    key->functions = from;
}

void occ_keys_widen(struct occ_keys *keys, struct occ_key *key, double samples)
{
    uint32_t functions = occ_overlap_functions(samples);
    uint32_t left = keys->max_columns - keys->n_columns + keys->n_free_columns;
    if (functions <= key->functions || left < keys->max_columns / 2 + OCC_PROFILE_FUNCTIONS)
        return;                      /* half of the columns are for means */
    give_columns_back(keys, key, 1); /* other segments */
    for (uint32_t i = 1; i < functions; i++) {
        key->column[i] = take_column(keys);
        put_prior(keys, key, key->column[i], false);
    }
    key->functions = functions;
}

/* ---- keys ---- */

/* What the model expects before anything is measured. */
static void set_prior(struct occ_key *key, const struct occ_attribution_options *options)
{
    const struct occ_attribution_key *m = &key->model;
    double theoretical = isfinite(m->theoretical) && m->theoretical > 0 ? fmin(m->theoretical, 1) : 1;
    double waves = m->grid_blocks && m->wave_blocks ? (double)m->grid_blocks / (double)m->wave_blocks : 1;
    key->bound = fmin(theoretical * fmin(waves, 1) * BOUND_SLACK, 1);
    double expected = theoretical * waves / ceil(waves);
    key->prior[OCC_RHS_WARPS] = PRIOR_PART * fmin(expected, key->bound);
    key->prior[OCC_RHS_ACTIVE] = m->grid_blocks ? fmin((double)m->grid_blocks / options->sm_count, 1) : 1;
    if (m->warps_per_block)
        key->prior[OCC_RHS_BLOCKS] =
            key->prior[OCC_RHS_WARPS] * options->max_warps_per_sm / (double)m->warps_per_block;
}

static uint32_t free_place(struct occ_keys *keys)
{
    if (keys->n < keys->options.max_keys)
        return keys->n++;
    uint64_t patience = (uint64_t)(UNUSED_LIVES * keys->options.half_life_samples);
    if (keys->rows < keys->swept + SWEEP_EVERY)
        return OCC_MAP_NONE;
    keys->swept = keys->rows;
    uint32_t place = OCC_MAP_NONE;
    for (uint32_t i = 0; i < keys->n; i++) {
        struct occ_key *key = &keys->keys[i];
        if (!key->taken || key->waiting > 0 || keys->rows - key->used < patience)
            continue;
        give_columns_back(keys, key, 0);
        key->taken = false;
        place = i;
    }
    if (place == OCC_MAP_NONE)
        return OCC_MAP_NONE;
    /* the map cannot forget single keys */
    occ_map_clear(&keys->index);
    for (uint32_t i = 0; i < keys->n; i++)
        if (keys->keys[i].taken)
            (void)occ_map_put(
                &keys->index,
                hash(keys->keys[i].model.shape, keys->keys[i].model.graph_node, keys->keys[i].company), i);
    return place;
}

/* A place below n that a sweep has freed. */
static uint32_t freed_place(const struct occ_keys *keys)
{
    for (uint32_t i = 0; keys->swept > 0 && i < keys->n; i++)
        if (!keys->keys[i].taken)
            return i;
    return OCC_MAP_NONE;
}

uint32_t occ_keys_company(int64_t duration_ns)
{
    return 1 + (uint32_t)(2 * log2((double)duration_ns));
}

uint32_t occ_keys_put(struct occ_keys *keys, const struct occ_attribution_key *model, uint32_t company)
{
    uint32_t at = occ_map_get(&keys->index, hash(model->shape, model->graph_node, company));
    if (at != OCC_MAP_NONE)
        return at;
    at = freed_place(keys);
    if (at == OCC_MAP_NONE)
        at = free_place(keys);
    uint32_t column = at == OCC_MAP_NONE ? OCC_NO_COLUMN : take_column(keys);
    if (column == OCC_NO_COLUMN ||
        occ_map_put(&keys->index, hash(model->shape, model->graph_node, company), at) == OCC_MAP_NONE) {
        keys->refused++;
        return OCC_MAP_NONE;
    }
    struct occ_key *key = &keys->keys[at];
    *key = (struct occ_key){.model = *model,
                            .functions = 1,
                            .column = {column},
                            .company = company,
                            .used = keys->rows,
                            .taken = true,
                            .measured = OCC_NOT_MEASURED};
    set_prior(key, &keys->options);
    put_prior(keys, key, column, true);
    return at;
}

void occ_keys_forget(struct occ_keys *keys)
{
    for (int s = 0; s < OCC_SYSTEM_COUNT; s++)
        occ_normal_reset(keys->normal[s]);
    for (uint32_t i = 0; i < keys->n; i++)
        keys->keys[i].misfit = keys->keys[i].evidence = 0;
}

void occ_keys_invalidate(struct occ_keys *keys)
{
    for (uint32_t i = 0; i < keys->n; i++)
        keys->keys[i].measured = OCC_NOT_MEASURED;
}
