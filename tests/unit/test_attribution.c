/*
 * Attribution: small worlds of flat kernels with known values. "Guards": the test fails if that number of
 * attribution/constants.h is 5 times as large (+) or a fifth (-).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/attribution.h"
#include "daemon/sampling/counters/ratios.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SMS         100
#define WARPS       64
#define START_NS    INT64_C(1700000000000000000)
#define HOUR        (3600000 * MS)
#define SMALL_BOUND 0.05
#define ALONE_KINDS 12
#define MS          INT64_C(1000000)
#define CLOCK       1.5 /* cycles per ns */
#define N(array)    (sizeof(array) / sizeof *(array))

/* A world is a list of kernels with a constant level; samples are exact integrals. */
struct run {
    int64_t start_ns, end_ns;
    uint64_t shape, node; /* shape 0: warps that no launch record explains */
    double level, active;
};

struct fixture {
    struct occ_attribution *a;
    struct occ_ratio_scale scale;
    struct run *runs;
    size_t n_runs, room, first; /* first: index of the first run that ends after the last sample's start */
    int64_t now_ns, offset_ns;
    double ppm;                /* drift of the samples' clock */
    int64_t burst_ns, calm_ns; /* start and end of samples 20 times as short; 0: never */
    int64_t away_ns;           /* start of an HOUR without samples; 0: never */
    uint64_t random;
    int64_t turn_ms;    /* ms of every 500 with utilization samples, while a kernel runs */
    int64_t turns_ns;   /* start of the turns */
    int64_t halves_ns;  /* utilization is halved from then on; 0: never */
    bool lacks_tensor;  /* utilization samples lack tensor cores */
    size_t impossible;  /* one in so many utilization samples is impossible; 0: none */
    int64_t lost;       /* number of lost samples of every three */
    bool garble;        /* some samples have an impossible counter */
    double background;  /* occupancy of work without launch records */
    double grid, waves; /* of all kernels; grid 0: blocks are not counted */
    double beside;      /* blocks per ms that belong to no launch */
    double noise;       /* of a sample's count of warps, relative */
    double theoretical;
    uint64_t small;     /* shape with the bound SMALL_BOUND; 0: none */
    uint64_t memory;    /* shape of fills; 0: none */
    uint64_t kinds;     /* number of further shapes of fills */
    double memory_grid; /* blocks of a fill */
    /* results: */
    struct occ_measured *values;        /* by tag; NULL: not stored */
    struct occ_measured last[16];       /* last value by shape */
    struct occ_attribution_value value; /* the last one */
    size_t n_values, n_bad;             /* n_bad: rejected samples */
};

static void add_value(void *fixture, const struct occ_attribution_value *value)
{
    struct fixture *f = fixture;
    const struct occ_measured *m = &value->measured;
    assert_true(m->source == OCC_ATTRIBUTION_NONE ||
                (m->elapsed >= 0 && m->elapsed <= 1 && m->elapsed_se >= 0));
    assert_false(m->source != OCC_ATTRIBUTION_NONE && (m->blocks < 0 || m->blocks > OCC_BLOCKS_MAX));
    if (f->values)
        f->values[value->tag] = *m;
    if (value->shape < N(f->last))
        f->last[value->shape] = *m;
    f->value = *value;
    f->n_values++;
}

static void add_second(void *fixture, const struct occ_attribution_second *second)
{
    (void)fixture;
    (void)second;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const struct occ_attribution_options options = {
        .add_value = add_value, .add_second = add_second, .context = f};
    if (!f || !(f->a = occ_attribution_new(&options)))
        return -1;
    f->now_ns = START_NS;
    f->scale = (struct occ_ratio_scale){.sm_count = SMS, .max_warps_per_sm = WARPS};
    f->random = 1;
    f->theoretical = 1;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    occ_attribution_free(f->a);
    free(f->runs);
    free(f);
    return 0;
}

static uint32_t draw(struct fixture *f, uint32_t below)
{
    f->random = f->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(f->random >> 33) % below;
}

static bool is_fill(const struct fixture *f, uint64_t shape)
{
    return f->memory && shape >= f->memory && shape <= f->memory + f->kinds;
}

static void put_run(struct fixture *f, struct run run)
{
    if (f->n_runs == f->room) {
        f->room = f->room ? f->room * 2 : 256;
        f->runs = realloc(f->runs, f->room * sizeof *f->runs);
        assert_non_null(f->runs);
    }
    f->runs[f->n_runs++] = run;
}

/* Adds a kernel after the previous one. */
static void then(struct fixture *f, int64_t duration_ns, uint64_t shape, double level)
{
    put_run(f, (struct run){f->now_ns, f->now_ns + duration_ns, shape, 0, level, fmin(level * 2, 1)});
    f->now_ns += duration_ns + 2000;
}

/* Adds kernels of 200 to 500 us for `ms`, idle for about a fifth of the time. Occupancies vary between
 * launches by +- spread. */
static void run_for(struct fixture *f, int64_t ms, double scale, double spread)
{
    for (int64_t end_ns = f->now_ns + ms * MS; f->now_ns < end_ns;) {
        uint32_t kind = draw(f, 4);
        double level = (0.15 + 0.2 * kind) * scale * (1 + spread * ((double)draw(f, 2000) / 1000 - 1));
        then(f, 200000 + (int64_t)kind * 100000, kind + 1, level);
        f->now_ns += draw(f, 150000);
    }
}

/* Returns the number of the launch's blocks that start in [from_ns, to_ns): wave by wave, the last wave with
 * the remaining blocks. */
static double started_in(const struct fixture *f, const struct run *r, int64_t from_ns, int64_t to_ns)
{
    double waves = ceil(f->waves), blocks = 0;
    double grid = is_fill(f, r->shape) ? f->memory_grid : f->grid;
    for (double wave = 0; wave < waves; wave++) {
        double at_ns = (double)(r->start_ns - from_ns) + (double)(r->end_ns - r->start_ns) * wave / waves;
        if (at_ns >= 0 && at_ns < (double)(to_ns - from_ns))
            blocks += grid * fmin(f->waves - wave, 1) / f->waves;
    }
    return blocks;
}

static struct occ_sample sample_of(struct fixture *f, int64_t start_ns, int64_t length_ns)
{
    int64_t offset_ns = f->offset_ns + (int64_t)(f->ppm * 1e-6 * (double)(start_ns - START_NS));
    struct occ_sample sample = {.start_ns = start_ns + offset_ns, .end_ns = start_ns + length_ns + offset_ns};
    double warps = f->background * (double)length_ns, active = 0, launched = 0;
    while (f->first < f->n_runs && f->runs[f->first].end_ns <= start_ns)
        f->first++;
    for (size_t i = f->first; i < f->n_runs && f->runs[i].start_ns < start_ns + length_ns; i++) {
        const struct run *r = &f->runs[i];
        double inside = fmin((double)(r->end_ns - start_ns), (double)length_ns) -
                        fmax((double)(r->start_ns - start_ns), 0);
        warps += inside > 0 ? inside * r->level : 0;
        active += inside > 0 ? inside * r->active : 0;
        launched += f->grid > 0 ? started_in(f, r, start_ns, start_ns + length_ns) : 0;
    }
    for (int i = 0; i < OCC_COUNTER_COUNT; i++)
        sample.value[i] = NAN;
    warps *= 1 + f->noise * ((double)draw(f, 2001) / 1000 - 1);
    sample.value[OCC_COUNTER_WARPS] = warps * SMS * WARPS * CLOCK;
    sample.value[OCC_COUNTER_ACTIVE] = active * SMS * CLOCK;
    sample.value[OCC_COUNTER_LAUNCHED] =
        f->grid > 0 ? launched + f->beside * (double)length_ns / (double)MS : NAN;
    sample.value[OCC_COUNTER_ELAPSED] = (double)length_ns * CLOCK;
    return sample;
}

/* Returns a kernel's utilization in utilization_sample(), as part of elapsed cycles, by enum occ_utilization.
 */
static double utilization_of(uint64_t shape, int i)
{
    static const double parts[] = {0.21, 0.05, 0.11, 0.15, 0};
    return fmin((double)shape * parts[i], 0.95);
}

static struct occ_sample utilization_sample(struct fixture *f, int64_t start_ns, int64_t length_ns)
{
    struct occ_sample sample = sample_of(f, start_ns, length_ns);
    sample.value[OCC_COUNTER_WARPS] = NAN;
    for (int i = 0; i < OCC_UTILIZATION_COUNT; i++)
        sample.value[OCC_COUNTER_UTILIZATION + i] = 0;
    for (size_t k = f->first; k < f->n_runs && f->runs[k].start_ns < start_ns + length_ns; k++) {
        const struct run *r = &f->runs[k];
        double inside = fmin((double)(r->end_ns - start_ns), (double)length_ns) -
                        fmax((double)(r->start_ns - start_ns), 0);
        for (int i = 0; i < OCC_UTILIZATION_COUNT && inside > 0; i++)
            sample.value[OCC_COUNTER_UTILIZATION + i] +=
                (f->halves_ns && start_ns >= f->halves_ns ? 50 : 100) * inside / (double)length_ns *
                utilization_of(r->shape, i);
    }
    if (f->lacks_tensor)
        sample.value[OCC_COUNTER_UTILIZATION + OCC_UTILIZATION_TENSOR] = NAN;
    if (f->impossible && draw(f, (uint32_t)f->impossible) == 0)
        sample.value[OCC_COUNTER_UTILIZATION + OCC_UTILIZATION_DRAM] = 1e9;
    return sample;
}

static struct occ_attribution_launch launch_of(const struct fixture *f, size_t i)
{
    const struct run *r = &f->runs[i];
    return (struct occ_attribution_launch){
        .key = {.shape = r->shape,
                .graph_node = r->node,
                .bound = f->small && r->shape == f->small ? SMALL_BOUND : f->theoretical,
                .grid = is_fill(f, r->shape) ? 0 : f->grid,
                .is_memory = is_fill(f, r->shape)},
        .start_ns = r->start_ns,
        .end_ns = r->end_ns,
        .tag = i};
}

/* Gives a sample. Returns true if its counters are possible and the attribution accepts it. */
static bool give(struct fixture *f, const struct occ_sample *sample)
{
    struct occ_attribution_sample ratios;
    bool is_possible = occ_ratios_read(&f->scale, sample, &ratios);
    return occ_attribution_sample(f->a, &ratios) && is_possible;
}

static void report_run(struct fixture *f, size_t i)
{
    const struct occ_attribution_launch launch = launch_of(f, i);
    assert_true(occ_attribution_launch(f->a, &launch));
}

/* Gives samples of 1 ms. */
static void give_samples(struct fixture *f, int64_t from_ns, int64_t to_ns)
{
    for (int64_t at_ns = from_ns; at_ns < to_ns; at_ns += MS) {
        const struct occ_sample sample = sample_of(f, at_ns, MS);
        assert_true(give(f, &sample));
    }
}

