/* See attribution_world.h. */
#include "attribution_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribution_random.h"

#define VARIANTS      4 /* block schedules of a configuration; each launch has one of them */
#define REASONS       5 /* of stalls */
#define RUNNING_MAX   16
#define SLICE_NS      2e6
#define BURST_S       2.0
#define BURST_NS      5e4
#define GROUP_NS      5e7 /* that share a factor (steps) */
#define LOST_TOGETHER 40  /* records, about */
#define CYCLES_PER_NS 1.7
#define ROTATION_NS   5.5e9
#define ROTATED_NS    5e8
#define WANDER_NS     1.1e10 /* period */

/* Of a configuration: what its launches have in common. */
struct character {
    struct physics_profile profiles[VARIANTS];
    double level, spread, phase, period_ns, stall[REASONS];
    double slow; /* exponent: how occupancy falls where a launch takes longer */
    bool changes;
};

struct sums {
    double warps, active, active_min, active_max, stall[REASONS];
};

struct running {
    double start_ns, end_ns, warps, active;
};

struct making {
    const struct world_options *o;
    struct world *world;
    uint64_t random;
    double *edges; /* n_samples + 1 */
    size_t n_samples, first;
    struct sums *sums;
    struct character *characters;
    struct running running[RUNNING_MAX];
    size_t n_running, lost_left;
};

static void *get(size_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size);
    if (!memory)
        abort();
    return memory;
}

/* ---- what configurations are like ---- */

static void draw_characters(struct making *m)
{
    const struct timeline *t = &m->world->timeline;
    const struct world_variation *v = &m->o->variation;
    m->characters = get(t->n_configs, sizeof *m->characters);
    for (uint32_t i = 0; i < t->n_configs; i++) {
        struct character *c = &m->characters[i];
        for (int j = 0; j < VARIANTS; j++)
            physics_make_profile(&t->configs[i], &m->random, &c->profiles[j]);
        c->changes = v->change_s > 0 && random_uniform(&m->random) < 1.0 / 3;
        c->level = random_between(&m->random, 0.5, 0.95) * (c->changes ? 0.5 : 1);
        c->spread = v->spread * random_uniform(&m->random);
        c->slow = random_between(&m->random, -0.3, 1);
        c->phase = random_uniform(&m->random);
        c->period_ns = random_between(&m->random, 4e10, 9e10);
        for (int j = 0; j < REASONS; j++)
            c->stall[j] = random_uniform(&m->random) < 0.3 ? random_uniform(&m->random) : 0;
    }
}

/* Of the configuration's full occupancy, in one launch; what its warps wait for differs with its data. */
static double draw_level(struct making *m, const struct character *c, const struct timeline_event *e)
{
    const struct world_variation *v = &m->o->variation;
    double turn = 6.283185307179586 * (e->start_ns / c->period_ns + c->phase);
    double level = c->level * (1 + v->drift * sin(turn)) * random_lognormal(&m->random, c->spread);
    uint64_t group = (uint64_t)(e->start_ns / GROUP_NS) + 1;
    level *= random_lognormal(&group, v->steps);
    if (c->changes && e->start_ns > v->change_s * 1e9)
        level *= 2;
    level *= pow(e->slowness, -c->slow);
    return fmin(level, 1);
}

/* ---- samples ---- */

static double interval_at(const struct world_sampling *s, double at_ns)
{
    double into_ns = at_ns - s->burst_at_s * 1e9;
    return s->burst_at_s > 0 && into_ns >= 0 && into_ns < BURST_S * 1e9 ? BURST_NS : s->interval_ns;
}

static void make_edges(struct making *m)
{
    const struct world_sampling *s = &m->o->sampling;
    size_t room = (size_t)(m->o->timeline.seconds * 1e9 / s->interval_ns + BURST_S * 1e9 / BURST_NS) + 2;
    m->edges = get(room + 1, sizeof *m->edges);
    double at_ns = 0;
    while (at_ns < m->o->timeline.seconds * 1e9 && m->n_samples < room) {
        at_ns += interval_at(s, at_ns);
        double jitter = fmin(fmax(s->edge_jitter_ns * random_normal(&m->random), -5000), 5000);
        m->edges[++m->n_samples] = at_ns + jitter;
    }
    m->sums = get(m->n_samples, sizeof *m->sums);
}

/* Calls for each sample that [from_ns, to_ns) overlaps; from_ns may only grow by more than it went back. */
static size_t first_sample(const struct making *m, double from_ns)
{
    size_t low = 0, high = m->n_samples;
    if (m->first < m->n_samples && m->edges[m->first] <= from_ns)
        low = m->first;
    while (low + 1 < high) {
        if (low + 8 < high && m->edges[low + 8] > from_ns)
            high = low + 8;
        size_t middle = (low + high) / 2;
        *(m->edges[middle] <= from_ns ? &low : &high) = middle;
    }
    return low;
}

