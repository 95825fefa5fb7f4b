/* A GPU's worker on a fake machine: values from launches and samples, and the times when it sleeps. Names of
 * cases that start a thread contain "thread": the thread sanitizer runs only these. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "daemon/sampling/gpu_worker.h"
#include "daemon_fake_machine.h"

#define ROUND_NS   (50 * FAKE_MS)
#define LAUNCH_NS  (10 * FAKE_MS) /* ten samples of a fake source */
#define PERIOD_NS  (20 * FAKE_MS) /* from launch to launch */
#define OCCUPANCY  0.5
#define WANTED_NS  (10 * FAKE_SECOND)
#define RUN        7
#define CONFIG     3
#define FOREVER_NS (120 * FAKE_SECOND)

static struct occ_gpu_worker *worker;
static struct occ_profiler_watch *watch;
static int64_t last_begins_ns, last_ends_ns; /* a launch that is longer than the others */

/* Returns the occupancy at a time: a launch of LAUNCH_NS begins with every PERIOD_NS of the clock. */
static double periodic_launches(int64_t time_ns)
{
    bool is_last = time_ns >= last_begins_ns && time_ns < last_ends_ns;
    return is_last || time_ns % PERIOD_NS < LAUNCH_NS ? OCCUPANCY : 0;
}

static int start(void **state)
{
    struct occ_error err = OCC_ERROR_INIT;
    (void)state;
    fake_machine_reset();
    fake.occupancy = periodic_launches;
    last_begins_ns = last_ends_ns = 0;
    const struct occ_sampler_options options = {
        .mode = OCC_SAMPLER_AUTO, .interval_ns = FAKE_MS, .machine = &fake.machine};
    if (occ_profiler_watch_new(fake.proc, &watch, &err) != 0)
        return 1;
    return occ_gpu_worker_new(&fake.gpus[0], &options, watch, &worker, &err);
}

static int end(void **state)
{
    (void)state;
    occ_gpu_worker_free(worker);
    worker = NULL;
    occ_profiler_watch_free(watch);
    fake_machine_remove();
    return 0;
}

static void want(void)
{
    occ_gpu_worker_want(worker, fake.monotonic_ns + WANTED_NS, 0);
}

/* Runs the next round. Returns false if the worker would have slept. */
static bool step(void)
{
    fake_machine_advance(ROUND_NS);
    return occ_gpu_worker_step(worker) != INT64_MAX;
}

static void run_for(int64_t ns)
{
    for (int64_t until_ns = fake.monotonic_ns + ns; fake.monotonic_ns < until_ns;)
        (void)step();
}

static struct occ_attribution_launch launch_at(int64_t start_ns)
{
    return (struct occ_attribution_launch){
        .key = {.shape = CONFIG, .bound = 1, .expected = 0.6, .active = 1, .blocks = 2, .grid = 200},
        .start_ns = start_ns,
        .end_ns = start_ns + LAUNCH_NS,
        .tag = occ_gpu_results_tag(RUN, 1)};
}

/* Feeds the launches that began in [from_ns, to_ns); returns their number. */
static unsigned feed(int64_t from_ns, int64_t to_ns)
{
    unsigned n = 0;
    for (int64_t at_ns = (from_ns + PERIOD_NS - 1) / PERIOD_NS * PERIOD_NS; at_ns < to_ns;
         at_ns += PERIOD_NS, n++) {
        const struct occ_attribution_launch launch = launch_at(at_ns);
        occ_gpu_worker_feed(worker, &launch, 1);
    }
    return n;
}

/* Runs launches for `seconds`; each second feeds the launches of the previous second. Returns their number.
 */
static unsigned run_launches(int seconds)
{
    unsigned n = 0;
    for (int i = 0; i < seconds; i++) {
        int64_t from_ns = fake.now_ns;
        want();
        run_for(FAKE_SECOND);
        n += feed(from_ns, fake.now_ns - LAUNCH_NS);
    }
    return n;
}

/* Runs rounds until the worker would sleep. Returns the elapsed time, or FOREVER_NS. */
static int64_t run_until_idle(void)
{
    int64_t from_ns = fake.monotonic_ns;
    while (step() && fake.monotonic_ns - from_ns < FOREVER_NS)
        ;
    return fake.monotonic_ns - from_ns;
}