/* Gives all runs and samples up to the last run's end, in rounds of 100 ms. Stores values by tag. */
static void play(struct fixture *f, int64_t interval_ns, struct occ_measured *values)
{
    size_t next = 0;
    int64_t until_ns = START_NS;
    f->values = values;
    for (int64_t at_ns = START_NS; at_ns < f->now_ns; at_ns += interval_ns) {
        if (at_ns == f->away_ns)
            at_ns += HOUR;
        if (at_ns == f->burst_ns)
            interval_ns /= 20;
        if (at_ns == f->calm_ns)
            interval_ns *= 20;
        bool is_turn = at_ns >= f->turns_ns && (at_ns - START_NS) % (500 * MS) >= (500 - f->turn_ms) * MS;
        struct occ_sample sample = sample_of(f, at_ns, interval_ns);
        if (is_turn && sample.value[OCC_COUNTER_WARPS] > 0)
            sample = utilization_sample(f, at_ns, interval_ns);
        if (f->garble && (at_ns - START_NS) / interval_ns % 40 == 7)
            sample.value[at_ns / interval_ns % 2 ? OCC_COUNTER_WARPS : OCC_COUNTER_ACTIVE] = 0x1p64;
        if ((at_ns - START_NS) / interval_ns % 3 >= f->lost)
            f->n_bad += !give(f, &sample);
        if (at_ns + interval_ns < until_ns && at_ns + interval_ns < f->now_ns)
            continue;
        until_ns = at_ns + interval_ns + 100 * MS;
        for (; next < f->n_runs && f->runs[next].start_ns < until_ns; next++) {
            const struct occ_attribution_launch launch = launch_of(f, next);
            if (launch.key.shape > 0)
                assert_true(occ_attribution_launch(f->a, &launch));
        }
        occ_attribution_advance(f->a, until_ns, at_ns + interval_ns >= f->now_ns);
    }
}

static void ask(const struct fixture *f, uint64_t shape, struct occ_measured *ret)
{
    *ret = f->last[shape];
}

static void assert_near(double got, double wanted, double within)
{
    if (!(fabs(got - wanted) <= within))
        fail_msg("%f is not %f +- %f", got, wanted, within);
}

/* Guards spread_max +, NOISE +, INTERVALS +, COVERED +, DIRECT_ERROR_MAX -. */
static void long_launches_are_read_one_by_one(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 100; i++)
        then(f, (4 + i % 5) * MS + 137000, 1, 0.5 + 0.02 * (i % 7));
    struct occ_measured values[100] = {{0}};
    play(f, MS, values);
    for (size_t i = 0; i < 100; i++) { /* at its edges each launch has the kernel's mean */
        assert_int_equal(values[i].source, OCC_ATTRIBUTION_DIRECT);
        assert_near(values[i].elapsed, f->runs[i].level, 0.02);
        assert_near(values[i].achieved, f->runs[i].level / f->runs[i].active, 0.04);
        assert_true(values[i].elapsed_se > 0 && values[i].elapsed_se < 0.025);
        assert_false(values[i].overlapped);
    }
}

/* The lost samples may hold a kernel's last wave. Guards COVERED -. */
static void long_launches_are_not_read_where_samples_are_lost(void **state)
{
    struct fixture *f = *state;
    struct occ_measured values[50] = {{0}};
    f->lost = 1;
    for (int i = 0; i < 50; i++)
        then(f, 30 * MS + 137000, 1, 0.5);
    play(f, MS, values);
    for (size_t i = 0; i < 50; i++)
        assert_int_not_equal(values[i].source, OCC_ATTRIBUTION_DIRECT);
}

static void play_random(struct fixture *f, int n)
{
    static const struct {
        int64_t ns;
        double level;
    } kinds[] = {{4000, 0.2}, {9000, 0.7}, {21000, 0.45}, {60000, 0.1}};
    for (int i = 0; i < n; i++) {
        uint32_t kind = draw(f, 4);
        then(f, kinds[kind].ns, kind + 1, kinds[kind].level);
    }
    play(f, MS, NULL);
    for (uint32_t kind = 0; kind < 4; kind++) {
        struct occ_measured m;
        ask(f, kind + 1, &m);
        assert_int_equal(m.source, OCC_ATTRIBUTION_REGRESSED);
        assert_near(m.elapsed, kinds[kind].level, 0.02);
        assert_near(m.achieved, kinds[kind].level / fmin(kinds[kind].level * 2, 1), 0.05);
        assert_true(m.elapsed_se < 0.02 && m.variance_inflation < 20);
    }
}

static void short_launches_are_regressed(void **state)
{
    play_random(*state, 12000);
}

/* Guards CLOCK_SD_US -, BEGIN_ROUNDS -, PROFILE_FROM -. */
static void another_clock_is_found(void **state)
{
    struct fixture *f = *state;
    struct occ_attribution_stats stats;
    f->offset_ns = 21000;
    play_random(f, 12000);
    occ_attribution_get_stats(f->a, &stats);
    assert_near((double)stats.offset_ns, 21000, 4000);
}

/* 40 ppm: the drift of a common crystal. Guards CLOCK_DRIFT_US -. */
static void a_drifting_clock_is_found(void **state)
{
    struct fixture *f = *state;
    struct occ_attribution_stats stats;
    f->ppm = 40;
    play_random(f, 160000);
    occ_attribution_get_stats(f->a, &stats);
    assert_near(stats.drift_ppm, 40, 2);
    assert_near((double)stats.offset_ns, 40e-6 * (double)(f->now_ns - START_NS), 4000);
}

/* Short kernels in fixed order that all fill up and drain: their common profile must not pass for a clock
 * offset. */
static void kernels_that_drain_do_not_lead_the_clock_astray(void **state)
{
    static const double levels[] = {0.5, 0.35, 0.6, 0.4, 0.25, 0.55, 0.3};
    struct fixture *f = *state;
    struct occ_attribution_stats stats;
    f->offset_ns = 5000;
    for (uint32_t i = 0; i < 40000; i++) {
        uint32_t k = i % N(levels);
        int64_t ns = 20000 + 37000 * k % 60000 + draw(f, 2000), drain_ns = ns * 3 / 10;
        put_run(f, (struct run){f->now_ns, f->now_ns + ns, k + 1, 1, 0, 1});
        put_run(f, (struct run){f->now_ns, f->now_ns + ns - drain_ns, 0, 0, levels[k], 0});
        put_run(f, (struct run){f->now_ns + ns - drain_ns, f->now_ns + ns, 0, 0, levels[k] / 4, 0});
        f->now_ns += ns + (k == 0 ? 8000 : 2000);
    }
    play(f, MS, NULL);
    occ_attribution_get_stats(f->a, &stats);
    assert_near((double)stats.offset_ns, 5000, 3500);
    size_t known = 0;
    for (uint32_t k = 0; k < N(levels); k++) {
        struct occ_measured m;
        ask(f, k + 1, &m);
        if (m.source == OCC_ATTRIBUTION_REGRESSED)
            assert_near(m.elapsed, levels[k] * (0.7 + 0.3 / 4), 2.5 * m.elapsed_se);
        known += m.source == OCC_ATTRIBUTION_REGRESSED;
    }
    assert_true(known > N(levels) / 2);
}

/* Adds `n` pairs of kernels, a pair each ms: the second kernel always follows the first one directly. */
static void run_pairs(struct fixture *f, int n, double level)
{
    for (int i = 0; i < n; i++) {
        put_run(f, (struct run){f->now_ns, f->now_ns + 100000, 1, 7, level, 1});
        put_run(f, (struct run){f->now_ns + 100000, f->now_ns + 200000, 2, 8, level / 3, 1});
        f->now_ns += MS;
    }
}

/* The offset is longer than the kernels, so corrections to first order lead nowhere. Guards SEARCH_US -,
 * SEARCH_PPM -. */
static void a_clock_far_away_is_found(void **state)
{
    struct fixture *f = *state;
    struct occ_attribution_stats stats;
    struct occ_measured m;
    f->offset_ns = 70000;
    f->ppm = -40;
    for (int i = 0; i < 60000; i++) {
        uint32_t k = draw(f, 6);
        then(f, 20000 + 5000 * k + draw(f, 4000), k + 1, 0.1 + 0.15 * k);
    }
    play(f, MS, NULL);
    occ_attribution_get_stats(f->a, &stats);
    assert_near(stats.drift_ppm, -40, 4);
    assert_near((double)stats.offset_ns, 70000 - 40e-6 * (double)(f->now_ns - START_NS), 2000);
    for (uint32_t k = 0; k < 6; k++) {
        ask(f, k + 1, &m);
        assert_int_equal(m.source, OCC_ATTRIBUTION_REGRESSED);
        assert_near(m.elapsed, 0.1 + 0.15 * k, 0.02);
    }
}

/* Guards CORRELATED +, IDLE_SD +. */
static void what_always_runs_together_is_a_group(void **state)
{
    struct fixture *f = *state;
    struct occ_measured a, b;
    run_pairs(f, 4000, 0.9); /* every sample holds both kernels */
    play(f, MS, NULL);
    ask(f, 1, &a);
    ask(f, 2, &b);
    assert_int_equal(a.source, OCC_ATTRIBUTION_GROUP);
    assert_int_equal(b.source, OCC_ATTRIBUTION_GROUP);
    assert_near(a.elapsed, 0.6, 0.01);
    assert_true(a.elapsed == b.elapsed);
}

/* The mean of a kernel and a fill would be no kernel's. */
static void a_fill_is_in_no_group(void **state)
{
    struct fixture *f = *state;
    struct occ_measured a, b;
    f->memory = 2;
    run_pairs(f, 4000, 0.9);
    play(f, MS, NULL);
    ask(f, 1, &a);
    ask(f, 2, &b);
    assert_int_equal(a.source, OCC_ATTRIBUTION_NONE);
    assert_int_equal(b.source, OCC_ATTRIBUTION_NONE);
}

/* No model knows the blocks of fills. */
static void fills_leave_kernels_their_values(void **state)
{
    struct fixture *f = *state;
    struct occ_measured m;
    f->memory = 4;
    f->grid = f->memory_grid = SMS;
    f->waves = 1;
    run_for(f, 3000, 1, 0.05);
    play(f, MS, NULL);
    for (uint64_t shape = 1; shape < 4; shape++) {
        ask(f, shape, &m);
        assert_int_equal(m.source, OCC_ATTRIBUTION_REGRESSED);
        assert_near(m.elapsed, 0.15 + 0.2 * (double)(shape - 1), 0.01);
    }
}

/* The coarse samples contain no information on the clock, so the first fine samples are joined with a wrong
 * offset. Guards BEGIN_ROUNDS -. */
