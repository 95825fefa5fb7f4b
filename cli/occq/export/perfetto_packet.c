/* Packets, interned data and arguments; see perfetto.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perfetto.h"

enum { TRACE_PACKET = 1 };
enum { FLAGS_CLEARED = 1, FLAGS_NEEDS_STATE = 2 };
enum { SPECIFICATION_ID = 1, SPECIFICATION_NAME = 2, SPECIFICATION_CATEGORY = 4 };
enum { CATEGORY_COMPUTE = 2 };

static uint64_t flags(struct export_writer *w)
{
    return w->written++ ? FLAGS_NEEDS_STATE : FLAGS_CLEARED | FLAGS_NEEDS_STATE;
}

void perfetto_write_packet(struct export_writer *w, struct protobuf *packet)
{
    struct protobuf framed = {0};
    protobuf_number(packet, PACKET_SEQUENCE, 1);
    protobuf_number(packet, PACKET_FLAGS, flags(w));
    protobuf_message(&framed, TRACE_PACKET, packet);
    w->failed |= framed.failed;
    if (!framed.failed)
        (void)fwrite_unlocked(framed.bytes, 1, framed.size, w->out);
    protobuf_free(&framed);
}

void perfetto_write_interned(struct export_writer *w, struct protobuf *interned)
{
    struct protobuf packet = {0};
    protobuf_message(&packet, PACKET_INTERNED, interned);
    perfetto_write_packet(w, &packet);
}

void perfetto_write_event(struct export_writer *w, int64_t ns, unsigned field,
                          const struct perfetto_piece *pieces, size_t n)
{
    uint8_t head[64], frame[16];
    size_t size = 0;
    for (size_t i = 0; i < n; i++)
        size += pieces[i].size;
    uint8_t *end = protobuf_put_number(head, PACKET_TIMESTAMP, (uint64_t)ns);
    end = protobuf_put_number(end, PACKET_SEQUENCE, 1);
    end = protobuf_put_number(end, PACKET_FLAGS, flags(w));
    end = protobuf_put_head(end, field, size);
    uint8_t *frame_end = protobuf_put_head(frame, TRACE_PACKET, (size_t)(end - head) + size);
    (void)fwrite_unlocked(frame, 1, (size_t)(frame_end - frame), w->out);
    (void)fwrite_unlocked(head, 1, (size_t)(end - head), w->out);
    for (size_t i = 0; i < n; i++)
        (void)fwrite_unlocked(pieces[i].bytes, 1, pieces[i].size, w->out);
}

/* ---- interned data ---- */

uint64_t perfetto_intern(struct export_writer *w, struct protobuf *interned, unsigned field, const char *text)
{
    struct perfetto *p = w->state;
    struct protobuf entry = {0};
    uint64_t id = ++p->interned;
    protobuf_number(&entry, INTERNED_ID, id);
    protobuf_text(&entry, INTERNED_TEXT, text);
    protobuf_message(interned, field, &entry);
    return id;
}

uint64_t perfetto_key(struct export_writer *w, struct protobuf *interned, const char *key)
{
    struct perfetto *p = w->state;
    for (size_t i = 0; i < p->n_keys; i++)
        if (strcmp(p->keys[i].key, key) == 0)
            return p->keys[i].id;
    uint64_t id = perfetto_intern(w, interned, INTERNED_ARG_NAMES, key);
    if (p->n_keys < EXPORT_ARGS_MAX)
        p->keys[p->n_keys++] = (struct perfetto_key){key, id};
    return id;
}

static void intern_stage(struct protobuf *interned)
{
    struct protobuf stage = {0};
    protobuf_number(&stage, SPECIFICATION_ID, PERFETTO_STAGE);
    protobuf_text(&stage, SPECIFICATION_NAME, "Kernel");
    protobuf_number(&stage, SPECIFICATION_CATEGORY, CATEGORY_COMPUTE);
    protobuf_message(interned, INTERNED_SPECIFICATIONS, &stage);
}

static void intern_backward(struct protobuf *interned)
{
    struct protobuf text = {0};
    protobuf_number(&text, INTERNED_ID, PERFETTO_BACKWARD);
    protobuf_text(&text, INTERNED_TEXT, "backward");
    protobuf_message(interned, INTERNED_TEXTS, &text);
}

void perfetto_begin(struct export_writer *w)
{
    /* in the order of enum perfetto_own_key; Perfetto's by-process view uses device, stream and process_* */
    static const char *const keys[] = {"device",       "stream",         "run_id",        "process_id",
                                       "process_name", "correlation_id", "graph_node_id", "layer",
                                       "phase",        "achieved",       "achieved_ci95", "measured_ratio"};
    struct protobuf interned = {0};
    w->state = calloc(1, sizeof(struct perfetto));
    w->failed |= !w->state;
    if (!w->state)
        return;
    intern_stage(&interned);
    intern_backward(&interned);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        (void)perfetto_key(w, &interned, keys[i]);
    perfetto_write_interned(w, &interned);
}

void perfetto_release(struct export_writer *w)
{
    struct perfetto *p = w->state;
    if (!p)
        return;
    for (size_t i = 0; i < p->n_tracks; i++)
        free(p->tracks[i].bytes);
    free(p->tracks);
    free(p->gpus);
    protobuf_free(&p->gpu_info);
    occ_map_free(&p->contexts);
    occ_map_free(&p->runs);
    free(p);
    w->state = NULL;
}

/* ---- arguments ---- */

static uint8_t *put_arg(uint8_t *at, const uint8_t *arg, const uint8_t *end)
{
    size_t n = (size_t)(end - arg);
    return (uint8_t *)memcpy(protobuf_put_head(at, LAUNCH_ARG, n), arg, n) + n;
}

uint8_t *perfetto_put_number(uint8_t *at, uint64_t key, unsigned kind, uint64_t number)
{
    uint8_t arg[2 * PROTOBUF_FIELD_MAX];
    return put_arg(at, arg, protobuf_put_number(protobuf_put_number(arg, ARG_NAME, key), kind, number));
}

uint8_t *perfetto_put_real(uint8_t *at, uint64_t key, double real)
{
    uint8_t arg[2 * PROTOBUF_FIELD_MAX];
    if (isnan(real))
        return at;
    return put_arg(at, arg, protobuf_put_double(protobuf_put_number(arg, ARG_NAME, key), ARG_DOUBLE, real));
}