/* A launch whose time runs from u_from to u_to within [from_ns, to_ns). */
struct piece {
    double from_ns, to_ns, u_from, u_to;
};

static void count_piece(struct making *m, const struct piece *p, const struct physics_profile *profile,
                        double level, const double *stall)
{
    double speed = (p->u_to - p->u_from) / (p->to_ns - p->from_ns), duration_ns = 1 / speed;
    m->first = first_sample(m, p->from_ns);
    for (size_t i = m->first; i < m->n_samples && m->edges[i] < p->to_ns; i++) {
        double from = p->u_from + (fmax(m->edges[i], p->from_ns) - p->from_ns) * speed,
               to = p->u_from + (fmin(m->edges[i + 1], p->to_ns) - p->from_ns) * speed;
        double warps = physics_until(profile->warps, to) - physics_until(profile->warps, from),
               active = physics_until(profile->active, to) - physics_until(profile->active, from);
        struct sums *s = &m->sums[i];
        s->warps += warps * level * duration_ns;
        s->active += active * duration_ns;
        s->active_min += profile->active_min * (to - from) * duration_ns;
        s->active_max += profile->active_max * (to - from) * duration_ns;
        for (int j = 0; j < REASONS; j++)
            s->stall[j] += stall[j] * active * duration_ns;
    }
}

/* SMs that two had at the same time were active once. */
static void count_shared(struct making *m, double from_ns, double to_ns, double active)
{
    for (size_t i = first_sample(m, from_ns); i < m->n_samples && m->edges[i] < to_ns; i++)
        m->sums[i].active -= active * (fmin(m->edges[i + 1], to_ns) - fmax(m->edges[i], from_ns));
}

/* ---- launches ---- */

/* What runs beside a launch takes its share of the SMs. Returns the level that is left for it. */
static double meet(struct making *m, const struct timeline_event *e, const struct physics_profile *profile,
                   double level)
{
    double end_ns = e->start_ns + e->duration_ns, taken = 0;
    size_t n = 0;
    for (size_t i = 0; i < m->n_running; i++) {
        struct running *r = &m->running[i];
        if (r->end_ns <= e->start_ns)
            continue;
        count_shared(m, e->start_ns, fmin(end_ns, r->end_ns), r->active * profile->active[PHYSICS_BINS]);
        taken += r->warps;
        m->running[n++] = *r;
    }
    double mean = profile->warps[PHYSICS_BINS] * level;
    if (m->o->others.neighbour == WORLD_MPS)
        level *= 1 - 0.35 * fmin(taken, 1);
    if (n > 0 && mean > fmax(0.95 - taken, 0.05))
        level *= fmax(0.95 - taken, 0.05) / mean;
    m->n_running = n;
    if (n < RUNNING_MAX)
        m->running[m->n_running++] = (struct running){
            e->start_ns, end_ns, profile->warps[PHYSICS_BINS] * level, profile->active[PHYSICS_BINS]};
    return level;
}

/* Two processes take turns on the GPU: from a process's own time to the GPU's. */
static double sliced(double at_ns, uint32_t process)
{
    double slice = floor(at_ns / SLICE_NS);
    return (2 * slice + (process % 2)) * SLICE_NS + (at_ns - slice * SLICE_NS);
}

/* Counts a launch in all its time slices; returns its end. */
static double count_slices(struct making *m, const struct timeline_event *e,
                           const struct physics_profile *profile, double level, const double *stall)
{
    double at_ns = e->start_ns, end_ns = e->start_ns + e->duration_ns, to_ns = 0;
    while (at_ns < end_ns) {
        double next_ns = fmin((floor(at_ns / SLICE_NS) + 1) * SLICE_NS, end_ns);
        double from_ns = sliced(at_ns, e->stream);
        to_ns = from_ns + (next_ns - at_ns);
        const struct piece p = {from_ns, to_ns, (at_ns - e->start_ns) / e->duration_ns,
                                (next_ns - e->start_ns) / e->duration_ns};
        count_piece(m, &p, profile, level, stall);
        at_ns = next_ns;
    }
    return to_ns;
}

static bool is_lost(struct making *m)
{
    double lost = m->o->others.lost;
    if (m->lost_left > 0) {
        m->lost_left--;
        return true;
    }
    if (random_uniform(&m->random) < lost / (1 - lost) / LOST_TOGETHER)
        m->lost_left = (size_t)(LOST_TOGETHER * random_exponential(&m->random));
    return m->lost_left > 0;
}

