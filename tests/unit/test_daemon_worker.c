/* A GPU's worker on a fake machine: from launches and samples to values, and when it sleeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "daemon/gpu_worker.h"
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

/* A launch of LAUNCH_NS begins with every PERIOD_NS of the clock. */
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

/* A round later; false: the worker would have slept. */
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

/* Launches run for `seconds`; each second those of the second before are fed. Returns their number. */
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

/* Rounds until the worker would sleep; returns how long that took, or FOREVER_NS. */
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

/* The measured launches of the run since the last call, all of them with the value of the timeline. */
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

/* Records of 18 s ago come after a restart of the daemon under load: the watermark is then longer than the
 * time for which a GPU stays wanted. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(launches_get_the_occupancy_of_their_time, start, end),
        cmocka_unit_test_setup_teardown(last_launches_get_values_after_old_records, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
