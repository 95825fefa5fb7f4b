/* Marks of communication kernels: one rule for text, JSON and SQL, by names of public libraries. */
#include "cli/marks.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cli/history/sql_guard.h"

static const struct {
    const char *name;
    bool communicates;
} kernels[] = {
    {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", true},
    {"ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", true}, /* RCCL has NCCL's names */
    {"mscclKernel_Sum_half_LL128_false(ncclDevComm*, mscclAlgo*, mscclWork*)", true},
    {"void nvshmemi_transfer_rma_blocking<32>(int, void*)", true},
    {"nvshmemx_collective_launch_query(int)", true},
    {"void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*, int*)", true},
    {"void deep_ep::internode_ll::combine<true, 7168, 11>(void*, void*, int*)", true},
    {"void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<true>(int)", true},
    {"void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 8, true>(AllReduceParams)", true},
    {"void vllm::cross_device_reduce_1stage<nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)", true},
    {"void mscclpp::allgather<false>(int)", true},
    {"void gemm<float, 128>(float const*, float const*, float*)", false},
    {"void warpAllReduce<float>(float*)", false},
    {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(int)", false},
    {"void my_synccluster(int)", false}, /* "nccl" is a part of a word */
    {"", false},
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static void text_and_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < KERNELS; i++)
        if (!!(cli_marks(false, 0, kernels[i].name) & CLI_MARK_COMMUNICATION) != kernels[i].communicates)
            fail_msg("%s", kernels[i].name);
    assert_int_equal(cli_marks(false, 0, NULL), 0);
}

/* Returns the letters of a row of the table launch; the caller frees nothing, `letters` has room for them. */
static void letters_in_sql(sqlite3_stmt *stmt, const char *name, char letters[CLI_LETTERS_BYTES])
{
    assert_int_equal(sqlite3_reset(stmt), SQLITE_OK);
    assert_int_equal(name ? sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC) : sqlite3_bind_null(stmt, 1),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const char *text = (const char *)sqlite3_column_text(stmt, 0);
    letters[0] = '\0';
    (void)strncat(letters, text ? text : "", CLI_LETTERS_BYTES - 1);
}

static void sql(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    char letters[CLI_LETTERS_BYTES];
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sql_guard(db, NULL), 0);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT " CLI_SQL_LETTERS(
                               "by_design") " FROM (SELECT ? AS kernel_demangled, 0 AS simulated, NULL AS "
                                            "by_design)",
                           -1, &stmt, NULL),
        SQLITE_OK);
    for (size_t i = 0; i < KERNELS; i++) {
        letters_in_sql(stmt, kernels[i].name, letters);
        if (strcmp(letters, kernels[i].communicates ? "c" : "") != 0)
            fail_msg("'%s': %s", letters, kernels[i].name);
    }
    letters_in_sql(stmt, NULL, letters);
    assert_string_equal(letters, "");
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_json),
        cmocka_unit_test(sql),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
