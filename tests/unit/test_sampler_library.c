/* daemon/sampling/counters/pm_library: a libcupti that PM sampling cannot use is refused, as the guest
 * refuses it, with the reason. */
#include "daemon/sampling/counters/pm_library.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_refusal(const char *path, const char *reason)
{
    struct occ_pm_library library;
    struct occ_error err = OCC_ERROR_INIT;
    assert_int_equal(occ_pm_bind(path, NULL, &library, &err), OCC_SOURCE_NO_LIBRARY);
    if (!strstr(err.message, reason))
        fail_msg("'%s', not '%s'", err.message, reason);
}

static void by_version(void **state)
{
    (void)state;
    (void)setenv("FAKE_CUPTI_VERSION", "130000", 1);
    expect_refusal(OCC_FAKE_CUPTI, " (version 130000) is that of CUDA 13.0 without its update 1");
    (void)setenv("FAKE_CUPTI_VERSION", "19", 1);
    expect_refusal(OCC_FAKE_CUPTI, " (version 19) is older than CUDA 12.2");
    (void)unsetenv("FAKE_CUPTI_VERSION");
}

static void by_what_it_lacks(void **state)
{
    (void)state;
    expect_refusal(OCC_FAKE_CUPTI, " (version 130001) lacks cuptiProfilerInitialize");
    expect_refusal("/nowhere/libcupti.so", "cannot be opened: /nowhere/libcupti.so");
}

/* The variable is the guest's too; a path of the caller's comes first. */
static void by_the_variable(void **state)
{
    (void)state;
    (void)setenv("OCCTRACE_CUPTI", "/nowhere/else.so", 1);
    expect_refusal(NULL, "cannot be opened: /nowhere/else.so");
    expect_refusal(OCC_FAKE_CUPTI, "lacks cuptiProfilerInitialize");
    (void)unsetenv("OCCTRACE_CUPTI");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_version),
        cmocka_unit_test(by_what_it_lacks),
        cmocka_unit_test(by_the_variable),
    };
    return cmocka_run_group_tests_name("sampler_library", tests, NULL, NULL);
}
