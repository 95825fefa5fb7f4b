/*
 * Verdicts of occq diff on groups: worlds with a known change and known noise. Each failure prints its seed.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/attribution_random.h"
#include "cli/sides/groups.h"
#include "cli/sides/verdicts.h"
#include "compare/levels.h"
#include "compare/neighbours.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define FLOOR        0.05
#define MIN_SHARE    0.01

/* ---- worlds ---- */

enum { FAMILIES = 9, CONFIGS = 10, ROWS = FAMILIES * CONFIGS, RUNS_MAX = 3 };

/* A program of nine families with ten launch configurations each; family 0 is "bn_bw". */
struct world {
    uint64_t seed;
    double noise;         /* standard deviation of a launch's logarithm */
    double family_0, all; /* factors in B */
    double run_noise;     /* standard deviation of a run's logarithm */
    uint32_t runs, steps; /* runs of each side; steps in a run */
    uint32_t launches_0;  /* launches of family 0 in a run */
    bool has_layers;      /* a layer for every second family */
    bool
        has_microseconds; /* three launches of 3.5 us per configuration, with both ends cut to microseconds */
};

struct compared {
    struct diff diff;
    struct diff_levels levels;
    struct diff_row rows[2][RUNS_MAX][ROWS];
    struct diff_part parts[2 * RUNS_MAX * ROWS];
    char names[ROWS][32], families[FAMILIES][32], layers[FAMILIES][32];
};

static const struct occ_config_row any_row = {.kernel = {.short_name = "k"}};

struct launch {
    uint32_t row;
    uint64_t ns;
};
enum { LAUNCHES_MAX = 4000 };
static struct launch launches[2][RUNS_MAX][LAUNCHES_MAX];
static size_t n_launches[2][RUNS_MAX];

/* Returns the duration of a launch of 3.5 us that began at any time, by a clock of microseconds. */
static uint64_t cut_duration(uint64_t *random, double noise)
{
    double begin = random_between(random, 0, 1), end = begin + 3.5 * random_lognormal(random, noise);
    return 1000 * (uint64_t)(floor(end) - floor(begin));
}

static void draw_run(const struct world *world, uint32_t side, uint32_t run, uint64_t *random)
{
    double of_run = random_lognormal(random, world->run_noise) * (side == DIFF_B ? world->all : 1);
    size_t n = 0;
    for (uint32_t step = 0; step < world->steps; step++)
        for (uint32_t row = 0; row < ROWS; row++) {
            uint32_t all = row < CONFIGS ? (world->launches_0 + CONFIGS - 1 - row) / CONFIGS : 12;
            double factor = row < CONFIGS && side == DIFF_B ? world->family_0 : 1;
            for (uint32_t i = step; i < (world->has_microseconds ? 3 : all); i += world->steps)
                launches[side][run][n++] =
                    (struct launch){row, world->has_microseconds
                                             ? cut_duration(random, world->noise)
                                             : (uint64_t)(1000.0 * (20 + row % CONFIGS * 11) * factor *
                                                          of_run * random_lognormal(random, world->noise))};
        }
    n_launches[side][run] = n;
}

static size_t add_parts(struct compared *c, const struct world *world, uint32_t side, uint32_t run, size_t n)
{
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t family = row / CONFIGS;
        struct diff_row *r = &c->rows[side][run][row];
        (void)snprintf(c->names[row], sizeof c->names[row], "kernel_%u", row);
        (void)snprintf(c->families[family], sizeof c->families[family], family ? "family_%u" : "bn_bw",
                       family);
        (void)snprintf(c->layers[family], sizeof c->layers[family], "Net/layer_%u", family);
        *r = (struct diff_row){.of = &any_row,
                               .id = row,
                               .mangled = c->names[row],
                               .demangled = c->names[row],
                               .family = c->families[family]};
        for (size_t i = 0; i < n_launches[side][run]; i++)
            if (launches[side][run][i].row == row) {
                r->launches++;
                r->total_ns += launches[side][run][i].ns;
            }
        if (r->launches > 0)
            c->parts[n++] =
                (struct diff_part){.row = r,
                                   .side = side,
                                   .run = run,
                                   .layer = world->has_layers && family % 2 == 0 ? c->layers[family] : NULL};
    }
    return n;
}

