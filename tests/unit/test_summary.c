/* The summary of occtrace: verdict, losses and sources of a run, in lines of at most 80 columns. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer/answer.h"
#include "cli/occtrace/summary.h"
#include "cli/values.h"

#define T0     INT64_C(1700000000000000000)
#define MS     INT64_C(1000000)
#define SECOND (1000 * MS)

static const char unmeasured[] =
    "achieved occupancy is not measured: this GPU, driver or mode (MIG, vGPU) has no such counters: enabling "
    "PM sampling: CUPTI_ERROR_NOT_SUPPORTED (27)";

struct world {
    char directory[32];
    struct occ_store *store;
    int64_t device, runs;
    uint64_t hash; /* of the last kernel's name */
    uint32_t configs[3];
    char text[8192];
};

static void check(int rc, const struct occ_error *err)
{
    if (rc != 0)
        fail_msg("%s", err->message);
}

static void put_kernel(struct world *w, int which, const char *mangled, uint32_t blocks)
{
    struct occ_error err = OCC_ERROR_INIT;
    int64_t kernel = 0, config = 0;
    check(occ_store_put_kernel(w->store, mangled, ++w->hash, &kernel, &err), &err);
    const struct occ_launch_config c = {.kernel = kernel,
                                        .device = w->device,
                                        .launch = {.grid = {blocks, 1, 1},
                                                   .block = {256, 1, 1},
                                                   .cluster = {1, 1, 1},
                                                   .registers_per_thread = 32,
                                                   .carveout_percent = -1}};
    check(occ_store_put_config(w->store, &c, &config, &err), &err);
    w->configs[which] = (uint32_t)config;
}

