/*
 * The overview of a history: times computed by hand on two equal GPUs, and a long run, read only in part.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>
#include <unistd.h>

#include "answer/answer.h"

#define T0 INT64_C(1700000000000000000)
#define US INT64_C(1000)
#define MS (1000 * US)

enum { GEMM, ALL_REDUCE, COPY, KERNELS };
enum { GPUS = 2 };

struct world {
    char directory[32];
    struct occ_store *store;
    int64_t run, devices[GPUS];
    uint32_t configs[KERNELS][GPUS];
};

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.9g is not %.9g", value, expected);
}

static void check(int rc, const struct occ_error *err)
{
    if (rc != 0)
        fail_msg("%s", err->message);
}

static void put_kernel(struct world *w, int which, const char *mangled)
{
    struct occ_error err = OCC_ERROR_INIT;
    int64_t kernel = 0, config = 0;
    check(occ_store_put_kernel(w->store, mangled, (uint64_t)which + 1, &kernel, &err), &err);
    for (int gpu = 0; gpu < GPUS; gpu++) {
        const struct occ_launch_config c = {.kernel = kernel,
                                            .device = w->devices[gpu],
                                            .launch = {.grid = {which == GEMM ? 33 : 5000, 1, 1},
                                                       .block = {256, 1, 1},
                                                       .cluster = {1, 1, 1},
                                                       .registers_per_thread = 32,
                                                       .carveout_percent = -1}};
        check(occ_store_put_config(w->store, &c, &config, &err), &err);
        w->configs[which][gpu] = (uint32_t)config;
    }
}

static int set_up(void **state)
{
    static struct world world;
    struct world *w = &world;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    const struct occ_run run = {.uuid = {1}, .pid = 1, .start_ns = T0, .level = "trace"};
    char path[64];
    *w = (struct world){.directory = "/tmp/answer.XXXXXX"};
    assert_non_null(mkdtemp(w->directory));
    (void)snprintf(path, sizeof path, "%s/h.db", w->directory);
    check(occ_store_open(path, &options, &w->store, &err), &err);
    check(occ_store_put_run(w->store, &run, &w->run, &err), &err);
    for (uint8_t i = 0; i < GPUS; i++) {
        const struct occ_store_device device = {
            .uuid = {0xa0, i}, .name = "NVIDIA H100 80GB HBM3", .limits = {.cc = 90, .sm_count = 132}};
        check(occ_store_put_device(w->store, &device, &w->devices[i], &err), &err);
    }
    put_kernel(w, GEMM, "_Z4gemmPf");
    put_kernel(w, ALL_REDUCE, "_Z35ncclDevKernel_AllReduce_Sum_f32_RINGv");
    put_kernel(w, COPY, "_Z4copyPf");
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    char command[64];
    occ_store_close(w->store);
    (void)snprintf(command, sizeof command, "rm -r %s", w->directory);
    return system(command);
}

static void append(struct world *w, int kernel, int gpu, int64_t start_ns, int64_t end_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_store_launch launch = {.start_ns = T0 + start_ns,
                                            .duration_ns = (uint64_t)(end_ns - start_ns),
                                            .stream = (uint32_t)kernel + 7,
                                            .config = w->configs[kernel][gpu]};
    check(occ_store_append(w->store, w->run, w->devices[gpu], &launch, 1, &err), &err);
}

static struct occ_overview ask(struct world *w, const struct occ_filter *filter)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_overview overview;
    check(occ_store_commit(w->store, &err), &err);
    check(occ_overview_ask(w->store, filter, &overview, &err), &err);
    return overview;
}

static void check_sums(const struct occ_gpu_time *t)
{
    double kernels = t->used + t->unknown;
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        kernels += t->lost[i];
    assert_near(t->launch_wait + t->pause + t->communication + t->copies + t->kernels, 1, 1e-9);
    assert_near(kernels, t->kernels, 1e-9);
    struct occ_gpu_steps s = occ_overview_steps(t, 100);
    unsigned sum = s.launch_wait + s.pause + s.communication + s.copies + s.used + s.unknown;
    for (unsigned i = 0; i < OCC_PART_COUNT; i++)
        sum += s.lost[i];
    assert_int_equal(sum, 100);
}

/* Stores 10 ms of GPU 0 (4 ms gemm, an all-reduce from 3 ms to 6 ms, 50 us of waiting for a launch, 1 ms copy
 * at the end) and 1 ms gemm, a pause until 2 ms and 1 ms gemm of GPU 1. */
