/* daemon/sampling/counters/pm.c on a libcupti with a stopped clock: the samples that it returns, and its
 * recovery after a full hardware buffer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <linux/capability.h>
#include <math.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/sampling/counters/pm_library.h"
#include "daemon/sampling/counters/source.h"
#include "sampler_fake_cupti.h"

#define INTERVAL_NS 1000000
#define BEGIN_NS    UINT64_C(1000000000000)
#define SAMPLES     256
#define NO_TURNS    (INT64_MAX / 2)
#define EVERY_READ  1

static struct fake_pm *pm;
static struct occ_source *source;
static struct occ_sample samples[SAMPLES];

static int find_library(void **state)
{
    (void)state;
    void *library = dlopen(OCC_FAKE_PM_CUPTI, RTLD_NOW | RTLD_LOCAL);
    pm = library ? dlsym(library, "fake_pm") : NULL;
    return pm ? 0 : 1;
}

static char message[OCC_ERROR_MESSAGE_BYTES];

static enum occ_source_state open_with(const struct fake_pm *script, int64_t turn_ns, bool keeps_first_set)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_source_options options = {.gpu = {.sm_count = 100, .max_warps_per_sm = 64},
                                               .interval_ns = INTERVAL_NS,
                                               .cupti_path = OCC_FAKE_PM_CUPTI,
                                               .turn_ns = turn_ns,
                                               .keeps_first_set = keeps_first_set};
    *pm = *script;
    pm->now_ns = BEGIN_NS;
    enum occ_source_state state = occ_source_open(&occ_source_pm, &options, &source, &err);
    memcpy(message, err.message, sizeof message);
    return state;
}

static enum occ_source_state open_source(const char *chip, uint64_t capacity)
{
    return open_with(&(struct fake_pm){.chip = chip, .capacity = capacity}, NO_TURNS, false);
}

static int close_source(void **state)
{
    (void)state;
    if (source)
        occ_source_pm.close(source);
    source = NULL;
    return 0;
}

/* Samples of the next `ms`. */
static size_t read_after(unsigned ms)
{
    struct occ_error err = OCC_ERROR_INIT;
    size_t n = 0;
    pm->now_ns += ms * UINT64_C(1000000);
    assert_int_equal(occ_source_pm.read(source, samples, SAMPLES, &n, &err), OCC_SOURCE_OK);
    return n;
}

static struct occ_source_stats stats(void)
{
    struct occ_source_stats now;
    occ_source_pm.get_stats(source, &now);
    return now;
}

static uint64_t overflows(void)
{
    return stats().overflows;
}

static enum occ_source_state set_interval(int64_t interval_ns)
{
    struct occ_error err = OCC_ERROR_INIT;
    return occ_source_pm.set_interval(source, interval_ns, &err);
}

/* The first sample after a start has an invalid begin, and would cover decades. */
static void the_first_sample_of_a_start_is_left_out(void **state)
{
    (void)state;
    assert_int_equal(open_source("GH100", 1000), OCC_SOURCE_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(set_interval(i % 2 ? INTERVAL_NS : INTERVAL_NS / 2), OCC_SOURCE_OK);
        assert_int_equal(read_after(0), 0); /* no sample yet: the first is dropped later */
        assert_int_equal(read_after(10), i % 2 ? 9 : 19);
        assert_int_equal(samples[0].end_ns - samples[0].start_ns, pm->interval_ns);
        assert_int_equal(samples[0].end_ns, pm->started_ns + 2 * pm->interval_ns);
        assert_int_equal(read_after(10), i % 2 ? 10 : 20);
    }
    assert_int_equal(pm->starts, 4);
}

/* The samples of a full buffer are returned, and sampling continues. */
static void sampling_goes_on_after_an_overflow(const char *chip, bool fails_full, size_t n_at_overflow)
{
    assert_int_equal(open_source(chip, 20), OCC_SOURCE_OK);
    pm->fails_full = fails_full;
    assert_int_equal(read_after(10), 9);
    for (uint64_t i = 1; i < 4; i++) {
        size_t n = read_after(100);
        assert_int_equal(overflows(), i);
        assert_int_equal(n, n_at_overflow);
        n = read_after(10);
        assert_in_range(n, 9, 10);
        assert_int_equal(samples[n - 1].end_ns, pm->now_ns);
    }
    assert_int_equal(pm->disables, pm->starts - 1);
}

