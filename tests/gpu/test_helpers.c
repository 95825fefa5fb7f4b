/* Tests the experiments' own computations: edges in samples, ncu's CSV, lines of children, costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "abba.h"
#include "edges.h"
#include "load_child.h"
#include "ncu_csv.h"

enum { SMS = 10, KERNELS = 200, INTERVAL_NS = 50000, SAMPLES = 10000, PERIOD_NS = 2000000 };
#define EPOCH_NS INT64_C(1700000000000000000)

/* ---- edges ---- */

struct world {
    struct gpu_span kernels[KERNELS], rising[KERNELS], falling[KERNELS];
    struct occ_sample samples[SAMPLES];
    size_t n_rising, n_falling;
};

static double overlap_ns(const struct gpu_span *kernel, int64_t shift_ns, int64_t from, int64_t to)
{
    int64_t start = kernel->start_ns + shift_ns, end = kernel->end_ns + shift_ns;
    start = start > from ? start : from;
    end = end < to ? end : to;
    return end > start ? (double)(end - start) : 0;
}

/* Makes kernels of 1 ms every 2 ms and a bit, and samples with a clock that is `offset_ns` + `ppm` ahead. */
static struct world *make_world(int64_t offset_ns, double ppm)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    for (int i = 0; i < KERNELS; i++)
        w->kernels[i] = (struct gpu_span){EPOCH_NS + 10000000 + i * (PERIOD_NS + 1234),
                                          EPOCH_NS + 11000000 + i * (PERIOD_NS + 1234)};
    for (int64_t s = 0; s < SAMPLES; s++) {
        int64_t from = EPOCH_NS + s * INTERVAL_NS, to = from + INTERVAL_NS;
        struct occ_sample *sample = &w->samples[s];
        *sample = (struct occ_sample){.start_ns = from, .end_ns = to};
        sample->value[OCC_COUNTER_ELAPSED] = INTERVAL_NS;
        for (int i = 0; i < KERNELS; i++) {
            double age = (double)(w->kernels[i].start_ns - w->kernels[0].start_ns);
            int64_t shift = offset_ns + (int64_t)(age * ppm / 1e6);
            sample->value[OCC_COUNTER_ACTIVE] += SMS * overlap_ns(&w->kernels[i], shift, from, to);
        }
    }
    return w;
}

static void find(struct world *w)
{
    gpu_edges_find(w->samples, SAMPLES, SMS, w->kernels, KERNELS, 400000, w->rising, &w->n_rising, w->falling,
                   &w->n_falling);
}

static void offset_is_found_inside_samples(void **state)
{
    (void)state;
    static const int64_t offsets[] = {0, 17, -333, 12345, -49999, 150000, -150000};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        struct world *w = make_world(offsets[i], 0);
        struct gpu_offset offset;
        find(w);
        assert_int_equal(w->n_rising, KERNELS);
        assert_int_equal(w->n_falling, KERNELS);
        gpu_offset_of(w->rising, w->n_rising, &offset);
        assert_true(fabs(offset.mean_ns - (double)offsets[i]) < 2);
        assert_true(offset.sd_ns < 2);
        assert_true(fabs(offset.drift_ppm) < 0.1);
        gpu_offset_of(w->falling, w->n_falling, &offset);
        assert_true(fabs(offset.median_ns - (double)offsets[i]) < 2);
        free(w);
    }
}

/* An SM that is always busy may count fewer active cycles than elapsed ones. */
static void a_plateau_below_one_moves_no_edge(void **state)
{
    (void)state;
    struct world *w = make_world(-4321, 0);
    struct gpu_offset offset;
    for (size_t s = 0; s < SAMPLES; s++)
        w->samples[s].value[OCC_COUNTER_ACTIVE] *= 0.93;
    find(w);
    assert_int_equal(w->n_rising, KERNELS);
    gpu_offset_of(w->rising, w->n_rising, &offset);
    assert_true(fabs(offset.mean_ns + 4321) < 2);
    gpu_offset_of(w->falling, w->n_falling, &offset);
    assert_true(fabs(offset.mean_ns + 4321) < 2);
    free(w);
}

static void drift_is_found(void **state)
{
    (void)state;
    struct world *w = make_world(1000, 20);
    struct gpu_offset offset;
    find(w);
    gpu_offset_of(w->rising, w->n_rising, &offset);
    assert_true(fabs(offset.drift_ppm - 20) < 0.5);
    assert_true(offset.most_ns > 8500 && offset.least_ns < 1010);
    free(w);
}

