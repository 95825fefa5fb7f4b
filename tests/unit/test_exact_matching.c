/* injector/exact/matching: ranges meet the launches they were, or none. */
#include "injector/exact/matching.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND_NS UINT64_C(1000000000)
#define MINUTE_NS (60 * SECOND_NS)
#define EPOCH_NS  (UINT64_C(28333334) * MINUTE_NS)

struct fixture {
    struct occ_matching matching;
    struct occ_record_measured records[64];
    unsigned int n;
    bool is_full, is_counting; /* takes none; only counts them */
    uint64_t all;
};

static int take(void *context, struct occ_record_measured *record)
{
    struct fixture *f = context;
    if (f->is_full)
        return -1;
    f->all += f->is_counting;
    if (f->is_counting)
        return 1;
    assert_true(f->n < 64);
    f->records[f->n++] = *record;
    return 1;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    return occ_matching_init(&f->matching) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    free(f);
    return 0;
}

static void record(struct fixture *f, uint32_t context, uint64_t at_ns, uint64_t ns, uint32_t config)
{
    const struct occ_exact_launch l = {EPOCH_NS + at_ns, ns, context, config};
    occ_matching_add_launch(&f->matching, &l);
}

/* Range k of n has `base` + k warps for each cycle of an active SM; 10 SMs, half of the time. */
static void session(struct fixture *f, uint32_t context, uint64_t began_ns, uint64_t ended_ns, uint32_t n,
                    double base)
{
    struct occ_session *s = occ_session_new();
    assert_non_null(s);
    *s = (struct occ_session){
        .context = context, .began_ns = EPOCH_NS + began_ns, .ended_ns = EPOCH_NS + ended_ns, .ranges = n};
    for (uint32_t k = 0; k < n; k++)
        s->counts[k] = (struct occ_range_counts){(base + k) * 500, 500, 100, 1000};
    occ_matching_add_session(&f->matching, s);
}

static void settle(struct fixture *f)
{
    occ_matching_run(&f->matching, true, take, f);
    assert_null(f->matching.first);
}

/* The one record of a launch configuration and minute; without launches if there is none. */
static struct occ_record_measured said(const struct fixture *f, uint32_t config, uint64_t minute)
{
    struct occ_record_measured found = {0};
    for (unsigned int i = 0; i < f->n; i++) {
        const struct occ_record_measured *m = &f->records[i];
        if (m->config != config || m->minute != EPOCH_NS / MINUTE_NS + minute)
            continue;
        assert_int_equal(found.launches, 0);
        found = *m;
    }
    return found;
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
    for (unsigned int i = 0; i < 3; i++) { /* 1 warp in launch configuration 5, 2 in 6, 3 in 7 */
        const struct occ_record_measured m = said(f, 5 + i, 0);
        assert_int_equal(m.launches, 1);
        assert_true(m.warps_active_ns == (i + 1) * m.ns && m.warps_ns == 5 * (i + 1) * m.ns);
        assert_true(m.sms_active_ns == 5 * m.ns && m.blocks_active_ns == 2 * m.ns);
    }
    assert_true(said(f, 5, 0).ns == 200 && said(f, 6, 0).ns == 300 && said(f, 7, 0).ns == 100);
    assert_int_equal(f->matching.measured, 3);
    assert_int_equal(f->matching.launches, 3);
}

static void one_record_a_config_and_minute(void **state)
{
    struct fixture *f = *state;
    record(f, 1, 1000, 100, 5);
    record(f, 1, 2000, 100, 6);
    record(f, 1, 3000, 100, 5);
    record(f, 1, MINUTE_NS + 1, 100, 5);
    session(f, 1, 0, MINUTE_NS + 200, 4, 1);
    record(f, 1, MINUTE_NS + 400, 100, 5);
    session(f, 1, MINUTE_NS + 300, 2 * MINUTE_NS, 1, 1);
    settle(f);
    assert_int_equal(f->n, 3);
    assert_int_equal(said(f, 5, 0).launches, 2);
    assert_true(said(f, 5, 0).warps_active_ns == (1 + 3) * 100.0);
    assert_int_equal(said(f, 6, 0).launches, 1);
    assert_int_equal(said(f, 5, 1).launches, 2);
    assert_true(said(f, 5, 1).warps_active_ns == (4 + 1) * 100.0);
}

/* Soon at first, then ever less often: an hour of a kernel is little of the log. */
static void the_log_fills_slowly(void **state)
{
    struct fixture *f = *state;
    for (uint64_t second = 0; second < 3600; second++) {
        uint64_t at_ns = second * SECOND_NS;
        record(f, 1, at_ns + 1000, 100, 5);
        session(f, 1, at_ns, at_ns + 2000, 1, 1);
        occ_matching_run(&f->matching, false, take, f);
        f->all += f->n;
        if (second == OCC_MATCHING_ROUNDS)
            assert_int_equal(f->all, 1);
        f->n = 0;
    }
    assert_true(f->all < 2 * 60 + 8);
    assert_true(f->matching.measured > 3600 - 70);
    settle(f);
    assert_int_equal(f->matching.measured, 3600);
}

