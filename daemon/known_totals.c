/* See known_totals.h. */
#include "known_totals.h"

#include <math.h>
#include <stdlib.h>

#include "support/array.h"

#define SECOND_NS     INT64_C(1000000000)
#define LAG_S         60
#define EVERY_S       8
#define SECONDS       256        /* a ring; must hold LAG_S and the daemon's watermark */
#define RESTS_MAX     (1u << 17) /* runs x configurations x seconds; 6 MB */
#define MEANS_MAX     (1u << 16)
#define LAUNCH_S_MAX  8    /* a longer launch is not split into seconds: it is no evidence */
#define COVERED       0.9  /* of a second, by samples: else its total is not known */
#define UNKNOWN_SD    0.25 /* of configurations' occupancies around the mean of others */
#define COUNTER_ERROR 0.01 /* of a count, relative */

/* What is counted in a second, and what launches with a value take of it: occupancy x ns. */
struct second {
    int64_t number; /* since the epoch */
    double counted, counted_ns;
    double valued, valued_error;
    double rest_ns, predicted, predicted_error, predicted_ns; /* of launches without a value, at the end */
};

/* Launches of a run's configuration without a value in a second. */
struct rest {
    int64_t second, run;
    uint64_t shape;
    double ns;
};

struct mean {
    double sum, error, ns;
};

struct occ_known_totals {
    struct second seconds[SECONDS]; /* by number % SECONDS */
    struct rest *rests;
    size_t n_rests, rests_allocated;
    struct occ_map rest_index; /* hash of second, run and configuration */
    struct mean *means;
    size_t n_means, means_allocated;
    struct occ_map mean_index; /* hash of run and configuration */
    int64_t closed;            /* seconds before this are over */
};

struct occ_known_totals *occ_known_totals_new(void)
{
    return calloc(1, sizeof(struct occ_known_totals));
}

void occ_known_totals_clear(struct occ_known_totals *t)
{
    free(t->rests);
    free(t->means);
    occ_map_free(&t->rest_index);
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

/* NULL: it is over, or too far ahead of one that still waits. */
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
    if (!occ_grow((void **)&t->means, &t->means_allocated, t->n_means, MEANS_MAX, sizeof *t->means) ||
        occ_map_put(&t->mean_index, key, (uint32_t)t->n_means) == OCC_MAP_NONE)
        return NULL;
    t->means[t->n_means] = (struct mean){.ns = 0};
    return &t->means[t->n_means++];
}

static void add_rest(struct occ_known_totals *t, const struct rest *rest)
{
    uint64_t key = hash((uint64_t)rest->second, (uint64_t)rest->run, rest->shape);
    uint32_t at = occ_map_get(&t->rest_index, key);
    if (at != OCC_MAP_NONE) {
        t->rests[at].ns += rest->ns;
        return;
    }
    if (occ_grow((void **)&t->rests, &t->rests_allocated, t->n_rests, RESTS_MAX, sizeof *t->rests) &&
        occ_map_put(&t->rest_index, key, (uint32_t)t->n_rests) != OCC_MAP_NONE)
        t->rests[t->n_rests++] = *rest;
}

static bool has_own(const struct occ_measured *m)
{
    return (m->source == OCC_ATTRIBUTION_DIRECT || m->source == OCC_ATTRIBUTION_REGRESSED) &&
           isfinite(m->elapsed) && isfinite(m->elapsed_se);
}

