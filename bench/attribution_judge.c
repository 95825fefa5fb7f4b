/* See attribution_judge.h. */
#include "attribution_judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/sampling/counters/ratios.h"
#include "daemon/sampling/known_totals.h"
#include "heap_peak.h"
#include "store/measured.h"

#define ROUND_NS     INT64_C(50000000)
#define FLUSH_NS     INT64_C(1000000000)
#define COMMIT_NS    INT64_C(1000000000)
#define WATERMARK_NS INT64_C(4000000000)
#define Z            OCC_ERRORS_OF_95_PERCENT
#define MIN_SE       1e-12

/* Sums of a configuration; times in ns. */
struct cell {
    struct occ_measured_sums sums; /* reported values, as the history stores them */
    double block_ns, block;        /* elapsed occupancy since the last commit */
    uint64_t n;
    double ns, warps_ns, active_ns, alone_ns, busy_ns[PHYSICS_UNITS]; /* truth */
    double own_ns, own_warps_ns; /* truth of launches with values of their own */
};

struct judging {
    const struct judge_options *o;
    const struct world *world;
    struct judge_result *result;
    struct occ_attribution *a;
    struct occ_known_totals *totals;
    struct occ_gpu_results evidence; /* evidence from the known totals */
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

static void push_half_widths(struct judge_result *r, double half_width, double history)
{
    if (r->n_half_widths == r->half_widths_room) {
        r->half_widths_room = r->half_widths_room ? 2 * r->half_widths_room : 256;
        size_t bytes = r->half_widths_room * sizeof *r->half_widths;
        r->half_widths = realloc(r->half_widths, bytes);
        r->history_half_widths = realloc(r->history_half_widths, bytes);
        if (!r->half_widths || !r->history_half_widths)
            abort();
    }
    r->half_widths[r->n_half_widths] = half_width;
    r->history_half_widths[r->n_half_widths++] = history;
}

/* ---- configurations ---- */

static void sum_truth(struct judging *g)
{
    for (size_t i = 0; i < g->world->n_launches; i++) {
        const struct world_launch *l = &g->world->launches[i];
        struct cell *c = &g->cells[l->config];
        if (!l->reported || l->is_memory)
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

static void add_mean(struct occ_measured_sums *sums, enum occ_measured_value value, double mean, double ns)
{
    if (!isfinite(mean))
        return;
    sums->sum[value] += mean * ns;
    sums->ns[value] += ns;
}

/* Returns the largest standard error of the throughputs, which share one error; NaN if no throughput has one.
 */
static double throughput_se(const struct occ_measured *m)
{
    double widest = NAN;
    for (int k = OCC_UTILIZATION_DRAM; k < OCC_UTILIZATION_COUNT; k++)
        widest = fmax(widest, m->utilization_se[k]);
    return widest;
}

static void add_own(struct cell *c, const struct occ_measured *m, double ns)
{
    const struct {
        enum occ_measured_value value;
        double mean;
    } means[] = {{OCC_MEASURED_elapsed, m->elapsed},
                 {OCC_MEASURED_elapsed_error, m->elapsed_se},
                 {OCC_MEASURED_achieved, m->achieved},
                 {OCC_MEASURED_achieved_error, m->achieved_se},
                 {OCC_MEASURED_issue_active, m->utilization[OCC_UTILIZATION_ISSUE]},
                 {OCC_MEASURED_issue_active_error, m->utilization_se[OCC_UTILIZATION_ISSUE]},
                 {OCC_MEASURED_dram_throughput, m->utilization[OCC_UTILIZATION_DRAM]},
                 {OCC_MEASURED_l2_throughput, m->utilization[OCC_UTILIZATION_L2]},
                 {OCC_MEASURED_l1_throughput, m->utilization[OCC_UTILIZATION_L1]},
                 {OCC_MEASURED_tensor_active, m->utilization[OCC_UTILIZATION_TENSOR]},
                 {OCC_MEASURED_throughput_error, throughput_se(m)}};
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        add_mean(&c->sums, means[i].value, means[i].mean, ns);
    c->sums.direct += m->source == OCC_ATTRIBUTION_DIRECT;
    c->sums.regression += m->source == OCC_ATTRIBUTION_REGRESSED;
    c->block_ns += ns;
    c->block += m->elapsed * ns;
}

/* Closes a block of launches as the history does: a block has the launches of one commit. */
static void commit(struct judging *g)
{
    for (size_t i = 0; i < g->world->timeline.n_configs; i++) {
        struct cell *c = &g->cells[i];
        if (c->block_ns > 0)
            c->sums.elapsed_square_sum += c->block * c->block / c->block_ns;
        c->block = c->block_ns = 0;
    }
}

static void add_value(void *judging, const struct occ_attribution_value *v)
{
    struct judging *g = judging;
    const struct world_launch *l = &g->world->launches[v->tag];
    const struct occ_measured *m = &v->measured;
    struct cell *c = &g->cells[l->config];
    double ns = (double)(v->end_ns - v->start_ns);
    occ_known_totals_add_value(g->totals, v);
    if (l->is_memory)
        return;
    if (m->source == OCC_ATTRIBUTION_NONE || !isfinite(m->elapsed))
        return;
    if (m->source == OCC_ATTRIBUTION_GROUP) {
        c->sums.grouped++;
        add_mean(&c->sums, OCC_MEASURED_group_elapsed, m->elapsed, ns);
        add_mean(&c->sums, OCC_MEASURED_group_elapsed_error, m->elapsed_se, ns);
        return;
    }
    add_own(c, m, ns);
    c->own_ns += l->duration_ns;
    c->own_warps_ns += l->elapsed * l->duration_ns;
    if (m->source == OCC_ATTRIBUTION_DIRECT && m->elapsed_se * Z <= JUDGE_HALF_WIDTH_MAX)
        tally(&g->result->direct, m->elapsed, m->elapsed_se, l->elapsed, l->duration_ns);
}

static void print_cell(const struct cell *c, const struct occ_measurement *m, size_t at)
{
    const char *verbose = getenv("BENCH_VERBOSE");
    if (!verbose || !verbose[0])
        return;
    double se = m->elapsed_error, truth = c->warps_ns / c->ns, off = m->elapsed - truth;
    (void)fprintf(stderr,
                  "%5zu %7.0f x %9.0f ns: true %6.2f value %6.2f se %5.2f (%+5.1f se) measured %4.2f "
                  "achieved %6.2f true %6.2f se %5.2f rest %+5.2f +- %4.2f of %4.2f %s%s\n",
                  at, (double)c->n, c->ns / (double)c->n, truth * 100, m->elapsed * 100, se * 100, off / se,
                  m->measured_ratio, m->achieved * 100, 100 * c->warps_ns / c->active_ns,
                  m->achieved_error * 100, 100 * c->sums.rest_shift_sum / c->sums.rest_ns,
                  100 * c->sums.rest_error_sum / c->sums.rest_ns, c->sums.rest_ns / c->ns,
                  occ_withheld_word(m->withheld),
                  fabs(off) > 3 * se   ? "BEYOND"
                  : fabs(off) > Z * se ? "out"
                                       : "");
}

/* Compares utilization with the truth. Values cover only launches after the counter set's first turn; the
 * truth covers all reported launches. */
static void judge_utilization(const struct cell *c, const struct occ_hw_utilization *u,
                              struct judge_result *r)
{
    static const enum occ_hw_unit units[PHYSICS_UNITS] = {OCC_HW_ISSUE, OCC_HW_DRAM, OCC_HW_L2, OCC_HW_L1,
                                                          OCC_HW_TENSOR};
    for (int k = 0; k < PHYSICS_UNITS; k++) {
        bool of_active = units[k] == OCC_HW_ISSUE;
        double value = u->ratio[units[k]], se = of_active ? u->issue_error : u->throughput_error;
        if (!isfinite(value) || !(se > 0) || (of_active && c->alone_ns < (1 - OCC_MEASURED_MINORITY) * c->ns))
            continue;
        tally(&r->utilization, value, se, c->busy_ns[k] / (of_active ? c->active_ns : c->ns), c->ns);
        r->utilization_half_width += Z * se;
    }
}

/* Judges a configuration's values with the history's rule for withholding (store/measured_means.c). The
 * history widens errors for launches without a value, which could hide attribution errors that are too small;
 * so the attribution's own errors are judged too, on launches with a value only. */
static void judge_cell(const struct cell *c, size_t at, struct judge_result *r)
{
    struct occ_measurement m, own;
    double truth = c->warps_ns / c->ns;
    occ_measured_means(&c->sums, c->ns, &m);
    (void)occ_measured_own(&c->sums, c->ns, &own);
    print_cell(c, &m, at);
    r->launch_ns += c->ns;
    r->measured_ns += c->own_ns;
    if (c->own_ns > 0 && isfinite(own.elapsed))
        tally(&r->measured, own.elapsed, own.elapsed_error, c->own_warps_ns / c->own_ns, c->own_ns);
    if (m.withheld) {
        bool unlike = m.withheld == OCC_WITHHELD_LAUNCHES || m.withheld == OCC_WITHHELD_TOTAL;
        *(unlike ? &r->unlike_ns : &r->grouped_ns) += c->ns;
        return;
    }
    if (isnan(own.elapsed))
        return;
    if (!(own.elapsed_error * Z <= JUDGE_HALF_WIDTH_MAX)) {
        r->wide_ns += c->ns;
        return;
    }
    r->own_ns += c->ns;
    judge_utilization(c, &own.utilization, r);
    tally(&r->elapsed, own.elapsed, own.elapsed_error, truth, c->ns);
    push_half_widths(r, own.elapsed_error * Z, m.elapsed_error * Z);
    tally(&r->history, m.elapsed, m.elapsed_error, truth, c->ns);
    if (isfinite(own.achieved) && c->alone_ns >= (1 - OCC_MEASURED_MINORITY) * c->ns &&
        own.achieved_error * Z <= JUDGE_HALF_WIDTH_MAX)
        tally(&r->achieved, own.achieved, own.achieved_error, c->warps_ns / c->active_ns, c->ns);
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

/* As the daemon's sampler makes it: no model knows the blocks of a fill or copy. */
static struct occ_attribution_launch memory_of(const struct judging *g, const struct world_launch *l)
{
    return (struct occ_attribution_launch){
        .key = {.shape = occ_gpu_results_config(OCC_GPU_MEMORY, 1 + l->config),
                .expected = 0.5,
                .is_memory = true},
        .start_ns = l->start_ns,
        .end_ns = l->end_ns,
        .tag = (uint64_t)(l - g->world->launches)};
}

static struct occ_attribution_launch launch_of(const struct judging *g, const struct world_launch *l)
{
    const struct physics_kernel *k = &g->world->timeline.configs[l->config];
    double theoretical = fmin((double)(k->blocks_per_sm * k->warps_per_block) / k->warps_per_sm, 1);
    double waves = (double)k->grid_blocks / k->sms / k->blocks_per_sm;
    return (struct occ_attribution_launch){.key = {.shape = l->config + 1,
                                                   .graph_node = l->node,
                                                   .bound = theoretical * fmin(waves, 1),
                                                   .expected = theoretical * waves / ceil(waves),
                                                   .active = (double)k->grid_blocks / k->sms,
                                                   .blocks = k->blocks_per_sm * waves / ceil(waves),
                                                   .grid = k->grid_blocks},
                                           .start_ns = l->start_ns,
                                           .end_ns = l->end_ns,
                                           .tag = (uint64_t)(l - g->world->launches)};
}

/* Adds records that have arrived to the waiting launches and sorts these by start. */
static void receive(struct judging *g, int64_t now_ns)
{
    size_t before = g->n_waiting;
    while (g->next_arriving < g->n_arriving && arrival(g->arriving[g->next_arriving]) <= now_ns)
        g->waiting[g->n_waiting++] = g->arriving[g->next_arriving++];
    if (g->n_waiting > before)
        qsort(g->waiting, g->n_waiting, sizeof(const struct world_launch *), by_start);
}

/* Gives the attribution all launches that start before until_ns. */
static void release(struct judging *g, int64_t until_ns)
{
    size_t n = 0;
    for (; n < g->n_waiting && g->waiting[n]->start_ns < until_ns; n++) {
        const struct world_launch *own = g->waiting[n];
        const struct occ_attribution_launch l = own->is_memory ? memory_of(g, own) : launch_of(g, own);
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
        (void)occ_ratios_read(&g->scale, &w->samples[g->next_sample], &ratios); /* some are unreadable */
        (void)occ_attribution_sample(g->a, &ratios);
        occ_known_totals_add_sample(g->totals, &ratios);
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

/* Does one round of the daemon's worker. */
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
    occ_known_totals_close(g->totals, final ? INT64_MAX : until_ns, final, &g->evidence);
}

/* Adds the totals' evidence about launches without a value to the sums of their configurations. */
static void take_evidence(struct judging *g)
{
    for (size_t i = 0; i < g->evidence.n_sums; i++) {
        const struct occ_gpu_sums *from = &g->evidence.sums[i];
        struct occ_measured_sums *sums = &g->cells[from->config - 1].sums;
        sums->rest_shift_sum += from->sums.rest_shift_sum;
        sums->rest_error_sum += from->sums.rest_error_sum;
        sums->rest_ns += from->sums.rest_ns;
    }
    occ_gpu_results_free(&g->evidence);
}

static void feed(struct judging *g)
{
    const struct world *w = g->world;
    int64_t end_ns = WORLD_EPOCH_NS + (int64_t)(g->o->seconds * 1e9) + ROUND_NS;
    for (int64_t now_ns = WORLD_EPOCH_NS + ROUND_NS; now_ns < end_ns; now_ns += ROUND_NS) {
        do_round(g, now_ns, false);
        if ((now_ns - WORLD_EPOCH_NS) % COMMIT_NS == 0)
            commit(g);
    }
    do_round(g, end_ns + ROUND_NS, true);
    commit(g);
    take_evidence(g);
    g->result->samples += w->n_samples;
}

static void open_attribution(struct judging *g)
{
    const struct occ_attribution_options options = {.add_value = add_value,
                                                    .add_second = add_second,
                                                    .inspect = g->o->inspect,
                                                    .context = g,
                                                    .assumptions = g->o->assumptions};
    const struct timeline *t = &g->world->timeline;
    g->scale = (struct occ_ratio_scale){.sm_count = t->sms, .max_warps_per_sm = t->warps_per_sm};
    heap_peak_reset();
    heap_peak_count(true);
    g->a = occ_attribution_new(&options);
    heap_peak_count(false);
    g->totals = occ_known_totals_new();
    if (!g->a || !g->totals)
        abort();
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
        if (g.cells[i].n > 0)
            judge_cell(&g.cells[i], i, result);
    result->configs = world->timeline.n_configs;
    result->runs++;
    occ_attribution_free(g.a);
    occ_known_totals_free(g.totals);
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
    pool_tally(&result->history, &from->history);
    pool_tally(&result->measured, &from->measured);
    result->utilization_half_width += from->utilization_half_width;
    for (size_t i = 0; i < from->n_half_widths; i++)
        push_half_widths(result, from->half_widths[i], from->history_half_widths[i]);
    result->launch_ns += from->launch_ns;
    result->measured_ns += from->measured_ns;
    result->own_ns += from->own_ns;
    result->grouped_ns += from->grouped_ns;
    result->unlike_ns += from->unlike_ns;
    result->wide_ns += from->wide_ns;
    result->cpu_ns += from->cpu_ns;
    result->samples += from->samples;
    result->launches += from->launches;
    result->runs += from->runs;
}

void judge_free(struct judge_result *result)
{
    free(result->half_widths);
    free(result->history_half_widths);
    *result = (struct judge_result){0};
}
