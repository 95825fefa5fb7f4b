/* Prices, amounts that add up to the cent, and the time that programs hold shared GPUs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/bill.h"

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.12g is not %.12g", value, expected);
}

/* ---- prices ---- */

static void prices_are_read(void **state)
{
    struct occ_price p;
    (void)state;
    assert_true(occ_price_parse("2.50 EUR", &p));
    assert_int_equal(p.millionths, 2500000);
    assert_string_equal(p.currency, "EUR");
    assert_true(occ_price_parse("0.000001 USD", &p));
    assert_int_equal(p.millionths, 1);
    assert_true(occ_price_parse("1000000 JPY", &p));
    assert_int_equal(p.millionths, INT64_C(1000000000000));
}

static void other_texts_are_no_prices(void **state)
{
    static const char *const texts[] = {"",
                                        "EUR",
                                        "2.50",
                                        "2.50EUR",
                                        "2.50  EUR",
                                        "2.50 eur",
                                        "2.50 EU",
                                        "2.50 EURO",
                                        "-1 EUR",
                                        "0 EUR",
                                        "0.0 EUR",
                                        "1. EUR",
                                        ".5 EUR",
                                        "1.1234567 EUR",
                                        "1e3 EUR",
                                        "1000000.000001 EUR",
                                        "1000001 EUR",
                                        "99999999999999999999 EUR",
                                        "nan EUR",
                                        "2,50 EUR",
                                        "2.50 EUR "};
    struct occ_price p;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (occ_price_parse(texts[i], &p))
            fail_msg("'%s' is a price", texts[i]);
}

static void the_longest_model_wins(void **state)
{
    static const struct occ_prices prices = {
        .list = {{"a100", "EUR", 1}, {"A100-SXM4-80GB", "EUR", 2}, {"H100", "USD", 3}}, .n = 3};
    (void)state;
    assert_int_equal(occ_price_of(&prices, "NVIDIA A100-SXM4-80GB")->millionths, 2);
    assert_int_equal(occ_price_of(&prices, "NVIDIA A100-PCIE-40GB")->millionths, 1);
    assert_int_equal(occ_price_of(&prices, "NVIDIA H100 80GB HBM3")->millionths, 3);
    assert_null(occ_price_of(&prices, "Tesla T4"));
    assert_null(occ_price_of(&prices, NULL));
}

/* "NVIDIA A100-SXM4-40GB MIG 1g.5gb" is a seventh of a GPU. */
static void a_slice_has_a_price_of_its_own(void **state)
{
    static const char slice[] = "NVIDIA A100-SXM4-40GB MIG 1g.5gb";
    static const struct occ_prices whole = {.list = {{"A100-SXM4-40GB", "EUR", 1}, {"A100", "EUR", 2}},
                                            .n = 2},
                                   both = {.list = {{"A100-SXM4-40GB", "EUR", 1}, {"mig 1g.5gb", "EUR", 2}},
                                           .n = 2},
                                   any = {.list = {{"A100", "EUR", 1}, {"MIG", "EUR", 2}}, .n = 2};
    (void)state;
    assert_null(occ_price_of(&whole, slice));
    assert_int_equal(occ_price_of(&both, slice)->millionths, 2);
    assert_int_equal(occ_price_of(&any, slice)->millionths, 2);
    assert_int_equal(occ_price_of(&any, "NVIDIA A100-SXM4-40GB")->millionths, 1);
}

/* ---- amounts ---- */