/* ---- changes ---- */

/* The first set again after the two others. Each decode begins with a copy of the empty image. */
static void another_set_is_another_object(void **state)
{
    (void)state;
    assert_int_equal(open_with(&(struct fake_pm){.chip = "GH100", .capacity = 1000}, EVERY_READ, false),
                     OCC_SOURCE_OK);
    for (unsigned i = 0; i < 12; i++) {
        assert_int_equal(read_after(10), 9);
        assert_int_equal(isnan(samples[0].value[OCC_COUNTER_WARPS]), i % 3 > 0);
        assert_int_equal(isnan(samples[0].value[OCC_COUNTER_UTILIZATION]), i % 3 < 2);
        assert_int_equal(pm->enables, i + 2);
        assert_int_equal(pm->disables, i + 1);
        assert_int_equal(pm->initialised_images, i + 2);
    }
    assert_int_equal(stats().rotations, 12);
    assert_int_equal(stats().failed_changes, 0);
    assert_string_equal(occ_source_pm.get_note(source), "");
}

static void decoding_does_not_initialise_images(void **state)
{
    (void)state;
    assert_int_equal(open_source("GH100", 1000), OCC_SOURCE_OK);
    for (unsigned i = 0; i < 20; i++)
        (void)read_after(10);
    assert_int_equal(pm->initialised_images, 1);
}

/* Expects that only the first set is sampled from now on, and that the source's note reports this. */
static void expect_first_set_for_good(void)
{
    for (unsigned i = 0; i < 10; i++) {
        (void)read_after(10);
        assert_int_equal(read_after(10), 10);
        assert_int_equal(isnan(samples[0].value[OCC_COUNTER_WARPS]), 0);
        assert_int_equal(samples[0].end_ns - samples[0].start_ns, INTERVAL_NS);
        assert_int_equal(set_interval(INTERVAL_NS / 20), OCC_SOURCE_NOT_SUPPORTED);
    }
    assert_ptr_equal(pm->config, pm->first_config);
    assert_int_equal(stats().failed_changes, 1);
    assert_non_null(strstr(occ_source_pm.get_note(source), "only one counter set and no bursts"));
}

static void a_change_whose_samples_cannot_be_decoded_is_the_last(void **state)
{
    (void)state;
    assert_int_equal(open_with(&(struct fake_pm){.chip = "GH100", .capacity = 1000, .keeps_one_config = true},
                               EVERY_READ, false),
                     OCC_SOURCE_OK);
    assert_int_equal(read_after(10), 9);
    assert_int_equal(read_after(10), 0); /* of the second set, which fails */
    expect_first_set_for_good();
    assert_non_null(strstr(occ_source_pm.get_note(source), "decoding samples"));
    assert_int_equal(pm->enables, 3);
}

static void a_change_that_is_refused_is_the_last(void **state)
{
    (void)state;
    const struct fake_pm script = {.chip = "GH100",
                                   .capacity = 1000,
                                   .enable_result = OCC_CUPTI_ERROR_UNKNOWN,
                                   .enable_from = 1,
                                   .enable_results = 1};
    assert_int_equal(open_with(&script, EVERY_READ, false), OCC_SOURCE_OK);
    assert_int_equal(read_after(10), 9);
    expect_first_set_for_good();
    assert_non_null(strstr(occ_source_pm.get_note(source), "enabling PM sampling"));
}

static void a_burst_that_fails_is_the_last(void **state)
{
    (void)state;
    const struct fake_pm script = {.chip = "GH100", .capacity = 10000, .keeps_one_config = true};
    assert_int_equal(open_with(&script, NO_TURNS, false), OCC_SOURCE_OK);
    assert_int_equal(set_interval(INTERVAL_NS / 20), OCC_SOURCE_OK);
    assert_int_equal(read_after(10), 0);
    expect_first_set_for_good();
}

/* A source that was closed and is opened again. */
static void a_failed_change_is_remembered(void **state)
{
    (void)state;
    assert_int_equal(open_with(&(struct fake_pm){.chip = "GH100", .capacity = 1000}, EVERY_READ, true),
                     OCC_SOURCE_OK);
    for (unsigned i = 0; i < 10; i++)
        (void)read_after(10);
    assert_int_equal(pm->enables, 1);
    assert_non_null(strstr(occ_source_pm.get_note(source), "only one counter set and no bursts"));
}

