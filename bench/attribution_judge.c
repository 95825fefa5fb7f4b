/* See attribution_judge.h. */
#include "attribution_judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/counters/ratios.h"
#include "heap_peak.h"

#define ROUND_NS     INT64_C(50000000)
#define FLUSH_NS     INT64_C(1000000000)
#define WATERMARK_NS INT64_C(4000000000)
#define Z            1.96
#define MINORITY     0.1 /* store/measured.h: launches that may lack a value of their own ... */
#define ALIKE        1.2 /* ... unless they last as long as the others */
#define MIN_SE       1e-12

/* Sums of a configuration; times in ns. */
struct cell {
    double own_ns, own, se_ns, achieved_ns, achieved, achieved_se_ns; /* reported */
    double group_ns, group, group_se_ns;
    uint64_t n_own, n_group, n;
    double ns, warps_ns, active_ns; /* the truth */
    double alone_ns;
    double busy_ns[PHYSICS_UNITS];                                                             /* the truth */
    double own_busy_ns[PHYSICS_UNITS], own_busy[PHYSICS_UNITS], own_busy_se_ns[PHYSICS_UNITS]; /* reported */
};

struct judging {
    const struct judge_options *o;
    const struct world *world;
    struct judge_result *result;
    struct occ_attribution *a;
    struct occ_ratio_scale scale;
    struct cell *cells;                              /* by configuration */
    const struct world_launch **waiting, **arriving; /* by start; by arrival */
    size_t n_waiting, n_arriving, next_arriving, next_sample;
};

static void *get(size_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size);
    if (!memory)
        abort();
    return memory;
}

static double cpu_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ---- tallies ---- */

static void tally(struct judge_tally *t, double value, double se, double truth, double weight)
{
    double error = fabs(value - truth);
    bool covered = error <= Z * fmax(se, MIN_SE);
    t->n++;
    t->covered += covered;
    t->beyond += error > 3 * fmax(se, MIN_SE);
    t->weight += weight;
    t->covered_weight += covered ? weight : 0;
    t->squared_weight += weight * weight;
    t->error += error * weight;
    t->worst = fmax(t->worst, error);
}

static void push_half_width(struct judge_result *r, double half_width)
{
    if (r->n_half_widths == r->half_widths_room) {
        r->half_widths_room = r->half_widths_room ? 2 * r->half_widths_room : 256;
        r->half_widths = realloc(r->half_widths, r->half_widths_room * sizeof *r->half_widths);
        if (!r->half_widths)
            abort();
    }
    r->half_widths[r->n_half_widths++] = half_width;
}

/* ---- configurations ---- */

/* NULL: the launch is not judged. */
static struct cell *cell_of(const struct judging *g, const struct world_launch *l)
{
    double at_s = (double)(l->start_ns - WORLD_EPOCH_NS) * 1e-9;
    return at_s < g->o->from_s ? NULL : &g->cells[l->config];
}

static void sum_truth(struct judging *g)
{
    for (size_t i = 0; i < g->world->n_launches; i++) {
        const struct world_launch *l = &g->world->launches[i];
        struct cell *c = l->reported ? cell_of(g, l) : NULL;
        if (!c)
            continue;
        c->n++;
        c->ns += l->duration_ns;
        c->warps_ns += l->elapsed * l->duration_ns;
        c->active_ns += l->active * l->duration_ns;
        c->alone_ns += l->overlapped ? 0 : l->duration_ns;
        for (int k = 0; k < PHYSICS_UNITS; k++)
            c->busy_ns[k] += l->busy[k] * l->duration_ns;
    }
}

static void add_own(struct cell *c, const struct occ_measured *m, double ns)
{
    for (int k = 0; k < PHYSICS_UNITS; k++)
        if (isfinite(m->utilization[k]) && m->utilization_se[k] > 0) {
            c->own_busy_ns[k] += ns;
            c->own_busy[k] += m->utilization[k] * ns;
            c->own_busy_se_ns[k] += m->utilization_se[k] * ns;
        }
    c->n_own++;
    c->own_ns += ns;
    c->own += m->elapsed * ns;
    c->se_ns += m->elapsed_se * ns;
    if (isfinite(m->achieved)) {
        c->achieved_ns += ns;
        c->achieved += m->achieved * ns;
        c->achieved_se_ns += m->achieved_se * ns;
    }
}