static void finer_samples_find_the_clock_anew(void **state)
{
    struct fixture *f = *state;
    struct occ_attribution_stats stats;
    struct occ_measured m;
    f->offset_ns = 12000;
    for (int i = 0; i < 20000; i++, f->now_ns += 100000)
        put_run(f, (struct run){f->now_ns, f->now_ns + 100000, 3, 1, 0.4, 1});
    f->burst_ns = f->now_ns;
    while (f->now_ns < f->burst_ns + 300 * MS) {
        uint32_t k = draw(f, 2);
        then(f, 30000 + 20000 * k + draw(f, 5000), k + 1, k ? 0.2 : 0.7);
    }
    play(f, MS, NULL);
    occ_attribution_get_stats(f->a, &stats);
    assert_near((double)stats.offset_ns, 12000, 1000);
    for (uint32_t k = 0; k < 2; k++) {
        ask(f, k + 1, &m);
        assert_int_equal(m.source, OCC_ATTRIBUTION_REGRESSED);
        assert_near(m.elapsed, k ? 0.2 : 0.7, 2 * m.elapsed_se);
    }
}

/* If kernels follow each other directly, a clock error takes time from one kernel and adds it to the other.
 * Guards CLOCK_ERROR_US + -. */
static void the_clocks_have_a_place_in_the_error(void **state)
{
    struct fixture *f = *state;
    struct occ_measured m;
    run_pairs(f, 2000, 0.6);
    play(f, MS / 20, NULL);
    ask(f, 1, &m);
    assert_int_equal(m.source, OCC_ATTRIBUTION_REGRESSED);
    assert_true(m.elapsed_se > 0.01 && m.elapsed_se < 0.024);
}

/* Guards ERROR_MIN + -. */
static void a_steady_kernel_is_certain(void **state)
{
    struct fixture *f = *state;
    struct occ_measured m;
    for (int i = 0; i < 3000; i++)
        then(f, 300000 + draw(f, 200000), 1, 0.5);
    play(f, MS, NULL);
    ask(f, 1, &m);
    assert_near(m.elapsed, 0.5, 0.001);
    assert_true(m.elapsed_se >= 0.001 && m.elapsed_se < 0.004);
}

/* Guards OVERLAPPED_MARGIN + -, SCALE_MIN -. */
static void beside_others_achieved_is_withheld(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3000; i++) {
        int64_t a = 100000 + draw(f, 200000), b = 100000 + draw(f, 200000);
        if (draw(f, 4) > 0)
            put_run(f, (struct run){f->now_ns, f->now_ns + a, 1, 0, 0.2, 0.4});
        put_run(f, (struct run){f->now_ns + 20000, f->now_ns + 20000 + b, 2, 0, 0.3, 0.5});
        f->now_ns += 50000 + (a > b ? a : b);
    }
    play(f, MS, NULL);
    for (uint64_t shape = 1; shape <= 2; shape++) {
        struct occ_measured m;
        ask(f, shape, &m);
        assert_true(m.overlapped);
        assert_true(isnan(m.achieved));
        assert_near(m.elapsed, shape == 1 ? 0.2 : 0.3, 0.03);
        assert_true(m.elapsed_se > 0.00112 && m.elapsed_se < 0.0014);
    }
}

static int by_start(const void *a, const void *b)
{
    int64_t x = ((const struct run *)a)->start_ns, y = ((const struct run *)b)->start_ns;
    return (x > y) - (x < y);
}

/* Two streams repeat the same steps; two of their kernels have either the whole GPU or, for longer, only
 * a part. Profiles and a wrong clock could explain much of the difference as well. Guards PRIOR_SD -,
 * PROFILE_SD
 * +. */
static void repeated_steps_do_not_lead_the_clock_astray(void **state)
{
    static const struct {
        int64_t ns[2]; /* by stream */
        uint64_t shape;
        double level[2];
    } step[] = {
        {{855000, 855000}, 1, {0.24, 0.24}},  {{422000, 422000}, 2, {0.24, 0.24}},
        {{332000, 332000}, 3, {0.02, 0.02}},  {{996000, 996000}, 4, {0.06, 0.06}},
        {{262000, 523000}, 5, {0.90, 0.45}},  {{996000, 996000}, 6, {0.03, 0.03}},
        {{406000, 406000}, 7, {0.40, 0.40}},  {{422000, 422000}, 2, {0.24, 0.24}},
        {{332000, 332000}, 8, {0.03, 0.03}},  {{1617000, 4043000}, 9, {0.50, 0.20}},
        {{332000, 332000}, 10, {0.01, 0.01}},
    };
    struct fixture *f = *state;
    struct occ_attribution_stats stats;
    f->offset_ns = 16000;
    for (int round = 0; round < 1500; round++) {
        int64_t at_ns[2] = {f->now_ns, f->now_ns};
        for (size_t i = 0; i < 2 * N(step); i++) {
            size_t stream = i / N(step), k = i % N(step);
            int64_t end_ns = at_ns[stream] + step[k].ns[stream];
            double level = step[k].level[stream];
            put_run(f, (struct run){at_ns[stream], end_ns, step[k].shape, 0, level, fmin(2 * level, 1)});
            at_ns[stream] = end_ns + 1000;
        }
        f->now_ns = at_ns[0] > at_ns[1] ? at_ns[0] : at_ns[1];
    }
    qsort(f->runs, f->n_runs, sizeof *f->runs, by_start);
    play(f, MS, NULL);
    occ_attribution_get_stats(f->a, &stats);
    assert_near((double)stats.offset_ns, 16000, 12000);
}

/* More kernels than profiles, all with more warps in their first half: a sample's edge would give these warps
 * to the previous kernel. */
static void profiles_without_room_are_taken_to_be_alike(void **state)
{
    struct fixture *f = *state;
    enum { KERNELS = 460, LAUNCHES = 13800 };
    struct occ_measured *values = calloc(2 * LAUNCHES, sizeof *values);
    size_t launches = 0, valued = 0, wrong = 0;
    assert_non_null(values);
    for (size_t i = 0; i < LAUNCHES; i++) {
        uint64_t k = draw(f, KERNELS);
        int64_t half_ns = 150000 + (int64_t)(k * k % 37) * 6000 + draw(f, 3000);
        put_run(f, (struct run){f->now_ns, f->now_ns + half_ns, 0, 0, 0.4, 0});
        then(f, 2 * half_ns, k + 1, 0.1 + 0.3 * (double)(k * 7 % 31) / 31);
    }
    play(f, MS / 2, values);
    for (size_t i = f->n_runs * 3 / 4; i < f->n_runs; i++) {
        bool is_valued = values[i].source == OCC_ATTRIBUTION_REGRESSED;
        launches += f->runs[i].shape > 0;
        valued += is_valued;
        wrong += is_valued && fabs(values[i].elapsed - f->runs[i].level - 0.2) > 1.96 * values[i].elapsed_se;
    }
    assert_true(valued * 10 >= launches * 8);
    assert_true(wrong * 20 <= valued);
    free(values);
}

/* Forty kernels in sequence, exactly 15 ms per step: samples of 1 ms cover the same combinations again and
 * again. The error of each value must cover its deviation. */
static void a_training_step_is_honest(void **state)
{
    struct fixture *f = *state;
    enum { KERNELS = 40, STEPS = 400 };
    struct occ_measured *values = calloc(KERNELS * STEPS, sizeof *values);
    size_t valued = 0, wrong = 0;
    assert_non_null(values);
    for (int step = 0; step < STEPS; step++) {
        for (uint64_t k = 0; k < KERNELS; k++)
            then(f, 3000 + (int64_t)(k * k % 37) * 11000, k + 1,
                 0.05 + 0.9 * (double)(k * 7 % KERNELS) / KERNELS);
        f->now_ns = START_NS + (step + 1) * 15 * MS;
    }
    play(f, MS, values);
    for (size_t i = f->n_runs / 2; i < f->n_runs; i++) {
        if (values[i].source != OCC_ATTRIBUTION_REGRESSED)
            continue;
        valued++;
        assert_true(values[i].elapsed_se > 0 && values[i].elapsed_se < 0.1);
        wrong += fabs(values[i].elapsed - f->runs[i].level) > 1.96 * values[i].elapsed_se + 0.01;
    }
    assert_true(wrong * 20 <= valued);
    free(values);
}

static void impossible_counters_are_left_out(void **state)
{
    struct fixture *f = *state;
    f->garble = true;
    play_random(f, 12000);
    assert_true(f->n_bad > 3);
}

/* Guards COVERED +. */
static void a_late_long_launch_is_read_from_the_past(void **state)
{
    struct fixture *f = *state;
    const struct run late = {START_NS + 200 * MS, START_NS + 900 * MS, 9, 0, 0.25, 0.5};
    put_run(f, late); /* samples contain the launch ... */
    give_samples(f, START_NS, START_NS + 1500 * MS);
    occ_attribution_advance(f->a, START_NS + 1400 * MS, false);
    const struct occ_attribution_launch launch = launch_of(f, 0); /* ... before its record arrives */
    assert_true(occ_attribution_launch(f->a, &launch));
    occ_attribution_advance(f->a, START_NS + 1401 * MS, false);
    assert_int_equal(f->n_values, 1);
    assert_int_equal(f->value.measured.source, OCC_ATTRIBUTION_DIRECT);
    assert_true(isnan(f->value.measured.utilization[OCC_UTILIZATION_DRAM])); /* the launch's rows lack DRAM */
    assert_near(f->value.measured.elapsed, 0.25, 0.001);
    assert_near(f->value.measured.achieved, 0.5, 0.001);
    /* a launch without samples of its time is only counted */
    struct occ_attribution_launch unseen = launch;
    struct occ_attribution_stats stats;
    unseen.start_ns = START_NS - 900 * MS;
    unseen.end_ns = START_NS - 800 * MS;
    assert_true(occ_attribution_launch(f->a, &unseen));
    occ_attribution_advance(f->a, START_NS + 1402 * MS, false);
    assert_int_equal(f->n_values, 1);
    occ_attribution_get_stats(f->a, &stats);
    assert_true(stats.late_launches == 1);
    /* a launch waits for its last samples to be joined */
    const struct run later = {START_NS + 1000 * MS, START_NS + 2900 * MS, 9, 0, 0.5, 1};
    put_run(f, later);
    give_samples(f, START_NS + 1500 * MS, START_NS + 2000 * MS);
    unseen = launch_of(f, 1);
    assert_true(occ_attribution_launch(f->a, &unseen));
    occ_attribution_advance(f->a, START_NS + 1900 * MS, false);
    assert_int_equal(f->n_values, 1);
    give_samples(f, START_NS + 2000 * MS, START_NS + 4000 * MS);
    occ_attribution_advance(f->a, START_NS + 3990 * MS, false);
    assert_int_equal(f->n_values, 2);
    assert_near(f->value.measured.elapsed, 0.5,
                0.15); /* samples of its first half second were joined without the launch */
}

/* The first launch ends, and the second one begins, within the same tenth of a second of the past; both last
 * longer than rows are kept. */
