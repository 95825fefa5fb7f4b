/* See attribution_world.h. */
#include "attribution_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribution_random.h"

#define VARIANTS        4 /* block schedules per configuration; each launch has one of them */
#define RUNNING_MAX     16
#define SLICE_NS        2e6
#define GROUP_NS        5e7 /* launches within this time share a factor (steps) */
#define LOST_TOGETHER   40  /* mean number of consecutive lost records */
#define STICKY_LAUNCHES 30
#define BIMODAL_PART    0.3

/* Properties that the launches of a configuration share. */
struct character {
    struct physics_profile profiles[VARIANTS];
    struct physics_busy busy[VARIANTS];
    double level, spread, phase, period_ns, stall[COUNTERS_REASONS];
    double slow;          /* exponent: a launch with a longer duration has a lower occupancy */
    bool changes, is_low; /* is_low: in the lower one of two alternating modes */
    uint32_t mode_left;   /* launches until the mode is drawn again */
};

struct running {
    double start_ns, end_ns, warps, active;
};

struct making {
    const struct world_options *o;
    struct world *world;
    uint64_t random, own_random; /* own_random: use of units; no other draw depends on it */
    struct counters counters;
    struct character *characters;
    struct running running[RUNNING_MAX];
    size_t n_running, lost_left;
    uint32_t previous; /* configuration of the previous launch */
    uint64_t nodes;    /* base of the nodes' random numbers */
};

static void *get(size_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size);
    if (!memory)
        abort();
    return memory;
}

/* ---- properties of configurations ---- */

static void draw_characters(struct making *m)
{
    const struct timeline *t = &m->world->timeline;
    const struct world_variation *v = &m->o->variation;
    m->characters = get(t->n_configs, sizeof *m->characters);
    for (uint32_t i = 0; i < t->n_configs; i++) {
        struct character *c = &m->characters[i];
        for (int j = 0; j < VARIANTS; j++)
            physics_make_profile(&t->configs[i], &m->random, &c->profiles[j]);
        bool can_change = v->change_s > 0 || v->phase_s > 0;
        c->changes = can_change && random_uniform(&m->random) < 1.0 / 3;
        c->level = random_between(&m->random, 0.5, 0.95) * (c->changes ? 0.5 : 1);
        c->spread = v->spread * random_uniform(&m->random);
        c->slow = random_between(&m->random, -0.3, 1);
        c->phase = random_uniform(&m->random);
        c->period_ns = random_between(&m->random, 4e10, 9e10);
        for (int j = 0; j < COUNTERS_REASONS; j++)
            c->stall[j] = random_uniform(&m->random) < 0.3 ? random_uniform(&m->random) : 0;
        uint64_t same = m->own_random + i; /* all variants have the same use of units */
        for (int j = 0; j < VARIANTS; j++) {
            uint64_t random = same * UINT64_C(0x9e3779b97f4a7c15);
            physics_make_busy(&t->configs[i], &c->profiles[j], c->level, &random, &c->busy[j]);
        }
    }
}

/* Returns the factor of the launch's occupancy for the kernel's current mode. */
static double draw_mode(struct making *m, struct character *c, const struct timeline_event *e)
{
    const struct world_variation *v = &m->o->variation;
    double factor = e->alone && v->alone > 0 ? v->alone : 1;
    if (v->sticky > 0 && c->mode_left == 0) {
        c->mode_left = 1 + (uint32_t)(STICKY_LAUNCHES * random_exponential(&m->random));
        c->is_low = random_uniform(&m->random) < 0.5;
    }
    c->mode_left -= c->mode_left > 0;
    if (v->bimodal > 0 && random_uniform(&m->random) < BIMODAL_PART)
        factor *= v->bimodal;
    return c->is_low ? factor * v->sticky : factor;
}

/* True if configurations that change have twice their usual occupancy at this time. */
static bool is_doubled(const struct world_variation *v, double at_ns)
{
    bool is_odd_phase = v->phase_s > 0 && fmod(at_ns, 2e9 * v->phase_s) >= 1e9 * v->phase_s;
    return is_odd_phase || (v->change_s > 0 && at_ns > v->change_s * 1e9);
}

