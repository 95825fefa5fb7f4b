/*
 * The parts of CUPTI's callback, profiler host, range profiler and PM sampling interfaces that the project
 * uses, declared here so that neither building nor running needs the toolkit; tests/unit/test_cupti_abi.c
 * compares them with NVIDIA's headers.
 *
 * Each parameter struct begins with its size up to the last field that the caller knows: the library reads no
 * further. The size is sizeof, except for structs with a constant OCC_..._SIZE.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum occ_callback_domain { OCC_CALLBACK_DRIVER = 1, OCC_CALLBACK_RESOURCE = 3 };
enum occ_callback_site { OCC_CALLBACK_ENTER = 0, OCC_CALLBACK_EXIT = 1 };
enum { OCC_RESOURCE_CONTEXT_DESTROY_STARTING = 2 };

struct occ_callback_data {
    uint32_t site;
    const char *function_name;
    const void *function_parameters;
    void *function_result;
    const char *symbol_name;
    void *context;
    uint32_t context_id;
    uint64_t *correlation_data;
    uint32_t correlation;
};

struct occ_callback_resource {
    void *context;
    void *stream;
    void *descriptor;
};

typedef void occ_callback(void *user_data, uint32_t domain, uint32_t id, const void *data);

#define OCC_PROFILER_TYPE_RANGE       0u
#define OCC_PROFILER_TYPE_PM_SAMPLING 1u
#define OCC_PROFILER_API_PM_SAMPLING  3u
#define OCC_PROFILER_UNSUPPORTED      1u /* levels of support; 0: unknown, 3: supported */
#define OCC_PROFILER_DISABLED         2u
#define OCC_PROFILER_AUTO_RANGE       1u
#define OCC_PROFILER_KERNEL_REPLAY    2u
#define OCC_PM_TRIGGER_SYSTEM_CLOCK   0u
#define OCC_PM_TRIGGER_TIME           1u
#define OCC_PM_KEEP_OLDEST            0u
#define OCC_PM_KEEP_LATEST            1u
#define OCC_PM_STOP_IMAGE_FULL        1u /* why a decode stopped */

/* Memory that CUPTI fills: a configuration, the availability of counters, or their data. All zero: empty. */
struct occ_cupti_image {
    size_t size;
    uint8_t *bytes;
};

/* Metrics by CUPTI's names. Borrowed: the names must outlive every object made with them. */
struct occ_cupti_metrics {
    const char *const *names;
    size_t count;
};

/* `size` is the size of the parameter struct. */
#define OCC_PARAMS                                                                                           \
    size_t size;                                                                                             \
    void *reserved
#define OCC_PARAMS_SIZE(type, last) (offsetof(struct type, last) + sizeof(((struct type *)0)->last))

struct occ_params_none {
    OCC_PARAMS;
};
struct occ_params_chip_name {
    OCC_PARAMS;
    size_t device;
    const char *name;
};
struct occ_params_supported {
    OCC_PARAMS;
    int32_t device;
    uint32_t supported, architecture, sli, vgpu, confidential_computing, crypto_mining, wsl; /* levels */
    uint32_t api;
};
struct occ_params_availability { /* of the range profiler and of PM sampling */
    OCC_PARAMS;
    uintptr_t subject; /* a CUcontext or a device's index */
    struct occ_cupti_image image;
};
struct occ_params_enable { /* for the range profiler and for PM sampling */
    OCC_PARAMS;
    uintptr_t subject;
    void *object;
};
struct occ_params_object { /* start and disable of range profiler and PM sampling, stop of PM sampling, end of
                              the profiler host */
    OCC_PARAMS;
    void *object;
};
struct occ_params_data { /* initializes the counter data of both */
    OCC_PARAMS;
    void *object;
    struct occ_cupti_image data;
};

/* ---- profiler host: configuration and evaluation ---- */

struct occ_params_host {
    OCC_PARAMS;
    uint32_t type;
    const char *chip;
    const uint8_t *availability;
    void *object;
};
struct occ_params_metrics {
    OCC_PARAMS;
    void *object;
    struct occ_cupti_metrics metrics;
};
struct occ_params_config { /* the fields up to config.size also ask for that size */
    OCC_PARAMS;
    void *object;
    struct occ_cupti_image config;
};
struct occ_params_passes {
    OCC_PARAMS;
    struct occ_cupti_image config;
    size_t passes;
};
struct occ_params_evaluate {
    OCC_PARAMS;
    void *object;
    const uint8_t *data;
    size_t data_size, range;
    struct occ_cupti_metrics metrics;
    double *values;
};

/* ---- range profiler ---- */

struct occ_params_range_data_size {
    OCC_PARAMS;
    void *object;
    struct occ_cupti_metrics metrics;
    size_t max_ranges;
    uint32_t max_nodes;
    size_t data_size;
};
struct occ_params_range_config {
    OCC_PARAMS;
    void *object;
    struct occ_cupti_image config, data;
    uint32_t range, replay;
    size_t max_ranges;
    uint16_t nesting_levels, min_nesting_level;
    size_t pass;
    uint16_t target_nesting_level;
};
struct occ_params_range_stop {
    OCC_PARAMS;
    void *object;
    size_t pass, target_nesting_level;
    uint8_t is_complete;
};
struct occ_params_range_decode {
    OCC_PARAMS;
    void *object;
    size_t dropped;
};
struct occ_params_range_info {
    OCC_PARAMS;
    const uint8_t *data;
    size_t data_size, ranges;
};

/* ---- PM sampling ---- */

struct occ_params_pm_config {
    OCC_PARAMS;
    void *object;
    struct occ_cupti_image config;
    size_t buffer_bytes;
    uint64_t interval; /* nanoseconds or system clocks, by trigger */
    uint32_t trigger, append_mode;
};
struct occ_params_pm_data_size {
    OCC_PARAMS;
    void *object;
    struct occ_cupti_metrics metrics;
    uint32_t max_samples;
    size_t data_size;
};
struct occ_params_pm_decode {
    OCC_PARAMS;
    void *object;
    uint8_t *data;
    size_t data_size;
    uint32_t stop_reason;
    uint8_t overflow;
};
struct occ_params_pm_info {
    OCC_PARAMS;
    const uint8_t *data;
    size_t data_size, total, populated, completed;
};
struct occ_params_pm_sample {
    OCC_PARAMS;
    void *object;
    const uint8_t *data;
    size_t data_size, index;
    uint64_t start_ns, end_ns;
};

/* Sizes that differ from sizeof, because another field or padding follows the last known field. */
#define OCC_SUPPORTED_SIZE    OCC_PARAMS_SIZE(occ_params_supported, api)
#define OCC_CONFIG_SIZE_SIZE  OCC_PARAMS_SIZE(occ_params_config, config.size)
#define OCC_RANGE_CONFIG_SIZE OCC_PARAMS_SIZE(occ_params_range_config, target_nesting_level)
#define OCC_RANGE_STOP_SIZE   OCC_PARAMS_SIZE(occ_params_range_stop, is_complete)
#define OCC_PM_DECODE_SIZE    OCC_PARAMS_SIZE(occ_params_pm_decode, overflow)
