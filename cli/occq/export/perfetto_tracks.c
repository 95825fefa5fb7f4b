/* Tracks of Perfetto's format: GPUs, streams as hardware queues, counters, and tracks of TrackEvent; see
 * perfetto.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perfetto.h"
#include "support/array.h"
#include "support/text.h"

enum { SPECIFICATION_NAME = 2, SPECIFICATION_CATEGORY = 4, CATEGORY_COMPUTE = 2 };
enum { CONTEXT_PID = 2, CONTEXT_API = 3, API_CUDA = 4 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_PARENT = 5 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { INFO_GPU = 1 };
enum { GPU_NAME = 1, GPU_VENDOR = 2, GPU_MODEL = 3, GPU_UUID = 5, GPU_EXTRA = 6 };
enum { EXTRA_KEY = 1, EXTRA_VALUE = 2 };
enum { COUNTERS_DESCRIPTOR = 2, COUNTERS_GPU = 3, DESCRIPTOR_SPEC = 1 };
enum {
    SPEC_ID = 1,
    SPEC_NAME = 2,
    SPEC_DESCRIPTION = 3,
    SPEC_UNIT = 7,
    SPEC_DEFAULT = 9,
    SPEC_GROUP = 10,
    SPEC_DIRECTION = 11
};
enum { UNIT_PERCENT = 37, GROUP_SYSTEM = 1, GROUP_COMPUTE = 6, DIRECTION_FORWARDS = 2 };

/* TrackEvent's numbers of processes; numbers of other tracks are smaller. */
#define PROCESS_UUID(run) ((UINT64_C(1) << 32) + (uint64_t)(run))

static void keep_track(struct export_writer *w, uint32_t id, struct perfetto_track track)
{
    struct perfetto *p = w->state;
    while (!w->failed && p->n_tracks <= id) {
        w->failed =
            !occ_grow((void **)&p->tracks, &p->tracks_allocated, p->n_tracks, UINT32_MAX, sizeof *p->tracks);
        if (!w->failed)
            p->tracks[p->n_tracks++] = (struct perfetto_track){0};
    }
    if (w->failed)
        free(track.bytes);
    else
        p->tracks[id] = track;
}

/* ---- tracks of TrackEvent ---- */

static void write_descriptor(struct export_writer *w, struct protobuf *descriptor)
{
    struct protobuf packet = {0};
    protobuf_message(&packet, PACKET_TRACK, descriptor);
    perfetto_write_packet(w, &packet);
}

static void describe(struct export_writer *w, const struct export_track *track, uint64_t parent)
{
    struct protobuf descriptor = {0};
    protobuf_number(&descriptor, TRACK_UUID, track->id);
    protobuf_text(&descriptor, TRACK_NAME, track->name);
    if (parent)
        protobuf_number(&descriptor, TRACK_PARENT, parent);
    write_descriptor(w, &descriptor);
}

/* Describes the run's process once. Returns the number of its track; 0: its id is not known. */
static uint64_t process_track(struct export_writer *w, const struct export_source *source)
{
    struct perfetto *p = w->state;
    struct protobuf descriptor = {0}, process = {0};
    uint64_t uuid = PROCESS_UUID(source->run);
    if (source->pid == 0 || occ_map_get(&p->runs, (uint64_t)source->run) != OCC_MAP_NONE)
        return source->pid ? uuid : 0;
    w->failed |= occ_map_put(&p->runs, (uint64_t)source->run, 0) == OCC_MAP_NONE;
    protobuf_number(&process, PROCESS_PID, (uint64_t)source->pid);
    if (source->program)
        protobuf_text(&process, PROCESS_NAME, source->program);
    protobuf_number(&descriptor, TRACK_UUID, uuid);
    protobuf_message(&descriptor, TRACK_PROCESS, &process);
    write_descriptor(w, &descriptor);
    return uuid;
}

/* ---- GPUs ---- */

static void put_extra(struct protobuf *gpu, const char *key, const char *value)
{
    struct protobuf extra = {0};
    if (!value)
        return;
    protobuf_text(&extra, EXTRA_KEY, key);
    protobuf_text(&extra, EXTRA_VALUE, value);
    protobuf_message(gpu, GPU_EXTRA, &extra);
}

