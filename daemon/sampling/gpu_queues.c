/* See gpu_queues.h. */
#include "gpu_queues.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/array.h"

#define SUMS_MAX    (1u << 14)
#define VALUES_MAX  (1u << 16) /* 6 s at 10 k a second */
#define SAMPLES_MAX (1u << 16) /* 6 s of 100 us */
#define SECONDS_MAX 1024u
#define MINUTE_NS   INT64_C(60000000000)

/* ---- launches ---- */

/* Moves the launches to the front of the array. */
static void close_gap(struct occ_launch_queue *q)
{
    if (q->first > 0 && q->n > 0)
        memmove(q->items, q->items + q->first, q->n * sizeof *q->items);
    q->first = 0;
}

/* Makes room for `more` launches behind the last one, or for as many as memory and `max` allow, and returns
 * that number. Launches are moved to the front only if half of the array is free there, so that a launch
 * moves about once, or if the array cannot grow. */
static size_t make_room(struct occ_launch_queue *q, size_t more, size_t max)
{
    if (q->first > 0 && q->first + q->n + more > q->allocated && q->first >= q->allocated / 2)
        close_gap(q);
    while (q->first + q->n + more > q->allocated &&
           occ_grow((void **)&q->items, &q->allocated, q->allocated, max, sizeof *q->items))
        ;
    if (q->first + q->n + more > q->allocated)
        close_gap(q);
    return more < q->allocated - q->first - q->n ? more : q->allocated - q->first - q->n;
}

bool occ_launch_queue_add(struct occ_launch_queue *q, const struct occ_attribution_launch *launch, size_t max)
{
    if (make_room(q, 1, max) == 0)
        return false;
    q->items[q->first + q->n++] = *launch;
    return true;
}

static int by_start(const void *a, const void *b)
{
    int64_t x = ((const struct occ_attribution_launch *)a)->start_ns,
            y = ((const struct occ_attribution_launch *)b)->start_ns;
    return (x > y) - (x < y);
}

size_t occ_launch_queue_merge(struct occ_launch_queue *q, struct occ_launch_queue *more, size_t max)
{
    size_t n = more->n;
    if (n == 0)
        return 0;
    size_t left = make_room(q, n, max), dropped = n - left, old = q->n;
    struct occ_attribution_launch *into = q->items + q->first, *from = more->items + more->first;
    qsort(from, n, sizeof *from, by_start);
    q->n = old + left;
    for (size_t at = q->n; left > 0;) {
        bool is_old = old > 0 && into[old - 1].start_ns > from[left - 1].start_ns;
        into[--at] = is_old ? into[--old] : from[--left];
    }
    more->first = more->n = 0;
    return dropped;
}

void occ_launch_queue_remove(struct occ_launch_queue *q, size_t n)
{
    q->n -= n;
    q->first = q->n > 0 ? q->first + n : 0;
    if (q->n < q->allocated / 8)
        close_gap(q);
    if (q->first == 0)
        occ_shrink((void **)&q->items, &q->allocated, q->n, sizeof *q->items);
}

uint64_t occ_launch_queue_release(struct occ_launch_queue *q, struct occ_attribution *to, int64_t until_ns)
{
    uint64_t dropped = 0;
    size_t n = 0;
    for (; n < q->n && occ_launch_queue_at(q, n)->start_ns < until_ns; n++)
        dropped += !occ_attribution_launch(to, occ_launch_queue_at(q, n));
    occ_launch_queue_remove(q, n);
    return dropped;
}

/* ---- results in ---- */

/* NaN: unknown. */
static void set_utilization(const struct occ_measured *m, double values[OCC_MEASURED_VALUE_COUNT])
{
    values[OCC_MEASURED_issue_active] = m->utilization[OCC_UTILIZATION_ISSUE];
    values[OCC_MEASURED_issue_active_error] = m->utilization_se[OCC_UTILIZATION_ISSUE];
    values[OCC_MEASURED_dram_throughput] = m->utilization[OCC_UTILIZATION_DRAM];
    values[OCC_MEASURED_l2_throughput] = m->utilization[OCC_UTILIZATION_L2];
    values[OCC_MEASURED_l1_throughput] = m->utilization[OCC_UTILIZATION_L1];
    values[OCC_MEASURED_tensor_active] = m->utilization[OCC_UTILIZATION_TENSOR];
    /* fmax skips NaN: the largest known error */
    for (int i = OCC_UTILIZATION_DRAM; i < OCC_UTILIZATION_COUNT; i++)
        values[OCC_MEASURED_throughput_error] =
            fmax(values[OCC_MEASURED_throughput_error], m->utilization_se[i]);
}