/* For random weights: shares add up to the total, and each is its exact share, rounded up or down. */
static void shares_add_up(void **state)
{
    enum { TRIALS = 20000, MAX = 40 };
    (void)state;
    srand48(43);
    for (int trial = 0; trial < TRIALS; trial++) {
        size_t n = (size_t)(lrand48() % MAX) + 1;
        double weights[MAX], sum = 0;
        int64_t shares[MAX], together = 0, total = (int64_t)(pow(10, drand48() * 14) - 1);
        for (size_t i = 0; i < n; i++) {
            weights[i] = lrand48() % 4 == 0 ? 0 : lrand48() % 4 == 0 ? 1 : pow(10, drand48() * 12 - 6);
            sum += weights[i];
        }
        assert_int_equal(occ_share_out(total, weights, n, shares), 0);
        for (size_t i = 0; i < n; i++) {
            double exact = sum > 0 ? (double)total * (weights[i] / sum) : 0;
            assert_near((double)shares[i], exact, 1 + (double)total * 1e-12);
            assert_true(shares[i] >= 0 && (weights[i] > 0 || shares[i] == 0));
            together += shares[i];
        }
        assert_int_equal(together, sum > 0 ? total : 0);
    }
}

/* Equal weights differ by at most one, and the first ones get more: the answer does not depend on the sort.
 */
static void equal_weights_differ_by_one(void **state)
{
    const double weights[] = {1, 1, 1};
    int64_t shares[3];
    (void)state;
    assert_int_equal(occ_share_out(100, weights, 3, shares), 0);
    assert_int_equal(shares[0], 34);
    assert_int_equal(shares[1], 33);
    assert_int_equal(shares[2], 33);
    assert_int_equal(occ_share_out(0, weights, 3, shares), 0);
    assert_int_equal(shares[0], 0);
}

/* ---- held time ---- */

#define S INT64_C(1000000000)

static void shared_time_is_divided(void **state)
{
    struct occ_holder h[] = {{.gpu = 1, .first_ns = 0, .last_ns = 10 * S},
                             {.gpu = 1, .first_ns = 4 * S, .last_ns = 8 * S},
                             {.gpu = 1, .first_ns = 8 * S, .last_ns = 12 * S},
                             {.gpu = 2, .first_ns = 0, .last_ns = 10 * S},
                             {.gpu = 1, .first_ns = 0, .last_ns = 10 * S, .is_alone = true},
                             {.gpu = 1, .first_ns = 5 * S, .last_ns = 5 * S}};
    static const double expected[] = {7, 2, 3, 10, 10, 0};
    (void)state;
    assert_int_equal(occ_held_divide(h, 6), 0);
    for (size_t i = 0; i < 6; i++)
        assert_near(h[i].held_s, expected[i], 1e-9);
}

/* For random holders: the parts of one GPU add up to the time in which anyone holds it. */
static void parts_add_up_to_the_union(void **state)
{
    enum { TRIALS = 2000, MAX = 12, TIME = 50 };
    (void)state;
    srand48(44);
    for (int trial = 0; trial < TRIALS; trial++) {
        size_t n = (size_t)(lrand48() % MAX) + 1;
        struct occ_holder h[MAX];
        bool held[2][TIME] = {{false}};
        double sum = 0, together = 0;
        for (size_t i = 0; i < n; i++) {
            int64_t first = lrand48() % TIME, last = first + lrand48() % (TIME - first + 1);
            h[i] = (struct occ_holder){.gpu = lrand48() % 2, .first_ns = first * S, .last_ns = last * S};
            for (int64_t t = first; t < last; t++)
                held[h[i].gpu][t] = true;
        }
        assert_int_equal(occ_held_divide(h, n), 0);
        for (size_t i = 0; i < n; i++) {
            assert_true(h[i].held_s >= -1e-9);
            sum += h[i].held_s;
        }
        for (int t = 0; t < TIME; t++)
            together += (double)held[0][t] + (double)held[1][t];
        assert_near(sum, together, 1e-7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prices_are_read),        cmocka_unit_test(other_texts_are_no_prices),
        cmocka_unit_test(the_longest_model_wins), cmocka_unit_test(a_slice_has_a_price_of_its_own),
        cmocka_unit_test(shares_add_up),          cmocka_unit_test(equal_weights_differ_by_one),
        cmocka_unit_test(shared_time_is_divided), cmocka_unit_test(parts_add_up_to_the_union),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
