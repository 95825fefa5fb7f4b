/*
 * Names of kernels by owner, and families in words. Sources: the names in public profiles of PyTorch, vLLM,
 * TensorRT-LLM, JAX and others, and the kernels' public source code. A rule that fits the kernels of ordinary
 * programs too ("gemm", "reduce_kernel") needs the scope of its library. No state.
 */
#include "owner_rules.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define GEMM         OCC_TRAIT_GEMM
#define TENSOR       (OCC_TRAIT_GEMM | OCC_TRAIT_TENSOR_CORES)

#define RULE(part, pattern, also, owner, library, family, traits)                                            \
    {                                                                                                        \
        OCC_PART_##part, pattern, also, OCC_OWNER_##owner, library, family, traits                           \
    }
#define SCOPE(pattern, owner, library)      RULE(SCOPE_HAS, pattern, NULL, owner, library, NULL, 0)
#define OUTER(pattern, owner, library)      RULE(SCOPE_STARTS, pattern, NULL, owner, library, NULL, 0)
#define BASE(pattern, owner, library)       RULE(BASE_STARTS, pattern, NULL, owner, library, NULL, 0)
#define BOTH(pattern, also, owner, library) RULE(BASE_STARTS, pattern, also, owner, library, NULL, 0)
#define WORD(pattern, owner, library)       RULE(BASE_HAS, pattern, NULL, owner, library, NULL, 0)
#define ANYWHERE(pattern, owner, library)   RULE(NAME_HAS, pattern, NULL, owner, library, NULL, 0)
#define FAMILY(part, pattern, owner, library, family, traits)                                                \
    RULE(part, pattern, NULL, owner, library, family, traits)

#define COLLECTIVES(X)                                                                                       \
    X("allreduce")                                                                                           \
    X("all_reduce")                                                                                          \
    X("AllReduce")                                                                                           \
    X("allReduce")                                                                                           \
    X("reduce_scatter")                                                                                      \
    X("ReduceScatter")                                                                                       \
    X("reduceScatter")                                                                                       \
    X("all_gather")                                                                                          \
    X("allgather")                                                                                           \
    X("AllGather")                                                                                           \
    X("all_to_all")                                                                                          \
    X("alltoall")                                                                                            \
    X("AllToAll")
#define COLLECTIVE(word) WORD(word, COMMUNICATION, ""),
/* Kernels of one GPU over keys, or that compute the indices of a collective. */
#define LOCAL(word)                                                                                          \
    RULE(BASE_HAS, word, "_by_key", UNKNOWN, "", NULL, 0),                                                   \
        RULE(BASE_HAS, word, "indices", UNKNOWN, "", NULL, 0),

