/*
 * The counter sets against the toolkit's own host library, for every chip of the table and one that it does
 * not know: each metric exists and each set is one pass. Needs no GPU and no driver; without the library it
 * is skipped aloud.
 */
#include "daemon/sampling/counters/pm_sets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct occ_pm_library library;
static const struct occ_cupti_image everything; /* no availability image: all counters of the chip */

static void sets_are_one_pass(void **state)
{
    (void)state;
    static const struct {
        const char *chip;
        bool has_dram; /* false: it uses system memory, and lacks the DRAM counter of the utilization set */
    } chips[] = {{"TU102", true}, {"TU104", true},  {"TU116", true},  {"GA100", true},
                 {"GA102", true}, {"GA106", true},  {"AD102", true},  {"AD107", true},
                 {"GH100", true}, {"GB100", true},  {"GB110", true},  {"GB202", true},
                 {"GB203", true}, {"GA10B", false}, {"GB10B", false}, {"GB20B", false}};
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        const struct occ_chip_sets *row = occ_chip_sets_find(chips[i].chip);
        assert_string_not_equal(row->prefix, "");
        assert_int_equal(row->n, 3);
        for (uint32_t k = 0; k < row->n; k++) {
            struct occ_error err = OCC_ERROR_INIT;
            struct occ_cupti_host host;
            bool is_one_pass = occ_pm_configure(&library, chips[i].chip, &everything, row->sets[k], &host,
                                                &err) == OCC_SOURCE_OK;
            bool is_expected = k == 0 ? strcmp(chips[i].chip, "GB10B") != 0 : k == 1 || chips[i].has_dram;
            if (is_one_pass != is_expected)
                fail_msg("%s, set %u: %s", chips[i].chip, k, err.message);
            if (is_one_pass)
                occ_cupti_host_close(&host);
        }
    }
}

/* The last set has all counters of utilization, except tensor cores on Turing. */
static void the_last_set_is_utilization(void **state)
{
    (void)state;
    static const char *const chips[] = {"TU104", "GA100", "GA102", "AD102", "GH100", "GB100", "GB202"};
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        const struct occ_counter_set *set = occ_chip_sets_find(chips[i])->sets[2];
        bool has[OCC_COUNTER_COUNT] = {false};
        for (uint32_t k = 0; k < set->n; k++)
            has[set->counter[k]] = true;
        assert_true(has[OCC_COUNTER_ACTIVE] && has[OCC_COUNTER_ELAPSED] && !has[OCC_COUNTER_WARPS]);
        for (int k = 0; k < OCC_UTILIZATION_COUNT; k++)
            assert_int_equal(has[OCC_COUNTER_UTILIZATION + k], i > 0 || k != OCC_UTILIZATION_TENSOR);
    }
}

/* The first set counts the blocks that are launched, but where that is too much. */
static void the_first_set_counts_blocks(void **state)
{
    (void)state;
    static const char *const chips[] = {"TU104", "GA102", "GH100", "GB100", "GB202", "GB20B", "GB10B", "ZZ1"};
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        const struct occ_counter_set *set = occ_chip_sets_find(chips[i])->sets[0];
        struct occ_pm_sets sets = {0};
        bool counts = set->counter[set->n - 1] == OCC_COUNTER_LAUNCHED;
        assert_int_equal(counts, i < 7);
        if (i == 7)
            continue;
        assert_int_equal(occ_pm_sets_configure(&sets, &library, chips[i], &everything, NULL), OCC_SOURCE_OK);
        assert_int_equal(sets.n, 3);
        assert_int_equal(sets.set[0].n, set->n - (i == 6));
        assert_int_equal(sets.n_missing > 0 && strcmp(sets.missing[0], "gr__ctas_launched.sum") == 0, i == 6);
        occ_pm_sets_free(&sets);
    }
}

/* The check can fail: a set that needs two passes is refused, and so is an unknown metric. */
static void others_are_refused(void **state)
{
    (void)state;
    static const struct occ_counter_set two_passes = {4,
                                                      {"sm__warps_active.sum", "sm__cycles_active.sum",
                                                       "sm__cycles_elapsed.max", "sm__ctas_active.sum"},
                                                      {0}},
                                        nonsense = {1, {"sm__happiness.sum"}, {0}};
    struct occ_cupti_host host;
    assert_int_equal(occ_pm_configure(&library, "GH100", &everything, &two_passes, &host, NULL),
                     OCC_SOURCE_NOT_SUPPORTED);
    assert_int_not_equal(occ_pm_configure(&library, "GH100", &everything, &nonsense, &host, NULL),
                         OCC_SOURCE_OK);
    assert_int_not_equal(
        occ_pm_configure(&library, "XX999", &everything, occ_chip_sets_find("XX999")->sets[0], &host, NULL),
        OCC_SOURCE_OK);
}

/* A source without a driver reports an error message. */
static void no_driver(void **state)
{
    (void)state;
    static const struct occ_source_options options = {.interval_ns = 1000000};
    struct occ_source *source = NULL;
    struct occ_error err = OCC_ERROR_INIT;
    if (occ_source_open(&occ_source_pm, &options, &source, &err) == OCC_SOURCE_OK) {
        occ_source_pm.close(source); /* a machine with a GPU */
        skip();
    }
    assert_null(source);
    assert_true(err.message[0] != '\0');
}

static void unknown_chips(void **state)
{
    (void)state;
    assert_string_equal(occ_chip_sets_find("GA100")->prefix, "GA100");
    assert_string_equal(occ_chip_sets_find("GA104")->prefix, "GA10");
    assert_string_equal(occ_chip_sets_find("ZZ1")->prefix, "");
    assert_true(occ_chip_sets_find("TU104")->keep_oldest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_set_counts_blocks),
        cmocka_unit_test(sets_are_one_pass),
        cmocka_unit_test(the_last_set_is_utilization),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(no_driver),
        cmocka_unit_test(unknown_chips),
    };
    struct occ_error err = OCC_ERROR_INIT;
    if (occ_pm_bind(NULL, NULL, &library, &err) != OCC_SOURCE_OK) {
        (void)printf("skipped: %s\n", err.message);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