static int set_up(void **state)
{
    static struct world world;
    struct world *w = &world;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_store_options options = {.mode = OCC_STORE_WRITE};
    const struct occ_store_device device = {
        .uuid = {0xa0}, .name = "NVIDIA H100 80GB HBM3", .limits = {.cc = 90, .sm_count = 132}};
    char path[64];
    *w = (struct world){.directory = "/tmp/summary.XXXXXX"};
    assert_non_null(mkdtemp(w->directory));
    (void)snprintf(path, sizeof path, "%s/h.db", w->directory);
    check(occ_store_open(path, &options, &w->store, &err), &err);
    check(occ_store_put_device(w->store, &device, &w->device, &err), &err);
    /* two kernels of one short name, and one with a long name */
    put_kernel(w, 0, "_Z6matmulILi64EEvPf", 33);
    put_kernel(w, 1, "_Z6matmulILi128EEvPf", 66);
    put_kernel(w, 2, "a_kernel_with_a_name_that_no_line_of_eighty_columns_can_hold_beside_all_its_numbers",
               99);
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

/* A run of session "s" that the caller changes before put_run(). */
static struct occ_run a_run(struct world *w)
{
    return (struct occ_run){.uuid = {(uint8_t)++w->runs},
                            .pid = 4711,
                            .start_ns = T0,
                            .end_ns = T0 + SECOND,
                            .exe = "/opt/bin/train",
                            .session = "s",
                            .level = "trace"};
}

/* Stores the run with launches of `ms` milliseconds of each kernel, one after the other. */
static int64_t put_run(struct world *w, const struct occ_run *run, int ms)
{
    struct occ_error err = OCC_ERROR_INIT;
    int64_t id = 0;
    check(occ_store_put_run(w->store, run, &id, &err), &err);
    for (int i = 0; i < 3 && ms > 0; i++) {
        const struct occ_store_launch launch = {.start_ns = T0 + (int64_t)i * ms * MS,
                                                .duration_ns = (uint64_t)(ms * MS),
                                                .config = w->configs[i]};
        check(occ_store_append(w->store, id, w->device, &launch, 1, &err), &err);
    }
    const struct occ_cost_total costs[] = {{"helper_cpu_ns", 20}, {"process_cpu_ns", 1000}};
    check(occ_store_put_costs(w->store, id, costs, 2, &err), &err);
    check(occ_store_commit(w->store, &err), &err);
    return id;
}

/* Returns the summary's text on stderr. */
static const char *print(struct world *w, const char *db, bool was_killed)
{
    struct occ_error err = OCC_ERROR_INIT;
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);
    assert_non_null(file);
    (void)fflush(stderr);
    (void)dup2(fileno(file), STDERR_FILENO);
    int rc = summary_print(w->store, "s", db, was_killed, &err);
    (void)fflush(stderr);
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    rewind(file);
    w->text[fread(w->text, 1, sizeof w->text - 1, file)] = '\0';
    (void)fclose(file);
    check(rc, &err);
    return w->text;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void assert_lines_fit(const char *text, int most)
{
    int lines = 0;
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n', lines++)
        if (strcspn(text, "\n") > 80)
            fail_msg("wider than 80 columns: %s", text);
    if (lines > most)
        fail_msg("%d lines, not %d", lines, most);
}

static void test_verdict(void **state)
{
    struct world *w = *state;
    struct occ_run run = a_run(w);
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_overview o;
    char lines[OCC_OVERVIEW_LINES][OCC_OVERVIEW_LINE_BYTES], share[64], percent[16];
    run.level_reason = unmeasured;
    (void)put_run(w, &run, 10);
    const char *text = print(w, "", false);
    assert_lines_fit(text, 13);
    assert_has(text, "occtrace: run 1, train (pid 4711): 3 launches, none lost\n");
    check(occ_overview_ask(w->store, &(struct occ_filter){.session = "s"}, &o, &err), &err);
    assert_int_equal(occ_overview_text(&o, lines), 4);
    assert_has(text, lines[0]);
    assert_has(text, lines[1]);
    (void)snprintf(
        share, sizeof share, "%s of GPU time",
        cli_percent_text(occ_overview_share(&o, OCC_SHARE_OF_OTHERS, 0, 10e6), percent, sizeof percent));
    occ_overview_free(&o);
    assert_has(text, share);
    assert_has(text, "matmul<64> "); /* as occq tells them apart */
    assert_has(text, "33 blocks, 132 SMs\n");
    assert_has(text, "  why and what to do: occq show 1 --run 1   page: occq report --run 1 -o r.html\n");
    assert_has(text, "CPU time (short run)\n");
    assert_null(strstr(text, "CUPTI_ERROR")); /* plain words */
    assert_has(text, "has no such counters");
    assert_has(text, "(occq doctor)");
    assert_has(print(w, "it's here.db", false), "occq show 1 --run 1 -d 'it'\\''s here.db'\n");
}

/* Names that a line cannot hold are family and tile, with a number where two kernels have the same. */
static void test_words(void **state)
{
    static const char *const names[] = {
        "sm80_xmma_fprop_implicit_gemm_indexed_f32f32_f32f32_f32_nhwckrsc_nchw_tilesize128x64x8_stage3_"
        "kernel",
        "sm80_xmma_fprop_implicit_gemm_indexed_f32f32_f32f32_f32_nhwckrsc_nchw_tilesize128x64x16_stage4_"
        "kernel",
        "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_transOut"};
    struct world *w = *state;
    struct occ_run run = a_run(w);
    for (int i = 0; i < 3; i++)
        put_kernel(w, i, names[i], 33 + (uint32_t)i);
    (void)put_run(w, &run, 10);
    const char *text = print(w, "", false);
    assert_lines_fit(text, 13);
    assert_has(text, "  convolution 128x64 #4 ");
    assert_has(text, "  convolution 128x64 #5 ");
    assert_has(text, "  bmm MxE4m3 128x16 ");
}

static void test_losses(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    struct occ_run run = a_run(w);
    const struct occ_loss loss = {"ring_full", 12};
    int64_t id = put_run(w, &run, 10);
    assert_has(print(w, "", true), "3 launches, lost: unknown; killed, so that");
    check(occ_store_put_losses(w->store, id, &loss, 1, &err), &err);
    check(occ_store_commit(w->store, &err), &err);
    assert_has(print(w, "", false), "3 launches, 12 lost (ring_full 12)\n");
    assert_has(print(w, "", true), "at least 12 lost (ring_full 12);\n  killed, so that up to");
    run.level_reason = OCC_STORE_CUT " (up to 1 s), since the program ended before its last records were "
                                     "delivered; recorded in one second of ten";
    run.level = "configs";
    check(occ_store_put_run(w->store, &run, &id, &err), &err);
    check(occ_store_commit(w->store, &err), &err);
    const char *text = print(w, "", false);
    assert_has(text, "at least 12 lost (ring_full 12,\n  unknown); it ended before its last");
    assert_has(text, "  recorded: launch configurations only; recorded in one second of ten\n");
}

static void test_several_runs(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 9; i++) {
        struct occ_run run = a_run(w);
        run.start_ns += i;
        run.end_ns = T0 + 20 * SECOND;
        (void)put_run(w, &run, 10);
    }
    const char *text = print(w, "", false);
    assert_has(text, "occtrace: run 9, train");
    assert_null(strstr(text, "occtrace: run 1, ")); /* the newest eight */
    assert_has(text, "  and 1 more processes: occq runs\n");
    assert_has(text, "  why and what to do: occq show 1\n");
    assert_has(text, "overhead: 2.00% of CPU time\n");
    assert_lines_fit(text, 20);
}

/* A GPU that is idle for most of the time waits for something else than a kernel's configuration. */
static void test_idle(void **state)
{
    struct world *w = *state;
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_run run = a_run(w);
    int64_t id = put_run(w, &run, 1);
    const struct occ_store_launch last = {
        .start_ns = T0 + SECOND, .duration_ns = (uint64_t)MS, .config = w->configs[0]};
    check(occ_store_append(w->store, id, w->device, &last, 1, &err), &err);
    check(occ_store_commit(w->store, &err), &err);
    const char *text = print(w, "", false);
    assert_has(text, "kernels ran 0.4% of the time\n");
    assert_has(text, "  why the GPU waits: occq top --gaps --run 1");
}

static void test_nothing(void **state)
{
    struct world *w = *state;
    struct occ_run run = a_run(w);
    run.level = "nothing";
    run.level_reason = "no CUDA driver";
    (void)put_run(w, &run, 0);
    assert_string_equal(print(w, "", false),
                        "occtrace: train (pid 4711): nothing was recorded: no CUDA driver\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_verdict, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_losses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_several_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_idle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