/* Draws a launch's level: the factor of the occupancy of its profile. */
static double draw_level(struct making *m, struct character *c, const struct timeline_event *e)
{
    const struct world_variation *v = &m->o->variation;
    double turn = 6.283185307179586 * (e->start_ns / c->period_ns + c->phase);
    double level = c->level * (1 + v->drift * sin(turn)) * random_lognormal(&m->random, c->spread);
    uint64_t group = (uint64_t)(e->start_ns / GROUP_NS) + 1;
    level *= random_lognormal(&group, v->steps);
    if (c->changes && is_doubled(v, e->start_ns))
        level *= 2;
    level *= draw_mode(m, c, e);
    level *= pow(e->slowness, -c->slow);
    uint64_t pair = ((uint64_t)m->previous << 32 | e->config) + 1;
    level *= random_lognormal(&pair, v->context);
    m->previous = e->config;
    uint64_t node = m->nodes + e->node;
    level *= v->nodes > 0 ? random_lognormal(&node, v->nodes) : 1;
    return fmin(level, 1);
}

/* ---- launches ---- */

/* Subtracts active time that the launch shares with running launches, and removes launches that have ended.
 */
static void meet(struct making *m, const struct timeline_event *e, const struct physics_profile *profile)
{
    double end_ns = e->start_ns + e->duration_ns;
    size_t n = 0;
    for (size_t i = 0; i < m->n_running; i++) {
        struct running *r = &m->running[i];
        if (r->end_ns <= e->start_ns)
            continue;
        counters_share(&m->counters, e->start_ns, fmin(end_ns, r->end_ns),
                       r->active * profile->active[PHYSICS_BINS]);
        m->running[n++] = *r;
    }
    m->n_running = n;
}

/* Returns the level that running launches leave for this launch at `at_ns`; lowers *ret_until to the next end
 * of a running launch. */
static double level_beside(const struct making *m, const struct physics_profile *profile, double level,
                           double at_ns, double *ret_until)
{
    double taken = 0, mean = profile->warps[PHYSICS_BINS] * level;
    for (size_t i = 0; i < m->n_running; i++)
        if (m->running[i].end_ns > at_ns) {
            taken += m->running[i].warps;
            *ret_until = fmin(*ret_until, m->running[i].end_ns);
        }
    if (m->o->others.neighbour == WORLD_MPS)
        level *= 1 - 0.35 * fmin(taken, 1);
    if (taken > 0 && mean > fmax(0.95 - taken, 0.05))
        level *= fmax(0.95 - taken, 0.05) / mean;
    return level;
}

/* Adds a piece of the launch to its truth. */
static void add_truth(const struct counters_piece *p, struct world_launch *launch)
{
    const double *warps = p->profile->warps, *active = p->profile->active;
    launch->elapsed += p->level * (physics_until(warps, p->u_to) - physics_until(warps, p->u_from));
    launch->active += physics_until(active, p->u_to) - physics_until(active, p->u_from);
    for (int i = 0; i < PHYSICS_UNITS; i++)
        launch->busy[i] += p->busy_level * (physics_until(p->busy->until[i], p->u_to) -
                                            physics_until(p->busy->until[i], p->u_from));
}

/* Counts a launch whose level rises whenever a concurrent launch ends. */
static void count_beside(struct making *m, const struct counters_piece *whole, struct world_launch *launch)
{
    struct counters_piece p = *whole;
    double most = 0;
    for (p.to_ns = p.from_ns; p.to_ns < whole->to_ns; p.from_ns = p.to_ns, p.u_from = p.u_to) {
        p.to_ns = whole->to_ns;
        p.level = level_beside(m, p.profile, whole->level, p.from_ns, &p.to_ns);
        p.busy_level = whole->busy_level * p.level / whole->level;
        p.u_to = (p.to_ns - whole->from_ns) / (whole->to_ns - whole->from_ns);
        most = fmax(most, p.level);
        counters_add(&m->counters, &p);
        add_truth(&p, launch);
    }
    if (m->n_running < RUNNING_MAX)
        m->running[m->n_running++] =
            (struct running){whole->from_ns, whole->to_ns, p.profile->warps[PHYSICS_BINS] * most,
                             p.profile->active[PHYSICS_BINS]};
}

/* Converts a process's own time to the GPU's time; two processes alternate on the GPU. */
static double sliced(double at_ns, uint32_t process)
{
    double slice = floor(at_ns / SLICE_NS);
    return (2 * slice + (process % 2)) * SLICE_NS + (at_ns - slice * SLICE_NS);
}

