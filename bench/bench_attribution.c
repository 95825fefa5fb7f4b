/*
 * bench_attribution [SEEDS]: how far attributed occupancy is from the truth, in percentage points, in a world
 * where the truth is known (attribution_world.h), and how fast attribution is. JSON on stdout; one object a
 * case:
 *
 *   error      mean over launches, weighted by their time, of |said - true| of the kernel's mean (direct:
 *              of the launch)
 *   worst      the largest of the kernels' (direct: 99th percentile of the launches')
 *   covered    part of the cases in which said +- 1.96 standard errors holds the truth
 *   said       part of launch time that has a value of its own; grouped: that has a group's
 *   small_*    kernels below 8 us, which are left out of error and worst; outside: not within 1.96
 *              standard errors
 *   met        error, and where they apply the graph's mean_error, small_error with none outside, and 93
 *              % covered
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribution_world.h"
#include "bench_report.h"

#define KERNELS_MOST 64

/* duration, blocks, blocks per SM, warps per block, spreads of blocks and warps, ramp */
static const struct world_kernel zoo[] = {
    {3000, 132, 1, 8, 0.2, 0.1, 200, 0},     {4000, 60, 4, 4, 0.3, 0.0, 150, 0},
    {6000, 1056, 8, 8, 0.2, 0.2, 300, 0},    {8000, 264, 2, 16, 0.1, 0.3, 400, 0},
    {9000, 700, 4, 8, 0.4, 0.1, 500, 0},     {12000, 2112, 16, 4, 0.2, 0.0, 600, 0},
    {20000, 1500, 4, 8, 0.3, 0.2, 800, 0},   {31000, 40, 1, 32, 0.1, 0.5, 500, 0},
    {60000, 3000, 6, 8, 0.5, 0.1, 900, 0},   {90000, 132, 1, 32, 0.3, 0.0, 500, 0},
    {200000, 5000, 8, 8, 0.3, 0.2, 1000, 0}, {250000, 800, 3, 12, 0.6, 0.3, 1000, 0},
};
static const struct world_kernel long_ones[] = {
    {3100000, 1000, 4, 8, 0.3, 0.1, 2000, 0},
    {5000000, 132, 1, 32, 0.4, 0.2, 1000, 0},
    {9000000, 7000, 8, 8, 0.2, 0.2, 2000, 0},
    {20000000, 300, 2, 16, 0.5, 0.1, 1000, 0},
};
/* each has a quarter of the warps at most, so that four run side by side */
static const struct world_kernel quarters[] = {
    {10000, 264, 2, 8, 0.2, 0.1, 200, 0},  {25000, 200, 2, 8, 0.3, 0.2, 300, 0},
    {40000, 500, 2, 6, 0.3, 0.1, 300, 0},  {80000, 132, 1, 16, 0.2, 0.1, 200, 0},
    {150000, 700, 2, 8, 0.4, 0.1, 300, 0}, {300000, 100, 1, 8, 0.5, 0.3, 300, 0},
};

struct score {
    double error, weight, worst, said, grouped, total, group_error, mean_error;
    double error_achieved, weight_achieved;
    uint64_t cases, covered;
    double small_error, small_weight, small_worst, small_outside; /* kernels of 3 to 8 us */
};

static void fail(const struct occ_error *err)
{
    (void)fprintf(stderr, "bench_attribution: %s\n", err->message);
    exit(1);
}

static struct occ_attribution_launch launch_of(const struct world_options *o, const struct world_launch *l,
                                               size_t tag)
{
    const struct world_kernel *k = &o->kernels[l->kernel];
    return (struct occ_attribution_launch){
        .key = {.shape = l->kernel + 1,
                .graph_node = k->graph_node,
                .theoretical = fmin((double)(k->blocks_per_sm * k->warps_per_block) / WORLD_WARPS, 1),
                .grid_blocks = k->blocks,
                .wave_blocks = (uint64_t)WORLD_SMS * k->blocks_per_sm,
                .warps_per_block = k->warps_per_block,
                .blocks_per_sm = k->blocks_per_sm},
        .start_ns = l->start_ns,
        .end_ns = l->end_ns,
        .tag = tag};
}