static struct occ_gpu_status status_of(void)
{
    struct occ_gpu_status status;
    occ_gpu_worker_get_status(worker, &status);
    return status;
}

static bool has_value_of_last; /* take_values() found it */

/* Counts the measured launches since the last call, and checks their values against the timeline. */
static unsigned take_values(void)
{
    struct occ_gpu_results results;
    unsigned n = 0;
    occ_gpu_worker_take(worker, &results);
    for (size_t i = 0; i < results.n_sums; i++) {
        const struct occ_measured_sums *sums = &results.sums[i].sums;
        double ns = sums->ns[OCC_MEASURED_elapsed];
        assert_int_equal(results.sums[i].run, RUN);
        assert_int_equal(results.sums[i].config, CONFIG);
        if (ns > 0)
            assert_true(fabs(sums->sum[OCC_MEASURED_elapsed] / ns - OCCUPANCY) < 0.05);
        n += (unsigned)(sums->direct + sums->regression);
    }
    has_value_of_last = false;
    for (size_t i = 0; i < results.n_values; i++)
        has_value_of_last |= results.values[i].value.start_ns == last_begins_ns;
    occ_gpu_results_free(&results);
    return n;
}

static void launches_get_the_occupancy_of_their_time(void **state)
{
    (void)state;
    unsigned n = run_launches(3);
    assert_true(run_until_idle() < FOREVER_NS);
    assert_true(take_values() > n * 9 / 10);
    assert_int_equal(status_of().launches, n);
    assert_int_equal(status_of().dropped, 0);
}

/* A daemon that restarts under load gets records of 18 s ago: the watermark is then further behind than the
 * 10 s for which a GPU stays wanted. */
static void last_launches_get_values_after_old_records(void **state)
{
    (void)state;
    const struct occ_attribution_launch old = launch_at(fake.now_ns - 18 * FAKE_SECOND);
    occ_gpu_worker_feed(worker, &old, 1);
    unsigned n = run_launches(3);
    last_begins_ns = fake.now_ns;
    last_ends_ns = last_begins_ns + FAKE_SECOND / 2;
    run_for(FAKE_SECOND);
    struct occ_attribution_launch last = launch_at(last_begins_ns);
    last.end_ns = last_ends_ns;
    occ_gpu_worker_feed(worker, &last, 1);
    assert_true(run_until_idle() < FOREVER_NS);
    assert_false(status_of().is_busy);
    assert_true(take_values() > n * 9 / 10);
    assert_true(has_value_of_last);
}

/* ---- bursts ---- */

/* Feeds other kernels, which always run beside the first, so that the attribution cannot separate their
 * values. */
static void feed_twins(int64_t from_ns, int64_t to_ns, unsigned twins)
{
    for (int64_t at_ns = (from_ns + PERIOD_NS - 1) / PERIOD_NS * PERIOD_NS; at_ns < to_ns; at_ns += PERIOD_NS)
        for (unsigned i = 1; i <= twins; i++) {
            struct occ_attribution_launch launch = launch_at(at_ns);
            launch.key.shape = CONFIG + i;
            occ_gpu_worker_feed(worker, &launch, 1);
        }
}

/* Runs launches for `seconds`, alone or with other kernels beside them. */
static void run_beside_twins(int seconds, unsigned twins)
{
    for (int i = 0; i < seconds; i++) {
        int64_t from_ns = fake.now_ns;
        want();
        run_for(FAKE_SECOND);
        (void)feed(from_ns, fake.now_ns - LAUNCH_NS);
        feed_twins(from_ns, fake.now_ns - LAUNCH_NS, twins);
    }
}

static bool has_had_a_burst(void)
{
    return fake.kinds[OCC_SLOT_PM].shortest_ns < FAKE_MS;
}

static void launches_with_values_need_no_burst(void **state)
{
    (void)state;
    run_beside_twins(12, 0);
    assert_true(take_values() > 0);
    assert_false(has_had_a_burst());
}