const struct occ_owner_rule occ_owner_rules[] = {
    /* ---- reductions over the threads of one GPU that are named like collectives ---- */
    WORD("block_all_reduce", UNKNOWN, ""),
    WORD("warp_all_reduce", UNKNOWN, ""),
    WORD("warpReduceScatter", UNKNOWN, ""),
    WORD("warp_reduce_scatter", UNKNOWN, ""),
    WORD("blockReduceScatter", UNKNOWN, ""),
    WORD("blockAllReduce", UNKNOWN, ""),
    WORD("warpAllReduce", UNKNOWN, ""),

    /* ---- communication, of any origin ---- */
    BASE("nccl", COMMUNICATION, "NCCL"),
    BASE("nvshmem", COMMUNICATION, "NVSHMEM"),
    SCOPE("nvshmem", COMMUNICATION, "NVSHMEM"),
    SCOPE("deep_ep::", COMMUNICATION, "DeepEP"),
    SCOPE("mscclpp::", COMMUNICATION, "MSCCL++"),
    BASE("mscclKernel", COMMUNICATION, "MSCCL"),
    BASE("multimem_", COMMUNICATION, "PyTorch"),
    BASE("one_shot_all_reduce", COMMUNICATION, "PyTorch"),
    BASE("two_shot_all_reduce", COMMUNICATION, "PyTorch"),
    BASE("cross_device_reduce", COMMUNICATION, "vLLM"),
    BASE("userbuffers_", COMMUNICATION, "Transformer Engine"),
    SCOPE("allreduce_fusion", COMMUNICATION, "TensorRT-LLM"),
    COLLECTIVES(LOCAL) COLLECTIVES(COLLECTIVE)

    /* ---- attention ---- */
    FAMILY(BASE_STARTS, "fmha_cutlassF", FRAMEWORK, "PyTorch", "memory-efficient attention", TENSOR),
    FAMILY(BASE_STARTS, "fmha_cutlassB", FRAMEWORK, "PyTorch", "memory-efficient attention backward", TENSOR),
    FAMILY(BASE_STARTS, "fmhaSm", LIBRARY, "TensorRT-LLM", NULL, TENSOR),
    FAMILY(BASE_STARTS, "fmha_v2", LIBRARY, "TensorRT-LLM", "attention", TENSOR),
    BASE("flash_fwd", LIBRARY, "flash attention"),
    BASE("flash_bwd", LIBRARY, "flash attention"),
    SCOPE("pytorch_flash::", LIBRARY, "flash attention"),
    OUTER("flash::", LIBRARY, "flash attention"),
    FAMILY(ARGUMENTS_HAVE, "FlashAttnBwd", LIBRARY, "flash attention", "attention backward", TENSOR),
    FAMILY(ARGUMENTS_HAVE, "FlashAttnFwd", LIBRARY, "flash attention", "attention", TENSOR),
    FAMILY(BASE_STARTS, "flash_attn_ext", FRAMEWORK, "ggml", "attention", TENSOR),
    FAMILY(BASE_STARTS, "flash_attn_tile", FRAMEWORK, "ggml", "attention", 0),
    SCOPE("flashinfer::", LIBRARY, "FlashInfer"),

    /* ---- generators ---- */
    BASE("triton_gemm_dot", FRAMEWORK, "XLA"),
    BASE("triton_", TRITON, "TorchInductor"),
    RULE(TRITON_SIGNATURE, "", NULL, TRITON, "Triton", NULL, 0),
    FAMILY(BASE_IS, "_copy_page_indices_kernel", TRITON, "vLLM", "copy page indices", 0),
    FAMILY(BASE_IS, "fused_moe_kernel", TRITON, "vLLM", "MoE GEMM", TENSOR),
    FAMILY(BASE_STARTS, "kernel_unified_attention", TRITON, "vLLM", "attention", TENSOR),
    BASE("kernel_cutlass_", LIBRARY, "CuTe DSL"),

    /* ---- PyTorch and its libraries; before CUB and cuBLAS, since PyTorch uses their types ---- */
    SCOPE("at_cuda_detail::cub::", LIBRARY, "CUB"),
    OUTER("fbgemm_gpu::", FRAMEWORK, "FBGEMM"),
    BASE("split_embedding_", FRAMEWORK, "FBGEMM"),
    BASE("permute_pooled_embs", FRAMEWORK, "FBGEMM"),
    BASE("recat_copy_async", FRAMEWORK, "FBGEMM"),
    BASE("linearize_index_kernel", FRAMEWORK, "FBGEMM"),
    BASE("bounds_check_indices", FRAMEWORK, "FBGEMM"),
    OUTER("at::", FRAMEWORK, "PyTorch"),
    OUTER("c10::", FRAMEWORK, "PyTorch"),
    OUTER("torch::", FRAMEWORK, "PyTorch"),
    OUTER("caffe2::", FRAMEWORK, "PyTorch"),
    BASE("softmax_warp_", FRAMEWORK, "PyTorch"),
    BASE("cunn_SoftMax", FRAMEWORK, "PyTorch"),
    BASE("vectorized_elementwise_kernel", FRAMEWORK, "PyTorch"),
    BASE("unrolled_elementwise_kernel", FRAMEWORK, "PyTorch"),
    BASE("distribution_elementwise_grid_stride_kernel", FRAMEWORK, "PyTorch"),
    BASE("CatArrayBatchedCopy", FRAMEWORK, "PyTorch"),
    BASE("multi_tensor_apply_kernel", FRAMEWORK, "Apex"),
    BASE("cuApplyLayerNorm", FRAMEWORK, "Apex"),
    BASE("cuComputeGradInput", FRAMEWORK, "Apex"),
    BASE("cuComputePartGradGammaBeta", FRAMEWORK, "Apex"),
    BASE("cuComputeGradGammaBeta", FRAMEWORK, "Apex"),

    /* ---- other frameworks ---- */
    OUTER("vllm::", FRAMEWORK, "vLLM"),
    OUTER("sglang::", FRAMEWORK, "SGLang"),
    OUTER("sgl_kernel::", FRAMEWORK, "SGLang"),
    OUTER("transformer_engine::", FRAMEWORK, "Transformer Engine"),
    OUTER("onnxruntime::", FRAMEWORK, "ONNX Runtime"),
    OUTER("tensorflow::", FRAMEWORK, "TensorFlow"),
    OUTER("phi::", FRAMEWORK, "PaddlePaddle"),
    OUTER("paddle::", FRAMEWORK, "PaddlePaddle"),
    OUTER("mxnet::", FRAMEWORK, "MXNet"),
    OUTER("ctranslate2::", FRAMEWORK, "CTranslate2"),
    BASE("cupy_", FRAMEWORK, "CuPy"),
    BOTH("loop_", "_fusion", FRAMEWORK, "XLA"),
    BASE("input_reduce_fusion", FRAMEWORK, "XLA"),
    BASE("input_scatter_fusion", FRAMEWORK, "XLA"),
    BASE("input_transpose_fusion", FRAMEWORK, "XLA"),
    BASE("input_concatenate_fusion", FRAMEWORK, "XLA"),
    BASE("gemm_fusion_dot", FRAMEWORK, "XLA"),
    BASE("mul_mat_q", FRAMEWORK, "ggml"),
    BASE("mul_mat_vec_", FRAMEWORK, "ggml"),
    BASE("quantize_q8_1", FRAMEWORK, "ggml"),
    BASE("dequantize_block", FRAMEWORK, "ggml"),
    BASE("k_bin_bcast", FRAMEWORK, "ggml"),
    BASE("k_get_rows", FRAMEWORK, "ggml"),

    /* ---- TensorRT and TensorRT-LLM ---- */
    BOTH("bmm_", "_cga", LIBRARY, "TensorRT-LLM"),
    BOTH("gemm_", "_cga", LIBRARY, "TensorRT-LLM"),
    OUTER("moe::dev::", LIBRARY, "TensorRT-LLM"),
    OUTER("tensorrt_llm::", LIBRARY, "TensorRT-LLM"),
    OUTER("nvinfer1::", LIBRARY, "TensorRT"),
    OUTER("genericReformat::", LIBRARY, "TensorRT"),
    BASE("trt_", LIBRARY, "TensorRT"),
    BASE("__myl_", LIBRARY, "TensorRT"),
    RULE(BASE_HAS, "_trt", "xmma", LIBRARY, "TensorRT", NULL, 0),

    /* ---- cuDNN; before cuBLAS: cuDNN has the names of cuBLAS with "cudnn" inside ---- */
    FAMILY(BASE_STARTS, "cudnn_generated_fort_native_sdpa", LIBRARY, "cuDNN", NULL, TENSOR),
    WORD("cudnn", LIBRARY, "cuDNN"),
    SCOPE("cudnn", LIBRARY, "cuDNN"),
    FAMILY(BASE_HAS, "_gcgemm_", LIBRARY, "cuDNN", "FFT convolution", GEMM),
    FAMILY(BASE_STARTS, "fft2d_", LIBRARY, "cuDNN", "FFT convolution transform", 0),
    BASE("wgrad_alg", LIBRARY, "cuDNN"),
    BASE("dgrad_engine", LIBRARY, "cuDNN"),
    BASE("implicit_convolve_sgemm", LIBRARY, "cuDNN"),
    BASE("explicit_convolve_sgemm", LIBRARY, "cuDNN"),
    BASE("convolve_common_engine", LIBRARY, "cuDNN"),
    BASE("im2col4d_kernel", LIBRARY, "cuDNN"),
    WORD("xmma_fprop", LIBRARY, "cuDNN"),
    WORD("xmma_dgrad", LIBRARY, "cuDNN"),
    WORD("xmma_wgrad", LIBRARY, "cuDNN"),

    /* ---- CUTLASS, which cuBLAS uses too ---- */
    OUTER("cutlass::", LIBRARY, "CUTLASS"),
    BASE("cutlass", LIBRARY, "CUTLASS"),
    OUTER("deep_gemm::", LIBRARY, "DeepGEMM"),
    FAMILY(BASE_IS, "Marlin", LIBRARY, "Marlin", "quantised GEMM", TENSOR),

    /* ---- cuBLAS ---- */
    FAMILY(BASE_STARTS, "nvjet_", LIBRARY, "cuBLAS", "nvjet GEMM", TENSOR),
    FAMILY(BASE_HAS, "xmma_gemm", LIBRARY, "cuBLAS", "GEMM", GEMM),
    BOTH("maxwell_", "gemm", LIBRARY, "cuBLAS"),
    BOTH("volta_", "gemm", LIBRARY, "cuBLAS"),
    BOTH("turing_", "gemm", LIBRARY, "cuBLAS"),
    BOTH("ampere_", "gemm", LIBRARY, "cuBLAS"),
    BOTH("hopper_", "gemm", LIBRARY, "cuBLAS"),
    FAMILY(SCOPE_HAS, "gemvx::", LIBRARY, "cuBLAS", "GEMV", 0),
    SCOPE("cublas", LIBRARY, "cuBLAS"),
    ANYWHERE("cublasGemv", LIBRARY, "cuBLAS"),
    ANYWHERE("cublasSplitKParams", LIBRARY, "cuBLAS"),
    ANYWHERE("cublasGemmk1Params", LIBRARY, "cuBLAS"),
    FAMILY(NAME_HAS, "cublasDotParams", LIBRARY, "cuBLAS", "dot product", 0),
    FAMILY(NAME_HAS, "cublasLtEpilogue_t", LIBRARY, "cuBLAS", "GEMM epilogue", 0),
    FAMILY(BASE_STARTS, "gemvNSP_kernel", LIBRARY, "cuBLAS", "GEMV", 0),
    FAMILY(BASE_STARTS, "splitKreduce_kernel", LIBRARY, "cuBLAS", "split-K reduce", 0),

    /* ---- CUB, Thrust and other libraries ---- */
    SCOPE("thrust::", LIBRARY, "Thrust"),
    SCOPE("THRUST_", LIBRARY, "Thrust"),
    SCOPE("cub::", LIBRARY, "CUB"),
    BASE("DeviceRadixSort", LIBRARY, "CUB"),
    BASE("DeviceReduceKernel", LIBRARY, "CUB"),
    BASE("DeviceReduceSingleTileKernel", LIBRARY, "CUB"),
    BASE("DeviceReduceByKeyKernel", LIBRARY, "CUB"),
    BASE("DeviceScanKernel", LIBRARY, "CUB"),
    BASE("DeviceScanInitKernel", LIBRARY, "CUB"),
    FAMILY(BASE_IS, "_kernel_agent", LIBRARY, "Thrust", "Thrust algorithm", 0),
    SCOPE("cusparse", LIBRARY, "cuSPARSE"),
    SCOPE("cusolver", LIBRARY, "cuSOLVER"),
    FAMILY(BASE_STARTS, "gen_sequenced", LIBRARY, "cuRAND", "random numbers", 0),
    FAMILY(BASE_STARTS, "generate_seed_pseudo", LIBRARY, "cuRAND", "random seed", 0),
    FAMILY(BASE_STARTS, "regular_fft", LIBRARY, "cuFFT", "FFT", 0),
    FAMILY(BASE_STARTS, "vector_fft", LIBRARY, "cuFFT", "FFT", 0),
    FAMILY(BASE_STARTS, "composite_2way_fft", LIBRARY, "cuFFT", "FFT", 0),
    FAMILY(BASE_STARTS, "multi_bluestein_fft", LIBRARY, "cuFFT", "FFT", 0),
    FAMILY(BASE_STARTS, "regular_bluestein_fft", LIBRARY, "cuFFT", "FFT", 0),
    OUTER("Eigen::", LIBRARY, "Eigen"),
    OUTER("raft::", LIBRARY, "RAFT"),
    OUTER("cuvs::", LIBRARY, "cuVS"),
    OUTER("cudf::", LIBRARY, "cuDF"),
    OUTER("faiss::", LIBRARY, "Faiss"),
    FAMILY(BASE_STARTS, "kDequantizeBlockwise", LIBRARY, "bitsandbytes", "dequantise", 0),
    FAMILY(BASE_STARTS, "kQuantizeBlockwise", LIBRARY, "bitsandbytes", "quantise", 0),
    FAMILY(BASE_STARTS, "selective_scan_", LIBRARY, "Mamba", "selective scan", 0),
    FAMILY(BASE_STARTS, "causal_conv1d_", LIBRARY, "Mamba", "causal convolution", 0),
};
const size_t occ_owner_rules_count = COUNT(occ_owner_rules);