static void add_launches(struct compared *c, const struct world *world)
{
    for (uint32_t side = 0; side < DIFF_SIDES; side++) {
        uint64_t seen[ROWS] = {0};
        uint32_t pairs[ROWS] = {0};
        for (size_t i = 0; i < c->diff.n_parts; i++)
            if (c->parts[i].side == side)
                pairs[c->parts[i].row->id] = c->diff.items[c->parts[i].item].pair;
        for (uint32_t run = 0; run < world->runs; run++)
            for (size_t i = 0; i < n_launches[side][run]; i++) {
                const struct launch *l = &launches[side][run][i];
                diff_add_launch(&c->diff, side, pairs[l->row], seen[pairs[l->row]]++, l->ns);
            }
    }
}

static struct compared *compare(const struct world *world)
{
    struct compared *c = calloc(1, sizeof *c);
    uint64_t random = world->seed;
    size_t n = 0;
    assert_non_null(c);
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        for (uint32_t run = 0; run < world->runs; run++) {
            draw_run(world, side, run, &random);
            n = add_parts(c, world, side, run, n);
        }
    assert_int_equal(diff_collect(&c->diff, c->parts, n, (const uint32_t[]){world->runs, world->runs}, NULL),
                     0);
    for (size_t i = 0; i < n; i++)
        diff_add_sums(&c->diff, &c->parts[i],
                      &(struct diff_sums){.launches = c->parts[i].row->launches,
                                          .total_ns = c->parts[i].row->total_ns});
    assert_int_equal(diff_match(&c->diff, DIFF_CONFIG, NULL), 0);
    assert_int_equal(diff_sample(&c->diff, NULL), 0);
    if (!c->diff.by_runs)
        add_launches(c, world);
    assert_int_equal(diff_conclude(&c->diff, NULL), 0);
    assert_int_equal(diff_levels_make(&c->diff, FLOOR, MIN_SHARE, &c->levels, NULL), 0);
    return c;
}

static void end(struct compared *c)
{
    diff_levels_free(&c->levels);
    diff_free(&c->diff);
    free(c);
}

static const struct diff_group *find(const struct compared *c, enum diff_scope scope, const char *name)
{
    for (size_t i = 0; i < c->levels.n; i++)
        if (c->levels.groups[i].scope == scope && strcmp(c->levels.groups[i].name, name) == 0)
            return &c->levels.groups[i];
    return NULL;
}

static unsigned count_changes(const struct compared *c, enum diff_scope scope)
{
    unsigned n = 0;
    for (size_t i = 0; i < c->levels.n; i++)
        n += c->levels.groups[i].scope == scope && diff_is_change(c->levels.groups[i].verdict) ? 1 : 0;
    return n;
}

/* Family 0 is 20 % faster in B: ten launch configurations, 159 launches, 2 % noise, one run on each side. */
static const struct world planted = {
    .noise = 0.02, .family_0 = 0.8, .all = 1, .runs = 1, .steps = 3, .launches_0 = 159, .has_layers = true};

/* The pair's family: 0 to FAMILIES - 1. */
static uint32_t family_of(const struct diff_pair *pair)
{
    return (uint32_t)pair->main_item[DIFF_A]->row->id / CONFIGS;
}

/* ---- tests ---- */

static void a_planted_change_is_reported(void **state)
{
    unsigned covered = 0, others = 0;
    enum { SEEDS = 40 };
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct world world = planted;
        world.seed = seed;
        struct compared *c = compare(&world);
        const struct diff_group *family = find(c, DIFF_SCOPE_FAMILY, "bn_bw");
        const struct diff_group *layer = find(c, DIFF_SCOPE_LAYER, "Net/layer_0");
        if (!family || !layer || family->verdict != DIFF_BETTER || layer->verdict != DIFF_BETTER ||
            fabs(family->ratio.ratio - 0.8) > 0.01)
            fail_msg("seed %d: %g", (int)seed, family ? family->ratio.ratio : NAN);
        assert_int_equal(family->configurations, 10);
        assert_int_equal(family->launches[DIFF_A], 159);
        assert_false(diff_is_change(find(c, DIFF_SCOPE_TOTAL, "")->verdict)); /* -3 % */
        covered += family->ratio.low <= 0.8 && 0.8 <= family->ratio.high;
        others += count_changes(c, DIFF_SCOPE_FAMILY) + count_changes(c, DIFF_SCOPE_LAYER) - 2;
        assert_true(fabs(c->levels.control.ratio - 1) < 0.01);
        assert_int_equal(c->levels.control_configurations, ROWS - CONFIGS);
        assert_true(c->levels.pooled_share == 1);
        end(c);
    }
    assert_int_equal(others, 0);
    assert_true(covered >= SEEDS * 9 / 10); /* of intervals with a level of 95 % */
}