static void late_launches_share_no_edge(void **state)
{
    struct fixture *f = *state;
    put_run(f, (struct run){START_NS + 203 * MS, START_NS + 32150 * MS, 9, 0, 0.25, 0.5});
    put_run(f, (struct run){START_NS + 32150 * MS, START_NS + 54160 * MS, 10, 0, 0.75, 1});
    for (size_t i = 0; i < 2; i++) {
        const struct occ_attribution_launch launch = launch_of(f, i);
        int64_t from_ns = i == 0 ? START_NS : f->runs[0].end_ns + MS, end_ns = launch.end_ns + MS;
        give_samples(f, from_ns, end_ns);
        occ_attribution_advance(f->a, end_ns + 300 * MS, false);
        assert_true(occ_attribution_launch(f->a, &launch));
        occ_attribution_advance(f->a, end_ns + 300 * MS, false);
        assert_int_equal(f->n_values, i + 1);
        assert_near(f->value.measured.elapsed, f->runs[i].level, 1e-6);
    }
}

/* Gives samples of 1 ms up to end_ns, except the middle `gap_ms` of every 100 ms. */
static void give_until(struct fixture *f, int64_t end_ns, int64_t gap_ms)
{
    for (int64_t at_ns = START_NS; at_ns < end_ns; at_ns += MS) {
        const struct occ_sample sample = sample_of(f, at_ns, MS);
        if (((at_ns - START_NS) / MS + (100 - gap_ms) / 2) % 100 < 100 - gap_ms)
            assert_true(give(f, &sample));
    }
    occ_attribution_advance(f->a, end_ns, false);
}

/* Reports the run late. Returns true if it gets a value. */
static bool has_value_late(struct fixture *f, size_t run)
{
    size_t before = f->n_values;
    report_run(f, run);
    occ_attribution_advance(f->a, f->now_ns, false);
    return f->n_values > before;
}

static void late_launches_need_samples_of_their_time(void **state)
{
    struct fixture *f = *state;
    put_run(f, (struct run){START_NS + 200 * MS, START_NS + 2900 * MS, 9, 0, 0.1, 0.5});
    give_until(f, f->now_ns = START_NS + 3300 * MS, 58);
    assert_false(has_value_late(f, 0));
}

/* The window has already attributed the late launch's warps to the kernels beside it, so the rest is not the
 * late launch's occupancy. */
static void a_late_launch_beside_others_has_no_value(void **state)
{
    struct fixture *f = *state;
    run_for(f, 9900, 0.5, 0);
    for (size_t i = 0; i < f->n_runs; i++)
        report_run(f, i);
    put_run(f, (struct run){START_NS + 200 * MS, START_NS + 9200 * MS, 9, 0, 0.3, 0.3});
    qsort(f->runs, f->n_runs, sizeof *f->runs, by_start);
    give_until(f, f->now_ns, 0);
    for (size_t i = 0; i < f->n_runs; i++)
        if (f->runs[i].shape == 9)
            assert_false(has_value_late(f, i));
}

/* The first launch overlaps the whole of the second and the third, and these do not overlap each other. */
static void late_launches_beside_each_other_have_no_value(void **state)
{
    struct fixture *f = *state;
    put_run(f, (struct run){START_NS + 500 * MS, START_NS + 4500 * MS, 9, 0, 0.2, 0.5});
    put_run(f, (struct run){START_NS + 700 * MS, START_NS + 2700 * MS, 10, 0, 0.3, 0.5});
    put_run(f, (struct run){START_NS + 2900 * MS, START_NS + 4300 * MS, 11, 0, 0.4, 0.5});
    give_until(f, f->now_ns = START_NS + 5300 * MS, 0);
    for (size_t i = 0; i < 2; i++)
        report_run(f, i);
    assert_false(has_value_late(f, 2));
    assert_int_equal(f->n_values, 0);
}

/* Samples last a second. The short launch lies within one sample, so this sample's counts are not the long
 * launch's alone. */
static void long_samples_of_late_launches_are_shared(void **state)
{
    struct fixture *f = *state;
    put_run(f, (struct run){START_NS + 2000 * MS, START_NS + 42000 * MS, 9, 0, 0.3, 0.5});
    put_run(f, (struct run){START_NS + 6500 * MS, START_NS + 6900 * MS, 10, 0, 0.4, 0.5});
    for (int64_t at_ns = START_NS; at_ns < START_NS + 44000 * MS; at_ns += 1000 * MS) {
        const struct occ_sample sample = sample_of(f, at_ns, 1000 * MS);
        assert_true(give(f, &sample));
    }
    occ_attribution_advance(f->a, START_NS + 45000 * MS, false);
    for (size_t i = 0; i < 2; i++)
        report_run(f, i);
    occ_attribution_advance(f->a, START_NS + 45001 * MS, false);
    assert_int_equal(f->n_values, 1);
    assert_near(f->value.measured.elapsed, 0.3, 0.001);
}

/* Late short launches get no value, but their warps remain in the past: a long launch beside them gets none,
 * either. */
static void late_launches_that_are_short_had_their_part(void **state)
{
    struct fixture *f = *state;
    put_run(f, (struct run){START_NS + 500 * MS, START_NS + 2500 * MS, 9, 0, 0.2, 0.5});
    for (int64_t i = 0; i < 600; i++)
        put_run(f,
                (struct run){START_NS + (500 + 3 * i) * MS, START_NS + (502 + 3 * i) * MS, 1, 0, 0.5, 0.5});
    give_until(f, f->now_ns = START_NS + 3300 * MS, 0);
    for (size_t i = 1; i < 601; i++)
        assert_false(has_value_late(f, i));
    assert_false(has_value_late(f, 0));
}

/* The past does not look up the time of each launch if very many are late: it is dropped. */
static void very_many_late_launches_leave_no_past(void **state)
{
    struct fixture *f = *state;
    put_run(f, (struct run){START_NS + 2500 * MS, START_NS + 4500 * MS, 9, 0, 0.2, 0.5});
    for (int64_t i = 0; i < 600; i++)
        put_run(f,
                (struct run){START_NS + (500 + 5 * i) * MS, START_NS + (504 + 5 * i) * MS, 1, 0, 0.5, 0.5});
    qsort(f->runs, f->n_runs, sizeof *f->runs, by_start);
    give_until(f, f->now_ns = START_NS + 20000 * MS, 0); /* the rows of that time are in the past by now */
    size_t late = 0;
    for (size_t i = 0; i < f->n_runs; i++) {
        if (f->runs[i].shape != 9)
            report_run(f, i);
        late = f->runs[i].shape == 9 ? i : late;
    }
    occ_attribution_advance(f->a, f->now_ns, false);
    assert_false(has_value_late(f, late));
}

static void a_late_launch_leaves_rows_of_other_times(void **state)
{
    struct fixture *f = *state;
    run_for(f, 3300, 1, 0.1);
    for (size_t i = 0; i < f->n_runs; i++)
        report_run(f, i);
    give_until(f, START_NS + 3000 * MS, 0);
    put_run(f, (struct run){START_NS + 2950 * MS, START_NS + 2951 * MS, 9, 0, 0, 0});
    report_run(f, --f->n_runs);
    occ_attribution_advance(f->a, START_NS + 3000 * MS, false);
    give_samples(f, START_NS + 3000 * MS, START_NS + 3300 * MS);
    occ_attribution_advance(f->a, f->now_ns + 10 * MS, true);
    for (uint64_t k = 1; k <= 4; k++)
        assert_true(f->last[k].source == OCC_ATTRIBUTION_REGRESSED && f->last[k].elapsed_se < 0.004);
}

/* A launch's record arrives after its end: until then its warps seem to belong to a small kernel beside it.
 */
static void a_late_launch_beside_a_small_one_is_not_taken_for_less(void **state)
{
    struct fixture *f = *state;
    put_run(f, (struct run){START_NS, START_NS + 20000 * MS, 0, 0, 0.6, 0.8});
    for (int64_t i = 0; i < 40000; i++)
        put_run(f, (struct run){START_NS + i * MS, START_NS + i * MS + 70000, 1, 0, 0.2, 0.2});
    f->now_ns = START_NS + 40000 * MS;
    play(f, MS, NULL);
    f->runs[0].shape = 9;
    if (has_value_late(f, 0))
        assert_near(f->value.measured.elapsed, 0.6, 1.96 * f->value.measured.elapsed_se);
}

/* The past has no rows of a launch's begin and end: here its last 90 ms have no warps. */
static void edges_of_late_launches_have_a_place_in_the_error(void **state)
{
    struct fixture *f = *state;
    put_run(f, (struct run){START_NS + 210 * MS, START_NS + 2000 * MS, 9, 0, 0.3, 0.5});
    give_until(f, f->now_ns = START_NS + 2600 * MS, 0);
    f->runs[0].end_ns = START_NS + 2090 * MS;
    assert_true(has_value_late(f, 0));
    assert_near(f->value.measured.elapsed, 0.3 * 1790 / 1880, 1.96 * f->value.measured.elapsed_se);
}

static void samples_may_lie_in_each_other(void **state)
{
    struct fixture *f = *state;
    run_for(f, 1200, 1, 0);
    for (size_t i = 0; i < f->n_runs; i++)
        report_run(f, i);
    give_until(f, START_NS + 1000 * MS, 0);
    for (int64_t ms = 100; ms > 1; ms /= 2) {
        const struct occ_sample sample = sample_of(f, START_NS + 1000 * MS, ms * MS);
        assert_true(give(f, &sample));
    }
    occ_attribution_advance(f->a, f->now_ns, true);
}

/* Launches that have ended make room for others. */
static void a_sample_may_have_1500_launches(void **state)
{
    struct fixture *f = *state;
    size_t n = 45000, said = 0;
    struct occ_measured *values = calloc(n, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < n; i++)
        then(f, 60000, 1, 0.2);
    play(f, 100 * MS, values);
    for (size_t i = 0; i < n; i++)
        said += values[i].source == OCC_ATTRIBUTION_REGRESSED;
    assert_true(said > n / 2);
    free(values);
}

/* Programs choose their graphs' node numbers: here the node of one shape has the same hash as a launch of
 * another shape. */
static void nobody_gets_launches_of_another_shape(void **state)
{
    struct fixture *f = *state;
    const uint64_t odd = UINT64_C(0xc2b2ae3d27d4eb4f), mix = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t inverse = odd;
    for (int i = 0; i < 6; i++)
        inverse *= 2 - odd * inverse;
    for (int i = 0; i < 4000; i++) {
        then(f, 150000 + 1000 * (int64_t)draw(f, 100), i % 3 ? 9 : 7, i % 3 ? 0.2 : 0.6);
        f->runs[i].node = i % 3 ? (7 * mix ^ 9 * mix) * inverse : 0;
        f->now_ns += draw(f, 400000);
    }
    play(f, MS, NULL);
    assert_near(f->last[9].elapsed, 0.2, 0.01);
    assert_near(f->last[7].elapsed, 0.6, 0.02);
}