static void put_two_gpus(struct world *w)
{
    append(w, GEMM, 0, 0, 4 * MS);
    append(w, ALL_REDUCE, 0, 3 * MS, 6 * MS);
    append(w, GEMM, 0, 6 * MS + 50 * US, 7 * MS);
    append(w, COPY, 0, 9 * MS, 10 * MS);
    append(w, GEMM, 1, 0, 1 * MS);
    append(w, GEMM, 1, 2 * MS, 3 * MS);
}

static void test_two_gpus(void **state)
{
    struct world *w = *state;
    put_two_gpus(w);
    struct occ_overview o = ask(w, &(struct occ_filter){0});
    assert_int_equal(o.totals.n_gpus, 2);
    assert_int_equal(o.launches, 6);
    check_sums(&o.time);
    assert_near(o.time.window_s, 13e-3, 1e-9);
    assert_near(o.time.unrecorded_s, 0, 0);
    assert_near(o.time.communication, 2.0 / 13, 1e-6); /* the all-reduce ran alone from 4 ms to 6 ms */
    assert_near(o.time.launch_wait, 0.05 / 13, 1e-6);
    assert_near(o.time.pause, 3.0 / 13, 1e-6);
    assert_near(o.time.communication + o.time.kernels, 9.95 / 13, 1e-6);
    assert_near(o.read_ratio, 1, 0);
    assert_false(o.is_busy_most);
    assert_false(o.time.is_divided);
    assert_true(o.n_findings > 0);
    double share = 0;
    for (size_t i = 0; i < o.totals.n_kernels; i++)
        share += occ_overview_share(&o, occ_overview_share_of(&o, i), o.kernels[i].device,
                                    (double)o.kernels[i].total_ns);
    assert_near(share, o.time.communication + o.time.kernels, 1e-9);
    assert_near(occ_overview_share(&o, OCC_SHARE_OF_COMMUNICATION, w->devices[0], 3e6), o.time.communication,
                1e-9);
    occ_overview_free(&o);
}

/* Two programs share a GPU: 4 ms and 3 ms of kernels in the same 10 ms. */
static void test_two_programs_share_a_gpu(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_run second = {.uuid = {2}, .pid = 2, .start_ns = T0, .level = "trace"};
    append(w, GEMM, 0, 0, 2 * MS);
    append(w, GEMM, 0, 8 * MS, 10 * MS);
    check(occ_store_commit(w->store, &err), &err);
    check(occ_store_put_run(w->store, &second, &w->run, &err), &err);
    append(w, GEMM, 0, 0, 1 * MS);
    append(w, GEMM, 0, 8 * MS, 10 * MS);
    struct occ_overview o = ask(w, &(struct occ_filter){0});
    check_sums(&o.time);
    assert_near(o.time.window_s, 10e-3, 1e-9);
    assert_near(o.time.kernels, 0.7, 1e-6); /* at most: the programs' kernels may overlap */
    assert_true(o.is_busy_most);
    occ_overview_free(&o);
    o = ask(w, &(struct occ_filter){.run = w->run});
    assert_near(o.time.kernels, 0.3, 1e-6);
    assert_false(o.is_busy_most);
    occ_overview_free(&o);
}

/* A launch was lost: the 3 ms pause of GPU 1 may have run it, and the kernels' time is a lower bound. */
static void test_lost_launches_are_not_idle(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_loss loss = {.cause = "ring_full", .count = 6};
    char lines[OCC_OVERVIEW_LINES][OCC_OVERVIEW_LINE_BYTES], *text = NULL;
    put_two_gpus(w);
    struct occ_overview o = ask(w, &(struct occ_filter){0});
    assert_true(occ_overview_text(&o, lines) >= 3);
    assert_null(strstr(lines[0], "at least"));
    occ_overview_free(&o);
    check(occ_store_put_losses(w->store, w->run, &loss, 1, &err), &err);
    o = ask(w, &(struct occ_filter){0});
    assert_int_equal(o.lost, 6);
    assert_near(o.lost_ratio, 1, 1e-9);
    assert_true(occ_overview_text(&o, lines) >= 3);
    assert_non_null(strstr(lines[0], "6 launches lost: kernels ran at least "));
    assert_non_null(strstr(lines[1], "pauses or lost launches"));
    assert_string_equal(occ_overview_finding_text(&o, OCC_FINDING_PAUSE),
                        "the GPU is idle in longer pauses, or ran lost launches");
    size_t bytes = 0;
    struct occ_json json = {.out = open_memstream(&text, &bytes)};
    occ_json_object(&json, NULL, false);
    occ_overview_json(&json, &o, 10);
    occ_json_close(&json);
    assert_int_equal(fclose(json.out), 0);
    assert_non_null(strstr(text, "\"busy_is_minimum\": true"));
    free(text);
    occ_overview_free(&o);
}

