/* Busy time and gaps; see gaps.h. One pass over the launches by their starts. Among the launches that have
 * begun, only the last two ends matter: between two starts, a single kernel runs exactly from the second last
 * end to the last end. One thread. */
#include "store/gaps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holes.h"
#include "store/codec/histogram.h"
#include "support/array.h"
#include "support/text.h"

struct launch {
    int64_t start_ns, end_ns;
    int64_t config;
    bool in_graph;
};

struct sweep {
    struct occ_store *store;
    struct occ_error *err;
    struct occ_gpu_uses *uses;
    struct occ_gpu_use *gpu;     /* the GPU being swept: an element of uses */
    int64_t at_ns;               /* the last start */
    int64_t end_ns, earlier_ns;  /* the last end, and the second last */
    size_t owner;                /* index in uses->configs: configuration of the launch that ends last */
    struct occ_map config_index; /* configuration -> index in uses->configs, for this GPU */
    struct occ_holes holes;
    struct occ_histogram gaps;
};

/* ---- the sweep ---- */

/* Adds a gap. False: no memory. */
static bool add_gap(struct sweep *s, const struct launch *next, struct occ_config_use *config)
{
    struct occ_gpu_use *gpu = s->gpu;
    uint64_t ns = (uint64_t)(next->start_ns - s->end_ns);
    if (occ_holes_hide_gap(&s->holes, s->end_ns, next->start_ns)) {
        gpu->unrecorded_ns += ns;
        return true;
    }
    gpu->gaps++;
    gpu->max_ns = ns > gpu->max_ns ? ns : gpu->max_ns;
    *(ns <= OCC_GAP_SHORT_NS ? &gpu->short_ns : &gpu->long_ns) += ns;
    if (ns <= OCC_GAP_QUEUED_NS) {
        gpu->queued_ns += ns;
    } else if (occ_gap_is_launch(ns, next->in_graph)) {
        gpu->launch_ns += ns;
        config->launch_ns += ns;
    }
    return occ_histogram_add(&s->gaps, ns, 1);
}

/* Adds the time between the last start and `until_ns` in which only one launch ran. That is the launch with
 * the last end; it runs alone after the second last end. */
static void add_alone(struct sweep *s, int64_t until_ns)
{
    int64_t from_ns = s->at_ns > s->earlier_ns ? s->at_ns : s->earlier_ns;
    until_ns = until_ns < s->end_ns ? until_ns : s->end_ns;
    if (until_ns > from_ns)
        s->uses->configs[s->owner].alone_ns += (uint64_t)(until_ns - from_ns);
}

static void start(struct sweep *s, const struct launch *l, size_t config)
{
    if (l->end_ns > s->end_ns) {
        s->gpu->busy_ns += (uint64_t)(l->end_ns - (s->end_ns > l->start_ns ? s->end_ns : l->start_ns));
        s->earlier_ns = s->end_ns;
        s->end_ns = l->end_ns;
        s->owner = config;
    } else if (l->end_ns > s->earlier_ns) {
        s->earlier_ns = l->end_ns;
    }
    s->at_ns = l->start_ns;
    s->gpu->last_ns = s->end_ns;
}

static size_t config_of(struct sweep *s, int64_t config)
{
    struct occ_gpu_uses *uses = s->uses;
    uint32_t at = occ_map_get(&s->config_index, (uint64_t)config);
    if (at != OCC_MAP_NONE)
        return at;
    if (!occ_grow((void **)&uses->configs, &uses->allocated_configs, uses->n_configs, UINT32_MAX,
                  sizeof *uses->configs) ||
        occ_map_put(&s->config_index, (uint64_t)config, (uint32_t)uses->n_configs) == OCC_MAP_NONE)
        return SIZE_MAX;
    uses->configs[uses->n_configs] = (struct occ_config_use){.config = config};
    return uses->n_configs++;
}

