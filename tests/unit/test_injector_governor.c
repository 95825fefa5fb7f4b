/* injector/governor and injector/takeover: fake costs, clocks and buffers, second by second. */
#include "injector/governor.h"
#include "injector/takeover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define MS     UINT64_C(1000000)

/* ---- the governor ---- */

struct world {
    struct occ_governor governor;
    struct occ_governor_cost cost;
};

static struct world new_world(double budget)
{
    struct world w = {.cost = {.now_ns = 1000 * SECOND, .own_cpu_ns = 7, .process_cpu_ns = 9}};
    occ_governor_init(&w.governor, budget);
    (void)occ_governor_round(&w.governor, &w.cost);
    return w;
}

/* Runs `seconds` of a constant load. Returns the number of seconds with a change of the step; *ret_last: the
 * last such second. */
static unsigned int run(struct world *w, unsigned int seconds, uint64_t own_ms, uint64_t process_ms,
                        unsigned int *ret_last)
{
    unsigned int changes = 0;
    for (unsigned int i = 1; i <= seconds; i++) {
        w->cost.now_ns += SECOND;
        w->cost.own_cpu_ns += own_ms * MS;
        w->cost.process_cpu_ns += process_ms * MS;
        if (!occ_governor_round(&w->governor, &w->cost))
            continue;
        changes++;
        if (ret_last)
            *ret_last = i;
    }
    return changes;
}

static void test_above_the_budget_for_ten_seconds_is_a_step_down(void **state)
{
    (void)state;
    struct world w = new_world(0.01);
    unsigned int at = 0;
    assert_int_equal(run(&w, 9, 11, 1000, NULL), 0);
    assert_int_equal(run(&w, 1, 11, 1000, NULL), 1);
    assert_int_equal(w.governor.step, OCC_STEP_NO_COUNTERS);
    assert_float_equal(w.governor.share, 0.011, 1e-9);
    assert_int_equal(run(&w, 20, 11, 1000, &at), 2);
    assert_int_equal(at, 20);
    assert_int_equal(w.governor.step, OCC_STEP_NOTHING);
    assert_int_equal(run(&w, 100, 11, 1000, NULL), 0); /* there is no step below */
    assert_int_equal(w.governor.step, OCC_STEP_NOTHING);
}

static void check_text(double share, double budget, const char *figures)
{
    const struct occ_governor governor = {.share = share, .budget = budget};
    char text[112];
    occ_governor_describe(&governor, text, sizeof text);
    assert_string_equal(text, figures);
}

static void test_a_text_tells_overhead_and_budget_apart(void **state)
{
    (void)state;
    check_text(0.034, 0.01, ": overhead was 3.4 %, the budget is 1 % (OCCTRACE_BUDGET)");
    check_text(0.010234, 0.01, ": overhead was 1.02 %, the budget is 1 % (OCCTRACE_BUDGET)");
    check_text(0.0100002, 0.01, ": overhead was 1.00002 %, the budget is 1 % (OCCTRACE_BUDGET)");
    check_text(0.01, 0.01, ": overhead was 1 %, the budget is 1 % (OCCTRACE_BUDGET)");
}

static void test_at_the_budget_nothing_changes(void **state)
{
    (void)state;
    struct world w = new_world(0.01);
    assert_int_equal(run(&w, 3600, 10, 1000, NULL), 0);
    assert_int_equal(w.governor.step, OCC_STEP_FULL);
}

/* Nine quiet seconds precede one expensive second: their mean counts. */
static void test_a_burst_is_measured_over_the_window(void **state)
{
    (void)state;
    struct world w = new_world(0.01);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(run(&w, 9, 0, 1000, NULL), 0);
        assert_int_equal(run(&w, 1, 99, 1000, NULL), 0);
    }
    assert_int_equal(run(&w, 9, 0, 1000, NULL), 0);
    assert_int_equal(run(&w, 1, 101, 1000, NULL), 1);
}

/* The overhead is relative to elapsed time if the program uses less than one core, and to its CPU time if it
 * uses more. */
static void test_the_base_is_the_larger_of_elapsed_and_cpu_time(void **state)
{
    (void)state;
    struct world idle = new_world(0.01), busy = new_world(0.01);
    assert_int_equal(run(&idle, 60, 9, 10, NULL), 0);
    assert_int_equal(run(&busy, 60, 79, 8000, NULL), 0);
    assert_int_equal(run(&busy, 10, 81, 8000, NULL), 1);
}