static void test_findings_have_texts(void **state)
{
    struct world *w = *state;
    char text[64];
    put_two_gpus(w);
    struct occ_overview o = ask(w, &(struct occ_filter){.run = w->run});
    bool has_gemm = false;
    for (size_t i = 0; i < o.n_findings; i++) {
        const struct occ_finding *f = &o.findings[i];
        if (f->kind != OCC_FINDING_KERNEL)
            continue;
        const struct occ_answer_kernel *k = &o.kernels[f->kernel];
        assert_string_equal(occ_confidence_text(f, text, sizeof text), "modelled");
        assert_string_equal(k->device_name, "NVIDIA H100 80GB HBM3");
        if (strcmp(k->name, "gemm") == 0) { /* 33 blocks on 132 SMs */
            has_gemm = true;
            assert_int_equal(f->cause, OCC_CAUSE_SMALL_GRID);
            assert_int_equal(f->change, OCC_CHANGE_TILE);
            assert_int_equal(k->config.grid_blocks, 33);
            assert_true(f->saves.high > 0 && f->saves.high <= f->share);
        }
    }
    assert_true(has_gemm);
    occ_overview_free(&o);
}

/* Adds up the answers of `kernel` on all GPUs. Returns their number. */
static size_t add_answers(struct world *w, const struct occ_overview *o, const char *kernel,
                          struct occ_finding *ret_sum)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_kernel_judge judge;
    struct occ_kernel_answer answer;
    struct occ_config_rows rows = {0};
    *ret_sum = (struct occ_finding){.saves = {0, 0, 0, 0}};
    check(occ_store_configs(w->store, &(struct occ_filter){.kernel = kernel}, &rows, &err), &err);
    check(occ_judge_open(o, &judge, &err), &err);
    for (size_t i = 0; i < rows.n; i++) { /* one configuration on each GPU */
        check(occ_judge_kernel(&judge, &rows.rows[i], &answer, &err), &err);
        assert_true(answer.is_known && answer.is_of_gpu_time == (o->time.window_s > 0));
        ret_sum->share += answer.finding.share;
        ret_sum->lost += answer.finding.lost;
        ret_sum->saves.high += answer.finding.saves.high;
        ret_sum->change = answer.finding.change;
        ret_sum->cause = answer.finding.cause;
    }
    size_t n = rows.n;
    occ_judge_close(&judge);
    occ_config_rows_free(&rows);
    return n;
}

/* A kernel's answers add up to its finding in the overview; a kernel without a finding has an answer, too. */
static void test_answers_are_the_findings(void **state)
{
    struct world *w = *state;
    struct occ_finding sum;
    put_two_gpus(w);
    struct occ_overview o = ask(w, &(struct occ_filter){0});
    bool has_gemm = false;
    assert_int_equal(add_answers(w, &o, "gemm", &sum), 2);
    for (size_t i = 0; i < o.n_findings; i++) {
        const struct occ_finding *f = &o.findings[i];
        if (f->kind != OCC_FINDING_KERNEL || strcmp(o.kernels[f->kernel].name, "gemm") != 0)
            continue;
        has_gemm = true;
        assert_near(sum.share, f->share, 1e-12);
        assert_near(sum.lost, f->lost, 1e-12);
        assert_near(sum.saves.high, f->saves.high, 1e-12);
        assert_int_equal(sum.change, f->change);
        assert_int_equal(sum.cause, f->cause);
    }
    assert_true(has_gemm);
    assert_int_equal(add_answers(w, &o, "copy", &sum), 1);
    assert_near(sum.share, 1.0 / 13, 1e-6);
    assert_int_equal(add_answers(w, &o, "^nccl", &sum), 1);
    assert_int_equal(sum.change, OCC_CHANGE_OVERLAP);
    assert_true(sum.share > 0);
    occ_overview_free(&o);
}