/* Counts a launch in all its time slices; returns its end. */
static double count_slices(struct making *m, const struct timeline_event *e, struct counters_piece p)
{
    double at_ns = e->start_ns, end_ns = e->start_ns + e->duration_ns, to_ns = 0;
    while (at_ns < end_ns) {
        double next_ns = fmin((floor(at_ns / SLICE_NS) + 1) * SLICE_NS, end_ns);
        double from_ns = sliced(at_ns, e->stream);
        to_ns = from_ns + (next_ns - at_ns);
        p.from_ns = from_ns;
        p.to_ns = to_ns;
        p.u_from = (at_ns - e->start_ns) / e->duration_ns;
        p.u_to = (next_ns - e->start_ns) / e->duration_ns;
        counters_add(&m->counters, &p);
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
    const struct counters_options *s = &m->o->sampling;
    double tick = fmax(s->tick_ns, 1);
    double start = fmax(start_ns + s->record_jitter_ns * random_normal(&m->random), 0),
           end = end_ns + s->record_jitter_ns * random_normal(&m->random);
    launch->start_ns = WORLD_EPOCH_NS + (int64_t)(floor(start / tick) * tick);
    launch->end_ns = WORLD_EPOCH_NS + (int64_t)(floor(end / tick) * tick);
    if (launch->end_ns <= launch->start_ns)
        launch->end_ns = launch->start_ns + (int64_t)tick;
    bool hidden = m->o->others.untraced && e->stream > 0;
    hidden |= launch->is_memory && m->o->others.memory_untraced;
    launch->reported = !(hidden || (m->o->others.lost > 0 && is_lost(m)));
}

static bool is_memory(const struct world_options *o, uint32_t config)
{
    return o->others.memory > 0 && config % o->others.memory == o->others.memory / 2;
}

static void run_launch(struct making *m, const struct timeline_event *e, struct world_launch *launch)
{
    struct character *c = &m->characters[e->config];
    size_t variant = random_bits(&m->random) % VARIANTS;
    const struct physics_profile *profile = &c->profiles[variant];
    double level = draw_level(m, c, e), start_ns = e->start_ns, end_ns = e->start_ns + e->duration_ns;
    double busy_level = fmin(random_lognormal(&m->own_random, c->spread), 1.05);
    struct counters_piece p = {start_ns,   end_ns,
                               0,          1,
                               profile,    level,
                               c->stall,   &c->busy[variant],
                               busy_level, m->world->timeline.configs[e->config].grid_blocks};
    *launch =
        (struct world_launch){.config = e->config, .node = e->node, .is_memory = is_memory(m->o, e->config)};
    if (m->o->others.neighbour == WORLD_SLICES) {
        start_ns = sliced(e->start_ns, e->stream);
        end_ns = count_slices(m, e, p);
        add_truth(&p, launch);
        launch->overlapped = true;
    } else {
        meet(m, e, profile);
        count_beside(m, &p, launch);
        launch->overlapped = m->n_running > 1;
    }
    double part = e->duration_ns / (end_ns - start_ns); /* share of its time on the GPU */
    launch->duration_ns = end_ns - start_ns;
    launch->elapsed *= part;
    launch->active *= part;
    for (int i = 0; i < PHYSICS_UNITS; i++)
        launch->busy[i] *= part;
    report_launch(m, e, start_ns, end_ns, launch);
}

static int by_reported_start(const void *a, const void *b)
{
    int64_t x = ((const struct world_launch *)a)->start_ns, y = ((const struct world_launch *)b)->start_ns;
    return (x > y) - (x < y);
}

/* ---- untraced work ---- */

static void add_background(struct making *m)
{
    const struct world_others *o = &m->o->others;
    double end_ns = m->o->timeline.seconds * 1e9;
    if (o->constant > 0)
        counters_add_background(&m->counters, 0, end_ns, o->constant);
    for (double at_ns = 0; o->bursty > 0 && at_ns < end_ns;) {
        double for_ns = 5e6 * random_exponential(&m->random) + 1e5;
        counters_add_background(&m->counters, at_ns, at_ns + for_ns,
                                o->bursty * random_between(&m->random, 0.5, 1.5));
        at_ns += for_ns + 1e7 * random_exponential(&m->random);
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
    struct making m = {
        .o = o, .random = seed * 7919 + 17, .own_random = seed * 104729 + 5, .nodes = seed << 32};
    m.world = get(1, sizeof *m.world);
    struct timeline_options timeline = o->timeline;
    timeline.stragglers = o->variation.stragglers;
    if (timeline_make(&timeline, &m.random, &m.world->timeline) != 0) {
        world_free(m.world);
        return NULL;
    }
    draw_characters(&m);
    m.counters = (struct counters){.options = &o->sampling,
                                   .end_ns = o->timeline.seconds * 1e9,
                                   .sms = m.world->timeline.sms,
                                   .warps_per_sm = m.world->timeline.warps_per_sm,
                                   .random = &m.random};
    counters_open(&m.counters);
    run_launches(&m);
    add_background(&m);
    m.world->samples = counters_read(&m.counters, &m.world->n_samples);
    counters_close(&m.counters);
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