static void put_gpu(struct protobuf *info, const char *name, const struct export_gpu *device)
{
    struct protobuf gpu = {0};
    uint8_t uuid[16];
    char sms[24];
    (void)snprintf(sms, sizeof sms, "%lld", (long long)device->sm_count);
    protobuf_text(&gpu, GPU_NAME, name);
    protobuf_text(&gpu, GPU_VENDOR, "NVIDIA");
    if (device->model)
        protobuf_text(&gpu, GPU_MODEL, device->model);
    if (device->uuid && occ_hex_decode(device->uuid, uuid, sizeof uuid))
        protobuf_bytes(&gpu, GPU_UUID, uuid, sizeof uuid);
    put_extra(&gpu, "compute_capability", device->compute_capability);
    put_extra(&gpu, "sm_count", device->sm_count ? sms : NULL);
    put_extra(&gpu, "simulated", device->is_simulated ? "1" : NULL);
    protobuf_message(info, INFO_GPU, &gpu);
}

static void add_gpu(struct export_writer *w, const struct export_track *track)
{
    struct perfetto *p = w->state;
    w->failed |= !occ_grow((void **)&p->gpus, &p->gpus_allocated, p->n_gpus, INT32_MAX, sizeof *p->gpus);
    if (w->failed)
        return;
    put_gpu(&p->gpu_info, track->name, track->device);
    keep_track(w, track->id, (struct perfetto_track){.gpu = (uint32_t)p->n_gpus});
    p->gpus[p->n_gpus++] = (struct perfetto_gpu){0};
    describe(w, track, 0);
}

/* ---- streams ---- */

static uint64_t intern_queue(struct export_writer *w, struct protobuf *interned, const char *name)
{
    struct perfetto *p = w->state;
    struct protobuf queue = {0};
    protobuf_number(&queue, INTERNED_ID, ++p->interned);
    protobuf_text(&queue, SPECIFICATION_NAME, name);
    protobuf_number(&queue, SPECIFICATION_CATEGORY, CATEGORY_COMPUTE);
    protobuf_message(interned, INTERNED_SPECIFICATIONS, &queue);
    return p->interned;
}

/* CUDA's numbers of contexts are a process's own, so the viewer gets numbers of ours. */
static uint64_t intern_context(struct export_writer *w, struct protobuf *interned,
                               const struct export_source *source)
{
    struct perfetto *p = w->state;
    struct protobuf context = {0};
    uint64_t key = (uint64_t)source->run << 32 | (uint32_t)source->context;
    uint32_t known = occ_map_get(&p->contexts, key);
    if (known != OCC_MAP_NONE)
        return known;
    uint32_t id = p->contexts.used + 1;
    w->failed |= occ_map_put(&p->contexts, key, id) == OCC_MAP_NONE;
    protobuf_number(&context, INTERNED_ID, id);
    if (source->pid)
        protobuf_number(&context, CONTEXT_PID, (uint64_t)source->pid);
    protobuf_number(&context, CONTEXT_API, API_CUDA);
    protobuf_message(interned, INTERNED_CONTEXTS, &context);
    return id;
}

static void put_source_args(struct export_writer *w, struct protobuf *interned,
                            const struct export_source *source, struct protobuf *args)
{
    const struct {
        uint64_t key, number;
        unsigned kind;
        bool is_known;
    } list[] = {
        {PERFETTO_DEVICE, (uint64_t)source->device, ARG_UINT, true},
        {PERFETTO_STREAM, (uint64_t)source->stream, ARG_UINT, true},
        {PERFETTO_RUN, (uint64_t)source->run, ARG_UINT, true},
        {PERFETTO_PROCESS_ID, (uint64_t)source->pid, ARG_UINT, source->pid != 0},
        {PERFETTO_PROCESS_NAME,
         source->program ? perfetto_intern(w, interned, INTERNED_TEXTS, source->program) : 0, ARG_TEXT,
         source->program != NULL},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct protobuf arg = {0};
        if (!list[i].is_known)
            continue;
        protobuf_number(&arg, ARG_NAME, list[i].key);
        protobuf_number(&arg, list[i].kind, list[i].number);
        protobuf_message(args, LAUNCH_ARG, &arg);
    }
}

