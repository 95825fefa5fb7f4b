/* daemon/counters/pm.c on a libcupti whose time stands still: which samples it hands out, and what it does
 * after the hardware buffer was full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/counters/pm_library.h"
#include "daemon/counters/source.h"
#include "sampler_fake_cupti.h"

#define INTERVAL_NS 1000000
#define BEGIN_NS    UINT64_C(1000000000000)
#define SAMPLES     256

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

static enum occ_source_state open_source(const char *chip, uint64_t capacity)
{
    struct occ_error err = OCC_ERROR_INIT;
    const struct occ_source_options options = {.gpu = {.sm_count = 100, .max_warps_per_sm = 64},
                                               .interval_ns = INTERVAL_NS,
                                               .cupti_path = OCC_FAKE_PM_CUPTI};
    *pm = (struct fake_pm){.chip = chip, .capacity = capacity, .now_ns = BEGIN_NS};
    return occ_source_open(&occ_source_pm, &options, &source, &err);
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

static uint64_t overflows(void)
{
    struct occ_source_stats stats;
    occ_source_pm.get_stats(source, &stats);
    return stats.overflows;
}

/* The first sample of each start has a begin that means nothing: it would cover decades. */
static void the_first_sample_of_a_start_is_left_out(void **state)
{
    struct occ_error err = OCC_ERROR_INIT;
    (void)state;
    assert_int_equal(open_source("GH100", 1000), OCC_SOURCE_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(read_after(0), 0); /* nothing yet: the first is still to come */
        assert_int_equal(read_after(10), 9);
        assert_int_equal(samples[0].end_ns - samples[0].start_ns, INTERVAL_NS);
        assert_int_equal(samples[0].end_ns, pm->started_ns + 2 * INTERVAL_NS);
        assert_int_equal(read_after(10), 10);
        assert_int_equal(occ_source_pm.set_interval(source, INTERVAL_NS, &err), OCC_SOURCE_OK);
    }
    assert_int_equal(pm->starts, 4);
}

/* The samples of a full buffer are handed out, and sampling goes on. */
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
    assert_int_equal(pm->disables, 0);
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

static void an_unknown_error_hints_at_permissions_only_without_them(void **state)
{
    (void)state;
    assert_int_equal(in_child(false), OCC_SOURCE_NO_PERMISSION);
    if (geteuid() != 0) {
        print_message("skipped in part: only root has the capability to keep\n");
        return;
    }
    assert_int_equal(in_child(true), OCC_SOURCE_FAILED);
    struct occ_pm_library library = {0};
    assert_int_equal(occ_pm_fail(&library, OCC_CUPTI_ERROR_UNKNOWN, "a test", NULL), OCC_SOURCE_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_first_sample_of_a_start_is_left_out, close_source),
        cmocka_unit_test_teardown(turing_starts_again_after_an_overflow, close_source),
        cmocka_unit_test_teardown(turing_starts_again_after_a_failed_decode, close_source),
        cmocka_unit_test_teardown(hopper_loses_the_oldest_samples_only, close_source),
        cmocka_unit_test(an_unknown_error_hints_at_permissions_only_without_them),
    };
    return cmocka_run_group_tests(tests, find_library, NULL);
}