/* Adds a launch of a graph: n nodes of `shapes` configurations, whose numbers begin at `first`. Nodes of a
 * configuration differ by +- spread. */
static void launch_graph(struct fixture *f, uint32_t first, uint32_t n, uint32_t shapes, double spread)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t mixed = (uint64_t)(i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        uint32_t shape = (uint32_t)(mixed >> 40) % shapes + 1;
        double differs = 1 + spread * ((double)(mixed >> 20 & 1023) / 511.5 - 1);
        then(f, 8000 + 9000 * (int64_t)shape + draw(f, 4000), shape, (0.1 + 0.1 * shape) * differs);
        f->runs[f->n_runs - 1].node = first + i;
    }
    f->now_ns += 5000 + draw(f, 20000);
}

/* Asserts that more than the share `least` of the launches have a value, and that the last value of each
 * configuration is the mean of its launches. */
static void assert_means(struct fixture *f, const struct occ_measured *values, uint32_t shapes, double least)
{
    size_t said = 0;
    for (size_t i = 0; i < f->n_runs; i++)
        said += values[i].source == OCC_ATTRIBUTION_REGRESSED;
    assert_true((double)said > least * (double)f->n_runs);
    for (uint32_t shape = 1; shape <= shapes; shape++) {
        double ns = 0, warps = 0;
        for (size_t i = 0; i < f->n_runs; i++)
            if (f->runs[i].shape == shape) {
                ns += (double)(f->runs[i].end_ns - f->runs[i].start_ns);
                warps += (double)(f->runs[i].end_ns - f->runs[i].start_ns) * f->runs[i].level;
            }
        assert_near(f->last[shape].elapsed, warps / ns, 2.5 * f->last[shape].elapsed_se);
    }
}

static void play_graphs(struct fixture *f, uint32_t shapes, double least)
{
    struct occ_measured *values = calloc(f->n_runs, sizeof *values);
    assert_non_null(values);
    play(f, MS, values);
    assert_means(f, values, shapes, least);
    free(values);
}

static void a_graph_of_2000_nodes_has_values(void **state)
{
    struct fixture *f = *state;
    while (f->now_ns < START_NS + 4000 * MS)
        launch_graph(f, 1, 2000, 4, 0);
    play_graphs(f, 4, 0.9);
}

static void nodes_may_differ(void **state)
{
    struct fixture *f = *state;
    while (f->now_ns < START_NS + 6000 * MS)
        launch_graph(f, 1, 58, 4, 0.3);
    play_graphs(f, 4, 0.2);
}

/* Several nodes are in each part. */
static void many_nodes_may_differ(void **state)
{
    struct fixture *f = *state;
    while (f->now_ns < START_NS + 4000 * MS)
        launch_graph(f, 1, 900, 4, 0.1);
    play_graphs(f, 4, 0.2);
}

/* More nodes than there is room for. */
static void graphs_may_be_captured_again_and_again(void **state)
{
    struct fixture *f = *state;
    uint32_t first = 1;
    for (int64_t next_ns = START_NS; f->now_ns < START_NS + 30000 * MS; first += 1000, next_ns += 3000 * MS)
        while (f->now_ns < next_ns)
            launch_graph(f, first, 1000, 4, 0);
    play_graphs(f, 4, 0.9);
}

static void without_samples_nothing_is_said(void **state)
{
    struct fixture *f = *state;
    struct occ_measured values[8];
    f->values = values;
    for (int i = 0; i < 8; i++)
        then(f, 5 * MS, 1, 0.5);
    for (size_t i = 0; i < 8; i++)
        report_run(f, i);
    occ_attribution_advance(f->a, f->now_ns + 10000 * MS, false);
    assert_int_equal(f->n_values, 8);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(values[i].source, OCC_ATTRIBUTION_NONE);
        assert_true(isnan(values[i].elapsed) && isnan(values[i].achieved));
    }
}

static void what_no_launch_explains_is_told(void **state)
{
    struct fixture *f = *state;
    struct occ_attribution_stats stats;
    put_run(f, (struct run){START_NS, START_NS + 2000 * MS, 5, 0, 0.4, 1}); /* no launch record */
    give_samples(f, START_NS, START_NS + 2000 * MS);
    occ_attribution_advance(f->a, START_NS + 3000 * MS, true);
    occ_attribution_get_stats(f->a, &stats);
    assert_near(stats.residual_ratio, 1, 1e-9);
}

static void bad_input_is_refused(void **state)
{
    struct fixture *f = *state;
    struct occ_sample sample = sample_of(f, START_NS, MS);
    then(f, MS, 1, 0.5);
    struct occ_attribution_launch launch = launch_of(f, 0);
    launch.end_ns = launch.start_ns;
    assert_false(occ_attribution_launch(f->a, &launch));
    launch.end_ns = launch.start_ns - 1;
    assert_false(occ_attribution_launch(f->a, &launch));
    launch.start_ns = INT64_MAX - MS; /* overflows once the clocks' offset is added */
    launch.end_ns = INT64_MAX - 10;
    assert_false(occ_attribution_launch(f->a, &launch));
    launch = launch_of(f, 0);
    launch.end_ns = INT64_MAX - 10; /* all later launches would run beside it */
    assert_false(occ_attribution_launch(f->a, &launch));
    sample.end_ns = sample.start_ns;
    assert_false(give(f, &sample));
    sample = sample_of(f, START_NS, MS);
    sample.value[OCC_COUNTER_ELAPSED] = 0;
    assert_false(give(f, &sample));
    sample.value[OCC_COUNTER_ELAPSED] = INFINITY;
    assert_false(give(f, &sample));
    sample = sample_of(f, START_NS, MS);
    sample.end_ns += 86400 * INT64_C(1000000000); /* the attribution would wait a day for its launches */
    assert_false(give(f, &sample));
    sample.end_ns = INT64_MAX;
    assert_false(give(f, &sample));
    sample = sample_of(f, START_NS + 5 * MS, MS);
    assert_true(give(f, &sample));
    sample = sample_of(f, START_NS + 3 * MS, MS); /* back in time */
    assert_false(give(f, &sample));
}

static void keys_and_launches_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct occ_attribution_stats stats;
    struct occ_attribution_launch launch = {.start_ns = START_NS, .end_ns = START_NS + MS};
    for (launch.key.shape = 1; launch.key.shape <= 8192; launch.key.shape++)
        assert_true(occ_attribution_launch(f->a, &launch));
    for (; launch.key.shape <= 8194; launch.key.shape++)
        assert_false(occ_attribution_launch(f->a, &launch));
    occ_attribution_get_stats(f->a, &stats);
    assert_int_equal(stats.keys_refused, 2);
    assert_int_equal(stats.waiting, 8192);
    launch.key.shape = 1;
    for (int i = 8192; i < 262144; i++)
        assert_true(occ_attribution_launch(f->a, &launch));
    assert_false(occ_attribution_launch(f->a, &launch));
}

/* Random times and impossible counters do no harm, and every value is still an occupancy (add_value checks
 * it). */
static void hostile_input_does_no_harm(void **state)
{
    static const double weird[] = {NAN, INFINITY, -INFINITY, -1, 0, 1e300, 1e-300};
    struct fixture *f = *state;
    int64_t at_ns = START_NS;
    for (int i = 0; i < 6000; i++, at_ns += MS) {
        struct occ_sample sample = {.start_ns = at_ns, .end_ns = at_ns + MS};
        for (int c = 0; c < OCC_COUNTER_COUNT; c++)
            sample.value[c] = draw(f, 20) ? draw(f, 100000) * 1e5 : weird[draw(f, N(weird))];
        sample.value[OCC_COUNTER_ELAPSED] = draw(f, 30) ? 1.5e6 : weird[draw(f, N(weird))];
        if (draw(f, 100) == 0)
            sample.end_ns = (int64_t)draw(f, INT32_MAX) << 32;
        (void)give(f, &sample);
        for (uint32_t k = draw(f, 4); k > 0; k--) {
            struct occ_attribution_launch launch = {
                .key = {draw(f, 9), draw(f, 2), weird[draw(f, N(weird))], weird[draw(f, N(weird))],
                        weird[draw(f, N(weird))], weird[draw(f, N(weird))], weird[draw(f, N(weird))], false},
                .start_ns = at_ns + draw(f, MS),
                .end_ns = at_ns + MS + draw(f, draw(f, 50) ? 300000 : INT32_MAX)};
            if (draw(f, 100) == 0)
                launch.start_ns = (int64_t)draw(f, INT32_MAX) << 32;
            (void)occ_attribution_launch(f->a, &launch);
        }
        if (draw(f, 4) == 0)
            occ_attribution_advance(f->a, at_ns, draw(f, 4) == 0);
    }
}

static void assert_kinds(const struct fixture *f, double scale)
{
    for (uint32_t kind = 0; kind < 4; kind++) {
        struct occ_measured m;
        ask(f, kind + 1, &m);
        assert_int_equal(m.source, OCC_ATTRIBUTION_REGRESSED);
        assert_near(m.elapsed, (0.15 + 0.2 * kind) * scale, 0.02);
    }
}

static void assert_withheld(const struct fixture *f)
{
    for (uint32_t kind = 0; kind < 4; kind++) {
        struct occ_measured m;
        ask(f, kind + 1, &m);
        assert_int_equal(m.source, OCC_ATTRIBUTION_NONE);
    }
}

static void assert_utilization(const struct fixture *f, double scale, double part)
{
    for (uint32_t kind = 0; kind < 4; kind++) {
        struct occ_measured m;
        double active = fmin((0.15 + 0.2 * kind) * scale * 2, 1);
        ask(f, kind + 1, &m);
        for (int i = 0; i < OCC_UTILIZATION_COUNT; i++) {
            double truth = part * utilization_of(kind + 1, i) / (i == OCC_UTILIZATION_ISSUE ? active : 1);
            if (i == OCC_UTILIZATION_TENSOR && f->lacks_tensor) {
                assert_true(isnan(m.utilization[i]) && isnan(m.utilization_se[i]));
                continue;
            }
            assert_near(m.utilization[i], truth, fmin(0.02, 3 * m.utilization_se[i]));
            assert_true(m.utilization_se[i] < 0.026);
        }
    }
}

/* The kernel hardly changes the samples, so its bound determines its value. Guards PRIOR_PART -, PRIOR_SD -.
 */
static void a_kernel_of_a_few_warps_comes_near_its_bound(void **state)
{
    struct fixture *f = *state;
    f->small = 2;
    for (int i = 0; i < 8000; i++) {
        then(f, 200000 + draw(f, 300000), 1, 0.5 * (0.85 + 0.0003 * draw(f, 1000)));
        then(f, 3000, 2, 0.9 * SMALL_BOUND);
    }
    play(f, MS, NULL);
    const struct occ_measured *m = &f->last[2];
    assert_int_equal(m->source, OCC_ATTRIBUTION_REGRESSED);
    assert_near(m->elapsed, 0.9 * SMALL_BOUND, 1.96 * m->elapsed_se);
    assert_true(m->elapsed_se > SMALL_BOUND / 10);
}

