/*
 * Tests the GPU models and their residency: the limits are repeated here from NVIDIA's tables, and the blocks
 * per SM must equal cuda_occupancy.h's own calculation where it chooses the carve-out itself.
 */
#include "gpu.h"
#include "residency.h"

#include <cuda.h>
#include <cuda_occupancy.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

static const char *const keys[] = {"t4", "a100", "h200"};

static const struct sim_gpu *gpu_of(const char *key)
{
    const struct sim_gpu *gpu = sim_gpu_find(key, strlen(key));
    assert_non_null(gpu);
    return gpu;
}

#define LIMIT(gpu, name) sim_gpu_limit(gpu, CU_DEVICE_ATTRIBUTE_##name)

static void test_figures(void **state)
{
    static const struct {
        const char *key;
        uint32_t cc, sms, threads, blocks, smem_sm, smem_optin, reserve;
    } expected[] = {
        {"t4", 75, 40, 1024, 16, 64 << 10, 64 << 10, 0},
        {"a100", 80, 108, 2048, 32, 164 << 10, 163 << 10, 1024},
        {"h200", 90, 132, 2048, 32, 228 << 10, 227 << 10, 1024},
    };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const struct sim_gpu *gpu = gpu_of(expected[i].key);
        assert_int_equal(LIMIT(gpu, COMPUTE_CAPABILITY_MAJOR) * 10 + LIMIT(gpu, COMPUTE_CAPABILITY_MINOR),
                         expected[i].cc);
        assert_int_equal(LIMIT(gpu, MULTIPROCESSOR_COUNT), expected[i].sms);
        assert_int_equal(LIMIT(gpu, MAX_THREADS_PER_MULTIPROCESSOR), expected[i].threads);
        assert_int_equal(LIMIT(gpu, MAX_BLOCKS_PER_MULTIPROCESSOR), expected[i].blocks);
        assert_int_equal(LIMIT(gpu, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR), expected[i].smem_sm);
        assert_int_equal(LIMIT(gpu, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), expected[i].smem_optin);
        assert_int_equal(LIMIT(gpu, RESERVED_SHARED_MEMORY_PER_BLOCK), expected[i].reserve);
        assert_non_null(strstr(gpu->title, " (simulated)"));
    }
}

static void test_models_are_consistent(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const struct sim_gpu *gpu = gpu_of(keys[i]);
        uint32_t sms = 0, last = 0;
        for (size_t g = 0; g < SIM_GPU_MAX_GPCS; g++)
            sms += gpu->gpc_sms[g];
        if (LIMIT(gpu, CLUSTER_LAUNCH))
            assert_int_equal(sms, LIMIT(gpu, MULTIPROCESSOR_COUNT));
        else
            assert_int_equal(sms, 0);
        for (size_t c = 0; gpu->carveout_kib[c]; c++) {
            assert_true(gpu->carveout_kib[c] > last);
            last = gpu->carveout_kib[c];
        }
        assert_int_equal(last * 1024, LIMIT(gpu, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
    }
    assert_null(sim_gpu_find("h2000", 5));
    assert_null(sim_gpu_find("", 0));
}

static void test_lists(void **state)
{
    (void)state;
    assert_ptr_equal(sim_gpu_listed("t4", 0), gpu_of("t4"));
    assert_ptr_equal(sim_gpu_listed("t4,h200,a100", 1), gpu_of("h200"));
    assert_ptr_equal(sim_gpu_listed("t4,h200,a100", 2), gpu_of("a100"));
    assert_null(sim_gpu_listed("t4,h200,a100", 3));
    assert_null(sim_gpu_listed("t4,", 1));
    assert_null(sim_gpu_listed("", 0));
    assert_null(sim_gpu_listed("gtx", 0));
}

static int oracle(const struct sim_gpu *gpu, int threads, int registers, size_t static_smem,
                  size_t dynamic_smem, int carveout)
{
    struct cudaOccDeviceProp p = {
        .computeMajor = (int)LIMIT(gpu, COMPUTE_CAPABILITY_MAJOR),
        .computeMinor = (int)LIMIT(gpu, COMPUTE_CAPABILITY_MINOR),
        .maxThreadsPerBlock = 1024,
        .maxThreadsPerMultiprocessor = (int)LIMIT(gpu, MAX_THREADS_PER_MULTIPROCESSOR),
        .regsPerBlock = 65536,
        .regsPerMultiprocessor = 65536,
        .warpSize = 32,
        .sharedMemPerBlock = 49152,
        .sharedMemPerMultiprocessor = LIMIT(gpu, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        .numSms = (int)LIMIT(gpu, MULTIPROCESSOR_COUNT),
        .sharedMemPerBlockOptin = LIMIT(gpu, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        .reservedSharedMemPerBlock = LIMIT(gpu, RESERVED_SHARED_MEMORY_PER_BLOCK)};
    struct cudaOccFuncAttributes f = {.maxThreadsPerBlock = INT_MAX,
                                      .numRegs = registers,
                                      .sharedSizeBytes = static_smem,
                                      .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
                                      .maxDynamicSharedSizeBytes = 1 << 20,
                                      .numBlockBarriers = 1};
    struct cudaOccDeviceState s = {CACHE_PREFER_NONE, carveout};
    cudaOccResult result = {0};
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &p, &f, &s, threads, dynamic_smem) !=
        CUDA_OCC_SUCCESS)
        return 0;
    return result.activeBlocksPerMultiprocessor;
}

static void compare(const struct sim_gpu *gpu, int threads, int registers, size_t dynamic_smem, int carveout)
{
    struct sim_demand demand = {.threads = (uint32_t)threads,
                                .registers = (uint32_t)registers,
                                .static_smem_bytes = 512,
                                .dynamic_smem_bytes = (uint32_t)dynamic_smem,
                                .carveout_percent = carveout};
    struct sim_residency got;
    sim_residency(gpu, &demand, &got);
    int expected = oracle(gpu, threads, registers, 512, dynamic_smem, carveout);
    if ((int)got.blocks_per_sm != expected)
        print_message("%s: %d threads, %d registers, %zu bytes, carve-out %d\n", gpu->key, threads, registers,
                      dynamic_smem, carveout);
    assert_int_equal(got.blocks_per_sm, expected);
}

/* -1: cuda_occupancy.h takes the largest carve-out; ours is smaller but must hold as many blocks. */
static void test_blocks_are_the_oracles(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const struct sim_gpu *gpu = gpu_of(keys[i]);
        for (int threads = 1; threads <= 1024; threads += threads < 64 ? 21 : 32) {
            for (int registers = 8; registers <= 255; registers += 13) {
                for (size_t smem = 0; smem <= 230000; smem = smem * 2 + 777)
                    compare(gpu, threads, registers, smem, -1);
            }
        }
    }
}

