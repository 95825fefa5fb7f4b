/* The corpus of published changes: rows, and rows that are skipped with a reason. */
#include "bench/corpus.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct corpus *parse(const char *text)
{
    const char *why;
    return corpus_parse(text, strlen(text), &why);
}

static void rows_and_reasons(void **state)
{
    (void)state;
    static char text[1 << 16];
    const char *why;
    FILE *file = fopen(OCC_TEST_DATA "/corpus.csv", "r");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    struct corpus *corpus = corpus_parse(text, size, &why);
    assert_non_null(corpus);
    static const char *const reasons[] = {
        NULL,
        NULL,
        "times contradict the ratio",
        "no known GPU",
        "not both sides are known",
        "another number of cells than columns",
        "the launch before is impossible",
        "no ratio",
    };
    assert_int_equal(corpus->n, sizeof reasons / sizeof *reasons);
    for (size_t i = 0; i < corpus->n; i++) {
        assert_int_equal(reasons[i] == NULL, corpus->rows[i].skipped == NULL);
        if (reasons[i])
            assert_string_equal(corpus->rows[i].skipped, reasons[i]);
    }
    const struct corpus_row *grid = &corpus->rows[0], *block = &corpus->rows[1];
    assert_string_equal(grid->id, "a1");
    assert_string_equal(grid->source, "made/up");
    assert_int_equal(grid->direction, 1);
    assert_true(fabs(grid->side[0].busy_sms - 0.25) < 1e-9 && grid->side[1].busy_sms >= 1);
    assert_int_equal(block->launch[0].block[1], 2);
    assert_int_equal(block->launch[1].block[0], 64);
    assert_int_equal(block->bound, OCC_WORK_COMPUTE);
    corpus_free(corpus);
}

static void texts_that_are_none(void **state)
{
    (void)state;
    assert_null(parse(""));
    assert_null(parse("id,source,gpu,change\n1,2,3,4\n"));
    struct corpus *corpus = parse("id,source,gpu,change,ratio");
    assert_non_null(corpus);
    assert_int_equal(corpus->n, 0);
    corpus_free(corpus);
    corpus = parse("id,source,gpu,change,ratio\r\n\"\r\n\"\"x,y\n");
    assert_non_null(corpus);
    assert_int_equal(corpus->n, 2);
    assert_non_null(corpus->rows[0].skipped);
    assert_non_null(corpus->rows[1].skipped);
    corpus_free(corpus);
}

#define HEADING                                                                                              \
    "id,source,gpu,change,ratio,time_before,time_after,before_block,after_block,before_grid,after_grid,"     \
    "before_regs,after_regs,before_dynamic_smem,after_dynamic_smem,before_theoretical,after_theoretical,"    \
    "before_blocks_per_sm,after_blocks_per_sm,before_spill_bytes,after_spill_bytes\n"
#define REST ",a100,registers,0.9,10,9,256,256,1000,1000,128,64,0,0,,,,,0,0\n"
#define GOOD "good,made/up" REST