/* A tree: group 0 is families 0 to 2, with group 1 (family 0) and 2 (family 1) inside; group 3 has no pair.
 */
static void nested_groups_have_what_is_inside(void **state)
{
    static const uint32_t group_of_family[FAMILIES] = {
        1, 2, 0, DIFF_NO_PAIR, DIFF_NO_PAIR, DIFF_NO_PAIR, DIFF_NO_PAIR, DIFF_NO_PAIR, DIFF_NO_PAIR};
    static const uint32_t ends[] = {3, 2, 3, 4};
    struct world world = planted;
    uint32_t group[ROWS];
    struct diff_levels levels;
    (void)state;
    world.seed = 1;
    struct compared *c = compare(&world);
    for (uint32_t i = 0; i < c->diff.n_pairs; i++)
        group[i] = group_of_family[family_of(&c->diff.pairs[i])];
    const struct diff_nest nest = {group, ends, COUNT(ends)};
    assert_int_equal(diff_levels_nested(&c->diff, FLOOR, MIN_SHARE, &nest, &levels, NULL), 0);
    const struct diff_group *g = levels.groups, *layer = find(c, DIFF_SCOPE_LAYER, "Net/layer_0");
    assert_int_equal(levels.n, COUNT(ends));
    assert_int_equal(g[0].configurations, 3 * CONFIGS);
    assert_int_equal(g[0].launches[DIFF_A], 159 + 2 * 120);
    assert_int_equal(g[0].verdict, DIFF_UNDECIDED); /* a third of its configurations changed */
    assert_true(g[0].ratio.ratio > 0.85 && g[0].ratio.ratio < 0.97 && g[0].ratio.high < 1);
    assert_int_equal(g[1].verdict, DIFF_BETTER);
    assert_int_equal(g[2].verdict, DIFF_SAME);
    assert_int_equal(g[3].verdict, DIFF_UNDECIDED);
    assert_true(g[3].launches[DIFF_A] == 0 && isnan(g[3].ratio.ratio));
    assert_true(fabs(g[1].ratio.ratio - layer->ratio.ratio) < 1e-12); /* as the layer alone */
    assert_true(fabs(g[1].to_control.low - layer->to_control.low) < 1e-12);
    diff_levels_free(&levels);
    end(c);
}

/* A slower clock is a change of the total, not of a layer or a kernel. */
static void what_all_kernels_have_is_no_kernels_change(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct world world = planted;
        world.seed = seed;
        world.family_0 = 1;
        world.all = 1.1;
        struct compared *c = compare(&world);
        assert_int_equal(find(c, DIFF_SCOPE_TOTAL, "")->verdict, DIFF_WORSE);
        for (enum diff_scope scope = DIFF_SCOPE_LAYER; scope < DIFF_SCOPE_COUNT; scope++)
            assert_int_equal(count_changes(c, scope), 0);
        assert_true(fabs(c->levels.control.ratio - 1.1) < 0.01);
        end(c);
    }
}

/* Three equal durations of a coarse clock are no proof that the kernel always takes this time. */
static void equal_durations_of_a_coarse_clock_prove_nothing(void **state)
{
    unsigned changes = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct world world = planted;
        world.seed = seed;
        world.noise = 0.006;
        world.family_0 = 1;
        world.has_microseconds = true;
        struct compared *c = compare(&world);
        for (enum diff_scope scope = 0; scope < DIFF_SCOPE_COUNT; scope++)
            changes += count_changes(c, scope);
        end(c);
    }
    assert_in_range(changes, 0, 2); /* 5 % of 40 comparisons */
}

