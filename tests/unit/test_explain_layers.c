/* Layers: a recorded model in one screen, and trees by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/layers.h"

static const struct occ_layer_options all = {0};

static const struct occ_layer *find(const struct occ_layers *layers, const char *name)
{
    for (size_t i = 0; i < layers->n; i++)
        if (strcmp(layers->layers[i].name, name) == 0)
            return &layers->layers[i];
    fail_msg("no layer is named %s", name);
    return NULL;
}

static void expect_line(const struct occ_layers *layers, size_t at, unsigned depth, const char *name,
                        uint32_t count)
{
    assert_true(at < layers->n);
    assert_string_equal(layers->layers[at].name, name);
    assert_int_equal(layers->layers[at].depth, depth);
    assert_int_equal(layers->layers[at].count, count);
}

/* ---- a trace of vLLM; the expected sums were made from the trace by another program ---- */

enum { ROWS_MAX = 512, LINE_MAX_BYTES = 1200 };

struct recording {
    struct occ_range_totals rows[ROWS_MAX];
    char paths[ROWS_MAX][LINE_MAX_BYTES];
    size_t n;
};

static void load(struct recording *r)
{
    FILE *file = fopen(OCC_RANGES_FILE, "r");
    assert_non_null(file);
    while (r->n < ROWS_MAX && fgets(r->paths[r->n], LINE_MAX_BYTES, file)) {
        char *rest = r->paths[r->n], *path = strsep(&rest, "\t"), *launches = strsep(&rest, "\t");
        if (path[0] == '#' || !rest)
            continue;
        r->rows[r->n++] = (struct occ_range_totals){.path = path,
                                                    .launches = strtoull(launches, NULL, 10),
                                                    .time_s = strtod(rest, NULL) * 1e-9,
                                                    .used = NAN};
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(r->n, 366);
}

static void test_recorded_model_fits_a_screen(void **state)
{
    static struct recording r;
    struct occ_layers layers;
    struct occ_layer_options options = {.min_share = 0.005};
    (void)state;
    load(&r);
    assert_int_equal(occ_layers_make(r.rows, r.n, &options, &layers), 0);
    assert_true(layers.n <= 18); /* heading, prefix and footer fit on a screen of 24 lines too */
    assert_string_equal(layers.prefix, "execute_context_#(#_#)_generation_#(#)");
    assert_float_equal(layers.time_s, 10.862916e-3, 1e-9);
    assert_float_equal(layers.covered_ratio, 1, 1e-12);
    expect_line(&layers, 0, 0, "GptOssForCausalLM_0", 1);
    expect_line(&layers, 1, 1, "TransformerBlock", 36);
    expect_line(&layers, 2, 2, "MLPBlock", 36);
    expect_line(&layers, 3, 3, "FusedMoE", 36);
    const struct occ_layer *mlp = find(&layers, "MLPBlock"), *attention = find(&layers, "OAIAttention");
    assert_float_equal(mlp->share, 0.7067, 5e-5);
    assert_float_equal(mlp->time_s, 7.677007e-3, 1e-9);
    assert_int_equal(mlp->launches, 396);
    assert_float_equal(attention->share, 0.2230, 5e-5);
    assert_int_equal(attention->launches, 288);
    const struct occ_layer *norm = find(&layers, "RMSNorm");
    assert_int_equal(norm->count, 72);
    assert_int_equal(norm->depth, 2);
    occ_layers_free(&layers);
    assert_int_equal(occ_layers_make(r.rows, r.n, &all, &layers), 0);
    assert_true(layers.n <= 22);
    assert_int_equal(find(&layers, "RMSNorm_72")->depth, 1); /* alone below the model, with its own name */
    occ_layers_free(&layers);
}

/* Children and direct launches of a line add up to the line. */
static void test_lines_add_up(void **state)
{
    static struct recording r;
    struct occ_layers layers;
    (void)state;
    load(&r);
    assert_int_equal(occ_layers_make(r.rows, r.n, &all, &layers), 0);
    double top = 0;
    for (size_t i = 0; i < layers.n; i++) {
        const struct occ_layer *line = &layers.layers[i];
        double children = 0;
        top += line->depth == 0 ? line->time_s : 0;
        for (size_t k = i + 1; k < layers.n && layers.layers[k].depth > line->depth; k++)
            children += layers.layers[k].depth == line->depth + 1 ? layers.layers[k].time_s : 0;
        assert_true(children == 0 || fabs(children - line->time_s) < 1e-12);
    }
    assert_float_equal(top, layers.time_s, 1e-12);
    occ_layers_free(&layers);
}

/* The totals of a line's subtree add up to the line, also if small lines are left out. */
static void test_totals_know_their_lines(void **state)
{
    static struct recording r;
    static const struct occ_layer_options options[] = {{.depth = 0}, {.min_share = 0.01}, {.depth = 2}};
    (void)state;
    load(&r);
    for (size_t o = 0; o < sizeof options / sizeof *options; o++) {
        struct occ_layers layers;
        assert_int_equal(occ_layers_make(r.rows, r.n, &options[o], &layers), 0);
        for (size_t i = 0; i < layers.n; i++) {
            size_t end = i + 1;
            double time_s = 0;
            for (; end < layers.n && layers.layers[end].depth > layers.layers[i].depth; end++)
                assert_true(layers.layers[end].parent >= i && layers.layers[end].parent < end);
            for (size_t k = 0; k < r.n; k++)
                time_s += layers.line_of[k] >= i && layers.line_of[k] < end ? r.rows[k].time_s : 0;
            assert_float_equal(time_s, layers.layers[i].time_s, 1e-12);
        }
        occ_layers_free(&layers);
    }
}

static void test_depth_and_small_lines(void **state)
{
    static struct recording r;
    struct occ_layers layers;
    struct occ_layer_options options = {.depth = 3, .min_share = 0.01};
    (void)state;
    load(&r);
    assert_int_equal(occ_layers_make(r.rows, r.n, &options, &layers), 0);
    expect_line(&layers, 0, 0, "GptOssForCausalLM_0", 1);
    expect_line(&layers, 1, 1, "TransformerBlock", 36);
    expect_line(&layers, 2, 2, "MLPBlock", 36);
    expect_line(&layers, 3, 2, "OAIAttention", 36);
    expect_line(&layers, 4, 2, "RMSNorm", 72);
    expect_line(&layers, 5, 1, "VocabParallelEmbedding_0", 1);
    assert_int_equal(layers.n, 6);
    /* the last norm, the logits, a graph in the embedding, and launches directly in the annotation */
    assert_int_equal(layers.hidden, 4);
    occ_layers_free(&layers);
}

static void test_unfold(void **state)
{
    static struct recording r;
    struct occ_layers layers;
    struct occ_layer_options options = {.depth = 2, .unfold = "TransformerBlock"};
    size_t blocks = 0;
    (void)state;
    load(&r);
    assert_int_equal(occ_layers_make(r.rows, r.n, &options, &layers), 0);
    for (size_t i = 0; i < layers.n; i++)
        blocks += strncmp(layers.layers[i].name, "TransformerBlock_", 17) == 0;
    assert_int_equal(blocks, 36);
    occ_layers_free(&layers);
}

/* ---- by hand ---- */

static struct occ_range_totals row(const char *path, double time_s)
{
    return (struct occ_range_totals){.path = path, .launches = 1, .time_s = time_s, .used = NAN};
}

static void test_outlier_is_named(void **state)
{
    struct occ_range_totals rows[12];
    char paths[12][64];
    struct occ_layers layers;
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "model/blocks.%zu/mlp.%zu", i / 2, i);
        rows[i] = row(paths[i], i == 7 ? 2.0 : 1 + 0.001 * (double)i);
    }
    assert_int_equal(occ_layers_make(rows, 12, &all, &layers), 0);
    assert_string_equal(layers.prefix, "model");
    expect_line(&layers, 0, 0, "blocks", 6);
    expect_line(&layers, 1, 1, "mlp", 12);
    assert_string_equal(layers.layers[1].outlier.name, "blocks.3/mlp.7");
    assert_float_equal(layers.layers[1].outlier.ratio, (float)(2 / 1.006), 1e-3);
    assert_string_equal(layers.layers[0].outlier.name, "blocks.3");
    occ_layers_free(&layers);
}