/* The clock's offset and drift from before the pause do not hold after it. */
static void after_an_hour_the_clock_is_found_again(void **state)
{
    struct fixture *f = *state;
    f->noise = 0.05;
    run_for(f, 4000, 1, 0);
    f->away_ns = START_NS + 4500 * MS;
    f->now_ns = f->away_ns + HOUR;
    run_for(f, 4000, 0.8, 0);
    play(f, MS, NULL);
    assert_kinds(f, 0.8);
}

/* A sample with too many launches for its row is left out: the work of the missing ones would go to the
 * others. A launch that continues has a place in the next row. */
static void samples_of_too_many_launches_are_left_out(void **state)
{
    struct fixture *f = *state;
    static struct occ_measured values[40000];
    for (int turn = 0; turn < 6; turn++) {
        for (int64_t end_ns = f->now_ns + 400 * MS; f->now_ns < end_ns; f->now_ns += 2 * MS)
            put_run(f, (struct run){f->now_ns, f->now_ns + MS, 1, 0, 0.3, 1});
        size_t at = f->n_runs;
        put_run(f, (struct run){f->now_ns, f->now_ns + 60 * MS, 2, 0, 0.1, 1});
        for (int64_t i = 0; i < 6000; i++)
            put_run(f, (struct run){f->now_ns + i * 150, f->now_ns + i * 150 + 140, 3, 0, 0.6, 0});
        assert_true(f->n_runs < N(values) && at < N(values));
        f->now_ns += 70 * MS;
    }
    play(f, MS, values);
    for (size_t i = 0; i < f->n_runs; i++)
        if (values[i].source == OCC_ATTRIBUTION_REGRESSED || values[i].source == OCC_ATTRIBUTION_DIRECT)
            assert_near(values[i].elapsed, f->runs[i].level, 0.02);
    assert_int_equal(f->last[1].source, OCC_ATTRIBUTION_REGRESSED);
    assert_int_equal(f->last[2].source, OCC_ATTRIBUTION_DIRECT);
}

/* Launches of two durations; the longer ones have the higher occupancy: means are weighted by time. */
static void durations_that_differ_a_lot_leave_the_mean(void **state)
{
    struct fixture *f = *state;
    struct occ_measured m;
    double sum = 0, ns = 0;
    for (int i = 0; i < 20000; i++) {
        double longer = 1 + 4 * draw(f, 2);
        then(f, (int64_t)(100000 * longer), 1, 0.4 + 0.08 * longer);
        sum += (0.4 + 0.08 * longer) * longer;
        ns += longer;
        then(f, 50000 + draw(f, 150000), 2, 0.3);
    }
    play(f, MS, NULL);
    ask(f, 1, &m);
    assert_near(m.elapsed, sum / ns, 2 * m.elapsed_se);
    assert_true(m.elapsed_se < 0.01);
}

static void utilization_is_attributed(void **state)
{
    struct fixture *f = *state;
    struct occ_measured *values = calloc(40000, sizeof *values);
    f->turn_ms = 100;
    f->turns_ns = START_NS + 1200 * MS; /* after the first estimate */
    f->impossible = 20;
    run_for(f, 4000, 1, 0);
    play(f, MS, values);
    assert_kinds(f, 1);
    assert_utilization(f, 1, 1);
    assert_true(isnan(values[0].utilization[OCC_UTILIZATION_ISSUE])); /* before the set's first turn */
    assert_near(values[f->n_runs - 1].utilization[OCC_UTILIZATION_DRAM],
                utilization_of(f->runs[f->n_runs - 1].shape, OCC_UTILIZATION_DRAM), 0.02);
    free(values);
}

/* Utilization has few rows, so they are kept longer than others: here for a minute without any rows. Guards
 * UTILIZATION_NS -. */
static void utilization_is_kept_for_a_while(void **state)
{
    struct fixture *f = *state;
    f->turn_ms = 3;
    run_for(f, 4000, 1, 0);
    f->now_ns += 60000 * MS;
    run_for(f, 1000, 1, 0);
    play(f, MS, NULL);
    assert_utilization(f, 1, 1);
}

/* The only sample of a kernel's utilization has nearly no residual: no reason to treat it as an outlier.
 * Guards LEVERAGE_MAX +. */
static void a_single_sample_of_utilization_is_enough(void **state)
{
    struct fixture *f = *state;
    f->turn_ms = 5;
    for (int turn = 0; turn < 12; turn++) {
        uint64_t shape = turn % 3 == 1 && turn < 9 ? 2 + (uint64_t)turn / 3 : 1; /* kernel of this turn */
        run_for(f, 490, 1, 0);
        while (f->now_ns < START_NS + (turn + 1) * 500 * MS)
            then(f, 100000 + (int64_t)shape * 100000, shape, 0.15 + 0.2 * (double)(shape - 1));
    }
    play(f, 5 * MS, NULL);
    for (uint64_t k = 1; k <= 4; k++) {
        double se = f->last[k].utilization_se[OCC_UTILIZATION_L2];
        assert_near(f->last[k].utilization[OCC_UTILIZATION_L2], utilization_of(k, OCC_UTILIZATION_L2),
                    3 * se);
        assert_true(se < 0.02);
    }
}

/* Guards UTILIZATION_NS +. */
static void a_change_of_utilization_is_forgotten(void **state)
{
    struct fixture *f = *state;
    f->turn_ms = 100;
    run_for(f, 2000, 1, 0);
    f->halves_ns = f->now_ns += 130000 * MS;
    run_for(f, 2000, 1, 0);
    play(f, MS, NULL);
    assert_utilization(f, 1, 0.5);
}

static void utilization_of_a_chip_without_tensor_cores(void **state)
{
    struct fixture *f = *state;
    f->turn_ms = 100;
    f->lacks_tensor = true;
    run_for(f, 2000, 1, 0);
    play(f, MS, NULL);
    assert_utilization(f, 1, 1);
}

static void utilization_is_not_known(const struct fixture *f)
{
    struct occ_measured m;
    ask(f, 1, &m);
    for (int i = 0; i < OCC_UTILIZATION_COUNT; i++)
        assert_true(isnan(m.utilization[i]) && isnan(m.utilization_se[i]));
}

static void without_its_counters_utilization_is_not_known(void **state)
{
    struct fixture *f = *state;
    run_for(f, 2000, 1, 0);
    play(f, MS, NULL);
    assert_kinds(f, 1);
    utilization_is_not_known(f);
}

static void beside_untraced_work_utilization_is_withheld(void **state)
{
    struct fixture *f = *state;
    f->turn_ms = 100;
    f->background = 0.15;
    run_for(f, 4000, 1, 0);
    play(f, MS, NULL);
    assert_withheld(f);
    utilization_is_not_known(f);
}

/* Guards WINDOW_NS +, BLOCK_NS -, FRESH -. */
static void a_change_is_forgotten_within_seconds(void **state)
{
    struct fixture *f = *state;
    for (uint64_t shape = 1000; shape < 1100; shape++) /* a window per kernel would be too long */
        then(f, 20000, shape, 0.5);
    run_for(f, 12000, 1, 0);
    run_for(f, 11500, 0.5, 0);
    play(f, MS, NULL);
    assert_kinds(f, 0.5);
}

/* The burst leaves so many rows that a quarter of new ones takes ten seconds; the change must show earlier.
 */
static void after_a_burst_a_change_is_seen_within_seconds(void **state)
{
    struct fixture *f = *state;
    struct occ_measured *values = calloc(40000, sizeof *values);
    assert_non_null(values);
    for (uint64_t shape = 1000; shape < 1430; shape++) /* a window per kernel holds all rows */
        then(f, 20000, shape, 0.5);
    f->burst_ns = START_NS + 500 * MS;
    f->calm_ns = START_NS + 2500 * MS;
    run_for(f, 2500, 1, 0);
    run_for(f, 6000, 0.5, 0);
    size_t late = f->n_runs;
    run_for(f, 1000, 0.5, 0);
    size_t last = f->n_runs;
    run_for(f, 1000, 0.5, 0); /* their values come at the end */
    play(f, MS, values);
    for (size_t i = late; i < last; i++)
        assert_true(values[i].source == OCC_ATTRIBUTION_NONE ||
                    fabs(values[i].elapsed - f->runs[i].level) < 3 * values[i].elapsed_se);
    free(values);
}

/* Occupancy falls by 1 % per second: the mean of ten seconds would be 5 % above the current value, 0.68.
 * Guards DRIFT_TIME_NS +. */
static void of_kernels_that_drift_the_present_counts_most(void **state)
{
    struct fixture *f = *state;
    struct occ_measured m;
    for (int second = 0; second < 10; second++)
        run_for(f, 1000, 1 - 0.01 * second, 0);
    play(f, MS, NULL);
    ask(f, 4, &m);
    assert_int_equal(m.source, OCC_ATTRIBUTION_REGRESSED);
    assert_true(m.elapsed > 0.68 && m.elapsed < 0.7035);
}

/* A fifth of the launches runs alone, with half the occupancy. Their samples vary least and so have the most
 * information; the mean still covers the time of all launches. Guards ALONE_MAX -. */
static void kernels_alone_and_in_a_crowd_have_errors_for_both(void **state)
{
    struct fixture *f = *state;
    double sum[ALONE_KINDS] = {0}, launches[ALONE_KINDS] = {0};
    f->noise = 0.01;
    for (int i = 0; i < 10000; i++) {
        uint32_t kind = draw(f, ALONE_KINDS);
        bool alone = draw(f, 5) == 0;
        double spread = 1 + 0.1 * ((double)draw(f, 2000) / 1000 - 1);
        double level = (0.1 + 0.6 * kind / ALONE_KINDS) * spread * (alone ? 0.5 : 1);
        f->now_ns += alone ? 2 * MS + draw(f, MS) : 0;
        then(f, (int64_t)(20000 * pow(30, (double)kind / ALONE_KINDS)), kind + 1, level);
        f->now_ns += alone ? 2 * MS + draw(f, MS) : 0;
        sum[kind] += level;
        launches[kind]++;
    }
    play(f, MS, NULL);
    for (uint32_t kind = 0; kind < ALONE_KINDS; kind++) {
        struct occ_measured m;
        ask(f, kind + 1, &m);
        if (m.source != OCC_ATTRIBUTION_NONE)
            assert_near(m.elapsed, sum[kind] / launches[kind], 1.96 * m.elapsed_se);
    }
}

/* Guards spread_max -. */
static void launches_that_differ_a_little_have_values(void **state)
{
    struct fixture *f = *state;
    run_for(f, 8000, 1, 0.2);
    play(f, MS, NULL);
    assert_kinds(f, 1);
}

