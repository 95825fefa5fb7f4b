/* See attribution_counters.h. */
#include "attribution_counters.h"

#include <math.h>
#include <stdlib.h>

#include "attribution_random.h"

#define REASONS       COUNTERS_REASONS
#define BURST_S       2.0
#define BURST_NS      5e4
#define CYCLES_PER_NS 1.7
#define ROTATION_NS   5.5e9
#define ROTATED_NS    5e8
#define WANDER_NS     1.1e10 /* period */

struct counters_sums {
    double warps, active, active_min, active_max, stall[REASONS], busy[PHYSICS_UNITS];
    double launched; /* blocks */
};

static void *get(size_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size);
    if (!memory)
        abort();
    return memory;
}

/* ---- counting ---- */

static double interval_at(const struct counters_options *s, double at_ns)
{
    double into_ns = at_ns - s->burst_at_s * 1e9;
    return s->burst_at_s > 0 && into_ns >= 0 && into_ns < BURST_S * 1e9 ? BURST_NS : s->interval_ns;
}

void counters_open(struct counters *c)
{
    const struct counters_options *s = c->options;
    size_t room = (size_t)(c->end_ns / s->interval_ns + BURST_S * 1e9 / BURST_NS) + 2;
    c->edges = get(room + 1, sizeof *c->edges);
    c->own_random = *c->random ^ UINT64_C(0x5bd1e995);
    double at_ns = 0;
    while (at_ns < c->end_ns && c->n < room) {
        at_ns += interval_at(s, at_ns);
        double jitter = fmin(fmax(s->edge_jitter_ns * random_normal(c->random), -5000), 5000);
        c->edges[++c->n] = at_ns + jitter;
    }
    c->sums = get(c->n, sizeof *c->sums);
}

/* Returns the sample that contains from_ns; the search begins at the previous result. */
static size_t first_sample(const struct counters *c, double from_ns)
{
    size_t low = 0, high = c->n;
    if (c->last < c->n && c->edges[c->last] <= from_ns)
        low = c->last;
    while (low + 1 < high) {
        if (low + 8 < high && c->edges[low + 8] > from_ns)
            high = low + 8;
        size_t middle = (low + high) / 2;
        *(c->edges[middle] <= from_ns ? &low : &high) = middle;
    }
    return low;
}

void counters_add(struct counters *c, const struct counters_piece *p)
{
    const struct physics_profile *profile = p->profile;
    double speed = (p->u_to - p->u_from) / (p->to_ns - p->from_ns), duration_ns = 1 / speed;
    c->last = first_sample(c, p->from_ns);
    for (size_t i = c->last; i < c->n && c->edges[i] < p->to_ns; i++) {
        double from = p->u_from + (fmax(c->edges[i], p->from_ns) - p->from_ns) * speed,
               to = p->u_from + (fmin(c->edges[i + 1], p->to_ns) - p->from_ns) * speed;
        double warps = physics_until(profile->warps, to) - physics_until(profile->warps, from),
               active = physics_until(profile->active, to) - physics_until(profile->active, from);
        struct counters_sums *s = &c->sums[i];
        s->warps += warps * p->level * duration_ns;
        s->active += active * duration_ns;
        s->launched +=
            p->blocks * (physics_until(profile->started, to) - physics_until(profile->started, from));
        s->active_min += profile->active_min * (to - from) * duration_ns;
        s->active_max += profile->active_max * (to - from) * duration_ns;
        for (int j = 0; j < REASONS; j++)
            s->stall[j] += p->stall[j] * active * duration_ns;
        for (int j = 0; j < PHYSICS_UNITS && p->busy; j++)
            s->busy[j] += (physics_until(p->busy->until[j], to) - physics_until(p->busy->until[j], from)) *
                          p->busy_level * duration_ns;
    }
}

void counters_share(struct counters *c, double from_ns, double to_ns, double active)
{
    for (size_t i = first_sample(c, from_ns); i < c->n && c->edges[i] < to_ns; i++)
        c->sums[i].active -= active * (fmin(c->edges[i + 1], to_ns) - fmax(c->edges[i], from_ns));
}

void counters_add_background(struct counters *c, double from_ns, double to_ns, double level)
{
    if (c->background_warp_ns == 0) /* warp time of a block: 8 warps for 20 us to 2 ms */
        c->background_warp_ns = 8 * 2e4 * pow(100, random_uniform(&c->own_random));
    for (size_t i = first_sample(c, from_ns); i < c->n && c->edges[i] < to_ns; i++) {
        double ns = fmin(c->edges[i + 1], to_ns) - fmax(c->edges[i], from_ns);
        double whole_ns = c->edges[i + 1] - c->edges[i];
        double busy = fmin(c->sums[i].active / whole_ns, 1), active = fmin(2 * level, 1);
        c->sums[i].warps += level * ns;
        c->sums[i].active += (1 - busy) * active * ns;
        c->sums[i].launched += level * ns * c->sms * c->warps_per_sm / c->background_warp_ns;
        for (int j = 0; j < PHYSICS_UNITS; j++)
            c->sums[i].busy[j] += 0.5 * level * ns;
    }
}