static void edges_in_gaps_and_foreign_load_are_left_out(void **state)
{
    (void)state;
    struct world *w = make_world(0, 0);
    /* other work is active before the first kernel; counters are missing at the second kernel's start */
    for (size_t s = 0; s < SAMPLES; s++) {
        if (w->samples[s].end_ns < w->kernels[0].start_ns)
            w->samples[s].value[OCC_COUNTER_ACTIVE] = SMS * INTERVAL_NS * 0.4;
        if (llabs(w->samples[s].start_ns - w->kernels[1].start_ns) < 100000)
            w->samples[s].value[OCC_COUNTER_ACTIVE] = NAN;
    }
    find(w);
    assert_int_equal(w->n_rising, KERNELS - 2);
    assert_int_equal(w->n_falling, KERNELS);
    /* a sample is missing at the third kernel's end */
    size_t hole = 0;
    while (w->samples[hole].end_ns < w->kernels[2].end_ns)
        hole++;
    memmove(w->samples + hole, w->samples + hole + 1, (SAMPLES - hole - 1) * sizeof *w->samples);
    gpu_edges_find(w->samples, SAMPLES - 1, SMS, w->kernels, KERNELS, 400000, w->rising, &w->n_rising,
                   w->falling, &w->n_falling);
    assert_int_equal(w->n_falling, KERNELS - 1);
    free(w);
}

static void samples_that_end_early_have_no_edges(void **state)
{
    (void)state;
    struct world *w = make_world(0, 0);
    gpu_edges_find(w->samples, 0, SMS, w->kernels, KERNELS, 400000, w->rising, &w->n_rising, w->falling,
                   &w->n_falling);
    assert_int_equal(w->n_rising, 0);
    struct gpu_offset offset;
    gpu_offset_of(w->rising, 0, &offset);
    assert_true(isnan(offset.mean_ns) && isnan(offset.drift_ppm));
    free(w);
}

/* ---- ncu ---- */

static void ncu_values_are_found_by_column(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "==PROF== Connected to process 4711 (/x/gpu_load)",
        "\"a\",\"line\",\"of\",\"the\",\"program\"",
        "\"ID\",\"Process ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"",
        "\"0\",\"1\",\"f(int, \"\"x\"\")\",\"sm__warps_active\",\"%\",\"49.87\"",
        "\"0\",\"1\",\"f(int)\",\"other\",\"%\",\"12\"",
        "\"1\",\"1\",\"f(int)\",\"sm__warps_active\",\"%\",\"1,234.5\"",
        "\"1\",\"1\",\"f(int)\",\"sm__warps_active\",\"%\",\"n/a\"",
        "\"1\",\"1\"",
        "",
        "done launches=3",
    };
    struct ncu_csv csv = NCU_CSV_INIT;
    double values[8] = {0}, value = -1;
    size_t n = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (ncu_csv_line(&csv, lines[i], "sm__warps_active", &value))
            values[n++] = value;
    assert_int_equal(n, 2);
    assert_true(values[0] == 49.87 && values[1] == 1234.5);
}

/* ---- children ---- */

static void words_of_a_line(void **state)
{
    (void)state;
    char word[8];
    const char *line = "ready cpu_s=1 s=2.5 state=no_library rest";
    assert_true(gpu_line_number(line, "s") == 2.5);
    assert_true(gpu_line_number(line, "cpu_s") == 1);
    assert_true(isnan(gpu_line_number(line, "u_s")));
    assert_true(isnan(gpu_line_number(line, "state")));
    gpu_line_word(line, "state", word, sizeof word);
    assert_string_equal(word, "no_libr");
    gpu_line_word(line, "rest", word, sizeof word);
    assert_string_equal(word, "");
}

static void children_are_heard_and_reaped(void **state)
{
    (void)state;
    struct gpu_child child;
    struct occ_error err = OCC_ERROR_INIT;
    char line[64];
    const char *const words[] = {"sh", "-c", "echo noise; echo \"ready x=$X\"; exit 3", NULL};
    const char *const environment[] = {"X=7", NULL};
    assert_int_equal(gpu_child_start(&child, words, environment, &err), 0);
    assert_int_equal(gpu_child_expect(&child, "ready", 30, line, sizeof line, &err), 0);
    assert_string_equal(line, "ready x=7");
    assert_int_equal(gpu_child_expect(&child, "more", 30, line, sizeof line, &err), OCC_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "ready x=7"));
    assert_int_equal(gpu_child_wait(&child, 30), 3);
    assert_int_equal(gpu_child_stop(&child), 0);
}

