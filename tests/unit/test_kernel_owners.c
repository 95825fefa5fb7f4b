/* Owners and families of kernels: every name of the public recordings, names of other libraries, and hostile
 * names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names/owners.h"

/* Each line of the file: owner, library ("-": none) and name. */
static void test_recorded_names(void **state)
{
    char line[1024];
    unsigned n = 0, wrong = 0;
    FILE *file = fopen(OCC_OWNERS_FILE, "r");
    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *rest = line, *word = strsep(&rest, "\t"), *library = strsep(&rest, "\t");
        struct occ_kernel_owner owner;
        if (line[0] == '#' || !rest)
            continue;
        rest[strcspn(rest, "\n")] = '\0';
        occ_kernel_owner(rest, &owner);
        n++;
        if (strcmp(occ_owner_word(owner.owner), word) != 0 ||
            strcmp(owner.library[0] ? owner.library : "-", library) != 0) {
            print_error("%s/%s instead of %s/%s: %s\n", occ_owner_word(owner.owner), owner.library, word,
                        library, rest);
            wrong++;
        }
        assert_true(owner.family[0] != '\0');
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(wrong, 0);
    assert_true(n > 400);
}

struct labelled {
    const char *name, *label;
    enum occ_owner owner;
    uint32_t traits;
};

static void check(const struct labelled *cases, size_t n)
{
    char label[OCC_KERNEL_LABEL_BYTES];
    for (size_t i = 0; i < n; i++) {
        struct occ_kernel_owner owner;
        occ_kernel_owner(cases[i].name, &owner);
        assert_string_equal(occ_kernel_label(&owner, label), cases[i].label);
        assert_int_equal(owner.owner, cases[i].owner);
        assert_int_equal(owner.traits, cases[i].traits);
    }
}

#define CHECK(cases) check(cases, sizeof(cases) / sizeof *(cases))
enum {
    GEMM = OCC_TRAIT_GEMM,
    TENSOR = OCC_TRAIT_GEMM | OCC_TRAIT_TENSOR_CORES,
    PERSISTENT = OCC_TRAIT_PERSISTENT,
    SPLIT_K = OCC_TRAIT_SPLIT_K
};

static void test_matrix_products(void **state)
{
    static const struct labelled cases[] = {
        {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x128_32x3_tn_align1>"
         "(cutlass_80_tensorop_s1688gemm_64x128_32x3_tn_align1::Params)",
         "GEMM 64x128 align1", OCC_OWNER_LIBRARY, TENSOR},
        {"void "
         "cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_nn_align8>(T1::Params)",
         "GEMM 32x32", OCC_OWNER_LIBRARY, TENSOR},
        {"void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(T1::Params)",
         "GEMM 128x64 align1", OCC_OWNER_LIBRARY, GEMM},
        {"ampere_sgemm_128x64_nn", "SGEMM 128x64", OCC_OWNER_LIBRARY, GEMM},
        {"volta_sgemm_64x32_sliced1x4_tn", "SGEMM 64x32", OCC_OWNER_LIBRARY, GEMM},
        {"ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x5_nn", "GEMM 64x64",
         OCC_OWNER_LIBRARY, TENSOR},
        {"sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize96x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel",
         "GEMM 96x128", OCC_OWNER_LIBRARY, TENSOR},
        {"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_"
         "execute_kernel__5x_cublas",
         "GEMM 32x32", OCC_OWNER_LIBRARY, GEMM},
        {"nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT", "nvjet GEMM 64x64", OCC_OWNER_LIBRARY, TENSOR},
        {"nvjet_sm90_hss_64x8_64x16_1x1_h_bz_splitK_NNT", "nvjet GEMM 64x8", OCC_OWNER_LIBRARY,
         TENSOR | SPLIT_K},
        {"bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_transOut_"
         "schedP2x1x2x3_biasM_bN_tma_tmaOpt_clmp_swiGlu_dynBatch_sm100f",
         "bmm MxE4m3 128x16", OCC_OWNER_LIBRARY, TENSOR},
        {"void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2, false, false, "
         "cublasGemvParams<cublasGemvTensorStridedBatched<float const> > >(float)",
         "GEMV", OCC_OWNER_LIBRARY, 0},
        {"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, 7, "
         "cublasGemvParams<float> >(cublasGemvParams<float>)",
         "GEMV", OCC_OWNER_LIBRARY, 0},
    };
    (void)state;
    CHECK(cases);
}

