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
    assert_int_equal(corpus->n, 1);
    assert_non_null(corpus->rows[0].skipped);
    corpus_free(corpus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_reasons),
        cmocka_unit_test(texts_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
