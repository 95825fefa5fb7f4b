/* injector/exact_pairs: ranges meet the launches they were, or none. */
#include "injector/exact_pairs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define EPOCH_NS (UINT64_C(28333334) * 60 * UINT64_C(1000000000)) /* a whole minute */

struct fixture {
    struct occ_pairs pairs;
    struct occ_frame_measured frames[64];
    unsigned int n;
    bool is_full;
};

static bool take(void *context, struct occ_frame_measured *frame)
{
    struct fixture *f = context;
    if (f->is_full)
        return false;
    assert_true(f->n < 64);
    f->frames[f->n++] = *frame;
    return true;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    return occ_pairs_init(&f->pairs) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    munmap(f->pairs.records, OCC_PAIRS_MOST_RECORDS * sizeof *f->pairs.records);
    free(f);
    return 0;
}

static void record(struct fixture *f, uint32_t context, uint64_t at_ns, uint64_t ns, uint32_t shape)
{
    const struct occ_pairs_record r = {EPOCH_NS + at_ns, ns, context, shape};
    occ_pairs_add_record(&f->pairs, &r);
}

/* Range k of n has `base` + k warps for each cycle of an active SM; 10 SMs, half of the time. */
static void session(struct fixture *f, uint32_t context, uint64_t began_ns, uint64_t ended_ns, uint32_t n,
                    double base)
{
    struct occ_session *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    *s = (struct occ_session){
        .context = context, .began_ns = EPOCH_NS + began_ns, .ended_ns = EPOCH_NS + ended_ns, .ranges = n};
    for (uint32_t k = 0; k < n; k++)
        s->counts[k] = (struct occ_range_counts){(base + k) * 500, 500, 100, 1000};
    occ_pairs_add_session(&f->pairs, s);
}

static void settle(struct fixture *f)
{
    occ_pairs_settle(&f->pairs, true, take, f);
    assert_null(f->pairs.first);
}

static void ranges_are_launches_in_the_order_of_their_starts(void **state)
{
    struct fixture *f = *state;
    record(f, 1, 3000, 100, 7);
    record(f, 1, 1000, 200, 5);
    record(f, 1, 2000, 300, 6);
    session(f, 1, 500, 4000, 3, 1);
    settle(f);
    assert_int_equal(f->n, 3);
    for (unsigned int i = 0; i < 3; i++) { /* 1 warp in shape 5, 2 in 6, 3 in 7 */
        const struct occ_frame_measured *m = &f->frames[i];
        assert_int_equal(m->shape, 5 + i);
        assert_int_equal(m->launches, 1);
        assert_true(m->warps_active_ns == (i + 1) * m->ns && m->warps_ns == 5 * (i + 1) * m->ns);
        assert_true(m->sms_active_ns == 5 * m->ns && m->blocks_active_ns == 2 * m->ns);
    }
    assert_true(f->frames[0].ns == 200 && f->frames[1].ns == 300 && f->frames[2].ns == 100);
    assert_int_equal(f->pairs.measured, 3);
    assert_int_equal(f->pairs.launches, 3);
}

static void one_frame_a_shape_and_minute(void **state)
{
    struct fixture *f = *state;
    const uint64_t minute = UINT64_C(60000000000);
    record(f, 1, 1000, 100, 5);
    record(f, 1, 2000, 100, 6);
    record(f, 1, 3000, 100, 5);
    record(f, 1, minute + 1, 100, 5);
    session(f, 1, 0, 2 * minute, 4, 1);
    settle(f);
    assert_int_equal(f->n, 3);
    assert_int_equal(f->frames[0].launches, 2);
    assert_true(f->frames[0].warps_active_ns == (1 + 3) * 100.0);
    assert_int_equal(f->frames[2].minute, f->frames[0].minute + 1);
}