static void test_convolutions(void **state)
{
    static const struct labelled cases[] = {
        {"cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1", "convolution 128x64", OCC_OWNER_LIBRARY, GEMM},
        {"cudnn_infer_volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
         "Winograd convolution 128x128", OCC_OWNER_LIBRARY, GEMM},
        {"sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_"
         "warpsize2x2x1_g1_tensor16x8x8_alignc4_execute_kernel_cudnn",
         "convolution 128x128", OCC_OWNER_LIBRARY, TENSOR},
        {"ampere_gcgemm_64x64_nt", "FFT convolution 64x64", OCC_OWNER_LIBRARY, GEMM},
        {"void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float)",
         "batch norm backward", OCC_OWNER_LIBRARY, 0},
        {"void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(cudnn::bn_fw_tr_1C11_args<float>)",
         "batch norm", OCC_OWNER_LIBRARY, 0},
        {"void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(int)", "Winograd transform",
         OCC_OWNER_LIBRARY, 0},
        {"void cudnn::ops::nchwToNhwcKernel<float, float>(int)", "NCHW to NHWC", OCC_OWNER_LIBRARY, 0},
    };
    (void)state;
    CHECK(cases);
}

static void test_attention(void **state)
{
    static const struct labelled cases[] = {
        {"fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext", "attention",
         OCC_OWNER_LIBRARY, TENSOR | PERSISTENT},
        {"void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, cutlass::half_t>, false>"
         "(Flash_fwd_params)",
         "attention", OCC_OWNER_LIBRARY, TENSOR},
        {"void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<int>(Flash_bwd_params)",
         "attention backward", OCC_OWNER_LIBRARY, TENSOR},
        {"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<int> > >(int)",
         "attention", OCC_OWNER_LIBRARY, TENSOR},
        {"fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<int>::Params)",
         "memory-efficient attention 64x128", OCC_OWNER_FRAMEWORK, TENSOR},
        {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0",
         "attention 64x128", OCC_OWNER_LIBRARY, TENSOR},
    };
    (void)state;
    CHECK(cases);
}

static void test_frameworks(void **state)
{
    static const struct labelled cases[] = {
        {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
         "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, "
         "3>)",
         "elementwise add", OCC_OWNER_FRAMEWORK, 0},
        {"void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<"
         "at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> > >"
         "(at::TensorIteratorBase&)::{lambda(int)#1}>(int)",
         "elementwise mul", OCC_OWNER_FRAMEWORK, 0},
        {"void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::(anonymous "
         "namespace)::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const> "
         ">(int)",
         "elementwise copy", OCC_OWNER_FRAMEWORK, 0},
        {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
         "at::native::func_wrapper_t<float, "
         "at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)> > >(int)",
         "reduce sum", OCC_OWNER_FRAMEWORK, 0},
        {"void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float, (int)4, void "
         "at::native::templates::cuda::normal_and_transform<float, float, (unsigned long)4> >(int)",
         "random normal", OCC_OWNER_FRAMEWORK, 0},
        {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)",
         "layer norm", OCC_OWNER_FRAMEWORK, 0},
        {"void at::native::(anonymous namespace)::searchsorted_cuda_kernel<float, long>(long*)",
         "searchsorted", OCC_OWNER_FRAMEWORK, 0},
        {"void (anonymous namespace)::softmax_warp_backward<float, float, float, 10, true, false>(float*)",
         "softmax backward", OCC_OWNER_FRAMEWORK, 0},
        {"void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)",
         "multi-tensor adam", OCC_OWNER_FRAMEWORK, 0},
        {"std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
         "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)",
         "RMS norm", OCC_OWNER_FRAMEWORK, 0},
        {"loop_add_fusion_12", "loop add fusion", OCC_OWNER_FRAMEWORK, 0},
        {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
         "elementwise", OCC_OWNER_FRAMEWORK, 0},
    };
    (void)state;
    CHECK(cases);
}

