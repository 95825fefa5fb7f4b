/*
 * Perfetto's native format for GPU compute: a sequence of Trace.packet. Field numbers are from
 * protos/perfetto of google/perfetto, commit ec5d16b14b74: trace/trace_packet, trace/interned_data,
 * trace/gpu/{gpu_render_stage_event, gpu_interned_data, gpu_counter_event}, common/gpu_counter_descriptor,
 * trace/system_info/gpu_info, trace/track_event/{track_event, track_descriptor, process_descriptor}.
 *
 *   launch                  GpuRenderStageEvent with ComputeKernelLaunch, on the hardware queue of its stream
 *   launch configuration    InternedComputeKernel; arguments of occtrace are the kernel's, arguments that
 *                           Perfetto names are the launch's
 *   achieved occupancy      GpuCounterEvent of the compute group, at the start of the launch
 *   device-wide samples     GpuCounterEvent; holes are slices of TrackEvent
 *   layers                  nested slices of TrackEvent, a track for each stream
 *   GPU                     GpuInfo, at the end, when all GPUs are known; index = gpu_id
 *
 * Kernels are no slices of TrackEvent: viewers would show, and queries of `slice` would count, each of them
 * twice.
 */
#pragma once

#include "export.h"
#include "protobuf.h"
#include "support/map.h"

/* Interned messages: number and content. */
enum { INTERNED_ID = 1, INTERNED_TEXT = 2 };
/* Fields of InternedData. */
enum {
    INTERNED_EVENT_NAMES = 2,
    INTERNED_CONTEXTS = 23,
    INTERNED_SPECIFICATIONS = 24,
    INTERNED_TEXTS = 29,
    INTERNED_COUNTERS = 47,
    INTERNED_KERNELS = 1000,
    INTERNED_ARG_NAMES = 1001
};
/* Fields of GpuRenderStageEvent and of its messages. */
enum {
    STAGE_EVENT = 1,
    STAGE_DURATION = 2,
    STAGE_CONTEXT = 5,
    STAGE_GPU = 11,
    STAGE_QUEUE = 13,
    STAGE_STAGE = 14,
    STAGE_KERNEL = 19,
    STAGE_NAME = 20,
    STAGE_LAUNCH = 21
};
enum { LAUNCH_GRID = 1, LAUNCH_BLOCK = 2, LAUNCH_ARG = 3 };
enum { ARG_NAME = 1, ARG_INT = 3, ARG_UINT = 4, ARG_DOUBLE = 5, ARG_TEXT = 7 };
/* Fields of TracePacket. */
enum {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_COUNTER = 52,
    PACKET_STAGE = 53,
    PACKET_TRACK = 60,
    PACKET_GPU_INFO = 128
};

/* Places of columns that are no argument. */
enum perfetto_place {
    PERFETTO_GRID = EXPORT_PLACES, /* x, y, z in this order */
    PERFETTO_BLOCK,
    PERFETTO_MANGLED,
    PERFETTO_DEMANGLED,
    PERFETTO_ARCH
};
extern const struct export_column perfetto_columns[];

/* A launch's occupancy waits until the next launch of the GPU shows that no other launch overlaps it. */
struct perfetto_gpu {
    uint64_t counter; /* number of the counter's interned descriptor; 0: no value yet */
    bool is_waiting;
    int64_t waiting_ns, busy_until_ns;
    double percent;
};

struct perfetto_track {
    uint32_t gpu;     /* gpu_id */
    uint64_t counter; /* of a counter's track: number of its interned descriptor */
    uint8_t *bytes;   /* of a stream, encoded: the constant fields of its launches, then their arguments */
    size_t n_fields, n_args;
};

struct perfetto_key {
    const char *key;
    uint64_t id;
};

struct perfetto {
    struct protobuf gpu_info;
    struct perfetto_gpu *gpus; /* by gpu_id */
    size_t n_gpus, gpus_allocated;
    struct perfetto_track *tracks; /* by the track's number */
    size_t n_tracks, tracks_allocated;
    struct occ_map contexts; /* run and CUDA context -> number of the interned context */
    struct occ_map runs;     /* runs whose process has a track */
    struct perfetto_key keys[EXPORT_ARGS_MAX];
    size_t n_keys;
    uint64_t interned, launches;
};

/* ---- perfetto_packet.c ---- */

/* Numbers of the interned names of arguments that belong to no configuration: the first keys. */
enum perfetto_own_key {
    PERFETTO_DEVICE = 1,
    PERFETTO_STREAM,
    PERFETTO_RUN,
    PERFETTO_PROCESS_ID,
    PERFETTO_PROCESS_NAME,
    PERFETTO_CORRELATION,
    PERFETTO_GRAPH_NODE,
    PERFETTO_LAYER,
    PERFETTO_PHASE,
    PERFETTO_ACHIEVED,
    PERFETTO_ACHIEVED_CI95,
    PERFETTO_MEASURED_RATIO
};
enum { PERFETTO_STAGE = 1, PERFETTO_BACKWARD = 2 }; /* interned: the stage of kernels; the text "backward" */

/* Allocates the state and writes the first packet, with these names. */
void perfetto_begin(struct export_writer *w);
void perfetto_release(struct export_writer *w);

/* Adds a text to a packet's interned data. Returns its number. */
uint64_t perfetto_intern(struct export_writer *w, struct protobuf *interned, unsigned field,
                         const char *text);
/* Returns the number of an argument's name; a new name is added to `interned` and must outlive the writer. */
uint64_t perfetto_key(struct export_writer *w, struct protobuf *interned, const char *key);
/* Write a packet, with interned data, and free it. All packets are in one sequence, which shares interned
 * data. */
void perfetto_write_packet(struct export_writer *w, struct protobuf *packet);
void perfetto_write_interned(struct export_writer *w, struct protobuf *interned);

struct perfetto_piece {
    const void *bytes;
    size_t size;
};
/* Writes a packet with a time and an event, `field` of TracePacket; the event is the concatenated pieces.
 * Allocates nothing. */
void perfetto_write_event(struct export_writer *w, int64_t ns, unsigned field,
                          const struct perfetto_piece *pieces, size_t n);

/* Encode an argument of a launch at `at` and return the end: at most PERFETTO_ARG_MAX bytes. NaN is no
 * argument. */
enum { PERFETTO_ARG_MAX = 32 };
uint8_t *perfetto_put_number(uint8_t *at, uint64_t key, unsigned kind, uint64_t number);
uint8_t *perfetto_put_real(uint8_t *at, uint64_t key, double real);

/* ---- perfetto_tracks.c, perfetto_config.c: see struct export_format ---- */

void perfetto_add_track(struct export_writer *w, const struct export_track *track);
/* Interns the counter of the compute group for a GPU. Returns the number of its descriptor. */
uint64_t perfetto_add_compute_counter(struct export_writer *w, uint32_t gpu);
bool perfetto_add_config(struct export_writer *w, const char *kernel, const struct export_arg *args, size_t n,
                         struct export_config *config);