/* A failure without a preceding change of the configuration is the source's own, and is reported. */
static void other_failures_are_reported(void **state)
{
    struct occ_error err = OCC_ERROR_INIT;
    size_t n = 0;
    (void)state;
    assert_int_equal(open_source("GH100", 1000), OCC_SOURCE_OK);
    pm->configurations = 2;
    assert_int_not_equal(occ_source_pm.read(source, samples, SAMPLES, &n, &err), OCC_SOURCE_OK);
    assert_non_null(strstr(err.message, "decoding samples"));
    assert_int_equal(pm->enables, 1);
}

static void a_failure_after_samples_is_not_the_changes(void **state)
{
    struct occ_error err = OCC_ERROR_INIT;
    size_t n = 0;
    (void)state;
    assert_int_equal(open_source("GH100", 10000), OCC_SOURCE_OK);
    assert_int_equal(set_interval(INTERVAL_NS / 20), OCC_SOURCE_OK);
    assert_true(read_after(10) > 0);
    pm->configurations = 2;
    assert_int_not_equal(occ_source_pm.read(source, samples, SAMPLES, &n, &err), OCC_SOURCE_OK);
    assert_int_equal(stats().failed_changes, 0);
    assert_string_equal(occ_source_pm.get_note(source), "");
}

/* ---- support and metrics of a GPU ---- */

static void support_is_asked_for_first(void **state)
{
    (void)state;
    for (uint32_t level = 0; level < 4; level++) {
        bool is_no = level == OCC_PROFILER_UNSUPPORTED || level == OCC_PROFILER_DISABLED;
        const struct fake_pm script = {.chip = "GH100", .capacity = 1000, .vgpu = level};
        assert_int_equal(open_with(&script, NO_TURNS, false),
                         is_no ? OCC_SOURCE_NOT_SUPPORTED : OCC_SOURCE_OK);
        assert_int_equal(strstr(message, "vGPU") != NULL, is_no);
        assert_int_equal(pm->enables, !is_no);
        (void)close_source(state);
    }
}

static void a_missing_metric_costs_that_metric(void **state)
{
    (void)state;
    const struct fake_pm script = {
        .chip = "GH100",
        .capacity = 1000,
        .lacks = {"sm__ctas_launched.sum", "dram__throughput.avg.pct_of_peak_sustained_elapsed"}};
    assert_int_equal(open_with(&script, EVERY_READ, false), OCC_SOURCE_OK);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(read_after(10), 9);
        const double *value = samples[0].value;
        assert_int_equal(isnan(value[OCC_COUNTER_WARPS]), i % 3 > 0);
        assert_true(isnan(value[OCC_COUNTER_LAUNCHED]));
        assert_int_equal(isnan(value[OCC_COUNTER_UTILIZATION]), i % 3 < 2);
        assert_true(isnan(value[OCC_COUNTER_UTILIZATION + OCC_UTILIZATION_DRAM]));
    }
    const char *note = occ_source_pm.get_note(source);
    assert_non_null(strstr(note, "not in one pass: sm__ctas_launched.sum and 1 more"));
}

/* The smallest set measures occupancy if the chip lacks the warp counter of its own first set. */
static void without_its_warps_a_chip_gets_the_smallest_set(void **state)
{
    (void)state;
    struct fake_pm script = {
        .chip = "GH100", .capacity = 1000, .lacks = {"tpc__warps_active_shader_cs_realtime.sum"}};
    assert_int_equal(open_with(&script, NO_TURNS, false), OCC_SOURCE_OK);
    assert_int_equal(read_after(10), 9);
    assert_int_equal(isnan(samples[0].value[OCC_COUNTER_WARPS]), 0);
    assert_true(isnan(samples[0].value[OCC_COUNTER_BLOCKS]));
    (void)close_source(state);
    script.lacks[1] = "sm__warps_active.sum";
    assert_int_equal(open_with(&script, NO_TURNS, false), OCC_SOURCE_NOT_SUPPORTED);
    assert_non_null(strstr(message, "GH100 lacks tpc__warps_active"));
}

