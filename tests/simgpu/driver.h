/*
 * The simulated driver's objects and the common declarations of its files. Public entry points are in
 * driver_*.c.
 *
 * - A public handle is a pointer to one of these structs, with the type in its first word. A wrong or freed
 *   handle gets an error if its type shows it; the real driver does not always detect it either.
 * - sim_lock() protects everything here. No user code runs under it: the sink, host functions and the
 *   injected library are called without it.
 * - Callers of sim_*_locked functions hold the lock.
 */
#pragma once

#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudaProfiler.h>
#pragma GCC visibility pop

#include "gpu.h"
#include "hook.h"
#include "loaded_image.h"
#include "residency.h"
#include "segments.h"
#include "timeline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_DRIVER_VERSION 13000
#define SIM_MAX_DEVICES    16
#define SIM_QUEUE_DEPTH    1024 /* launches in flight before a launch waits, as on a real channel */

enum sim_type {
    SIM_CONTEXT = 0x51c0de01,
    SIM_MODULE,
    SIM_FUNCTION,
    SIM_STREAM,
    SIM_EVENT,
    SIM_GRAPH,
    SIM_NODE,
    SIM_EXEC,
};

struct sim_stream;
struct sim_context;

struct sim_device {
    const struct sim_gpu *gpu;
    int ordinal;
    uint32_t sm;
    struct sim_timeline *timeline;
    bool counters_asked;                    /* counters_fd is settled */
    int counters_fd;                        /* file for samplers' reports; -1: none */
    bool turn_asked;                        /* turn_fd is settled */
    int turn_fd;                            /* file with the process that has its turn; -1: none */
    uint64_t copy_engine_ns[3];             /* end of its last copy: to the device, from it, inside it */
    uint64_t in_flight_ns[SIM_QUEUE_DEPTH]; /* ends of the last launches, a ring */
    uint64_t launches;
    uint64_t horizon_ns; /* nothing starts before it */
    uint64_t memory_used_bytes;
    struct sim_context *primary; /* made once, kept */
    unsigned primary_users, primary_flags;
};

struct sim_context {
    enum sim_type type;
    uint32_t id;
    struct sim_device *device;
    unsigned flags;
    bool destroyed; /* a primary context after a reset or release */
    CUfunc_cache cache_config;
    struct sim_stream *streams; /* all streams; legacy is the first one made */
    struct sim_stream *legacy;
    struct sim_module *modules;
    uint32_t next_stream_id;
    size_t limits[16]; /* by CUlimit */
};

struct sim_node;
struct sim_graph;

/* A growing list of nodes. */
struct sim_nodes {
    struct sim_node **items;
    size_t count, room;
};

struct sim_stream {
    enum sim_type type;
    uint32_t id;
    struct sim_context *context;
    struct sim_stream *next;
    unsigned flags;
    int priority;
    uint64_t owner_thread;     /* of a per-thread default stream, else 0 */
    uint64_t ready_ns;         /* end of the submitted work */
    unsigned host_functions;   /* queued or running */
    struct sim_graph *capture; /* not NULL: capturing into it */
    bool capture_origin;
    uint64_t capture_id;
    struct sim_nodes tail; /* dependencies of the next captured node */
};

struct sim_event {
    enum sim_type type;
    struct sim_context *context;
    unsigned flags;
    bool recorded;
    uint64_t time_ns;
    struct sim_graph *capture; /* recorded in a capture */
    uint64_t capture_id;
    struct sim_nodes tail;
};

struct sim_module {
    enum sim_type type;
    struct sim_context *context; /* NULL: a library */
    struct sim_image *image;
    struct sim_function *functions; /* one per kernel of the image */
    struct sim_buffer *globals;     /* one per global, made at the first request */
    struct sim_module *next;        /* in its context's list */
};

/* A CUfunction or a CUkernel. */
struct sim_function {
    enum sim_type type;
    struct sim_module *module;
    const struct occ_image_kernel *kernel;
    const struct sim_parameters *parameters;
    const char *name; /* interned: outlives the module */
    uint64_t hash;    /* of the name */
    uint32_t max_dynamic_smem_bytes;
    bool smem_optin;
    int32_t carveout_percent;
    CUfunc_cache cache_config;
    uint32_t cluster[3]; /* required, by attribute */
    bool non_portable_cluster;
    int cluster_policy;
    /* residency of the last launch, as the next one is usually equal */
    struct sim_demand cached_demand;
    struct sim_residency cached_residency;
    bool cached;
};

