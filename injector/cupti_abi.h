/*
 * What we need to know of CUPTI's binary interface, in our own words, so that nothing of the toolkit is needed to
 * build. Where the toolkit's headers are found, abi_check.c asserts every constant and offset here against them.
 *
 * Kernel records only grow at their end from release to release (CUPTI's guide and the headers of 9.0 ... 13.0
 * agree): the struct below is the record of CUDA 13.0. Everything up to device_launched is there since 12.0
 * (cuptiGetVersion() 19), older than what we accept; device_launched since 13.0. The loaded library, not this
 * struct, knows how long its records are: never step by sizeof.
 */
#ifndef OCC_INJECTOR_CUPTI_ABI_H
#define OCC_INJECTOR_CUPTI_ABI_H

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
    OCC_CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
    OCC_CUPTI_ERROR_NOT_COMPATIBLE = 14,
    OCC_CUPTI_ERROR_NOT_INITIALIZED = 15,
    OCC_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS = 39,
};

#define OCC_CUPTI_KIND_CONCURRENT_KERNEL 10u
#define OCC_CUPTI_FLUSH_FORCED           1u

enum occ_cupti_attribute {
    OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_POOL_LIMIT = 2,
    OCC_CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER = 5,
    OCC_CUPTI_ATTRIBUTE_DEVICE_BUFFER_PRE_ALLOCATE = 6,
};

struct occ_cupti_kernel {
    uint32_t kind;
    uint8_t cache_config; /* low 4 bits requested, high 4 bits executed */
    uint8_t smem_config;
    uint16_t registers_per_thread;
    uint32_t global_cache_requested;
    uint32_t global_cache_executed;
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t completed_ns;
    uint32_t device;
    uint32_t context;
    uint32_t stream;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t static_smem_bytes;
    uint32_t dynamic_smem_bytes;
    uint32_t local_bytes_per_thread;
    uint32_t local_bytes_total;
    uint32_t correlation;
    uint64_t grid_id;
    const char *name;
    void *reserved0;
    uint64_t queued_ns;
    uint64_t submitted_ns;
    uint8_t launch_type;
    uint8_t carveout_is_requested;
    uint8_t carveout_percent;
    uint8_t padding;
    uint32_t smem_executed_bytes;
    uint64_t graph_node;
    uint32_t smem_limit_config; /* 1: opted in to more */
    uint32_t graph;
    void *access_policy_window;
    uint32_t channel;
    uint32_t channel_type;
    uint32_t cluster[3]; /* 0: no cluster */
    uint32_t cluster_scheduling_policy;
    uint64_t local_bytes_total_v2;
    uint32_t max_cluster_size;
    uint32_t max_active_clusters;
    uint8_t device_launched; /* since 13.0 */
    uint8_t padding3[7];
};

#define OCC_CUPTI_KERNEL_BYTES_12 offsetof(struct occ_cupti_kernel, device_launched)
#define OCC_CUPTI_KERNEL_BYTES_13 sizeof(struct occ_cupti_kernel)
static_assert(OCC_CUPTI_KERNEL_BYTES_12 == 208, "record of 12.x");
static_assert(OCC_CUPTI_KERNEL_BYTES_13 == 216, "record of 13.0");

/* Bytes that a kernel record of this version has at least. */
static inline size_t occ_cupti_kernel_bytes(uint32_t version)
{
    return version >= OCC_CUPTI_VERSION_13_0 ? OCC_CUPTI_KERNEL_BYTES_13 : OCC_CUPTI_KERNEL_BYTES_12;
}

typedef void occ_cupti_buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void occ_cupti_buffer_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                                        size_t valid_bytes);

#endif
