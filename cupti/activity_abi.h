/*
 * The parts of CUPTI's activity records (binary interface) that the project uses, declared here so that the
 * build needs no CUDA toolkit. If NVIDIA's headers are installed, tests/unit/test_cupti_abi.c compares every
 * constant and offset with them.
 *
 * Kernel records only grow at their end from release to release (CUPTI's guide and the headers of 9.0 ...
 * 13.0 agree). All accepted records (12.2 and newer) end with max_active_clusters or later; device_launched
 * exists since 13.0. The length of a record depends on the loaded library, not on this struct: never step by
 * sizeof.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* cuptiGetVersion(): a counter up to CUDA 12.x, 10000 * major + 100 * minor + update since 13.0. */
#define OCC_CUPTI_VERSION_12_2    20u
#define OCC_CUPTI_VERSION_13_0_GA 130000u
#define OCC_CUPTI_VERSION_13_0    130000u
#define OCC_CUPTI_VERSION_13_3    130300u

enum occ_cupti_result {
    OCC_CUPTI_SUCCESS = 0,
    OCC_CUPTI_ERROR_INVALID_DEVICE = 2,
    OCC_CUPTI_ERROR_INVALID_OPERATION = 7,
    OCC_CUPTI_ERROR_OUT_OF_MEMORY = 8,
    OCC_CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
    OCC_CUPTI_ERROR_NOT_COMPATIBLE = 14,
    OCC_CUPTI_ERROR_NOT_INITIALIZED = 15,
    OCC_CUPTI_ERROR_HARDWARE_BUSY = 26,
    OCC_CUPTI_ERROR_NOT_SUPPORTED = 27,
    OCC_CUPTI_ERROR_VIRTUALIZED_DEVICE = 33,
    OCC_CUPTI_ERROR_INSUFFICIENT_PRIVILEGES = 35,
    OCC_CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED = 38,
    OCC_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS = 39,
    OCC_CUPTI_ERROR_VIRTUALIZED_DEVICE_PRIVILEGES = 40,
    OCC_CUPTI_ERROR_CONFIDENTIAL_COMPUTING = 41,
    OCC_CUPTI_ERROR_CRYPTO_MINING_DEVICE = 42,
    OCC_CUPTI_ERROR_MIG_DEVICE = 43,
    OCC_CUPTI_ERROR_WSL_DEVICE = 45,
    OCC_CUPTI_ERROR_UNKNOWN = 999,
};

#define OCC_CUPTI_KIND_MEMCPY            1u
#define OCC_CUPTI_KIND_MEMSET            2u
#define OCC_CUPTI_KIND_DRIVER            4u
#define OCC_CUPTI_KIND_CONCURRENT_KERNEL 10u
#define OCC_CUPTI_KIND_EXTERNAL          39u
#define OCC_CUPTI_FLUSH_FORCED           1u

enum occ_cupti_attribute {
    OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_POOL_LIMIT = 2,
    OCC_CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER = 5,
    OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_PRE_ALLOCATE = 6,
    OCC_CUPTI_ATTRIBUTE_PER_THREAD_BUFFER = 9, /* since 12.3 */
};