struct sim_launch {
    struct sim_function *function;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t dynamic_smem_bytes;
    int32_t carveout_percent; /* -1: the function's */
    int cluster_policy;
    bool cooperative;
};

struct sim_copy {
    uint64_t bytes;
    CUmemorytype from, to;
};

struct sim_host_call {
    CUhostFn function;
    CUstreamCallback callback; /* when function is NULL */
    CUstream handle;           /* for the callback */
    void *data;
};

enum sim_op_kind {
    SIM_OP_KERNEL,
    SIM_OP_COPY,
    SIM_OP_SET,
    SIM_OP_HOST,
    SIM_OP_EMPTY,
    SIM_OP_RECORD,
    SIM_OP_WAIT,
    SIM_OP_CHILD
};

/* An operation of a stream or a graph node. */
struct sim_op {
    enum sim_op_kind kind;
    bool asynchronous;
    union {
        struct sim_launch launch;
        struct sim_copy copy;
        struct sim_set_activity set;
        struct sim_host_call host;
        struct sim_event *event;
        struct sim_graph *child;
    };
};

/* ---- driver_init.c ---- */
void sim_lock(void);
void sim_unlock(void);
/* Waits for a change of anything under the lock (host functions done). */
void sim_wait_locked(void);
void sim_wake_all(void); /* with or without the lock */
CUresult sim_initialized(void);
struct sim_device *sim_device_at(CUdevice ordinal);
int sim_device_count(void);
/* Returns NULL, or the pointer if its first word is `type`. */
void *sim_handle(const void *handle, enum sim_type type);
/* Returns a copy of the text that lives until the process ends; equal texts have equal pointers. NULL: no
 * memory. */
const char *sim_intern_locked(const char *text);
uint64_t sim_hash(const char *text);

/* ---- driver_context.c ---- */
/* The calling thread's context. */
CUresult sim_current(struct sim_context **ret);

/* ---- driver_stream.c ---- */
/* Returns the stream of a handle: also of NULL and the two special handles. Locks. */
CUresult sim_stream_of(CUstream handle, struct sim_stream **ret);
struct sim_stream *sim_stream_new_locked(struct sim_context *context, unsigned flags, int priority);
void sim_streams_free_locked(struct sim_context *context);
/* Returns the earliest start of work that is submitted to the stream now, with the legacy stream's rules. */
uint64_t sim_stream_ready_locked(const struct sim_stream *stream);
/* Waits for the stream, or for all of a context's. */
CUresult sim_stream_wait(struct sim_stream *stream);
CUresult sim_context_wait(struct sim_context *context);
/* Queues a host function at a time of the device. */
CUresult sim_host_call_locked(struct sim_stream *stream, const struct sim_host_call *call, uint64_t due_ns);

/* ---- driver_launch.c ---- */
/* Executes an operation in a stream, or adds it to the stream's capture. Takes the lock. */
CUresult sim_submit(struct sim_stream *stream, const struct sim_op *op);

/* Activities for the sink, delivered without the lock. */
struct sim_batch {
    struct sim_activity *items; /* NULL: at most one activity, in `one` */
    struct sim_activity one;
    size_t count, room;
};
void sim_batch_deliver(struct sim_batch *batch);
/* Reports a call to watching clients; see hook.h. Without the lock. */
void sim_tell_call(enum sim_call call, const struct sim_called *called, const CUresult *result);

/* The origin of an operation: a stream, for itself or for a graph launch. */
struct sim_origin {
    struct sim_stream *stream;
    uint32_t correlation;
    uint32_t graph; /* 0: no graph */
    uint64_t node;
    struct sim_batch *batch;
};
/* Executes an operation that may start at `ready_ns`; *ret_end_ns: its end. */
CUresult sim_execute_locked(const struct sim_origin *origin, const struct sim_op *op, uint64_t ready_ns,
                            uint64_t *ret_end_ns);
