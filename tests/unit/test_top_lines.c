/* Lines of occq top: when rows need their device, and lines one by one against all at once. One thread. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/kernels/top.h"
#include "occupancy/occupancy.h"

static struct occ_top_row row(int64_t id, const char *name, int64_t device)
{
    return (struct occ_top_row){.kernel = {.id = id, .device = device, .short_name = name}};
}

#define NEEDS(by, count, ...)                                                                                \
    top_needs_device(&(struct occ_top){.rows = (struct occ_top_row[]){__VA_ARGS__}, .n = count}, count, by)

static void test_kernels_on_two_devices_need_them(void **state)
{
    (void)state;
    assert_true(NEEDS(OCC_TOP_BY_KERNEL, 2, row(1, "a", 1), row(1, "a", 2)));
    assert_true(NEEDS(OCC_TOP_BY_KERNEL, 4, row(1, "a", 1), row(3, "c", 1), row(2, "b", 1), row(1, "a", 2)));
    assert_false(NEEDS(OCC_TOP_BY_KERNEL, 2, row(1, "a", 1), row(2, "a", 2))); /* two kernels of one name */
    assert_false(NEEDS(OCC_TOP_BY_KERNEL, 1, row(1, "a", 1)));
    assert_false(top_needs_device(&(struct occ_top){.n = 0}, 0, OCC_TOP_BY_KERNEL));
}

static void test_others_are_told_apart_by_their_text(void **state)
{
    (void)state;
    assert_true(NEEDS(OCC_TOP_BY_STREAM, 3, row(0, "7", 1), row(0, "9", 1), row(0, "7", 2)));
    assert_false(NEEDS(OCC_TOP_BY_STREAM, 2, row(0, "7", 1), row(0, "9", 2)));
    assert_true(NEEDS(OCC_TOP_BY_CONFIG, 2, row(1, "<<<1, 32>>>", 1), row(2, "<<<1, 32>>>", 2)));
    assert_true(NEEDS(OCC_TOP_BY_STREAM, 2, row(0, NULL, 1), row(0, NULL, 2)));
    assert_false(NEEDS(OCC_TOP_BY_GPU, 2, row(1, "H100", 1), row(2, "H100", 2)));
    assert_false(NEEDS(OCC_TOP_BY_RUN, 2, row(1, "a", 1), row(1, "a", 2)));
}

static void test_rows_that_are_not_shown_do_not_count(void **state)
{
    struct occ_top_row rows[] = {row(1, "a", 1), row(2, "b", 1), row(1, "a", 2)};
    struct occ_top top = {.rows = rows, .n = 3};
    (void)state;
    assert_false(top_needs_device(&top, 2, OCC_TOP_BY_KERNEL));
    assert_true(top_needs_device(&top, 3, OCC_TOP_BY_KERNEL));
}

static void test_many_rows(void **state)
{
    enum { ROWS = 5000 };
    static struct occ_top_row rows[ROWS];
    struct occ_top top = {.rows = rows, .n = ROWS};
    (void)state;
    for (int i = 0; i < ROWS; i++)
        rows[i] = row(ROWS - i, "a", 1);
    assert_false(top_needs_device(&top, ROWS, OCC_TOP_BY_KERNEL));
    rows[ROWS - 1] = row(ROWS, "a", 2);
    assert_true(top_needs_device(&top, ROWS, OCC_TOP_BY_KERNEL));
    assert_int_equal(rows[0].kernel.id, ROWS); /* their order stays */
}

static struct occ_top_row row_of_waste(double waste, uint64_t total_ns)
{
    struct occ_top_row made = row(1, "a", 1);
    made.waste_warp_seconds = waste;
    made.total_ns = total_ns;
    made.launches = 2;
    made.theoretical = made.used = 0.5;
    made.achieved = made.elapsed = NAN;
    made.main_cause = "tail";
    made.dominant.limiters = 1;
    return made;
}

static void test_lines_are_shares_of_all_rows(void **state)
{
    struct occ_top_row rows[] = {row_of_waste(6, 100), row_of_waste(3, 200), row_of_waste(1, 100)};
    struct occ_top top = {.rows = rows, .n = 3};
    struct top_sums sums;
    char limiters[64];
    (void)state;
    struct top_line *lines = top_make_lines(&top, 2, NULL, &sums);
    assert_non_null(lines);
    assert_true(sums.waste == 10 && sums.ns == 400 && sums.launches == 6);
    assert_true(lines[0].waste_ratio == 0.6 && lines[0].running_waste_ratio == 0.6);
    assert_true(lines[1].waste_ratio == 0.3 && lines[1].running_waste_ratio == 0.9);
    assert_true(lines[1].share == 0.5 && lines[1].mean_duration_ns == 100);
    assert_string_equal(lines[0].limiters, occ_limiters_text(1, limiters, sizeof limiters));
    struct top_line line;
    const struct top_sums all = top_sum(&top);
    top_make_line(&rows[1], &all, 9, &line);
    assert_true(line.running_waste_ratio == lines[1].running_waste_ratio && line.share == lines[1].share);
    free(lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_on_two_devices_need_them),
        cmocka_unit_test(test_others_are_told_apart_by_their_text),
        cmocka_unit_test(test_rows_that_are_not_shown_do_not_count),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_lines_are_shares_of_all_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