static const struct {
    const char *row, *reason;
} bad_rows[] = {
    {"b,made/up,a100,registers,,10,9,256,256,1000,1000,128,64,0,0,,,,,0,0\n", "no ratio"},
    {"b,made/up,a100,registers,nan,10,9,256,256,1000,1000,128,64,0,0,,,,,0,0\n", "no ratio"},
    {"b,made/up,a100,registers,inf,10,9,256,256,1000,1000,128,64,0,0,,,,,0,0\n", "no ratio"},
    {"b,made/up,a100,registers,0,10,9,256,256,1000,1000,128,64,0,0,,,,,0,0\n", "no ratio"},
    {"b,made/up,a100,registers,0.9,10,0,256,256,1000,1000,128,64,0,0,,,,,0,0\n",
     "a time that is not above 0"},
    {"b,made/up,a100,registers,0.9,-10,9,256,256,1000,1000,128,64,0,0,,,,,0,0\n",
     "a time that is not above 0"},
    {"b,made/up,a100,registers,0.9,10,nan,256,256,1000,1000,128,64,0,0,,,,,0,0\n",
     "a time that is not above 0"},
    {"b,made/up,a100,registers,0.5,10,9,256,256,1000,1000,128,64,0,0,,,,,0,0\n",
     "times contradict the ratio"},
    {"b,made/up,sm_999,registers,0.9,10,9,256,256,1000,1000,128,64,0,0,,,,,0,0\n", "no known GPU"},
    {"b,made/up,,registers,0.9,10,9,256,256,1000,1000,128,64,0,0,,,,,0,0\n", "no known GPU"},
    {"b,made/up,a100,registers,0.9,10,9,-256,256,1000,1000,128,64,0,0,,,,,0,0\n",
     "a block or grid that is no size"},
    {"b,made/up,a100,registers,0.9,10,9,256,256,1000,0,128,64,0,0,,,,,0,0\n",
     "a block or grid that is no size"},
    {"b,made/up,a100,registers,0.9,10,9,256,256x,1000,1000,128,64,0,0,,,,,0,0\n",
     "a block or grid that is no size"},
    {"b,made/up,a100,registers,0.9,10,9,256,256,1000,1000,128,-64,0,0,,,,,0,0\n",
     "registers outside 1 to 255"},
    {"b,made/up,a100,registers,0.9,10,9,256,256,1000,1000,128,64.5,0,0,,,,,0,0\n",
     "registers outside 1 to 255"},
    {"b,made/up,a100,registers,0.9,10,9,256,256,1000,1000,128,256,0,0,,,,,0,0\n",
     "registers outside 1 to 255"},
    {"b,made/up,a100,registers,0.9,10,9,256,256,1000,1000,128,64,-1,0,,,,,0,0\n",
     "an impossible number of bytes"},
    {"b,made/up,a100,registers,0.9,10,9,256,256,1000,1000,128,64,0,0,,,,,0,nan\n",
     "an impossible number of bytes"},
    {"b,made/up,a100,registers,0.9,10,9,256,256,1000,1000,128,64,0,0,1.5,,,,0,0\n",
     "an occupancy outside 0 to 1"},
    {"b,made/up,a100,registers,0.9,10,9,256,256,1000,1000,128,64,0,0,,nan,,,0,0\n",
     "an occupancy outside 0 to 1"},
    {"b,made/up,a100,registers,0.9,10,9,256,256,1000,1000,128,64,0,0,,,-2,,0,0\n",
     "an impossible number of blocks"},
    {"b,made/up,a100,registers,0.9,10,9,256,256,1000,1000,64,64,0,0,,,,,0,0\n", "before and after are equal"},
    {"b,made/up,a100,registers,0.9,10,9,,,,,128,64,0,0,,,,,0,0\n", "not both sides are known"},
    {"b,made/up,a100,registers,0.9\n", "another number of cells than columns"},
    {"b,\"made/up,a100,registers,0.9\n", "a cell without an end, or too long"},
};

/* A bad row has one reason, and the rows around it stay. */
static void bad_rows_cost_no_other_row(void **state)
{
    (void)state;
    static char text[4096];
    for (size_t i = 0; i < sizeof bad_rows / sizeof *bad_rows; i++) {
        (void)snprintf(text, sizeof text, HEADING GOOD "%s" GOOD, bad_rows[i].row);
        struct corpus *corpus = parse(text);
        assert_non_null(corpus);
        assert_int_equal(corpus->n, 3);
        assert_null(corpus->rows[0].skipped);
        assert_null(corpus->rows[2].skipped);
        assert_non_null(corpus->rows[1].skipped);
        assert_string_equal(corpus->rows[1].skipped, bad_rows[i].reason);
        assert_string_equal(corpus->rows[1].id, "b");
        corpus_free(corpus);
    }
}

static void a_grid_may_stay(void **state)
{
    (void)state;
    struct corpus *corpus =
        parse(HEADING "a,made/up,a100,grid,1,10,10,256,256,1000,1000,64,64,0,0,,,,,0,0\n");
    assert_non_null(corpus);
    assert_null(corpus->rows[0].skipped);
    assert_int_equal(corpus->rows[0].direction, 0);
    corpus_free(corpus);
}

/* Cells of 1 MB, quoted or not: a row each. Line ends in quotes belong to their cell. */
static void large_cells(void **state)
{
    (void)state;
    enum { LARGE = 1 << 20 };
    char *text = malloc(LARGE + 4096);
    assert_non_null(text);
    for (int quoted = 0; quoted < 2; quoted++) {
        int n = sprintf(text, HEADING GOOD "b,%s", quoted ? "\"" : "");
        memset(text + n, 'x', LARGE);
        (void)sprintf(text + n + LARGE, "%s,a100\n" GOOD, quoted ? "\"" : "");
        struct corpus *corpus = parse(text);
        assert_non_null(corpus);
        assert_int_equal(corpus->n, 3);
        assert_string_equal(corpus->rows[1].skipped, "a cell without an end, or too long");
        assert_null(corpus->rows[2].skipped);
        corpus_free(corpus);
    }
    free(text);
    struct corpus *corpus = parse(HEADING "a,\"made/up#\n\"\"1\"\"\"" REST);
    assert_non_null(corpus);
    assert_int_equal(corpus->n, 1);
    assert_null(corpus->rows[0].skipped);
    corpus_free(corpus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_reasons),
        cmocka_unit_test(texts_that_are_none),
        cmocka_unit_test(bad_rows_cost_no_other_row),
        cmocka_unit_test(a_grid_may_stay),
        cmocka_unit_test(large_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
