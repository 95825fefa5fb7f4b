/* injector/exact/matching: ranges meet the launch calls they were, or none. */
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
    struct occ_ring_launch found[16]; /* launches with their times */
    unsigned int n_found;
    bool ring_is_full;
    uint64_t lost[OCC_LOSS_COUNT];
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

static bool find(void *context, struct occ_ring_launch *launch)
{
    struct fixture *f = context;
    if (f->n_found < 16)
        f->found[f->n_found] = *launch;
    f->n_found++;
    return !f->ring_is_full;
}

static void lose(void *context, enum occ_loss_cause cause, uint64_t n)
{
    ((struct fixture *)context)->lost[cause] += n;
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

static void round_(struct fixture *f, bool is_last)
{
    const struct occ_exact_sink sink = {f, take, find, lose};
    occ_matching_run(&f->matching, is_last, &sink);
}

static void settle(struct fixture *f)
{
    round_(f, true);
    assert_int_equal(f->matching.n, 0);
}

/* A record with times. */
static void timed(struct fixture *f, uint32_t correlation, uint64_t at_ns, uint64_t ns, uint32_t config)
{
    const struct occ_exact_launch l = {.launch = {.start_ns = EPOCH_NS + at_ns,
                                                  .duration_ns = ns,
                                                  .correlation = correlation,
                                                  .config = config},
                                       .is_timed = true,
                                       .cause = OCC_LOSS_BAD_TIMES};
    assert_true(occ_matching_add_launch(&f->matching, &l));
}

/* Adds a launch without times, like the records of CUPTI 13.0.1 on an H100. */
static void timeless(struct fixture *f, uint32_t correlation, uint32_t config)
{
    const struct occ_exact_launch l = {.launch = {.correlation = correlation, .config = config},
                                       .cause = OCC_LOSS_EXIT};
    assert_true(occ_matching_add_launch(&f->matching, &l));
}

/* Call k of n has the correlation `first` + k and begins k microseconds after at_ns; range k has `base` + k
 * warps for each cycle of an active SM, 10 SMs half of the time, and lasts 100 + k ns. */
static struct occ_session *new_session(uint32_t first, uint64_t at_ns, uint32_t n, double base)
{
    struct occ_session *s = occ_session_new();
    assert_non_null(s);
    s->n = s->ranges = n;
    for (uint32_t k = 0; k < n; k++) {
        s->calls[k] = (struct occ_session_call){.start_ns = EPOCH_NS + at_ns + 1000 * (uint64_t)k,
                                                .correlation = first + k,
                                                .has_returned = true};
        s->counts[k] = (struct occ_range_counts){(base + k) * 500, 500, 100, 1000, 100 + k};
    }
    return s;
}

static void session(struct fixture *f, uint32_t first, uint64_t at_ns, uint32_t n, double base)
{
    occ_matching_add_session(&f->matching, new_session(first, at_ns, n, base));
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

/* Records come in any order; calls do not. */
static void ranges_are_calls_in_their_order(void **state)
{
    struct fixture *f = *state;
    timed(f, 13, 3000, 100, 7);
    timed(f, 11, 1000, 200, 5);
    timed(f, 12, 2000, 300, 6);
    session(f, 11, 500, 3, 1);
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
    assert_int_equal(f->n_found, 0); /* the ring has had them */
}

static void a_record_without_times_has_those_of_its_call_and_range(void **state)
{
    struct fixture *f = *state;
    timeless(f, 22, 6);
    session(f, 21, 5000, 2, 1);
    timeless(f, 21, 5);
    settle(f);
    assert_int_equal(f->n_found, 2);
    assert_int_equal(f->found[0].correlation, 22);
    assert_int_equal(f->found[0].config, 6);
    assert_true(f->found[0].start_ns == EPOCH_NS + 6000 && f->found[0].duration_ns == 101);
    assert_true(f->found[1].start_ns == EPOCH_NS + 5000 && f->found[1].duration_ns == 100);
    assert_true(said(f, 5, 0).ns == 100 && said(f, 5, 0).warps_active_ns == 100);
    assert_true(said(f, 6, 0).ns == 101 && said(f, 6, 0).warps_active_ns == 2 * 101.0);
    assert_int_equal(f->matching.by_call, 2);
    assert_int_equal(f->lost[OCC_LOSS_EXIT], 0);
}

/* Buffers with such records come when they are full, or at the end. */
static void records_may_come_long_before_or_after_the_session(void **state)
{
    struct fixture *f = *state;
    timeless(f, 1, 5);
    for (int i = 0; i < 100; i++)
        round_(f, false);
    assert_int_equal(f->n_found, 0);
    session(f, 1, 0, 2, 1);
    for (int i = 0; i < 100; i++)
        round_(f, false);
    assert_int_equal(f->n_found, 1);
    timeless(f, 2, 5);
    settle(f);
    assert_int_equal(f->n_found, 2);
    assert_int_equal(f->matching.measured, 2);
}

static void one_record_a_config_and_minute(void **state)
{
    struct fixture *f = *state;
    timed(f, 1, 1000, 100, 5);
    timed(f, 2, 2000, 100, 6);
    timed(f, 3, 3000, 100, 5);
    timed(f, 4, MINUTE_NS + 1, 100, 5);
    session(f, 1, 0, 4, 1);
    timed(f, 5, MINUTE_NS + 400, 100, 5);
    session(f, 5, MINUTE_NS + 300, 1, 1);
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
    for (uint32_t second = 0; second < 3600; second++) {
        uint64_t at_ns = second * SECOND_NS;
        timed(f, second, at_ns + 1000, 100, 5);
        session(f, second, at_ns, 1, 1);
        round_(f, false);
        f->all += f->n;
        if (second == 0)
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
    for (uint32_t i = 0; i < 20000; i++) {
        timed(f, i, 10 * i + 1, 5, i);
        if (i % 500 == 499)
            session(f, i - 499, 10 * (i - 499), 500, 1);
    }
    settle(f);
    assert_int_equal(f->matching.measured, 20000);
    assert_int_equal(f->all, 20000);
}

static void another_number_of_calls_has_no_values(void **state)
{
    struct fixture *f = *state;
    struct occ_session *few = new_session(1, 0, 2, 1), *many = new_session(4, 0, 2, 1);
    few->ranges = 1;
    many->ranges = 3;
    timed(f, 1, 1000, 100, 5);
    timeless(f, 2, 5);
    timed(f, 4, 4000, 100, 5);
    timeless(f, 5, 5);
    timeless(f, 6, 5);
    occ_matching_add_session(&f->matching, few);
    occ_matching_add_session(&f->matching, many);
    session(f, 6, 6500, 1, 1); /* and the next is right again */
    round_(f, false);
    assert_int_equal(f->n, 1);
    assert_int_equal(f->matching.measured, 1);
    assert_int_equal(f->matching.n, 0); /* known to have none: they do not wait */
    assert_int_equal(f->lost[OCC_LOSS_EXIT], 2);
    assert_int_equal(f->n_found, 1);
}

static void a_refused_call_has_no_range(void **state)
{
    struct fixture *f = *state;
    struct occ_session *s = new_session(1, 0, 3, 1);
    s->calls[1].is_refused = true;
    s->ranges = 2;
    occ_matching_add_session(&f->matching, s);
    timeless(f, 1, 5);
    timeless(f, 3, 6);
    settle(f);
    assert_true(said(f, 5, 0).warps_active_ns == 100);
    assert_true(said(f, 6, 0).warps_active_ns == 2 * 101.0);
}

/* A call that has not returned, or that a capture may contain, may have no range. A number of ranges that the
 * call would explain may also include the range of an unseen launch. */
static void only_certain_launches_are_ranges(void **state)
{
    struct fixture *f = *state;
    for (uint32_t i = 0; i < 18; i++) {
        uint32_t ranges = 1 + i % 3, at = i / 3 % 3, first = 1 + 10 * i;
        struct occ_session *s = new_session(first, 0, 3, 1);
        s->calls[at].has_returned = i < 9;
        s->calls[at].may_be_captured = i < 9;
        s->ranges = ranges;
        occ_matching_add_session(&f->matching, s);
        for (uint32_t k = 0; k < 3; k++)
            timeless(f, first + k, ranges);
    }
    settle(f);
    assert_int_equal(said(f, 1, 0).launches, 0);
    assert_int_equal(said(f, 2, 0).launches, 12);
    assert_true(said(f, 2, 0).warps_active_ns == 6 * (1 * 100.0 + 2 * 101.0));
    assert_int_equal(said(f, 3, 0).launches, 0);
    assert_int_equal(f->lost[OCC_LOSS_EXIT], 18 * 3 - 12);
    assert_int_equal(f->matching.unpaired, 6 * (1 + 3)); /* ranges, dropped */
}

static void a_session_that_is_unpaired_has_no_values(void **state)
{
    struct fixture *f = *state;
    struct occ_session *s = new_session(3, 0, 1, 1);
    s->is_unpaired = true;
    occ_matching_add_session(&f->matching, s);
    timeless(f, 3, 5);
    settle(f);
    assert_int_equal(f->n + f->n_found, 0);
    assert_int_equal(f->lost[OCC_LOSS_EXIT], 1);
}

/* Several kernels of one call cannot be told apart. */
static void a_value_is_used_once(void **state)
{
    struct fixture *f = *state;
    session(f, 1, 0, 1, 1);
    timeless(f, 1, 5);
    timeless(f, 1, 5);
    settle(f);
    assert_int_equal(f->n_found, 1);
    assert_int_equal(f->matching.measured, 1);
    assert_int_equal(f->lost[OCC_LOSS_EXIT], 1);
}

static void a_graphs_kernel_is_not_kept(void **state)
{
    struct fixture *f = *state;
    const struct occ_exact_launch l = {.launch = {.correlation = 1, .graph_node = 7, .config = 5}};
    assert_false(occ_matching_add_launch(&f->matching, &l));
    assert_int_equal(f->matching.launches, 1);
    settle(f);
    assert_int_equal(f->n_found + f->n + f->lost[OCC_LOSS_RING_FULL], 0);
}

/* A launch without time or cycles has no ratio; a launch that the ring or the log refuses is not measured. */
static void what_has_no_value_is_not_counted(void **state)
{
    struct fixture *f = *state;
    struct occ_session *s = new_session(1, 0, 7, 1);
    s->counts[2].sms_active = 0;
    s->counts[3].warps_active = 0;
    s->counts[4].blocks = 0;
    s->counts[5].warps_active = INFINITY;
    s->counts[6].blocks = NAN;
    occ_matching_add_session(&f->matching, s);
    timed(f, 1, 1000, 0, 5);
    timed(f, 2, 2000, 100, OCC_EXACT_NO_CONFIG);
    for (uint32_t i = 3; i < 8; i++)
        timed(f, i, 1000 * i, 100, 6);
    settle(f);
    assert_int_equal(f->n, 0);
    session(f, 15, 14500, 1, 1);
    timed(f, 15, 15000, 100, 6);
    f->is_full = true;
    settle(f);
    assert_int_equal(f->matching.measured, 0);
    f->is_full = false;
    f->ring_is_full = true;
    session(f, 16, 14500, 1, 1);
    timeless(f, 16, 6);
    settle(f);
    assert_int_equal(f->n_found, 1);
    assert_int_equal(f->matching.measured, 0);
    assert_int_equal(f->lost[OCC_LOSS_EXIT], 0); /* the ring has counted it */
}

/* No launch lasts 0 ns because a counter says so. */
static void a_counter_without_a_duration_is_no_time(void **state)
{
    struct fixture *f = *state;
    static const double wrong[] = {0, -1, NAN, INFINITY, 9.3e18, 0.4};
    enum { N = sizeof wrong / sizeof wrong[0] };
    struct occ_session *s = new_session(1, 0, N, 1);
    for (uint32_t i = 0; i < N; i++) {
        s->counts[i].ns = wrong[i];
        timeless(f, 1 + i, 5);
    }
    occ_matching_add_session(&f->matching, s);
    settle(f);
    assert_int_equal(f->n + f->n_found, 0);
    assert_int_equal(f->lost[OCC_LOSS_EXIT], N);
}

static void a_full_table_forgets_the_oldest(void **state)
{
    struct fixture *f = *state;
    const uint32_t most = OCC_MATCHING_MAX_LAUNCHES;
    for (uint32_t i = 1; i <= 3 * most; i++)
        timeless(f, i, 5);
    session(f, 3 * most, 0, 1, 1);
    settle(f);
    assert_int_equal(f->n_found, 1);
    assert_int_equal(f->lost[OCC_LOSS_EXIT], 3 * most - 1);
    assert_int_equal(f->matching.dropped, 2 * most);
}

/* The ring has had a launch with times; without, it would be lost. */
static void a_full_table_drops_launches_with_times_first(void **state)
{
    struct fixture *f = *state;
    const uint32_t most = OCC_MATCHING_MAX_LAUNCHES;
    for (uint32_t i = 1; i <= most + 1; i++)
        i % 2 ? timeless(f, i, 5) : timed(f, i, i, 1, 5);
    assert_int_equal(f->matching.dropped, most / 4);
    session(f, 1, 0, 1, 1);
    session(f, most + 1, 0, 1, 1); /* overwrites a value that is still waited for */
    settle(f);
    assert_int_equal(f->n_found, 1);
    assert_int_equal(f->matching.dropped, most / 4 + 1);
    assert_int_equal(f->lost[OCC_LOSS_EXIT], most / 2);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(ranges_are_calls_in_their_order),
        T(a_record_without_times_has_those_of_its_call_and_range),
        T(records_may_come_long_before_or_after_the_session),
        T(one_record_a_config_and_minute),
        T(the_log_fills_slowly),
        T(many_configs_are_said_earlier),
        T(another_number_of_calls_has_no_values),
        T(a_refused_call_has_no_range),
        T(only_certain_launches_are_ranges),
        T(a_session_that_is_unpaired_has_no_values),
        T(a_value_is_used_once),
        T(a_graphs_kernel_is_not_kept),
        T(what_has_no_value_is_not_counted),
        T(a_counter_without_a_duration_is_no_time),
        T(a_full_table_forgets_the_oldest),
        T(a_full_table_drops_launches_with_times_first),
    };
#undef T
    return cmocka_run_group_tests_name("exact_matching", tests, NULL, NULL);
}
