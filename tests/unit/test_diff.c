/*
 * The calculations of occq diff: statistics against values of scipy 1.10.1 (each with its call) and of
 * Benjamini and Hochberg's own example, names, matching, blocks, verdicts and sums.
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

#include "compare/changes.h"
#include "compare/compare.h"
#include "compare/mix.h"
#include "compare/names.h"
#include "compare/work.h"
#include "cli/occq/diff/diff_forms.h"
#include "cli/sides/report.h"
#include "store/store.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void assert_near(double value, double expected, double relative)
{
    if (!(fabs(value - expected) <= relative * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

/* ---- statistics ---- */

/* scipy.stats.t.cdf(1.3, df), t.cdf(-6, df). The quantiles of 0.975 are mpmath 1.2.1's, with 30 digits, since
 * the quantiles of scipy 1.10.1 are off by 1e-10. */
static void student_is_scipys(void **state)
{
    static const struct {
        double df, cdf, quantile, tail;
    } known[] = {
        {1, 0.7912855998398474, 12.706204736174705, 0.052568456711253424},
        {2, 0.8383764840919797, 4.3026527297494639, 0.013335736607712385},
        {3.7, 0.8656666379136864, 2.8675207071911895, 0.002482285650369513},
        {10, 0.8886170913965777, 2.2281388519862747, 6.605443017739279e-05},
        {38, 0.8992842865544313, 2.0243941639119696, 2.846373282425565e-07},
        {1000, 0.9030497357922713, 1.9623390808264085, 1.3776845866887337e-09},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        assert_near(diff_student_cdf(1.3, known[i].df), known[i].cdf, 1e-12);
        assert_near(diff_student_cdf(-6, known[i].df), known[i].tail, 1e-10);
        assert_near(diff_student_quantile(0.975, known[i].df), known[i].quantile, 1e-10);
        assert_near(diff_student_quantile(0.025, known[i].df), -known[i].quantile, 1e-10);
    }
    assert_true(diff_student_cdf(0, 5) == 0.5);
}

/* scipy.stats.ttest_ind(log(b), log(a), equal_var=False), and the interval with mpmath's quantile */
static void welch_is_scipys(void **state)
{
    static const double a[] = {1.02, 0.98, 1.05, 0.97, 1.01, 1.00, 0.99, 1.03};
    static const double b[] = {1.12, 1.09, 1.21, 1.05, 1.10};
    struct diff_logs logs[2];
    (void)state;
    diff_logs_of(a, COUNT(a), false, &logs[0]);
    diff_logs_of(b, COUNT(b), false, &logs[1]);
    struct diff_ratio ratio = diff_welch(&logs[0], &logs[1], 0);
    assert_near(ratio.ratio, 1.1061900323085432, 1e-12);
    assert_near(ratio.low, 1.0378224939415248, 1e-10);
    assert_near(ratio.high, 1.1790613469279087, 1e-10);
    assert_near(ratio.p, 0.009190602998942624, 1e-10);
    struct diff_ratio wider = diff_welch(&logs[0], &logs[1], 0.01);
    assert_true(wider.low < ratio.low && wider.high > ratio.high && wider.p > ratio.p);
}

/* numpy: rho = sum(e[1:] * e[:-1]) / sum(e * e) = 0.6023661420717896 */
static void correlated_values_widen_the_variance(void **state)
{
    static const double values[] = {1.00, 1.02, 1.05, 1.06, 1.10, 1.09, 1.12, 1.15, 1.13, 1.18};
    static const double alternating[] = {1, 2, 1, 2, 1, 2, 1, 2};
    struct diff_logs logs, in_order;
    (void)state;
    diff_logs_of(values, COUNT(values), false, &logs);
    assert_near(logs.mean, 0.08491722745189492, 1e-12);
    assert_near(logs.variance, 0.000280868120968977, 1e-12);
    diff_logs_of(values, COUNT(values), true, &in_order);
    assert_near(in_order.variance, 0.0011318290896376987, 1e-12);
    diff_logs_of(alternating, COUNT(alternating), false, &logs);
    diff_logs_of(alternating, COUNT(alternating), true, &in_order);
    assert_true(in_order.variance == logs.variance); /* is not narrowed */
}

static void equal_values_have_a_ratio(void **state)
{
    static const double a[] = {2, 2, 2}, b[] = {3, 3, 3}, zero[] = {1, 0, 1};
    struct diff_logs logs[3];
    (void)state;
    diff_logs_of(a, 3, true, &logs[0]);
    diff_logs_of(b, 3, true, &logs[1]);
    diff_logs_of(zero, 3, true, &logs[2]);
    struct diff_ratio ratio = diff_welch(&logs[0], &logs[1], 0);
    assert_near(ratio.low, 1.5, 1e-12);
    assert_near(ratio.high, 1.5, 1e-12);
    assert_true(ratio.p == 0);
    assert_true(diff_welch(&logs[0], &logs[0], 0).p == 1);
    assert_true(isnan(diff_welch(&logs[0], &logs[2], 0).ratio));
    logs[1].n = 1;
    assert_true(isnan(diff_welch(&logs[0], &logs[1], 0).low));
}

/* Benjamini and Hochberg 1995, table 1: of 15 hypotheses the first four are rejected at 5 %. */
static void benjamini_hochberg_is_their_example(void **state)
{
    double p[] = {0.6528, 0.0001, 0.0004, 0.0019, NAN,    0.0095, 0.0201, 0.0278,
                  0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.7590, 1.0000};
    size_t rejected = 0;
    (void)state;
    assert_true(diff_adjust(p, COUNT(p)));
    for (size_t i = 0; i < COUNT(p); i++)
        rejected += p[i] <= 0.05 ? 1 : 0;
    assert_int_equal(rejected, 4);
    assert_near(p[1], 0.0015, 1e-12); /* 0.0001 x 15 / 1 */
    assert_near(p[5], 0.0095 * 15 / 4, 1e-12);
    assert_near(p[7], 0.0298 * 15 / 7, 1e-12); /* the next rank's value is smaller */
    assert_near(p[15], 1, 1e-12);
    assert_true(isnan(p[4]));
}

static void verdicts_need_interval_and_rate(void **state)
{
    static const struct {
        double low, high, q;
        enum diff_verdict verdict;
    } known[] = {
        {1.06, 1.20, 0.01, DIFF_WORSE},     {1.06, 1.20, 0.06, DIFF_UNDECIDED},
        {1.04, 1.20, 0.01, DIFF_UNDECIDED}, {0.80, 0.95, 0.01, DIFF_BETTER},
        {0.80, 0.96, 0.01, DIFF_UNDECIDED}, {0.96, 1.04, 0.50, DIFF_SAME},
        {1.01, 1.04, 0.00, DIFF_SAME},      {0.90, 1.04, 0.50, DIFF_UNDECIDED},
        {NAN, NAN, NAN, DIFF_UNDECIDED},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++)
        assert_int_equal(
            diff_judge(&(struct diff_ratio){1, known[i].low, known[i].high, 0}, known[i].q, 0.05),
            known[i].verdict);
}