void sim_report_locked(struct sim_batch *batch, const struct sim_activity *activity);
uint32_t sim_next_correlation_locked(void);
void sim_throttle(struct sim_device *device);
/* Reads a launch configuration's attributes into `shape`; attributes without an effect here are ignored. */
void sim_launch_attributes(const CUlaunchConfig *config, struct sim_launch *shape);
CUresult sim_launch_check(const struct sim_device *device, struct sim_launch *launch);
void sim_demand_of(const struct sim_launch *launch, const struct sim_context *context,
                   struct sim_demand *ret);
/* Returns the earliest start of an operation that is submitted to the stream now; spends the submission's
 * cost. */
uint64_t sim_ready_locked(const struct sim_stream *stream);
void sim_set_sink(const struct sim_sink *sink);

/* ---- driver_graph.c ---- */
bool sim_nodes_add(struct sim_nodes *nodes, struct sim_node *node);
void sim_nodes_clear(struct sim_nodes *nodes);
CUresult sim_capture_begin(struct sim_stream *stream);
CUresult sim_capture_end(struct sim_stream *stream, CUgraph *ret);
/* Executes all of a graph's operations in the order of its edges; *ret_end_ns: end of the last one. */
CUresult sim_graph_execute_locked(const struct sim_origin *origin, struct sim_graph *graph, uint64_t ready_ns,
                                  uint64_t *ret_end_ns);
CUresult sim_graph_launch(CUgraphExec handle, struct sim_stream *stream);
CUresult sim_capture_locked(struct sim_stream *stream, const struct sim_op *op);
bool sim_graph_id(const void *graph_or_exec, uint32_t *ret_id);
bool sim_node_id(CUgraphNode node, uint64_t *ret_id);

/* ---- driver_memory.c ---- */
struct sim_buffer {
    uintptr_t base;
    size_t bytes;
    CUmemorytype type; /* CU_MEMORYTYPE_DEVICE, _HOST or _UNIFIED */
    struct sim_device *device;
    struct sim_context *context;
};
/* Allocates memory of the simulated device; 0: none left. */
uintptr_t sim_memory_new_locked(struct sim_context *context, size_t bytes, CUmemorytype type);
bool sim_memory_free_locked(uintptr_t base);
/* Frees all memory that was allocated in a context. */
void sim_memory_free_context_locked(const struct sim_context *context);
/* Returns an error if a copy leaves its device buffers. */
CUresult sim_copy_check(const void *to, CUmemorytype to_type, const void *from, CUmemorytype from_type,
                        size_t bytes);
/* Returns the type of a host or device address. */
CUmemorytype sim_memory_type(CUdeviceptr address);
/* The buffer that holds all of [at, at + bytes); NULL: none. */
const struct sim_buffer *sim_memory_find_locked(uintptr_t at, size_t bytes);

/* ---- driver_module.c ---- */
CUresult sim_function_of(const void *handle, struct sim_function **ret);
void sim_modules_free_locked(struct sim_context *context);

/* ---- counters.c ---- */
/* The resources that a placed launch holds over time. */
struct sim_occupation {
    const struct sim_launch *launch;
    const struct sim_residency *residency;
    double achieved, elapsed; /* of the maximum warps: of active SMs; of all SMs all the time */
    double busy[SIM_UNITS];   /* shares of the peak over the launch; ISSUE: of active SMs while active */
};
/* Stops samplers (OCCSIM_COUNTERS) from reading until sim_counters_end_locked(), so that a launch is reported
 * before a sample of its time is made. Returns false without samplers. */
bool sim_counters_begin_locked(struct sim_device *device);
void sim_counters_end_locked(struct sim_device *device);
/* Fills achieved and elapsed, and reports to samplers; between begin and end. */
void sim_counters_publish_locked(struct sim_device *device, struct sim_occupation *occupation);

/* ---- turns.c ---- */
/* sim_turn_ready_locked() returns the end of other processes' turn, 0: this process has the turn.
 * sim_turn_take_locked() extends this process's turn. Between begin and end. */
uint64_t sim_turn_ready_locked(struct sim_device *device);
void sim_turn_take_locked(struct sim_device *device, uint64_t until_ns);

/* ---- truth.c ---- */
struct sim_truth {
    const struct sim_activity *activity;
    uint64_t blocks, wave_blocks;
    uint32_t blocks_per_sm;
    uint64_t block_ns;
    double block_ns_total;
    const struct sim_occupation *occupation;
};
void sim_truth_write(const struct sim_truth *truth);