/* Feeds everything as a daemon would, a tenth of a second at a time. `values` by tag, or NULL. */
static void attribute(const struct world_options *o, const struct world *world, struct occ_attribution *a,
                      struct occ_measured *values)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_attribution_value some[512];
    size_t launch = 0, sample = 0, n;
    while (sample < world->n_samples) {
        int64_t until = world->samples[sample].start_ns + 100000000;
        for (; sample < world->n_samples && world->samples[sample].start_ns < until; sample++)
            if (occ_attribution_sample(a, &world->samples[sample], &err) != 0)
                fail(&err);
        for (; launch < world->n_launches && world->launches[launch].start_ns < until; launch++) {
            const struct occ_attribution_launch l = launch_of(o, &world->launches[launch], launch);
            if (occ_attribution_launch(a, &l, &err) != 0)
                fail(&err);
        }
        if (occ_attribution_advance(a, until, sample == world->n_samples, &err) != 0)
            fail(&err);
        while ((n = occ_attribution_take(a, some, sizeof some / sizeof *some)) > 0)
            for (size_t i = 0; i < n && values; i++)
                values[some[i].tag] = some[i].measured;
    }
}

static struct occ_attribution *new_attribution(void)
{
    const struct occ_attribution_options options = {.sm_count = WORLD_SMS, .max_warps_per_sm = WORLD_WARPS};
    struct occ_attribution *a = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    if (occ_attribution_new(&options, &a, &err) != 0)
        fail(&err);
    return a;
}

static void add_case(struct score *s, double said, double se, double truth)
{
    s->cases++;
    s->covered += fabs(said - truth) <= 1.96 * se;
}

/* Kernels: the last value said of each against the mean of its launches. */
static void score_kernels(const struct world_options *o, const struct world *world,
                          const struct occ_attribution *a, struct score *s)
{
    double truth[KERNELS_MOST] = {0}, active[KERNELS_MOST] = {0}, ns[KERNELS_MOST] = {0};
    double all_said = 0, all_true = 0, all_ns = 0;
    for (size_t i = 0; i < world->n_launches; i++) {
        const struct world_launch *l = &world->launches[i];
        truth[l->kernel] += l->elapsed * l->duration_ns;
        active[l->kernel] += l->active * l->duration_ns;
        ns[l->kernel] += l->duration_ns;
    }
    for (size_t k = 0; k < o->n_kernels; k++) {
        struct occ_measured m;
        occ_attribution_ask(a, k + 1, o->kernels[k].graph_node, &m);
        double mean = truth[k] / ns[k], error = fabs(m.elapsed - mean);
        s->total += ns[k];
        if (getenv("BENCH_VERBOSE") && getenv("BENCH_VERBOSE")[0])
            (void)fprintf(
                stderr,
                "%8.0f ns: true %6.2f said %6.2f se %5.2f vif %7.1f %s achieved %6.2f/%6.2f se %.2f\n",
                o->kernels[k].duration_ns, mean * 100, m.elapsed * 100, m.elapsed_se * 100,
                m.variance_inflation,
                m.source == OCC_ATTRIBUTION_GROUP    ? "group"
                : m.source == OCC_ATTRIBUTION_NONE   ? "none"
                : m.source == OCC_ATTRIBUTION_DIRECT ? "direct"
                                                     : "single",
                m.achieved * 100, truth[k] / active[k] * 100, m.achieved_se * 100);
        if (m.source == OCC_ATTRIBUTION_NONE)
            continue;
        all_said += m.elapsed * ns[k];
        all_true += truth[k];
        all_ns += ns[k];
        if (m.source == OCC_ATTRIBUTION_GROUP) {
            s->grouped += ns[k];
            continue;
        }
        bool small = o->kernels[k].duration_ns < 8000;
        s->said += ns[k];
        add_case(s, m.elapsed, m.elapsed_se, mean);
        if (small) {
            s->small_error += error * ns[k];
            s->small_weight += ns[k];
            s->small_worst = fmax(s->small_worst, error);
            s->small_outside += error > 1.96 * m.elapsed_se;
        } else {
            s->error += error * ns[k];
            s->weight += ns[k];
            s->worst = fmax(s->worst, error);
        }
        if (isfinite(m.achieved)) {
            s->error_achieved += fabs(m.achieved - truth[k] / active[k]) * ns[k];
            s->weight_achieved += ns[k];
        }
    }
    if (all_ns > 0)
        s->mean_error = fmax(s->mean_error, fabs(all_said - all_true) / all_ns);
}

