/* See known_totals.h. */
#include "known_totals.h"

#include <math.h>
#include <stdlib.h>

#include "support/array.h"

#define SECOND_NS     INT64_C(1000000000)
#define LAG_S         60
#define EVERY_S       8
#define SECONDS       256        /* ring of seconds; must cover LAG_S and the daemon's watermark */
#define LOADS_MAX     (1u << 17) /* runs x configurations x seconds; 6 MB */
#define MEANS_MAX     (1u << 16)
#define LAUNCH_S_MAX  8    /* longer launches are not split into seconds and are no evidence */
#define COVERED       0.9  /* minimum coverage of a second by samples: below it the total is unknown */
#define UNKNOWN_SD    0.25 /* standard deviation of configurations' occupancies around the mean of others */
#define COUNTER_ERROR 0.01 /* relative error of the counter */
/* Standard error of a mean of rough values over a minute / their mean standard error: the attribution's
 * windows are independent of each other. In the ORDINARY programs of bench/attribution_worlds.c 95 % of the
 * differences are below 1.3 to 2 of these errors. */
#define ROUGH_INDEPENDENT 0.33

/* Sums of a second, as occupancy x ns: the counted total, and the share of launches with a value. */
struct second {
    int64_t number; /* since the epoch */
    double counted, counted_ns;
    double valued;
    /* filled by occ_known_totals_close() from the second's loads: */
    double rest_ns, predicted, predicted_ns, variance; /* of launches without a value */
};

/* Launches of a run's configuration in a second. */
struct load {
    int64_t second, run;
    uint64_t shape;
    double rest_ns;                      /* time of launches with neither a value nor a rough value */
    double valued_error;                 /* launches with a value or a rough value: standard error x ns */
    double rough_ns, rough, rough_error; /* launches with a rough value: time, value x ns, error x ns */
};

/* Mean of the values of a run's configuration; group values count only while there are no individual ones. */
struct mean {
    double sum, error, ns;
    bool is_own;
};

struct occ_known_totals {
    struct second seconds[SECONDS]; /* at index number % SECONDS */
    struct load *loads;
    size_t n_loads, loads_allocated;
    struct occ_map load_index; /* key: hash of second, run and configuration */
    struct mean *means;
    size_t n_means, means_allocated;
    struct occ_map mean_index; /* key: hash of run and configuration */
    int64_t closed;            /* seconds before this one are closed */
};

struct occ_known_totals *occ_known_totals_new(void)
{
    return calloc(1, sizeof(struct occ_known_totals));
}

void occ_known_totals_clear(struct occ_known_totals *t)
{
    free(t->loads);
    free(t->means);
    occ_map_free(&t->load_index);
    occ_map_free(&t->mean_index);
    *t = (struct occ_known_totals){.closed = 0};
}

void occ_known_totals_free(struct occ_known_totals *t)
{
    if (!t)
        return;
    occ_known_totals_clear(t);
    free(t);
}

static uint64_t hash(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t h = a * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 32 ^ b) * UINT64_C(0xc2b2ae3d27d4eb4f);
    return h ^ h >> 32 ^ c * UINT64_C(0x165667b19e3779f9);
}

/* ---- in ---- */

/* NULL: the second is closed, or a later second uses its entry. */
static struct second *second_at(struct occ_known_totals *t, int64_t number)
{
    struct second *s = &t->seconds[number % SECONDS];
    if (number < t->closed || s->number > number)
        return NULL;
    if (s->number < number)
        *s = (struct second){.number = number};
    return s;
}

static struct mean *mean_at(struct occ_known_totals *t, int64_t run, uint64_t shape, bool may_add)
{
    uint64_t key = hash((uint64_t)run, shape, 0);
    uint32_t at = occ_map_get(&t->mean_index, key);
    if (at != OCC_MAP_NONE || !may_add)
        return at != OCC_MAP_NONE ? &t->means[at] : NULL;
    if (t->n_means == MEANS_MAX) { /* runs that have ended fill the table: start again */
        t->n_means = 0;
        occ_map_clear(&t->mean_index);
    }
    if (!occ_grow((void **)&t->means, &t->means_allocated, t->n_means, MEANS_MAX, sizeof *t->means) ||
        occ_map_put(&t->mean_index, key, (uint32_t)t->n_means) == OCC_MAP_NONE)
        return NULL;
    t->means[t->n_means] = (struct mean){.is_own = false};
    return &t->means[t->n_means++];
}