static void add_measured(struct occ_measured_sums *sums, const struct occ_measured *m, double ns)
{
    bool grouped = m->source == OCC_ATTRIBUTION_GROUP; /* the mean of a group holds for no single member */
    double values[OCC_MEASURED_VALUE_COUNT];
    for (int i = 0; i < OCC_MEASURED_VALUE_COUNT; i++)
        values[i] = NAN;
    if (grouped) {
        values[OCC_MEASURED_group_achieved] = m->achieved;
        values[OCC_MEASURED_group_elapsed] = m->elapsed;
        values[OCC_MEASURED_group_elapsed_error] = m->elapsed_se;
    } else {
        values[OCC_MEASURED_achieved] = m->achieved;
        values[OCC_MEASURED_achieved_error] = m->achieved_se;
        values[OCC_MEASURED_elapsed] = m->elapsed;
        values[OCC_MEASURED_elapsed_error] = m->elapsed_se;
        values[OCC_MEASURED_variance_inflation] = m->variance_inflation;
        values[OCC_MEASURED_sm_active] = m->sm_active;
        values[OCC_MEASURED_resident_blocks] = m->blocks;
        values[OCC_MEASURED_imbalance] = m->imbalance;
        for (int i = 0; i < OCC_STALL_COUNT; i++)
            values[OCC_MEASURED_stall_registers + i] = m->stall[i];
        set_utilization(m, values);
    }
    for (int i = 0; i < OCC_MEASURED_VALUE_COUNT; i++)
        if (isfinite(values[i])) {
            sums->sum[i] += values[i] * ns;
            sums->ns[i] += ns;
        }
    sums->direct += m->source == OCC_ATTRIBUTION_DIRECT;
    sums->regression += m->source == OCC_ATTRIBUTION_REGRESSED;
    sums->grouped += grouped;
    sums->overlapped += m->overlapped;
}

/* The sums of a minute, run and configuration; NULL: no room. On a hash collision a key may get several
 * entries; the store adds them up. */
static struct occ_measured_sums *sums_of(struct occ_gpu_results *r, int64_t minute, int64_t run,
                                         uint64_t config)
{
    uint64_t hash = (uint64_t)minute * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32 ^ (uint64_t)run) * UINT64_C(0xc2b2ae3d27d4eb4f);
    hash = hash ^ hash >> 32 ^ config;
    uint32_t at = occ_map_get(&r->index, hash);
    if (at != OCC_MAP_NONE && r->sums[at].minute == minute && r->sums[at].run == run &&
        r->sums[at].config == config)
        return &r->sums[at].sums;
    if (!occ_grow((void **)&r->sums, &r->sums_allocated, r->n_sums, SUMS_MAX, sizeof *r->sums) ||
        occ_map_put(&r->index, hash, (uint32_t)r->n_sums) == OCC_MAP_NONE)
        return NULL;
    r->sums[r->n_sums] = (struct occ_gpu_sums){.minute = minute, .run = run, .config = config};
    return &r->sums[r->n_sums++].sums;
}

void occ_gpu_results_add_value(struct occ_gpu_results *r, const struct occ_attribution_value *v)
{
    int64_t run = (int64_t)(v->tag >> 32);
    if (v->measured.source == OCC_ATTRIBUTION_NONE || occ_gpu_results_is_memory(v->shape))
        return;
    struct occ_measured_sums *sums = sums_of(r, v->start_ns / MINUTE_NS, run, v->shape);
    if (sums)
        add_measured(sums, &v->measured, (double)(v->end_ns - v->start_ns));
    r->dropped += !sums;
    if (v->measured.source != OCC_ATTRIBUTION_DIRECT)
        return;
    if (occ_grow((void **)&r->values, &r->values_allocated, r->n_values, VALUES_MAX, sizeof *r->values))
        r->values[r->n_values++] = (struct occ_gpu_value){.run = run,
                                                          .history = (uint32_t)(v->shape >> 32),
                                                          .value = {.start_ns = v->start_ns,
                                                                    .correlation = (uint32_t)v->tag,
                                                                    .config = (uint32_t)v->shape,
                                                                    .achieved = v->measured.achieved,
                                                                    .achieved_error = v->measured.achieved_se,
                                                                    .elapsed = v->measured.elapsed,
                                                                    .elapsed_error = v->measured.elapsed_se}};
    else
        r->dropped++;
}

void occ_gpu_results_add_rest(struct occ_gpu_results *r, int64_t minute, int64_t run, uint64_t config,
                              const struct occ_gpu_rest *rest)
{
    if (occ_gpu_results_is_memory(config))
        return;
    struct occ_measured_sums *sums = sums_of(r, minute, run, config);
    r->dropped += !sums;
    if (!sums)
        return;
    sums->rest_shift_sum += rest->shift_ns;
    sums->rest_error_sum += rest->error_ns;
    sums->rest_ns += rest->ns;
}