/* Single launches that were read directly. */
static void score_launches(const struct world *world, const struct occ_measured *values, struct score *s)
{
    double *errors = calloc(world->n_launches + 1, sizeof *errors);
    size_t n = 0;
    for (size_t i = 0; i < world->n_launches && errors; i++) {
        const struct world_launch *l = &world->launches[i];
        s->total += l->duration_ns;
        if (values[i].source != OCC_ATTRIBUTION_DIRECT)
            continue;
        double error = fabs(values[i].elapsed - l->elapsed);
        s->said += l->duration_ns;
        s->error += error * l->duration_ns;
        s->weight += l->duration_ns;
        add_case(s, values[i].elapsed, values[i].elapsed_se, l->elapsed);
        errors[n++] = error;
        if (isfinite(values[i].achieved)) {
            s->error_achieved += fabs(values[i].achieved - l->achieved) * l->duration_ns;
            s->weight_achieved += l->duration_ns;
        }
    }
    if (n > 0) {
        qsort(errors, n, sizeof *errors, bench_compare);
        s->worst = fmax(s->worst, errors[n * 99 / 100]);
    }
    free(errors);
}

static void run_world(const struct world_options *o, bool direct, struct score *s, double *ret_offset_error)
{
    struct world *world = world_make(o);
    struct occ_attribution *a = new_attribution();
    struct occ_measured *values = calloc(world->n_launches + 1, sizeof *values);
    struct occ_attribution_stats stats;
    if (!values)
        exit(1);
    attribute(o, world, a, values);
    occ_attribution_get_stats(a, &stats);
    *ret_offset_error = (double)stats.offset_ns - (o->offset_ns + o->drift * o->seconds * 1e9);
    if (direct)
        score_launches(world, values, s);
    else
        score_kernels(o, world, a, s);
    free(values);
    occ_attribution_free(a);
    world_free(world);
}

struct trial {
    const char *name;
    const struct world_kernel *kernels;
    size_t n_kernels;
    int streams, fixed_order;
    double interval_ns, seconds, offset_ns, drift;
    bool direct;
    double target; /* of error; percentage points */
};
#define TARGET_MEAN    0.5
#define TARGET_SMALL   3.0
#define TARGET_COVERED 0.93

static void print_case(const struct trial *t, const struct score *s, double offset_error, bool first)
{
    double error = 100 * s->error / fmax(s->weight, 1), mean_error = 100 * s->mean_error;
    double small_error = 100 * s->small_error / fmax(s->small_weight, 1);
    double covered = (double)s->covered / fmax((double)s->cases, 1);
    bool met = error <= t->target && (!t->fixed_order || mean_error <= TARGET_MEAN) &&
               small_error <= TARGET_SMALL && s->small_outside == 0 && covered >= TARGET_COVERED;
    printf("%s    {\"case\": \"%s\", \"error\": %.3f, \"target\": %.1f, \"met\": %s, \"worst\": %.3f, "
           "\"achieved_error\": %.3f,\n     \"mean_error\": %.3f, \"small_error\": %.3f, \"small_worst\": "
           "%.3f, \"small_outside\": %.0f,\n     \"covered\": %.4f, \"cases\": %llu, "
           "\"said\": %.3f, \"grouped\": %.3f, \"offset_error_ns\": %.0f}",
           first ? "" : ",\n", t->name, error, t->target, met ? "true" : "false", 100 * s->worst,
           100 * s->error_achieved / fmax(s->weight_achieved, 1), mean_error, small_error,
           100 * s->small_worst, s->small_outside, covered, (unsigned long long)s->cases, s->said / s->total,
           s->grouped / s->total, offset_error);
}

#define N(array) (array), sizeof(array) / sizeof *(array)

static const struct trial trials[] = {
    {"launches of 3 to 20 intervals", N(long_ones), 1, 0, 1e6, 6, 0, 0, true, 1},
    {"random order, 1 ms, 3000 samples", N(zoo), 1, 0, 1e6, 3, 0, 0, false, 1},
    {"graph, fixed order, 50 us bursts", N(zoo), 1, 1, 5e4, 2, 0, 0, false, 3},
    {"two streams, 1 ms", N(quarters), 2, 0, 1e6, 3, 0, 0, false, 3},
    {"four streams, 1 ms", N(quarters), 4, 0, 1e6, 3, 0, 0, false, 3},
    {"16 us, 4 ppm: launches of 3 to 20 intervals", N(long_ones), 1, 0, 1e6, 6, 16000, 4e-6, true, 1},
    {"16 us, 4 ppm: random order, 1 ms", N(zoo), 1, 0, 1e6, 3, 16000, 4e-6, false, 1},
    {"16 us, 4 ppm: graph, 50 us", N(zoo), 1, 1, 5e4, 2, 16000, 4e-6, false, 3},
};