static void add_load(struct occ_known_totals *t, const struct load *load)
{
    uint64_t key = hash((uint64_t)load->second, (uint64_t)load->run, load->shape);
    uint32_t at = occ_map_get(&t->load_index, key);
    if (at != OCC_MAP_NONE) {
        t->loads[at].rest_ns += load->rest_ns;
        t->loads[at].valued_error += load->valued_error;
        t->loads[at].rough_ns += load->rough_ns;
        t->loads[at].rough += load->rough;
        t->loads[at].rough_error += load->rough_error;
        return;
    }
    if (occ_grow((void **)&t->loads, &t->loads_allocated, t->n_loads, LOADS_MAX, sizeof *t->loads) &&
        occ_map_put(&t->load_index, key, (uint32_t)t->n_loads) != OCC_MAP_NONE)
        t->loads[t->n_loads++] = *load;
}

static bool is_known(const struct occ_measured *m)
{
    return m->source != OCC_ATTRIBUTION_NONE && isfinite(m->elapsed) && isfinite(m->elapsed_se);
}

static void add_to_mean(struct occ_known_totals *t, int64_t run, const struct occ_attribution_value *v)
{
    bool is_own = v->measured.source != OCC_ATTRIBUTION_GROUP;
    double ns = (double)(v->end_ns - v->start_ns);
    struct mean *mean = is_known(&v->measured) ? mean_at(t, run, v->shape, true) : NULL;
    if (!mean || (mean->is_own && !is_own))
        return;
    if (!mean->is_own && is_own)
        *mean = (struct mean){.is_own = true};
    mean->sum += v->measured.elapsed * ns;
    mean->error += v->measured.elapsed_se * ns;
    mean->ns += ns;
}

void occ_known_totals_add_value(struct occ_known_totals *t, const struct occ_attribution_value *v)
{
    int64_t run = (int64_t)(v->tag >> 32), first = v->start_ns / SECOND_NS, last = v->end_ns / SECOND_NS;
    const struct occ_measured *m = &v->measured;
    bool is_own = is_known(m) && m->source != OCC_ATTRIBUTION_GROUP, is_rough = !is_own && m->rough_se > 0;
    double value = is_own     ? m->elapsed
                   : is_rough ? m->rough
                              : 0,
           error = is_own     ? m->elapsed_se
                   : is_rough ? m->rough_se
                              : 0;
    add_to_mean(t, run, v);
    for (int64_t number = first; number <= last && last - first <= LAUNCH_S_MAX; number++) {
        struct second *s = second_at(t, number);
        double from = fmax((double)(v->start_ns - number * SECOND_NS), 0);
        double part = fmin((double)(v->end_ns - number * SECOND_NS), 1e9) - from;
        if (!s || !(part > 0))
            continue;
        s->valued += value * part;
        add_load(t, &(struct load){.second = number,
                                   .run = run,
                                   .shape = v->shape,
                                   .rest_ns = is_own || is_rough ? 0 : part,
                                   .valued_error = error * part,
                                   .rough_ns = is_rough ? part : 0,
                                   .rough = is_rough ? value * part : 0,
                                   .rough_error = is_rough ? error * part : 0});
    }
}

void occ_known_totals_add_sample(struct occ_known_totals *t, const struct occ_attribution_sample *sample)
{
    struct second *s = second_at(t, sample->start_ns / SECOND_NS);
    double ns = (double)(sample->end_ns - sample->start_ns), ratio = (double)sample->ratio[OCC_RATIO_WARPS];
    if (!s || !isfinite(ratio) || ns > 1e9)
        return;
    s->counted += ratio * ns;
    s->counted_ns += ns;
}