static void launches_without_values_get_a_burst(void **state)
{
    (void)state;
    run_beside_twins(12, 1);
    assert_true(has_had_a_burst());
    assert_int_equal(fake.kinds[OCC_SLOT_PM].interval_ns, FAKE_MS); /* the burst is over */
}

/* Launches of one second have no values, so a burst follows. At its end these launches are past, and cause no
 * other burst. */
static void launches_of_before_a_burst_ask_for_no_other(void **state)
{
    enum { MANY = 40 }; /* twins of one second have as much time as the launches of more than a minute */
    (void)state;
    run_beside_twins(1, MANY);
    for (int i = 0; i < 30 && !has_had_a_burst(); i++)
        run_beside_twins(1, 0);
    assert_true(has_had_a_burst());
    run_beside_twins(3, 0);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].interval_ns, FAKE_MS); /* the burst is over */
    fake.kinds[OCC_SLOT_PM].shortest_ns = FAKE_MS;
    run_beside_twins(65, 0);
    assert_false(has_had_a_burst());
}

/* ---- clocks ---- */

/* Waiting launches and samples have times from before the step. */
static void a_step_of_the_clock_drops_all_that_waits(void **state)
{
    (void)state;
    unsigned n = run_launches(3);
    unsigned begins = fake.kinds[OCC_SLOT_PM].begins;
    assert_true(take_values() < n / 4);
    fake.now_ns += 3600 * FAKE_SECOND;
    (void)step();
    assert_int_equal(status_of().dropped, n); /* also the launches in the inbox */
    run_for(FAKE_SECOND);
    assert_true(fake.kinds[OCC_SLOT_PM].begins == begins + 1); /* reopened, to convert by the new clock */
    assert_int_equal(take_values(), 0);
    n = run_launches(3);
    assert_true(run_until_idle() < FOREVER_NS);
    assert_true(take_values() > n * 3 / 4);
    (void)feed(fake.now_ns - FAKE_SECOND, fake.now_ns - LAUNCH_NS);
    fake.now_ns -= 7200 * FAKE_SECOND; /* the new launches would wait for two hours */
    assert_true(run_until_idle() < FOREVER_NS);
    assert_false(status_of().is_busy);
    (void)take_values();
    n = run_launches(3);
    assert_true(run_until_idle() < FOREVER_NS);
    assert_true(take_values() > n * 3 / 4);
}

/* Launches that arrive after their samples are gone are lost. Their number survives a restart of the
 * attribution. */
static void late_launches_stay_counted(void **state)
{
    (void)state;
    (void)run_launches(3);
    assert_true(run_until_idle() < FOREVER_NS);
    assert_int_equal(status_of().dropped, 0);
    unsigned late = feed(fake.now_ns - 600 * FAKE_SECOND, fake.now_ns - 599 * FAKE_SECOND);
    assert_true(run_until_idle() < FOREVER_NS);
    assert_int_equal(status_of().dropped, late);
    for (int i = 1; i <= 2; i++) {
        fake.now_ns += 3600 * FAKE_SECOND;
        (void)step();
        assert_int_equal(status_of().dropped, late);
    }
}

/* Differences up to half a second, which NTP may slew within a round, are no step. */
static void a_slow_clock_drops_nothing(void **state)
{
    (void)state;
    unsigned n = run_launches(2);
    for (int i = 0; i < 10; i++) {
        fake.now_ns += 400 * FAKE_MS;
        (void)step();
    }
    n += run_launches(2);
    assert_true(run_until_idle() < FOREVER_NS);
    assert_int_equal(status_of().dropped, 0);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].begins, 1);
    assert_true(take_values() > n / 4);
}

static void the_future_is_refused(void **state)
{
    (void)state;
    struct occ_attribution_launch launch = launch_at(fake.now_ns + FAKE_SECOND);
    occ_gpu_worker_feed(worker, &launch, 1);
    assert_int_equal(status_of().launches, 1);
    (void)step();
    assert_int_equal(status_of().dropped, 1);
    launch = launch_at(fake.now_ns + FAKE_SECOND - LAUNCH_NS);
    occ_gpu_worker_feed(worker, &launch, 1);
    (void)step();
    assert_int_equal(status_of().dropped, 1);
    fake.kinds[OCC_SLOT_PM].late_ns = 2 * FAKE_SECOND;
    want();
    run_for(FAKE_SECOND);
    assert_true(status_of().stats.bad_samples > 900);
    fake.kinds[OCC_SLOT_PM].late_ns = 0;
    uint64_t bad = status_of().stats.bad_samples;
    unsigned n = run_launches(3);
    assert_int_equal(status_of().stats.bad_samples, bad);
    assert_true(run_until_idle() < FOREVER_NS);
    assert_true(take_values() > n * 9 / 10);
}

