/*
 * The only private symbol between the two simulated libraries: libcuda.so.1 exports occsim_hook(). The CUPTI
 * double calls it with a sink for the device's activities and gets functions of the driver.
 *
 * The sink is called in the launching thread, without the driver's lock, when the launch is placed: its
 * start and end are known and lie in the future. A name in an activity lives until the
 * process ends.
 */
#pragma once

#include "gpu.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_HOOK_SYMBOL  "occsim_hook"
#define SIM_HOOK_VERSION 5

enum sim_activity_kind { SIM_ACTIVITY_KERNEL, SIM_ACTIVITY_MEMCPY, SIM_ACTIVITY_MEMSET, SIM_ACTIVITY_GRAPH };

/* The counters of a kernel that has the device to itself, at one cycle per nanosecond: sums over time. Blocks
 * go to SMs breadth first, so that a wave occupies min(its blocks, SMs) SMs. */
struct sim_counts {
    double warps_ns;  /* resident warps */
    double sms_ns;    /* SMs with work */
    double blocks_ns; /* resident blocks */
    double ns;
};

struct sim_kernel_activity {
    const char *name;
    uint64_t grid_id;
    uint32_t grid[3], block[3], cluster[3]; /* cluster: all 0 without clusters */
    uint32_t registers, static_smem_bytes, dynamic_smem_bytes, local_bytes;
    uint32_t smem_config_bytes;
    int32_t carveout_percent; /* -1: not requested */
    uint32_t cache_config;
    uint32_t cluster_policy, max_cluster_blocks, max_active_clusters;
    uint64_t local_total_bytes;
    bool cooperative, smem_optin;
    struct sim_counts counts;
};

struct sim_copy_activity {
    uint64_t bytes;
    CUmemorytype from, to;
    bool asynchronous;
};

struct sim_set_activity {
    uint64_t bytes;
    uint32_t value;
    bool asynchronous;
};

struct sim_activity {
    enum sim_activity_kind kind;
    uint64_t start_ns, end_ns;
    uint32_t device, context, stream, correlation;
    uint32_t graph; /* 0: not from a graph */
    uint64_t graph_node;
    union {
        struct sim_kernel_activity kernel;
        struct sim_copy_activity copy;
        struct sim_set_activity set;
    };
};

/* A driver call that clients may watch, reported without the lock. CONTEXT_END: before a context ends; it has
 * no exit. */
enum sim_call {
    SIM_CALL_LAUNCH,
    SIM_CALL_GRAPH,
    SIM_CALL_CAPTURE_BEGIN,
    SIM_CALL_CAPTURE_END,
    SIM_CALL_STREAM_DESTROY,
    SIM_CALL_CONTEXT_END
};

/* What a call is about. */
struct sim_called {
    CUcontext context;    /* the stream's; CONTEXT_END: that ends */
    CUcontext current;    /* of the thread; NULL: none */
    CUstream stream;      /* as the program names it */
    bool ends_capture;    /* STREAM_DESTROY: the capture of this stream */
    uint32_t correlation; /* the id of a launch's activities, 0 for other calls */
};

struct sim_sink {
    void (*activity)(const struct sim_activity *activity);
    /* `result`: NULL on entry, else the call's result. */
    void (*call)(enum sim_call call, const struct sim_called *called, const CUresult *result);
};

struct sim_driver {
    uint32_t version; /* SIM_HOOK_VERSION */
    uint64_t (*now)(void);
    /* return false for another kind of handle */
    bool (*context_id)(CUcontext context, uint32_t *ret_id, uint32_t *ret_device);
    bool (*stream_id)(CUcontext context, CUstream stream, uint32_t *ret_id);
    bool (*graph_id)(const void *graph_or_exec, uint32_t *ret_id);
    bool (*node_id)(CUgraphNode node, uint64_t *ret_id);
    /* returns NULL without such a device, and before the driver is initialized */
    const struct sim_gpu *(*device)(size_t ordinal, uint8_t *ret_uuid);
    /* returns false if cuInit finds no device */
    bool (*has_devices)(void);
    /* lets the host wait until the device reaches this time */
    void (*wait_until)(uint64_t ns);
};

/* Sets the sink of activities (NULL: none) and returns the driver's functions. */
typedef const struct sim_driver *sim_hook_function(const struct sim_sink *sink);