static void a_deaf_child_is_killed(void **state)
{
    (void)state;
    struct gpu_child child;
    const char *const words[] = {"sh", "-c", "trap '' TERM; echo on; exec sleep 1000", NULL};
    char line[64];
    assert_int_equal(gpu_child_start(&child, words, NULL, NULL), 0);
    assert_int_equal(gpu_child_expect(&child, "on", 30, line, sizeof line, NULL), 0);
    pid_t pid = child.pid;
    gpu_child_signal(&child, SIGTERM);
    assert_int_equal(gpu_child_wait(&child, 0.1), -1);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(child.pid, 0);
}

static void a_program_that_is_not_there_is_named(void **state)
{
    (void)state;
    struct gpu_child child;
    const char *const words[] = {"/nowhere/program", NULL};
    char line[128];
    assert_int_equal(gpu_child_start(&child, words, NULL, NULL), 0);
    assert_int_equal(gpu_child_expect(&child, "cannot", 30, line, sizeof line, NULL), 0);
    assert_non_null(strstr(line, "/nowhere/program"));
    assert_int_equal(gpu_child_wait(&child, 30), 127);
}

/* ---- costs of mirrored pairs ---- */

static void a_linear_drift_is_no_cost(void **state)
{
    struct gpu_abba abba = {0};
    (void)state;
    for (int block = 0; block < 8; block++) {
        double at = 1 + 0.04 * block; /* as logarithms, like effects */
        const double a[] = {exp(at), exp(at + 0.03)}, b[] = {exp(at + 0.01) * 1.02, exp(at + 0.02) * 1.02};
        assert_true(gpu_abba_add(&abba, a, b));
    }
    struct gpu_abba_cost cost = gpu_abba_cost(&abba);
    assert_int_equal(abba.n, 8);
    assert_true(fabs(cost.cost - 0.02) < 1e-9);
    assert_true(fabs(cost.low - 0.02) < 1e-9);
    assert_true(fabs(cost.high - 0.02) < 1e-9);
}

/* Effects of 1 %, 2 % and 3 % in logarithms: mean 2 %, standard error 1/sqrt(3) %, t(0.975, 2) = 4.302653. */
static void the_interval_is_students(void **state)
{
    struct gpu_abba abba = {0};
    (void)state;
    for (int block = 1; block <= 3; block++) {
        const double a[] = {1, 1}, b[] = {exp(0.01 * block), exp(0.01 * block)};
        assert_true(gpu_abba_add(&abba, a, b));
    }
    struct gpu_abba_cost cost = gpu_abba_cost(&abba);
    double half = 4.302653 * 0.01 / sqrt(3);
    assert_true(fabs(cost.cost - (exp(0.02) - 1)) < 1e-9);
    assert_true(fabs(cost.low - (exp(0.02 - half) - 1)) < 1e-6);
    assert_true(fabs(cost.high - (exp(0.02 + half) - 1)) < 1e-6);
}

static void one_block_has_no_interval(void **state)
{
    struct gpu_abba abba = {0};
    (void)state;
    const double good[] = {1, 1}, zero[] = {0, 1}, negative[] = {-1, 1};
    assert_true(isnan(gpu_abba_cost(&abba).cost));
    assert_false(gpu_abba_add(&abba, good, zero));
    assert_false(gpu_abba_add(&abba, zero, good));
    assert_false(gpu_abba_add(&abba, negative, good));
    assert_true(gpu_abba_add(&abba, good, good));
    assert_int_equal(abba.n, 1);
    assert_true(isnan(gpu_abba_cost(&abba).cost));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offset_is_found_inside_samples),
        cmocka_unit_test(a_plateau_below_one_moves_no_edge),
        cmocka_unit_test(drift_is_found),
        cmocka_unit_test(edges_in_gaps_and_foreign_load_are_left_out),
        cmocka_unit_test(samples_that_end_early_have_no_edges),
        cmocka_unit_test(ncu_values_are_found_by_column),
        cmocka_unit_test(words_of_a_line),
        cmocka_unit_test(children_are_heard_and_reaped),
        cmocka_unit_test(a_deaf_child_is_killed),
        cmocka_unit_test(a_program_that_is_not_there_is_named),
        cmocka_unit_test(a_linear_drift_is_no_cost),
        cmocka_unit_test(the_interval_is_students),
        cmocka_unit_test(one_block_has_no_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