static void test_other_owners(void **state)
{
    static const struct labelled cases[] = {
        {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all-reduce",
         OCC_OWNER_COMMUNICATION, 0},
        {"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
         "all-reduce", OCC_OWNER_COMMUNICATION, 0},
        {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", "all-reduce",
         OCC_OWNER_COMMUNICATION, 0},
        {"triton_poi_fused_add_cos_sin_0", "pointwise add_cos_sin", OCC_OWNER_TRITON, 0},
        {"triton_red_fused_native_layer_norm_7", "reduction native_layer_norm", OCC_OWNER_TRITON, 0},
        {"square_kernel_0d1d234", "square", OCC_OWNER_TRITON, 0},
        {"_copy_page_indices_kernel", "copy page indices", OCC_OWNER_TRITON, 0},
        {"void cub::CUB_200101_500_520_NS::DeviceRadixSortOnesweepKernel<int>(int*)", "radix sort",
         OCC_OWNER_LIBRARY, 0},
        {"void moe::dev::finalize::finalizeKernelVecLoad<int>(int)", "MoE finalise", OCC_OWNER_LIBRARY, 0},
    };
    (void)state;
    CHECK(cases);
}

/* Kernels of ordinary programs have names and types that resemble a library's. */
static void test_own_kernels(void **state)
{
    static const struct labelled cases[] = {
        {"sgemm_128x128x8_kernel(float const*, float const*, float*)", "sgemm_128x128x8_kernel",
         OCC_OWNER_UNKNOWN, 0},
        {"void block_all_reduce_sum_f32_f32_kernel<256>(float*, float*, int)",
         "block_all_reduce_sum_f32_f32_kernel", OCC_OWNER_UNKNOWN, 0},
        {"void my_kernel<cutlass::half_t>(cutlass::half_t*)", "my_kernel", OCC_OWNER_UNKNOWN, 0},
        {"void mine::scale<at::Tensor>(at::Tensor, cub::Sum)", "scale", OCC_OWNER_UNKNOWN, 0},
        {"reduceUsingCUB(int*, int*)", "reduceUsingCUB", OCC_OWNER_UNKNOWN, 0},
        {"bmm_kernel(float*)", "bmm_kernel", OCC_OWNER_UNKNOWN, 0},
        {"hopper_kernel(float*)", "hopper_kernel", OCC_OWNER_UNKNOWN, 0},
        {"loop_kernel", "loop_kernel", OCC_OWNER_UNKNOWN, 0},
        {"matmul_0d", "matmul_0d", OCC_OWNER_UNKNOWN, 0},
        {"void warpReduceScatter<float>(float*)", "warpReduceScatter", OCC_OWNER_UNKNOWN, 0},
        {"all_reduce_by_key(int const*, float*)", "all_reduce_by_key", OCC_OWNER_UNKNOWN, 0},
        {"compute_all_to_all_indices(int*)", "compute_all_to_all_indices", OCC_OWNER_UNKNOWN, 0},
        /* tensor cores and persistent kernels by the name alone */
        {"naive_gemm", "naive_gemm", OCC_OWNER_UNKNOWN, 0},
        {"void gemm<float, 128>(float const*)", "gemm", OCC_OWNER_UNKNOWN, 0},
        {"hgemm_wmma_kernel(half*)", "hgemm_wmma_kernel", OCC_OWNER_UNKNOWN, OCC_TRAIT_TENSOR_CORES},
        {"my_flash_attention(half*)", "my_flash_attention", OCC_OWNER_UNKNOWN, OCC_TRAIT_TENSOR_CORES},
        {"gamma_update(float*)", "gamma_update", OCC_OWNER_UNKNOWN, 0},
        {"persistent_scan(float*)", "persistent_scan", OCC_OWNER_UNKNOWN, OCC_TRAIT_PERSISTENT},
        {"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char>(unsigned char*)",
         "KV-cache write", OCC_OWNER_FRAMEWORK, 0},
    };
    (void)state;
    CHECK(cases);
}