/* More launch configurations than the table holds: it is emptied before its time. */
static void many_configs_are_said_earlier(void **state)
{
    struct fixture *f = *state;
    f->is_counting = true;
    for (uint64_t i = 0; i < 20000; i++) {
        record(f, 1, 10 * i + 1, 5, (uint32_t)i);
        if (i % 500 == 499)
            session(f, 1, 10 * (i - 499), 10 * i + 9, 500, 1);
    }
    settle(f);
    assert_int_equal(f->matching.measured, 20000);
    assert_int_equal(f->all, 20000);
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
    assert_int_equal(f->matching.measured, 1);
    assert_int_equal(f->matching.n, 0);
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
    assert_int_equal(f->records[0].config, 6);
    session(f, 2, 1400, 3000, 1, 9);
    settle(f);
    assert_int_equal(f->n, 2);
    assert_int_equal(f->records[1].config, 7);
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
    for (uint32_t i = 0; i < OCC_MATCHING_ROUNDS; i++)
        occ_matching_run(&f->matching, false, take, f);
    assert_non_null(f->matching.first);
    record(f, 1, 1000, 100, 5);
    occ_matching_run(&f->matching, false, take, f);
    assert_null(f->matching.first);
    assert_int_equal(f->n, 1);
}

/* Without time or cycles there is no ratio; what the ring or the log did not take is not measured. */
static void what_has_no_value_is_not_counted(void **state)
{
    struct fixture *f = *state;
    record(f, 1, 1000, 0, 5);
    record(f, 1, 2000, 100, OCC_EXACT_NO_CONFIG);
    for (uint64_t i = 3; i < 8; i++)
        record(f, 1, i * 1000, 100, 6);
    session(f, 1, 0, 9000, 7, 1);
    struct occ_range_counts *counts = f->matching.first->counts;
    counts[2].sms_active = 0;
    counts[3].warps_active = 0;
    counts[4].blocks = 0;
    counts[5].warps_active = INFINITY;
    counts[6].blocks = NAN;
    settle(f);
    assert_int_equal(f->n, 0);
    record(f, 1, 15000, 100, 6);
    session(f, 1, 14500, 16000, 1, 1);
    f->is_full = true;
    settle(f);
    assert_int_equal(f->matching.measured, 0);
}

static void a_full_table_forgets_the_oldest(void **state)
{
    struct fixture *f = *state;
    const uint64_t last = 3 * UINT64_C(1000) * OCC_MATCHING_MAX_LAUNCHES;
    for (uint64_t i = 1; i < 3 * (uint64_t)OCC_MATCHING_MAX_LAUNCHES; i++)
        record(f, 1, 1000 * i, 100, 5);
    record(f, 1, last, 100, 6);
    session(f, 1, last - 1, last + 1, 1, 1);
    settle(f);
    assert_int_equal(f->n, 1);
    assert_int_equal(f->records[0].config, 6);
}

/* Sessions that wait are settled before any record of theirs is forgotten. */
static void a_full_table_settles_what_waits(void **state)
{
    struct fixture *f = *state;
    const uint64_t most = 2 * (uint64_t)OCC_MATCHING_MAX_LAUNCHES;
    for (uint64_t i = 0; i < most; i++) {
        record(f, 1, 1000 * i + 1, 100, 5);
        if (i % 256 == 255)
            session(f, 1, 1000 * (i - 255), 1000 * i + 500, 256, 1);
    }
    settle(f);
    assert_int_equal(f->matching.measured, most);
}

/* Of a graph's three kernels two records were lost: the third is not the whole graph. */
static void lost_records_leave_no_values(void **state)
{
    struct fixture *f = *state;
    session(f, 1, 0, 4000, 1, 1);
    record(f, 1, 1000, 100, 5);
    f->matching.lost += 2;
    session(f, 1, 5000, 9000, 1, 1); /* ran while they were lost, as far as is known */
    record(f, 1, 6000, 100, 5);
    settle(f);
    assert_int_equal(f->n, 0);
    session(f, 1, 10000, 19000, 1, 1);
    f->matching.first->lost = 2;
    record(f, 1, 16000, 100, 5);
    settle(f);
    assert_int_equal(f->matching.measured, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(ranges_are_launches_in_the_order_of_their_starts),
        T(one_record_a_config_and_minute),
        T(the_log_fills_slowly),
        T(many_configs_are_said_earlier),
        T(another_number_of_launches_has_no_values),
        T(launches_outside_sessions_and_of_other_contexts_do_not_count),
        T(kernels_at_the_same_time_have_no_values),
        T(a_session_waits_for_late_records),
        T(what_has_no_value_is_not_counted),
        T(a_full_table_forgets_the_oldest),
        T(a_full_table_settles_what_waits),
        T(lost_records_leave_no_values),
    };
#undef T
    return cmocka_run_group_tests_name("exact_matching", tests, NULL, NULL);
}