#define STARTS(pattern, family)                                                                              \
    {                                                                                                        \
        OCC_PART_BASE_STARTS, pattern, family, OCC_FORM_TEXT, 0                                              \
    }
#define HAS(pattern, family)                                                                                 \
    {                                                                                                        \
        OCC_PART_BASE_HAS, pattern, family, OCC_FORM_TEXT, 0                                                 \
    }
#define PRODUCT(part, pattern, family, traits)                                                               \
    {                                                                                                        \
        OCC_PART_##part, pattern, family, OCC_FORM_TEXT, traits                                              \
    }
#define OPERATION(pattern, family)                                                                           \
    {                                                                                                        \
        OCC_PART_BASE_STARTS, pattern, family, OCC_FORM_OPERATION, 0                                         \
    }
#define REST(pattern, family)                                                                                \
    {                                                                                                        \
        OCC_PART_BASE_STARTS, pattern, family, OCC_FORM_REST, 0                                              \
    }

/* Only kernels with a known owner have a family from this table. */
const struct occ_family_rule occ_family_rules[] = {
    /* communication */
    HAS("AllReduce", "all-reduce"),
    HAS("allReduce", "all-reduce"),
    HAS("all_reduce", "all-reduce"),
    HAS("allreduce", "all-reduce"),
    HAS("cross_device_reduce", "all-reduce"),
    HAS("AllGather", "all-gather"),
    HAS("all_gather", "all-gather"),
    HAS("ReduceScatter", "reduce-scatter"),
    HAS("reduce_scatter", "reduce-scatter"),
    HAS("AllToAll", "all-to-all"),
    HAS("all_to_all", "all-to-all"),
    HAS("SendRecv", "send/receive"),
    HAS("Broadcast", "broadcast"),

    /* generators */
    REST("triton_poi_fused_", "pointwise"),
    REST("triton_red_fused_", "reduction"),
    REST("triton_per_fused_", "reduction"),
    REST("triton_for_fused_", "foreach"),
    REST("triton_tem_fused_", "template"),
    REST("triton_", "triton"),

    /* attention */
    PRODUCT(BASE_HAS, "GenericAttention", "attention", TENSOR),
    PRODUCT(BASE_STARTS, "fmhaSm", "attention", TENSOR),
    PRODUCT(BASE_STARTS, "flash_fwd_splitkv_combine", "attention combine", 0),
    PRODUCT(BASE_STARTS, "flash_fwd", "attention", TENSOR),
    PRODUCT(BASE_STARTS, "flash_bwd", "attention backward", TENSOR),
    PRODUCT(BASE_HAS, "sdpa", "attention", TENSOR),
    {OCC_PART_BASE_STARTS, "bmm_", "bmm", OCC_FORM_TYPE, TENSOR},
    {OCC_PART_BASE_STARTS, "gemm_", "GEMM", OCC_FORM_TYPE, TENSOR},

    /* PyTorch */
    OPERATION("vectorized_elementwise_kernel", "elementwise"),
    OPERATION("vectorized_templated_elementwise_kernel", "elementwise"),
    OPERATION("unrolled_elementwise_kernel", "elementwise"),
    OPERATION("elementwise_kernel", "elementwise"),
    OPERATION("index_elementwise_kernel", "elementwise"),
    OPERATION("distribution_elementwise_grid_stride_kernel", "random"),
    OPERATION("reduce_kernel", "reduce"),
    OPERATION("multi_tensor_apply_kernel", "multi-tensor"),
    STARTS("_scatter_gather_elementwise_kernel", "scatter/gather"),
    STARTS("CatArrayBatchedCopy", "concatenate"),
    STARTS("indexSelect", "index select"),
    STARTS("indexFunc", "index reduce"),
    STARTS("vectorized_gather_kernel", "gather"),
    HAS("layer_norm_grad", "layer norm backward"),
    HAS("GammaBetaBackward", "layer norm backward"),
    HAS("GradGammaBeta", "layer norm backward"),
    HAS("cuComputeGradInput", "layer norm backward"),
    HAS("LayerNorm", "layer norm"),
    HAS("layer_norm", "layer norm"),
    HAS("RowwiseMoments", "layer norm"),
    HAS("softmax_warp_backward", "softmax backward"),
    HAS("SoftMaxBackward", "softmax backward"),
    HAS("softmax_warp_forward", "softmax"),
    HAS("SoftMaxForward", "softmax"),
    HAS("max_pool_backward", "max pool backward"),
    HAS("max_pool_forward", "max pool"),
    HAS("adaptive_average_pool", "adaptive average pool"),
    HAS("dropout", "dropout"),
    HAS("batch_norm_backward", "batch norm backward"),
    HAS("batch_norm", "batch norm"),

    /* FBGEMM */
    HAS("split_embedding_backward", "embedding backward"),
    HAS("split_embedding_codegen_forward", "embedding"),
    HAS("split_embedding_codegen_grad", "embedding backward"),

    /* vLLM, TensorRT-LLM */
    HAS("rms_norm", "RMS norm"),
    HAS("rotary_embedding", "rotary embedding"),
    HAS("reshape_and_cache", "KV-cache write"),
    HAS("fp8_quant", "FP8 quantise"),
    HAS("quantize_with_block_size", "block-scaled quantise"),
    HAS("finalizeKernel", "MoE finalise"),
    HAS("routingIndices", "MoE routing"),

    /* cuDNN */
    PRODUCT(BASE_HAS, "scudnn_winograd", "Winograd convolution", GEMM),
    HAS("winograd", "Winograd transform"),
    HAS("Winograd", "Winograd transform"),
    HAS("bn_fw", "batch norm"),
    HAS("bn_bw", "batch norm backward"),
    HAS("OffsetsKernel", "convolution offsets"),
    HAS("reduce_wgrad", "convolution weight gradient reduce"),
    PRODUCT(BASE_HAS, "wgrad", "convolution weight gradient", GEMM),
    PRODUCT(BASE_HAS, "dgrad", "convolution data gradient", GEMM),
    HAS("nchwToNhwc", "NCHW to NHWC"),
    HAS("nhwcToNchw", "NHWC to NCHW"),
    HAS("scalePackedTensor", "scale tensor"),
    PRODUCT(BASE_HAS, "fprop", "convolution", GEMM),
    PRODUCT(BASE_HAS, "convolve", "convolution", GEMM),
    PRODUCT(BASE_HAS, "cudnn_", "convolution", GEMM),

    /* cuBLAS and CUTLASS */
    HAS("splitKreduce", "split-K reduce"),
    STARTS("gemv", "GEMV"),
    PRODUCT(BASE_STARTS, "gemmk1_kernel", "GEMM of one k", GEMM),
    PRODUCT(BASE_HAS, "_sgemm", "SGEMM", GEMM),
    PRODUCT(BASE_HAS, "_dgemm", "DGEMM", GEMM),
    PRODUCT(BASE_HAS, "_cgemm", "CGEMM", GEMM),
    PRODUCT(BASE_HAS, "_zgemm", "ZGEMM", GEMM),
    PRODUCT(BASE_HAS, "fprop", "convolution", GEMM),
    PRODUCT(BASE_HAS, "gemm", "GEMM", GEMM),
    PRODUCT(ARGUMENTS_HAVE, "gemm", "GEMM", GEMM),
    PRODUCT(ARGUMENTS_HAVE, "Gemm", "GEMM", GEMM),
    PRODUCT(ARGUMENTS_HAVE, "fprop", "convolution", GEMM),

    /* CUB */
    HAS("RadixSort", "radix sort"),
    HAS("MergeSort", "merge sort"),
    HAS("ReduceByKey", "reduce by key"),
    HAS("SegmentedReduce", "segmented reduce"),
    HAS("DeviceReduce", "reduce"),
    HAS("DeviceScan", "scan"),
    HAS("DeviceSelect", "select"),
    HAS("DeviceHistogram", "histogram"),
    HAS("DeviceCompactInit", "compact"),
};
const size_t occ_family_rules_count = COUNT(occ_family_rules);

const char *const occ_tensor_core_words[] = {"tensorop", "xmma",   "wgmma",  "gmma",   "hmma", "imma",
                                             "1688",     "16816",  "16832",  "h884",   "s884", "nvjet_",
                                             "fmha",     "flash_", "161616", "tensor", NULL};
const char *const occ_own_tensor_core_words[] = {"tensorop", "wgmma", "hmma",     "wmma", "_mma_",
                                                 "fmha",     "flash", "mma_sync", NULL};
const char *const occ_other_pipe_words[] = {"simt", "scudnn", "_sgemm", "ffma", "f32f32_f32f32", NULL};
