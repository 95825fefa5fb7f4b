/* Texts cut to the width of their column. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fit.h"

#define DOTS "\u2026"

static void check(size_t width, const char *const (*cases)[2])
{
    char *texts[8];
    size_t n = 0;
    for (; cases[n][0]; n++)
        texts[n] = strdup(cases[n][0]);
    assert_true(cli_fit_texts(texts, n, width, DOTS));
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(texts[i], cases[i][1]);
        assert_true(cli_text_width(texts[i]) <= width);
        free(texts[i]);
    }
}

static void test_short(void **state)
{
    (void)state;
    check(8, (const char *const[][2]){{"12345678", "12345678"}, {"", ""}, {NULL, NULL}});
    check(8, (const char *const[][2]){{NULL, NULL}});
}

static void test_end(void **state)
{
    (void)state;
    check(8, (const char *const[][2]){
                 {"123456789", "1234567" DOTS}, {"abcdefghi", "abcdefg" DOTS}, {NULL, NULL}});
    check(8, (const char *const[][2]){{"\u00e41234567\u00e4", "\u00e4123456" DOTS}, {NULL, NULL}});
}

/* Texts that would look alike are cut where they differ. */
static void test_alike(void **state)
{
    (void)state;
    check(12, (const char *const[][2]){{"elementwise<int>", "ele" DOTS "ise<int>"},
                                       {"elementwise<float>", "ele" DOTS "e<float>"},
                                       {"elementwise<long>", "ele" DOTS "se<long>"},
                                       {NULL, NULL}});
    check(12, (const char *const[][2]){{"elementwise<int>", "elementwise" DOTS},
                                       {"elementwise<int>", "elementwise" DOTS}, /* identical texts */
                                       {NULL, NULL}});
}

/* A name with an ellipsis already gets no second one beside it. */
static void test_short_names(void **state)
{
    (void)state;
    check(27, (const char *const[][2]){
                  {"Kernel<" DOTS "128x64_32x6_nn_align4>", "Kernel<" DOTS "64_32x6_nn_align4>"},
                  {"Kernel<" DOTS "128x64_32x6_nn_align8>", "Kernel<" DOTS "64_32x6_nn_align8>"},
                  {NULL, NULL}});
}

/* Wide characters take two columns, accents none; no character is cut in half. */
static void test_wide(void **state)
{
    (void)state;
    assert_int_equal(cli_text_width("\u884c\u5217 e\u0301\U0001f680"), 8);
    check(8, (const char *const[][2]){{"\u884c\u5217\u306e\u639b", "\u884c\u5217\u306e\u639b"},
                                      {"\u884c\u5217\u306e\u639b\u7b97", "\u884c\u5217\u306e" DOTS},
                                      {"e\u0301e\u03013456789", "e\u0301e\u030134567" DOTS},
                                      {NULL, NULL}});
    check(9,
          (const char *const[][2]){{"\u52a0\u7b97\u884c\u5217\u306e\u639b_a", "\u52a0" DOTS "\u306e\u639b_a"},
                                   {"\u52a0\u7b97\u884c\u5217\u306e\u639b_b", "\u52a0" DOTS "\u306e\u639b_b"},
                                   {NULL, NULL}});
}

/* Two of the texts have more in common than all three. */
static void test_groups(void **state)
{
    (void)state;
    check(14, (const char *const[][2]){{"prefix_of_all_a_0123456789_x", "pre" DOTS "l_a" DOTS "6789_x"},
                                       {"prefix_of_all_a_0123456789_y", "pre" DOTS "l_a" DOTS "6789_y"},
                                       {"prefix_of_all_b_0123456789_x", "pre" DOTS "l_b_01234" DOTS},
                                       {NULL, NULL}});
}

/* The texts would need more parts than fit, so they get numbers. */
static void test_numbers(void **state)
{
    (void)state;
    char *texts[6];
    bool is_numbered = false;
    for (int i = 0; i < 6; i++) {
        char text[] = "aaaaaaaaaaaaaaaaaaaa1bbbbbbbbbbbbbbbbbbbb1cccccccccccccccccccc1dddddddddddddddddd1e";
        text[20] = i == 0 ? '2' : '1';
        text[41] = i == 1 ? '2' : '1';
        text[62] = i == 2 ? '2' : '1';
        text[81] = (char)('0' + i);
        texts[i] = strdup(text);
    }
    assert_true(cli_fit_texts(texts, 6, 9, DOTS));
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < i; k++)
            assert_string_not_equal(texts[i], texts[k]);
        is_numbered = is_numbered || strchr(texts[i], '~');
        assert_true(cli_text_width(texts[i]) <= 9);
    }
    assert_true(is_numbered);
    for (int i = 0; i < 6; i++)
        free(texts[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short),       cmocka_unit_test(test_end),     cmocka_unit_test(test_alike),
        cmocka_unit_test(test_groups),      cmocka_unit_test(test_numbers), cmocka_unit_test(test_wide),
        cmocka_unit_test(test_short_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