void occ_known_totals_add_value(struct occ_known_totals *t, const struct occ_attribution_value *v)
{
    int64_t run = (int64_t)(v->tag >> 32), first = v->start_ns / SECOND_NS, last = v->end_ns / SECOND_NS;
    double ns = (double)(v->end_ns - v->start_ns);
    bool is_own = has_own(&v->measured);
    struct mean *mean = is_own ? mean_at(t, run, v->shape, true) : NULL;
    if (mean) {
        mean->sum += v->measured.elapsed * ns;
        mean->error += v->measured.elapsed_se * ns;
        mean->ns += ns;
    }
    for (int64_t number = first; number <= last && last - first <= LAUNCH_S_MAX; number++) {
        struct second *s = second_at(t, number);
        double from = fmax((double)(v->start_ns - number * SECOND_NS), 0);
        double part = fmin((double)(v->end_ns - number * SECOND_NS), 1e9) - from;
        if (!s || !(part > 0))
            continue;
        if (is_own) {
            s->valued += v->measured.elapsed * part;
            s->valued_error += v->measured.elapsed_se * part;
        } else
            add_rest(t, &(struct rest){.second = number, .run = run, .shape = v->shape, .ns = part});
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

static struct second *second_of(struct occ_known_totals *t, const struct rest *rest)
{
    struct second *s = &t->seconds[rest->second % SECONDS];
    return s->number == rest->second && s->counted_ns >= COVERED * 1e9 ? s : NULL;
}

static void predict(struct occ_known_totals *t, const struct rest *rest)
{
    struct second *s = second_of(t, rest);
    const struct mean *mean = mean_at(t, rest->run, rest->shape, false);
    if (!s)
        return;
    s->rest_ns += rest->ns;
    if (!mean)
        return;
    s->predicted += mean->sum / mean->ns * rest->ns;
    s->predicted_error += mean->error / mean->ns * rest->ns;
    s->predicted_ns += rest->ns;
}

static void judge(struct occ_known_totals *t, const struct rest *rest, struct occ_gpu_results *results)
{
    const struct second *s = second_of(t, rest);
    if (!s || !mean_at(t, rest->run, rest->shape, false))
        return;
    double unknown_ns = s->rest_ns - s->predicted_ns, second_ns = 1e9 / s->counted_ns;
    double counted = s->counted * second_ns;
    double predicted = s->predicted * s->rest_ns / s->predicted_ns;
    double error = s->valued_error + s->predicted_error + UNKNOWN_SD * unknown_ns + COUNTER_ERROR * counted;
    double part = rest->ns / s->rest_ns;
    occ_gpu_results_add_rest(results, rest->second / 60, rest->run, rest->shape,
                             &(struct occ_gpu_rest){.shift_ns = part * (counted - s->valued - predicted),
                                                    .error_ns = part * error,
                                                    .ns = rest->ns});
}

/* Those of seconds that go on stay. */
static void keep_rests(struct occ_known_totals *t)
{
    size_t kept = 0;
    occ_map_clear(&t->rest_index);
    for (size_t i = 0; i < t->n_rests; i++) {
        const struct rest *rest = &t->rests[i];
        uint64_t key = hash((uint64_t)rest->second, (uint64_t)rest->run, rest->shape);
        if (rest->second < t->closed || occ_map_put(&t->rest_index, key, (uint32_t)kept) == OCC_MAP_NONE)
            continue;
        t->rests[kept++] = *rest;
    }
    t->n_rests = kept;
}

static int64_t oldest(const struct occ_known_totals *t, int64_t end)
{
    for (size_t i = 0; i < t->n_rests; i++)
        end = t->rests[i].second < end ? t->rests[i].second : end;
    return end;
}

void occ_known_totals_close(struct occ_known_totals *t, int64_t until_ns, bool now,
                            struct occ_gpu_results *results)
{
    int64_t end = until_ns / SECOND_NS - (now ? 0 : LAG_S);
    if (end < t->closed + (now ? 1 : EVERY_S))
        return;
    if (oldest(t, end) < end) {
        for (size_t i = 0; i < t->n_rests; i++)
            if (t->rests[i].second < end)
                predict(t, &t->rests[i]);
        for (size_t i = 0; i < t->n_rests; i++)
            if (t->rests[i].second < end)
                judge(t, &t->rests[i], results);
    }
    t->closed = end;
    keep_rests(t);
}