static void add_stream(struct export_writer *w, const struct export_track *track, uint32_t gpu)
{
    struct protobuf interned = {0}, fields = {0}, args = {0};
    (void)process_track(w, track->source);
    protobuf_number(&fields, STAGE_QUEUE, intern_queue(w, &interned, track->name));
    protobuf_number(&fields, STAGE_STAGE, PERFETTO_STAGE);
    protobuf_number(&fields, STAGE_GPU, gpu);
    protobuf_number(&fields, STAGE_CONTEXT, intern_context(w, &interned, track->source));
    put_source_args(w, &interned, track->source, &args);
    perfetto_write_interned(w, &interned);
    size_t n_fields = fields.size;
    protobuf_splice(&fields, &args);
    w->failed |= fields.failed;
    keep_track(w, track->id,
               (struct perfetto_track){.gpu = gpu,
                                       .bytes = (uint8_t *)fields.bytes,
                                       .n_fields = n_fields,
                                       .n_args = fields.size - n_fields});
}

/* ---- counters ---- */

/* Interns a descriptor with one counter, in percent, whose value lasts until the next one. */
static uint64_t intern_counter(struct export_writer *w, uint32_t gpu, const char *name,
                               const char *description, unsigned group)
{
    struct perfetto *p = w->state;
    struct protobuf interned = {0}, counters = {0}, descriptor = {0}, spec = {0};
    uint64_t id = ++p->interned;
    protobuf_number(&spec, SPEC_ID, 1);
    protobuf_text(&spec, SPEC_NAME, name);
    protobuf_text(&spec, SPEC_DESCRIPTION, description);
    protobuf_number(&spec, SPEC_UNIT, UNIT_PERCENT);
    protobuf_number(&spec, SPEC_DEFAULT, 1);
    protobuf_number(&spec, SPEC_GROUP, group);
    protobuf_number(&spec, SPEC_DIRECTION, DIRECTION_FORWARDS);
    protobuf_message(&descriptor, DESCRIPTOR_SPEC, &spec);
    protobuf_number(&counters, INTERNED_ID, id);
    protobuf_message(&counters, COUNTERS_DESCRIPTOR, &descriptor);
    protobuf_number(&counters, COUNTERS_GPU, gpu);
    protobuf_message(&interned, INTERNED_COUNTERS, &counters);
    perfetto_write_interned(w, &interned);
    return id;
}

uint64_t perfetto_add_compute_counter(struct export_writer *w, uint32_t gpu)
{
    return intern_counter(
        w, gpu, "sm__warps_active.avg.pct_of_peak_sustained_active",
        "achieved occupancy of the launch that starts at this time: its own, or the mean of its "
        "configuration, run and minute; none for launches that overlap another of the GPU; "
        "errors are in the argument achieved_ci95",
        GROUP_COMPUTE);
}

static void add_counter(struct export_writer *w, const struct export_track *track, uint32_t gpu)
{
    uint64_t counter = intern_counter(w, gpu, track->name,
                                      "samples of the whole GPU; 0 where there is no sample", GROUP_SYSTEM);
    keep_track(w, track->id, (struct perfetto_track){.gpu = gpu, .counter = counter});
}

void perfetto_add_track(struct export_writer *w, const struct export_track *track)
{
    const struct perfetto *p = w->state;
    if (w->failed)
        return;
    uint32_t gpu = track->kind == EXPORT_GPU ? 0 : p->tracks[track->gpu].gpu;
    switch (track->kind) {
    case EXPORT_GPU:
        add_gpu(w, track);
        break;
    case EXPORT_LANE:
        add_stream(w, track, gpu);
        break;
    case EXPORT_COUNTER:
        add_counter(w, track, gpu);
        break;
    case EXPORT_HOLES:
        describe(w, track, track->gpu);
        break;
    case EXPORT_LAYERS:
        describe(w, track, process_track(w, track->source));
        break;
    }
}