/* Shares are relative to the kernel's own time if the history has no GPU time. */
static void test_answers_without_gpu_time(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_filter filter = {.kernel = "gemm", .stream = GEMM + 7};
    struct occ_top top = {0};
    struct occ_overview o;
    struct occ_finding sum;
    put_two_gpus(w);
    check(occ_store_commit(w->store, &err), &err);
    check(occ_store_top(w->store, &filter, OCC_TOP_BY_KERNEL, &top, &err), &err);
    check(occ_overview_make_kernels(w->store, &filter, &top, &o, &err), &err);
    assert_int_equal(add_answers(w, &o, "gemm", &sum), 2);
    assert_near(sum.share, 2, 1e-12);
    assert_int_equal(sum.cause, OCC_CAUSE_SMALL_GRID);
    occ_overview_free(&o);
    occ_top_free(&top);
}

static void test_texts_of_savings(void **state)
{
    struct occ_kernel_answer a = {.is_known = true,
                                  .is_of_gpu_time = true,
                                  .finding = {.change = OCC_CHANGE_LAUNCH_BOUNDS,
                                              .saves = {.median = 0.049, .cases = 9},
                                              .forecast = {0.85, 0.56, 1.14, 8, 1, true, false}}};
    char text[256];
    (void)state;
    assert_string_equal(occ_saving_text(&a, text, sizeof text),
                        "about 4.9% of the GPU time: predicted time x0.85 (80% interval x0.56 to x1.14); "
                        "9 published cases: 8 faster, 1 slower");
    a.rest_ratio = 0.4;
    a.config = 7;
    assert_non_null(
        strstr(occ_saving_text(&a, text, sizeof text),
               "of the GPU time in configuration 7 alone (60% of the kernel's time): predicted time"));
    a.is_of_gpu_time = false;
    assert_true(strncmp(occ_saving_text(&a, text, sizeof text), "about 4.9% of the kernel's time", 31) == 0);
    a.finding.forecast.is_promised = false;
    assert_true(strncmp(occ_saving_text(&a, text, sizeof text), "measure it: predicted time x0.85", 32) == 0);
    a.finding.forecast.ratio = NAN;
    assert_string_equal(occ_saving_text(&a, text, sizeof text), "measure it: no prediction");
    a.finding.change = OCC_CHANGE_LEAVE;
    assert_string_equal(occ_saving_text(&a, text, sizeof text), "nothing that the model knows");
    a.is_known = false;
    a.finding.change = OCC_CHANGE_NONE;
    assert_string_equal(occ_saving_text(&a, text, sizeof text), "not known");
}

static void test_filters(void **state)
{
    struct world *w = *state;
    char gpu[24];
    put_two_gpus(w);
    (void)snprintf(gpu, sizeof gpu, "%d", (int)w->devices[1]);
    struct occ_overview o = ask(w, &(struct occ_filter){.gpu = gpu, .kernel = "copy"});
    assert_int_equal(o.totals.n_gpus, 1);
    check_sums(&o.time);
    assert_near(o.time.kernels, 2.0 / 3, 1e-6);
    occ_overview_free(&o);
    o = ask(w, &(struct occ_filter){.run = w->run + 1});
    assert_int_equal(o.launches, 0);
    assert_near(o.time.window_s, 0, 0);
    assert_true(isnan(o.read_ratio));
    occ_overview_free(&o);
    /* the last millisecond of GPU 0 */
    o = ask(w, &(struct occ_filter){.since_ns = T0 + 9 * MS, .until_ns = T0 + 10 * MS});
    check_sums(&o.time);
    assert_near(o.time.kernels, 1, 1e-6);
    occ_overview_free(&o);
}

/* Launches that run across the ends of the question's time are busy in it; no row has their occupancy if they
 * start before it. */
