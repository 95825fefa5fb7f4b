/* daemon/reorder.c: order, bounds of the window, and what happens when the sink refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "daemon/reorder.h"

struct taken {
    struct occ_store_launch rows[4096];
    size_t n;
    int refuse; /* an OCC_E_* */
};

static int take(void *context, const struct occ_store_launch *rows, size_t n, struct occ_error *err)
{
    struct taken *t = context;
    if (t->refuse)
        return occ_fail(err, t->refuse, "no");
    assert_true(t->n + n <= 4096);
    memcpy(t->rows + t->n, rows, n * sizeof *rows);
    t->n += n;
    return 0;
}

static void add(struct occ_reorder *reorder, int64_t start_ns, uint32_t tag)
{
    struct occ_store_launch *row = occ_reorder_reserve(reorder, 1);
    assert_non_null(row);
    *row = (struct occ_store_launch){.start_ns = start_ns, .correlation = tag};
    occ_reorder_added(reorder, 1);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Stable order is the reference: (start, tag), the tag being the place before. */
static void any_order_is_sorted_and_stable(void **state)
{
    (void)state;
    static struct occ_store_launch rows[3000], scratch[3000];
    uint32_t seed = 3;
    for (size_t n = 0; n < 3000; n = n < 70 ? n + 1 : n * 2) {
        for (int kind = 0; kind < 4; kind++) {
            for (size_t i = 0; i < n; i++) {
                int64_t starts[] = {(int64_t)(next_random(&seed) % 50), (int64_t)(n - i), (int64_t)i,
                                    (int64_t)(i ^ 5)};
                rows[i] = (struct occ_store_launch){.start_ns = starts[kind], .correlation = (uint32_t)i};
            }
            occ_reorder_sort(rows, scratch, n);
            for (size_t i = 1; i < n; i++)
                assert_true(rows[i - 1].start_ns < rows[i].start_ns ||
                            (rows[i - 1].start_ns == rows[i].start_ns &&
                             rows[i - 1].correlation < rows[i].correlation));
        }
    }
}

static void young_rows_wait_and_old_ones_leave(void **state)
{
    (void)state;
    static struct taken t;
    struct occ_reorder reorder = {0};
    const struct occ_reorder_limits limits = {.window_ns = 10, .rows = 100};
    t.n = 0;
    for (int i = 0; i < 99; i++)
        add(&reorder, 1000 + i, (uint32_t)i);
    assert_int_equal(occ_reorder_emit(&reorder, &limits, take, &t, NULL), 0);
    assert_int_equal(t.n, 0);
    add(&reorder, 1099, 99);
    assert_int_equal(occ_reorder_emit(&reorder, &limits, take, &t, NULL), 0);
    assert_int_equal(t.n, 89); /* starts below 1089 */
    assert_int_equal(reorder.n, 11);
    add(&reorder, 1090, 100); /* late, but within the window */
    assert_int_equal(occ_reorder_emit(&reorder, NULL, take, &t, NULL), 0);
    assert_int_equal(t.n, 101);
    for (size_t i = 1; i < t.n; i++)
        assert_true(t.rows[i - 1].start_ns <= t.rows[i].start_ns);
    occ_reorder_release(&reorder);
}

static void a_window_of_equals_lets_half_go(void **state)
{
    (void)state;
    static struct taken t;
    struct occ_reorder reorder = {0};
    const struct occ_reorder_limits limits = {.window_ns = 1000000, .rows = 7};
    t.n = 0;
    for (uint32_t i = 0; i < 7; i++)
        add(&reorder, 5, i);
    assert_int_equal(occ_reorder_emit(&reorder, &limits, take, &t, NULL), 0);
    assert_int_equal(t.n, 4);
    assert_int_equal(reorder.n, 3);
    occ_reorder_release(&reorder);
}

static void a_refusal_keeps_the_rows(void **state)
{
    (void)state;
    static struct taken t;
    struct occ_reorder reorder = {0};
    struct occ_error err = OCC_ERROR_INIT;
    t.n = 0;
    t.refuse = OCC_E_FULL;
    add(&reorder, 3, 0);
    add(&reorder, 1, 1);
    assert_int_equal(occ_reorder_emit(&reorder, NULL, take, &t, &err), OCC_E_FULL);
    assert_int_equal(reorder.n, 2);
    t.refuse = 0;
    assert_int_equal(occ_reorder_emit(&reorder, NULL, take, &t, &err), 0);
    assert_int_equal(t.n, 2);
    assert_int_equal(t.rows[0].correlation, 1);
    assert_int_equal(reorder.n, 0);
    occ_reorder_release(&reorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_is_sorted_and_stable),
        cmocka_unit_test(young_rows_wait_and_old_ones_leave),
        cmocka_unit_test(a_window_of_equals_lets_half_go),
        cmocka_unit_test(a_refusal_keeps_the_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