static int add_launch(struct sweep *s, struct launch l)
{
    struct occ_gpu_use *gpu = s->gpu;
    size_t config = config_of(s, l.config);
    if (config == SIZE_MAX)
        return occ_no_memory(s->err);
    if (gpu->launches++ == 0)
        gpu->first_ns = s->at_ns = s->end_ns = s->earlier_ns = l.start_ns;
    l.start_ns = l.start_ns < s->at_ns ? s->at_ns : l.start_ns; /* only in a damaged file */
    s->uses->configs[config].launches++;
    s->uses->configs[config].total_ns += (uint64_t)(l.end_ns > l.start_ns ? l.end_ns - l.start_ns : 0);
    add_alone(s, l.start_ns);
    if (l.start_ns > s->end_ns && !add_gap(s, &l, &s->uses->configs[config]))
        return occ_no_memory(s->err);
    start(s, &l, config);
    return 0;
}

/* ---- a run on a GPU ---- */

int64_t occ_gpu_recorded_ns(const struct occ_gpu_use *use)
{
    return use->last_ns - use->first_ns - (int64_t)use->unrecorded_ns;
}

double occ_gpu_launch_ratio(const struct occ_gpu_use *use)
{
    uint64_t stretches_ns = use->busy_ns + use->short_ns;
    return stretches_ns ? (double)use->launch_ns / (double)stretches_ns : NAN;
}

bool occ_gpu_is_launch_bound(const struct occ_gpu_use *use)
{
    return occ_gpu_launch_ratio(use) >= OCC_GAP_ADVICE_RATIO;
}

static int conclude_configs(struct sweep *s, size_t first)
{
    int rc = 0;
    for (size_t i = first; i < s->uses->n_configs && rc == 0; i++) {
        struct occ_config_use *config = &s->uses->configs[i];
        struct occ_result model;
        config->launch_bound = occ_gpu_is_launch_bound(s->gpu);
        rc = occ_store_config_model(s->store, config->config, &model, s->err);
        if (rc == 0 && model.grid_blocks < model.wave_blocks)
            s->gpu->small_alone_ns += config->alone_ns;
        rc = rc == OCC_E_NOT_FOUND ? 0 : rc;
    }
    return rc;
}

static int read_gpu(struct sweep *s, struct occ_span time)
{
    size_t first_config = s->uses->n_configs;
    sqlite3_stmt *stmt = occ_store_query(s->store, OCC_SQL_LAUNCHES_BY_START,
                                         OCC_INTS(s->gpu->run, s->gpu->device, time.low, time.high));
    int rc = 0;
    while (occ_store_next(s->store, stmt, &rc, s->err))
        rc = add_launch(s, (struct launch){sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1),
                                           sqlite3_column_int64(stmt, 2), sqlite3_column_int(stmt, 3) != 0});
    if (rc != 0)
        return rc;
    add_alone(s, INT64_MAX);
    s->gpu->p50_ns = occ_histogram_quantile_within(&s->gaps, 0.5, 0, s->gpu->max_ns);
    s->gpu->p95_ns = occ_histogram_quantile_within(&s->gaps, 0.95, 0, s->gpu->max_ns);
    return conclude_configs(s, first_config);
}

static int add_gpu(struct occ_store *store, struct occ_gpu_uses *uses, size_t at, struct occ_span time,
                   struct occ_error *err)
{
    struct sweep s = {.store = store, .err = err, .uses = uses, .gpu = &uses->gpus[at]};
    int rc = occ_holes_read(store, s.gpu->run, &s.holes, err);
    if (rc == 0)
        rc = read_gpu(&s, time);
    occ_map_free(&s.config_index);
    occ_histogram_free(&s.gaps);
    occ_holes_free(&s.holes);
    return rc;
}

/* ---- the question ---- */

/* Lists the GPUs of one run, a number or OCC_RUN_LAST. */
static int list_gpus(struct occ_store *store, int64_t run, struct occ_gpu_uses *uses, struct occ_error *err)
{
    sqlite3_stmt *stmt = occ_store_query(store, OCC_SQL_GPUS_OF_RUN, OCC_INTS(run));
    int rc = 0;
    while (occ_store_next(store, stmt, &rc, err)) {
        if (!occ_grow((void **)&uses->gpus, &uses->allocated_gpus, uses->n_gpus, UINT32_MAX,
                      sizeof *uses->gpus)) {
            rc = occ_no_memory(err);
            continue;
        }
        struct occ_gpu_use *gpu = &uses->gpus[uses->n_gpus++];
        *gpu = (struct occ_gpu_use){.run = sqlite3_column_int64(stmt, 0),
                                    .device = sqlite3_column_int64(stmt, 1),
                                    .simulated = sqlite3_column_int(stmt, 3) != 0,
                                    .cc = (uint32_t)occ_column_clamped(stmt, 4, 0, UINT32_MAX)};
        const char *name = (const char *)sqlite3_column_text(stmt, 2);
        (void)snprintf(gpu->device_name, sizeof gpu->device_name, "%s", name ? name : "");
    }
    return rc;
}