static void test_even_layers_have_no_outlier(void **state)
{
    struct occ_range_totals rows[8];
    char paths[8][64];
    struct occ_layers layers;
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "layer_%zu", i);
        rows[i] = row(paths[i], i % 2 ? 1 : 3); /* two kinds, no exception */
    }
    assert_int_equal(occ_layers_make(rows, 8, &all, &layers), 0);
    assert_int_equal(layers.n, 1);
    expect_line(&layers, 0, 0, "layer", 8);
    assert_null(layers.layers[0].outlier.name);
    occ_layers_free(&layers);
}

static void test_backward_is_separate(void **state)
{
    struct occ_range_totals rows[] = {row("net/conv", 1), row("net/fc", 1), row("net/conv", 2), row(NULL, 4)};
    struct occ_layers layers;
    (void)state;
    rows[2].is_backward = true;
    assert_int_equal(occ_layers_make(rows, 4, &all, &layers), 0);
    assert_string_equal(layers.prefix, "net");
    assert_string_equal(layers.backward_prefix, "net");
    assert_int_equal(layers.n, 3);
    expect_line(&layers, 2, 0, "conv", 1);
    assert_true(layers.layers[2].is_backward);
    assert_false(layers.layers[0].is_backward);
    assert_float_equal(layers.layers[2].share, 0.25, 1e-12);
    assert_float_equal(layers.covered_ratio, 0.5, 1e-12);
    occ_layers_free(&layers);
}