/* A change within the floor is no change, however certain it is. */
static void a_small_change_is_the_same(void **state)
{
    struct world world = planted;
    (void)state;
    world.seed = 1;
    world.family_0 = 1.03;
    world.noise = 0.002;
    struct compared *c = compare(&world);
    assert_int_equal(find(c, DIFF_SCOPE_FAMILY, "bn_bw")->verdict, DIFF_SAME);
    end(c);
}

static void runs_decide_where_there_are_three(void **state)
{
    (void)state;
    for (int noisy = 0; noisy < 2; noisy++) {
        struct world world = planted;
        world.seed = 1;
        world.runs = 3;
        world.run_noise = noisy ? 0.3 : 0.005;
        struct compared *c = compare(&world);
        assert_true(c->diff.by_runs);
        assert_int_equal(find(c, DIFF_SCOPE_FAMILY, "bn_bw")->verdict, noisy ? DIFF_UNDECIDED : DIFF_BETTER);
        end(c);
    }
}

/* The only launch configuration has two launches, too few for an estimate of its spread. */
static void few_launches_decide_nothing(void **state)
{
    static const uint64_t ns[] = {1000, 1001, 500, 501};
    struct diff_row rows[] = {
        {.mangled = "k", .demangled = "k", .family = "k", .launches = 2, .total_ns = 2001},
        {.mangled = "k", .demangled = "k", .family = "k", .launches = 2, .total_ns = 1001}};
    struct diff_part parts[] = {{.row = &rows[0], .side = DIFF_A}, {.row = &rows[1], .side = DIFF_B}};
    struct diff diff;
    struct diff_levels levels;
    (void)state;
    assert_int_equal(diff_collect(&diff, parts, 2, (const uint32_t[]){1, 1}, NULL), 0);
    for (int i = 0; i < 2; i++)
        diff_add_sums(&diff, &parts[i], &(struct diff_sums){.launches = 2, .total_ns = rows[i].total_ns});
    assert_int_equal(diff_match(&diff, DIFF_CONFIG, NULL), 0);
    assert_int_equal(diff_sample(&diff, NULL), 0);
    for (uint32_t i = 0; i < 4; i++)
        diff_add_launch(&diff, i / 2, 0, i % 2, ns[i]);
    diff_add_launch(&diff, DIFF_A, 0, 2, 1); /* one more than announced */
    diff_add_launch(&diff, DIFF_B, 0, 2, 0);
    assert_int_equal(diff_levels_make(&diff, FLOOR, MIN_SHARE, &levels, NULL), 0);
    assert_int_equal(levels.n, 3); /* no layer */
    for (size_t i = 0; i < levels.n; i++) {
        assert_int_equal(levels.groups[i].verdict, DIFF_UNDECIDED);
        assert_true(isnan(levels.groups[i].ratio.low) && isnan(levels.groups[i].q));
    }
    assert_true(isnan(levels.control.ratio));
    diff_levels_free(&levels);
    diff_free(&diff);
}

/* ---- replaced kernels ---- */

/* Steps of a program: six kernels of the layer "Net/rest", and in "Net/mlp" the kernels of one of three
 * forms: `sum` and `mul`, or `fused`, which does the work of both, or `fused` with the name `other`. */
enum { FORM_TWO, FORM_ONE, FORM_OTHER, FORM_TURNS }; /* turns: `sum` in one step, `mul` in the next */
struct program {
    uint32_t form, steps;
    double factor;  /* of the time of its form */
    bool is_uneven; /* kernels of the rest have numbers of launches without a common ratio */
};

static const char *const program_names[] = {"rest_a", "rest_b", "rest_c", "rest_d", "rest_e",
                                            "rest_f", "sum",    "mul",    "fused",  "other"};
enum { REST = 6, PROGRAM_ROWS = COUNT(program_names), SUM = REST, MUL, FUSED, OTHER };

struct steps {
    struct diff diff;
    struct diff_levels levels;
    struct diff_row rows[DIFF_SIDES][PROGRAM_ROWS];
    struct diff_part parts[DIFF_SIDES * PROGRAM_ROWS];
    uint32_t part_of[DIFF_SIDES][PROGRAM_ROWS];
    struct launch launches[DIFF_SIDES][LAUNCHES_MAX];
    size_t n_parts, n[DIFF_SIDES];
};