static void test_cut_launches(void **state)
{
    struct world *w = *state;
    put_two_gpus(w);
    struct occ_overview o = ask(w, &(struct occ_filter){.since_ns = T0 + 2 * MS, .until_ns = T0 + 5 * MS});
    check_sums(&o.time);
    assert_near(o.time.window_s, 4e-3, 1e-9); /* GPU 0: gemm until 4 ms, all-reduce until 5 ms; GPU 1: gemm */
    assert_near(o.time.communication, 1.0 / 4, 1e-6);
    assert_near(o.time.kernels, 3.0 / 4, 1e-6);
    assert_near(o.time.unknown, 2.0 / 4, 1e-6); /* of the gemm that starts before */
    assert_near(o.time.pause, 0, 1e-6);
    occ_overview_free(&o);
    o = ask(w, &(struct occ_filter){.since_ns = T0 + 5 * MS, .until_ns = T0 + 6 * MS + 550 * US});
    check_sums(&o.time);
    assert_near(o.time.window_s, 1.55e-3, 1e-9);
    assert_near(o.time.kernels, 1.5 / 1.55, 1e-6);
    assert_near(o.time.unknown, 1 / 1.55, 1e-6); /* the all-reduce, which no row names */
    assert_near(o.time.launch_wait, 0.05 / 1.55, 1e-6);
    occ_overview_free(&o);
}

/* The same in a run of which only a part is read: kernels of 3 s cross both ends of 5 s to 15 s. */
static void test_cut_launches_of_long_run(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const int64_t second = 1000 * MS;
    for (int64_t at = 0; at < 20; at++) {
        if (at == 3 || at == 13)
            append(w, GEMM, 0, at * second, (at + 3) * second);
        for (int64_t k = 0; (at < 3 || at >= 6) && (at < 13 || at >= 16) && k < 20000; k++)
            append(w, COPY, 0, at * second + k * 50 * US, at * second + (k * 50 + 10) * US);
        check(occ_store_commit(w->store, &err), &err);
    }
    struct occ_overview o =
        ask(w, &(struct occ_filter){.since_ns = T0 + 5 * second, .until_ns = T0 + 15 * second});
    check_sums(&o.time);
    assert_near(o.time.window_s, 10, 0.01);
    assert_near(o.time.kernels, (1 + 7 * 0.2 + 2) / 10, 0.01);
    assert_near(o.time.unknown, 0.1, 0.01);
    assert_near(occ_overview_share(&o, OCC_SHARE_OF_OTHERS, 0, o.kernel_s * 1e9), (7 * 0.2 + 2) / 10, 0.01);
    occ_overview_free(&o);
}

/* Reads 20 seconds of launches of 8 us, in pairs that overlap by half, one pair each 50 us on both GPUs. */
static void test_long_run(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    enum { PAIRS = 400000 };
    for (int i = 0; i < PAIRS; i++)
        for (int gpu = 0; gpu < GPUS; gpu++) {
            int64_t start = i * 50 * US;
            append(w, GEMM, gpu, start, start + 8 * US);
            append(w, COPY, gpu, start + 4 * US, start + 12 * US);
            if (i % 100000 == 0)
                check(occ_store_commit(w->store, &err), &err);
        }
    struct occ_overview o = ask(w, &(struct occ_filter){0});
    assert_true(o.read_ratio > 0.04 && o.read_ratio < 0.2);
    check_sums(&o.time);
    assert_near(o.time.kernels, 12.0 / 50, 0.001);
    assert_near(o.time.launch_wait, 38.0 / 50, 0.001);
    occ_overview_free(&o);
}

/* Stores `seconds` of a gemm of 20 us each 50 us on both GPUs, in one commit a second. */
static void put_seconds(struct world *w, int64_t from, int64_t seconds)
{
    struct occ_error err = OCC_ERROR_INIT;
    const int64_t second = 1000 * MS;
    for (int64_t s = from; s < from + seconds; s++) {
        for (int64_t at = s * second; at < (s + 1) * second; at += 50 * US)
            for (int gpu = 0; gpu < GPUS; gpu++)
                append(w, GEMM, gpu, at, at + 20 * US);
        check(occ_store_commit(w->store, &err), &err);
    }
}

/* The governor records less: all launches of 5 s, those of one second in ten for 30 s, and again all for 5 s
 * after 10 s without recording. More launches than an estimate reads. */