static void report_launch(struct making *m, const struct timeline_event *e, double start_ns, double end_ns,
                          struct world_launch *launch)
{
    const struct world_sampling *s = &m->o->sampling;
    double tick = fmax(s->tick_ns, 1);
    double start = fmax(start_ns + s->record_jitter_ns * random_normal(&m->random), 0),
           end = end_ns + s->record_jitter_ns * random_normal(&m->random);
    launch->start_ns = WORLD_EPOCH_NS + (int64_t)(floor(start / tick) * tick);
    launch->end_ns = WORLD_EPOCH_NS + (int64_t)(floor(end / tick) * tick);
    if (launch->end_ns <= launch->start_ns)
        launch->end_ns = launch->start_ns + (int64_t)tick;
    bool hidden = m->o->others.untraced && e->stream > 0;
    launch->reported = !(hidden || (m->o->others.lost > 0 && is_lost(m)));
}

static void run_launch(struct making *m, const struct timeline_event *e, struct world_launch *launch)
{
    const struct character *c = &m->characters[e->config];
    const struct physics_profile *profile = &c->profiles[random_bits(&m->random) % VARIANTS];
    double level = draw_level(m, c, e), start_ns = e->start_ns, end_ns = e->start_ns + e->duration_ns;
    bool overlapped = false;
    if (m->o->others.neighbour == WORLD_SLICES) {
        start_ns = sliced(e->start_ns, e->stream);
        end_ns = count_slices(m, e, profile, level, c->stall);
        overlapped = true;
    } else {
        level = meet(m, e, profile, level);
        overlapped = m->n_running > 1;
        const struct piece p = {start_ns, end_ns, 0, 1};
        count_piece(m, &p, profile, level, c->stall);
    }
    double part = e->duration_ns / (end_ns - start_ns); /* of its time it has the GPU */
    *launch = (struct world_launch){.config = e->config,
                                    .overlapped = overlapped,
                                    .duration_ns = end_ns - start_ns,
                                    .elapsed = profile->warps[PHYSICS_BINS] * level * part,
                                    .active = profile->active[PHYSICS_BINS] * part};
    report_launch(m, e, start_ns, end_ns, launch);
}

static int by_reported_start(const void *a, const void *b)
{
    int64_t x = ((const struct world_launch *)a)->start_ns, y = ((const struct world_launch *)b)->start_ns;
    return (x > y) - (x < y);
}

/* ---- work that nobody traces ---- */

static void count_background(struct making *m, double from_ns, double to_ns, double level)
{
    for (size_t i = first_sample(m, from_ns); i < m->n_samples && m->edges[i] < to_ns; i++) {
        double ns = fmin(m->edges[i + 1], to_ns) - fmax(m->edges[i], from_ns);
        double whole_ns = m->edges[i + 1] - m->edges[i];
        double busy = fmin(m->sums[i].active / whole_ns, 1), active = fmin(2 * level, 1);
        m->sums[i].warps += level * ns;
        m->sums[i].active += (1 - busy) * active * ns;
    }
}

static void add_background(struct making *m)
{
    const struct world_others *o = &m->o->others;
    double end_ns = m->o->timeline.seconds * 1e9;
    if (o->constant > 0)
        count_background(m, 0, end_ns, o->constant);
    for (double at_ns = 0; o->bursty > 0 && at_ns < end_ns;) {
        double for_ns = 5e6 * random_exponential(&m->random) + 1e5;
        count_background(m, at_ns, at_ns + for_ns, o->bursty * random_between(&m->random, 0.5, 1.5));
        at_ns += for_ns + 1e7 * random_exponential(&m->random);
    }
}

/* ---- counters ---- */

static double sample_time(const struct world_options *o, double at_ns)
{
    const struct world_sampling *s = &o->sampling;
    double turn = 6.283185307179586 * at_ns / WANDER_NS;
    double jump_ns = at_ns > 0.4e9 * o->timeline.seconds ? s->jump_ns : 0;
    return at_ns * (1 + s->ppm * 1e-6) + s->offset_ns + s->wander_ns * sin(turn) + jump_ns;
}

static double cycles_per_ns(const struct world_sampling *s, double at_ns)
{
    return CYCLES_PER_NS * (1 - (fmod(at_ns, 3e9) < 1e9 ? s->frequency_drop : 0));
}

