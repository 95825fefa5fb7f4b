/* State of the Kineto reader: kineto_json.c parses the document, kineto_event.c makes launches and devices of
 * its events, kineto.c runs the passes over the file. Internal to import/. */
#pragma once

#include <assert.h>

#include "readers.h"

#define DEPTH_MAX         256
#define XLA_PROCESSES_MAX 64

/* Position in the document. */
enum place { DOCUMENT, TOP, EVENTS, EVENT, ARGS, VECTOR, DEVICES, DEVICE, DISTRIBUTED, ELSEWHERE };

/* Integers of the document, scaled by 10^scale. X(name, place, key, scale) */
#define INTEGERS(X)                                                                                          \
    X(TS, EVENT, "ts", 3)                                                                                    \
    X(DUR, EVENT, "dur", 3)                                                                                  \
    X(PID, EVENT, "pid", 0)                                                                                  \
    X(TID, EVENT, "tid", 0)                                                                                  \
    X(ARG_DEVICE, ARGS, "device", 0)                                                                         \
    X(ARG_CONTEXT, ARGS, "context", 0)                                                                       \
    X(ARG_STREAM, ARGS, "stream", 0)                                                                         \
    X(ARG_CORRELATION, ARGS, "correlation", 0)                                                               \
    X(ARG_REGISTERS, ARGS, "registers per thread", 0)                                                        \
    X(ARG_SMEM, ARGS, "shared memory", 0)                                                                    \
    X(ARG_ACHIEVED, ARGS, "est. achieved occupancy %", 4)                                                    \
    X(ARG_SEQUENCE, ARGS, "Sequence number", 0)                                                              \
    X(ARG_GRAPH_NODE, ARGS, "graph node id", 0)                                                              \
    X(DEV_ID, DEVICE, "id", 0)                                                                               \
    X(DEV_MEMORY, DEVICE, "totalGlobalMem", 0)                                                               \
    X(DEV_MAJOR, DEVICE, "computeMajor", 0)                                                                  \
    X(DEV_MINOR, DEVICE, "computeMinor", 0)                                                                  \
    X(DEV_THREADS_PER_BLOCK, DEVICE, "maxThreadsPerBlock", 0)                                                \
    X(DEV_THREADS_PER_SM, DEVICE, "maxThreadsPerMultiprocessor", 0)                                          \
    X(DEV_REGISTERS_PER_BLOCK, DEVICE, "regsPerBlock", 0)                                                    \
    X(DEV_REGISTERS_PER_SM, DEVICE, "regsPerMultiprocessor", 0)                                              \
    X(DEV_WARP, DEVICE, "warpSize", 0)                                                                       \
    X(DEV_SMEM_PER_BLOCK, DEVICE, "sharedMemPerBlock", 0)                                                    \
    X(DEV_SMEM_OPTIN, DEVICE, "sharedMemPerBlockOptin", 0)                                                   \
    X(DEV_SMEM_PER_SM, DEVICE, "sharedMemPerMultiprocessor", 0)                                              \
    X(DEV_SMS, DEVICE, "numSms", 0)                                                                          \
    X(RANK, DISTRIBUTED, "rank", 0)                                                                          \
    X(BASE_TIME, TOP, "baseTimeNanoseconds", 0)                                                              \
    X(SCHEMA, TOP, "schemaVersion", 0)

#define ENUMERATOR(name, place, key, scale) name,
enum integer { INTEGERS(ENUMERATOR) INTEGER_COUNT };
static_assert(INTEGER_COUNT <= 64, "a bit each");
#define BIT(integer) (UINT64_C(1) << (integer))

enum size { GRID, BLOCK, CLUSTER, SIZE_COUNT };

struct vector {
    int64_t value[3];
    unsigned n; /* number of elements, including elements after the third */
    bool bad;   /* an element is not an integer */
};

/* Kinds of events of the program itself. */
enum host { NO_HOST, OPERATOR, ANNOTATION, PYTHON, CALL };

struct event {
    enum host host;
    bool kernel, complete; /* kernel: category "kernel"; complete: ph "X" */
    bool xla;              /* a kernel as described by XLA's profiler (kineto_xla.c) */
    int64_t gpu;           /* GPU number in a metadata event; -1: none */
    bool has_args, bad_name;
    size_t name_bytes;
    struct vector size[SIZE_COUNT];
};

struct kineto_key;

#define OCC_KINETO_KEY_SLOTS 256u /* few keys: most other texts hit an empty slot */

struct occ_kineto {
    struct occ_import_sink *sink;
    struct occ_error *err;
    int status; /* not 0: stop parsing */

    struct {
        enum place place[DEPTH_MAX + 1];
        int depth;
    } stack;
    uint8_t key_slots[OCC_KINETO_KEY_SLOTS]; /* 1 + key of the table, by hash; 0: none */
    const struct kineto_key *key;            /* key of the next value; NULL: not in the table */
    struct vector *vector;                   /* the current array */
    struct yajl_handle_t *parser;            /* parser of the current pass */
    uint64_t tokens;                         /* number of tokens parsed */
    size_t token_end; /* end of the last token in the chunk; 0: no token ends in the chunk */

    int64_t values[INTEGER_COUNT];
    uint64_t known, bad; /* a bit for each integer: its value is known; it is invalid */
    struct event event;
    char *name; /* name of the event */
    size_t name_allocated;
    char device_name[256];
    /* maker of a GPU that the model does not cover, and the sign in the file */
    const char *maker, *maker_sign;
    int64_t next_device; /* for devices without an id */
    struct {
        int64_t pid, gpu;
    } xla_processes[XLA_PROCESSES_MAX];
    size_t n_xla_processes;

    bool described;     /* the file has deviceProperties */
    bool only_metadata; /* kernels came before the devices: the current pass reads only metadata */
    bool second;        /* the pass after a pass with only_metadata */
    bool several_pids;
    int64_t pid, first_ns;
    uint64_t kernels;
};

static inline bool occ_kineto_has(const struct occ_kineto *k, enum integer what)
{
    return (k->known & BIT(what)) != 0;
}

/* The value of an integer; 0: unknown. */
static inline int64_t occ_kineto_get(const struct occ_kineto *k, enum integer what)
{
    return occ_kineto_has(k, what) ? k->values[what] : 0;
}

/* Called at the end of an event or a device: passes launches, ranges, calls and devices to the sink. */
int occ_kineto_end_event(struct occ_kineto *k);
int occ_kineto_end_device(struct occ_kineto *k);

/* Keeps the first sign of a GPU that is not NVIDIA's. Both are string constants. */
void occ_kineto_note_maker(struct occ_kineto *k, const char *maker, const char *sign);

/* Traces of XLA (JAX, TensorFlow): a process stands for a GPU, a thread for a stream, and an argument holds
 * the configuration in words: "regs:32 static_shared:0 dynamic_shared:1024 grid:80,1,1 block:128,1,1". */
void occ_kineto_xla_details(struct occ_kineto *k, const unsigned char *text, size_t n);
/* Takes the name of a process from a metadata event, such as "/device:GPU:0". */
void occ_kineto_xla_process_name(struct occ_kineto *k, const unsigned char *text, size_t n);
/* Called at the end of an event: keeps the process of a GPU; gives a kernel its device and stream. */
void occ_kineto_xla_end(struct occ_kineto *k);

/* Makes one pass over the document. Errors contain the byte position. */
int occ_kineto_parse(struct occ_kineto *k, struct occ_kineto_input *input);