static void test_details(void **state)
{
    struct occ_kernel_owner owner;
    (void)state;
    occ_kernel_owner("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x128_32x3_tn_align1>(int)",
                     &owner);
    assert_string_equal(owner.library, "CUTLASS");
    assert_string_equal(owner.layout, "tn");
    assert_int_equal(owner.alignment, 1);
    assert_int_equal(owner.stages, 3);
    assert_int_equal(owner.architecture, 80);
    occ_kernel_owner(
        "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_"
        "transOut_sm100f",
        &owner);
    assert_string_equal(owner.layout, "tn");
    assert_int_equal(owner.stages, 3);
    assert_int_equal(owner.architecture, 100);
    assert_int_equal(owner.alignment, 0);
    occ_kernel_owner("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize96x128x32_stage4_warpsize2x2x1_kernel",
                     &owner);
    assert_int_equal(owner.stages, 4);
    assert_int_equal(owner.architecture, 80);
    occ_kernel_owner("volta_sgemm_64x64_nt", &owner);
    assert_int_equal(owner.architecture, 70);
    occ_kernel_owner("nvjet_tst_144x128_64x6_2x1_v_bz_bias_TNN", &owner);
    assert_string_equal(owner.layout, "tnn");
    assert_int_equal(owner.stages, 6);
}

static void test_hostile_names(void **state)
{
    static const char *const pieces[] = {"<",
                                         ">",
                                         "(",
                                         "cutlass::Kernel<",
                                         "a<b> ",
                                         "at::native::",
                                         "_",
                                         "9",
                                         "99999999999x9_",
                                         "_ZN9",
                                         "\xe2\x80\xa6",
                                         "\xff",
                                         "f<(int)4, ",
                                         "::"};
    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        static char name[20000];
        size_t n = strlen(pieces[i]);
        struct occ_kernel_owner owner;
        char label[OCC_KERNEL_LABEL_BYTES];
        for (size_t k = 0; k + n < sizeof name; k += n)
            memcpy(name + k, pieces[i], n);
        name[sizeof name - n - 1] = '\0';
        occ_kernel_owner(name, &owner);
        assert_true(strlen(occ_kernel_label(&owner, label)) < sizeof label);
    }
    struct occ_kernel_owner empty;
    occ_kernel_owner("", &empty);
    assert_int_equal(empty.owner, OCC_OWNER_UNKNOWN);
    assert_string_equal(empty.family, "");
}

static void test_long_family_keeps_whole_characters(void **state)
{
    struct occ_kernel_owner owner;
    (void)state;
    occ_kernel_owner(
        "triton_poi_fused_add_bitwise_and_bitwise_not_bitwise_or_ge_lt_mul_sub_where_select_cat_0", &owner);
    assert_int_equal(strlen(owner.family), OCC_FAMILY_BYTES - 1);
    assert_string_equal(owner.family + OCC_FAMILY_BYTES - 4, "\xe2\x80\xa6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_names), cmocka_unit_test(test_matrix_products),
        cmocka_unit_test(test_convolutions),   cmocka_unit_test(test_attention),
        cmocka_unit_test(test_frameworks),     cmocka_unit_test(test_other_owners),
        cmocka_unit_test(test_own_kernels),    cmocka_unit_test(test_details),
        cmocka_unit_test(test_hostile_names),  cmocka_unit_test(test_long_family_keeps_whole_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
