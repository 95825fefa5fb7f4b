/*
 * The counters of --exact against the toolkit's own host library, through our own picture of its interface: every chip has them, and they
 * are one pass, so that no kernel is replayed. Needs no GPU and no driver; without the library it is skipped aloud.
 */
#include "injector/exact.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct occ_exact_functions call;

static void *open_library(void)
{
    static const char *const names[] = {"libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* NULL or the symbol that is missing. */
static const char *bind_functions(void *library)
{
    const char *missing = NULL;
#define X(slot, symbol, parameters)                                                                          \
    *(void **)(void *)&call.slot = dlsym(library, symbol);                                                   \
    if (!call.slot)                                                                                          \
        missing = symbol;
#include "injector/profiler_table.def"
#undef X
    return missing;
}

/* Passes of these metrics on a chip, 0: the library refuses. */
static size_t passes_of(const char *chip, const char *const *metrics, size_t n)
{
    const char *names[8];
    memcpy(names, metrics, n * sizeof *names);
    struct occ_params_host host = {
        .bytes = OCC_PARAMS_BYTES(occ_params_host, host), .type = OCC_PROFILER_TYPE_RANGE, .chip = chip};
    if (call.host_begin(&host) != OCC_CUPTI_SUCCESS)
        return 0;
    struct occ_params_metrics add = {
        .bytes = OCC_PARAMS_BYTES(occ_params_metrics, count), .host = host.host, .names = names, .count = n};
    struct occ_params_config_bytes size = {.bytes = OCC_PARAMS_BYTES(occ_params_config_bytes, config_bytes),
                                           .host = host.host};
    struct occ_params_config config = {.bytes = OCC_PARAMS_BYTES(occ_params_config, config),
                                       .host = host.host};
    struct occ_params_passes passes = {.bytes = OCC_PARAMS_BYTES(occ_params_passes, passes)};
    bool good = call.add_metrics(&add) == OCC_CUPTI_SUCCESS && call.config_bytes(&size) == OCC_CUPTI_SUCCESS;
    config.config_bytes = passes.config_bytes = size.config_bytes;
    config.config = passes.config = good ? malloc(size.config_bytes) : NULL;
    good = good && call.config(&config) == OCC_CUPTI_SUCCESS && call.passes(&passes) == OCC_CUPTI_SUCCESS;
    free(config.config);
    struct occ_params_host_end end = {.bytes = OCC_PARAMS_BYTES(occ_params_host_end, host),
                                      .host = host.host};
    (void)call.host_end(&end);
    return good ? passes.passes : 0;
}

static void the_counters_are_one_pass(void **state)
{
    (void)state;
    static const char *const chips[] = {"TU102", "TU104", "TU116", "GA100", "GA102", "GA106",
                                        "AD102", "AD107", "GH100", "GB100", "GB202", "GB203"};
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++) {
        size_t passes = passes_of(chips[i], occ_exact_metrics, OCC_EXACT_METRICS);
        if (passes != 1)
            fail_msg("%s: %zu passes", chips[i], passes);
    }
}

/* The check can fail: what is known to need two passes there, and what is no metric or no chip. */
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
    assert_int_equal(passes_of("GA100", wide, 8), 2);
    assert_int_equal(passes_of("GH100", nonsense, 1), 0);
    assert_int_equal(passes_of("XX999", occ_exact_metrics, OCC_EXACT_METRICS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_counters_are_one_pass),
        cmocka_unit_test(others_are_not),
    };
    void *library = open_library();
    const char *missing = library ? bind_functions(library) : NULL;
    if (!library || missing) {
        (void)printf("skipped: %s\n", library ? missing : "no libcupti.so.13");
        return 77;
    }
    return cmocka_run_group_tests_name("injector_passes", tests, NULL, NULL);
}