/* True if `gpu` is NULL, the device's number, or a part of its name, as in struct occ_filter. */
static bool is_asked_gpu(const struct occ_gpu_use *use, const char *gpu)
{
    uint64_t number = 0;
    if (!gpu)
        return true;
    return occ_parse_u64(gpu, 0, INT64_MAX, &number, NULL) == 0 ? (uint64_t)use->device == number
                                                                : strcasestr(use->device_name, gpu) != NULL;
}

static void keep_asked_gpus(struct occ_gpu_uses *uses, const char *gpu)
{
    size_t kept = 0;
    for (size_t i = 0; i < uses->n_gpus; i++)
        if (is_asked_gpu(&uses->gpus[i], gpu))
            uses->gpus[kept++] = uses->gpus[i];
    uses->n_gpus = kept;
}

int occ_store_gpu_uses(struct occ_store *s, const struct occ_filter *filter, struct occ_gpu_uses *ret_uses,
                       struct occ_error *err)
{
    struct occ_gpu_uses uses = {0};
    struct occ_span time = {filter->since_ns > 0 ? filter->since_ns : 0,
                            filter->until_ns > 0 ? filter->until_ns : INT64_MAX};
    size_t kept = 0;
    int rc = occ_store_execute(s, OCC_SQL_BEGIN, NULL, 0, err);
    if (rc != 0)
        return rc;
    rc = list_gpus(s, filter->run, &uses, err);
    keep_asked_gpus(&uses, filter->gpu); /* launches of other GPUs need not be read */
    for (size_t i = 0; i < uses.n_gpus && rc == 0; i++)
        rc = add_gpu(s, &uses, i, time, err);
    for (size_t i = 0; i < uses.n_gpus; i++)
        if (uses.gpus[i].launches > 0)
            uses.gpus[kept++] = uses.gpus[i];
    uses.n_gpus = kept;
    occ_store_rollback(s);
    *ret_uses = uses;
    if (rc != 0)
        occ_gpu_uses_free(ret_uses);
    return rc;
}

static int newest_run(struct occ_store *s, int64_t config, int64_t *ret_run, struct occ_error *err)
{
    return occ_store_number(s, occ_store_query(s, OCC_SQL_NEWEST_RUN_OF_CONFIG, OCC_INTS(config)), ret_run,
                            err);
}

int occ_store_add_uses(struct occ_store *s, const struct occ_filter *filter, struct occ_config_rows *configs,
                       struct occ_error *err)
{
    enum { LAST_SECONDS = 10 }; /* they have some million launches at most, read in a fraction of a second */
    struct occ_gpu_uses uses = {0};
    if (configs->n == 0)
        return 0;
    int64_t last_ns = configs->rows[0].last_ns;
    struct occ_filter run = {.run = filter->run, .since_ns = last_ns - LAST_SECONDS * SECOND_NS};
    int rc = run.run != 0 ? 0 : newest_run(s, configs->rows[0].id, &run.run, err);
    run.since_ns = run.since_ns > filter->since_ns ? run.since_ns : filter->since_ns;
    run.until_ns = last_ns + 1;
    if (rc == 0)
        rc = occ_store_gpu_uses(s, &run, &uses, err);
    for (size_t i = 0; i < configs->n && rc == 0; i++)
        for (size_t k = 0; k < uses.n_configs; k++)
            if (uses.configs[k].config == configs->rows[i].id)
                configs->rows[i].use = uses.configs[k];
    occ_gpu_uses_free(&uses);
    return rc;
}

void occ_gpu_uses_free(struct occ_gpu_uses *uses)
{
    free(uses->gpus);
    free(uses->configs);
    *uses = (struct occ_gpu_uses){0};
}