/* ---- delivering ---- */

static double sample_time(const struct counters *c, double at_ns)
{
    const struct counters_options *s = c->options;
    double turn = 6.283185307179586 * at_ns / WANDER_NS;
    double jump_ns = at_ns > 0.4 * c->end_ns ? s->jump_ns : 0;
    return at_ns * (1 + s->ppm * 1e-6) + s->offset_ns + s->wander_ns * sin(turn) + jump_ns;
}

static double cycles_per_ns(const struct counters_options *s, double at_ns)
{
    return CYCLES_PER_NS * (1 - (fmod(at_ns, 3e9) < 1e9 ? s->frequency_drop : 0));
}

/* Returns stalled cycles. Stalls are counted per TPC (two SMs), at most the whole time. */
static double stalled_cycles(const struct counters *c, size_t i, int reason)
{
    double ns = fmin(c->sums[i].stall[reason], c->edges[i + 1] - c->edges[i]);
    return ns * c->sms / 2 * cycles_per_ns(c->options, c->edges[i]);
}

static void fill_stalls(const struct counters *c, size_t i, struct occ_sample *sample)
{
    for (int reason = 0; reason < REASONS; reason++)
        sample->value[OCC_COUNTER_STALL_REGISTERS + reason] = stalled_cycles(c, i, reason);
}

static void fill_counters(struct counters *c, size_t i, struct occ_sample *sample)
{
    const struct counters_sums *sums = &c->sums[i];
    double ns = c->edges[i + 1] - c->edges[i], speed = cycles_per_ns(c->options, c->edges[i]);
    double noise = c->options->noise, cycles = c->sms * speed;
    double *v = sample->value;
    double active = fmin(fmax(sums->active, 0), ns);
    v[OCC_COUNTER_ELAPSED] = ns * speed;
    v[OCC_COUNTER_WARPS] = fmin(fmax(sums->warps, 0), ns) * cycles * c->warps_per_sm;
    v[OCC_COUNTER_ACTIVE] = active * cycles;
    v[OCC_COUNTER_LAUNCHED] = floor(sums->launched + 0.5);
    v[OCC_COUNTER_BLOCKS] = v[OCC_COUNTER_WARPS] / 6;
    v[OCC_COUNTER_ACTIVE_MIN] = fmin(sums->active_min, active) * speed;
    v[OCC_COUNTER_ACTIVE_MAX] = fmin(fmax(sums->active_max, active), ns) * speed;
    for (int j = OCC_COUNTER_WARPS; j <= OCC_COUNTER_ACTIVE; j++)
        v[j] *= fmax(1 + noise * random_normal(c->random), 0);
    v[OCC_COUNTER_ACTIVE] = fmin(v[OCC_COUNTER_ACTIVE], ns * cycles);
    v[OCC_COUNTER_STALL_REGISTERS] = stalled_cycles(c, i, 0);
    v[OCC_COUNTER_STALL_WARPS] = stalled_cycles(c, i, 3);
}

static void fill_busy(struct counters *c, size_t i, struct occ_sample *sample)
{
    const struct counters_sums *sums = &c->sums[i];
    double ns = c->edges[i + 1] - c->edges[i], speed = cycles_per_ns(c->options, c->edges[i]);
    double noise = c->options->noise;
    sample->value[OCC_COUNTER_ELAPSED] = ns * speed;
    sample->value[OCC_COUNTER_ACTIVE] = fmin(fmax(sums->active, 0), ns) * c->sms * speed;
    for (int j = 0; j < PHYSICS_UNITS; j++)
        sample->value[OCC_COUNTER_UTILIZATION + j] =
            100 * fmin(sums->busy[j] / ns * fmax(1 + noise * random_normal(&c->own_random), 0), 1);
}

struct occ_sample *counters_read(struct counters *c, size_t *ret_n)
{
    const struct counters_options *s = c->options;
    double gap_until_ns = 0;
    struct occ_sample *samples = get(c->n, sizeof *samples);
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        double from_ns = c->edges[i];
        if (s->missing > 0 && random_uniform(c->random) < s->missing / 200)
            gap_until_ns = from_ns + 3e7;
        if (from_ns < gap_until_ns || random_uniform(c->random) < s->missing)
            continue;
        struct occ_sample *sample = &samples[n++];
        sample->start_ns = COUNTERS_EPOCH_NS + (int64_t)llround(sample_time(c, from_ns));
        sample->end_ns = COUNTERS_EPOCH_NS + (int64_t)llround(sample_time(c, c->edges[i + 1]));
        for (int j = 0; j < OCC_COUNTER_COUNT; j++)
            sample->value[j] = NAN;
        double turn_ns = fmod(from_ns, ROTATION_NS) - (ROTATION_NS - ROTATED_NS);
        if (s->rotated && turn_ns > ROTATED_NS / 2)
            fill_busy(c, i, sample);
        else if (s->rotated && turn_ns > 0)
            fill_stalls(c, i, sample);
        else
            fill_counters(c, i, sample);
    }
    *ret_n = n;
    return samples;
}

void counters_close(struct counters *c)
{
    free(c->edges);
    free(c->sums);
}