/* ---- late records, long queues ---- */

/* Records arrive 9 s after the launches end: the watermark follows, and the later launches get values. */
static void records_may_be_late(void **state)
{
    unsigned n = 0;
    (void)state;
    for (int i = 0; i < 30; i++) {
        want();
        run_for(FAKE_SECOND);
        if (i == 15)
            (void)take_values();
        if (i >= 9)
            n += feed(fake.now_ns - 10 * FAKE_SECOND, fake.now_ns - 9 * FAKE_SECOND);
    }
    assert_true(run_until_idle() < FOREVER_NS);
    assert_true(take_values() > n / 2);
}

/* The thread did not run for 5 s. */
static void all_samples_are_read_in_a_round(void **state)
{
    (void)state;
    want();
    (void)step();
    fake_machine_advance(5 * FAKE_SECOND);
    (void)occ_gpu_worker_step(worker);
    assert_int_equal(status_of().stats.samples, 5000);
}

/* The waiting launches are so many that the launches of 19 s would have no room. */
static void a_long_queue_is_not_waited_for(void **state)
{
    (void)state;
    const struct occ_attribution_launch old = launch_at(fake.now_ns - 18 * FAKE_SECOND);
    const struct occ_attribution_launch launch = launch_at(fake.now_ns - FAKE_SECOND);
    occ_gpu_worker_feed(worker, &old, 1);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 200000; i++)
            occ_gpu_worker_feed(worker, &launch, 1);
        (void)step();
    }
    assert_int_equal(status_of().dropped, 0);
    run_for(6 * FAKE_SECOND);
    assert_true(status_of().dropped > 0); /* handed over, which is more than the attribution takes at once */
}

/* More launch configurations than the attribution has room for: it begins anew with the configurations in
 * use. */
static void configurations_in_use_have_room(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 10000; i++) {
        struct occ_attribution_launch launch = launch_at(fake.now_ns - FAKE_SECOND);
        launch.end_ns = launch.start_ns + 1000;
        launch.key.shape = 1000 + i;
        occ_gpu_worker_feed(worker, &launch, 1);
    }
    run_for(6 * FAKE_SECOND);
    unsigned n = run_launches(3);
    assert_true(run_until_idle() < FOREVER_NS);
    assert_true(take_values() > n * 8 / 10);
}

/* ---- other orders ---- */

/* A launch of 3 s begins before the watermark and ends after it: it is reported, not dropped. */
static void another_kind_of_source_drops_no_launch(void **state)
{
    (void)state;
    fake.kinds[OCC_SLOT_PM].begin = OCC_SOURCE_BUSY;
    (void)run_launches(25);
    struct occ_attribution_launch launch = launch_at(fake.now_ns);
    launch.end_ns = launch.start_ns + 3 * FAKE_SECOND;
    want();
    run_for(3 * FAKE_SECOND);
    occ_gpu_worker_feed(worker, &launch, 1);
    fake.kinds[OCC_SLOT_PM].begin = OCC_SOURCE_OK;
    run_for(3 * FAKE_SECOND); /* PM is tried again after 30 s */
    assert_string_equal(status_of().source, "pm");
    assert_int_equal(status_of().dropped, 0);
}

/* Another kind of source counts differently: the attribution starts anew. */
static void another_kind_of_source_starts_anew(void **state)
{
    (void)state;
    fake.kinds[OCC_SLOT_PM].begin = OCC_SOURCE_BUSY;
    unsigned n = run_launches(3);
    assert_string_equal(status_of().source, "gpm");
    fake.kinds[OCC_SLOT_PM].begin = OCC_SOURCE_OK;
    n += run_launches(40);
    assert_string_equal(status_of().source, "pm");
    assert_int_equal(status_of().state, OCC_SOURCE_OK);
    assert_true(run_until_idle() < FOREVER_NS);
    assert_true(take_values() > n * 8 / 10); /* earlier launches were reported, not dropped */
    assert_true(status_of().dropped < n / 10);
}