static void short_intervals_are_read_in_slices(void **state)
{
    (void)state;
    assert_int_equal(occ_source_read_every_ns(1000000), 50000000);
    assert_int_equal(occ_source_read_every_ns(50000), 10000000);
    assert_int_equal(occ_source_read_every_ns(10000), 2000000);
    assert_int_equal(occ_source_read_every_ns(INT64_MAX), 50000000);
}

static void turing_starts_again_after_an_overflow(void **state)
{
    (void)state;
    sampling_goes_on_after_an_overflow("TU102", false, 20);
    assert_int_equal(pm->append_mode, OCC_PM_KEEP_OLDEST);
    assert_int_equal(pm->starts, 4);
}

static void turing_starts_again_after_a_failed_decode(void **state)
{
    (void)state;
    sampling_goes_on_after_an_overflow("TU102", true, 0);
    assert_int_equal(pm->starts, 4);
}

static void hopper_loses_the_oldest_samples_only(void **state)
{
    (void)state;
    sampling_goes_on_after_an_overflow("GH100", false, 20);
    assert_int_equal(pm->append_mode, OCC_PM_KEEP_LATEST);
    assert_int_equal(pm->starts, 1);
}

/* The state that an ordinary user gets from a library's error "unknown". */
static enum occ_source_state unknown_error(bool has_capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2] = {{0}};
    if (geteuid() == 0 && (prctl(PR_SET_KEEPCAPS, 1) != 0 || setresuid(65534, 65534, 65534) != 0))
        return OCC_SOURCE_STATE_COUNT;
    caps[CAP_TO_INDEX(CAP_PERFMON)].permitted = has_capability ? CAP_TO_MASK(CAP_PERFMON) : 0;
    caps[CAP_TO_INDEX(CAP_PERFMON)].effective = caps[CAP_TO_INDEX(CAP_PERFMON)].permitted;
    if (syscall(SYS_capset, &header, caps) != 0)
        return OCC_SOURCE_STATE_COUNT;
    struct occ_pm_library library = {0};
    return occ_pm_fail(&library, OCC_CUPTI_ERROR_UNKNOWN, "a test", NULL);
}

static enum occ_source_state in_child(bool has_capability)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit((int)unknown_error(has_capability));
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return (enum occ_source_state)WEXITSTATUS(status);
}

static void an_unknown_error_is_a_missing_permission_or_a_kernel_that_says_no(void **state)
{
    (void)state;
    assert_int_equal(in_child(false), OCC_SOURCE_NO_PERMISSION);
    if (geteuid() != 0) {
        print_message("skipped in part: only root has the capability to keep\n");
        return;
    }
    assert_int_equal(in_child(true), OCC_SOURCE_NOT_PASSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_first_sample_of_a_start_is_left_out, close_source),
        cmocka_unit_test_teardown(turing_starts_again_after_an_overflow, close_source),
        cmocka_unit_test_teardown(turing_starts_again_after_a_failed_decode, close_source),
        cmocka_unit_test_teardown(hopper_loses_the_oldest_samples_only, close_source),
        cmocka_unit_test_teardown(another_set_is_another_object, close_source),
        cmocka_unit_test_teardown(decoding_does_not_initialise_images, close_source),
        cmocka_unit_test_teardown(a_change_whose_samples_cannot_be_decoded_is_the_last, close_source),
        cmocka_unit_test_teardown(a_change_that_is_refused_is_the_last, close_source),
        cmocka_unit_test_teardown(a_burst_that_fails_is_the_last, close_source),
        cmocka_unit_test_teardown(a_failed_change_is_remembered, close_source),
        cmocka_unit_test_teardown(other_failures_are_reported, close_source),
        cmocka_unit_test_teardown(a_failure_after_samples_is_not_the_changes, close_source),
        cmocka_unit_test_teardown(support_is_asked_for_first, close_source),
        cmocka_unit_test_teardown(a_missing_metric_costs_that_metric, close_source),
        cmocka_unit_test_teardown(without_its_warps_a_chip_gets_the_smallest_set, close_source),
        cmocka_unit_test(short_intervals_are_read_in_slices),
        cmocka_unit_test(an_unknown_error_is_a_missing_permission_or_a_kernel_that_says_no),
    };
    return cmocka_run_group_tests(tests, find_library, NULL);
}
