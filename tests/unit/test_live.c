/* occq live on made-up answers: order, selection, filter, values, texts. One thread. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/occq/live/model.h"
#include "draw/sparkline.h"

#define SECOND INT64_C(1000000000)
enum { ROWS = 8 };

static struct occ_top_row rows[ROWS];
static char names[ROWS][32];

static const struct cli_column *column(const char *name)
{
    const struct cli_column *c = top_columns;
    while (strcmp(c->name, name) != 0)
        c++;
    return c;
}

/* Kernels 1, 2 ... named kernel_1 ... with that waste; negative: it was not analysed. */
static struct occ_top sample(const double *waste, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof names[i], "kernel_%zu", i + 1);
        rows[i] = (struct occ_top_row){.waste_warp_seconds = waste[i],
                                       .theoretical = 0.5,
                                       .used = waste[i] < 0 ? NAN : 0.5,
                                       .launches = 10 * (i + 1),
                                       .total_ns = 1000,
                                       .achieved = NAN};
        rows[i].kernel = (struct occ_row_kernel){.id = (int64_t)i + 1, .device = 1, .short_name = names[i]};
    }
    return (struct occ_top){.rows = rows, .n = n};
}
#define SAMPLE(...)                                                                                          \
    sample((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

/* "3 1 2": the rows' kernels; '>' before the selected one. */
static const char *order_of(const struct live_model *m)
{
    static char text[128];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < m->n; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%d", i ? " " : "",
                                 i == m->at ? ">" : "", (int)m->items[i].kernel->id);
    return text;
}

static bool arrange(struct live_model *m, struct occ_top top, bool held)
{
    static struct live_sample s;
    free(s.lines);
    s.kernels = top;
    s.lines = top_make_lines(&top, top.n, NULL, &s.sums);
    return live_arrange(m, &s, held);
}

static void show(struct live_model *m, struct occ_top top, bool held)
{
    assert_true(live_record(m, &top));
    assert_true(arrange(m, top, held));
}

static struct live_model model(const char *order)
{
    return (struct live_model){.order = column(order)};
}

static void test_order(void **state)
{
    (void)state;
    struct live_model m = model("waste");
    struct occ_top top = SAMPLE(2, -1, 9, 2);
    show(&m, top, false);
    assert_string_equal(order_of(&m), ">3 1 4 2"); /* ties by number, unknown last */
    assert_true(m.items[1].line->running_waste_ratio == 11 / 13.0);
    assert_true(m.items[3].line->running_waste_ratio == 1);
    m.inverted = true;
    assert_true(arrange(&m, top, false));
    assert_string_equal(order_of(&m), ">1 4 3 2");
    m.inverted = false;
    m.order = column("kernel");
    assert_true(arrange(&m, top, false));
    assert_string_equal(order_of(&m), ">1 2 3 4");
    m.order = column("launches");
    assert_true(arrange(&m, top, false));
    assert_string_equal(order_of(&m), ">4 3 2 1");
    m.order = column("achieved"); /* no row has a value */
    assert_true(arrange(&m, top, false));
    assert_string_equal(order_of(&m), ">1 2 3 4");
    live_model_release(&m);
}

static void test_devices_are_rows(void **state)
{
    (void)state;
    struct live_model m = model("waste");
    struct occ_top top = SAMPLE(1, 5);
    rows[1].kernel.id = 1;
    rows[1].kernel.device = 2;
    show(&m, top, false);
    live_move(&m, 1);
    rows[0].waste_warp_seconds = 9;
    show(&m, top, false);
    assert_int_equal(m.at, 0);
    assert_int_equal(m.items[m.at].kernel->device, 1);
    live_model_release(&m);
}

static void test_selection(void **state)
{
    (void)state;
    struct live_model m = model("waste");
    show(&m, SAMPLE(1, 2, 3), false);
    show(&m, SAMPLE(3, 2, 1), false);
    assert_string_equal(order_of(&m), ">1 2 3"); /* nothing chosen: the first row */
    live_move(&m, 1);
    show(&m, SAMPLE(1, 9, 5), false);
    assert_string_equal(order_of(&m), ">2 3 1"); /* its kernel */
    live_move(&m, -1);
    show(&m, SAMPLE(7), false);
    assert_int_equal(m.selected, 2); /* has no launches for a while */
    show(&m, SAMPLE(7, 8, 9), false);
    assert_string_equal(order_of(&m), "3 >2 1");
    live_move(&m, 100);
    assert_string_equal(order_of(&m), "3 2 >1");
    live_move(&m, -100);
    assert_string_equal(order_of(&m), ">3 2 1");
    show(&m, (struct occ_top){0}, false);
    live_move(&m, 1);
    assert_int_equal(m.n, 0);
    assert_int_equal(m.at, 0);
    live_model_release(&m);
}

static void test_held_order(void **state)
{
    (void)state;
    struct live_model m = model("waste");
    show(&m, SAMPLE(1, 2, 3), false);
    show(&m, SAMPLE(9, 2, 1, 100), true);
    assert_string_equal(order_of(&m), ">3 2 1 4"); /* new ones follow */
    show(&m, SAMPLE(9, 8, 1, 100), true);
    assert_string_equal(order_of(&m), ">3 2 1 4");
    show(&m, SAMPLE(9, 8, 1, 100), false);
    assert_string_equal(order_of(&m), ">4 1 2 3");
    live_model_release(&m);
}

static void test_filter(void **state)
{
    (void)state;
    struct live_model m = model("waste");
    char line[LIVE_LINE_BYTES];
    struct occ_top top = SAMPLE(1, 2, 3);
    struct live_sample s = {.kernels = top, .newest_ns = 1, .window_ns = SECOND};
    rows[2].kernel.demangled = "void ns::Gemm<float>()";
    (void)snprintf(m.filter, sizeof m.filter, "GEMM");
    show(&m, top, false);
    assert_string_equal(order_of(&m), ">3");
    assert_true(m.items[0].line->waste_ratio == 0.5); /* of all kernels */
    live_nothing_text(&s, &m, line);
    assert_string_equal(line, "");
    rows[1].kernel.words = "GEMM 64x64 nn"; /* printed in place of a long name */
    (void)snprintf(m.filter, sizeof m.filter, "64X64 n");
    show(&m, top, false);
    assert_string_equal(order_of(&m), ">2");
    rows[1].kernel.words = NULL;
    (void)snprintf(m.filter, sizeof m.filter, "a\033");
    assert_true(arrange(&m, top, false));
    live_nothing_text(&s, &m, line);
    assert_string_equal(line, "no kernel's name has 'a?' in it");
    live_model_release(&m);
}

static void test_scrolling(void **state)
{
    (void)state;
    struct live_model m = model("kernel");
    show(&m, SAMPLE(1, 1, 1, 1, 1, 1, 1, 1), false);
    for (int i = 0; i < 4; i++) {
        live_move(&m, 1);
        live_scroll(&m, 3);
        assert_in_range(m.at, m.first, m.first + 2);
    }
    assert_int_equal(m.first, 2);
    live_move(&m, -2);
    live_scroll(&m, 3);
    assert_int_equal(m.first, 2);
    live_scroll(&m, 100); /* the screen grew */
    assert_int_equal(m.first, 0);
    live_move(&m, 100);
    live_scroll(&m, 1);
    assert_int_equal(m.first, 7);
    live_model_release(&m);
}

static void test_values(void **state)
{
    (void)state;
    struct live_model m = model("waste");
    show(&m, SAMPLE(1, 2), false);
    show(&m, SAMPLE(3), false);
    assert_int_equal(m.n_kernels, 2);
    assert_true(m.kernels[0].values[LIVE_VALUES - 1] == 3 && m.kernels[0].values[LIVE_VALUES - 2] == 1);
    assert_true(m.kernels[1].values[LIVE_VALUES - 1] == 0 && m.kernels[1].values[LIVE_VALUES - 2] == 2);
    for (int i = 0; i < LIVE_VALUES - 2; i++)
        show(&m, SAMPLE(3), false);
    assert_int_equal(m.n_kernels, 2);
    show(&m, SAMPLE(3), false); /* its last value has gone */
    assert_int_equal(m.n_kernels, 1);
    live_model_release(&m);
}

static void test_sparkline(void **state)
{
    (void)state;
    char text[DRAW_SPARKLINE_BYTES(LIVE_VALUES)];
    draw_sparkline((const double[LIVE_VALUES]){0, 1, 2, 4, 8, 8, 0.001, 7.999}, LIVE_VALUES, true, text);
    assert_string_equal(text, " .:=##.#  ");
    draw_sparkline((const double[LIVE_VALUES]){[8] = 4, [9] = 8}, LIVE_VALUES, false, text);
    assert_string_equal(text, "        \xe2\x96\x84\xe2\x96\x88");
    draw_sparkline((const double[LIVE_VALUES]){0}, LIVE_VALUES, true, text);
    assert_string_equal(text, "          ");
}

static void test_texts(void **state)
{
    (void)state;
    char line[LIVE_LINE_BYTES];
    struct live_model m = model("waste");
    struct live_sample s = {.at_ns = 100 * SECOND,
                            .complete_ns = 100 * SECOND,
                            .window_ns = 5 * SECOND,
                            .runs = 1,
                            .lost = 7,
                            .overhead = NAN};
    live_head_text(&s, line);
    assert_string_equal(line, "last 5 s  no launches yet  1 run  lost 7  overhead -");
    live_nothing_text(&s, &m, line);
    assert_non_null(strstr(line, "waits for the first launch"));
    s.missing_run = 99;
    live_head_text(&s, line);
    assert_string_equal(line, "last 5 s  there is no run 99  1 run  lost 7  overhead -");
    live_nothing_text(&s, &m, line);
    assert_string_equal(line, "there is no run 99 ('occq runs' lists them); waits for it");
    s.missing_run = 0;
    live_causes_text(&s, line);
    assert_string_equal(line, "loss by main cause: -");
    s.newest_ns = 40 * SECOND;
    live_nothing_text(&s, &m, line);
    assert_string_equal(line, "no launches in the last 5 s that match (newest 1 min ago); waits for more");
    s.newest_ns = 160 * SECOND;
    live_head_text(&s, line);
    assert_non_null(strstr(line, "newest 1 min ahead (the clock was set back)"));
    (void)occ_fail(&s.err, OCC_E_IO, "%s", "a\nb");
    live_nothing_text(&s, &m, line);
    assert_string_equal(line, "a?b; waiting until it can be read");
}

/* The window ends where no launch is missing: in the last seconds a busy GPU would look idle. */
static void test_window(void **state)
{
    (void)state;
    char line[LIVE_LINE_BYTES];
    struct live_sample s = {.at_ns = 100 * SECOND, .window_ns = 5 * SECOND, .newest_ns = 99 * SECOND};
    assert_int_equal(live_complete_ns(&s, 0), 100 * SECOND);            /* no run in progress */
    assert_int_equal(live_complete_ns(&s, 98 * SECOND), 98 * SECOND);   /* the tail of the ring */
    assert_int_equal(live_complete_ns(&s, 40 * SECOND), 97 * SECOND);   /* idle, not late */
    assert_int_equal(live_complete_ns(&s, 130 * SECOND), 100 * SECOND); /* the clock was set back */
    s.complete_ns = 98 * SECOND;
    live_head_text(&s, line);
    assert_string_equal(line, "last 5 s up to 2 s ago  newest 1 s ago  0 runs  lost 0  overhead 0.0%");
    s.newest_ns = s.complete_ns;
    live_head_text(&s, line);
    assert_string_equal(line, "last 5 s up to 2 s ago  0 runs  lost 0  overhead 0.0%");
}

static void test_gpus_and_causes(void **state)
{
    (void)state;
    char line[LIVE_LINE_BYTES];
    struct live_use uses[] = {{.device = 2, .busy = 0.5, .used = 0.25, .alone = 1},
                              {.device = 1, .busy = 2, .used = NAN, .alone = 1}};
    struct live_sample s = {.window_ns = 1000, .uses = uses};
    s.gpus = s.causes = SAMPLE(1, 3);
    rows[0].kernel.short_name = "GPU\033[2J of a very long name";
    rows[1].achieved = 0.5;
    rows[1].measured_ratio = 0.06;
    rows[1].kernel.simulated = true;
    live_gpu_text(&s, 0, true, line);
    assert_string_equal(line,
                        "GPU 1  ==================== busy 200.0%  used      -  GPU?[2J of a very long name");
    live_gpu_text(&s, 1, true, line);
    assert_string_equal(line, "GPU 2  #####=====.......... busy  50.0%  used  25.0%  sim  kernel_2  "
                              "achieved 50.0% in 6.0%");
    live_gpu_text(&s, 1, false, line);
    assert_non_null(strstr(line, "\xe2\x96\x88\xe2\x96\x92\xe2\x96\x92"));
    rows[1].kernel.short_name = "NVIDIA H100 (simulated)";
    live_gpu_text(&s, 1, true, line);
    assert_null(strstr(line, "  sim  "));
    s.uses = NULL; /* nothing is known */
    live_gpu_text(&s, 1, true, line);
    assert_non_null(strstr(line, ".................... busy      -  used      -"));
    live_causes_text(&s, line);
    assert_string_equal(
        line, "loss by main cause: GPU?[2J of a very long name 25.0%, NVIDIA H100 (simulated) 75.0%");
}

static void test_shares(void **state)
{
    (void)state;
    struct live_use uses[] = {{.device = 1, .alone = 0.5}};
    struct live_sample s = {.window_ns = 4000, .uses = uses, .gpus.n = 1, .kernels = SAMPLE(1, 2)};
    s.lines = top_make_lines(&s.kernels, 2, NULL, &s.sums);
    live_set_shares(&s);
    assert_true(s.lines[0].gpu_share == 0.125); /* 1000 ns, half beside other kernels */
    rows[1].kernel.device = 9;                  /* a GPU that the overview does not know */
    free(s.lines);
    s.lines = top_make_lines(&s.kernels, 2, NULL, &s.sums);
    live_set_shares(&s);
    assert_true(isnan(s.lines[1].gpu_share));
    free(s.lines);
}

static void test_owners(void **state)
{
    (void)state;
    char line[LIVE_LINE_BYTES];
    struct live_sample s = {.kernels = SAMPLE(1, 2, 3)};
    for (int i = 0; i < 3; i++)
        rows[i].kernel.demangled = "gemm(float*)";
    s.lines = top_make_lines(&s.kernels, 3, NULL, &s.sums);
    live_owners_text(&s, line);
    assert_string_equal(line, ""); /* one owner is in the table */
    free(s.lines);
    rows[2].kernel.demangled = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    rows[2].total_ns = 6000;
    s.lines = top_make_lines(&s.kernels, 3, NULL, &s.sums);
    live_owners_text(&s, line);
    assert_string_equal(line, "time by owner: communication 75.0%, yours? 25.0%");
    free(s.lines);
}

static void test_layers(void **state)
{
    (void)state;
    char line[LIVE_LINE_BYTES];
    const struct occ_range_totals totals[] = {{.path = "net/block_0/mlp", .launches = 1, .time_s = 3},
                                              {.path = "net/block_1/mlp", .launches = 1, .time_s = 3},
                                              {.path = "net/block_0/attention", .launches = 1, .time_s = 1},
                                              {.path = "net/block_1/attention", .launches = 1, .time_s = 1},
                                              {.path = "net/block_1", .launches = 1, .time_s = 2}};
    struct live_sample s = {.window_ns = SECOND};
    live_layers_text(&s, true, line);
    assert_string_equal(line, ""); /* no ranges */
    assert_int_equal(occ_layers_make(totals, 5, &(struct occ_layer_options){0}, &s.layers.tree), 0);
    live_layers_text(&s, true, line);
    assert_string_equal(line, "layers by time: mlp x 2 60.0%, attention x 2 20.0%, block (directly) 20.0%");
    occ_layers_free(&s.layers.tree);
}

/* The list begins with the longest layer, even if many layers come before it in the tree. */
static void test_many_layers(void **state)
{
    (void)state;
    enum { LAYERS = 40 };
    struct occ_range_totals totals[LAYERS];
    char paths[LAYERS][32], line[LIVE_LINE_BYTES];
    struct live_sample s = {.window_ns = SECOND};
    for (int i = 0; i < LAYERS; i++) {
        /* the first pass has many short layers, the backward pass one long layer */
        (void)snprintf(paths[i], sizeof paths[i], "net/part%c%c", 'a' + i / 8, 'a' + i % 8);
        totals[i] = (struct occ_range_totals){.path = paths[i],
                                              .launches = 1,
                                              .time_s = i + 1 < LAYERS ? 1 : LAYERS,
                                              .is_backward = i + 1 == LAYERS};
    }
    assert_int_equal(occ_layers_make(totals, LAYERS, &(struct occ_layer_options){0}, &s.layers.tree), 0);
    live_layers_text(&s, true, line);
    assert_memory_equal(line, "layers by time: partee", strlen("layers by time: parte"));
    assert_non_null(strstr(line, " backward 50.6%, "));
    occ_layers_free(&s.layers.tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),     cmocka_unit_test(test_devices_are_rows),
        cmocka_unit_test(test_selection), cmocka_unit_test(test_held_order),
        cmocka_unit_test(test_filter),    cmocka_unit_test(test_scrolling),
        cmocka_unit_test(test_values),    cmocka_unit_test(test_sparkline),
        cmocka_unit_test(test_texts),     cmocka_unit_test(test_gpus_and_causes),
        cmocka_unit_test(test_shares),    cmocka_unit_test(test_owners),
        cmocka_unit_test(test_layers),    cmocka_unit_test(test_many_layers),
        cmocka_unit_test(test_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