static void another_number_of_launches_has_no_values(void **state)
{
    struct fixture *f = *state;
    record(f, 1, 1000, 100, 5);
    record(f, 1, 2000, 100, 5);
    session(f, 1, 0, 3000, 3, 1); /* one record too few */
    record(f, 1, 4000, 100, 5);
    record(f, 1, 5000, 100, 5);
    session(f, 1, 3500, 6000, 1, 1); /* one too many */
    record(f, 1, 7000, 100, 5);
    session(f, 1, 6500, 8000, 1, 1); /* and the next is right again */
    settle(f);
    assert_int_equal(f->n, 1);
    assert_int_equal(f->pairs.measured, 1);
    assert_int_equal(f->pairs.n, 0);
}

static void launches_outside_sessions_and_of_other_contexts_do_not_count(void **state)
{
    struct fixture *f = *state;
    record(f, 1, 100, 50, 5);
    record(f, 1, 1000, 100, 6);
    record(f, 2, 1500, 100, 7);
    record(f, 1, 2500, 100, 8);
    session(f, 1, 500, 2000, 1, 1);
    settle(f);
    assert_int_equal(f->n, 1);
    assert_int_equal(f->frames[0].shape, 6);
    session(f, 2, 1400, 3000, 1, 9);
    settle(f);
    assert_int_equal(f->n, 2);
    assert_int_equal(f->frames[1].shape, 7);
}

static void kernels_at_the_same_time_have_no_values(void **state)
{
    struct fixture *f = *state;
    record(f, 1, 1000, 100, 5);
    record(f, 1, 1099, 100, 5);
    session(f, 1, 0, 3000, 2, 1);
    settle(f);
    assert_int_equal(f->n, 0);
}

static void a_session_waits_for_late_records(void **state)
{
    struct fixture *f = *state;
    session(f, 1, 0, 3000, 1, 1);
    for (uint32_t i = 0; i < OCC_PAIRS_ROUNDS; i++)
        occ_pairs_settle(&f->pairs, false, take, f);
    assert_non_null(f->pairs.first);
    record(f, 1, 1000, 100, 5);
    occ_pairs_settle(&f->pairs, false, take, f);
    assert_null(f->pairs.first);
    assert_int_equal(f->n, 1);
}

/* Without time or cycles there is no ratio; what the ring or the log did not take is not measured. */
static void what_has_no_value_is_not_counted(void **state)
{
    struct fixture *f = *state;
    record(f, 1, 1000, 0, 5);
    record(f, 1, 2000, 100, OCC_PAIRS_NO_SHAPE);
    record(f, 1, 3000, 100, 6);
    session(f, 1, 0, 4000, 3, 1);
    f->pairs.first->counts[2].sms_active = 0;
    settle(f);
    assert_int_equal(f->n, 0);
    record(f, 1, 5000, 100, 6);
    session(f, 1, 4500, 6000, 1, 1);
    f->is_full = true;
    settle(f);
    assert_int_equal(f->pairs.measured, 0);
}

static void a_full_table_forgets_the_oldest(void **state)
{
    struct fixture *f = *state;
    for (uint64_t i = 0; i < 3 * UINT64_C(65536); i++)
        record(f, 1, 1000 * (i + 1), 100, 5);
    record(f, 1, UINT64_C(1000) * 200000, 100, 6);
    session(f, 1, UINT64_C(1000) * 200000 - 1, UINT64_C(1000) * 200000 + 1, 1, 1);
    settle(f);
    assert_int_equal(f->n, 1);
    assert_int_equal(f->frames[0].shape, 6);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(ranges_are_launches_in_the_order_of_their_starts),
        T(one_frame_a_shape_and_minute),
        T(another_number_of_launches_has_no_values),
        T(launches_outside_sessions_and_of_other_contexts_do_not_count),
        T(kernels_at_the_same_time_have_no_values),
        T(a_session_waits_for_late_records),
        T(what_has_no_value_is_not_counted),
        T(a_full_table_forgets_the_oldest),
    };
#undef T
    return cmocka_run_group_tests_name("injector_exact", tests, NULL, NULL);
}