/* ---- names ---- */

static void names_lose_what_is_numbered_anew(void **state)
{
    static const struct {
        const char *name, *normalised, *loose;
    } known[] = {
        {"_GLOBAL__N__1a2b3c4d_9_foo_cu::kernel(int)", "#::kernel(int)", "#::kernel(int)"},
        {"_INTERNAL_1a2b3c4d_9_foo_cu_0a0b0c0d::kernel(int)", "#::kernel(int)", "#::kernel(int)"},
        {"triton_poi_fused_add_mul_17", "triton_poi_fused_add_mul", "triton_poi_fused_add_mul"},
        {"poi_fused_17", "poi_fused_17", "poi_fused_17"},
        {"fused_0f1e2d3c", "fused", "fused"},
        {"fused_defaced", "fused_defaced", "fused_defaced"},
        {"f<void g()::{lambda(int)#2}>", "f<void g()::{lambda(int)##}>", "f<void g()::{lambda(int)##}>"},
        {"f[abi:cxx11](int)", "f(int)", "f(int)"},
        {"Kernel2<cutlass_80_wmma_64x64_32x6_nn_align8>", "Kernel2<cutlass_80_wmma_64x64_32x6_nn_align8>",
         "Kernel2<cutlass_80_wmma_#_nn_align8>"},
        {"elementwise<4, Add<float>, 128u>", "elementwise<4, Add<float>, 128u>",
         "elementwise<#, Add<float>, #>"},
        {"__nv_static_38__a_cpp1_ii_91__Z3foo", "__nv_static_#__a_cpp#_ii_#__Z#foo",
         "__nv_static_#__a_cpp#_ii_#__Z#foo"},
        {"f[abi:", "f[abi:", "f[abi:"},
        {"", "", ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        char out[128];
        diff_normalise_name(known[i].name, false, out);
        assert_string_equal(out, known[i].normalised);
        diff_normalise_name(known[i].name, true, out);
        assert_string_equal(out, known[i].loose);
        assert_true(strlen(out) <= strlen(known[i].name));
    }
}

/* ---- matching ---- */

static struct occ_config_row config(const char *name, uint32_t grid, uint32_t block, uint32_t registers,
                                    uint64_t launches, uint64_t mean_ns)
{
    return (struct occ_config_row){
        .kernel = {.mangled = name, .demangled = name, .short_name = name, .device_name = "GPU"},
        .launch = {.grid = {grid, 1, 1}, .block = {block, 1, 1}, .registers_per_thread = registers},
        .limits = {.sm_count = 10},
        .analysed = true,
        .result = {.theoretical = 0.5,
                   .expected_achieved_low = 0.25,
                   .expected_achieved_high = 0.25,
                   .expected_elapsed_low = 0.25,
                   .expected_elapsed_high = 0.25,
                   .max_warps_per_sm = 64},
        .launches = launches,
        .total_ns = launches * mean_ns,
    };
}

struct compared {
    struct diff diff;
    struct diff_row rows[64];
    struct diff_part parts[64];
};

/* Returns a part for the row; `ret_row` receives its form for diff. */
static struct diff_part part_of(const struct occ_config_row *row, uint32_t side, struct diff_row *ret_row)
{
    *ret_row = diff_row_of(row);
    return (struct diff_part){.row = ret_row, .side = side};
}

static void compare_rows(struct compared *c, const struct occ_config_row *a, size_t n_a,
                         const struct occ_config_row *b, size_t n_b)
{
    size_t n = 0;
    for (size_t i = 0; i < n_a; i++, n++)
        c->parts[n] = part_of(&a[i], DIFF_A, &c->rows[n]);
    for (size_t i = 0; i < n_b; i++, n++)
        c->parts[n] = part_of(&b[i], DIFF_B, &c->rows[n]);
    assert_int_equal(diff_collect_rows(&c->diff, c->parts, n, (const uint32_t[]){1, 1}, NULL), 0);
    for (enum diff_level level = 0; level < DIFF_PLACE; level++)
        assert_int_equal(diff_match(&c->diff, level, NULL), 0);
}

static const struct diff_pair *pair_of(const struct diff *diff, uint32_t side, const char *name)
{
    for (uint32_t i = 0; i < diff->n_items; i++)
        if (diff->items[i].side == side && strcmp(diff->items[i].row->mangled, name) == 0)
            return diff->items[i].pair == DIFF_NO_PAIR ? NULL : &diff->pairs[diff->items[i].pair];
    fail_msg("no item %s", name);
    return NULL;
}

static void kernels_are_matched_level_by_level(void **state)
{
    const struct occ_config_row a[] = {
        config("same", 8, 128, 32, 10, 100),       config("work", 8, 128, 32, 10, 100),
        config("name", 8, 128, 32, 10, 100),       config("triton_x_1", 8, 128, 32, 10, 100),
        config("gemm<64, 64>", 8, 128, 32, 5, 50), config("gemm<128, 64>", 8, 64, 32, 10, 100),
        config("gone", 8, 128, 32, 10, 100),
    };
    const struct occ_config_row b[] = {
        config("same", 8, 128, 32, 10, 100),       config("work", 4, 256, 40, 10, 100),
        config("name", 9, 128, 32, 10, 100),       config("triton_x_2", 8, 128, 32, 10, 100),
        config("gemm<32, 32>", 8, 128, 32, 7, 70), config("new", 8, 128, 32, 10, 100),
    };
    static const struct {
        const char *name;
        enum diff_level level;
    } known[] = {{"same", DIFF_CONFIG},        {"work", DIFF_WORK},           {"name", DIFF_NAME},
                 {"triton_x_1", DIFF_SIMILAR}, {"gemm<64, 64>", DIFF_FAMILY}, {"gemm<128, 64>", DIFF_FAMILY}};
    struct compared c;
    (void)state;
    compare_rows(&c, a, COUNT(a), b, COUNT(b));
    for (size_t i = 0; i < COUNT(known); i++)
        assert_int_equal(pair_of(&c.diff, DIFF_A, known[i].name)->level, known[i].level);
    assert_null(pair_of(&c.diff, DIFF_A, "gone"));
    assert_null(pair_of(&c.diff, DIFF_B, "new"));
    assert_true(diff_has_rest(&c.diff));
    assert_int_equal(diff_sample(&c.diff, NULL), 0);
    const struct diff_pair *gemm = pair_of(&c.diff, DIFF_B, "gemm<32, 32>");
    assert_ptr_equal(gemm, pair_of(&c.diff, DIFF_A, "gemm<64, 64>"));
    assert_int_equal(gemm->n[DIFF_A], 2);
    assert_int_equal(gemm->kernels[DIFF_A], 2);
    assert_int_equal(gemm->kernels[DIFF_B], 1);
    assert_string_equal(gemm->main_item[DIFF_A]->row->mangled, "gemm<128, 64>");
    assert_int_equal(gemm->sums[DIFF_A].total_ns, 5 * 50 + 10 * 100);
    assert_int_equal(pair_of(&c.diff, DIFF_A, "gone")->level, DIFF_ONE_SIDE);
    assert_int_equal(pair_of(&c.diff, DIFF_B, "new")->level, DIFF_ONE_SIDE);
    diff_free(&c.diff);
}

/* A configuration in two ranges makes two pairs. A part without a range, or with a range that the other side
 * lacks, is matched as if no part had a range. */
static void ranges_are_part_of_the_key(void **state)
{
    const struct occ_config_row row = config("k", 8, 128, 32, 10, 100);
    const struct {
        const char *range;
        uint32_t side;
    } known[] = {{"x", DIFF_A}, {"y", DIFF_A},   {"old", DIFF_A}, {"y", DIFF_B},
                 {"x", DIFF_B}, {"new", DIFF_B}, {NULL, DIFF_B}};
    struct compared c;
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        c.parts[i] = part_of(&row, known[i].side, &c.rows[i]);
        c.parts[i].range = known[i].range;
    }
    assert_int_equal(diff_collect_rows(&c.diff, c.parts, COUNT(known), (const uint32_t[]){1, 1}, NULL), 0);
    for (enum diff_level level = 0; level < DIFF_PLACE; level++)
        assert_int_equal(diff_match(&c.diff, level, NULL), 0);
    assert_int_equal(diff_sample(&c.diff, NULL), 0);
    assert_int_equal(c.diff.n_pairs, 3);
    for (uint32_t i = 0; i < c.diff.n_pairs; i++) {
        const struct diff_pair *pair = &c.diff.pairs[i];
        bool is_rest = strcmp(pair->main_item[DIFF_A]->range, "old") == 0;
        assert_int_equal(pair->level, is_rest ? DIFF_CONFIG : DIFF_RANGE);
        assert_int_equal(pair->n[DIFF_A], 1);
        assert_int_equal(pair->n[DIFF_B], is_rest ? 2 : 1);
        assert_int_equal(pair->kernels[DIFF_B], 1);
        assert_int_equal(pair->configs[DIFF_B], 1);
        assert_true(is_rest || strcmp(pair->main_item[DIFF_A]->range, pair->main_item[DIFF_B]->range) == 0);
    }
    diff_free(&c.diff);
}