bool occ_gpu_results_add_sample(struct occ_gpu_results *r, const struct occ_attribution_sample *sample)
{
    const float *ratio = sample->ratio, *stall = ratio + OCC_RATIO_STALLS;
    double active = (double)ratio[OCC_RATIO_ACTIVE];
    if (!occ_grow((void **)&r->samples, &r->samples_allocated, r->n_samples, SAMPLES_MAX, sizeof *r->samples))
        return false;
    r->samples[r->n_samples++] = (struct occ_device_sample){
        .start_ns = sample->start_ns,
        .end_ns = sample->end_ns,
        .elapsed = (double)ratio[OCC_RATIO_WARPS],
        .sm_active = active,
        .resident_blocks = active > 0 ? (double)ratio[OCC_RATIO_BLOCKS] / active : NAN,
        .stall_registers = (double)stall[0],
        .stall_shared_memory = (double)stall[1],
        .stall_blocks = (double)stall[2],
        .stall_warps = (double)stall[3],
        .stall_barriers = (double)stall[4]};
    return true;
}

void occ_gpu_results_add_second(struct occ_gpu_results *r, const struct occ_attribution_second *second)
{
    if (occ_grow((void **)&r->seconds, &r->seconds_allocated, r->n_seconds, SECONDS_MAX, sizeof *r->seconds))
        r->seconds[r->n_seconds++] = *second;
}

void occ_gpu_results_add_energy(struct occ_gpu_results *r, const struct occ_energy_second *energy)
{
    if (occ_grow((void **)&r->energies, &r->energies_allocated, r->n_energies, SECONDS_MAX,
                 sizeof *r->energies))
        r->energies[r->n_energies++] = *energy;
}

void occ_gpu_results_share(const struct occ_gpu_results *from, uint32_t history, bool with_samples,
                           struct occ_gpu_results *into)
{
#define SHARE(array, max, is_its)                                                                            \
    for (size_t i = 0; i < from->n_##array; i++) {                                                           \
        if (!(is_its))                                                                                       \
            continue;                                                                                        \
        if (occ_grow((void **)&into->array, &into->array##_allocated, into->n_##array, max,                  \
                     sizeof *into->array))                                                                   \
            into->array[into->n_##array++] = from->array[i];                                                 \
        else                                                                                                 \
            into->dropped++;                                                                                 \
    }
    SHARE(sums, SUMS_MAX, from->sums[i].config >> 32 == history)
    SHARE(values, VALUES_MAX, from->values[i].history == history)
    SHARE(samples, SAMPLES_MAX, with_samples)
    SHARE(seconds, SECONDS_MAX, true)
    SHARE(energies, SECONDS_MAX, true)
}

bool occ_gpu_results_is_empty(const struct occ_gpu_results *r)
{
    return r->n_sums + r->n_values + r->n_samples + r->n_seconds + r->n_energies == 0;
}

/* ---- results out ---- */

/* Counts n values as dropped if the store has no room; that is no failure. */
static int unless_full(struct occ_gpu_results *r, int status, uint64_t n)
{
    if (status != OCC_E_FULL)
        return status;
    r->dropped += n;
    return 0;
}

int occ_gpu_results_store(struct occ_gpu_results *r, struct occ_store *store, int64_t device,
                          struct occ_error *err)
{
    int status = 0;
    for (size_t i = 0; i < r->n_sums && status == 0; i++) {
        const struct occ_gpu_sums *s = &r->sums[i];
        status = unless_full(
            r, occ_store_add_measured(store, s->minute, s->run, (uint32_t)s->config, &s->sums, err), 1);
    }
    for (size_t i = 0; i < r->n_values && status == 0; i++)
        status = unless_full(
            r, occ_store_add_launch_values(store, r->values[i].run, device, &r->values[i].value, 1, err), 1);
    if (status == 0 && r->n_samples > 0)
        status =
            unless_full(r, occ_store_add_samples(store, device, r->samples, r->n_samples, err), r->n_samples);
    for (size_t i = 0; i < r->n_seconds && status == 0; i++)
        status = unless_full(
            r, occ_store_add_unexplained(store, device, r->seconds[i].second, r->seconds[i].unexplained, err),
            1);
    for (size_t i = 0; i < r->n_energies && status == 0; i++) {
        const struct occ_energy_second *e = &r->energies[i];
        status =
            unless_full(r,
                        occ_store_add_energy(
                            store, &(struct occ_device_energy){device, e->second, e->length_ns, e->mj}, err),
                        1);
    }
    return status;
}

void occ_gpu_results_free(struct occ_gpu_results *r)
{
    occ_map_free(&r->index);
    free(r->sums);
    free(r->values);
    free(r->samples);
    free(r->seconds);
    free(r->energies);
    *r = (struct occ_gpu_results){0};
}
