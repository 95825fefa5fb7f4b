/* Numbers as text: equal to printf's shortest text that reads back, for fixed and for random numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/digits.h"

/* Returns the right text by the definition: tries each number of digits. */
static const char *expected(double real, char text[OCC_DIGITS_BYTES])
{
    if (fabs(real) < 1e15 && floor(real) == real) {
        (void)snprintf(text, OCC_DIGITS_BYTES, "%.0f", real + 0.0);
        return text;
    }
    for (int digits = 6; digits <= 17; digits++) {
        (void)snprintf(text, OCC_DIGITS_BYTES, "%.*g", digits, real);
        if (strtod(text, NULL) == real)
            break;
    }
    return text;
}

static void check(double real)
{
    char text[OCC_DIGITS_BYTES], right[OCC_DIGITS_BYTES];
    assert_string_equal(occ_real_digits(real, text), expected(real, right));
    assert_string_equal(occ_real_digits(-real, text), expected(-real, right));
}

static uint64_t next_random(void)
{
    static uint64_t state = 42;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static double random_ratio(void)
{
    return (double)(next_random() >> 11) * 0x1p-53;
}

static void test_known_numbers(void **state)
{
    static const double numbers[] = {1 / 3.0,
                                     2 / 3.0,
                                     0.1,
                                     0.2 + 0.1,
                                     0.5,
                                     0.4375,
                                     1e-4,
                                     0.00012345,
                                     9.9999e-5,
                                     1e-5,
                                     1.5e-9,
                                     9e-10,
                                     1e-300,
                                     5e-324,
                                     2.2250738585072014e-308,
                                     1.7976931348623157e308,
                                     1e15,
                                     1e16,
                                     123456e10,
                                     999999999999999.9,
                                     1000000000000000.1,
                                     123456789.125,
                                     0.999999999999999999,
                                     0.99999999999999994,
                                     4.35,
                                     4.349999999999999,
                                     1e22,
                                     1e23,
                                     9007199254740993.0,
                                     1.0000000000000002,
                                     0.30000000000000004,
                                     487.12316400000009,
                                     123456.5,
                                     1234567.5};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        check(numbers[i]);
        check(nextafter(numbers[i], 0));
        check(nextafter(numbers[i], INFINITY));
    }
}

static void test_powers(void **state)
{
    (void)state;
    for (int i = -1074; i < 1024; i++)
        for (int by = -1; by <= 1; by++) {
            double power = ldexp(1, i);
            check(by == 0 ? power : nextafter(power, by < 0 ? 0 : 1e308));
        }
    for (int i = -320; i <= 308; i++) {
        char text[OCC_DIGITS_BYTES];
        (void)snprintf(text, sizeof text, "1e%d", i);
        double power = strtod(text, NULL);
        check(power);
        check(nextafter(power, 0));
        check(nextafter(power, 1e308));
    }
}

static void test_random_numbers(void **state)
{
    enum { NUMBERS = 3000 };
    (void)state;
    for (int i = 0; i < NUMBERS; i++) {
        double ratio = random_ratio(), bits;
        uint64_t random = next_random();
        check(ratio);
        check(ratio * ratio * 1e-4);
        check(ratio * 1e6);
        check(ratio * 1e15);
        check(floor(ratio * 1e6) / 1e4);                       /* few digits */
        check((double)(random % 1000) / (double)(1 + i % 97)); /* mean of counts */
        memcpy(&bits, &random, sizeof bits);
        if (isfinite(bits))
            check(bits);
    }
}

static void test_integers(void **state)
{
    static const int64_t integers[] = {0, 1, -1, 9, 10, -10, 1234567, INT64_MAX, INT64_MIN};
    char text[OCC_DIGITS_BYTES], right[OCC_DIGITS_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        (void)snprintf(right, sizeof right, "%lld", (long long)integers[i]);
        assert_string_equal(occ_integer_digits(integers[i], text), right);
    }
    *occ_put_number(text, UINT64_MAX, 1) = '\0';
    assert_string_equal(text, "18446744073709551615");
    *occ_put_number(text, 7, 3) = '\0';
    assert_string_equal(text, "007");
    assert_string_equal(occ_real_digits(-0.0, text), "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_numbers),
        cmocka_unit_test(test_powers),
        cmocka_unit_test(test_random_numbers),
        cmocka_unit_test(test_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