static void test_below_half_for_a_minute_is_a_step_up(void **state)
{
    (void)state;
    struct world w = new_world(0.01);
    unsigned int at = 0;
    assert_int_equal(run(&w, 20, 20, 1000, NULL), 2);
    assert_int_equal(run(&w, 59, 4, 1000, NULL), 0);
    assert_int_equal(run(&w, 1, 4, 1000, NULL), 1);
    assert_int_equal(w.governor.step, OCC_STEP_NO_COUNTERS);
    assert_int_equal(run(&w, 600, 5, 1000, NULL), 0); /* half the budget is not below half */
    assert_int_equal(run(&w, 60, 4, 1000, &at), 1);
    assert_int_equal(at, 60);
    assert_int_equal(w.governor.step, OCC_STEP_FULL);
    assert_int_equal(run(&w, 600, 0, 1000, NULL), 0);
}

/* Recording costs 5 %, and no recording costs nothing: with a constant wait, recording would be on for 10 of
 * 70 seconds for ever. */
static void test_a_step_up_that_fails_makes_it_patient(void **state)
{
    (void)state;
    struct world w = new_world(0.01);
    unsigned int waits[5], n = 0;
    assert_int_equal(run(&w, 30, 50, 1000, NULL), 3);
    while (n < 5) {
        unsigned int seconds = 0;
        while (run(&w, 1, 0, 1000, NULL) == 0)
            seconds++;
        waits[n++] = seconds + 1;
        assert_int_equal(run(&w, 10, 50, 1000, NULL), 1);
        assert_int_equal(w.governor.step, OCC_STEP_NOTHING);
    }
    const unsigned int expected[] = {60, 120, 240, 480, 960};
    assert_memory_equal(waits, expected, sizeof expected);
}

/* A step down long after the last step up starts with a wait of one minute again. */
static void test_patience_ends_with_a_long_calm(void **state)
{
    (void)state;
    struct world w = new_world(0.01);
    assert_int_equal(run(&w, 30, 50, 1000, NULL), 3);
    assert_int_equal(run(&w, 60, 0, 1000, NULL), 1);
    assert_int_equal(run(&w, 10, 50, 1000, NULL), 1); /* too early: the next wait is two minutes */
    assert_int_equal(run(&w, 119, 0, 1000, NULL), 0);
    assert_int_equal(run(&w, 241 + 70, 0, 1000, NULL), 3);
    assert_int_equal(w.governor.step, OCC_STEP_FULL);
    assert_int_equal(run(&w, 10, 50, 1000, NULL), 1);
    assert_int_equal(run(&w, 59, 0, 1000, NULL), 0);
    assert_int_equal(run(&w, 1, 0, 1000, NULL), 1);
}

static void test_seconds_that_were_not_recorded_do_not_count(void **state)
{
    (void)state;
    struct world w = new_world(0.01);
    assert_int_equal(run(&w, 10, 20, 1000, NULL), 1);
    assert_int_equal(run(&w, 30, 0, 1000, NULL), 0);
    for (int i = 0; i < 300; i++) { /* the owner's pause */
        w.cost.now_ns += SECOND;
        occ_governor_skip(&w.governor, &w.cost);
    }
    assert_int_equal(run(&w, 59, 0, 1000, NULL), 0);
    assert_int_equal(run(&w, 1, 0, 1000, NULL), 1);
}

/* The total decreases when the worker's clock vanishes. */
static void test_a_clock_that_goes_back_costs_nothing(void **state)
{
    (void)state;
    struct world w = new_world(0.01);
    w.cost.own_cpu_ns = 500 * SECOND;
    assert_int_equal(run(&w, 5, 0, 1000, NULL), 0);
    w.cost.own_cpu_ns = 0;
    assert_int_equal(run(&w, 5, 0, 1000, NULL), 0);
    assert_float_equal(w.governor.share, 0, 0);
}

/* ---- takeover ---- */

struct buffers {
    struct occ_takeover takeover;
    struct occ_takeover_signs signs;
};

static struct buffers new_buffers(void)
{
    struct buffers b = {.signs = {.now_ns = 100 * SECOND}};
    occ_takeover_init(&b.takeover, b.signs.now_ns);
    return b;
}

/* Runs the round of the next second, with these new buffers and this CPU time of CUPTI's worker, in a program
 * that works. */
static bool tick(struct buffers *b, uint64_t requested, uint64_t delivered, uint64_t worker_ms)
{
    b->signs.program_cpu_ns += 5 * MS;
    b->signs.now_ns += SECOND;
    b->signs.requested += requested;
    b->signs.delivered += delivered;
    b->signs.worker_cpu_ns += worker_ms * MS;
    return occ_takeover_round(&b->takeover, &b->signs);
}

