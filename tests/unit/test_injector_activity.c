/* injector/activity: kernel records of several CUPTI versions, made by hand. */
#include "injector_samples.h"
#include "cupti/library.h"
#include "injector/activity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void test_fields_arrive_where_they_belong(void **state)
{
    (void)state;
    struct occ_cupti_kernel k = sample_kernel("axpy", 100, 3);
    k.carveout_is_requested = 1;
    k.carveout_percent = 50;
    k.smem_limit_config = 1;
    k.launch_type = 1;
    k.device = 4;
    k.cluster[0] = 2;
    struct occ_activity r;
    occ_activity_parse(&k, 20, &r);
    assert_string_equal(r.name, "axpy");
    assert_int_equal(r.ordinal, 4);
    assert_true(r.times_are_valid);
    assert_int_equal(r.launch.start_ns, SAMPLE_START_NS + 3000);
    assert_int_equal(r.launch.duration_ns, 500);
    assert_int_equal(r.launch.graph_node, 5);
    assert_int_equal(r.launch.stream, 7);
    assert_int_equal(r.launch.correlation, 3);
    assert_int_equal(r.config.grid[0], 100);
    assert_int_equal(r.config.grid[1], 2);
    assert_int_equal(r.config.block[0], 128);
    assert_int_equal(r.config.registers_per_thread, 40);
    assert_int_equal(r.config.static_smem_bytes, 1024);
    assert_int_equal(r.config.dynamic_smem_bytes, 2048);
    assert_int_equal(r.config.local_bytes_per_thread, 16);
    assert_int_equal(r.config.smem_executed_bytes, 65536);
    assert_int_equal(r.config.carveout_percent, 50);
    assert_int_equal(r.config.max_active_clusters, 3);
    assert_int_equal(r.config.max_cluster_size, 8);
    assert_int_equal(r.config.launch_type, 1);
    assert_int_equal(r.config.cache_config, 2); /* the executed half */
    assert_int_equal(r.config.smem_optin, 1);
    assert_int_equal(r.config.context, 1);
    assert_int_equal(r.config.cluster[0], 2);
    assert_int_equal(r.config.cluster[1], 1); /* 0 is no cluster */
    assert_true(occ_record_config_is_valid(&r.config));
}

static void test_tail_is_read_only_where_the_version_has_it(void **state)
{
    (void)state;
    struct occ_cupti_kernel k = sample_kernel("axpy", 1, 1);
    k.device_launched = 1; /* in 12.x the next record's first byte */
    struct occ_activity r;
    occ_activity_parse(&k, 28, &r);
    assert_int_equal(r.config.device_launched, 0);
    occ_activity_parse(&k, 130001, &r);
    assert_int_equal(r.config.device_launched, 1);
    occ_activity_parse(&k, 140000, &r);
    assert_int_equal(r.config.device_launched, 1);
    assert_int_equal(occ_cupti_kernel_bytes(28), 208);
    assert_int_equal(occ_cupti_kernel_bytes(130001), 216);
}

static void test_times(void **state)
{
    (void)state;
    static const struct {
        uint64_t start, end;
        bool valid;
    } cases[] = {{0, 0, false}, {0, 5, false}, {5, 0, false},          {5, 4, false},
                 {5, 5, true},  {5, 6, true},  {1, UINT64_MAX, false}, {UINT64_MAX - 1, UINT64_MAX, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct occ_cupti_kernel k = sample_kernel("axpy", 1, 1);
        k.start_ns = cases[i].start;
        k.end_ns = cases[i].end;
        struct occ_activity r;
        occ_activity_parse(&k, 20, &r);
        assert_int_equal(r.times_are_valid, cases[i].valid);
    }
}

static void test_values_of_versions_to_come(void **state)
{
    (void)state;
    struct occ_cupti_kernel k = sample_kernel("axpy", 1, 1);
    struct occ_activity r;
    k.launch_type = 9;
    k.carveout_is_requested = 1;
    k.carveout_percent = 255;
    k.smem_limit_config = 7;
    occ_activity_parse(&k, 130500, &r);
    assert_int_equal(r.config.launch_type, 0);
    assert_int_equal(r.config.carveout_percent, -1);
    assert_int_equal(r.config.smem_optin, 0);
    assert_true(occ_record_config_is_valid(&r.config));
    k.carveout_is_requested = 0;
    k.carveout_percent = 50;
    occ_activity_parse(&k, 130500, &r);
    assert_int_equal(r.config.carveout_percent, -1);
}

static void test_configurations_that_cannot_be(void **state)
{
    (void)state;
    struct occ_cupti_kernel k = sample_kernel("axpy", 1, 1);
    struct occ_activity r;
    k.grid[0] = (uint32_t)-1;
    occ_activity_parse(&k, 20, &r);
    assert_false(occ_record_config_is_valid(&r.config));
}

static void test_version_gate(void **state)
{
    (void)state;
    static const uint32_t good[] = {20, 21, 28, 130001, 130100, 130400, 140000, 999999};
    static const uint32_t bad[] = {0, 1, 18, 19, 130000};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_null(occ_cupti_version_problem(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_non_null(occ_cupti_version_problem(bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_arrive_where_they_belong),
        cmocka_unit_test(test_tail_is_read_only_where_the_version_has_it),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_values_of_versions_to_come),
        cmocka_unit_test(test_configurations_that_cannot_be),
        cmocka_unit_test(test_version_gate),
    };
    return cmocka_run_group_tests_name("injector_record", tests, NULL, NULL);
}