static void neighbours_match_what_names_do_not(void **state)
{
    const struct occ_config_row a[] = {config("p", 1, 32, 8, 9, 1), config("q", 1, 32, 8, 9, 1),
                                       config("old", 1, 32, 8, 9, 1), config("rare", 1, 32, 8, 9, 1)};
    const struct occ_config_row b[] = {config("p", 1, 32, 8, 9, 1), config("q", 1, 32, 8, 9, 1),
                                       config("young", 1, 32, 8, 9, 1)};
    struct compared c;
    (void)state;
    compare_rows(&c, a, COUNT(a), b, COUNT(b));
    uint32_t p = c.diff.items[0].pair, q = p + 1;
    for (uint32_t i = 0; i < c.diff.n_items; i++) {
        struct diff_item *item = &c.diff.items[i];
        bool is_rare = strcmp(item->row->mangled, "rare") == 0;
        if (item->pair != DIFF_NO_PAIR)
            continue;
        for (int k = 0; k < 3; k++)
            diff_add_neighbours(item, p, is_rare && k == 2 ? p : q); /* two of three are no clear majority */
    }
    assert_int_equal(diff_match(&c.diff, DIFF_PLACE, NULL), 0);
    assert_int_equal(pair_of(&c.diff, DIFF_A, "old")->level, DIFF_PLACE);
    assert_ptr_equal(pair_of(&c.diff, DIFF_A, "old"), pair_of(&c.diff, DIFF_B, "young"));
    assert_null(pair_of(&c.diff, DIFF_A, "rare"));
    diff_free(&c.diff);
}

/* Judges a pair with durations that change by `factor`. The durations vary with a period of five launches,
 * which a block spans. */
static void judge(struct compared *c, const struct occ_config_row *a, const struct occ_config_row *b,
                  double factor)
{
    compare_rows(c, a, 1, b, 1);
    assert_int_equal(diff_sample(&c->diff, NULL), 0);
    for (uint64_t i = 0; i < a->launches; i++)
        diff_add_launch(&c->diff, DIFF_A, 0, i, 1000 + i % 5);
    for (uint64_t i = 0; i < b->launches; i++)
        diff_add_launch(&c->diff, DIFF_B, 0, i, (uint64_t)((double)(1000 + i % 5) * factor));
    assert_int_equal(diff_conclude(&c->diff, NULL), 0);
}

static enum diff_verdict verdict_of(const struct diff *diff, enum diff_metric metric)
{
    return diff_verdict_of(diff, &diff->pairs[0], metric, 0.05, 0.01);
}

static void blocks_decide(void **state)
{
    static const struct {
        uint64_t launches;
        double factor;
        enum diff_verdict verdict;
    } known[] = {{100, 1, DIFF_SAME},   {100, 1.1, DIFF_WORSE},    {100, 0.9, DIFF_BETTER},
                 {45, 1.1, DIFF_WORSE}, {44, 1.1, DIFF_UNDECIDED}, {1000, 1.04, DIFF_SAME},
                 {103, 1.1, DIFF_WORSE}};
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        const struct occ_config_row row = config("k", 8, 128, 32, known[i].launches, 1000);
        struct compared c;
        judge(&c, &row, &row, known[i].factor);
        assert_int_equal(verdict_of(&c.diff, DIFF_METRIC_TIME), known[i].verdict);
        assert_int_equal(verdict_of(&c.diff, DIFF_METRIC_WASTE), known[i].verdict);
        assert_int_equal(verdict_of(&c.diff, DIFF_METRIC_ACHIEVED), DIFF_UNDECIDED); /* not measured */
        diff_free(&c.diff);
    }
}