/* Waiting launches are measured at once, with the samples read before. */
static void settling_waits_for_no_watermark(void **state)
{
    (void)state;
    unsigned n = run_launches(3);
    assert_true(take_values() < n / 4);
    occ_gpu_worker_settle(worker, 0); /* without a thread it returns at once */
    (void)occ_gpu_worker_step(worker);
    assert_true(take_values() > n * 9 / 10);
    assert_true(status_of().is_busy); /* the source is still open */
}

static void the_worker_reports_what_it_does(void **state)
{
    (void)state;
    assert_string_equal(status_of().source, "none");
    assert_int_equal(status_of().state, OCC_SOURCE_IDLE);
    assert_false(status_of().has_tried || status_of().is_busy || status_of().has_results);
    assert_int_equal(occ_gpu_worker_step(worker), INT64_MAX);
    want();
    assert_int_equal(occ_gpu_worker_step(worker), fake.monotonic_ns + ROUND_NS);
    assert_string_equal(status_of().source, "pm");
    assert_int_equal(status_of().state, OCC_SOURCE_OK);
    assert_true(status_of().has_tried && status_of().is_busy);
    assert_int_equal(status_of().active_ns, 0);
    run_for(FAKE_SECOND);
    assert_true(status_of().has_results); /* samples */
    assert_int_equal(status_of().active_ns, fake.monotonic_ns);
    assert_int_equal(status_of().stats.samples, 1000);
    assert_memory_equal(status_of().uuid, fake.gpus[0].uuid, 16);
    fake.occupancy = NULL;
    int64_t active_ns = fake.monotonic_ns;
    run_for(FAKE_SECOND);
    assert_int_equal(status_of().active_ns, active_ns);
    occ_gpu_worker_want(worker, 0, fake.monotonic_ns + FAKE_SECOND); /* a pause */
    (void)step();
    assert_int_equal(status_of().state, OCC_SOURCE_PAUSED);
    assert_false(fake.kinds[OCC_SLOT_PM].is_open);
    run_for(FAKE_SECOND);
    assert_true(fake.kinds[OCC_SLOT_PM].is_open);                                    /* still wanted */
    assert_in_range(run_until_idle(), 69 * FAKE_SECOND / 10, 70 * FAKE_SECOND / 10); /* rest of the 10 s */
    assert_int_equal(status_of().state, OCC_SOURCE_IDLE);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].begins, fake.kinds[OCC_SLOT_PM].closes);
}

/* More launches than the inbox takes between two rounds. */
static void an_inbox_has_a_limit(void **state)
{
    enum { MORE = 300000, INBOX = 1 << 18 };
    (void)state;
    const struct occ_attribution_launch launch = launch_at(fake.now_ns - FAKE_SECOND);
    for (int i = 0; i < MORE; i++)
        occ_gpu_worker_feed(worker, &launch, 1);
    (void)step();
    assert_int_equal(status_of().launches, MORE);
    assert_int_equal(status_of().dropped, MORE - INBOX);
    assert_true(status_of().is_busy);
}

/* ---- the thread ---- */

static int64_t real_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * FAKE_SECOND + now.tv_nsec;
}

