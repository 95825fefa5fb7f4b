/*
 * The counters of --exact against the toolkit's own host library: every chip has them, and they are one pass,
 * so that no kernel is replayed. Needs no GPU and no driver; without the library it is skipped aloud.
 */
#include "injector/exact/profiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct occ_cupti_host_calls call;

/* Returns the passes of the metrics on a chip; 0: the library refuses them. */
static size_t passes_of(const char *chip, const struct occ_cupti_metrics *metrics)
{
    static const struct occ_cupti_image none;
    struct occ_cupti_host host = {.call = &call, .metrics = *metrics};
    if (occ_cupti_host_open(&host, OCC_PROFILER_TYPE_RANGE, chip, &none) != OCC_CUPTI_SUCCESS)
        return 0;
    occ_cupti_host_close(&host);
    return host.passes;
}

static void the_counters_are_one_pass(void **state)
{
    (void)state;
    static const char *const chips[] = {"TU102", "TU104", "TU116", "GA100", "GA102", "GA106",
                                        "AD102", "AD107", "GH100", "GB100", "GB202", "GB203"};
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++) {
        size_t passes = passes_of(chips[i], &occ_exact_metrics);
        if (passes != 1)
            fail_msg("%s: %zu passes", chips[i], passes);
    }
}

/* The check can fail: metrics that need two passes, and names that are no metric or no chip. */
static void others_are_not(void **state)
{
    (void)state;
    static const char *const wide[] = {"sm__inst_executed.sum",
                                       "dram__bytes.sum",
                                       "lts__t_bytes.sum",
                                       "l1tex__t_bytes.sum",
                                       "sm__warps_active.sum",
                                       "sm__inst_executed_pipe_alu.sum",
                                       "sm__inst_executed_pipe_fp64.sum",
                                       "smsp__issue_active.sum"};
    static const char *const nonsense[] = {"sm__happiness.sum"};
    assert_int_equal(passes_of("GA100", &(struct occ_cupti_metrics){wide, 8}), 2);
    assert_int_equal(passes_of("GH100", &(struct occ_cupti_metrics){nonsense, 1}), 0);
    assert_int_equal(passes_of("XX999", &occ_exact_metrics), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_counters_are_one_pass),
        cmocka_unit_test(others_are_not),
    };
    char reason[OCC_CUPTI_REASON_BYTES] = "no libcupti";
    struct occ_cupti_search search = {.configured = ""};
    struct occ_cupti cupti;
    const char *missing = NULL;
    do {
        if (!occ_cupti_find(&search, &cupti, reason)) {
            (void)printf("skipped: %s\n", missing ? missing : reason);
            return 77;
        }
        missing = occ_cupti_host_bind(&cupti, &call);
    } while (missing);
    return cmocka_run_group_tests_name("exact_passes", tests, NULL, NULL);
}
