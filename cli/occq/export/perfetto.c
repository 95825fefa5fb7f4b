/* Launches, values and layers in Perfetto's format; see perfetto.h. */
#include "perfetto.h"

#include <string.h>

enum { EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_NAME_TEXT = 23 };
enum { TYPE_BEGIN = 1, TYPE_END = 2 };
enum { COUNTER_EVENT_VALUE = 2, COUNTER_EVENT_DESCRIPTOR = 4, COUNTER_ID = 1, COUNTER_DOUBLE = 3 };

static struct perfetto_piece piece(const void *bytes, size_t n)
{
    return (struct perfetto_piece){n ? bytes : "", n};
}

static struct perfetto_piece from_to(const uint8_t *start, const uint8_t *end)
{
    return (struct perfetto_piece){start, (size_t)(end - start)};
}

/* ---- counters ---- */

/* Writes the value of the descriptor's only counter. */
static void write_value(struct export_writer *w, int64_t ns, uint64_t descriptor, double percent)
{
    uint8_t counter[2 * PROTOBUF_FIELD_MAX], event[4 * PROTOBUF_FIELD_MAX];
    const uint8_t *counter_end =
        protobuf_put_double(protobuf_put_number(counter, COUNTER_ID, 1), COUNTER_DOUBLE, percent);
    size_t n = (size_t)(counter_end - counter);
    uint8_t *end = protobuf_put_head(protobuf_put_number(event, COUNTER_EVENT_DESCRIPTOR, descriptor),
                                     COUNTER_EVENT_VALUE, n);
    end = (uint8_t *)memcpy(end, counter, n) + n;
    perfetto_write_event(w, ns, PACKET_COUNTER, &(struct perfetto_piece){event, (size_t)(end - event)}, 1);
}

static void write_waiting(struct export_writer *w, uint32_t gpu_id)
{
    struct perfetto_gpu *gpu = &((struct perfetto *)w->state)->gpus[gpu_id];
    if (!gpu->is_waiting)
        return;
    if (gpu->counter == 0)
        gpu->counter = perfetto_add_compute_counter(w, gpu_id);
    write_value(w, gpu->waiting_ns, gpu->counter, gpu->percent);
    gpu->is_waiting = false;
}

/* The viewer takes the mean of the values inside a launch, so a launch has a value only if it overlaps no
 * other launch of its GPU. */
static void add_occupancy(struct export_writer *w, uint32_t gpu_id, const struct export_launch *launch)
{
    struct perfetto_gpu *gpu = &((struct perfetto *)w->state)->gpus[gpu_id];
    bool is_alone = launch->start_ns >= gpu->busy_until_ns;
    if (is_alone)
        write_waiting(w, gpu_id);
    gpu->is_waiting = is_alone && launch->end_ns > launch->start_ns && launch->achieved >= 0;
    gpu->waiting_ns = launch->start_ns;
    gpu->percent = 100 * launch->achieved;
    if (launch->end_ns > gpu->busy_until_ns)
        gpu->busy_until_ns = launch->end_ns;
}

static void perfetto_add_value(struct export_writer *w, const struct export_track *track, int64_t ns,
                               double percent)
{
    const struct perfetto *p = w->state;
    if (!w->failed)
        write_value(w, ns, p->tracks[track->id].counter, percent);
}

/* ---- launches ---- */

enum { OWN_ARGS = 7 };

static uint8_t *put_range(struct export_writer *w, uint8_t *at, struct export_range *range)
{
    if (!range)
        return at;
    if (range->interned == 0) {
        struct protobuf interned = {0};
        range->interned = perfetto_intern(w, &interned, INTERNED_TEXTS, range->path);
        perfetto_write_interned(w, &interned);
    }
    at = perfetto_put_number(at, PERFETTO_LAYER, ARG_TEXT, range->interned);
    return range->is_backward ? perfetto_put_number(at, PERFETTO_PHASE, ARG_TEXT, PERFETTO_BACKWARD) : at;
}

static uint8_t *put_own_args(struct export_writer *w, uint8_t *at, const struct export_launch *launch)
{
    if (launch->correlation)
        at = perfetto_put_number(at, PERFETTO_CORRELATION, ARG_UINT, launch->correlation);
    if (launch->graph_node)
        at = perfetto_put_number(at, PERFETTO_GRAPH_NODE, ARG_UINT, launch->graph_node);
    at = put_range(w, at, launch->range);
    at = perfetto_put_real(at, PERFETTO_ACHIEVED, launch->achieved);
    at = perfetto_put_real(at, PERFETTO_ACHIEVED_CI95, launch->achieved_ci95);
    return perfetto_put_real(at, PERFETTO_MEASURED_RATIO, launch->measured_ratio);
}

