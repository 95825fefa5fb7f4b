/* Energy by second from a counter that a script reads: cuts at seconds, gaps, resets, clocks, lost counters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sampling/energy.h"

#define MS    INT64_C(1000000)
#define S     INT64_C(1000000000)
#define BEGIN (INT64_C(1800000000) * S)

static struct script {
    uint64_t mj;
    bool is_missing, fails;
    unsigned opens, reads, closes;
} script;

static struct occ_energy_counter *open_counter(const uint8_t uuid[16])
{
    assert_int_equal(uuid[0], 7);
    script.opens++;
    return script.is_missing ? NULL : (struct occ_energy_counter *)&script;
}

static bool read_counter(struct occ_energy_counter *counter, uint64_t *ret_mj)
{
    assert_ptr_equal(counter, &script);
    script.reads++;
    *ret_mj = script.mj;
    return !script.fails;
}

static void close_counter(struct occ_energy_counter *counter)
{
    assert_ptr_equal(counter, &script);
    script.closes++;
}

static const struct occ_energy_kind kind = {open_counter, read_counter, close_counter};
static struct occ_energy energy;
static struct occ_energy_second item;

static int setup(void **state)
{
    (void)state;
    script = (struct script){.mj = 5000000};
    energy = (struct occ_energy){.kind = &kind, .uuid = {7}};
    memset(&item, 0, sizeof item);
    return 0;
}

static bool poll(int64_t at_ns)
{
    return occ_energy_poll(&energy, BEGIN + at_ns, at_ns, &item);
}

/* 200 W from the middle of a second: the first item is half a second long, the next are whole. */
static void seconds_have_their_energy(void **state)
{
    double sum = 0;
    (void)state;
    for (int64_t at = 500 * MS; at <= 5540 * MS; at += 60 * MS) {
        script.mj = 5000000 + (uint64_t)((at - 500 * MS) * 200 / MS);
        if (!poll(at))
            continue;
        assert_int_equal(item.second, BEGIN / S + at / S - 1);
        assert_int_equal(item.length_ns, at < 1500 * MS ? 500 * MS : S);
        assert_in_range(item.mj, item.length_ns / MS * 200 - 1, item.length_ns / MS * 200 + 1);
        sum += (double)item.mj;
    }
    assert_true(sum > 899990 && sum < 900010); /* until the last whole second */
    assert_int_equal(script.opens, 1);
    assert_in_range(script.reads, 6, 7); /* once a second, not at each poll */
    assert_true(energy.total_mj >= sum);
}

static void a_time_without_readings_is_one_item(void **state)
{
    (void)state;
    assert_false(poll(0));
    script.mj += 7200 * 1000 * 50;
    assert_true(poll(7200 * S + 10 * MS));
    assert_int_equal(item.length_ns, 7200 * S);
    assert_in_range(item.mj, 359999000, 360000000);
    script.mj += 1000;
    assert_false(poll(7200 * S + OCC_ENERGY_GAP_NS + 2 * S)); /* too long: begins anew */
    assert_true(poll(7200 * S + OCC_ENERGY_GAP_NS + 3 * S));
    assert_int_equal(item.mj, 0);
}

/* /metrics: a rate over minutes would show the energy of a long pause as power. */
static void the_total_leaves_pauses_out(void **state)
{
    (void)state;
    assert_false(poll(0));
    for (int64_t at = 1; at <= 3; at++) {
        script.mj += 4000000;
        assert_true(poll(at * 10 * S));
    }
    assert_true(energy.total_mj == 12000000);
    script.mj += 3600 * 70000;
    assert_true(poll(3630 * S));
    assert_int_equal(item.mj, 3600 * 70000); /* the history has it */
    assert_true(energy.total_mj == 12000000);
    script.mj += 400000;
    assert_true(poll(3631 * S));
    assert_true(energy.total_mj == 12400000);
}

static void energy_is_never_negative(void **state)
{
    (void)state;
    assert_false(poll(0));
    script.mj = 100; /* the driver was loaded again */
    assert_false(poll(S));
    script.mj += 30000;
    assert_true(poll(2 * S));
    assert_int_equal(item.mj, 30000);
    script.mj = UINT64_MAX; /* more than a GPU can take */
    assert_false(poll(3 * S));
    script.mj = 0;
    assert_false(poll(4 * S));
    assert_true(energy.total_mj == 30000);
}

static void a_clock_that_is_set_begins_anew(void **state)
{
    (void)state;
    assert_false(poll(0));
    script.mj += 1000;
    assert_false(occ_energy_poll(&energy, BEGIN + 100 * S, S, &item));
    script.mj += 1000;
    assert_false(occ_energy_poll(&energy, BEGIN + 3 * S, 2 * S, &item)); /* and back */
    script.mj += 1000;
    assert_true(occ_energy_poll(&energy, BEGIN + 4 * S, 3 * S, &item));
    assert_int_equal(item.mj, 1000);
}

static void a_missing_counter_is_tried_once_a_minute(void **state)
{
    (void)state;
    script.is_missing = true;
    for (int64_t at = 0; at < 119 * S; at += 100 * MS)
        assert_false(poll(at));
    assert_int_equal(script.opens, 2);
    assert_false(energy.has_total);
    script.is_missing = false;
    assert_false(poll(200 * S));
    script.fails = true;
    assert_false(poll(201 * S));
    assert_int_equal(script.closes, 1);
    script.fails = false;
    script.mj += 60000;
    assert_false(poll(300 * S)); /* the counter may be another one: the time between is unknown */
    assert_true(poll(301 * S));
    assert_int_equal(item.mj, 0);
    occ_energy_close(&energy);
    assert_int_equal(script.closes, 2);
}

static void without_a_kind_nothing_is_read(void **state)
{
    (void)state;
    energy.kind = NULL;
    for (int64_t at = 0; at < 100 * S; at += S)
        assert_false(poll(at));
    occ_energy_close(&energy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(seconds_have_their_energy, setup),
        cmocka_unit_test_setup(a_time_without_readings_is_one_item, setup),
        cmocka_unit_test_setup(the_total_leaves_pauses_out, setup),
        cmocka_unit_test_setup(energy_is_never_negative, setup),
        cmocka_unit_test_setup(a_clock_that_is_set_begins_anew, setup),
        cmocka_unit_test_setup(a_missing_counter_is_tried_once_a_minute, setup),
        cmocka_unit_test_setup(without_a_kind_nothing_is_read, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