/* The first block is no replicate: a run's warm-up must not count as a change. */
static void warm_up_is_left_out(void **state)
{
    const struct occ_config_row row = config("k", 8, 128, 32, 100, 1000);
    struct compared c;
    (void)state;
    compare_rows(&c, &row, 1, &row, 1);
    assert_int_equal(diff_sample(&c.diff, NULL), 0);
    for (uint64_t i = 0; i < 100; i++) {
        diff_add_launch(&c.diff, DIFF_A, 0, i, i < 5 ? 9000 : 1000 + i % 5);
        diff_add_launch(&c.diff, DIFF_B, 0, i, 1000 + i % 5);
    }
    assert_int_equal(diff_conclude(&c.diff, NULL), 0);
    assert_int_equal(verdict_of(&c.diff, DIFF_METRIC_TIME), DIFF_SAME);
    diff_free(&c.diff);
}

/* A real change of a kernel with a negligible share of the time is no alarm. */
static void small_kernels_are_no_alarm(void **state)
{
    const struct occ_config_row row = config("k", 8, 128, 32, 100, 1000);
    struct compared c;
    (void)state;
    judge(&c, &row, &row, 1.2);
    assert_int_equal(verdict_of(&c.diff, DIFF_METRIC_TIME), DIFF_WORSE);
    c.diff.total_ns[DIFF_A] = c.diff.total_ns[DIFF_B] = row.total_ns * 200;
    assert_int_equal(verdict_of(&c.diff, DIFF_METRIC_TIME), DIFF_UNDECIDED);
    diff_free(&c.diff);
}

/* Three kernels have `others` launches each in B, 200 in A; a fourth kernel goes from 200 launches to
 * `launches` with another grid, each 1.6 times as long. `runs`: of both sides.
 * `of_minutes`: the factor if these are blocks of one run's minutes. */
static void launches_with_other_work_are_compared_by_the_work(void **state)
{
    static const struct {
        uint64_t launches, others[3];
        double work, factor;
        enum diff_verdict verdict;
        uint32_t runs[DIFF_SIDES];
        double of_minutes;
    } known[] = {
        {100, {200, 200, 200}, 1, 0.5, DIFF_BETTER, {1, 1}, 0.5},      /* half of the launches do the work */
        {125, {250, 250, 250}, 1.25, 0.5, DIFF_BETTER, {1, 1}, 0.5},   /* in more steps */
        {250, {250, 250, 250}, 1.25, 1, DIFF_WORSE, {1, 1}, 1},        /* as many in a step as before */
        {200, {250, 250, 250}, 1.25, 0.8, DIFF_WORSE, {1, 1}, 0.8},    /* 1.28 times the time of a step */
        {100, {200, 300, 400}, NAN, NAN, DIFF_UNDECIDED, {1, 1}, NAN}, /* no common step */
        {200, {200, 300, 400}, NAN, 1, DIFF_WORSE, {1, 1}, 1},         /* but as many launches in all */
        {200, {200, 300, 400}, NAN, NAN, DIFF_UNDECIDED, {1, 2}, 1},   /* of twice the runs */
        {100, {200, 300, 400}, NAN, 1, DIFF_WORSE, {2, 1}, NAN},       /* as many launches in a run */
        {100, {200, 200, 200}, 1, 0.5, DIFF_BETTER, {2, 1}, 0.5},      /* runs do not matter beside steps */
    };
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        const struct occ_config_row a[] = {
            config("k", 8, 128, 32, 200, 1000), config("x", 8, 128, 32, 200, 500),
            config("y", 8, 128, 32, 200, 500), config("z", 8, 128, 32, 200, 500)};
        const struct occ_config_row b[] = {config("k", 16, 128, 32, known[i].launches, 1600),
                                           config("x", 8, 128, 32, known[i].others[0], 500),
                                           config("y", 8, 128, 32, known[i].others[1], 500),
                                           config("z", 8, 128, 32, known[i].others[2], 500)};
        struct compared c;
        compare_rows(&c, a, COUNT(a), b, COUNT(b));
        memcpy(c.diff.runs, known[i].runs, sizeof c.diff.runs);
        assert_int_equal(diff_sample(&c.diff, NULL), 0);
        const struct diff_pair *pair = pair_of(&c.diff, DIFF_A, "k");
        uint32_t at = (uint32_t)(pair - c.diff.pairs);
        assert_int_equal(pair->level, DIFF_NAME);
        for (uint64_t k = 0; k < 200; k++)
            diff_add_launch(&c.diff, DIFF_A, at, k, 1000 + k % 5);
        for (uint64_t k = 0; k < known[i].launches; k++)
            diff_add_launch(&c.diff, DIFF_B, at, k, 1600 + k % 5);
        assert_int_equal(diff_conclude(&c.diff, NULL), 0);
        assert_true(isnan(known[i].work) ? isnan(c.diff.work) : fabs(c.diff.work - known[i].work) < 1e-9);
        assert_true(isnan(known[i].factor) ? isnan(pair->work_factor)
                                           : fabs(pair->work_factor - known[i].factor) < 1e-9);
        c.diff.by_minutes = true;
        double of_minutes = diff_work_factor(&c.diff, pair);
        assert_true(isnan(known[i].of_minutes) ? isnan(of_minutes)
                                               : fabs(of_minutes - known[i].of_minutes) < 1e-9);
        c.diff.by_minutes = false;
        assert_int_equal(diff_verdict_of(&c.diff, pair, DIFF_METRIC_TIME, 0.05, 0.01), known[i].verdict);
        diff_free(&c.diff);
    }
}

/* Kernels that agree on no step: as many launches in a run, to 2 %, mean as much work. */
static void equal_counts_in_a_run_are_equal_work(void **state)
{
    static const struct {
        uint64_t launches; /* of B; A has 1000000 in a run */
        uint32_t runs[DIFF_SIDES];
        bool by_minutes;
        double work;
    } known[] = {{1000000, {1, 1}, false, 1},   {1020000, {1, 1}, false, 1},  {1020001, {1, 1}, false, NAN},
                 {980393, {1, 1}, false, 1},    {980392, {1, 1}, false, NAN}, {2040000, {1, 2}, false, 2},
                 {2040001, {1, 2}, false, NAN}, {500000, {2, 1}, false, 0.5}, {1000000, {1, 3}, true, 1},
                 {0, {1, 1}, false, NAN}};
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        struct diff diff = {.launches = {1000000, known[i].launches},
                            .runs = {known[i].runs[DIFF_A], known[i].runs[DIFF_B]},
                            .by_minutes = known[i].by_minutes,
                            .work = NAN};
        double work = diff_work_of(&diff);
        if (isnan(known[i].work) ? !isnan(work) : !(fabs(work - known[i].work) < 1e-12))
            fail_msg("%zu: %g", i, work);
        diff.work = 1.5;
        assert_true(diff_work_of(&diff) == 1.5);
    }
    assert_true(isnan(diff_work_of(&(struct diff){.launches = {0, 5}, .runs = {0, 1}, .work = NAN})));
}

