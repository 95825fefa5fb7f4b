/*
 * The parts of CUPTI's callback and range profiler interfaces that --exact uses, in our own words, so that neither building nor
 * running needs the toolkit; abi_check.c compares with NVIDIA's where the headers are. Ours begins every parameter struct
 * with its size up to the last field that we know: the library looks at no more.
 */
#ifndef OCC_INJECTOR_PROFILER_ABI_H
#define OCC_INJECTOR_PROFILER_ABI_H

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

#define OCC_PROFILER_TYPE_RANGE    0u
#define OCC_PROFILER_AUTO_RANGE    1u
#define OCC_PROFILER_KERNEL_REPLAY 2u

/* Every one begins with these two. */
#define OCC_PARAMS                                                                                           \
    size_t bytes;                                                                                            \
    void *reserved

/* A struct's `bytes`, with the name of its last field. */
#define OCC_PARAMS_BYTES(type, last) (offsetof(struct type, last) + sizeof(((struct type *)0)->last))

struct occ_params_none {
    OCC_PARAMS;
};
struct occ_params_chip_name {
    OCC_PARAMS;
    size_t device;
    const char *name;
};
struct occ_params_availability {
    OCC_PARAMS;
    void *context;
    size_t image_bytes;
    uint8_t *image;
};
struct occ_params_host {
    OCC_PARAMS;
    uint32_t type;
    const char *chip;
    const uint8_t *availability;
    void *host;
};
struct occ_params_host_end {
    OCC_PARAMS;
    void *host;
};
struct occ_params_metrics {
    OCC_PARAMS;
    void *host;
    const char **names;
    size_t count;
};
struct occ_params_config_bytes {
    OCC_PARAMS;
    void *host;
    size_t config_bytes;
};
struct occ_params_config {
    OCC_PARAMS;
    void *host;
    size_t config_bytes;
    uint8_t *config;
};
struct occ_params_passes {
    OCC_PARAMS;
    size_t config_bytes;
    uint8_t *config;
    size_t passes;
};
struct occ_params_evaluate {
    OCC_PARAMS;
    void *host;
    const uint8_t *image;
    size_t image_bytes;
    size_t range;
    const char **names;
    size_t count;
    double *values;
};
struct occ_params_enable {
    OCC_PARAMS;
    void *context;
    void *profiler;
};
struct occ_params_profiler { /* disable, start */
    OCC_PARAMS;
    void *profiler;
};
struct occ_params_image_bytes {
    OCC_PARAMS;
    void *profiler;
    const char **names;
    size_t count;
    size_t most_ranges;
    uint32_t most_nodes;
    size_t image_bytes;
};
struct occ_params_image {
    OCC_PARAMS;
    void *profiler;
    size_t image_bytes;
    uint8_t *image;
};
struct occ_params_set_config {
    OCC_PARAMS;
    void *profiler;
    size_t config_bytes;
    const uint8_t *config;
    size_t image_bytes;
    uint8_t *image;
    uint32_t range;
    uint32_t replay;
    size_t most_ranges;
    uint16_t nesting_levels;
    uint16_t least_nesting_level;
    size_t pass;
    uint16_t target_nesting_level;
};
struct occ_params_stop {
    OCC_PARAMS;
    void *profiler;
    size_t pass;
    size_t target_nesting_level;
    uint8_t is_complete;
};
struct occ_params_decode {
    OCC_PARAMS;
    void *profiler;
    size_t dropped;
};
struct occ_params_ranges {
    OCC_PARAMS;
    const uint8_t *image;
    size_t image_bytes;
    size_t ranges;
};

#endif