/* ---- out ---- */

static struct second *second_of(struct occ_known_totals *t, const struct load *load)
{
    struct second *s = &t->seconds[load->second % SECONDS];
    return s->number == load->second && s->counted_ns >= COVERED * 1e9 ? s : NULL;
}

/* Errors of different configurations are independent or, since a regression explains the same total,
 * negatively correlated: adding the variances is safe. */
static void predict(struct occ_known_totals *t, const struct load *load)
{
    struct second *s = second_of(t, load);
    const struct mean *mean = mean_at(t, load->run, load->shape, false);
    if (!s)
        return;
    double error = load->valued_error + (mean ? mean->error / mean->ns : UNKNOWN_SD) * load->rest_ns;
    s->variance += error * error;
    s->rest_ns += load->rest_ns;
    s->predicted += mean ? mean->sum / mean->ns * load->rest_ns : 0;
    s->predicted_ns += mean ? load->rest_ns : 0;
}

/* Rough values of launches differ from the mean of their configuration. */
static void judge_rough(const struct load *load, const struct mean *mean, struct occ_gpu_results *results)
{
    double expected = mean->sum / mean->ns * load->rough_ns, error = mean->error / mean->ns * load->rough_ns;
    occ_gpu_results_add_rest(
        results, load->second / 60, load->run, load->shape,
        &(struct occ_gpu_rest){.shift_ns = load->rough - expected,
                               .error_ns = ROUGH_INDEPENDENT *
                                           sqrt(error * error + load->rough_error * load->rough_error),
                               .ns = load->rough_ns});
}

static void judge(struct occ_known_totals *t, const struct load *load, struct occ_gpu_results *results)
{
    const struct second *s = second_of(t, load);
    const struct mean *mean = mean_at(t, load->run, load->shape, false);
    if (mean && mean->is_own && load->rough_ns > 0)
        judge_rough(load, mean, results);
    if (!s || !(load->rest_ns > 0) || !mean || !mean->is_own)
        return;
    double counted = s->counted * 1e9 / s->counted_ns;
    double predicted = s->predicted * s->rest_ns / s->predicted_ns;
    double counter = COUNTER_ERROR * counted, part = load->rest_ns / s->rest_ns;
    occ_gpu_results_add_rest(results, load->second / 60, load->run, load->shape,
                             &(struct occ_gpu_rest){.shift_ns = part * (counted - s->valued - predicted),
                                                    .error_ns = part * sqrt(s->variance + counter * counter),
                                                    .ns = load->rest_ns});
}

/* Drops the loads of closed seconds. */
static void keep_loads(struct occ_known_totals *t)
{
    size_t kept = 0;
    occ_map_clear(&t->load_index);
    for (size_t i = 0; i < t->n_loads; i++) {
        const struct load *load = &t->loads[i];
        uint64_t key = hash((uint64_t)load->second, (uint64_t)load->run, load->shape);
        if (load->second < t->closed || occ_map_put(&t->load_index, key, (uint32_t)kept) == OCC_MAP_NONE)
            continue;
        t->loads[kept++] = *load;
    }
    t->n_loads = kept;
}

static int64_t oldest(const struct occ_known_totals *t, int64_t end)
{
    for (size_t i = 0; i < t->n_loads; i++)
        end = t->loads[i].second < end ? t->loads[i].second : end;
    return end;
}

void occ_known_totals_close(struct occ_known_totals *t, int64_t until_ns, bool now,
                            struct occ_gpu_results *results)
{
    int64_t end = until_ns / SECOND_NS - (now ? 0 : LAG_S);
    if (end < t->closed + (now ? 1 : EVERY_S))
        return;
    if (oldest(t, end) < end) {
        for (size_t i = 0; i < t->n_loads; i++)
            if (t->loads[i].second < end)
                predict(t, &t->loads[i]);
        for (size_t i = 0; i < t->n_loads; i++)
            if (t->loads[i].second < end)
                judge(t, &t->loads[i], results);
    }
    t->closed = end;
    keep_loads(t);
}