/* A kernel with a tenth more launches than the others may stand at the end of a run; a kernel with twice as
 * many is called more often. */
static void numbers_of_launches_have_an_error(void **state)
{
    const struct occ_config_row a[] = {config("x", 8, 128, 32, 200, 9000), config("y", 8, 128, 32, 200, 500),
                                       config("z", 8, 128, 32, 200, 500)};
    const struct occ_config_row b[] = {config("x", 8, 128, 32, 200, 9000), config("y", 8, 128, 32, 220, 500),
                                       config("z", 8, 128, 32, 400, 500)};
    const double y_ns = 420 * 500, all_ns = 400 * 9000 + y_ns + 600 * 500;
    struct compared c;
    (void)state;
    compare_rows(&c, a, COUNT(a), b, COUNT(b));
    assert_int_equal(diff_sample(&c.diff, NULL), 0);
    assert_int_equal(diff_find_work(&c.diff, NULL), 0);
    assert_true(c.diff.work == 1);
    assert_near(c.diff.work_error, log(1.1) * sqrt(y_ns / all_ns), 1e-9);
    double of_ends = 0.6 * sqrt(1 / 400.0 + 1 / 100.0), of_work = c.diff.work_error;
    assert_near(diff_work_error(&c.diff, (const double[]){20, 10}),
                sqrt(of_ends * of_ends + of_work * of_work), 1e-9);
    diff_free(&c.diff);
}

/* The waste falls although the time rises, because the occupancy rises. */
static void waste_counts_occupancy(void **state)
{
    const struct occ_config_row a = config("k", 8, 128, 32, 100, 1000);
    struct occ_config_row b = a;
    struct compared c;
    (void)state;
    b.result.expected_elapsed_low = 0.75;
    judge(&c, &a, &b, 1.5);
    assert_int_equal(verdict_of(&c.diff, DIFF_METRIC_TIME), DIFF_WORSE);
    assert_int_equal(verdict_of(&c.diff, DIFF_METRIC_WASTE), DIFF_BETTER);
    assert_near(c.diff.pairs[0].ratio[DIFF_METRIC_WASTE].ratio, 1.5 * 0.25 / 0.75, 0.01);
    diff_free(&c.diff);
}

/* Launches of two kernels cannot be compared with launches of a single kernel that does the work of both. */
static void many_to_one_is_not_judged(void **state)
{
    const struct occ_config_row a[] = {config("f<1>", 8, 128, 32, 100, 1000),
                                       config("f<2>", 8, 128, 32, 100, 1000)};
    const struct occ_config_row b = config("f<3>", 8, 128, 32, 100, 2000);
    struct compared c;
    (void)state;
    compare_rows(&c, a, 2, &b, 1);
    assert_int_equal(diff_sample(&c.diff, NULL), 0);
    assert_int_equal(c.diff.n_pairs, 1);
    for (uint64_t i = 0; i < 200; i++)
        diff_add_launch(&c.diff, DIFF_A, 0, i, 1000 + i % 5);
    for (uint64_t i = 0; i < 100; i++)
        diff_add_launch(&c.diff, DIFF_B, 0, i, 2000 + i % 5);
    assert_int_equal(diff_conclude(&c.diff, NULL), 0);
    assert_int_equal(verdict_of(&c.diff, DIFF_METRIC_TIME), DIFF_UNDECIDED);
    diff_free(&c.diff);
}

static void set_measured(struct occ_config_row *row, double achieved, double error)
{
    double ns = (double)row->total_ns;
    row->measured.direct = row->launches;
    row->measured.sum[OCC_MEASURED_achieved] = achieved * ns;
    row->measured.sum[OCC_MEASURED_achieved_error] = error * ns;
    row->measured.ns[OCC_MEASURED_achieved] = row->measured.ns[OCC_MEASURED_achieved_error] = ns;
}

/* Lower achieved occupancy is worse if the difference exceeds the errors of the measurement. */
static void achieved_is_judged_by_its_errors(void **state)
{
    static const struct {
        double b, error;
        enum diff_verdict verdict;
    } known[] = {{0.4, 0.004, DIFF_WORSE},
                 {0.6, 0.004, DIFF_BETTER},
                 {0.501, 0.004, DIFF_SAME},
                 {0.4, 0.1, DIFF_UNDECIDED}};
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        struct occ_config_row a = config("k", 8, 128, 32, 10, 1000), b = a;
        struct compared c;
        set_measured(&a, 0.5, 0.004);
        set_measured(&b, known[i].b, known[i].error);
        judge(&c, &a, &b, 1);
        assert_int_equal(verdict_of(&c.diff, DIFF_METRIC_ACHIEVED), known[i].verdict);
        diff_free(&c.diff);
    }
}

/* A change of 15 % is beyond a floor of 5 %, but not beyond a floor of three times the 4 % by which A's runs
 * differ. */
static void spread_of_runs_raises_the_floor(void **state)
{
    static const uint64_t ns[] = {1000, 1040, 960, 1045, 955, 1150, 1151, 1149, 1150, 1150};
    struct occ_config_row rows[10];
    struct diff_row compared[10];
    struct diff_part parts[10];
    struct diff diff;
    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        rows[i] = config("k", 8, 128, 32, 3, ns[i]);
        parts[i] = part_of(&rows[i], i / 5, &compared[i]);
        parts[i].run = i % 5;
    }
    assert_int_equal(diff_collect_rows(&diff, parts, 10, (const uint32_t[]){5, 5}, NULL), 0);
    assert_int_equal(diff_match(&diff, DIFF_CONFIG, NULL), 0);
    assert_int_equal(diff_sample(&diff, NULL), 0);
    assert_int_equal(diff_conclude(&diff, NULL), 0);
    assert_int_equal(verdict_of(&diff, DIFF_METRIC_TIME), DIFF_UNDECIDED);
    diff.pairs[0].run_spread = NAN;
    assert_int_equal(verdict_of(&diff, DIFF_METRIC_TIME), DIFF_WORSE);
    diff_free(&diff);
}