static void add_value(void *judging, const struct occ_attribution_value *v)
{
    struct judging *g = judging;
    const struct world_launch *l = &g->world->launches[v->tag];
    const struct occ_measured *m = &v->measured;
    struct cell *c = cell_of(g, l);
    double ns = (double)(v->end_ns - v->start_ns);
    if (!c || m->source == OCC_ATTRIBUTION_NONE || !isfinite(m->elapsed))
        return;
    if (m->source == OCC_ATTRIBUTION_GROUP) {
        c->n_group++;
        c->group_ns += ns;
        c->group += m->elapsed * ns;
        c->group_se_ns += m->elapsed_se * ns;
        return;
    }
    add_own(c, m, ns);
    if (m->source == OCC_ATTRIBUTION_DIRECT && m->elapsed_se * Z <= JUDGE_HALF_WIDTH_MAX)
        tally(&g->result->direct, m->elapsed, m->elapsed_se, l->elapsed, l->duration_ns);
}

/* The history's rule: a mean over a part of the launches is reported only if it represents all. */
static bool is_representative(const struct cell *c)
{
    if (c->own_ns <= 0)
        return false;
    if (c->group_ns <= MINORITY * (c->own_ns + c->group_ns))
        return true;
    double longer = (c->own_ns / (double)c->n_own) / (c->group_ns / (double)c->n_group);
    return longer < ALIKE && longer > 1 / ALIKE;
}

static void print_cell(const struct cell *c, size_t at)
{
    const char *verbose = getenv("BENCH_VERBOSE");
    if (!verbose || !verbose[0])
        return;
    double value = c->own / c->own_ns, se = c->se_ns / c->own_ns, truth = c->warps_ns / c->ns;
    (void)fprintf(stderr,
                  "%5zu %7.0f x %9.0f ns: true %6.2f value %6.2f se %5.2f (%+5.1f se) own %4.2f group %4.2f "
                  "achieved %6.2f true %6.2f se %5.2f%s\n",
                  at, (double)c->n, c->ns / (double)c->n, truth * 100, value * 100, se * 100,
                  (value - truth) / se, c->own_ns / c->ns, c->group_ns / c->ns,
                  100 * c->achieved / c->achieved_ns, 100 * c->warps_ns / c->active_ns,
                  100 * c->achieved_se_ns / c->achieved_ns,
                  fabs(value - truth) > 3 * se   ? " BEYOND"
                  : fabs(value - truth) > Z * se ? " out"
                                                 : "");
}

/* A value is for the launches after the counter set's first turn at the earliest. */
static void judge_utilization(const struct cell *c, struct judge_result *r)
{
    for (int k = 0; k < PHYSICS_UNITS; k++) {
        double own_ns = c->own_busy_ns[k], of_ns = k == OCC_UTILIZATION_ISSUE ? c->active_ns : c->ns;
        if (own_ns <= 0 || (k == OCC_UTILIZATION_ISSUE && c->alone_ns < (1 - MINORITY) * c->ns))
            continue;
        tally(&r->utilization, c->own_busy[k] / own_ns, c->own_busy_se_ns[k] / own_ns, c->busy_ns[k] / of_ns,
              own_ns);
        r->utilization_half_width += Z * c->own_busy_se_ns[k] / own_ns;
    }
}

static void judge_cell(const struct cell *c, struct judge_result *r)
{
    double value = c->own / c->own_ns, se = c->se_ns / c->own_ns;
    r->launch_ns += c->ns;
    if (!is_representative(c)) {
        r->grouped_ns += c->group_ns > 0 ? c->ns : 0;
        return;
    }
    if (!(se * Z <= JUDGE_HALF_WIDTH_MAX)) {
        r->wide_ns += c->ns;
        return;
    }
    r->own_ns += c->ns;
    judge_utilization(c, r);
    tally(&r->elapsed, value, se, c->warps_ns / c->ns, c->ns);
    push_half_width(r, se * Z);
    if (c->achieved_ns >= (1 - MINORITY) * c->own_ns && c->alone_ns >= (1 - MINORITY) * c->ns &&
        c->achieved_se_ns / c->achieved_ns * Z <= JUDGE_HALF_WIDTH_MAX)
        tally(&r->achieved, c->achieved / c->achieved_ns, c->achieved_se_ns / c->achieved_ns,
              c->warps_ns / c->active_ns, c->ns);
}