static void perfetto_add_launch(struct export_writer *w, const struct export_track *track,
                                const struct export_config *config, const struct export_launch *launch)
{
    uint8_t head[2 * PROTOBUF_FIELD_MAX], launch_head[PROTOBUF_FIELD_MAX], own[OWN_ARGS * PERFETTO_ARG_MAX];
    struct perfetto *p = w->state;
    if (w->failed)
        return;
    const struct perfetto_track *stream = &p->tracks[track->id];
    const uint8_t *own_end = put_own_args(w, own, launch);
    const uint8_t *head_end =
        protobuf_put_number(protobuf_put_number(head, STAGE_EVENT, ++p->launches), STAGE_DURATION,
                            (uint64_t)(launch->end_ns - launch->start_ns));
    size_t n_common = config->size - config->head, n_own = (size_t)(own_end - own);
    const uint8_t *launch_end =
        protobuf_put_head(launch_head, STAGE_LAUNCH, n_common + stream->n_args + n_own);
    const struct perfetto_piece pieces[] = {from_to(head, head_end),
                                            piece(stream->bytes, stream->n_fields),
                                            piece(config->bytes, config->head),
                                            from_to(launch_head, launch_end),
                                            piece(config->bytes + config->head, n_common),
                                            piece(stream->bytes + stream->n_fields, stream->n_args),
                                            from_to(own, own_end)};
    perfetto_write_event(w, launch->start_ns, PACKET_STAGE, pieces, sizeof pieces / sizeof *pieces);
    add_occupancy(w, stream->gpu, launch);
}

/* ---- slices of TrackEvent: layers and holes ---- */

static uint8_t *put_slice(uint8_t *at, unsigned type, uint32_t track)
{
    return protobuf_put_number(protobuf_put_number(at, EVENT_TYPE, type), EVENT_TRACK, track);
}

static void perfetto_begin_layer(struct export_writer *w, const struct export_track *track, int64_t ns,
                                 const char *name, size_t n)
{
    uint8_t event[3 * PROTOBUF_FIELD_MAX];
    uint8_t *end = protobuf_put_head(put_slice(event, TYPE_BEGIN, track->id), EVENT_NAME_TEXT, n);
    const struct perfetto_piece pieces[] = {from_to(event, end), piece(name, n)};
    perfetto_write_event(w, ns, PACKET_EVENT, pieces, sizeof pieces / sizeof *pieces);
}

static void perfetto_end_layer(struct export_writer *w, const struct export_track *track, int64_t ns)
{
    uint8_t event[2 * PROTOBUF_FIELD_MAX];
    const struct perfetto_piece pieces[] = {from_to(event, put_slice(event, TYPE_END, track->id))};
    perfetto_write_event(w, ns, PACKET_EVENT, pieces, 1);
}

static void perfetto_add_hole(struct export_writer *w, const struct export_track *holes, int64_t start_ns,
                              int64_t end_ns)
{
    perfetto_begin_layer(w, holes, start_ns, holes->name, strlen(holes->name));
    perfetto_end_layer(w, holes, end_ns);
}

static void perfetto_end(struct export_writer *w)
{
    struct perfetto *p = w->state;
    struct protobuf packet = {0};
    if (w->failed)
        return;
    for (size_t i = 0; i < p->n_gpus; i++)
        write_waiting(w, (uint32_t)i);
    protobuf_message(&packet, PACKET_GPU_INFO, &p->gpu_info);
    perfetto_write_packet(w, &packet);
}

const struct export_format export_perfetto = {.name = "perfetto",
                                              .may_overlap = true,
                                              .has_model = true,
                                              .columns = perfetto_columns,
                                              .begin = perfetto_begin,
                                              .add_track = perfetto_add_track,
                                              .add_config = perfetto_add_config,
                                              .add_launch = perfetto_add_launch,
                                              .add_value = perfetto_add_value,
                                              .add_hole = perfetto_add_hole,
                                              .begin_layer = perfetto_begin_layer,
                                              .end_layer = perfetto_end_layer,
                                              .end = perfetto_end,
                                              .release = perfetto_release};