static void add_step(struct steps *s, const struct program *program, uint32_t side, uint64_t *random)
{
    static const double us[PROGRAM_ROWS] = {50, 60, 70, 80, 90, 100, 100, 200, 300, 300};
    static const uint32_t forms[][4] = {{0, SUM, MUL, 1}, {0, FUSED, 1, 2}, {0, OTHER, 1, 2}, {0, SUM, 1, 2}};
    const uint32_t *order = forms[program->form];
    for (uint32_t i = 0; i < 4 + REST; i++) {
        uint32_t row = i < 4 ? order[i] : i - 4;
        row += program->form == FORM_TURNS && row == SUM ? (uint32_t)(s->n[side] / (3 + REST + 1) % 2) : 0;
        double factor = row >= REST ? program->factor : 1;
        uint32_t times = program->is_uneven && row < REST && i >= 4 ? 1 + row : 1;
        for (uint32_t k = 0; k < times; k++)
            s->launches[side][s->n[side]++] =
                (struct launch){row, (uint64_t)(1000 * us[row] * factor * random_lognormal(random, 0.02))};
    }
}

static void add_program(struct steps *s, const struct program *program, uint32_t side, uint64_t *random)
{
    for (uint32_t step = 0; step < program->steps; step++)
        add_step(s, program, side, random);
    for (size_t i = 0; i < s->n[side]; i++) {
        struct diff_row *row = &s->rows[side][s->launches[side][i].row];
        row->launches++;
        row->total_ns += s->launches[side][i].ns;
    }
    for (uint32_t row = 0; row < PROGRAM_ROWS; row++) {
        s->rows[side][row].of = &any_row;
        s->rows[side][row].id = row;
        s->rows[side][row].mangled = s->rows[side][row].demangled = program_names[row];
        s->rows[side][row].family = row < REST ? "rest" : row < FUSED ? "elementwise" : program_names[row];
        s->part_of[side][row] = (uint32_t)s->n_parts;
        if (s->rows[side][row].launches > 0)
            s->parts[s->n_parts++] = (struct diff_part){
                .row = &s->rows[side][row], .side = side, .layer = row < REST ? "Net/rest" : "Net/mlp"};
    }
}

static struct steps *compare_programs(const struct program *a, const struct program *b, uint64_t seed)
{
    struct steps *s = calloc(1, sizeof *s);
    const struct program *const programs[] = {a, b};
    assert_non_null(s);
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        add_program(s, programs[side], side, &seed);
    assert_int_equal(diff_collect(&s->diff, s->parts, s->n_parts, (const uint32_t[]){1, 1}, NULL), 0);
    for (size_t i = 0; i < s->n_parts; i++)
        diff_add_sums(&s->diff, &s->parts[i],
                      &(struct diff_sums){.launches = s->parts[i].row->launches,
                                          .total_ns = s->parts[i].row->total_ns});
    for (enum diff_level level = 0; level < DIFF_PLACE; level++)
        assert_int_equal(diff_match(&s->diff, level, NULL), 0);
    for (uint32_t side = 0; side < DIFF_SIDES; side++) {
        struct diff_neighbours neighbours = {.diff = &s->diff};
        for (size_t i = 0; i < s->n[side]; i++) {
            uint32_t item = s->parts[s->part_of[side][s->launches[side][i].row]].item;
            assert_int_equal(diff_neighbours_add(&neighbours, 1, item), 0);
        }
        diff_neighbours_free(&neighbours);
    }
    assert_int_equal(diff_match(&s->diff, DIFF_PLACE, NULL), 0);
    assert_int_equal(diff_sample(&s->diff, NULL), 0);
    for (uint32_t side = 0; side < DIFF_SIDES; side++) {
        uint64_t seen[2 * PROGRAM_ROWS] = {0};
        for (size_t i = 0; i < s->n[side]; i++) {
            uint32_t item = s->parts[s->part_of[side][s->launches[side][i].row]].item;
            uint32_t pair = s->diff.items[item].pair;
            diff_add_launch(&s->diff, side, pair, seen[pair]++, s->launches[side][i].ns);
        }
    }
    assert_int_equal(diff_conclude(&s->diff, NULL), 0);
    assert_int_equal(diff_levels_make(&s->diff, FLOOR, MIN_SHARE, &s->levels, NULL), 0);
    return s;
}