/* CUPTI always has the last buffer, since the GPU never rests. */
static void test_a_busy_program_is_not_doubted(void **state)
{
    (void)state;
    struct buffers b = new_buffers();
    b.signs.has_other_library = true;
    (void)tick(&b, 3, 2, 5);
    for (int i = 0; i < 1000; i++) {
        (void)tick(&b, i % 3 == 0, i % 3 == 0, 5);
        assert_int_equal(b.takeover.state, OCC_TAKEOVER_NONE);
    }
}

static void test_an_idle_program_is_not_doubted(void **state)
{
    (void)state;
    struct buffers b = new_buffers();
    b.signs.has_other_library = true;
    (void)tick(&b, 3, 3, 5);
    for (int i = 0; i < 1000; i++) {
        (void)tick(&b, 0, 0, 0);
        assert_int_equal(b.takeover.state, OCC_TAKEOVER_NONE);
    }
}

/* A kernel runs for an hour, in a program without a profiler of its own. */
static void test_a_long_kernel_alone_is_not_doubted(void **state)
{
    (void)state;
    struct buffers b = new_buffers();
    (void)tick(&b, 2, 1, 5);
    for (int i = 0; i < 3600; i++) {
        (void)tick(&b, 0, 0, 0);
        assert_int_equal(b.takeover.state, OCC_TAKEOVER_NONE);
    }
}

static void test_buffers_that_stay_out_are_doubted_and_the_doubt_is_withdrawn(void **state)
{
    (void)state;
    struct buffers b = new_buffers();
    (void)tick(&b, 2, 2, 5); /* at 101 s all requested buffers have returned */
    (void)tick(&b, 1, 0, 5);
    uint64_t cleared_ns = 101 * SECOND;
    b.signs.has_other_library = true;
    for (int i = 0; i < 2; i++) {
        (void)tick(&b, 0, 0, 0);
        assert_int_equal(b.takeover.state, OCC_TAKEOVER_NONE);
    }
    assert_true(occ_takeover_is_silent(&b.takeover));
    (void)tick(&b, 0, 0, 0);
    assert_int_equal(b.takeover.state, OCC_TAKEOVER_SUSPECTED);
    assert_int_equal(b.takeover.from_ns, cleared_ns - 100 * MS); /* a launch may have started just before */
    for (int i = 0; i < 50; i++)
        assert_false(tick(&b, 0, 0, 0)); /* a doubt is no reason to register */
    (void)tick(&b, 0, 1, 0);
    assert_int_equal(b.takeover.state, OCC_TAKEOVER_NONE);
    assert_true(b.takeover.suspicion_was_unfounded);
}

/* The period begins before the request of the oldest missing buffer, however many later requests follow. */
static void test_a_period_begins_before_the_first_buffer_that_is_missing(void **state)
{
    (void)state;
    struct buffers b = new_buffers();
    (void)tick(&b, 2, 1, 5); /* one buffer is out */
    for (int i = 0; i < 5; i++)
        (void)tick(&b, 1, 0, 5);
    b.signs.is_reset = true;
    (void)tick(&b, 0, 0, 0);
    assert_int_equal(b.takeover.state, OCC_TAKEOVER_TAKEN);
    assert_int_equal(b.takeover.from_ns, 100 * SECOND);
}

/* A session is so short that its only sign is the silence of CUPTI's worker. */
static void test_a_long_doubt_ends_if_the_worker_rests(void **state)
{
    (void)state;
    struct buffers b = new_buffers(), unknown = new_buffers();
    b.signs.has_other_library = unknown.signs.has_other_library = true;
    (void)tick(&b, 2, 1, 5);
    (void)tick(&unknown, 2, 1, 0); /* a worker with an unknown clock may be at work */
    unsigned int rounds = 0;
    while (!tick(&b, 0, 0, rounds == 30 ? 5 : 0)) { /* it works once, and the minute begins again */
        assert_false(tick(&unknown, 0, 0, 0));
        rounds++;
    }
    assert_int_equal(rounds, 30 + 60);
    assert_int_equal(b.takeover.state, OCC_TAKEOVER_SUSPECTED);
    occ_takeover_registered_again(&b.takeover, &b.signs);
    assert_int_equal(b.takeover.state, OCC_TAKEOVER_NONE);
    assert_false(b.takeover.suspicion_was_unfounded);
}

/* CUPTI's worker delivers records to another client: a sign even without a known library. */
static void test_a_worker_that_works_for_another_is_a_sign(void **state)
{
    (void)state;
    struct buffers b = new_buffers();
    (void)tick(&b, 2, 2, 5);
    for (int i = 0; i < 3; i++)
        (void)tick(&b, 0, 0, 5);
    assert_int_equal(b.takeover.state, OCC_TAKEOVER_SUSPECTED);
}

/* The program's second session takes its time: nothing is launched for an hour, then CUPTI's worker works for
 * it. */