static void test_long_run_recorded_in_part(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const int64_t second = 1000 * MS;
    const struct occ_period periods[] = {
        {.from_ns = T0 + 5 * second, .until_ns = T0 + 35 * second, .level = "configs", .reason = "overhead"},
        {.from_ns = T0 + 35 * second, .until_ns = T0 + 45 * second, .level = "nothing", .reason = "overhead"},
    };
    put_seconds(w, 0, 5);
    for (int64_t sampled = 14; sampled < 35; sampled += 10)
        put_seconds(w, sampled, 1);
    put_seconds(w, 45, 5);
    for (size_t i = 0; i < 2; i++)
        check(occ_store_put_period(w->store, w->run, &periods[i], &err), &err);
    struct occ_overview o = ask(w, &(struct occ_filter){0});
    assert_true(o.read_ratio < 0.995);
    check_sums(&o.time);
    assert_near(o.time.unrecorded_s, 2 * 37.0, 0.01);
    assert_near(o.time.window_s, 2 * 13.0, 0.01); /* recorded: 13 s of 50 s on each GPU */
    assert_near(o.time.kernels, 0.4, 0.001);
    assert_near(o.time.launch_wait, 0.6, 0.001);
    assert_near(o.time.pause, 0, 0.001);
    occ_overview_free(&o);
}

/* A question that begins and ends in a hole inside of a chunk. */
static void test_question_begins_in_a_hole(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const int64_t second = 1000 * MS;
    const struct occ_period periods[] = {
        {.from_ns = T0 + 2 * second, .until_ns = T0 + 6 * second, .level = "nothing", .reason = "paused"},
        {.from_ns = T0 + 8 * second, .until_ns = T0 + 12 * second, .level = "nothing", .reason = "paused"},
    };
    append(w, GEMM, 0, second, 2 * second);
    append(w, GEMM, 0, 6 * second, 7 * second);
    append(w, GEMM, 0, 7 * second, 8 * second);
    append(w, GEMM, 0, 12 * second, 13 * second);
    for (size_t i = 0; i < 2; i++)
        check(occ_store_put_period(w->store, w->run, &periods[i], &err), &err);
    check(occ_store_commit(w->store, &err), &err);
    struct occ_overview o =
        ask(w, &(struct occ_filter){.since_ns = T0 + 3 * second, .until_ns = T0 + 11 * second});
    check_sums(&o.time);
    assert_near(o.time.window_s, 2, 1e-6);
    assert_near(o.time.kernels, 1, 1e-6);
    occ_overview_free(&o);
}

/* Only totals are left of 10 s, of which 4 s were not recorded, and one second in ten of 2 s. The last
 * launch begins after 9 s; its end is not known any more. */
static void test_totals_recorded_in_part(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const int64_t second = 1000 * MS;
    const struct occ_period periods[] = {
        {.from_ns = T0 + 2 * second, .until_ns = T0 + 6 * second, .level = "nothing", .reason = "paused"},
        {.from_ns = T0 + 6 * second, .until_ns = T0 + 8 * second, .level = "configs", .reason = "overhead"},
    };
    for (int gpu = 0; gpu < GPUS; gpu++) {
        append(w, GEMM, gpu, 0, second);
        append(w, GEMM, gpu, 9 * second, 10 * second);
    }
    for (size_t i = 0; i < 2; i++)
        check(occ_store_put_period(w->store, w->run, &periods[i], &err), &err);
    check(occ_store_finish(w->store, &err), &err);
    assert_int_equal(
        sqlite3_exec(occ_store_sqlite(w->store),
                     "DELETE FROM stored_chunk; UPDATE stored_run SET evicted_ns = last_start_ns "
                     "+ 1",
                     NULL, NULL, NULL),
        SQLITE_OK);
    struct occ_overview o = ask(w, &(struct occ_filter){0});
    check_sums(&o.time);
    assert_near(o.time.window_s, 2 * 3.2, 1e-6);
    assert_near(o.time.unrecorded_s, 2 * 5.8, 1e-6);
    assert_near(o.time.kernels, 2 / 3.2, 1e-6);
    assert_true(o.is_busy_most);
    occ_overview_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_gpus, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_programs_share_a_gpu, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lost_launches_are_not_idle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_findings_have_texts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_answers_are_the_findings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_answers_without_gpu_time, set_up, tear_down),
        cmocka_unit_test(test_texts_of_savings),
        cmocka_unit_test_setup_teardown(test_filters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cut_launches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cut_launches_of_long_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_run_recorded_in_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_totals_recorded_in_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_question_begins_in_a_hole, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