static void fill_counters(struct making *m, size_t i, struct occ_sample *sample)
{
    const struct sums *sums = &m->sums[i];
    double ns = m->edges[i + 1] - m->edges[i], speed = cycles_per_ns(&m->o->sampling, m->edges[i]);
    const struct timeline *t = &m->world->timeline;
    double noise = m->o->sampling.noise, cycles = t->sms * speed;
    double *v = sample->value;
    double active = fmin(fmax(sums->active, 0), ns);
    v[OCC_COUNTER_ELAPSED] = ns * speed;
    v[OCC_COUNTER_WARPS] = fmin(fmax(sums->warps, 0), ns) * cycles * t->warps_per_sm;
    v[OCC_COUNTER_ACTIVE] = active * cycles;
    v[OCC_COUNTER_BLOCKS] = v[OCC_COUNTER_WARPS] / 6;
    v[OCC_COUNTER_ACTIVE_MIN] = fmin(sums->active_min, active) * speed;
    v[OCC_COUNTER_ACTIVE_MAX] = fmin(fmax(sums->active_max, active), ns) * speed;
    for (int j = OCC_COUNTER_WARPS; j <= OCC_COUNTER_ACTIVE; j++)
        v[j] *= fmax(1 + noise * random_normal(&m->random), 0);
    v[OCC_COUNTER_ACTIVE] = fmin(v[OCC_COUNTER_ACTIVE], ns * cycles);
    v[OCC_COUNTER_STALL_REGISTERS] = sums->stall[0] * cycles;
    v[OCC_COUNTER_STALL_WARPS] = sums->stall[3] * cycles;
}

static void fill_stalls(const struct making *m, const struct sums *sums, struct occ_sample *sample)
{
    for (int i = 0; i < REASONS; i++)
        sample->value[OCC_COUNTER_STALL_REGISTERS + i] =
            sums->stall[i] * m->world->timeline.sms * CYCLES_PER_NS;
}

static void make_samples(struct making *m)
{
    const struct world_sampling *s = &m->o->sampling;
    struct world *world = m->world;
    double gap_until_ns = 0;
    world->samples = get(m->n_samples, sizeof *world->samples);
    for (size_t i = 0; i < m->n_samples; i++) {
        double from_ns = m->edges[i];
        if (s->missing > 0 && random_uniform(&m->random) < s->missing / 200)
            gap_until_ns = from_ns + 3e7;
        if (from_ns < gap_until_ns || random_uniform(&m->random) < s->missing)
            continue;
        struct occ_sample *sample = &world->samples[world->n_samples++];
        sample->start_ns = WORLD_EPOCH_NS + (int64_t)llround(sample_time(m->o, from_ns));
        sample->end_ns = WORLD_EPOCH_NS + (int64_t)llround(sample_time(m->o, m->edges[i + 1]));
        for (int j = 0; j < OCC_COUNTER_COUNT; j++)
            sample->value[j] = NAN;
        if (s->rotated && fmod(from_ns, ROTATION_NS) > ROTATION_NS - ROTATED_NS)
            fill_stalls(m, &m->sums[i], sample);
        else
            fill_counters(m, i, sample);
    }
}

static void run_launches(struct making *m)
{
    struct world *world = m->world;
    double end_ns = m->o->timeline.seconds * 1e9 - 1e6;
    world->launches = get(world->timeline.n_events, sizeof *world->launches);
    for (size_t i = 0; i < world->timeline.n_events; i++) {
        const struct timeline_event *e = &world->timeline.events[i];
        double until_ns = e->start_ns + e->duration_ns;
        if (m->o->others.neighbour == WORLD_SLICES)
            until_ns = sliced(until_ns, e->stream);
        if (until_ns < end_ns)
            run_launch(m, e, &world->launches[world->n_launches++]);
    }
    qsort(world->launches, world->n_launches, sizeof *world->launches, by_reported_start);
}

struct world *world_make(const struct world_options *o, uint64_t seed)
{
    struct making m = {.o = o, .random = seed * 7919 + 17};
    m.world = get(1, sizeof *m.world);
    m.world->graph = o->timeline.graph_gap_ns > 0;
    struct timeline_options timeline = o->timeline;
    timeline.stragglers = o->variation.stragglers;
    if (timeline_make(&timeline, &m.random, &m.world->timeline) != 0) {
        world_free(m.world);
        return NULL;
    }
    draw_characters(&m);
    make_edges(&m);
    run_launches(&m);
    add_background(&m);
    make_samples(&m);
    free(m.edges);
    free(m.sums);
    free(m.characters);
    free(m.world->timeline.events);
    m.world->timeline.events = NULL;
    return m.world;
}

void world_free(struct world *world)
{
    timeline_free(&world->timeline);
    free(world->launches);
    free(world->samples);
    free(world);
}