static const struct diff_group *group_of(const struct steps *s, enum diff_scope scope, const char *name)
{
    for (size_t i = 0; i < s->levels.n; i++)
        if (s->levels.groups[i].scope == scope && strcmp(s->levels.groups[i].name, name) == 0)
            return &s->levels.groups[i];
    return NULL;
}

static void end_steps(struct steps *s)
{
    diff_levels_free(&s->levels);
    diff_free(&s->diff);
    free(s);
}

/* Two kernels that one replaced, one that two replaced, or a kernel with another name: the layer, A's family
 * and the pair of names have the verdict, on the time for the same work, also if B makes more steps. */
static void groups_decide_on_replaced_kernels(void **state)
{
    static const struct {
        struct program a, b;
        enum diff_verdict verdict;
        double ratio;
    } known[] = {
        {{FORM_TWO, 20, 1, false}, {FORM_ONE, 20, 0.8, false}, DIFF_BETTER, 0.8},
        {{FORM_TWO, 20, 1, false}, {FORM_ONE, 30, 0.8, false}, DIFF_BETTER, 0.8},
        {{FORM_ONE, 20, 1, false}, {FORM_TWO, 20, 1.25, false}, DIFF_WORSE, 1.25},
        {{FORM_ONE, 30, 1, false}, {FORM_TWO, 20, 1.25, false}, DIFF_WORSE, 1.25},
        {{FORM_TWO, 200, 1, false}, {FORM_ONE, 200, 1, false}, DIFF_SAME, 1},
        {{FORM_ONE, 200, 1, false}, {FORM_TWO, 200, 1, false}, DIFF_SAME, 1},
        {{FORM_ONE, 20, 1, false}, {FORM_OTHER, 20, 1.5, false}, DIFF_WORSE, 1.5},
        {{FORM_OTHER, 20, 1, false}, {FORM_ONE, 30, 0.8, false}, DIFF_BETTER, 0.8},
        {{FORM_TWO, 20, 1, false}, {FORM_ONE, 20, 0.8, true}, DIFF_UNDECIDED, NAN},
    };
    static const char *const families[] = {"elementwise", "fused", "other"};
    static const char *const kernels[] = {"mul\nsum", "fused", "other"};
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++)
        for (uint64_t seed = 1; seed <= 10; seed++) {
            struct steps *s = compare_programs(&known[i].a, &known[i].b, seed);
            const struct diff_group *mlp = group_of(s, DIFF_SCOPE_LAYER, "Net/mlp");
            const struct diff_group *rest = group_of(s, DIFF_SCOPE_LAYER, "Net/rest");
            assert_int_equal(rest->verdict, DIFF_SAME);
            assert_false(rest->is_for_work);
            const struct diff_group *family = group_of(s, DIFF_SCOPE_FAMILY, families[known[i].a.form]);
            const struct diff_group *kernel = group_of(s, DIFF_SCOPE_KERNEL, kernels[known[i].a.form]);
            assert_null(group_of(s, DIFF_SCOPE_FAMILY, families[known[i].b.form]));
            assert_null(group_of(s, DIFF_SCOPE_KERNEL, kernels[known[i].b.form]));
            assert_null(group_of(s, DIFF_SCOPE_KERNEL, "sum"));
            assert_null(group_of(s, DIFF_SCOPE_KERNEL, "rest_a")->name_b);
            if (isnan(known[i].ratio)) {
                assert_true(isnan(s->diff.work) && !mlp && !family && !kernel);
            } else {
                assert_true(family && family->verdict == known[i].verdict);
                assert_true(kernel && kernel->verdict == known[i].verdict);
                assert_string_equal(kernel->name_b, kernels[known[i].b.form]);
                assert_true(diff_group_has(&s->diff, &s->levels, kernel, kernel->main_pair));
                if (!mlp || mlp->verdict != known[i].verdict ||
                    fabs(mlp->ratio.ratio / known[i].ratio - 1) > 0.025)
                    fail_msg("%zu, seed %d: %d, %g", i, (int)seed, mlp ? (int)mlp->verdict : -1,
                             mlp ? mlp->ratio.ratio : NAN);
                assert_int_equal(mlp->is_for_work,
                                 known[i].a.form == FORM_TWO || known[i].b.form == FORM_TWO);
                assert_true(s->levels.pooled_share == 1);
            }
            end_steps(s);
        }
}