/* Such launches look as if they shared the GPU with untraced work. Guards spread_max +, above -. */
static void launches_that_differ_a_lot_have_no_values(void **state)
{
    struct fixture *f = *state;
    run_for(f, 8000, 0.8, 0.5);
    play(f, MS, NULL);
    assert_withheld(f);
}

/* Guards IDLE_SD -, SCALE_MIN +, untraced_sd -. */
static void background_that_idle_time_shows_withholds_values(void **state)
{
    struct fixture *f = *state;
    f->background = 0.08;
    run_for(f, 8000, 1, 0);
    play(f, MS, NULL);
    assert_withheld(f);
}

/* Guards untraced_sd +, ERROR_MAX -. */
static void a_little_background_has_a_place_in_the_error(void **state)
{
    struct fixture *f = *state;
    f->background = 0.02;
    run_for(f, 8000, 1, 0);
    play(f, MS, NULL);
    for (uint32_t kind = 0; kind < 4; kind++) {
        struct occ_measured m;
        ask(f, kind + 1, &m);
        assert_int_equal(m.source, OCC_ATTRIBUTION_REGRESSED);
        assert_true(fabs(m.elapsed - (0.15 + 0.2 * kind)) < 2 * m.elapsed_se);
        assert_true(m.elapsed_se > 0.005 && m.elapsed_se < 0.02);
    }
}

/* Guards BOUND_SLACK +, above -. */
static void more_than_a_configuration_allows_withholds_values(void **state)
{
    struct fixture *f = *state;
    f->theoretical = 0.7; /* one kernel has 0.75 */
    run_for(f, 4000, 1, 0);
    play(f, MS, NULL);
    assert_withheld(f);
}

/* Plays kernels of 1000 blocks each, one after the other, without idle samples. */
static void run_blocks(struct fixture *f, double waves, double beside)
{
    f->grid = 1000;
    f->waves = waves;
    f->beside = beside;
    for (int i = 0; i < 20000; i++) {
        uint32_t kind = draw(f, 4);
        then(f, 100000 + (int64_t)kind * 100000 + draw(f, 20000), kind + 1, 0.15 + 0.2 * kind);
    }
    play(f, MS, NULL);
}

static void assert_errors(const struct fixture *f, double least, double most)
{
    for (uint32_t kind = 0; kind < 4; kind++) {
        struct occ_measured m;
        ask(f, kind + 1, &m);
        assert_int_equal(m.source, OCC_ATTRIBUTION_REGRESSED);
        assert_true(m.elapsed_se > least && m.elapsed_se < most);
    }
}

static void blocks_of_launches_are_nobody_elses(void **state)
{
    run_blocks(*state, 2.5, 0);
    assert_errors(*state, 0, 0.005);
}

/* Untraced work can be as steady as the kernels; only its blocks reveal it. Guards blocks_last -. */
static void blocks_that_are_no_launchs_withhold_values(void **state)
{
    run_blocks(*state, 2.5, 80); /* of about 4000 per ms */
    assert_withheld(*state);
}

/* Guards blocks_last +. */
static void a_few_blocks_have_a_place_in_the_error(void **state)
{
    run_blocks(*state, 2.5, 14);
    assert_errors(*state, 0.005, 0.024);
}

/* All blocks start at the start of their launch, and some of the launches have not ended yet. Guards
 * blocks_last +. */
static void a_few_long_launches_are_not_taken_for_others(void **state)
{
    struct fixture *f = *state;
    struct occ_measured values[12] = {{0}};
    f->grid = 1000;
    f->waves = 0.9;
    for (int i = 0; i < 12; i++)
        then(f, (98 + i % 3) * MS + 137000, 1 + (uint64_t)i % 2, 0.5);
    play(f, MS, values);
    for (int i = 1; i < 12; i++)
        assert_int_equal(values[i].source, OCC_ATTRIBUTION_DIRECT);
}

/* Plays kernels of 1000 blocks each, which differ by a relative standard deviation of `spread`, with a fill
 * of 64 blocks after one to eight of them: every sample has fills, but not equally many. */
static void run_fills(struct fixture *f, double spread, double beside)
{
    uint32_t until_fill = 0;
    f->grid = 1000;
    f->waves = 2.5;
    f->beside = beside;
    f->memory = 4;
    f->memory_grid = 64;
    for (int i = 0; i < 120000; i++) {
        uint32_t kind = draw(f, 3);
        double differs = 1 + sqrt(3) * spread * ((double)draw(f, 2000) / 1000 - 1);
        then(f, 30000 + (int64_t)kind * 15000 + draw(f, 10000), kind + 1, (0.15 + 0.15 * kind) * differs);
        if (until_fill-- > 0)
            continue;
        then(f, 8000, f->memory + (f->kinds ? draw(f, 10) : 0), 0.3);
        for (uint64_t more = 10; i % 20000 < 10 && more <= f->kinds; more++)
            then(f, 8000, f->memory + more, 0.3);
        until_fill = draw(f, 8);
    }
    play(f, MS, NULL);
}

/* The blocks of fills are estimated, so blocks show that no other work runs, and launches may differ. */
static void fills_with_blocks_are_told_from_others_work(void **state)
{
    struct fixture *f = *state;
    run_fills(f, 0.25, 0);
    for (uint32_t kind = 0; kind < 3; kind++) {
        struct occ_measured m;
        ask(f, kind + 1, &m);
        assert_int_equal(m.source, OCC_ATTRIBUTION_REGRESSED);
        assert_near(m.elapsed, 0.15 + 0.15 * kind, 0.01);
    }
}

/* The fills do not take the blocks of steady untraced work. */
static void beside_fills_blocks_that_are_no_launchs_withhold_values(void **state)
{
    struct fixture *f = *state;
    run_fills(f, 0, 400); /* of about 20000 per ms */
    for (uint64_t shape = 1; shape <= 3; shape++)
        assert_int_equal(f->last[shape].source, OCC_ATTRIBUTION_NONE);
}

/* Fills of more kinds than the equations have room for, some of them in a few samples only. */
static void beside_fills_of_many_kinds_blocks_that_are_no_launchs_withhold_values(void **state)
{
    struct fixture *f = *state;
    f->kinds = 18;
    run_fills(f, 0.25, 400);
    for (uint64_t shape = 1; shape <= 3; shape++)
        assert_int_equal(f->last[shape].source, OCC_ATTRIBUTION_NONE);
}

/* If each sample has one fill, steady blocks can be the fills' or other work's: no evidence. */
static void regular_fills_tell_nothing_of_others_work(void **state)
{
    struct fixture *f = *state;
    f->grid = 1000;
    f->waves = 2.5;
    f->memory = 4;
    f->memory_grid = 64;
    for (int i = 0; i < 10000; i++) {
        int64_t end_ns = f->now_ns + MS;
        for (int half = 0; half < 2; half++) {
            uint32_t kind = draw(f, 3);
            double differs = 1 + sqrt(3) * 0.2 * ((double)draw(f, 2000) / 1000 - 1);
            int64_t left_ns = 400000 - 100000 * (int64_t)kind;
            then(f, left_ns, kind + 1, (0.15 + 0.15 * kind) * differs);
            then(f, 478000 - left_ns, 5, 0.5);
            if (half == 0)
                then(f, 8000, f->memory, 0.3);
        }
        f->now_ns = end_ns;
    }
    play(f, MS, NULL);
    for (uint64_t shape = 1; shape <= 3; shape++)
        assert_int_equal(f->last[shape].source, OCC_ATTRIBUTION_NONE);
}

/* Launches with lost records run while no others do: their blocks belong to idle time. */
static void blocks_of_idle_time_are_not_beside_launches(void **state)
{
    struct fixture *f = *state;
    f->grid = 1000;
    f->waves = 2.5;
    for (int i = 0; i < 8000; i++) {
        uint32_t kind = draw(f, 4);
        bool is_lost = i % 100 >= 98;
        then(f, 200000 + (int64_t)kind * 100000, is_lost ? 0 : kind + 1, is_lost ? 0.01 : 0.15 + 0.2 * kind);
    }
    play(f, MS, NULL);
    assert_errors(f, 0, 0.005);
}

/* The excess over the bound may be only a third of the untraced work, so single launches are as uncertain as
 * means. */
static void above_what_a_configuration_allows_nothing_is_read(void **state)
{
    struct fixture *f = *state;
    struct occ_measured values[800] = {{0}};
    f->theoretical = 0.61; /* one kernel has 0.635 */
    for (int i = 0; i < 800; i++)
        then(f, (4 + i % 5) * MS + 137000, 1 + (uint64_t)i % 2, i % 2 ? 0.4 : 0.635);
    play(f, MS, values);
    for (size_t i = 400; i < 800; i++)
        assert_int_equal(values[i].source, OCC_ATTRIBUTION_NONE);
}

/* Every twentieth launch lasts longer than three samples, at half of the others' occupancy. Guards INTERVALS
 * -. */
static void stragglers_are_not_read_for_all(void **state)
{
    struct fixture *f = *state;
    struct occ_measured *values = calloc(3000, sizeof *values);
    assert_non_null(values);
    for (int i = 0; i < 3000; i++) {
        bool is_slow = draw(f, 20) == 0;
        then(f, is_slow ? 3 * MS + 500000 : 1 * MS, 1, is_slow ? 0.3 : 0.6);
        f->now_ns += draw(f, 200000);
    }
    play(f, MS, values);
    for (size_t i = 0; i < f->n_runs; i++)
        assert_true(values[i].source != OCC_ATTRIBUTION_DIRECT);
    free(values);
}

/* Plays two alternating kernels; each begins before the other ends. */
static void run_beside(struct fixture *f, int64_t overlap_ns)
{
    for (int i = 0; i < 4000; i++) {
        int64_t end_ns = f->now_ns + 300000 + draw(f, 200000);
        put_run(f, (struct run){f->now_ns, end_ns, 1 + (uint64_t)i % 2, 0, i % 2 ? 0.2 : 0.3, 0.5});
        f->now_ns = end_ns - overlap_ns;
    }
    f->now_ns += overlap_ns;
    play(f, MS, NULL);
}

/* Guards OVERLAPPED -. */
static void a_short_overlap_leaves_achieved(void **state)
{
    struct fixture *f = *state;
    struct occ_measured m;
    run_beside(f, 8000); /* 4 % of a launch, at both ends together */
    ask(f, 1, &m);
    assert_false(m.overlapped);
    assert_near(m.achieved, 0.6, 0.05);
}

/* Guards OVERLAPPED +. */
static void a_longer_overlap_withholds_achieved(void **state)
{
    struct fixture *f = *state;
    struct occ_measured m;
    run_beside(f, 60000); /* 30 % */
    ask(f, 1, &m);
    assert_true(m.overlapped && isnan(m.achieved));
}