/* The thread runs the rounds, settles before the time limit, and gives the counters back when it ends. */
static void a_thread_does_the_rounds(void **state)
{
    (void)state;
    occ_gpu_worker_free(worker);
    fake.machine.has_threads = true;
    fake.machine.monotonic_ns = real_ns;
    const struct occ_sampler_options options = {
        .mode = OCC_SAMPLER_AUTO, .interval_ns = FAKE_MS, .machine = &fake.machine};
    assert_int_equal(occ_gpu_worker_new(&fake.gpus[0], &options, watch, &worker, NULL), 0);
    occ_gpu_worker_want(worker, real_ns() + 3600 * FAKE_SECOND, 0);
    while (!status_of().has_tried)
        (void)usleep(1000);
    assert_string_equal(status_of().source, "pm");
    const struct occ_attribution_launch launch = launch_at(fake.now_ns - FAKE_SECOND);
    occ_gpu_worker_feed(worker, &launch, 1);
    occ_gpu_worker_settle(worker, real_ns() + 3600 * FAKE_SECOND);
    assert_int_equal(status_of().launches, 1);
    assert_true(fake.kinds[OCC_SLOT_PM].is_open);
    occ_gpu_worker_want(worker, 0, real_ns() + 3600 * FAKE_SECOND);
    while (status_of().state != OCC_SOURCE_PAUSED)
        (void)usleep(1000);
    occ_gpu_worker_want(worker, 0, 0);
    while (status_of().state != OCC_SOURCE_OK)
        (void)usleep(1000);
    occ_gpu_worker_free(worker);
    worker = NULL;
    assert_int_equal(fake.kinds[OCC_SLOT_PM].begins, 2);
    assert_int_equal(fake.kinds[OCC_SLOT_PM].closes, 2);
}

static int64_t an_hour_ahead_ns(void)
{
    return real_ns() + 3600 * FAKE_SECOND;
}

/* A program waits for the first attempt to open a source, which must not wait for the next round, due in an
 * hour here. */
static void a_thread_looks_at_a_wanted_gpu_at_once(void **state)
{
    (void)state;
    occ_gpu_worker_free(worker);
    fake.machine.has_threads = true;
    fake.machine.monotonic_ns = an_hour_ahead_ns;
    const struct occ_sampler_options options = {
        .mode = OCC_SAMPLER_AUTO, .interval_ns = FAKE_MS, .machine = &fake.machine};
    assert_int_equal(occ_gpu_worker_new(&fake.gpus[0], &options, watch, &worker, NULL), 0);
    occ_gpu_worker_want(worker, an_hour_ahead_ns() + FOREVER_NS, 0);
    int64_t until_ns = real_ns() + 60 * FAKE_SECOND; /* only a fault reaches this time */
    while (!status_of().has_tried && real_ns() < until_ns)
        (void)usleep(1000);
    assert_true(status_of().has_tried);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_thread_looks_at_a_wanted_gpu_at_once, start, end),
        cmocka_unit_test_setup_teardown(launches_get_the_occupancy_of_their_time, start, end),
        cmocka_unit_test_setup_teardown(last_launches_get_values_after_old_records, start, end),
        cmocka_unit_test_setup_teardown(launches_with_values_need_no_burst, start, end),
        cmocka_unit_test_setup_teardown(launches_without_values_get_a_burst, start, end),
        cmocka_unit_test_setup_teardown(a_step_of_the_clock_drops_all_that_waits, start, end),
        cmocka_unit_test_setup_teardown(launches_of_before_a_burst_ask_for_no_other, start, end),
        cmocka_unit_test_setup_teardown(late_launches_stay_counted, start, end),
        cmocka_unit_test_setup_teardown(a_slow_clock_drops_nothing, start, end),
        cmocka_unit_test_setup_teardown(the_future_is_refused, start, end),
        cmocka_unit_test_setup_teardown(records_may_be_late, start, end),
        cmocka_unit_test_setup_teardown(all_samples_are_read_in_a_round, start, end),
        cmocka_unit_test_setup_teardown(a_long_queue_is_not_waited_for, start, end),
        cmocka_unit_test_setup_teardown(configurations_in_use_have_room, start, end),
        cmocka_unit_test_setup_teardown(another_kind_of_source_drops_no_launch, start, end),
        cmocka_unit_test_setup_teardown(another_kind_of_source_starts_anew, start, end),
        cmocka_unit_test_setup_teardown(settling_waits_for_no_watermark, start, end),
        cmocka_unit_test_setup_teardown(the_worker_reports_what_it_does, start, end),
        cmocka_unit_test_setup_teardown(an_inbox_has_a_limit, start, end),
        cmocka_unit_test_setup_teardown(a_thread_does_the_rounds, start, end),
    };
    choose_cases(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