/* ---- feeding ---- */

static int64_t arrival(const struct world_launch *l)
{
    return (l->end_ns / FLUSH_NS + 1) * FLUSH_NS + ROUND_NS;
}

static int by_arrival(const void *a, const void *b)
{
    const struct world_launch *x = *(const struct world_launch *const *)a,
                              *y = *(const struct world_launch *const *)b;
    int64_t p = arrival(x), q = arrival(y);
    return p != q ? (p > q) - (p < q) : (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_start(const void *a, const void *b)
{
    const struct world_launch *x = *(const struct world_launch *const *)a,
                              *y = *(const struct world_launch *const *)b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static struct occ_attribution_launch launch_of(const struct judging *g, const struct world_launch *l)
{
    const struct physics_kernel *k = &g->world->timeline.configs[l->config];
    double theoretical = fmin((double)(k->blocks_per_sm * k->warps_per_block) / k->warps_per_sm, 1);
    double waves = (double)k->grid_blocks / k->sms / k->blocks_per_sm;
    return (struct occ_attribution_launch){.key = {.shape = l->config + 1,
                                                   .graph_node = g->world->graph ? l->config + 1 : 0,
                                                   .bound = theoretical * fmin(waves, 1),
                                                   .expected = theoretical * waves / ceil(waves),
                                                   .active = (double)k->grid_blocks / k->sms,
                                                   .blocks = k->blocks_per_sm * waves / ceil(waves),
                                                   .grid = k->grid_blocks},
                                           .start_ns = l->start_ns,
                                           .end_ns = l->end_ns,
                                           .tag = (uint64_t)(l - g->world->launches)};
}

/* Records that have come by now join those that wait, in order of their start. */
static void receive(struct judging *g, int64_t now_ns)
{
    size_t before = g->n_waiting;
    while (g->next_arriving < g->n_arriving && arrival(g->arriving[g->next_arriving]) <= now_ns)
        g->waiting[g->n_waiting++] = g->arriving[g->next_arriving++];
    if (g->n_waiting > before)
        qsort(g->waiting, g->n_waiting, sizeof(const struct world_launch *), by_start);
}

/* Hands on all launches that start before. */
static void release(struct judging *g, int64_t until_ns)
{
    size_t n = 0;
    for (; n < g->n_waiting && g->waiting[n]->start_ns < until_ns; n++) {
        const struct occ_attribution_launch l = launch_of(g, g->waiting[n]);
        (void)occ_attribution_launch(g->a, &l);
    }
    g->n_waiting -= n;
    memmove(g->waiting, g->waiting + n, g->n_waiting * sizeof(const struct world_launch *));
}

static void read_samples(struct judging *g, int64_t now_ns)
{
    const struct world *w = g->world;
    struct occ_attribution_sample ratios;
    for (; g->next_sample < w->n_samples && w->samples[g->next_sample].end_ns <= now_ns; g->next_sample++) {
        (void)occ_ratios_read(&g->scale, &w->samples[g->next_sample], &ratios); /* some cannot be */
        (void)occ_attribution_sample(g->a, &ratios);
    }
}

static void add_second(void *judging, const struct occ_attribution_second *second)
{
    (void)judging;
    (void)second;
}

static void advance(struct judging *g, int64_t until_ns, bool final)
{
    release(g, until_ns);
    occ_attribution_advance(g->a, until_ns, final);
}

/* One round of the daemon's worker. */
static void do_round(struct judging *g, int64_t now_ns, bool final)
{
    int64_t until_ns = now_ns - (final ? 0 : WATERMARK_NS);
    receive(g, final ? INT64_MAX : now_ns);
    double before = cpu_ns();
    heap_peak_count(true);
    read_samples(g, now_ns);
    for (int64_t at_ns = until_ns - WATERMARK_NS; final && at_ns < until_ns; at_ns += ROUND_NS)
        advance(g, at_ns, false);
    advance(g, until_ns, final);
    heap_peak_count(false);
    g->result->cpu_ns += cpu_ns() - before;
}

static void feed(struct judging *g)
{
    const struct world *w = g->world;
    int64_t end_ns = WORLD_EPOCH_NS + (int64_t)(g->o->seconds * 1e9) + ROUND_NS;
    for (int64_t now_ns = WORLD_EPOCH_NS + ROUND_NS; now_ns < end_ns; now_ns += ROUND_NS)
        do_round(g, now_ns, false);
    do_round(g, end_ns + ROUND_NS, true);
    g->result->samples += w->n_samples;
}

static void open_attribution(struct judging *g)
{
    const struct occ_attribution_options options = {
        .add_value = add_value, .add_second = add_second, .context = g};
    const struct timeline *t = &g->world->timeline;
    g->scale = (struct occ_ratio_scale){.sm_count = t->sms, .max_warps_per_sm = t->warps_per_sm};
    heap_peak_reset();
    heap_peak_count(true);
    g->a = occ_attribution_new(&options);
    if (!g->a)
        abort();
    heap_peak_count(false);
}

static void order_launches(struct judging *g)
{
    size_t n = g->world->n_launches;
    g->waiting = get(n, sizeof(const struct world_launch *));
    g->arriving = get(n, sizeof(const struct world_launch *));
    for (size_t i = 0; i < n; i++)
        if (g->world->launches[i].reported)
            g->arriving[g->n_arriving++] = &g->world->launches[i];
    qsort(g->arriving, g->n_arriving, sizeof(const struct world_launch *), by_arrival);
    g->result->launches += g->n_arriving;
}

void judge_run(const struct judge_options *o, const struct world *world, struct judge_result *result)
{
    struct judging g = {.o = o, .world = world, .result = result};
    size_t n_cells = world->timeline.n_configs;
    g.cells = get(n_cells, sizeof *g.cells);
    order_launches(&g);
    sum_truth(&g);
    open_attribution(&g);
    feed(&g);
    if (heap_peak_bytes() > result->heap_bytes)
        result->heap_bytes = heap_peak_bytes();
    for (size_t i = 0; i < n_cells; i++)
        if (g.cells[i].n > 0) {
            judge_cell(&g.cells[i], result);
            print_cell(&g.cells[i], i);
        }
    result->configs = world->timeline.n_configs;
    result->runs++;
    occ_attribution_free(g.a);
    free(g.cells);
    free(g.waiting);
    free(g.arriving);
}

static void pool_tally(struct judge_tally *t, const struct judge_tally *from)
{
    t->n += from->n;
    t->covered += from->covered;
    t->beyond += from->beyond;
    t->weight += from->weight;
    t->covered_weight += from->covered_weight;
    t->squared_weight += from->squared_weight;
    t->error += from->error;
    t->worst = fmax(t->worst, from->worst);
}

void judge_pool(struct judge_result *result, const struct judge_result *from)
{
    pool_tally(&result->elapsed, &from->elapsed);
    pool_tally(&result->achieved, &from->achieved);
    pool_tally(&result->direct, &from->direct);
    pool_tally(&result->utilization, &from->utilization);
    result->utilization_half_width += from->utilization_half_width;
    for (size_t i = 0; i < from->n_half_widths; i++)
        push_half_width(result, from->half_widths[i]);
    result->launch_ns += from->launch_ns;
    result->own_ns += from->own_ns;
    result->grouped_ns += from->grouped_ns;
    result->wide_ns += from->wide_ns;
    result->cpu_ns += from->cpu_ns;
    result->samples += from->samples;
    result->launches += from->launches;
    result->runs += from->runs;
}

void judge_free(struct judge_result *result)
{
    free(result->half_widths);
    *result = (struct judge_result){0};
}