/* If each side has three runs, the runs are the replicates, and the variation between runs decides. */
static void runs_decide_where_there_are_three(void **state)
{
    static const uint64_t a_ns[] = {1000, 1010, 990, 1005, 995}, b_ns[] = {1200, 1190, 1210},
                          wild_ns[] = {1000, 1500, 1100};
    (void)state;
    for (int wild = 0; wild < 2; wild++) {
        struct occ_config_row rows[8];
        struct diff_row compared[8];
        struct diff_part parts[8];
        struct diff diff;
        for (uint32_t i = 0; i < 8; i++) {
            uint64_t ns = i < 5 ? a_ns[i] : wild ? wild_ns[i - 5] : b_ns[i - 5];
            rows[i] = config("k", 8, 128, 32, 3, ns);
            parts[i] = part_of(&rows[i], i >= 5, &compared[i]);
            parts[i].run = i < 5 ? i : i - 5;
        }
        assert_int_equal(diff_collect_rows(&diff, parts, 8, (const uint32_t[]){5, 3}, NULL), 0);
        assert_int_equal(diff_match(&diff, DIFF_CONFIG, NULL), 0);
        assert_int_equal(diff_sample(&diff, NULL), 0);
        assert_true(diff.by_runs);
        diff_add_launch(&diff, DIFF_A, 0, 0, 1000000); /* no replicate */
        assert_int_equal(diff_conclude(&diff, NULL), 0);
        assert_int_equal(verdict_of(&diff, DIFF_METRIC_TIME), wild ? DIFF_UNDECIDED : DIFF_WORSE);
        assert_near(diff.pairs[0].run_spread, 0.0079057, 0.001); /* of A: 7.9 / 1000 */
        diff_free(&diff);
    }
}

/* ---- sums ---- */

static void sums_split_into_their_parts(void **state)
{
    struct occ_config_row a[] = {config("x", 8, 128, 32, 100, 10), config("y", 8, 128, 32, 100, 30),
                                 config("gone", 8, 128, 32, 10, 5)};
    struct occ_config_row b[] = {config("x", 8, 128, 32, 200, 12), config("y", 8, 128, 32, 100, 20),
                                 config("new", 8, 128, 32, 10, 7)};
    struct compared c;
    struct diff_summary s;
    (void)state;
    a[0].result.expected_elapsed_low = 0.1;
    b[0].result.expected_elapsed_low = 0.2;
    compare_rows(&c, a, 3, b, 3);
    assert_int_equal(diff_sample(&c.diff, NULL), 0);
    assert_int_equal(diff_conclude(&c.diff, NULL), 0);
    diff_sum_up(&c.diff, 0.05, 0.01, &s);
    assert_near(s.time_launches, 100 * (10 + 12) / 2.0, 1e-12);
    assert_near(s.time_duration, 150 * 2 - 100 * 10, 1e-12);
    assert_near(s.time_new, 70, 1e-12);
    assert_near(s.time_gone, -50, 1e-12);
    assert_near(s.time_launches + s.time_duration + s.time_new + s.time_gone,
                s.time_ns[DIFF_B] - s.time_ns[DIFF_A], 1e-12);
    assert_near(s.elapsed[DIFF_A], (1000 * 0.1 + 3050 * 0.25) / 4050, 1e-12);
    assert_near(s.elapsed_mix + s.elapsed_kernels, s.elapsed[DIFF_B] - s.elapsed[DIFF_A], 1e-9);
    assert_near(s.elapsed_kernels, (1000 / 4050.0 + 2400 / 4470.0) / 2 * 0.1, 1e-9);
    assert_near(s.waste[DIFF_A], (1000 * 0.9 + 3050 * 0.75) * 640 * 1e-9, 1e-9);
    assert_int_equal(s.verdicts[DIFF_UNDECIDED], 2);
    assert_int_equal(s.verdicts[DIFF_NEW], 1);
    assert_int_equal(s.verdicts[DIFF_GONE], 1);
    diff_free(&c.diff);
}

/* Both causes add up to the change of the mean; a part of one side only is mix. */
static void means_split_into_parts_and_mix(void **state)
{
    static const struct diff_mix_part before[] = {{1, 100, 10}, {2, 100, 30}, {3, 50, NAN}};
    static const struct {
        struct diff_mix_part parts[3];
        size_t n;
        double of_parts, of_mix;
    } known[] = {
        {{{1, 300, 10}, {2, 100, 30}}, 2, 0, 15 / 20.0 - 1},
        {{{1, 7, 20}, {2, 7, 60}}, 2, 1, 0},
        {{{1, 50, 10}, {2, 50, 30}, {4, 100, 40}}, 3, 0, 30 / 20.0 - 1},
        {{{1, 100, 10}, {2, 100, 36}, {3, 9, NAN}}, 3, 3 / 20.0, 0},
    };
    struct diff_mix mix;
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        const struct diff_mix_side sides[] = {{before, COUNT(before)}, {known[i].parts, known[i].n}};
        assert_int_equal(diff_mix_split(sides, &mix, NULL), 0);
        assert_true(fabs(mix.parts - known[i].of_parts) < 1e-12);
        assert_true(fabs(mix.mix - known[i].of_mix) < 1e-12);
    }
}

/* ---- words ---- */

static void set_elapsed(struct occ_config_row *row, double elapsed)
{
    set_measured(row, elapsed, 0.001);
    row->measured.sum[OCC_MEASURED_elapsed] = elapsed * (double)row->total_ns;
    row->measured.ns[OCC_MEASURED_elapsed] = (double)row->total_ns;
}

/* Compares two rows: `changes` receives the words of their line, `ret_summary` the sums. */
static void changes_of(const struct occ_config_row *a, const struct occ_config_row *b, char changes[1024],
                       struct diff_summary *ret_summary)
{
    struct compared c;
    compare_rows(&c, a, 1, b, 1);
    assert_int_equal(diff_sample(&c.diff, NULL), 0);
    assert_int_equal(diff_conclude(&c.diff, NULL), 0);
    struct diff_report report = {.diff = &c.diff, .floor = 0.05, .min_share = 0.01, .shown = 1};
    struct diff_line *lines = diff_make_lines(&report);
    assert_non_null(lines);
    (void)snprintf(changes, 1024, "%s", lines[0].changes);
    diff_sum_up(&c.diff, 0.05, 0.01, ret_summary);
    free(lines);
    diff_free(&c.diff);
}