static void run_trial(const struct trial *t, int seeds, bool first)
{
    struct score score = {0};
    double offset_error = 0, worst_offset = 0;
    for (int seed = 0; seed < seeds; seed++) {
        const struct world_options o = {.kernels = t->kernels,
                                        .n_kernels = t->n_kernels,
                                        .streams = t->streams,
                                        .fixed_order = t->fixed_order,
                                        .gap_ns = 1500,
                                        .graph_gap_ns = 8000,
                                        .interval_ns = t->interval_ns,
                                        .seconds = t->seconds,
                                        .noise = 0.01,
                                        .jitter_ns = 400,
                                        .offset_ns = t->offset_ns,
                                        .drift = t->drift,
                                        .seed = (uint64_t)seed + 1};
        run_world(&o, t->direct, &score, &offset_error);
        worst_offset = fabs(offset_error) > fabs(worst_offset) ? offset_error : worst_offset;
    }
    print_case(t, &score, worst_offset, first);
    (void)fflush(stdout);
}

/* ---- speed ---- */

struct race {
    const char *name;
    size_t kernels, from;                /* from: the zoo's first */
    double interval_ns, seconds, target; /* samples a second */
};
static const struct race races[] = {
    {"speed, 12 kernels from 20 us, 1 ms", 12, 6, 1e6, 20, 20000},
    {"speed, 12 kernels, 1 ms", 12, 0, 1e6, 20, 20000},
    {"speed, 60 kernels, 1 ms", 60, 0, 1e6, 20, 20000},
    {"speed, 5000 kernels, 50 us", 5000, 0, 5e4, 4, 20000},
};

/* Kernels of a graph in fixed order; how much of one core it takes to follow them. */
static void run_race(const struct race *race, bool first)
{
    size_t kernels = race->kernels;
    double seconds = race->seconds;
    struct world_kernel *many = calloc(kernels, sizeof *many);
    if (!many)
        exit(1);
    for (size_t i = 0; i < kernels; i++) {
        many[i] = zoo[race->from + i % (9 - race->from)];
        many[i].blocks = many[i].blocks / 8 + 1;
        many[i].warps_per_block = 2;
        many[i].graph_node = i + 1;
    }
    const struct world_options o = {.kernels = many,
                                    .n_kernels = kernels,
                                    .streams = 1,
                                    .fixed_order = 1,
                                    .gap_ns = 1500,
                                    .graph_gap_ns = 8000,
                                    .interval_ns = race->interval_ns,
                                    .seconds = seconds,
                                    .noise = 0.01,
                                    .jitter_ns = 400,
                                    .seed = 1};
    struct world *world = world_make(&o);
    struct occ_attribution *a = new_attribution();
    struct occ_attribution_stats stats;
    double before = bench_now_ns();
    attribute(&o, world, a, NULL);
    double took = bench_now_ns() - before;
    occ_attribution_get_stats(a, &stats);
    printf("%s    {\"case\": \"%s\", \"keys\": %llu, \"keys_refused\": %llu, \"samples\": %zu, \"launches\": "
           "%zu,\n     \"samples_per_s\": %.0f, \"target_samples_per_s\": %.0f, \"core_share\": %.4f}",
           first ? "" : ",\n", race->name, (unsigned long long)stats.keys,
           (unsigned long long)stats.keys_refused, world->n_samples, world->n_launches,
           (double)world->n_samples / took * 1e9, race->target, took / (seconds * 1e9));
    (void)fflush(stdout);
    free(many);
    occ_attribution_free(a);
    world_free(world);
}

int main(int argc, char **argv)
{
    int seeds = argc > 1 ? atoi(argv[1]) : 10;
    const char *only = argc > 2 ? argv[2] : "";
    printf("{\n  \"benchmark\": \"attribution\",\n");
    bench_print_machine();
    printf(",\n  \"unit\": \"percentage points of occupancy\",\n  \"accuracy\": [\n");
    bool first = true;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        if (strstr(trials[i].name, only)) {
            run_trial(&trials[i], seeds > 0 ? seeds : 1, first);
            first = false;
        }
    printf("\n  ],\n  \"speed\": [\n");
    first = true;
    for (size_t i = 0; i < sizeof races / sizeof *races; i++)
        if (strstr(races[i].name, only)) {
            run_race(&races[i], first);
            first = false;
        }
    printf("\n  ]\n}\n");
    return 0;
}