static void test_chains_are_one_line(void **state)
{
    struct occ_range_totals rows[] = {row("a/b/c/d", 2), row("a/e", 1), row("a", 1)};
    struct occ_layers layers;
    (void)state;
    assert_int_equal(occ_layers_make(rows, 3, &all, &layers), 0);
    assert_string_equal(layers.prefix, "a");
    expect_line(&layers, 0, 0, "b/c/d", 1);
    expect_line(&layers, 1, 0, "e", 1);
    expect_line(&layers, 2, 0, "(directly)", 1);
    assert_int_equal(layers.n, 3);
    occ_layers_free(&layers);
}

static void test_operators(void **state)
{
    struct occ_range_totals rows[] = {row("m/fc/aten::linear/aten::addmm", 2), row("m/act", 1),
                                      row("aten::add", 3)};
    struct occ_layer_options options = {.with_operators = true};
    struct occ_layers layers;
    (void)state;
    assert_int_equal(occ_layers_make(rows, 3, &all, &layers), 0);
    expect_line(&layers, 0, 0, "m", 1);
    expect_line(&layers, 1, 1, "fc", 1);
    expect_line(&layers, 2, 1, "act", 1);
    expect_line(&layers, 3, 0, "aten::add", 1); /* in no layer */
    occ_layers_free(&layers);
    assert_int_equal(occ_layers_make(rows, 3, &options, &layers), 0);
    expect_line(&layers, 1, 1, "fc/aten::linear/aten::addmm", 1);
    occ_layers_free(&layers);
}

static void test_occupancy_and_worst_kernel(void **state)
{
    struct occ_range_totals rows[] = {row("m/x", 1), row("m/x", 3), row("m/y", 1)};
    struct occ_layers layers;
    (void)state;
    rows[0].used = 0.1;
    rows[0].kernel = "small loss";
    rows[1].used = 0.5;
    rows[1].kernel = "large loss";
    rows[1].kernel_id = 7;
    assert_int_equal(occ_layers_make(rows, 3, &all, &layers), 0);
    assert_float_equal(layers.layers[0].used, 0.4, 1e-12);
    assert_string_equal(layers.layers[0].worst_kernel, "large loss");
    assert_int_equal(layers.layers[0].worst_kernel_id, 7);
    assert_true(isnan(layers.layers[1].used));
    assert_null(layers.layers[1].worst_kernel);
    occ_layers_free(&layers);
}

/* Only a number after a sign counts: "conv1" and "conv2" are different layers. */
static void test_numbers_inside_names(void **state)
{
    struct occ_range_totals rows[] = {row("conv1", 4), row("conv2", 3), row("h[3]", 1),
                                      row("h[4]", 1),  row("_7", 1),    row("#", 0.5)};
    struct occ_layers layers;
    (void)state;
    assert_int_equal(occ_layers_make(rows, 6, &all, &layers), 0);
    assert_int_equal(layers.n, 5);
    expect_line(&layers, 0, 0, "conv1", 1);
    expect_line(&layers, 1, 0, "conv2", 1);
    expect_line(&layers, 2, 0, "h", 2);
    expect_line(&layers, 3, 0, "_7", 1);
    occ_layers_free(&layers);
}

static void test_hostile_paths(void **state)
{
    static char deep[1025], slashes[1025];
    struct occ_range_totals rows[] = {row(deep, 1),  row(slashes, 1), row("", 1),
                                      row("a", NAN), row("a", -1),    row("b", INFINITY)};
    struct occ_layers layers;
    (void)state;
    for (size_t i = 0; i + 1 < sizeof deep; i++)
        deep[i] = i % 2 ? '/' : (char)('a' + i % 26);
    memset(slashes, '/', sizeof slashes - 1);
    assert_int_equal(occ_layers_make(rows, 6, &all, &layers), 0);
    for (size_t i = 0; i < layers.n; i++)
        assert_true(layers.layers[i].depth < OCC_LAYERS_DEPTH_MAX);
    assert_float_equal(layers.covered_ratio, 2 / 3.0F, 1e-6);
    occ_layers_free(&layers);
    assert_int_equal(occ_layers_make(NULL, 0, &all, &layers), 0);
    assert_int_equal(layers.n, 0);
    assert_true(isnan(layers.covered_ratio));
    occ_layers_free(&layers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_model_fits_a_screen),
        cmocka_unit_test(test_lines_add_up),
        cmocka_unit_test(test_totals_know_their_lines),
        cmocka_unit_test(test_depth_and_small_lines),
        cmocka_unit_test(test_unfold),
        cmocka_unit_test(test_outlier_is_named),
        cmocka_unit_test(test_even_layers_have_no_outlier),
        cmocka_unit_test(test_backward_is_separate),
        cmocka_unit_test(test_chains_are_one_line),
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_occupancy_and_worst_kernel),
        cmocka_unit_test(test_numbers_inside_names),
        cmocka_unit_test(test_hostile_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