/* A value that was measured on one side only is no change. */
static void measured_and_expected_do_not_mix(void **state)
{
    struct occ_config_row a = config("k", 8, 128, 32, 100, 1000);
    struct diff_summary s;
    char changes[1024];
    (void)state;
    a.result.cause[OCC_CAUSE_REGISTERS] = 0.75;
    struct occ_config_row b = a;
    set_elapsed(&a, 0.2);
    changes_of(&a, &b, changes, &s);
    assert_string_equal(changes, "");
    assert_near(s.elapsed[DIFF_A], 0.25, 1e-12);
    assert_near(s.waste[DIFF_A], s.waste[DIFF_B], 1e-12);
    assert_int_equal(s.only_measured[DIFF_A], 1);
    assert_int_equal(s.only_measured[DIFF_B], 0);
    set_elapsed(&b, 0.22);
    changes_of(&a, &b, changes, &s);
    assert_string_equal(changes, "achieved 20.0% -> 22.0%, elapsed 20.0% -> 22.0%, "
                                 "lost to start_drain_or_imbalance 5.0% -> 3.0%");
    assert_near(s.elapsed[DIFF_A], 0.2, 1e-12);
    assert_int_equal(s.only_measured[DIFF_A], 0);
}

static void lines_name_what_changed(void **state)
{
    struct occ_config_row a = config("k", 8, 128, 41, 100, 1000), b = config("k", 4, 256, 43, 100, 1500);
    struct compared c;
    (void)state;
    b.result.theoretical = 0.375;
    compare_rows(&c, &a, 1, &b, 1);
    assert_int_equal(diff_sample(&c.diff, NULL), 0);
    assert_int_equal(diff_conclude(&c.diff, NULL), 0);
    struct diff_report report = {.diff = &c.diff, .floor = 0.05, .min_share = 0.01, .shown = 1};
    struct diff_line *lines = diff_make_lines(&report);
    assert_non_null(lines);
    assert_string_equal(lines[0].changes,
                        "registers 41 -> 43, block 128 -> 256, grid 8 -> 4, theoretical 50.0% -> 37.5%");
    assert_near(lines[0].change, 0.5, 1e-12);
    free(lines);
    diff_free(&c.diff);
}

static void sides_must_be_comparable(void **state)
{
    const struct diff_facts one = {.device = "H200", .sm_count = 132, .launches = 990, .lost = 10};
    struct diff_facts other = one;
    (void)state;
    assert_null(diff_incomparable(&one, &other));
    other.lost = 11;
    assert_non_null(diff_incomparable(&one, &other));
    other = one;
    other.sm_count = 16;
    assert_non_null(diff_incomparable(&one, &other));
    other = one;
    other.device = "H100";
    assert_non_null(diff_incomparable(&one, &other));
    other = one;
    other.simulated = true;
    assert_non_null(diff_incomparable(&one, &other));
    other = one;
    other.serialised = true;
    assert_non_null(diff_incomparable(&one, &other));
}

static struct diff_facts on_devices(int64_t first, uint64_t n_first, int64_t second, uint64_t n_second)
{
    struct diff_facts facts = {.device = "H200", .sm_count = 132, .launches = n_first + n_second};
    diff_add_device(&facts, second, n_second);
    diff_add_device(&facts, first, n_first / 2);
    diff_add_device(&facts, first, n_first - n_first / 2);
    diff_list_devices(&facts);
    return facts;
}

static void equal_gpus_are_devices(void **state)
{
    char note[DIFF_NOTE_BYTES];
    struct diff_facts even = on_devices(1, 500, 2, 500), shifted = on_devices(1, 900, 2, 100),
                      others = on_devices(1, 500, 3, 500), model = on_devices(-1, 500, -2, 500);
    (void)state;
    assert_string_equal(even.device_ids, "1, 2");
    assert_int_equal(even.devices[0].launches, 500);
    assert_string_equal(diff_devices_note(&even, &even, note), "");
    assert_non_null(
        strstr(diff_devices_note(&even, &others, note), "different GPUs of one model (1, 2 and 1, 3)"));
    assert_non_null(strstr(diff_devices_note(&even, &shifted, note), "differently over the GPUs 1, 2"));
    assert_int_equal(model.n_devices, 0);
    assert_string_equal(diff_devices_note(&even, &model, note), "");
    shifted.is_of_other_history = true;
    assert_string_equal(diff_devices_note(&even, &shifted, note), "");
    others.device = "H100"; /* the sides are not comparable at all */
    assert_string_equal(diff_devices_note(&even, &others, note), "");
}

static void devices_beyond_the_table_are_not_counted(void **state)
{
    struct diff_facts facts = {.device = "H200"};
    (void)state;
    for (int64_t id = DIFF_DEVICES_MAX + 5; id > 0; id--)
        diff_add_device(&facts, id, 1);
    assert_int_equal(facts.n_devices, DIFF_DEVICES_MAX);
    diff_list_devices(&facts);
    assert_true(strlen(facts.device_ids) < sizeof facts.device_ids);
}

/* A code span ends where the name ends, whatever characters the name has. */
static void markdown_cannot_be_left(void **state)
{
    static const struct {
        const char *name, *expected;
    } known[] = {{"plain<int>", "`plain<int>`"},
                 {"a`b``c", "``` a`b``c ```"},
                 {"a|b\nc", "`a\\|b?c`"},
                 {"`", "`` ` ``"}};
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        char text[64] = "";
        FILE *out = fmemopen(text, sizeof text, "w");
        diff_markdown_code(out, known[i].name);
        (void)fclose(out);
        assert_string_equal(text, known[i].expected);
    }
}

/* ---- changes of a series ---- */

enum { POINTS = 2000 };

/* Returns a normally distributed number: a sum of twelve from a linear congruential generator. */
static double noise(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        *state = *state * UINT64_C(6364136223846793005) + 1;
        sum += (double)(*state >> 33) / (double)(UINT64_C(1) << 31);
    }
    return sum;
}

static size_t find(const double *values, size_t n, struct diff_change *ret_first)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct diff_change *changes = NULL;
    size_t found = 0;
    assert_int_equal(diff_find_changes(values, n, 0.05, &changes, &found, &err), 0);
    if (found)
        *ret_first = changes[0];
    free(changes);
    return found;
}

static void noise_changes_nothing(void **state)
{
    static double values[POINTS];
    uint64_t seed = 1;
    size_t alarms = 0;
    struct diff_change change;
    (void)state;
    for (int series = 0; series < 20; series++) {
        for (size_t i = 0; i < POINTS; i++)
            values[i] = exp(0.1 * noise(&seed)); /* 10 %, twice the least change that counts */
        alarms += find(values, POINTS, &change);
    }
    assert_true(alarms <= 1);
}

static void a_change_is_found_where_it_is(void **state)
{
    double values[400];
    uint64_t seed = 7;
    struct diff_change change;
    (void)state;
    for (size_t at = 3; at <= 397; at += 197) {
        for (size_t i = 0; i < 400; i++)
            values[i] = (i < at ? 100 : 112) * exp(0.01 * noise(&seed));
        values[60] = values[250] = 300; /* a spike is no change */
        assert_int_equal(find(values, 400, &change), 1);
        assert_int_equal(change.at, at);
        assert_false(change.possible);
        assert_true(change.p <= DIFF_CHANGE_P);
        assert_true(fabs(change.before - 100) < 2.5 && fabs(change.after - 112) < 2.5);
    }
}