static void test_a_program_that_waits_proves_no_rest(void **state)
{
    (void)state;
    struct buffers b = new_buffers(), doubted = new_buffers();
    b.signs.is_reset = true;
    (void)tick(&b, 2, 1, 5);
    doubted.signs.has_other_library = true;
    (void)tick(&doubted, 2, 1, 5);
    for (int i = 0; i < 3; i++)
        (void)tick(&doubted, 0, 0, 5);
    assert_int_equal(b.takeover.state, OCC_TAKEOVER_TAKEN);
    assert_int_equal(doubted.takeover.state, OCC_TAKEOVER_SUSPECTED);
    for (int i = 0; i < 3600; i++) {
        b.signs.program_cpu_ns -= 5 * MS;
        doubted.signs.program_cpu_ns -= 5 * MS;
        assert_false(tick(&b, 0, 0, 0));
        assert_false(tick(&doubted, 0, 0, 0));
    }
    assert_false(tick(&b, 0, 0, 5));
    assert_false(tick(&b, 0, 0, 0));
    assert_false(tick(&b, 0, 0, 0));
    assert_true(tick(&b, 0, 0, 0));
}

static void test_it_comes_back_when_the_session_is_over(void **state)
{
    (void)state;
    struct buffers b = new_buffers();
    (void)tick(&b, 2, 1, 5);
    b.signs.is_reset = true;
    assert_false(tick(&b, 0, 0, 5));
    assert_int_equal(b.takeover.state, OCC_TAKEOVER_TAKEN);
    assert_int_equal(b.takeover.from_ns, 100 * SECOND);
    for (int i = 0; i < 50; i++)
        assert_false(tick(&b, 0, 0, 5)); /* the worker works for another session */
    assert_false(tick(&b, 0, 0, 0));
    assert_false(tick(&b, 0, 0, 0));
    assert_true(tick(&b, 0, 0, 0));
    occ_takeover_registered_again(&b.takeover, &b.signs);
    b.signs.is_reset = false;
    assert_int_equal(b.takeover.state, OCC_TAKEOVER_NONE);
    (void)tick(&b, 1, 0, 0);
    assert_int_equal(b.takeover.state, OCC_TAKEOVER_NONE);
}

/* Each session doubles the wait, up to a limit: profilers that work in cycles are disturbed less and less. */
static void test_each_session_doubles_the_rest(void **state)
{
    (void)state;
    struct buffers b = new_buffers();
    const unsigned int expected[] = {3, 6, 12, 24, 48, 64, 64};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        unsigned int rounds = 1;
        b.signs.is_reset = true;
        assert_false(tick(&b, 0, 0, 0));
        while (!tick(&b, 0, 0, 0))
            rounds++;
        assert_int_equal(rounds, expected[i]);
        occ_takeover_registered_again(&b.takeover, &b.signs);
        b.signs.is_reset = false;
        (void)tick(&b, 1, 1, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_above_the_budget_for_ten_seconds_is_a_step_down),
        cmocka_unit_test(test_a_text_tells_overhead_and_budget_apart),
        cmocka_unit_test(test_at_the_budget_nothing_changes),
        cmocka_unit_test(test_a_burst_is_measured_over_the_window),
        cmocka_unit_test(test_the_base_is_the_larger_of_elapsed_and_cpu_time),
        cmocka_unit_test(test_below_half_for_a_minute_is_a_step_up),
        cmocka_unit_test(test_a_step_up_that_fails_makes_it_patient),
        cmocka_unit_test(test_patience_ends_with_a_long_calm),
        cmocka_unit_test(test_seconds_that_were_not_recorded_do_not_count),
        cmocka_unit_test(test_a_clock_that_goes_back_costs_nothing),
        cmocka_unit_test(test_a_busy_program_is_not_doubted),
        cmocka_unit_test(test_an_idle_program_is_not_doubted),
        cmocka_unit_test(test_a_long_kernel_alone_is_not_doubted),
        cmocka_unit_test(test_buffers_that_stay_out_are_doubted_and_the_doubt_is_withdrawn),
        cmocka_unit_test(test_a_period_begins_before_the_first_buffer_that_is_missing),
        cmocka_unit_test(test_a_long_doubt_ends_if_the_worker_rests),
        cmocka_unit_test(test_a_worker_that_works_for_another_is_a_sign),
        cmocka_unit_test(test_a_program_that_waits_proves_no_rest),
        cmocka_unit_test(test_it_comes_back_when_the_session_is_over),
        cmocka_unit_test(test_each_session_doubles_the_rest),
    };
    return cmocka_run_group_tests_name("governor", tests, NULL, NULL);
}