static void test_carveout(void **state)
{
    (void)state;
    const struct sim_gpu *gpu = gpu_of("h200");
    struct sim_residency got;
    struct sim_demand none = {.threads = 256, .registers = 32, .carveout_percent = -1};
    assert_true(sim_residency(gpu, &none, &got));
    assert_int_equal(got.blocks_per_sm, 8);
    assert_int_equal(got.smem_config_bytes, 8 << 10); /* 8 blocks with the system's 1 KB each */
    struct sim_demand some = {
        .threads = 128, .registers = 32, .dynamic_smem_bytes = 9 << 10, .carveout_percent = -1};
    assert_true(sim_residency(gpu, &some, &got));
    assert_int_equal(got.blocks_per_sm, 16);
    assert_int_equal(got.smem_config_bytes, 196 << 10); /* 16 x 10 KB need 164: one step more */
    some.registers = 31;
    assert_true(sim_residency(gpu, &some, &got));
    assert_int_equal(got.smem_config_bytes, 164 << 10);
    some.carveout_percent = 0; /* the smallest carve-out that holds a block */
    assert_true(sim_residency(gpu, &some, &got));
    assert_int_equal(got.smem_config_bytes, 16 << 10);
    assert_int_equal(got.blocks_per_sm, 1);
    for (int percent = 10; percent <= 100; percent += 15)
        compare(gpu, 128, 32, 9 << 10, percent);
}

static void test_what_does_not_fit(void **state)
{
    (void)state;
    struct sim_residency got;
    struct sim_demand smem = {
        .threads = 32, .registers = 16, .dynamic_smem_bytes = 228 << 10, .carveout_percent = -1};
    assert_false(sim_residency(gpu_of("h200"), &smem, &got));
    assert_int_equal(got.blocks_per_sm, 0);
    struct sim_demand registers = {.threads = 1024, .registers = 128, .carveout_percent = -1};
    assert_false(sim_residency(gpu_of("h200"), &registers, &got));
}

static void test_what_limits(void **state)
{
    static const struct {
        struct sim_demand demand;
        enum sim_limit limit;
    } cases[] = {
        {{.threads = 128, .registers = 168, .carveout_percent = -1}, SIM_LIMIT_REGISTERS},
        {{.threads = 128, .registers = 16, .dynamic_smem_bytes = 50000, .carveout_percent = -1},
         SIM_LIMIT_SMEM},
        {{.threads = 128, .registers = 16, .static_smem_bytes = 4000, .carveout_percent = 0}, SIM_LIMIT_SMEM},
        {{.threads = 32, .registers = 16, .carveout_percent = -1}, SIM_LIMIT_BLOCKS},
        {{.threads = 256, .registers = 16, .carveout_percent = -1}, SIM_LIMIT_WARPS},
        {{.threads = 64, .registers = 16, .barriers = 16, .carveout_percent = -1}, SIM_LIMIT_BARRIERS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sim_residency got;
        assert_true(sim_residency(gpu_of("h200"), &cases[i].demand, &got));
        assert_int_equal(got.limit, cases[i].limit);
    }
}

static void test_clusters_stay_in_a_gpc(void **state)
{
    static const struct {
        uint32_t blocks, active;
    } expected[] = {{2, 66}, {4, 32}, {8, 16}, {16, 8}};
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct sim_demand demand = {
            .threads = 1024, .registers = 64, .cluster_blocks = expected[i].blocks, .carveout_percent = -1};
        struct sim_residency got;
        assert_true(sim_residency(gpu_of("h200"), &demand, &got));
        assert_int_equal(got.blocks_per_sm, 1);
        assert_int_equal(got.max_active_clusters, expected[i].active);
    }
}

static void test_max_threads(void **state)
{
    (void)state;
    assert_int_equal(sim_max_threads(gpu_of("h200"), 32), 1024);
    assert_int_equal(sim_max_threads(gpu_of("h200"), 64), 1024);
    assert_int_equal(sim_max_threads(gpu_of("h200"), 65), 896); /* 72 a thread: 28 warps of 2304 */
    assert_int_equal(sim_max_threads(gpu_of("h200"), 255), 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),     cmocka_unit_test(test_models_are_consistent),
        cmocka_unit_test(test_lists),       cmocka_unit_test(test_blocks_are_the_oracles),
        cmocka_unit_test(test_carveout),    cmocka_unit_test(test_what_does_not_fit),
        cmocka_unit_test(test_what_limits), cmocka_unit_test(test_clusters_stay_in_a_gpc),
        cmocka_unit_test(test_max_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
