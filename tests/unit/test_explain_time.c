/* GPU time: examples by hand, and random totals: the parts always add up and are never negative. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "explain/verdict.h"

enum { GPUS_MAX = 6, KERNELS_MAX = 40 };

static const struct occ_kernel_owner all_reduce = {.owner = OCC_OWNER_COMMUNICATION, .library = "NCCL"};

static struct occ_kernel_totals kernel(size_t gpu, double time_s, double used)
{
    struct occ_kernel_totals k = {.gpu = gpu, .time_s = time_s, .used = used, .launches = 1, .waves = 2};
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        k.part[i] = i == OCC_CAUSE_PARTIAL_WARP ? (double)NAN : 0;
    return k;
}

static double sum_of(const struct occ_gpu_time *t)
{
    return t->launch_wait + t->pause + t->communication + t->copies + t->kernels;
}

static double sum_of_kernels(const struct occ_gpu_time *t)
{
    double sum = t->used + t->unknown;
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        sum += t->lost[i];
    return sum;
}

/* 10 s: 4 s busy, 1 s of gaps before launches, 2 s of copies; 1 s of communication and 3 s of a kernel that
 * uses a quarter. */
static void test_by_hand(void **state)
{
    struct occ_gpu_totals gpu = {.gpu = 1,
                                 .run = 7,
                                 .window_s = 10,
                                 .busy_s = 4,
                                 .launch_wait_s = 1,
                                 .copies_s = 2,
                                 .communication_s = 1};
    struct occ_kernel_totals kernels[] = {kernel(0, 3, 0.25), kernel(0, 1.5, 0.5)};
    struct occ_totals totals = {&gpu, 1, kernels, 2};
    struct occ_gpu_time *t = NULL;
    size_t n = 0;
    (void)state;
    kernels[0].part[OCC_CAUSE_REGISTERS] = 0.5;
    kernels[0].part[OCC_CAUSE_TAIL] = 0.25;
    kernels[1].owner = &all_reduce;
    assert_int_equal(occ_gpu_times(&totals, OCC_TIME_BY_RUN, &t, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(t->key, 7);
    assert_float_equal(t->launch_wait, 0.1, 1e-12);
    assert_float_equal(t->pause, 0.3, 1e-12);
    assert_float_equal(t->copies, 0.2, 1e-12);
    assert_float_equal(t->communication, 0.1, 1e-12);
    assert_float_equal(t->kernels, 0.3, 1e-12);
    assert_float_equal(t->used, 0.075, 1e-12);
    assert_float_equal(t->lost[OCC_CAUSE_REGISTERS], 0.15, 1e-12);
    assert_float_equal(t->lost[OCC_CAUSE_TAIL], 0.075, 1e-12);
    assert_false(t->is_divided);
    assert_true(t->has_copies);
    free(t);
}

/* Two streams: 3 s of kernels and 1 s of communication in 2 s of busy time. */
static void test_divides_an_unknown_overlap(void **state)
{
    struct occ_gpu_totals gpu = {.window_s = 2, .busy_s = 2, .copies_s = NAN, .communication_s = NAN};
    struct occ_kernel_totals kernels[] = {kernel(0, 3, 1), kernel(0, 1, 1)};
    struct occ_totals totals = {&gpu, 1, kernels, 2};
    struct occ_gpu_time *t = NULL;
    size_t n = 0;
    (void)state;
    kernels[1].owner = &all_reduce;
    assert_int_equal(occ_gpu_times(&totals, OCC_TIME_BY_ALL, &t, &n), 0);
    assert_float_equal(t->communication, 0.25, 1e-12);
    assert_float_equal(t->used, 0.75, 1e-12);
    assert_true(t->is_divided);
    assert_false(t->has_copies);
    free(t);
}

/* A gain of 0.1 over the model reduces the nearest loss above it. */
static void test_gain_reduces_the_loss_above(void **state)
{
    struct occ_gpu_totals gpu = {.window_s = 1, .busy_s = 1};
    struct occ_kernel_totals k = kernel(0, 1, 0.4);
    struct occ_totals totals = {&gpu, 1, &k, 1};
    struct occ_gpu_time *t = NULL;
    size_t n = 0;
    (void)state;
    k.part[OCC_CAUSE_REGISTERS] = 0.4;
    k.part[OCC_CAUSE_TAIL] = 0.3;
    k.part[OCC_PART_IDLE] = -0.1;
    assert_int_equal(occ_gpu_times(&totals, OCC_TIME_BY_ALL, &t, &n), 0);
    assert_float_equal(t->lost[OCC_CAUSE_REGISTERS], 0.4, 1e-12);
    assert_float_equal(t->lost[OCC_CAUSE_TAIL], 0.2, 1e-12);
    assert_float_equal(t->lost[OCC_PART_IDLE], 0, 1e-12);
    free(t);
}

static void test_rows_by_key(void **state)
{
    struct occ_gpu_totals gpus[] = {{.gpu = 2, .run = 1, .job = 9, .window_s = 1, .busy_s = 1},
                                    {.gpu = 1, .run = 1, .job = 9, .window_s = 3, .busy_s = 0},
                                    {.gpu = 2, .run = 2, .job = 9, .window_s = 1, .busy_s = 0}};
    struct occ_totals totals = {gpus, 3, NULL, 0};
    struct occ_gpu_time *t = NULL;
    size_t n = 0;
    (void)state;
    assert_int_equal(occ_gpu_times(&totals, OCC_TIME_BY_GPU, &t, &n), 0);
    assert_int_equal(n, 2);
    assert_int_equal(t[0].key, 1);
    assert_float_equal(t[0].pause, 1, 1e-12);
    assert_float_equal(t[1].pause, 0.5, 1e-12);
    assert_float_equal(t[1].unknown, 0.5, 1e-12); /* busy, but no kernel is known */
    free(t);
    assert_int_equal(occ_gpu_times(&totals, OCC_TIME_BY_RUN, &t, &n), 0);
    assert_int_equal(n, 2);
    free(t);
    assert_int_equal(occ_gpu_times(&totals, OCC_TIME_BY_JOB, &t, &n), 0);
    assert_int_equal(n, 1);
    assert_float_equal(t->window_s, 5, 1e-12);
    free(t);
    totals.n_gpus = 0;
    assert_int_equal(occ_gpu_times(&totals, OCC_TIME_BY_ALL, &t, &n), 0);
    assert_int_equal(n, 0);
    free(t);
}

/* ---- random totals ---- */

static uint64_t random_state = 0x9e3779b97f4a7c15;

static double random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (double)(random_state >> 11) * 0x1p-53;
}

/* Mostly plausible, sometimes absurd. */
static double random_time(void)
{
    double kind = random_number();
    return kind < 0.02   ? (double)NAN
           : kind < 0.03 ? -1
           : kind < 0.04 ? (double)INFINITY
                         : random_number() * 10;
}

static void check_row(const struct occ_gpu_time *t)
{
    const double shares[] = {t->launch_wait, t->pause, t->communication, t->copies, t->kernels};
    unsigned percent[5], sum = 0;
    for (size_t i = 0; i < 5; i++)
        assert_true(shares[i] >= 0 && shares[i] <= 1 + 1e-9);
    assert_true(t->used >= 0 && t->unknown >= 0);
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        assert_true(t->lost[i] >= 0);
    assert_float_equal(sum_of_kernels(t), t->kernels, 1e-9);
    if (!(t->window_s > 0))
        return;
    assert_float_equal(sum_of(t), 1, 1e-9);
    occ_round_shares(shares, 5, 100, percent);
    for (size_t i = 0; i < 5; i++) {
        sum += percent[i];
        assert_true(fabs(percent[i] - shares[i] * 100) <= 1);
    }
    assert_int_equal(sum, 100);
}

static void test_random_totals_add_up(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        struct occ_gpu_totals gpus[GPUS_MAX];
        struct occ_kernel_totals kernels[KERNELS_MAX];
        size_t n_gpus = 1 + (size_t)(random_number() * GPUS_MAX), n = (size_t)(random_number() * KERNELS_MAX);
        struct occ_totals totals = {gpus, n_gpus, kernels, n};
        struct occ_gpu_time *t = NULL;
        size_t rows = 0;
        for (size_t i = 0; i < n_gpus; i++)
            gpus[i] = (struct occ_gpu_totals){(int64_t)(random_number() * 3),
                                              (int64_t)(random_number() * 3),
                                              0,
                                              random_time(),
                                              0,
                                              random_time(),
                                              random_time(),
                                              random_time(),
                                              random_time(),
                                              random_time()};
        for (size_t i = 0; i < n; i++) {
            kernels[i] =
                kernel((size_t)(random_number() * (double)n_gpus), random_time(), random_number() * 1.1);
            kernels[i].owner = random_number() < 0.2 ? &all_reduce : NULL;
            for (unsigned k = 0; k < OCC_PART_COUNT; k++)
                kernels[i].part[k] = random_number() < 0.1 ? (double)NAN : random_number() - 0.3;
        }
        assert_int_equal(occ_gpu_times(&totals, (enum occ_time_by)(round % OCC_TIME_BYS), &t, &rows), 0);
        assert_true(rows >= 1 && rows <= n_gpus);
        for (size_t i = 0; i < rows; i++)
            check_row(&t[i]);
        free(t);
    }
}

static void test_rounding(void **state)
{
    const double thirds[] = {1 / 3.0, 1 / 3.0, 1 / 3.0}, small[] = {0.004, 0.004, 0.992};
    unsigned percent[3];
    (void)state;
    occ_round_shares(thirds, 3, 100, percent);
    assert_int_equal(percent[0], 34);
    assert_int_equal(percent[1], 33);
    assert_int_equal(percent[2], 33);
    occ_round_shares(small, 3, 100, percent);
    assert_int_equal(percent[0] + percent[1] + percent[2], 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_divides_an_unknown_overlap),
        cmocka_unit_test(test_gain_reduces_the_loss_above),
        cmocka_unit_test(test_rows_by_key),
        cmocka_unit_test(test_random_totals_add_up),
        cmocka_unit_test(test_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