/* CUpti_ActivityKernel10, the record of CUDA 13.0. Fields named `unused` here are not read. */
struct occ_cupti_kernel {
    struct { /* since CUDA 9.0 */
        uint32_t kind;
        uint8_t cache_config; /* low 4 bits requested, high 4 bits executed */
        uint8_t unused1;
        uint16_t registers_per_thread;
        uint64_t unused2;
        uint64_t start_ns;
        uint64_t end_ns; /* 0: the kernel had not ended when a forced flush returned the record */
        uint64_t unused3;
        uint32_t device;
        uint32_t context;
        uint32_t stream;
        uint32_t grid[3];
        uint32_t block[3];
        uint32_t static_smem_bytes;
        uint32_t dynamic_smem_bytes;
        uint32_t local_bytes_per_thread;
        uint32_t unused4;
        uint32_t correlation;
        uint64_t unused5;
        const char *name;
        uint64_t unused6[3];
        uint8_t launch_type;
        uint8_t carveout_is_requested;
        uint8_t carveout_percent;
        uint8_t unused7;
        uint32_t smem_executed_bytes;
    };
    struct { /* since 11.0 ... 12.0 */
        uint64_t graph_node;
        uint32_t smem_limit_config; /* 1: limit raised above the default */
        uint32_t unused8[5];
        uint32_t cluster[3]; /* 0: no cluster */
        uint32_t unused9[3];
        uint32_t max_cluster_size;
        uint32_t max_active_clusters;
    };
    struct { /* since 13.0 */
        uint8_t device_launched;
        uint8_t unused10[7];
    };
};

#define OCC_CUPTI_KERNEL_BYTES_12 offsetof(struct occ_cupti_kernel, device_launched)
#define OCC_CUPTI_KERNEL_BYTES_13 sizeof(struct occ_cupti_kernel)
static_assert(OCC_CUPTI_KERNEL_BYTES_12 == 208, "record of 12.x");
static_assert(OCC_CUPTI_KERNEL_BYTES_13 == 216, "record of 13.0");

/* Minimum size of a kernel record of this version, in bytes. */
static inline size_t occ_cupti_kernel_bytes(uint32_t version)
{
    return version >= OCC_CUPTI_VERSION_13_0 ? OCC_CUPTI_KERNEL_BYTES_13 : OCC_CUPTI_KERNEL_BYTES_12;
}

/* CUpti_ActivityExternalCorrelation: precedes the record of an API call that a thread makes while a number of
 * `external_kind` is pushed. The kernel has the same correlation id as the call. */
struct occ_cupti_external_record {
    uint32_t kind;
    uint32_t external_kind;
    uint64_t external_id;
    uint32_t correlation;
    uint32_t unused;
};
static_assert(sizeof(struct occ_cupti_external_record) == 24, "record of all versions");

/* The common prefix of CUpti_ActivityMemcpy5 and CUpti_ActivityMemset4, the records of 12.2 and newer. */
struct occ_cupti_memory_record {
    uint32_t kind;
    uint32_t unused1;
    uint64_t bytes;
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t device;
    uint32_t context;
    uint32_t stream;
    uint32_t correlation;
    uint64_t unused2[4];
    uint32_t channel_type; /* CUpti_ChannelType */
    uint32_t unused3;
};
static_assert(sizeof(struct occ_cupti_memory_record) == 88, "record of all versions");

/* The operation runs on SMs; otherwise a copy engine does it, without warps. */
#define OCC_CUPTI_CHANNEL_COMPUTE 1u

#define OCC_CUPTI_EXTERNAL_KIND 5u /* CUSTOM2: Kineto uses the two kinds before it */

/* CUpti_driver_api_trace_cbid of calls that launch kernels: X(name, number) */
#define OCC_CUPTI_LAUNCH_CALLS(X)                                                                            \
    X(cuLaunch, 115)                                                                                         \
    X(cuLaunchGrid, 116)                                                                                     \
    X(cuLaunchGridAsync, 117)                                                                                \
    X(cuLaunchKernel, 307)                                                                                   \
    X(cuLaunchKernel_ptsz, 442)                                                                              \
    X(cuLaunchCooperativeKernel, 477)                                                                        \
    X(cuLaunchCooperativeKernel_ptsz, 478)                                                                   \
    X(cuLaunchCooperativeKernelMultiDevice, 480)                                                             \
    X(cuGraphLaunch, 514)                                                                                    \
    X(cuGraphLaunch_ptsz, 515)                                                                               \
    X(cuLaunchKernelEx, 652)                                                                                 \
    X(cuLaunchKernelEx_ptsz, 653)

typedef void occ_cupti_buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void occ_cupti_buffer_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                                        size_t valid_bytes);