static void several_changes_are_all_found(void **state)
{
    static const struct {
        size_t each;
        double levels[4];
        size_t n;
    } series[] = {{20, {100, 130, 100}, 3}, {20, {100, 200, 400}, 3}, {20, {100, 130, 160}, 3},
                  {10, {100, 200, 100}, 3}, {50, {100, 130, 100}, 3}, {10, {100, 110, 121, 133}, 4}};
    double values[200];
    uint64_t seed = 11;
    (void)state;
    for (size_t k = 0; k < COUNT(series); k++) {
        struct occ_error err = OCC_ERROR_INIT;
        struct diff_change *changes = NULL;
        size_t n = series[k].each * series[k].n, found = 0;
        for (size_t i = 0; i < n; i++)
            values[i] = series[k].levels[i / series[k].each] * exp(0.01 * noise(&seed));
        assert_int_equal(diff_find_changes(values, n, 0.05, &changes, &found, &err), 0);
        assert_int_equal(found, series[k].n - 1);
        for (size_t i = 0; i < found; i++)
            assert_int_equal(changes[i].at, series[k].each * (i + 1));
        free(changes);
    }
}

static void a_drift_is_told_from_noise_and_from_waves(void **state)
{
    static double values[POINTS];
    uint64_t seed = 5;
    size_t alarms = 0;
    struct diff_change change;
    (void)state;
    for (size_t i = 0; i < 400; i++)
        values[i] = i == 100 ? NAN : 100 * exp(0.2 * (double)i / 400 + 0.02 * noise(&seed));
    assert_int_equal(find(values, 400, &change), 0);
    assert_true(diff_find_drift(values, 400, 0.05, &change));
    assert_true(change.is_drift && change.at == 0);
    assert_true(fabs(change.before - 100) < 1 && fabs(change.after - 122.1) < 1);
    assert_false(diff_find_drift(values, 400, 0.25, &change));
    assert_false(diff_find_drift(values, DIFF_DRIFT_POINTS - 1, 0.001, &change));
    for (int series = 0; series < 100; series++) { /* neighbours are correlated by 0.9 */
        double wave = 0;
        for (size_t i = 0; i < 500; i++)
            values[i] = exp(wave = 0.9 * wave + 0.1 * noise(&seed));
        alarms += diff_find_drift(values, 500, 0.05, &change);
    }
    assert_int_equal(alarms, 0);
}

static void the_newest_points_are_only_possible(void **state)
{
    double values[100];
    uint64_t seed = 3;
    struct diff_change change;
    (void)state;
    for (size_t i = 0; i < 100; i++)
        values[i] = (i < 98 ? 100 : 130) * exp(0.01 * noise(&seed));
    assert_int_equal(find(values, 100, &change), 1);
    assert_int_equal(change.at, 98);
    assert_true(change.possible && isnan(change.p));
    assert_int_equal(find(values, 99, &change), 1);
    assert_int_equal(change.at, 98);
    assert_int_equal(find(values, 98, &change), 0);
    values[99] = 100; /* back again: the spike before is no change */
    assert_int_equal(find(values, 100, &change), 0);
}

static void what_is_no_value_is_left_out(void **state)
{
    double values[60];
    struct diff_change change;
    (void)state;
    for (size_t i = 0; i < 60; i++)
        values[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? 0 : i < 30 ? 1 : 2;
    assert_int_equal(find(values, 60, &change), 1);
    assert_int_equal(change.at, 32);
    assert_int_equal(find(values, 0, &change), 0);
    assert_int_equal(find(values, 3, &change), 0);
}

/* Wilson's interval, by hand: 12 of 13, and the ends. */
static void test_shares(void **state)
{
    (void)state;
    struct diff_share share = diff_share_of(12, 13);
    assert_true(fabs(share.share - 12.0 / 13) < 1e-12);
    assert_true(fabs(share.low - 0.6669) < 1e-4 && fabs(share.high - 0.9863) < 1e-4);
    assert_true(diff_share_of(0, 3).low <= 0 && fabs(diff_share_of(0, 3).high - 0.5615) < 1e-4);
    assert_true(isnan(diff_share_of(0, 0).share));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(student_is_scipys),
        cmocka_unit_test(welch_is_scipys),
        cmocka_unit_test(correlated_values_widen_the_variance),
        cmocka_unit_test(equal_values_have_a_ratio),
        cmocka_unit_test(benjamini_hochberg_is_their_example),
        cmocka_unit_test(verdicts_need_interval_and_rate),
        cmocka_unit_test(names_lose_what_is_numbered_anew),
        cmocka_unit_test(kernels_are_matched_level_by_level),
        cmocka_unit_test(ranges_are_part_of_the_key),
        cmocka_unit_test(neighbours_match_what_names_do_not),
        cmocka_unit_test(blocks_decide),
        cmocka_unit_test(warm_up_is_left_out),
        cmocka_unit_test(small_kernels_are_no_alarm),
        cmocka_unit_test(launches_with_other_work_are_compared_by_the_work),
        cmocka_unit_test(equal_counts_in_a_run_are_equal_work),
        cmocka_unit_test(numbers_of_launches_have_an_error),
        cmocka_unit_test(waste_counts_occupancy),
        cmocka_unit_test(runs_decide_where_there_are_three),
        cmocka_unit_test(many_to_one_is_not_judged),
        cmocka_unit_test(achieved_is_judged_by_its_errors),
        cmocka_unit_test(spread_of_runs_raises_the_floor),
        cmocka_unit_test(sums_split_into_their_parts),
        cmocka_unit_test(means_split_into_parts_and_mix),
        cmocka_unit_test(lines_name_what_changed),
        cmocka_unit_test(measured_and_expected_do_not_mix),
        cmocka_unit_test(sides_must_be_comparable),
        cmocka_unit_test(equal_gpus_are_devices),
        cmocka_unit_test(devices_beyond_the_table_are_not_counted),
        cmocka_unit_test(markdown_cannot_be_left),
        cmocka_unit_test(noise_changes_nothing),
        cmocka_unit_test(a_change_is_found_where_it_is),
        cmocka_unit_test(several_changes_are_all_found),
        cmocka_unit_test(a_drift_is_told_from_noise_and_from_waves),
        cmocka_unit_test(the_newest_points_are_only_possible),
        cmocka_unit_test(what_is_no_value_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