/* A place with one kernel in a step and another in the next is no kernel that two replaced. */
static void kernels_in_turn_replace_none(void **state)
{
    static const struct program one = {FORM_ONE, 20, 1, false}, turns = {FORM_TURNS, 20, 1, false};
    (void)state;
    for (int is_back = 0; is_back < 2; is_back++) {
        struct steps *s = compare_programs(is_back ? &turns : &one, is_back ? &one : &turns, 1);
        assert_non_null(group_of(s, DIFF_SCOPE_LAYER, "Net/mlp"));
        assert_non_null(group_of(s, DIFF_SCOPE_KERNEL, "rest_a"));
        assert_null(group_of(s, DIFF_SCOPE_KERNEL, "fused"));
        assert_null(group_of(s, DIFF_SCOPE_KERNEL, "mul\nsum"));
        assert_null(group_of(s, DIFF_SCOPE_FAMILY, "fused"));
        assert_null(group_of(s, DIFF_SCOPE_FAMILY, "elementwise"));
        end_steps(s);
    }
}

/* The row names the kernels of both sides, and why it has no verdict. */
static void replaced_kernels_are_named(void **state)
{
    static const struct {
        struct program a, b;
        const char *kernel, *reason;
    } known[] = {
        {{FORM_TWO, 20, 1, false},
         {FORM_ONE, 30, 0.8, false},
         "k + k -> k",
         "replaced: 2 kernels by 1; the verdicts on its groups decide"},
        {{FORM_ONE, 20, 1, false}, {FORM_OTHER, 20, 1.5, false}, "k -> k", "fewer than 45 launches"},
        {{FORM_ONE, 60, 1, false}, {FORM_OTHER, 60, 1.02, false}, "k -> k", ""},
        {{FORM_TWO, 20, 1, false},
         {FORM_ONE, 20, 0.8, true},
         "k + k -> k",
         "not comparable: another number of launches, each with other work"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        struct steps *s = compare_programs(&known[i].a, &known[i].b, 1);
        struct diff_report report = {
            .diff = &s->diff, .floor = FLOOR, .min_share = MIN_SHARE, .levels = s->levels};
        struct diff_line *lines = diff_make_lines(&report), *line = lines;
        assert_non_null(lines);
        while (line->pair->level != DIFF_PLACE)
            line++;
        assert_string_equal(line->kernel, known[i].kernel); /* short names of the rows */
        assert_string_equal(line->verdict, known[i].reason[0] ? "undecided" : "same");
        assert_string_equal(line->reason, known[i].reason);
        assert_true(line->matters);
        assert_true(known[i].a.form != FORM_TWO || strstr(line->changes, "kernels 2 -> 1"));
        free(lines);
        end_steps(s);
    }
}

static void sentences_name_the_group_and_the_control(void **state)
{
    static const char *const words[] = {"-20.1% (95 %: -20.6% to -19.7%)",
                                        " within these runs; 10 configurations, 159 launches, "};
    struct world world = planted;
    char text[DIFF_GROUP_BYTES], place[DIFF_PLACE_BYTES];
    (void)state;
    world.seed = 1;
    struct compared *c = compare(&world);
    struct diff_report report = {
        .diff = &c->diff, .floor = FLOOR, .min_share = MIN_SHARE, .levels = c->levels};
    struct diff_group_line *lines = diff_make_group_lines(&report);
    assert_non_null(lines);
    size_t i = 0;
    while (!diff_is_change(lines[i].group->verdict))
        i++;
    assert_string_equal(diff_group_word(lines[i].group->verdict), "FASTER");
    assert_string_equal(diff_group_place(&lines[i], place), "in layer Net/layer_0");
    assert_null(lines[i].within);
    for (size_t k = 0; k < COUNT(words); k++)
        if (!strstr(diff_group_text(&report, lines, &lines[i], text), words[k]))
            fail_msg("%s", text);
    while (lines[i].group->scope != DIFF_SCOPE_FAMILY)
        i++;
    assert_string_equal(diff_group_place(&lines[i], place), "in family bn_bw");
    assert_string_equal(lines[i].within->group->name, "Net/layer_0"); /* the same launches */
    (void)diff_control_text(&report, text);
    assert_non_null(strstr(text, "everything else "));
    assert_non_null(strstr(text, ", so not the clock"));
    assert_string_equal(
        diff_undecided_text(&report, lines, text),
        "undecided: k (1.3% of the time), k (1.2% of the time), k (1.5% of the time) and 2 more");
    free(lines);
    end(c);
}

/* A row is printed for its change, for another launch configuration, or, if there are no groups, for 1 % of
 * the time without a verdict. */
static void rows_matter_where_no_group_decides(void **state)
{
    struct world world = planted;
    size_t with_groups = 0, without = 0;
    (void)state;
    world.seed = 1;
    struct compared *c = compare(&world);
    struct diff_report report = {
        .diff = &c->diff, .floor = FLOOR, .min_share = MIN_SHARE, .levels = c->levels};
    for (uint32_t i = 0; i < c->diff.n_pairs; i++) {
        const struct diff_pair *pair = &c->diff.pairs[i];
        bool matters = diff_row_matters(&report, pair);
        const struct diff_group *kernel = find(c, DIFF_SCOPE_KERNEL, pair->main_item[DIFF_A]->row->mangled);
        assert_true(!matters || kernel->verdict == DIFF_UNDECIDED);
        with_groups += matters ? 1 : 0;
    }
    report.levels.n = 0;
    for (uint32_t i = 0; i < c->diff.n_pairs; i++)
        without += diff_row_matters(&report, &c->diff.pairs[i]) ? 1 : 0;
    assert_true(with_groups < without / 4);
    end(c);
}

/* R 4.3: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") */
static void holm_is_rs(void **state)
{
    static const double expected[] = {0.03, 0.06, NAN, 0.06, 0.02};
    double p[] = {0.01, 0.04, NAN, 0.03, 0.005};
    (void)state;
    assert_true(diff_adjust_any(p, COUNT(p)));
    for (size_t i = 0; i < COUNT(p); i++)
        assert_true(isnan(expected[i]) ? isnan(p[i]) : fabs(p[i] - expected[i]) < 1e-12);
}

static void layers_have_no_numbers_and_no_operators(void **state)
{
    static const struct {
        const char *range, *phase, *layer;
    } known[] = {
        {"Net_0/Block_3/Linear_7/aten::linear/aten::addmm", NULL, "Net/Block/Linear"},
        {"Net_0/Block_3", "backward", "Net/Block (backward)"},
        {"aten::add/aten::add_", NULL, "aten::add"},
        {"step#5/h.3", NULL, "step/h"},
        {"", NULL, ""},
        {"a//b/", NULL, "a//b"},
    };
    struct occ_arena texts = {0};
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++)
        assert_string_equal(side_layer(known[i].range, known[i].phase, &texts), known[i].layer);
    assert_null(side_layer(NULL, "backward", &texts));
    occ_arena_free(texts.blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_planted_change_is_reported),
        cmocka_unit_test(nested_groups_have_what_is_inside),
        cmocka_unit_test(what_all_kernels_have_is_no_kernels_change),
        cmocka_unit_test(equal_durations_of_a_coarse_clock_prove_nothing),
        cmocka_unit_test(a_small_change_is_the_same),
        cmocka_unit_test(runs_decide_where_there_are_three),
        cmocka_unit_test(few_launches_decide_nothing),
        cmocka_unit_test(groups_decide_on_replaced_kernels),
        cmocka_unit_test(kernels_in_turn_replace_none),
        cmocka_unit_test(replaced_kernels_are_named),
        cmocka_unit_test(sentences_name_the_group_and_the_control),
        cmocka_unit_test(rows_matter_where_no_group_decides),
        cmocka_unit_test(holm_is_rs),
        cmocka_unit_test(layers_have_no_numbers_and_no_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