static void overlapped_launches_share_schedulers(void **state)
{
    struct fixture *f = *state;
    struct occ_measured m;
    f->turn_ms = 100;
    run_beside(f, 60000);
    for (uint64_t shape = 1; shape <= 2; shape++) {
        ask(f, shape, &m);
        assert_true(isnan(m.utilization[OCC_UTILIZATION_ISSUE]));
        assert_near(m.utilization[OCC_UTILIZATION_L2], utilization_of(shape, OCC_UTILIZATION_L2),
                    2 * m.utilization_se[OCC_UTILIZATION_L2]);
    }
}

/* The middle of a kernel has more warps than its profile can follow: rows that begin there have the same
 * error in every replay, and only their sum reveals it. Guards OCC_CLUSTERS -, PHASES + -, PROFILE_SD -,
 * PROFILE_FROM +. */
static void errors_that_repeat_do_not_average_out(void **state)
{
    struct fixture *f = *state;
    struct occ_measured a, b;
    for (int i = 0; i < 6000; i++) {
        put_run(f, (struct run){f->now_ns, f->now_ns + 300000, 1, 1, 0.1, 1});
        put_run(f, (struct run){f->now_ns + 144000, f->now_ns + 156000, 0, 0, 0.8, 0});
        put_run(f, (struct run){f->now_ns + 300000, f->now_ns + 753000, 2, 1, 0.4, 1});
        f->now_ns += 753000;
    }
    play(f, MS, NULL);
    ask(f, 1, &a);
    ask(f, 2, &b);
    assert_near(a.elapsed, 0.1 + 0.8 * 12000 / 300000, 1.96 * a.elapsed_se);
    assert_near(b.elapsed, 0.4, 1.96 * b.elapsed_se);
    assert_true(a.elapsed_se > 0.007 && a.elapsed_se < 0.009);
}

/* The launches have equal warps on more or fewer SMs; most samples are lost. */
static void errors_of_active_cycles_are_those_of_achieved_too(void **state)
{
    struct fixture *f = *state;
    struct occ_measured values[1800] = {{0}}, m = OCC_NOT_MEASURED;
    double active_ns = 0, ns = 0;
    f->lost = 2;
    for (size_t i = 0; i < N(values); i++) {
        struct run run = {f->now_ns, f->now_ns + 100000 + draw(f, 100000), 1, 0, 0.3, 0.4};
        run.active += (double)draw(f, 1000) / 2000;
        active_ns += run.active * (double)(run.end_ns - run.start_ns);
        ns += (double)(run.end_ns - run.start_ns);
        put_run(f, run);
        f->now_ns = run.end_ns + 20000;
    }
    play(f, MS, values);
    for (size_t i = 0; i < N(values); i++)
        m = values[i].source == OCC_ATTRIBUTION_REGRESSED ? values[i] : m;
    assert_near(m.achieved, 0.3 * ns / active_ns, 2 * m.achieved_se);
    assert_true(m.elapsed_se < 0.002 && m.achieved_se < 0.03);
}

/* The error of a sample with hundreds of launches is its count's, not the sum of theirs. Guards NOISE -. */
static void noise_of_samples_is_not_others_work(void **state)
{
    struct fixture *f = *state;
    struct occ_measured m;
    f->noise = 0.03;
    for (int i = 0; i < 400000; i++)
        then(f, 2000 + draw(f, 2000), 1 + draw(f, 3), 0.4);
    play(f, MS, NULL);
    for (uint64_t shape = 1; shape <= 3; shape++) {
        ask(f, shape, &m);
        assert_int_equal(m.source, OCC_ATTRIBUTION_REGRESSED);
        assert_near(m.elapsed, 0.4, 2 * m.elapsed_se);
        assert_true(m.elapsed_se < 0.01);
    }
}

/* A kernel's active cycles may come out negative: they are the rest that the other kernels leave. */
static void where_no_sm_seems_active_schedulers_are_not_known(void **state)
{
    struct fixture *f = *state;
    struct occ_measured m;
    f->turn_ms = 100;
    for (int i = 0; i < 12000; i++) {
        bool is_active = draw(f, 2) == 0;
        put_run(f, (struct run){f->now_ns, f->now_ns + 50000 + draw(f, 100000), 1 + is_active, 0,
                                is_active ? 0.5 : 0.1, is_active ? 0.9 : -0.05});
        f->now_ns = f->runs[f->n_runs - 1].end_ns + 2000;
    }
    play(f, MS, NULL);
    ask(f, 1, &m);
    assert_int_equal(m.source, OCC_ATTRIBUTION_REGRESSED);
    assert_true(isnan(m.achieved));
    assert_true(isnan(m.utilization[OCC_UTILIZATION_ISSUE]));
    assert_true(isnan(m.utilization_se[OCC_UTILIZATION_ISSUE]));
    assert_near(m.utilization[OCC_UTILIZATION_DRAM], utilization_of(1, OCC_UTILIZATION_DRAM), 0.01);
    ask(f, 2, &m);
    assert_near(m.utilization[OCC_UTILIZATION_ISSUE], utilization_of(2, OCC_UTILIZATION_ISSUE) / 0.9, 0.02);
}

static void assumptions_are_read_as_printed(void **state)
{
    static const char *const bad[] = {"",
                                      "above",
                                      "above=",
                                      "above=x",
                                      "above=1,",
                                      ",above=1",
                                      "above=1 ",
                                      "above=0",
                                      "above=-1",
                                      "above=nan",
                                      "above=inf",
                                      "above=1001",
                                      "abov=1",
                                      "above =1",
                                      "=1",
                                      "above=1,above",
                                      "above=1;spread_max=2"};
    struct occ_attribution_assumptions a = occ_attribution_usual, b = occ_attribution_usual;
    char text[OCC_ASSUMPTIONS_BYTES], again[OCC_ASSUMPTIONS_BYTES];
    (void)state;
    assert_true(occ_attribution_assume(&a, "untraced_sd=0.25,spread_max=1e-2"));
    assert_true(a.untraced_sd == 0.25 && a.spread_max == 0.01 && a.above == occ_attribution_usual.above);
    occ_attribution_print_assumptions(&a, text);
    assert_true(occ_attribution_assume(&b, text));
    occ_attribution_print_assumptions(&b, again);
    assert_string_equal(text, again);
    for (size_t i = 0; i < N(bad); i++) {
        assert_false(occ_attribution_assume(&b, bad[i]));
        assert_memory_equal(&a, &b, sizeof a);
    }
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    WITH(long_launches_are_read_one_by_one),
    WITH(long_launches_are_not_read_where_samples_are_lost),
    WITH(short_launches_are_regressed),
    WITH(another_clock_is_found),
    WITH(a_drifting_clock_is_found),
    WITH(a_clock_far_away_is_found),
    WITH(kernels_that_drain_do_not_lead_the_clock_astray),
    WITH(finer_samples_find_the_clock_anew),
    WITH(errors_of_active_cycles_are_those_of_achieved_too),
    WITH(noise_of_samples_is_not_others_work),
    WITH(what_always_runs_together_is_a_group),
    WITH(a_fill_is_in_no_group),
    WITH(fills_leave_kernels_their_values),
    WITH(the_clocks_have_a_place_in_the_error),
    WITH(a_steady_kernel_is_certain),
    WITH(beside_others_achieved_is_withheld),
    WITH(profiles_without_room_are_taken_to_be_alike),
    WITH(a_training_step_is_honest),
    WITH(impossible_counters_are_left_out),
    WITH(repeated_steps_do_not_lead_the_clock_astray),
    WITH(a_late_long_launch_is_read_from_the_past),
    WITH(late_launches_share_no_edge),
    WITH(long_samples_of_late_launches_are_shared),
    WITH(late_launches_need_samples_of_their_time),
    WITH(a_late_launch_beside_others_has_no_value),
    WITH(late_launches_beside_each_other_have_no_value),
    WITH(late_launches_that_are_short_had_their_part),
    WITH(very_many_late_launches_leave_no_past),
    WITH(a_late_launch_leaves_rows_of_other_times),
    WITH(a_late_launch_beside_a_small_one_is_not_taken_for_less),
    WITH(edges_of_late_launches_have_a_place_in_the_error),
    WITH(a_kernel_of_a_few_warps_comes_near_its_bound),
    WITH(after_an_hour_the_clock_is_found_again),
    WITH(samples_of_too_many_launches_are_left_out),
    WITH(durations_that_differ_a_lot_leave_the_mean),
    WITH(samples_may_lie_in_each_other),
    WITH(a_sample_may_have_1500_launches),
    WITH(nobody_gets_launches_of_another_shape),
    WITH(a_graph_of_2000_nodes_has_values),
    WITH(nodes_may_differ),
    WITH(many_nodes_may_differ),
    WITH(graphs_may_be_captured_again_and_again),
    WITH(without_samples_nothing_is_said),
    WITH(what_no_launch_explains_is_told),
    WITH(bad_input_is_refused),
    WITH(keys_and_launches_are_bounded),
    WITH(hostile_input_does_no_harm),
    WITH(utilization_is_attributed),
    WITH(utilization_is_kept_for_a_while),
    WITH(a_single_sample_of_utilization_is_enough),
    WITH(a_change_of_utilization_is_forgotten),
    WITH(utilization_of_a_chip_without_tensor_cores),
    WITH(without_its_counters_utilization_is_not_known),
    WITH(beside_untraced_work_utilization_is_withheld),
    WITH(overlapped_launches_share_schedulers),
    WITH(errors_that_repeat_do_not_average_out),
    WITH(where_no_sm_seems_active_schedulers_are_not_known),
    WITH(a_change_is_forgotten_within_seconds),
    WITH(after_a_burst_a_change_is_seen_within_seconds),
    WITH(of_kernels_that_drift_the_present_counts_most),
    WITH(launches_that_differ_a_little_have_values),
    WITH(kernels_alone_and_in_a_crowd_have_errors_for_both),
    WITH(launches_that_differ_a_lot_have_no_values),
    WITH(background_that_idle_time_shows_withholds_values),
    WITH(a_little_background_has_a_place_in_the_error),
    WITH(more_than_a_configuration_allows_withholds_values),
    WITH(blocks_of_launches_are_nobody_elses),
    WITH(blocks_that_are_no_launchs_withhold_values),
    WITH(a_few_blocks_have_a_place_in_the_error),
    WITH(a_few_long_launches_are_not_taken_for_others),
    WITH(fills_with_blocks_are_told_from_others_work),
    WITH(beside_fills_blocks_that_are_no_launchs_withhold_values),
    WITH(beside_fills_of_many_kinds_blocks_that_are_no_launchs_withhold_values),
    WITH(regular_fills_tell_nothing_of_others_work),
    WITH(blocks_of_idle_time_are_not_beside_launches),
    WITH(above_what_a_configuration_allows_nothing_is_read),
    WITH(stragglers_are_not_read_for_all),
    WITH(a_short_overlap_leaves_achieved),
    WITH(a_longer_overlap_withholds_achieved),
    WITH(assumptions_are_read_as_printed),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
